"""Rows outside the declared bounds: values are clipped to what the answer says, and conditions see them as they are.

The catalog declares ages between 10 and 20; half of the people are 30.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest

import dither as dt
from dither.curator import Curator
from dither.planning import sensitivity
from dither.planning.releases.base import Clipped

MANY = 50


@pytest.fixture
def survey() -> Iterator[Curator]:
    rows = {"person": list(range(2 * MANY)), "age": [10] * MANY + [30] * MANY, "most": [25] * (2 * MANY)}
    columns = {"age": dt.between(10, 20), "most": dt.between(20, 30)}
    table = dt.Table(rows, unit="person", max_rows=1, columns=columns)
    with dt.open(dt.Catalog({"t": table}, dt.Budget(10**6)), ledger=":memory:") as curator:
        yield curator


EXPRESSIONS = [
    "age",
    "age * 0",
    "CLAMP(age, 20, 30)",
    "100 - age",
    "ABS(age - 15)",
    "CASE WHEN age > 20 THEN 100 ELSE 0 END",
    "CASE WHEN age > 20 THEN age ELSE 0 END",
    "CASE WHEN age < 20 THEN age ELSE 0 END",
]


# What plain SQL says of these rows, with each age clipped where its value counts.
SUMS = {
    "CASE WHEN age > 20 THEN 100 ELSE 0 END": 100,
    "CASE WHEN age > 20 THEN age ELSE 0 END": 20,
    "CASE WHEN age < 20 THEN age ELSE 0 END": 10,
    "CASE WHEN age > most THEN 7 ELSE 0 END": 7,
    "CASE WHEN age / 2 > 12 THEN 7 ELSE 0 END": 7,
    "CASE WHEN NOT age <= 25 AND most = 25 THEN age ELSE 0 END": 20,
}
CONDITIONS = ["age > 20", "age > most", "age / 2 > 12", "age IN (30, 40)", "NOT age BETWEEN 10 AND 20", "age - most > 0"]


@pytest.mark.parametrize("expression", SUMS)
def test_values_are_clipped_and_conditions_see_them_as_they_are(survey: Curator, expression: str) -> None:
    assert survey.ask(f"SELECT SUM({expression}) AS s FROM t", epsilon=4000)["s"] == [SUMS[expression] * MANY]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_no_condition_is_decided_by_bounds(survey: Curator, condition: str) -> None:
    """Half of the people meet it: in WHERE, in FILTER, in CASE and as a key."""

    def asked(listed: str, rest: str = "") -> tuple[tuple[object, ...], ...]:
        return survey.ask(f"SELECT {listed} FROM t {rest}", epsilon=200).rows

    assert asked("COUNT(*) AS n", f"WHERE {condition}") == ((MANY,),)
    assert asked(f"COUNT(*) FILTER (WHERE {condition}) AS n") == ((MANY,),)
    assert asked(f"{condition} AS k, COUNT(*) AS n", "GROUP BY k") == ((False, MANY), (True, MANY))
    named = f"CASE WHEN {condition} THEN 'yes' ELSE 'no' END AS k, COUNT(*) AS n"
    assert asked(named, "GROUP BY k") == (("no", MANY), ("yes", MANY))


def test_bounds_still_narrow_what_is_added(survey: Curator) -> None:
    """Rows outside cannot be below 18 and count for more than 17, so noise is for 17."""
    plan = survey.quote("SELECT SUM(CASE WHEN age < 18 THEN age ELSE 0 END) AS s FROM t", epsilon=1).plan
    assert [(note.low, note.high) for note in plan.notes if isinstance(note, Clipped)] == [(0, 17)]


def outside(curator: Curator, expression: str) -> bool:
    """Whether a sum over everybody is more or less than the stated bounds allow."""
    answer = curator.ask(f"SELECT SUM({expression}) AS s FROM t", epsilon=500)
    (note,) = [note for note in answer.plan.notes if isinstance(note, Clipped)]
    total = Fraction(answer["s"][0])
    return not 2 * MANY * note.low - 1 <= total <= 2 * MANY * note.high + 1


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_no_value_counts_for_more_than_the_stated_bounds(survey: Curator, expression: str) -> None:
    assert not outside(survey, expression)


def test_that_a_grid_beyond_one_point_is_caught(survey: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong version: bounds of one point have a grid of one step, and nothing clips values to the point."""
    monkeypatch.setattr(sensitivity, "_within", lambda argument, low, high: argument)
    assert outside(survey, "CLAMP(age, 20, 30)")
