"""Moments of one and of two columns: what a row adds, what is read from the cells, and how often margins hold.

The noise of the coverage tests is drawn by numpy from the law of the plan, with a fixed seed: nothing here can fail by chance.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from dither.planning import margins
from dither.planning.plan import Plan
from dither.planning.releases.moments import Moments, bernstein, weights
from dither.query.nodes import Column
from planning.hand import ask, planned, query, run

TWO = ("covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2")
ONE = ("skewness", "kurtosis", "kurtosis_pop")
SURE = Fraction(19, 20)
DRAWS = 600


def people(ages: Any, wages: Any) -> list[dict[str, Any]]:
    pairs = enumerate(zip(ages, wages, strict=True))
    return [{"person": i, "age": int(a), "wage": float(w), "region": "east", "town": "a"} for i, (a, w) in pairs]


def made(rows: int, seed: int = 1) -> list[dict[str, Any]]:
    """People whose age is skewed, and whose wage grows with it."""
    dice = np.random.default_rng(seed)
    ages = np.clip(dice.gamma(3, 15, rows), 0, 120).astype(int)
    return people(ages, np.clip(ages / 4 + dice.normal(0, 8, rows), -10, 50))


def plan_for(function: str, epsilon: Any = 1, delta: Fraction = Fraction(0), **more: Any) -> Plan:
    second = "wage" if function in TWO else None
    return planned(query(ask("z", function, "age", second=second)), epsilon, delta, **more)


def truth(function: str, rows: list[dict[str, Any]], plan: Plan) -> float:
    """The aggregate in DuckDB, of values on the grid of the plan."""
    frame = pd.DataFrame(rows)
    for grid in plan.noises[0].of.grids:
        name, low, step = grid.expression.name, float(grid.low), float(grid.step)
        frame[name] = low + step * np.floor((frame[name].clip(low, low + step * grid.steps) - low) / step + 0.5)
    with duckdb.connect() as base:
        base.register("people", frame)
        return float(base.execute(f"SELECT {function}(age{', wage' if function in TWO else ''}) FROM people").fetchall()[0][0])


def noisy(plan: Plan, exact: tuple[int, ...], seed: int = 2) -> list[Any]:
    """Many draws of the noise of one group, as many groups."""
    dice, (noise,), size = np.random.default_rng(seed), plan.noises, (DRAWS, len(exact))
    if noise.gaussian:
        drawn = np.rint(dice.normal(0, noise.scale, size))
    else:
        p = 1 - math.exp(-1 / noise.scale)
        drawn = dice.geometric(p, size).astype(float) - dice.geometric(p, size)
    return [(np.array(exact, dtype=object) + drawn.astype(np.int64).astype(object)).astype(np.int64)]


def held(function: str, rows: list[dict[str, Any]], plan: Plan, *parts: float) -> list[float]:
    """How often these parts of the margin hold."""
    (group,) = run(plan, rows)
    cells, reading = noisy(plan, group.measures[0]), plan.readings[0]
    off = np.abs(np.array(reading.values(plan.noises, cells)) - truth(function, rows, plan))
    wide = np.array(reading.margins(plan.noises, cells, SURE), dtype=float)
    return [float((off <= part * wide + 1e-9).mean()) for part in parts]


# --- what a row adds --------------------------------------------------------------------------------------------


def test_weights_of_cells_give_the_powers() -> None:
    for degree in range(1, 5):
        for power in range(degree + 1):
            for u in (0.0, 0.3, 0.5, 1.0):
                assert bernstein(u, degree) @ np.array(weights(degree, power)) == pytest.approx((2 * u - 1) ** power)


def most_added(release: Moments, plan: Plan, rows: list[dict[str, Any]]) -> int:
    return max(sum(run(plan, [row])[0].measures[0]) for row in rows)


@pytest.mark.parametrize("function", TWO + ONE)
def test_a_row_adds_at_most_what_is_claimed_and_never_less_than_zero(function: str) -> None:
    plan = plan_for(function)
    release = plan.noises[0].of
    assert isinstance(release, Moments)
    ends = people([0, 120, 0, 120, 60, 1, 77, 200, -5], [-10, 50, 50, -10, 20, 1e300, -1e300, 0.3, 11.7])
    for row in [*ends, *made(40)]:
        cells = run(plan, [row])[0].measures[0]
        assert min(cells) >= 0
        assert release.scale - release.cells / 2 <= sum(cells) <= release.row


def test_that_check_can_fail() -> None:
    """Without the rounding of cells in the claim, some row adds more."""
    plan = plan_for("corr")
    release = plan.noises[0].of
    assert isinstance(release, Moments)
    assert release.step > 1
    assert max(sum(run(plan, [row])[0].measures[0]) for row in made(200)) > math.floor(release.scale)


def test_one_release_serves_all_that_is_asked_about_a_pair() -> None:
    asked = query(ask("r", "corr", "age", second="wage"), *(ask(f, f, "wage", second="age") for f in TWO))
    plan = planned(asked)
    assert len(plan.noises) == 1
    assert plan.noises[0].of.cells == 9
    assert planned(query(ask("c", "covar_pop", "age", second="wage"))).noises[0].of.cells == 4


# --- what is read -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", TWO + ONE)
def test_without_noise_the_value_is_that_of_duckdb(function: str) -> None:
    rows, plan = made(500), plan_for(function, 1000)
    (group,) = run(plan, rows)
    (value,) = plan.readings[0].values(plan.noises, [np.array([group.measures[0]])])
    assert value == pytest.approx(truth(function, rows, plan), rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**6)], ids=["pure", "delta"])
@pytest.mark.parametrize("rows", [3, 30, 400])
@pytest.mark.parametrize("function", TWO + ONE)
def test_margins_hold_in_groups_of_any_size(function: str, rows: int, delta: Fraction) -> None:
    plan = plan_for(function, 2, delta)
    (whole,) = held(function, made(max(rows, 4) if function == "kurtosis" else rows), plan, 1.0)
    assert whole >= 0.93


@pytest.mark.parametrize("function", TWO + ONE)
def test_in_large_groups_margins_are_hardly_wider_than_needed(function: str) -> None:
    whole, part = held(function, made(3000), plan_for(function, 8), 1.0, 0.45)
    assert whole >= 0.93
    assert part < 0.93  # half of an intercept's margin would not do


def test_a_correlation_is_never_wider_than_from_one_end_to_the_other() -> None:
    plan = plan_for("corr", Fraction(1, 10))
    (group,) = run(plan, made(20))
    low, high = plan.readings[0].bounds(plan.noises, noisy(plan, group.measures[0]), SURE)
    assert low.min() >= -1
    assert high.max() <= 1


@pytest.mark.parametrize("function", TWO + ONE)
def test_an_empty_group_is_marked(function: str) -> None:
    plan = plan_for(function)
    (group,) = run(plan, [])
    assert plan.readings[0].unsure(plan.noises, noisy(plan, group.measures[0]), SURE).mean() > 0.9


# --- sums of many terms -----------------------------------------------------------------------------------------


def test_waves_agree_with_partial_fractions() -> None:
    units = np.array([[0.1, 0.5], [0.2, 0.6], [0.3, 0.7], [0.55, 0.8], [0.8, 0.9], [1.0, 1.0]])
    for t in (0.5, 2.0, 5.0, 9.0):
        far = np.full(2, t)
        assert margins._waves(units, far) == pytest.approx(margins._mixtures(units, far), abs=2e-3)
        assert np.all(margins._waves(units, far) >= margins._mixtures(units, far) - 1e-6)


def test_a_sum_of_nine_reaches_as_far_as_it_is_drawn() -> None:
    scales = np.linspace(0.2, 1, 9)
    drawn = np.abs((np.random.default_rng(3).laplace(size=(200_000, 9)) * scales).sum(axis=1))
    (reach,) = margins.reach(scales[:, None], 0.95, False)
    assert 0.948 < (drawn <= reach).mean() < 0.953


def test_grids_of_the_cells_fit_into_doubles() -> None:
    for function in TWO + ONE:
        release = plan_for(function, max_rows=3).noises[0].of
        assert isinstance(release, Moments)
        assert release.row <= 1 << 22
        assert math.prod(grid.steps**degree for grid, degree in zip(release.grids, release.degrees, strict=True)) < 1 << 53
        assert all(isinstance(grid.expression, Column) for grid in release.grids)
