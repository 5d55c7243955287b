"""Every engine gives the reference engine's integers exactly: generated tables and Works, every source and thread count."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError, QueryError
from dither.planning.releases.moments import Moments
from dither.query.nodes import Column
from dither.query.work import Group, Quantised, Work
from engines.places import Place, compare, fit
from engines.tables import SECRET, arrow, by_key, in_duckdb, in_python, rows
from engines.works import plain, works

LONG = bool(os.environ.get("DITHER_SEARCH"))
MANY = settings(max_examples=600 if LONG else 100, deadline=None, suppress_health_check=list(HealthCheck))
SOME = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
Table = list[dict[str, Any]]


def refusable(place: Place, work: Work) -> bool:
    """Whether a Work may be refused: SQLite lacks functions, and no text of PostgreSQL has a zero character."""
    return place.name == "sqlite" or ("\\x00" in repr(work) and not place.holds("\0"))


@pytest.mark.slow
@pytest.mark.parametrize("place", ["duckdb", "postgres", "sqlite"], indirect=True)
@MANY
@given(work=works(), table=rows(), public=rows(most=4))
def test_the_integers_are_the_reference_engines(place: Place, work: Work, table: Table, public: Table) -> None:
    try:
        ours, specified = compare(place, work, {"t": table, "p": public})
    except (QueryError, ArgumentError):
        assert refusable(place, work)
        return
    assert ours == specified


def ours(work: Work, tables: dict[str, Table], **options: Any) -> dict[Any, Group]:
    return by_key(in_duckdb({name: arrow(table) for name, table in tables.items()}, **options).run(work, SECRET))


def specified(work: Work, tables: dict[str, Table]) -> dict[Any, Group]:
    return by_key(in_python(tables).run(work, SECRET))


@pytest.mark.slow
@SOME
@given(work=works(), table=rows(most=30), public=rows(most=4), data=st.data())
def test_order_threads_and_source_do_not_matter(work: Work, table: Table, public: Table, data: Any) -> None:
    expected = specified(work, {"t": table, "p": public})
    shuffled: Sequence[dict[str, Any]] = data.draw(st.permutations(table))
    with tempfile.TemporaryDirectory() as folder:
        for threads in (1, 2, 4):
            assert ours(work, {"t": list(shuffled), "p": public}, threads=threads) == expected
            assert ours(work, {"t": table, "p": public}, threads=threads, folder=Path(folder)) == expected


@SOME
@given(work=works(by_unit=True), table=rows(most=30), public=rows(most=4))
def test_one_secret_and_another_agree_where_nothing_is_chosen(place: Place, work: Work, table: Table, public: Table) -> None:
    assume(not refusable(place, work))
    engine = place.engine({"t": fit(place, table), "p": fit(place, public)})
    assert by_key(engine.run(work, b"one")) == by_key(engine.run(work, b"another"))


def test_the_comparison_can_fail() -> None:
    with pytest.raises(AssertionError, match="twice"):
        by_key([Group((1,), None, ()), Group((1,), None, ())])
    assert by_key([Group((1,), None, ())]) != by_key([Group((True,), None, ())])


@pytest.mark.slow
@SOME
@given(table=rows(), most=st.integers(1, 3), by_unit=st.booleans())
def test_moments_are_the_reference_engines(place: Place, table: Table, most: int, by_unit: bool) -> None:
    """Cells of moments are products of whole numbers, computed in doubles without rounding."""
    x = Quantised(Column("x"), Fraction(-3), Fraction(1, 2), 2000)
    i = Quantised(Column("i"), Fraction(0), Fraction(1), 100)
    measures = tuple(
        Moments(grids, degrees, most, tuple(grid.expression for grid in grids)).measure
        for grids, degrees in (((x, i), (2, 2)), ((x,), (4,)), ((i, x), (1, 2)))
    )
    work = Work(plain("t", "t"), (), None, by_unit, None, measures)
    found, expected = compare(place, work, {"t": table, "p": []})
    assert found == expected
