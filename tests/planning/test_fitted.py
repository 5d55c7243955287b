"""Grouping sets put together by least squares: the right numbers, with the variances and margins that are stated."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import dither as dt
from distribution.allowance import share
from dither.mechanisms import Gaussian
from dither.planning.divided import gain, portions
from dither.planning.fitted import Fitted, fit, fitted_plans
from dither.planning.outputs import Draw, Noisy
from dither.planning.plan import Plan
from dither.privacy.losses import Approx, total

CUBE = "SELECT a, b, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY CUBE (a, b)"
ROLLUP = "SELECT a, b, COUNT(*) AS n FROM t GROUP BY ROLLUP (a, b)"
SOME = "SELECT a, b, c, COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((a, b), (b, c), (a))"
ROWS = [{"u": i, "a": "xyz"[i % 3], "b": i % 2 == 0, "c": i % 4, "x": i % 9} for i in range(400)]
COLUMNS = {"a": dt.values("x", "y", "z"), "b": dt.values(True, False), "c": dt.values(0, 1, 2, 3), "x": dt.between(0, 8)}


def opened(delta: str | int = 0, **bounds: int) -> dt.Curator:
    frame = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    table = dt.Table(frame, unit="u", **{"max_rows": 1, "max_groups": 1, **bounds}, columns=COLUMNS)  # type: ignore[arg-type]
    return dt.open(dt.Catalog({"t": table}, dt.Budget(epsilon=10_000, delta=delta)), ledger=":memory:")


def planned(question: str, epsilon: str = "1", delta: str = "", **bounds: int) -> tuple[Plan, ...]:
    with opened(delta or 0, **bounds) as survey:
        program = survey.quote(question, epsilon=epsilon, delta=delta or None, left_out=False).program
        assert program.levels is not None
        assert program.levels.fitted
        return program.plans


CASES = [
    (question, delta, bounds)
    for question in (CUBE, ROLLUP, SOME)
    for delta in ("", "1e-2")
    for bounds in ({}, {"max_groups": 6, "max_rows": 2})
]


def groups(plan: Plan) -> list[tuple[Any, ...]]:
    return list(itertools.product(*(plan.known or ())))


def numbers(plans: tuple[Plan, ...]) -> Iterator[tuple[int, int]]:
    """The noisy numbers of all tables: the plan and the group of each."""
    return ((place, group) for place, plan in enumerate(plans) for group in range(len(groups(plan))))


def incidence(plans: tuple[Plan, ...]) -> np.ndarray:
    """Which cells by all keys each noisy number adds up."""
    cells = list(itertools.product(*(plans[0].work.known or ())))
    rows = []
    for place, group in numbers(plans):
        kept, key = plans[place].level or (), groups(plans[place])[group]
        rows.append([tuple(cell[i] for i in kept) == key for cell in cells])
    return np.array(rows, dtype=float)


def noisy(plans: tuple[Plan, ...], values: np.ndarray, cell: int, noise: int) -> tuple[Noisy, ...]:
    found, start = [], 0
    for plan in plans:
        size = len(groups(plan))
        cells = [np.zeros((size, each.of.cells), dtype=np.int64) for each in plan.noises]
        cells[noise][:, cell] = values[start : start + size]
        found.append(Noisy(tuple(groups(plan)), tuple(cells)))
        start += size
    return tuple(found)


@pytest.mark.parametrize(("question", "delta", "bounds"), CASES, ids=str)
def test_fitted_numbers_and_deviations_are_those_of_least_squares(question: str, delta: str, bounds: dict[str, int]) -> None:
    """Against numpy's least squares over all cells, weighed by the noise of each table."""
    plans = planned(question, delta=delta, **bounds)
    matrix = incidence(plans)
    for place, noise in enumerate(plans[0].noises):
        weights = np.array([plans[plan].noises[place].variance ** -0.5 for plan, _ in numbers(plans)])
        solve = matrix @ np.linalg.pinv(weights[:, None] * matrix) * weights  # from noisy numbers to fitted ones
        values = np.random.default_rng(place).integers(-(10**6), 10**6, len(matrix))
        for cell in range(noise.of.cells):
            found = np.concatenate([each.cells[place][:, cell] for each in fit(plans, noisy(plans, values, cell, place))])
            assert np.abs(found - solve @ values).max() <= 0.5 + 1e-4
        spread = np.sqrt((solve**2 / weights**2).sum(axis=1))
        stated = fitted_plans(plans)
        for (plan, _), own in zip(numbers(plans), spread, strict=True):
            fitted = stated[plan].noises[place]
            assert isinstance(fitted, Fitted)
            assert fitted.deviation == pytest.approx(own, rel=1e-6)


@pytest.mark.parametrize(("question", "delta", "bounds"), CASES, ids=str)
def test_the_price_is_the_whole(question: str, delta: str, bounds: dict[str, int]) -> None:
    plans = planned(question, delta=delta, **bounds)
    drawn = [noise for plan in plans for noise in plan.noises]
    if not drawn[0].gaussian:
        assert sum(noise.loss.epsilon() for noise in drawn) == 1
    else:
        assert total([plan.loss for plan in plans]) == Approx(1, delta)
        vectors = [noise.mechanism.vector() for noise in drawn if isinstance(noise.mechanism, Gaussian)]
        assert len(vectors) == len(drawn)
        assert total(vectors).delta(Fraction(1)) <= Fraction(delta)
    assert sum(portions(plans)) == 1


def test_gaussian_tables_are_one_vector() -> None:
    """Seven tables at even prices of their own would need sqrt(7) times the noise."""
    plans = planned("SELECT a, b, c, COUNT(*) AS n FROM t GROUP BY CUBE (a, b, c)", "1/2", "1e-2", max_groups=20)
    assert all(noise.gaussian for plan in plans for noise in plan.noises)
    assert gain(plans) < 1


def test_that_check_can_fail() -> None:
    """Twice the noise of all tables leaves the gain, and twice that of one table does not."""
    plans = planned(ROLLUP)
    assert gain(plans) < 1
    assert gain(plans[:1]) == pytest.approx(1)


@pytest.mark.usefixtures("recorded")
@pytest.mark.slow
@pytest.mark.parametrize(("question", "delta"), [(CUBE, ""), (CUBE, "1e-2"), (ROLLUP, "")])
def test_margins_of_fitted_numbers_hold(question: str, delta: str) -> None:
    def without_noise(noise: Any, values: Any) -> Any:
        return np.array(list(values), dtype=np.int64).reshape(len(values), -1)

    with opened(delta or 0) as exact:
        exact.steps = type(exact.steps)(draw=Draw(noise=without_noise))
        truth = exact.ask(question, epsilon="1/4", delta=delta or None, left_out=False)["n"]
    times, missed = 60, np.zeros(len(truth), dtype=int)
    with opened("0.9" if delta else 0) as survey:
        for _ in range(times):
            answer = survey.ask(question, epsilon="1/4", delta=delta or None, left_out=False, fresh=True)
            wide = answer.margins()["n"]
            missed += [abs(a - b) > m for a, b, m in zip(answer["n"], truth, wide, strict=True)]  # type: ignore[operator]
    assert missed.max() <= binom.isf(share("other", len(truth)), times, 0.05)


def test_fitted_tables_agree_with_each_other() -> None:
    with opened() as survey:
        answer = survey.ask(ROLLUP, epsilon="1/2", left_out=False)
        rows = {row[:2]: row[2] for row in answer.rows}
        for a in "xyz":
            assert abs(rows[a, None] - rows[a, True] - rows[a, False]) <= 2  # type: ignore[operator]
        assert "put together by least squares" in survey.quote(ROLLUP, epsilon="1/3").explain()


@pytest.mark.parametrize("question", [CUBE, ROLLUP, SOME])
def test_fitted_numbers_are_right_at_a_large_price(question: str) -> None:
    with opened(max_groups=1, max_rows=1) as survey:
        answer = survey.ask(question, epsilon=900)
        for row in answer:
            named = dict(zip(answer.columns, row, strict=True))
            kept = {name: value for name, value in named.items() if name in "abc" and value is not None}
            assert named["n"] == sum(all(each[name] == value for name, value in kept.items()) for each in ROWS)
