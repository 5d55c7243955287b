"""Designs: the price covers every unit, answers have their margins, and whole numbers leak nothing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import dither as dt
from dither.errors import ArgumentError
from dither.mechanisms.gaussian import Gaussian
from dither.mechanisms.geometric import Geometric
from dither.privacy.neighbours import AddRemove, Replace
from dither.workloads.blocks import Coefficients, Person, Record, Unit
from dither.workloads.choose import strategies
from dither.workloads.design import Design
from dither.workloads.price import Price
from dither.workloads.residuals import Residuals
from dither.workloads.strategy import Flat, rounded
from dither.workloads.workload import Workload
from workloads.test_blocks import shares
from workloads.test_strategies import EVERY, named

PRICES = [Price.of("1/2", None, None), Price.of(None, None, "1/8")]
CASES = [(each, price) for each in EVERY for price in PRICES]


def spent(made: Design) -> Fraction:
    """The largest price that one unit really pays: exact, over all units of a small domain."""
    shape = made.workload.shape
    every = np.unique(np.array(list(shares(made.unit, made.workload.cells))), axis=0)
    measured = [made.strategy.measure(each.reshape(shape)) for each in every]
    nothing = [np.zeros_like(each) for each in measured[0]]
    starts = measured if isinstance(made.neighbours, Replace) else [nothing]
    return max(_between(made, one, other) for one in measured for other in starts)


def _between(made: Design, one: object, other: object) -> Fraction:
    total = Fraction(0)
    for noise, a, b in zip(made.noises, one, other, strict=True):  # type: ignore[call-overload]
        moved = [abs(int(each)) for each in (a - b).reshape(-1)]
        if noise is None:
            assert not any(moved)
        elif isinstance(noise, Gaussian):
            total += sum(each**2 for each in moved) / (2 * noise.variance)
        else:
            total += sum(moved) / noise.scale
    return total


@pytest.mark.parametrize("unit", [Record(), Person(2, 3)], ids=repr)
@pytest.mark.parametrize("neighbours", [AddRemove(), Replace()], ids=lambda each: each.name)
@pytest.mark.parametrize(("strategy", "price"), CASES, ids=lambda each: named(each) if hasattr(each, "blocks") else "")
def test_no_unit_pays_more_than_the_price(strategy: object, price: Price, neighbours: object, unit: Unit) -> None:
    made = Design(strategy, price, unit, neighbours)  # type: ignore[arg-type]
    if made.workload.cells > 12 and isinstance(neighbours, Replace) and isinstance(unit, Person):
        pytest.skip("too many pairs of persons")
    assert spent(made) <= (price.rho if price.gaussian else price.epsilon)  # type: ignore[operator]


def test_that_check_can_fail() -> None:
    """A design for records is too cheap for persons in two cells; one for arrivals too cheap for replacements."""
    work = Workload.thresholds(6)
    (flat,) = (each for each in strategies(work, True) if isinstance(each, Flat))
    cheap = Design(flat, PRICES[1], Record(), AddRemove())
    for unit, neighbours in [(Person(2, 1), AddRemove()), (Record(), Replace())]:
        dear = Design(flat, PRICES[1], unit, neighbours)
        object.__setattr__(dear, "noises", cheap.noises)
        assert spent(dear) > PRICES[1].rho  # type: ignore[operator]


def test_replaced_records_never_move_all_residuals_the_most() -> None:
    """Four times the squares of one arrival is what one residual may move, not all of them together."""
    work = Workload.marginals((3, 2, 4), 2)
    made = Design(Residuals(work), PRICES[1], Record(), Replace())
    alone = Design(Residuals(work), PRICES[1], Record(), AddRemove())
    assert spent(made) > Fraction(99, 100) * PRICES[1].rho  # type: ignore[operator]
    assert 1.3 < made.rmse / alone.rmse < 1.6


# --- whole numbers ------------------------------------------------------------------------------------------------


def test_a_real_strategy_with_whole_noise_shows_the_data() -> None:
    """The attack: whole-number noise leaves A x mod 1 as it is. With our whole-number strategy nothing is left to see."""
    real = np.array([[0.5, 0.25], [0.0, 0.75]])
    noise = Geometric(epsilon="1/100", sensitivity=1)
    seen = {tuple(((real @ cells) + [noise.release(0), noise.release(0)]) % 1) for cells in ([3, 1], [3, 1], [3, 1])}
    other = {tuple(((real @ cells) + [noise.release(0), noise.release(0)]) % 1) for cells in ([3, 2], [3, 2], [3, 2])}
    assert len(seen) == len(other) == 1
    assert seen.isdisjoint(other)
    for strategy in EVERY:
        ones = np.ones(strategy.workload.shape, dtype=np.int64)
        assert all((each % 1 == 0).all() for each in strategy.measure(ones))


def test_measurements_fit_into_64_bits() -> None:
    for strategy in EVERY:
        cells = np.zeros(strategy.workload.shape, dtype=np.int64)
        cells.reshape(-1)[-1] = 1 << 40
        wide = np.zeros(strategy.workload.shape, dtype=object)
        wide.reshape(-1)[-1] = 1 << 40
        for block, numbers in zip(strategy.blocks, strategy.measure(cells), strict=True):
            assert np.abs(numbers).max(initial=0) <= 1 << 62
            assert block.size == numbers.size


# --- answers ------------------------------------------------------------------------------------------------------


def test_a_release_has_answers_and_margins_for_every_question() -> None:
    work = Workload.thresholds(8) * Workload.histogram(3)
    counts = np.arange(24).reshape(8, 3)
    found = work.design(epsilon=500).release(counts)
    (answers,), (margins,) = found.answers, found.margins()
    assert answers.shape == margins.shape == (8, 3)
    assert np.abs(answers - np.cumsum(counts, axis=0)).max() < 1


@pytest.mark.parametrize("neighbours", [AddRemove(), Replace()], ids=lambda each: each.name)
@pytest.mark.parametrize("given", [{"epsilon": 1}, {"rho": "1/2"}, {"epsilon": 1, "delta": "1e-6"}], ids=str)
def test_the_loss_is_the_price(given: dict[str, str], neighbours: object) -> None:
    made = Workload.ranges(12).design(**given, neighbours=neighbours)  # type: ignore[arg-type]
    parts = [noise.loss() for noise in made.noises if noise is not None]
    assert made.loss() == (dt.Pure(1) if "delta" not in given and "epsilon" in given else made.loss())
    if "rho" in given:
        assert sum(each.rho for each in parts) <= Fraction(1, 2)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "given", [{}, {"epsilon": 1, "rho": 1}, {"rho": 1, "delta": "1e-6"}, {"epsilon": 0}, {"epsilon": 1, "delta": 1}], ids=str
)
def test_a_price_is_needed(given: dict[str, str]) -> None:
    with pytest.raises(ArgumentError, match="Charged: nothing"):
        Workload.thresholds(8).design(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize("histogram", [[1, 2], [0.5] * 8, [1 << 39] * 8, [-(2**63)] + [0] * 7, [[1] * 3] * 3], ids=str)
def test_histograms_that_do_not_fit_are_refused(histogram: list[int]) -> None:
    with pytest.raises(ArgumentError, match="Charged: nothing"):
        Workload.thresholds(8).design(epsilon=1).release(np.array(histogram))


# --- found by an attacker -----------------------------------------------------------------------------------------


def test_squares_beyond_64_bits_are_refused() -> None:
    """Differences of two columns wrapped around to 0 once, and the design had no noise."""
    rows = np.full((1 << 18, 2), 1 << 20, dtype=np.int64)
    rows[:, 1] *= -1
    with pytest.raises(ArgumentError, match="too large"):
        Coefficients((rows * 4,)).moves(Record(), replaced=True)


def test_coefficients_beyond_64_bits_are_refused() -> None:
    """1e30 became -2^63 once, whose absolute value is negative: a changed cache file could leak a parity."""
    with pytest.raises(ArgumentError, match="too large"):
        rounded(np.array([[1.0, 1e30]]), 1 << 20)
    with pytest.raises(ArgumentError, match="too large"):
        Coefficients((np.array([[1, -(2**63)]], dtype=np.int64),))


@pytest.mark.parametrize(("sizes", "ways"), [((2,) * 8, 3), ((3,) * 6, 3), ((2,) * 7, 4)])
def test_many_small_tables_have_shares_above_zero(sizes: tuple[int, ...], ways: int) -> None:
    made = Workload.marginals(sizes, ways).design(epsilon=1)
    assert min(made.strategy.shares) > 0
    assert sum(made.strategy.shares) == 1


def test_numbers_of_numpy_are_the_same_persons() -> None:
    """Noise for 100 rows in each of 3 cells: np.int8(3) * np.int8(100) is 44."""
    small = Workload.thresholds(8).design(epsilon=1, max_groups=np.int8(3), max_rows=np.int8(100))  # type: ignore[arg-type]
    assert small.noises == Workload.thresholds(8).design(epsilon=1, max_groups=3, max_rows=100).noises
