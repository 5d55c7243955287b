"""A short question is refused if its computed columns, expanded for the engine, would become very long."""

from __future__ import annotations

import pytest

from dither.errors import QueryError
from dither.query.resolve.relations import resolve
from dither.query.sql.select import parse
from sql.survey import CATALOG


def nested(levels: int, times: int, inner: str = "SELECT person_id, city AS n FROM people") -> str:
    for level in range(levels):
        inner = f"SELECT person_id, {' || '.join(['n'] * times)} AS n FROM ({inner}) t{level}"
    return f"({inner}) t"


def refused(question: str) -> bool:
    found = ""
    try:
        resolve(parse(question, CATALOG), CATALOG, question)
    except QueryError as error:
        found = error.what
    assert found == "" or "more than 20000 parts" in found
    return found != ""


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COUNT(*) FROM {} WHERE n = 'a'",
        "SELECT COUNT(n) FROM {}",
        "SELECT LENGTH(n) AS k, COUNT(*) FROM {} GROUP BY LENGTH(n)",
        "SELECT SUM(CLAMP(c, 0, 9)) FROM (SELECT person_id, COUNT(DISTINCT n) AS c FROM {} GROUP BY person_id) x",
        "SELECT COUNT(*) FROM people p JOIN {} ON p.person_id = t.person_id AND p.city = t.n",
    ],
)
def test_what_repeats_itself_without_end_is_refused(question: str) -> None:
    assert refused(question.format(nested(3, 64)))
    assert not refused(question.format(nested(2, 64)))


def test_many_large_columns_are_refused_together() -> None:
    large = nested(2, 40)
    asked = ", ".join(f"COUNT(n || '{i}') AS c{i}" for i in range(9))
    assert refused(f"SELECT {asked} FROM {large}")


def test_handing_columns_on_costs_nothing() -> None:
    assert not refused(f"SELECT COUNT(n) FROM {nested(12, 1)}")


def test_an_aggregate_per_person_begins_anew() -> None:
    inner = "SELECT person_id, MAX(n) AS n FROM {} GROUP BY person_id"
    assert not refused(f"SELECT COUNT(n) FROM {nested(2, 40, inner.format(nested(2, 40)))}")
