"""Scalar subqueries, IN, NOT IN and EXISTS have SQL's meaning in both engines.

Plain DuckDB runs the question as written, on the same rows. These rows have no rows without a unit, which dither drops
(tested separately), and no costs and doses outside their declared bounds, which a sum would clip.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from typing import Any

import duckdb
import pytest

import dither as dt
from attacks.neighbours import filled, survey
from dither.engines.duckdb.engine import DuckDB
from dither.engines.reference import Reference
from dither.query.nodes import Column, Join, Relation, Semi
from dither.query.sql.select import parse
from dither.query.work import UNIT, Work
from sql.survey import CATALOG
from sql.test_engines_agree import KINDS, in_duckdb, made_up, work_of
from sql.test_golden import cases

Tables = dict[str, list[dict[str, Any]]]
QUESTIONS = [
    "SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(area) FROM regions)",
    "SELECT COUNT(*) FROM people WHERE age > (SELECT COUNT(*) FROM regions) + 1",
    "SELECT COUNT(*) FROM people WHERE (SELECT MAX(area) FROM regions) IS NULL",
    "SELECT COUNT(*) FROM records WHERE x < (SELECT COUNT(area) FROM regions WHERE coast) * 2",
    "SELECT COUNT(*) FROM records WHERE x > (SELECT COUNT(DISTINCT area) FROM regions)",
    "SELECT COUNT(*) FROM people WHERE age BETWEEN (SELECT MIN(area) FROM regions) AND (SELECT MAX(area) FROM regions)",
    "SELECT COUNT(*) FROM people WHERE age NOT IN (SELECT area FROM regions)",
    "SELECT COUNT(*) FROM people p WHERE age NOT IN (SELECT area FROM regions r WHERE r.name = p.region)",
]
EVERY = [
    question
    for _, question, _ in cases("sql_to_nodes.txt")
    if question.startswith("SELECT COUNT(*) FROM") and question.upper().count("SELECT") > 1 and "GROUP BY 1" not in question
    if not parse(question, CATALOG).above  # those are checked in sql/everyday
]


@pytest.mark.parametrize("size", [3, 0], ids=["some regions", "no region"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_it_means_what_it_means_in_sql(question: str, size: int) -> None:
    tables = made_up(7)
    tables["regions"] = [{**row, "area": area} for row, area in zip(tables["regions"], (40, None, 3), strict=True)][:size]
    engine, work = in_duckdb(tables), work_of(question)
    expected = raw(engine, question)
    for each in (engine, Reference(tables, KINDS)):
        assert counted(each, work) == expected


def raw(engine: DuckDB, question: str) -> int:
    connection: duckdb.DuckDBPyConnection = engine._connection
    found: list[tuple[int]] = connection.execute(question).fetchall()
    return found[0][0]


def counted(engine: Any, work: Work) -> int:
    groups = engine.run(work, b"secret")
    return int(groups[0].measures[0][0]) if groups else 0


# --- every such question of the golden file ---------------------------------------------------------------------


def owned(seed: int) -> Tables:
    """Generates rows with a unit; some people have no visit; lists with and without NULL are frequent."""
    tables = made_up(seed)
    visits = [row for row in tables["visits"] if row["person_id"] is not None]
    for row in visits:
        row["cost"] = None if row["cost"] is None else abs(row["cost"]) % 110
        row["ward"] = "b" if row["ward"] is None and seed % 2 else row["ward"]
    known = {row["visit_id"] for row in visits}
    doses = [row for row in tables["prescriptions"] if row["visit_id"] in known]
    for row in doses:
        row["dose"] = None if row["dose"] is None else abs(row["dose"]) % 100
    towns = [row for row in tables["towns"] if seed % 3 or row["region"] is not None]
    return {**tables, "visits": visits, "prescriptions": doses, "towns": towns[: 5 * (seed % 4)]}


@cache
def engines(seed: int) -> tuple[DuckDB, Reference]:
    tables = owned(seed)
    return in_duckdb(tables), Reference(tables, KINDS)


def mistaken(question: str, change: Callable[[Work], Work] = lambda work: work) -> list[tuple[int, str]]:
    """Returns the tables and engines for which the answer differs from plain DuckDB's."""
    work, wrong = change(work_of(question)), []
    for seed in range(8):
        for engine in engines(seed):
            if counted(engine, work) != raw(engines(seed)[0], question):
                wrong.append((seed, engine.name))
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("question", EVERY)
def test_every_such_golden_question_means_what_it_means_in_sql(question: str) -> None:
    assert mistaken(question) == []


def test_that_there_are_enough_of_them() -> None:
    assert len(EVERY) > 20
    assert sum("NOT IN" in question for question in EVERY) > 6


def changed(node: Relation, change: Callable[[Relation], Relation]) -> Relation:
    """Replaces every node of a relation, from the bottom up."""
    inner = {
        each.name: changed(getattr(node, each.name), change)
        for each in fields(node)
        if each.name in ("source", "other", "left", "right")
    }
    return change(replace(node, **inner))  # type: ignore[arg-type]


def without_null(work: Work) -> Work:
    """Wrong version: reads NOT IN as NOT EXISTS, which ignores NULL."""

    def change(node: Relation) -> Relation:
        if isinstance(node, Semi) and node.listed is not None:
            return replace(node, equal=(node.listed, *node.equal), listed=None)
        return node

    return replace(work, source=changed(work.source, change))


def without_nobody(work: Work) -> Work:
    """Wrong version: drops rows for which the subquery has no row."""
    return replace(
        work,
        source=changed(work.source, lambda node: replace(node, kind="inner") if isinstance(node, Join) else node),
    )


@pytest.mark.parametrize(
    ("question", "change"),
    [
        ("SELECT COUNT(*) FROM people WHERE region NOT IN (SELECT region FROM towns)", without_null),
        (
            "SELECT COUNT(*) FROM people p WHERE p.region NOT IN "
            "(SELECT v.region FROM visits v WHERE v.person_id = p.person_id)",
            without_null,
        ),
        (
            "SELECT COUNT(*) FROM people p WHERE (SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id) < 1",
            without_nobody,
        ),
        (
            "SELECT COUNT(*) FROM people p WHERE (SELECT MAX(cost) FROM visits v WHERE v.person_id = p.person_id) IS NULL",
            without_nobody,
        ),
    ],
)
def test_that_a_careless_meaning_is_caught(question: str, change: Callable[[Work], Work]) -> None:
    assert mistaken(question) == []
    found = mistaken(question, change)
    assert {name for _, name in found} == {"duckdb", "reference"}


def test_rows_of_nobody_are_in_no_list() -> None:
    """In SQL one visit without a person would empty the result; here such a visit is left out."""
    question = "SELECT COUNT(*) FROM people WHERE person_id NOT IN (SELECT person_id FROM visits)"
    tables = owned(3)
    expected = raw(in_duckdb(tables), question)
    assert expected > 0
    tables["visits"].append(dict.fromkeys(KINDS["visits"]))
    assert raw(in_duckdb(tables), question) == 0
    assert [counted(each, work_of(question)) for each in (in_duckdb(tables), Reference(tables, KINDS))] == [expected] * 2


# --- sums and means, through the whole path ---------------------------------------------------------------------

ANSWERS = [
    "SELECT SUM(LEAST((SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id), 50)) AS s FROM people p",
    "SELECT AVG(LEAST((SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id AND v.cost > 300), 50)) AS s"
    " FROM people p",
    "SELECT SUM(LEAST(COALESCE((SELECT SUM(v.cost) FROM visits v WHERE v.person_id = p.person_id), 0), 50000)) AS s"
    " FROM people p WHERE active",
    "SELECT AVG((SELECT MAX(v.cost) FROM visits v WHERE v.person_id = p.person_id)) AS s FROM people p",
    "SELECT COUNT((SELECT MIN(v.cost) FROM visits v WHERE v.person_id = p.person_id AND v.ward = 'a')) AS s FROM people p",
    "SELECT SUM(LEAST(COALESCE((SELECT SUM(d.dose) FROM prescriptions d JOIN visits v ON d.visit_id = v.visit_id"
    " WHERE v.person_id = p.person_id), 0), 5000) + age) AS s FROM people p",
    "SELECT SUM(ABS(cost - (SELECT AVG(w.cost) FROM visits w WHERE w.person_id = v.person_id))) AS s FROM visits v",
    "SELECT SUM(CASE WHEN (SELECT COUNT(DISTINCT ward) FROM visits v WHERE v.person_id = p.person_id) = 2 THEN 1 ELSE 0 END)"
    " AS s FROM people p",
]


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("question", ANSWERS)
def test_answers_with_hardly_any_noise_are_those_of_plain_duckdb(question: str) -> None:
    tables = survey(people=60)
    for name in ("people", "visits"):
        tables[name] = [row for row in tables[name] if row["person_id"] is not None]
    curator = dt.open(filled(tables), ledger=":memory:")
    answer = curator.ask(question, epsilon=1000)
    connection: duckdb.DuckDBPyConnection = curator.engine._connection  # type: ignore[attr-defined]
    ((expected,),) = connection.execute(question).fetchall()
    assert expected
    assert abs(answer["s"][0] - expected) < 0.01 * abs(expected) + 0.05


def test_the_groups_of_a_count_are_those_of_plain_duckdb() -> None:
    question = (
        "SELECT LEAST((SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id), 50) AS visits, COUNT(*) AS n "
        "FROM people p GROUP BY LEAST((SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id), 50)"
    )
    tables = survey(people=60)
    tables["people"] = [row for row in tables["people"] if row["person_id"] is not None]
    curator = dt.open(filled(tables), ledger=":memory:")
    answer = curator.ask(question, epsilon=1000)
    connection: duckdb.DuckDBPyConnection = curator.engine._connection  # type: ignore[attr-defined]
    expected = dict(connection.execute(question).fetchall())
    assert {key: n for key, n in zip(answer["visits"], answer["n"], strict=True) if n} == expected
    assert 0 in expected  # those without a visit


def test_a_subquery_written_twice_is_joined_once() -> None:
    one = "(SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id)"
    work = work_of(f"SELECT COUNT(*) FROM people p WHERE {one} > 3 OR {one} < 1")
    joins: list[Relation] = []
    changed(work.source, lambda node: joins.append(node) or node if isinstance(node, Join) else node)
    assert len(joins) == 1
    assert (Column(UNIT), Column("#unit1")) in joins[0].equal  # type: ignore[union-attr]
