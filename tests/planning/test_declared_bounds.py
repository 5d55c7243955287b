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
    ages = [10] * MANY + [30] * MANY
    table = dt.Table(
        {"person": list(range(2 * MANY)), "age": ages}, unit="person", max_rows=1, columns={"age": dt.between(10, 20)}
    )
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
