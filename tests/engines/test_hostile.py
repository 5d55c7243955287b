"""Names and constants that look like SQL are only names and constants, in every engine."""

from __future__ import annotations

from contextlib import closing

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import dither as dt
from dither.engines.registry import open_sources
from dither.query.nodes import Call, Column, Compute, Filter, Literal, Named, Scan
from dither.query.work import UNIT, Cell, Group, Sums, Work
from engines.places import Place, PostgresPlace
from engines.tables import SECRET
from ledger.postgres_server import Server

HOSTILE = [
    '"',
    "'",
    'a"; DROP TABLE kept; --',
    "x'); DROP TABLE kept; --",
    "%s",
    "{0}",
    "?",
    "$1",
    "$1::text",
    "$groups_1",
    "$values_2 $groups_2",
    "\\",
    "ﬁ",
    "a b",
    "SELECT",
    "Ä",
    "\n",
]
ANY_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
COUNT = (Sums((Cell(constant=1),), 1),)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_of_tables_and_columns_are_only_names(place: Place, name: str) -> None:
    """A catalog lets no such name of a table in, so PostgreSQL gets it in the next test only."""
    table, rows = name if place.name == "duckdb" else "t", [{f"{name}!": text, "n": i} for i, text in enumerate("vvw")]
    kinds = {table: {f"{name}!": "text", "n": "int"}, "kept": {"one": "int"}}
    engine = place.engine({table: rows, "kept": [{"one": 1}]}, kinds)
    source = Compute(Scan(table, name), (Named(name, Column(f"{name}.{name}!")), Named(UNIT, Column(f"{name}.n"))))
    for by_unit, most in ((False, None), (True, 1)):
        found = engine.run(Work(source, (Named(name, Column(name)),), None, by_unit, most, COUNT), SECRET)
        assert sorted((group.key, group.measures) for group in found) == [(("v",), ((2,),)), (("w",), ((1,),))]
    there = Work(Scan("kept", "k"), (Named("one", Column("k.one")),), None, False, None, COUNT)
    assert engine.run(there, SECRET) == [Group((1,), None, ((1,),))]


@pytest.mark.parametrize("name", [*HOSTILE, "a.b", 'a"."b', "&table=public.other", "#", "ä" * 31])
def test_a_hostile_name_in_an_address_is_only_a_name(postgres: Server, name: str) -> None:
    with closing(PostgresPlace(postgres)) as place:
        place.make(name, {"n": "int"})
        place.fill(name, [{"n": 1}, {"n": 2}], {"n": "int"})
        with closing(open_sources(dt.Catalog({"t": dt.Table(place.address(name), unit="row")}, dt.Budget(1)))) as opened:
            work = Work(Scan("t", "t"), (), None, False, None, COUNT)
            assert opened.engine.run(work, SECRET) == [Group((), None, ((2,),))]


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=st.one_of(ANY_TEXT, st.sampled_from(HOSTILE)), by_unit=st.booleans())
def test_hostile_constants_are_only_constants(place: Place, text: str, by_unit: bool) -> None:
    assume(place.holds(text))
    rows = [{"u": number, "v": value} for number, value in enumerate((text, f"{text}x", None))]
    engine = place.engine({"t": rows}, {"t": {"u": "int", "v": "text"}})
    source = Compute(Scan("t", "t"), (Named(UNIT, Column("t.u")), Named("v", Column("t.v"))))
    equal = Filter(source, Call("eq", (Column("v"), Literal(text))))
    assert engine.run(Work(equal, (), None, False, None, COUNT), SECRET) == [Group((), None, ((1,),))]
    known = Work(source, (Named("v", Column("v")),), ((text, "no such"),), by_unit, 1 if by_unit else None, COUNT)
    assert engine.run(known, SECRET) == [Group((text,), None, ((1,),))]


def test_names_that_differ_in_case_only_are_different_columns(place: Place) -> None:
    engine = place.engine({"t": [{"u": 1, "x": 5}, {"u": 2, "x": 6}]}, {"t": {"u": "int", "x": "int"}})
    source = Compute(Scan("t", "t"), (Named("A", Column("t.u")), Named("a", Column("t.x"))))
    for name, values in {"A": {(1,), (2,)}, "a": {(5,), (6,)}}.items():
        work = Work(source, (Named("k", Column(name)),), None, False, None, COUNT)
        assert {group.key for group in engine.run(work, SECRET)} == values
