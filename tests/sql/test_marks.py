"""IN and EXISTS as values of each row have SQL's meaning in both engines, and neither add nor drop rows.

test_scalars.py compares the golden questions with plain DuckDB; this file has the corner cases, and wrong versions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import duckdb
import pytest

import dither as dt
from attacks.neighbours import filled, survey
from dither.engines.duckdb.engine import DuckDB
from dither.engines.reference import Reference, rows_of
from dither.errors import QueryError
from dither.query.functions.registry import columns
from dither.query.nodes import (
    Aggregate,
    Call,
    Column,
    Compute,
    Expression,
    Filter,
    Join,
    Literal,
    Named,
    PerUnit,
    Query,
    Relation,
    Scan,
    Semi,
)
from dither.query.resolve.relations import resolve
from dither.query.work import UNIT, Sums, Work
from sql.survey import CATALOG
from sql.test_engines_agree import KINDS, in_duckdb, work_of
from sql.test_scalars import changed, counted, mistaken, raw
from sql.test_unit_local import bags, is_unit_local, two_people

NOTHING: dict[str, list[dict[str, Any]]] = {name: [] for name in KINDS}
LISTS: list[list[str | None]] = [[], [None], ["a"], ["b"], ["a", None], ["b", None], ["b", "b"], ["a", "a", None, None]]
PLACES = [
    "{} IS TRUE",
    "{} IS FALSE",
    "({}) IS NULL",
    "active OR {}",
    "NOT (active AND {})",
    "CASE WHEN {} THEN active ELSE NOT active END",
    "COALESCE({}, active)",
]


@cache
def engines(listed: tuple[str | None, ...]) -> tuple[DuckDB, Reference]:
    """Each x (one of them NULL) and each truth beside this list, of every person and in public."""
    people = [
        {**dict.fromkeys(KINDS["people"]), "person_id": number, "city": city, "active": active}
        for number, (city, active) in enumerate(product(["a", "b", None], [True, False, None]))
    ]
    visits = [
        {**dict.fromkeys(KINDS["visits"]), "person_id": row["person_id"], "ward": ward} for row in people for ward in listed
    ]
    tables = {**NOTHING, "people": people, "visits": visits, "towns": [{"town": ward, "region": "r"} for ward in listed]}
    return in_duckdb(tables), Reference(tables, KINDS)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("word", ["IN", "NOT IN"])
@pytest.mark.parametrize("own", [True, False], ids=["of the person", "public"])
def test_every_list_and_every_value(own: bool, word: str, place: str) -> None:
    """Tests each x (NULL too) with each list: empty, with x, without x, with NULL, with repeated values."""
    inner = "SELECT ward FROM visits v WHERE v.person_id = p.person_id" if own else "SELECT town FROM towns"
    question = f"SELECT COUNT(*) FROM people p WHERE {place.format(f'(city {word} ({inner}))')}"
    work = work_of(question)
    for listed in LISTS:
        engine, reference = engines(tuple(listed))
        for each in (engine, reference):
            assert counted(each, work) == raw(engine, question), (listed, each.name)


# --- careless makers --------------------------------------------------------------------------------------------

NULL_IS_NO = "SELECT COUNT(*) FROM people WHERE (region IN (SELECT region FROM towns)) IS NULL"
OWN = "FROM visits v WHERE v.person_id = p.person_id"
TWICE = f"SELECT COUNT(*) FROM people p WHERE active OR EXISTS (SELECT 1 {OWN})"
NOBODY = f"SELECT COUNT(*) FROM people p WHERE active OR p.region NOT IN (SELECT v.region {OWN})"
SEVERAL = f"SELECT COUNT(*) FROM people p WHERE (SELECT COUNT(*) {OWN} AND v.region = p.region) < 1"


def two_valued(node: Relation) -> Relation:
    """Wrong version: reads NULL as false."""

    def known(part: Expression) -> Expression:
        if isinstance(part, Literal) and part.value is None:
            return Literal(False)
        return replace(part, arguments=tuple(map(known, part.arguments))) if isinstance(part, Call) else part

    if isinstance(node, Compute):
        return Compute(node.source, tuple(Named(each.name, known(each.expression)) for each in node.columns))
    return node


def ungrouped(node: Relation) -> Relation:
    """Wrong version: joins to all rows instead of groups."""
    if isinstance(node, PerUnit):
        return Compute(node.source, (*node.keys, *(Named(each.name, Literal(1)) for each in node.aggregates)))
    return node


def inner(node: Relation) -> Relation:
    """Wrong version: drops rows without a partner."""
    return replace(node, kind="inner") if isinstance(node, Join) else node


def first_pair_only(node: Relation) -> Relation:
    """Wrong version: equates only the first pair."""
    return replace(node, equal=node.equal[:1]) if isinstance(node, Join) else node


@pytest.mark.parametrize(
    ("question", "change"),
    [
        (NULL_IS_NO, two_valued),
        (TWICE, ungrouped),
        (TWICE, inner),
        (NOBODY, inner),
        (NOBODY, two_valued),
        (SEVERAL, first_pair_only),
        (SEVERAL, inner),
    ],
)
def test_that_a_careless_maker_is_caught(question: str, change: Callable[[Relation], Relation]) -> None:
    def careless(work: Work) -> Work:
        return unbounded(replace(work, source=changed(work.source, change)))

    assert mistaken(question, unbounded) == []
    assert {name for _, name in mistaken(question, careless)} == {"duckdb", "reference"}


def unbounded(work: Work) -> Work:
    """Counts every row: bounding would hide a row that became two."""
    return replace(work, measures=tuple(replace(each, max_rows=10**6) for each in work.measures if isinstance(each, Sums)))


# --- no row becomes two -----------------------------------------------------------------------------------------

BIG = 2**60  # as doubles, this and the next whole number are one


def uncast(node: Relation) -> Relation:
    if isinstance(node, Compute):
        kept = [each.expression for each in node.columns]
        bare = [part.arguments[0] if isinstance(part, Call) and part.name == "to_real" else part for part in kept]
        return Compute(node.source, tuple(Named(each.name, part) for each, part in zip(node.columns, bare, strict=True)))
    return node


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COUNT(*) FROM people WHERE active OR income IN (SELECT area FROM regions)",
        "SELECT COUNT(*) FROM people p WHERE active OR EXISTS (SELECT 1 FROM regions r WHERE r.area = p.income)",
        f"SELECT COUNT(*) FROM people p WHERE active OR EXISTS (SELECT 1 {OWN} AND v.cost = p.income)",
        f"SELECT COUNT(*) FROM people p WHERE active OR income NOT IN (SELECT v.cost {OWN})",
    ],
)
def test_whole_numbers_that_are_one_double_are_one_partner(question: str) -> None:
    person = {**dict.fromkeys(KINDS["people"]), "person_id": 1, "income": float(BIG), "active": True}
    regions = [{"name": f"r{n}", "area": BIG + n, "coast": True} for n in range(3)]
    visits = [{**dict.fromkeys(KINDS["visits"]), "person_id": 1, "visit_id": n, "cost": BIG + n} for n in range(3)]
    tables = {**NOTHING, "people": [person], "regions": regions, "visits": visits}
    work = unbounded(work_of(question))
    wrong = replace(work, source=changed(work.source, uncast))
    for engine in (in_duckdb(tables), Reference(tables, KINDS)):
        assert counted(engine, work) == 1
        assert counted(engine, wrong) == 3


def test_rows_keep_their_number_where_everything_is_equal() -> None:
    """A mark or value adds one column and no row, with one pair or several, with the unit or without."""
    tables: dict[str, list[dict[str, Any]]] = two_people()
    visit = dict.fromkeys([*CATALOG.tables["visits"].columns, "person_id"])
    tables["visits"] = [{**visit, "person_id": 1, "region": "north"}] * 5
    tables["towns"] = [{"town": "north", "region": "north"}] * 5
    marks = (
        f"EXISTS (SELECT 1 {OWN})",
        f"p.region IN (SELECT v.region {OWN})",
        "p.region IN (SELECT region FROM towns)",
        f"(SELECT COUNT(*) {OWN} AND v.region = p.region) > 3",
    )
    for mark in marks:
        work = work_of(f"SELECT COUNT(*) FROM people p WHERE {mark} OR p.region = 'north'")
        assert len(rows_of(work.source, bags(tables)).rows) == 2


# --- law 1, and by hand -----------------------------------------------------------------------------------------


def strangers(node: Relation) -> Relation:
    """Wrong version: neither equates nor groups by the unit."""
    if isinstance(node, Join):
        lost = {name for left, right in node.equal if UNIT in columns(left) for name in columns(right)}
        grouped = node.right
        if isinstance(grouped, PerUnit):
            grouped = replace(
                grouped, keys=tuple(key for key in grouped.keys if key.name not in lost) or (Named("k", Literal(1)),)
            )
        equal = tuple(pair for pair in node.equal if UNIT not in columns(pair[0])) or ((Literal(1), Literal(1)),)
        return replace(node, right=grouped, equal=equal)
    return node


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COUNT(*) FROM people WHERE active OR person_id IN (SELECT person_id FROM visits)",
        f"SELECT COUNT(*) FROM people p WHERE active OR p.region IN (SELECT v.region {OWN})",
        f"SELECT COUNT(*) FROM people p WHERE active OR EXISTS (SELECT 1 {OWN} AND v.region = p.region)",
    ],
)
def test_that_looking_at_strangers_is_caught(question: str) -> None:
    tables = two_people()
    visit = dict.fromkeys([*CATALOG.tables["visits"].columns, "person_id"])
    tables["visits"] = [{**visit, "person_id": 1, "region": "north"}]
    source = work_of(question).source
    assert is_unit_local(source, tables)
    assert not is_unit_local(changed(source, strangers), tables)


def asked(source: Relation) -> Query:
    return Query(source, (), (Aggregate("n", "count"),), (Named("n", Column("n")),))


P, T = Scan("people", "p"), Scan("towns", "t")
PAIR = (Column("p.region"), Column("t.region"))


def test_a_mark_by_hand_is_the_mark_of_sql() -> None:
    by_hand = asked(Filter(Semi(P, T, (PAIR,), False, mark="m"), Column("m")))
    tables = two_people()
    tables["people"][0]["region"] = "south"
    tables["towns"] = [{"town": "a", "region": "north"}] * 2
    found = resolve(by_hand, CATALOG)
    text = "SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM towns t WHERE t.region = p.region) IS TRUE"
    for source in (found.query.source, work_of(text).source):
        assert [row[UNIT] for row in rows_of(source, bags(tables)).rows] == [2]


@pytest.mark.parametrize("name", [UNIT, "#unit1", "##x", "p.region"])
def test_a_mark_takes_no_other_name(name: str) -> None:
    with pytest.raises(QueryError, match=r"named|# cannot begin a name"):
        resolve(asked(Semi(P, T, (PAIR,), False, mark=name)), CATALOG)


def test_a_mark_is_not_negated() -> None:
    with pytest.raises(QueryError, match="cannot be negated"):
        resolve(asked(Semi(P, T, (PAIR,), True, mark="m")), CATALOG)


# --- through the whole path -------------------------------------------------------------------------------------

ANSWERS = [
    "SELECT SUM(CASE WHEN p.person_id IN (SELECT person_id FROM visits) THEN age ELSE 0 END) AS s FROM people p",
    f"SELECT COUNT(*) FILTER (WHERE NOT EXISTS (SELECT 1 {OWN} AND v.cost > 300)) AS s FROM people p",
    # One person moves it by 1,000.
    CAPPED := "SELECT SUM(LEAST((SELECT COUNT(*) FROM visits w WHERE w.person_id = v.person_id AND w.ward = v.ward), 50)) AS s"
    " FROM visits v",
    # One person moves it by 400,000.
    WIDE := "SELECT SUM(LEAST(COALESCE((SELECT SUM(w.cost) FROM visits w WHERE w.person_id = v.person_id AND w.ward = v.ward"
    " AND (w.cost > 100 OR w.region IN (SELECT name FROM regions))), 0), 20000)) AS s FROM visits v",
    "SELECT COUNT(*) AS s FROM people p JOIN visits v ON v.person_id = p.person_id"
    " AND v.cost >= (SELECT AVG(w.cost) FROM visits w WHERE w.person_id = p.person_id)",
]


@pytest.mark.parametrize("question", ANSWERS)
def test_answers_with_hardly_any_noise_are_those_of_plain_duckdb(question: str) -> None:
    expected, answer = both(question, epsilon={WIDE: 10**6, CAPPED: 20_000}.get(question, 1000))
    ((number,),) = expected
    assert number
    assert abs(answer["s"][0] - number) < 0.01 * abs(number) + 0.05


def test_the_groups_of_a_mark_are_those_of_plain_duckdb() -> None:
    """A row whose mark is NULL is in no group, as with any key of known values."""
    for mark in (f"EXISTS (SELECT 1 {OWN})", "p.region IN (SELECT region FROM towns)"):
        expected, answer = both(f"SELECT {mark} AS k, COUNT(*) AS n FROM people p GROUP BY {mark}")
        known = {key: n for key, n in expected if key is not None}
        assert {key: n for key, n in zip(answer["k"], answer["n"], strict=True) if n} == known
        assert known


def both(question: str, epsilon: int = 1000) -> tuple[list[tuple[Any, ...]], dt.Answer]:
    tables = survey(people=60)
    for name in ("people", "visits"):
        tables[name] = [row for row in tables[name] if row["person_id"] is not None]
    curator = dt.open(filled(tables), ledger=":memory:")
    connection: duckdb.DuckDBPyConnection = curator.engine._connection  # type: ignore[attr-defined]
    return connection.execute(question).fetchall(), curator.ask(question, epsilon=epsilon)
