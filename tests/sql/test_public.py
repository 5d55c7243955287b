"""Subqueries over public tables above the groups: they read no private row, move no price, and are no part of identity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import dither as dt
from dither.curator import STEPS, Curator
from dither.engines.base import Engine
from dither.engines.reference import Reference
from dither.planning import lookups
from dither.query.nodes import Aggregate, Column, Literal, Lookup, Named, Outer, Query, Relation, Scan, Semi, sources
from dither.query.read import read_union
from dither.query.resolve import relations
from dither.query.work import UNIT, Group, Work
from sql.everyday import public
from sql.survey import CATALOG

COUNT = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
LOOKED_UP = [
    f"{COUNT} HAVING COUNT(*) > (SELECT MAX(least) FROM limits)",
    f"{COUNT} HAVING region IN (SELECT name FROM regions WHERE coast)",
    "SELECT region, COUNT(*) AS n, (SELECT area FROM regions r WHERE r.name = p.region) AS a FROM people p GROUP BY region",
    f"SELECT * FROM ({COUNT}) t WHERE n > (SELECT SUM(share) FROM limits) ORDER BY n * (SELECT MAX(share) FROM limits)",
]


@contextmanager
def opened(data: dict[str, Any] | None = None, **changes: Any) -> Iterator[Curator]:
    catalog = replace(public.catalog(public.tables() if data is None else data), **changes)
    with dt.open(catalog, ledger=":memory:") as curator:
        yield curator


@pytest.fixture(scope="module")
def survey() -> Iterator[Curator]:
    with opened() as curator:
        yield curator


def walked(relation: Relation) -> Iterator[Relation]:
    yield relation
    for each in sources(relation):
        yield from walked(each)


def scanned(relation: Relation) -> set[str]:
    return {each.table for each in walked(relation) if isinstance(each, Scan)}


def entries(curator: Curator) -> int:
    return curator.ledger.head().number


class Watch:
    """Records the tables that the engine reads while nothing new is charged."""

    def __init__(self, curator: Curator) -> None:
        self.curator, self.before, self.read = curator, entries(curator), set[str]()
        self.steps = replace(STEPS, run=self.run)

    def run(self, engine: Engine, work: Work) -> Sequence[Group]:
        if entries(self.curator) == self.before:
            self.read |= scanned(work.source)
        return STEPS.run(engine, work)


def uncharged(curator: Curator, question: str | Query) -> set[str]:
    """Returns the tables that are read for a question before it is charged, and for its quote."""
    watch = Watch(curator)
    curator.steps = watch.steps
    try:
        curator.quote(question, epsilon=1)
        curator.ask(question, epsilon=1, fresh=True)
    finally:
        curator.steps = STEPS
    return watch.read


def private_rows(curator: Curator, tables: set[str]) -> set[str]:
    return {name for name in tables if not curator.catalog.tables[name].public}


@pytest.mark.parametrize("question", LOOKED_UP)
def test_only_public_tables_are_read_before_the_charge(question: str) -> None:
    with opened() as survey:
        read = uncharged(survey, question)
        assert read
        assert not private_rows(survey, read)


def private_lookup() -> Query:
    """A question built by hand that looks up an exact number about people."""
    count = Aggregate("c", "count")
    above = Outer(
        ("n",),
        (Named("n", Column("n")), Named("m", Column("#public 1"))),
        lookups=(Lookup("#public 1", "value", Scan("visits", "v"), item=Column("c"), aggregates=(count,)),),
    )
    outputs = (Named("n", Column("n")),)
    return Query(Scan("people", "p"), (), (Aggregate("n", "count"),), outputs, above=(above,))


def test_a_lookup_of_private_rows_is_refused(survey: Curator) -> None:
    with pytest.raises(dt.QueryError, match="reads the rows of people"):
        survey.quote(private_lookup(), epsilon=1)


def test_that_check_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resolver that takes every table for a public one reads people's rows before the charge."""
    careless = relations.looked_up
    monkeypatch.setattr(relations, "looked_up", lambda node, rows: careless(node, replace(rows, protects="public")))
    with opened() as survey:
        assert private_rows(survey, uncharged(survey, private_lookup())) == {"visits"}


@pytest.mark.parametrize("question", LOOKED_UP)
def test_they_move_no_price_and_are_no_part_of_identity(question: str) -> None:
    with opened() as survey:
        plain = survey.ask(COUNT, epsilon=2)
        again = survey.ask(question, epsilon=2)
        assert again.replayed
        assert again.receipt.body["entry"]["number"] == plain.receipt.body["entry"]["number"]


def test_other_public_data_is_another_snapshot_and_another_filter() -> None:
    data = public.tables()
    data["limits"] = pa.table({"kind": ["low"], "least": [95], "share": [0.5]})
    with opened() as survey, opened(data, snapshot="later") as later:
        question = f"{COUNT} HAVING COUNT(*) > (SELECT MIN(least) FROM limits)"
        assert len(survey.ask(question, epsilon=1000)) == 4
        assert len(later.ask(question, epsilon=1000)) == 1
        assert survey.quote(question, epsilon=1).price == later.quote(question, epsilon=1).price


@pytest.mark.parametrize(
    "question",
    [
        f"{COUNT} HAVING COUNT(*) > (SELECT least FROM limits WHERE kind = 'low')",
        "SELECT region, (SELECT share FROM limits l WHERE l.kind = p.region) AS s, COUNT(*) AS n FROM people p GROUP BY region",
    ],
)
def test_several_rows_are_refused_and_charge_nothing(survey: Curator, question: str) -> None:
    before = entries(survey)
    with pytest.raises(dt.QueryError, match="more than one row") as refused:
        survey.ask(question, epsilon=1)
    assert "Charged: nothing" in str(refused.value)
    assert entries(survey) == before


@pytest.mark.parametrize("question", [question for question, _ in public.QUESTIONS if "FROM regions" in question])
def test_the_reference_engine_finds_the_same(survey: Curator, question: str) -> None:
    tables = {name: table.to_pylist() for name, table in public.tables().items()}
    reference = Reference(tables, {name: survey.engine.schema(name) for name in tables})
    for lookup in lookups.lookups(survey.steps.read(question, survey.catalog)):
        work = lookups.work(lookup)
        own, other = (lookups.read(lookup, engine.run(work, bytes(32))) for engine in (survey.engine, reference))
        assert own == other


def test_sums_of_public_fractions_do_not_depend_on_the_order() -> None:
    lookup = Lookup("#public 1", "value", Scan("t", "t"), item=Column("s"), aggregates=(Aggregate("s", "sum", Literal(1)),))
    numbers = [1e16, 1.0, -1e16, 0.1, 3.7]
    orders = [numbers, numbers[::-1], sorted(numbers)]
    found = {lookups.read(lookup, [Group((each,), None, ((1,),)) for each in order]).empty for order in orders}
    totals = [lookups.read(lookup, [Group((each,), None, ((1,),)) for each in order]).items[()] for order in orders]
    assert found == {None}
    assert len(set(totals)) == 1


def test_an_aggregate_that_only_orders_is_priced_as_if_shown(survey: Curator) -> None:
    shown = survey.quote("SELECT ward, SUM(cost) AS s FROM visits GROUP BY ward", epsilon=1)
    hidden = survey.quote("SELECT ward FROM visits GROUP BY ward ORDER BY SUM(cost)", epsilon=1)
    assert hidden.program.identity == shown.program.identity
    assert "not shown      SUM(visits.cost) ±" in hidden.explain()
    answer = survey.ask("SELECT ward FROM visits GROUP BY ward ORDER BY SUM(cost)", epsilon=1)
    assert "paid for, but not shown: SUM(visits.cost)" in answer.notes()


def test_rows_equated_by_their_own_id_are_of_one_person(survey: Curator) -> None:
    question = "SELECT COUNT(*) AS n FROM visits WHERE visit IN (SELECT visit FROM visits GROUP BY visit HAVING SUM(cost) > 2)"
    (semi,) = (each for each in walked(survey.steps.read(question, survey.catalog).query.source) if isinstance(each, Semi))
    assert (Column(UNIT), Column(UNIT)) in semi.equal


def test_the_private_form_of_a_list_across_people_works_when_pasted(survey: Curator) -> None:
    question = "SELECT COUNT(*) AS n FROM visits v WHERE {}"
    listed = "ward IN (SELECT ward FROM visits GROUP BY ward HAVING SUM(cost) > 2)"
    with pytest.raises(dt.QueryError) as refused:
        survey.quote(question.format(listed), epsilon=1)
    within, alone = str(refused.value.fix).split("; or ask it alone, and write what it answers here: ")
    survey.quote(question.format(within.removeprefix("compare the rows of one person: ")), epsilon=1)
    survey.quote(alone.removesuffix("."), epsilon=1)


@pytest.mark.parametrize(
    "around",
    [
        "SELECT * FROM ({}) x WHERE EXISTS (SELECT 1 FROM regions)",
        "SELECT * FROM ({}) x WHERE n > (SELECT MAX(area) FROM regions)",
        "SELECT * FROM ({}) x WHERE region IN (SELECT name FROM regions)",
    ],
)
def test_subqueries_around_a_union_are_refused_uncharged(around: str) -> None:
    part = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
    text = around.format(f"{part} UNION ALL {part}")
    with pytest.raises(dt.QueryError, match="cannot stand around a UNION"):
        read_union(text, CATALOG)
