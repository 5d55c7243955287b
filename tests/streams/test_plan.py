"""The plan of a stream: its identity for ever, its steps, what one unit can change."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dither as dt
from dither.streams.plan import _common
from streams.visits import day, planned

GOLDEN = Path(__file__).with_name("identities.txt")
ROW = {"table": {"unit": "row", "max_rows": None, "max_groups": None}}
STREAMS: dict[str, dict[str, Any]] = {
    "SELECT COUNT(*) FROM visits": {},
    "SELECT SUM(amount) FROM visits WHERE amount > 2": {"by": "DATE_TRUNC('week', day)", "max_groups": 1},
    "SELECT COUNT(amount) FILTER (WHERE amount < 5) FROM visits": {"start": "2026-02-01", "max_rows": 4},
    "SELECT SUM(amount) FROM visits": {"declared": ROW, "epsilon": "1/3"},
    "SELECT COUNT(*) FROM visits AS v": {
        "epsilon": None,
        "rho": "1/8",
        "declared": {"budget": dt.Budget(epsilon=2, delta="1e-6")},
    },
}


def test_identities_never_change() -> None:
    """Ledgers look streams up by them: a changed text would charge for a stream again."""
    lines = [f"{question}\n{planned(question, **terms).identity}" for question, terms in STREAMS.items()]
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert "\n".join(lines) + "\n" == GOLDEN.read_text(encoding="utf-8")


def test_what_is_written_otherwise_is_the_same_and_what_differs_is_not() -> None:
    first = planned()
    assert planned("select count(*) as n from VISITS v", max_groups=3).identity == first.identity
    assert planned("SELECT day, COUNT(*) FROM visits GROUP BY day").identity == first.identity
    others: list[dict[str, Any]] = [{"horizon": 11}, {"epsilon": 2}, {"start": day(1)}, {"max_groups": 2}, {"max_rows": 1}]
    assert len({first.identity, *(planned(**terms).identity for terms in others)}) == 6
    assert "snapshot" not in json.loads(first.identity)


def test_one_unit_is_priced_for_its_steps_and_rows() -> None:
    plan = planned("SELECT SUM(amount) FROM visits", max_groups=3, max_rows=2)
    assert (plan.terms.contributions, plan.terms.largest * plan.worth) == (3, 20)  # amounts are from -5 to 10
    few = planned("SELECT SUM(amount) FROM visits", max_groups=30, max_rows=2)
    assert few.terms.contributions == 10  # there are no more steps
    by_row = planned("SELECT SUM(amount) FROM visits", declared=ROW)
    assert (by_row.terms.contributions, by_row.terms.largest * by_row.worth, by_row.worth) == (1, 10, 1)


@pytest.mark.parametrize(("question", "each"), [("SELECT SUM(amount) FROM visits", 40), ("SELECT COUNT(*) FROM visits", 2)])
def test_a_replaced_person_is_priced_for_both(question: str, each: int) -> None:
    """Both can be in one step with amounts of opposite signs; counts are never negative, so one of them moves a step."""
    plan = planned(question, declared={"neighbours": "replace"}, max_groups=3, max_rows=2)
    assert (plan.terms.contributions, plan.terms.largest * plan.worth) == (6, each)


def test_values_are_whole_multiples_of_what_one_is_worth() -> None:
    for low, step in ((Fraction(1, 3), Fraction(1, 2)), (Fraction(-7), Fraction(3)), (Fraction(0), Fraction(1, 10))):
        worth = _common(low, step)
        assert (low / worth).denominator == (step / worth).denominator == 1


def test_a_stream_shows_its_plan_in_words() -> None:
    plan = planned("SELECT SUM(amount) FROM visits WHERE amount > 0")
    assert plan.words == "SUM(visits.amount)"
    assert plan.mechanisms[0]["running"]["horizon"] == 10
    assert plan.unit_words == "one value of person"
