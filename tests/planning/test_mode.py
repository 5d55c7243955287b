"""MODE: which values it chooses among, how its scores move, and what it costs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dither as dt
from dither.mechanisms import Exponential
from dither.planning.plan import Plan
from dither.planning.releases.mode import Mode
from dither.query.work import SCALE
from planning.hand import ask, planned, query, run

ASKED = query(ask("m", "mode", "region"))


def row(person: int, region: str | None, age: int = 30) -> dict[str, Any]:
    return {"person": person, "age": age, "wage": 1.0, "region": region, "town": "a"}


OTHERS = [row(1, "east"), row(2, "north"), row(3, "north"), row(4, "elsewhere"), row(5, None)]


def scores(plan: Plan, rows: list[dict[str, Any]]) -> np.ndarray:
    (group,), release = run(plan, rows), plan.noises[0].of
    assert isinstance(release, Mode)
    return release.scores(group.measures[0])


def moved(plan: Plan, mine: list[dict[str, Any]], instead: list[dict[str, Any]] | None = None) -> np.ndarray:
    return scores(plan, OTHERS + mine) - scores(plan, OTHERS + (instead or []))


def test_only_public_values_are_counted() -> None:
    assert (scores(planned(ASKED), OTHERS) / SCALE).tolist() == [1, 2, 0]


def test_all_scores_move_the_same_way() -> None:
    for regions in (["east"] * 9, ["east", "north", "south"], ["south", None, "elsewhere"], ["north"] * 2 + ["south"] * 5):
        plan = planned(ASKED, max_rows=3)
        change = moved(plan, [row(9, region) for region in regions])
        assert change.min() >= 0
        assert change.sum() <= 3 * SCALE


def test_that_check_can_fail() -> None:
    """A replaced person moves scores both ways."""
    change = moved(planned(ASKED), [row(9, "east")], [row(8, "south")])
    assert change.min() < 0 < change.max()


def worst_ratio(plan: Plan, one: list[dict[str, Any]], other: list[dict[str, Any]]) -> float:
    """The largest log ratio of the probabilities of a value, on two tables."""
    mechanism = plan.noises[0].mechanism
    assert isinstance(mechanism, Exponential)
    rate = float(1 / mechanism.scale)
    laws = []
    for rows in (one, other):
        weights = np.exp(rate * (scores(plan, OTHERS + rows) - scores(plan, OTHERS + rows).max()))
        laws.append(weights / weights.sum())
    return float(np.abs(np.log(laws[0] / laws[1])).max())


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_the_charge_is_the_price(neighbours: str) -> None:
    plan = planned(query(ask("m", "mode", "region"), keys=("age",)), 1, neighbours=neighbours, max_rows=2, max_groups=3)
    assert plan.loss.epsilon() == 1


def test_a_replaced_person_costs_two_moves() -> None:
    plan = planned(ASKED, 1, neighbours="replace", max_rows=2)
    far = [row(9, "east")] * 2, [row(8, "south")] * 2
    assert 0.2 < worst_ratio(plan, *far) <= 1
    noise = plan.noises[0]
    assert noise.steps == 2
    assert noise.mechanism.loss().epsilon() == Fraction(1, 2)


def test_an_added_person_stays_within_the_price() -> None:
    plan = planned(ASKED, 1, max_rows=2)
    assert 0.2 < worst_ratio(plan, [row(9, "east")] * 2, []) <= 1


def test_the_chosen_value_is_seldom_far_behind() -> None:
    plan = planned(ASKED, 1)
    behind = plan.readings[0].behind(plan.noises, Fraction(19, 20))  # type: ignore[attr-defined]
    chosen = plan.noises[0].release([{0: 20 * SCALE, 1: 2 * SCALE, 2: 0}] * 400)[:, 0]
    assert behind < 10
    assert (chosen == 0).mean() > 0.95


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("dt.column()", "MODE chooses among public values, and those of x are not"),
        ("dt.between(0, 9, step=0.5)", "x is a number with a fraction"),
    ],
)
def test_values_that_are_not_public_are_refused(column: str, said: str) -> None:
    table = dt.Table({"person": [1, 2], "x": ["a", "b"] if "column" in column else [0.5, 1.5]}, unit="person")
    table = dt.Table(table.source, unit="person", max_rows=1, columns={"x": eval(column, {"dt": dt})})
    with (
        dt.open(dt.Catalog({"t": table}, dt.Budget(1)), ledger=":memory:") as survey,
        pytest.raises(dt.QueryError, match=said),
    ):
        survey.quote("SELECT MODE(x) FROM t", epsilon=1)
