"""Subqueries per person: what one person adds to a subquery moves only that person's rows.

The golden questions are all asked in test_neighbours.py; here are generated tables, and engines that mix people.
"""

from __future__ import annotations

import random
from dataclasses import fields, replace
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

import dither as dt
from attacks.moved import channels, complaints
from attacks.paths import Change, observe, open_observed
from attacks.test_neighbours import GOLDEN
from dither.query.functions.registry import columns
from dither.query.nodes import Join, Relation, Semi
from dither.query.work import UNIT, Work

OWN = "FROM visits v WHERE v.u = p.u"
QUESTIONS = [
    f"SELECT COUNT(*) AS n FROM people p WHERE (SELECT COUNT(*) {OWN}) > 2",
    f"SELECT COUNT(*) AS n FROM people p WHERE (SELECT COUNT(DISTINCT v.y) {OWN}) = 0",
    f"SELECT SUM(CLAMP((SELECT SUM(v.y) {OWN}), 0, 90)) AS s, COUNT(*) AS n FROM people p",
    f"SELECT AVG((SELECT MAX(v.y) {OWN} AND v.y < 7)) AS s FROM people p WHERE x > (SELECT AVG(z) FROM lists)",
    f"SELECT LEAST((SELECT COUNT(*) {OWN}), 9) AS k, COUNT(*) AS n, AVG(x) AS x FROM people p GROUP BY k",
    f"SELECT COUNT(*) AS n, SUM(x) AS s FROM people p WHERE p.x NOT IN (SELECT v.y {OWN})",
    "SELECT COUNT(*) AS n FROM people p WHERE u NOT IN (SELECT u FROM visits WHERE y > 3)",
    "SELECT COUNT(*) AS n FROM people p WHERE x NOT IN (SELECT z FROM lists)",
    f"SELECT COUNT(*) AS n FROM people p WHERE NOT EXISTS (SELECT 1 {OWN} AND v.y = p.x)",
    "SELECT COUNT(*) AS n, SUM(y) AS s FROM visits v WHERE y > (SELECT AVG(w.y) FROM visits w WHERE w.u = v.u)",
    # IN and EXISTS inside other conditions, as a key, in ON; several columns equated
    f"SELECT COUNT(*) AS n, SUM(x) AS s FROM people p WHERE p.x = 1 OR p.x IN (SELECT v.y {OWN})",
    f"SELECT COUNT(*) AS n FROM people p WHERE NOT (p.x > 0 AND p.x NOT IN (SELECT v.y {OWN}))",
    f"SELECT COUNT(*) AS n FROM people p WHERE ((p.x + 99) IN (SELECT v.y {OWN})) IS NULL",
    f"SELECT COUNT(*) AS n, AVG(x) AS x FROM people p WHERE p.x < 3 OR NOT EXISTS (SELECT 1 {OWN} AND v.y > 3)",
    f"SELECT SUM(CASE WHEN EXISTS (SELECT 1 {OWN} AND v.y = p.x) THEN p.x ELSE 10 END) AS s FROM people p",
    "SELECT COUNT(*) AS n FROM people p WHERE x > 5 OR u IN (SELECT u FROM visits WHERE y > 3)",
    "SELECT COUNT(*) AS n FROM people p WHERE x > 5 OR x NOT IN (SELECT z FROM lists)",
    f"SELECT p.x IN (SELECT v.y {OWN}) AS k, COUNT(*) AS n FROM people p GROUP BY k",
    f"SELECT COUNT(*) AS n, SUM(x) AS s FROM people p WHERE (SELECT COUNT(*) {OWN} AND v.y = p.x) < 1",
    "SELECT SUM(CLAMP((SELECT COUNT(*) FROM visits w WHERE w.u = v.u AND w.y = v.y), 0, 20)) AS s FROM visits v",
    "SELECT COUNT(*) AS n FROM people p JOIN visits v ON v.u = p.u AND (v.y = p.x OR v.y IN (SELECT z FROM lists))",
]
MIXED = [question for question in QUESTIONS if OWN in question and "GROUP BY" not in question]
Rows = list[tuple[int, int | None]]


def one(person: int, dice: random.Random) -> tuple[Rows, Rows]:
    """Returns the rows of one person in both tables: none, few or very many, with NULLs and values beyond the bounds."""
    numbers = [None, -5, 0, 1, 2, 3, 5, 9, 10, 2**40]
    mine = [(person, dice.choice(numbers)) for _ in range(dice.choice([0, 1, 1, 1, 3]))]
    theirs = [(person, dice.choice(numbers)) for _ in range(dice.choice([0, 0, 1, 3, 40]))]
    return mine, theirs


def catalog(people: Rows, visits: Rows, lists: list[int | None]) -> dt.Catalog:
    def table(rows: Rows, name: str) -> Any:
        return pa.table({"u": pa.array([u for u, _ in rows], pa.int64()), name: pa.array([x for _, x in rows], pa.int64())})

    number, unit = dt.between(0, 10), {"column": "u", "references": "everyone.u"}
    everyone = pa.table({"u": pa.array(sorted({u for u, _ in people + visits}), pa.int64())})
    return dt.Catalog(
        {
            "everyone": dt.Table(everyone, unit="u", max_rows=1),
            "people": dt.Table(table(people, "x"), unit=unit, max_rows=2, max_groups=2, columns={"x": number}),
            "visits": dt.Table(table(visits, "y"), unit=unit, max_rows=3, max_groups=2, columns={"y": number}),
            "lists": dt.Table(pa.table({"z": pa.array(lists, pa.int64())}), public=True, columns={"z": number}),
        },
        dt.Budget(10**6),
    )


LOUD: tuple[Rows, Rows] = ([(99, 5)], [(99, None), (99, 10), *[(99, y) for y in range(10)]])  # could decide about others


@cache
def compared(seed: int) -> tuple[dt.Curator, dt.Curator]:
    """Opens a crowd of all kinds without and with one more person, once for all questions."""
    dice = random.Random(seed)
    crowd = [one(person, dice) for person in range(12)]
    lists = [dice.choice([None, 1, 2, 3, 9]) for _ in range(dice.choice([0, 1, 4]))]
    after = [*crowd, LOUD if seed % 2 else one(99, dice)]
    return survey(crowd, lists), survey(dice.sample(after, len(after)), lists)


def survey(tables: list[tuple[Rows, Rows]], lists: list[int | None], change: Change | None = None) -> dt.Curator:
    people, visits = ([row for each in tables for row in each[i]] for i in (0, 1))
    return open_observed(catalog(people, visits, lists), change)


@cache
def quiet(loud: bool, change: Change | None) -> dt.Curator:
    """Opens people with one row each and no visits. `loud` adds one person who could decide about them."""
    tables: list[tuple[Rows, Rows]] = [([(person, 5)], []) for person in range(12)]
    return survey([*tables, LOUD] if loud else tables, [1], change)


@pytest.mark.parametrize("question", QUESTIONS)
def test_one_person_more_moves_what_is_priced(question: str) -> None:
    moved = 0
    for seed in range(8):
        before, after = (observe(each, question) for each in compared(seed))
        assert before.status == "answered"
        assert complaints(before, after) == []
        assert channels(before, after) == []
        moved += before.groups != after.groups
    assert moved


def mixing(work: Work) -> Work:
    """A careless engine: forgets in subqueries which person a row belongs to."""
    return replace(work, source=_mixed(work.source))


def _mixed(node: Relation) -> Relation:
    parts = ("source", "other", "left", "right")
    node = replace(node, **{each.name: _mixed(getattr(node, each.name)) for each in fields(node) if each.name in parts})  # type: ignore[arg-type]
    if isinstance(node, (Join, Semi)):
        return replace(node, equal=tuple(pair for pair in node.equal if UNIT not in columns(pair[0])))
    return node


@pytest.mark.parametrize("question", MIXED)
def test_that_an_engine_which_mixes_people_is_caught(question: str) -> None:
    for change, fits in ((None, True), (mixing, False)):
        before, after = (observe(quiet(loud, change), question) for loud in (False, True))
        assert (complaints(before, after) == []) == fits


def test_that_the_golden_questions_have_such_subqueries() -> None:
    """test_neighbours.py asks each of them about its neighbours."""
    assert sum("(SELECT COUNT(*) FROM visits" in question for question in GOLDEN) > 4
    assert sum("NOT IN (SELECT" in question for question in GOLDEN) > 6
    assert sum(" OR EXISTS (SELECT" in question or " OR NOT EXISTS (SELECT" in question for question in GOLDEN) > 1
    assert sum("CASE WHEN" in question and "IN (SELECT" in question for question in GOLDEN) > 0
