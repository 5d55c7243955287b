"""Strategies: unbiased, with exactly the variances they state, and as good as they say."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dither.workloads.choose import strategies
from dither.workloads.combined import combined
from dither.workloads.identity import p_identity
from dither.workloads.optimum import optimum
from dither.workloads.residuals import Residuals, in_shares
from dither.workloads.strategy import Asked, Strategy
from dither.workloads.tables import best_tables, split
from dither.workloads.trees import tree
from dither.workloads.workload import Workload

LINE = [Workload.thresholds(9), Workload.ranges(6), Workload.histogram(7), Workload.histogram(5) + Workload.thresholds(5)]
PLANE = [
    Workload.marginals((3, 2, 4), 2),
    Workload.marginals((3, 1, 2), [(0, 2), (1,)]),
    Workload.attributes(3),
    Workload.thresholds(4) * Workload.histogram(3),
    Workload.matrix([[1, 2, -1], [0, 1, 1]]) * Workload.ranges(2),
    Workload.thresholds(3) * Workload.total(4) + Workload.histogram(3, 4).weighted(2),
]
EVERY: list[Strategy] = [each for work in LINE + PLANE for gaussian in (True, False) for each in strategies(work, gaussian)]
EVERY += [tree(work, gaussian) for work in LINE for gaussian in (True, False)]
EVERY += [kind(PLANE[0], gaussian) for kind in (combined, best_tables, split) for gaussian in (True, False)]
EVERY += [Residuals(PLANE[1]), Asked(PLANE[3])]


def named(strategy: Strategy) -> str:
    return f"{type(strategy).__name__}-{strategy.workload.shape}-{strategy.workload.size}"


@pytest.mark.parametrize("strategy", EVERY, ids=named)
def test_answers_are_exact_without_noise(strategy: Strategy) -> None:
    cells = np.random.default_rng(3).integers(0, 99, strategy.workload.shape)
    found = strategy.answers(strategy.measure(cells), [1.0 + place for place in range(len(strategy.blocks))])
    for answer, truth in zip(found, strategy.workload.answers(cells), strict=True):
        assert answer.shape == truth.shape
        assert np.allclose(answer, truth, atol=1e-5)


@pytest.mark.parametrize("strategy", EVERY, ids=named)
def test_variances_are_those_of_the_noise(strategy: Strategy) -> None:
    """Answers are linear in the measurements: one unit of noise in each number at a time gives the whole law."""
    variances = [1.0 + place for place in range(len(strategy.blocks))]
    zeros = [np.zeros_like(each) for each in strategy.measure(np.zeros(strategy.workload.shape, dtype=np.int64))]
    total = [np.zeros(term.shape) for term in strategy.workload]
    for place, block in enumerate(zeros):
        for i in range(block.size):
            noise = [each.copy() for each in zeros]
            noise[place].reshape(-1)[i] = 1
            for answer, own in zip(strategy.answers(noise, variances), total, strict=True):
                np.add(own, variances[place] * answer**2, out=own)
    for stated, own in zip(strategy.spreads(variances), total, strict=True):
        if type(strategy).__name__ == "Tree":  # cells beyond the last have no noise
            assert (own <= stated + 1e-9).all()
        else:
            assert np.allclose(stated, own, rtol=1e-6)


@pytest.mark.parametrize("strategy", EVERY, ids=named)
def test_measurements_are_whole_and_shares_add_up_to_one(strategy: Strategy) -> None:
    cells = np.random.default_rng(3).integers(0, 99, strategy.workload.shape)
    for block, numbers in zip(strategy.blocks, strategy.measure(cells), strict=True):
        assert numbers.dtype == np.int64
        assert numbers.size == block.size
    assert sum(strategy.shares) == 1
    assert min(strategy.shares) > 0


def test_every_kind_of_strategy_is_tried() -> None:
    assert set(Strategy.__subclasses__()) == {type(each) for each in EVERY}


# --- how good they are --------------------------------------------------------------------------------------------


def gaussian_error(strategy: Strategy) -> float:
    """The root mean square error at rho = 1/2."""
    from dither.workloads.blocks import Record

    pairs = zip(strategy.blocks, strategy.shares, strict=True)
    variances = [block.moves(Record(), False).squares / float(share) for block, share in pairs]
    weight = sum(term.weight * term.size for term in strategy.workload)
    return float(np.sqrt(strategy.squared_error(variances) / weight))


@pytest.mark.parametrize(("kind", "n", "best"), [("thresholds", 64, 2.10006), ("ranges", 64, 2.30236)])
def test_the_optimum_is_the_published_one(kind: str, n: int, best: float) -> None:
    work = getattr(Workload, kind)(n)
    (found,) = (each for each in strategies(work, True) if each.name == "optimum")
    assert found.ratio is not None
    assert found.ratio < 1.001
    assert best * 0.99999 <= gaussian_error(found) <= best * 1.001


@pytest.mark.parametrize("work", LINE, ids=repr)
def test_no_strategy_is_better_than_the_bound(work: Workload) -> None:
    bound = np.sqrt(optimum(work.gram()).bound / sum(term.weight * term.size for term in work))
    for strategy in (*strategies(work, True), tree(work, True)):
        assert gaussian_error(strategy) >= bound * (1 - 1e-9)


def test_that_check_can_fail() -> None:
    """The bound of four times the questions is above the error of the questions."""
    work = LINE[0]
    bound = np.sqrt(optimum(work.gram() * 4).bound / work.size)
    assert any(gaussian_error(each) < bound for each in strategies(work, True))


ADULT = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)  # values of its 14 columns


@pytest.mark.parametrize(("sizes", "ways", "rmse"), [((10,) * 10, 2, 5.9751), ((10,) * 10, 3, 9.3481), (ADULT, 3, 10.6650)])
def test_marginals_have_the_closed_form(sizes: tuple[int, ...], ways: int, rmse: float) -> None:
    assert gaussian_error(Residuals(Workload.marginals(sizes, ways))) == pytest.approx(rmse, abs=1e-3)


@pytest.mark.parametrize("weigh", [lambda term: 1.0, lambda term: 1 / term.size])
@pytest.mark.parametrize("work", PLANE[:2], ids=repr)
def test_tables_put_together_are_as_good_as_residuals(work: Workload, weigh: object) -> None:
    work = replace(work, terms=tuple(replace(each, weight=weigh(each)) for each in work))  # type: ignore[operator]
    best = gaussian_error(Residuals(work))
    assert best <= gaussian_error(combined(work, True)) * 1.0001 <= best * 1.01
    assert gaussian_error(combined(work, True)) < gaussian_error(split(work, True))


@pytest.mark.parametrize(("kind", "n", "best"), [("thresholds", 64, 5.33), ("ranges", 64, 5.56)])
def test_pure_strategies_reach_the_known_figures(kind: str, n: int, best: float) -> None:
    gram = getattr(Workload, kind)(n).gram()
    found = p_identity(gram)
    size = getattr(Workload, kind)(n).size
    assert np.allclose(found.sum(axis=0), 1)
    assert np.sqrt(2 * np.trace(gram @ np.linalg.inv(found.T @ found)) / size) <= best


def test_shares_are_rational_and_none_is_zero() -> None:
    assert in_shares([1e-30, 1.0]) == (Fraction(1, 1 << 20), 1 - Fraction(1, 1 << 20))
    assert sum(in_shares([0.1] * 300, 1024)) == 1
