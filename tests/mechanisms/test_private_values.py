"""No value of a private answer raises, takes its own time or is read as another: attacks that once worked."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.exact.laws.coins import ExpCoin
from dither.exact.samplers.uniform import Uniform
from dither.mechanisms import (
    L1,
    Exponential,
    Gaussian,
    Geometric,
    Laplace,
    NoisyMax,
    PerCoordinate,
    PermuteAndFlip,
    RandomizedResponse,
    SparseVector,
    Threshold,
    TruncatedGeometric,
)
from dither.mechanisms.base import steps
from dither.privacy import sensitivity

MOST = 1 << 62
TINY = Fraction(1, 10**12_000)


def nearest(x: Fraction, grid: Fraction) -> int:
    """The rule itself: to the nearest step, halves upwards, within the clamp."""
    return min(max(math.floor(x / grid + Fraction(1, 2)), -MOST), MOST)


def test_a_zero_with_a_large_exponent_is_zero() -> None:
    for text in ("0E+30000", "-0E+999999", "0E-999999"):
        assert steps(Decimal(text), Fraction(1, 10)) == 0
        assert steps(Decimal(text), TINY) == 0


def test_a_grid_below_every_digit_does_not_tear_neighbours_apart() -> None:
    """A former bug: everything below 10^-20000 was 0, and values just above it were thousands of steps."""
    near, far = Decimal("9.99e-20001"), Decimal("1.000e-20000")
    for grid in (Fraction(1, 10**20_003), Fraction(3, 10**20_003), Fraction(2) ** -66_450):
        assert abs(steps(near, grid) - steps(far, grid)) <= math.ceil((Fraction(far) - Fraction(near)) / grid)
        assert steps(0, grid) == steps(0.0, grid) == steps(Fraction(0), grid) == 0
        assert steps(grid * 7, grid) == 7


@given(
    x=st.one_of(
        st.decimals(allow_nan=False, allow_infinity=False),
        st.integers(),
        st.fractions(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.tuples(st.integers(-(10**9), 10**9), st.integers(-60, 60)).map(lambda t: Decimal(t[0]).scaleb(t[1])),
    ),
    top=st.integers(1, 10**6),
    bottom=st.integers(1, 10**6),
    power=st.integers(-60, 60),
)
def test_every_number_goes_to_its_nearest_step(x: Any, top: int, bottom: int, power: int) -> None:
    grid = Fraction(top, bottom) * Fraction(10) ** power
    assert steps(x, grid) == nearest(Fraction(x), grid)


@pytest.mark.parametrize("grid", ["1/4", "1/3", "7/10"])
def test_a_million_digits_are_rounded_exactly_and_at_once(grid: str) -> None:
    """Two Decimals on either side of an edge, that differ in their millionth digit only."""
    edge, tail = Fraction(grid) / 2, Fraction(1, 10**1_000_000)
    long = Context(prec=1_000_000)
    middle = long.divide(edge.numerator, edge.denominator)
    below, above = (long.add(middle, Decimal(f"{sign}1e-999999")) for sign in "-+")
    assert (steps(below, Fraction(grid)), steps(above, Fraction(grid))) == (0, 1)
    assert (steps(edge - tail, Fraction(grid)), steps(edge, Fraction(grid))) == (0, 1)
    assert steps(10**1_000_000, Fraction(grid)) == MOST
    noise = Laplace(epsilon=1, sensitivity=1, grid=grid)
    assert (noise.release(above) / Fraction(grid)).denominator == 1


MASKED = np.ma.MaskedArray([1, 2, 3], mask=[False, True, False])
EVERY: list[Any] = [
    Geometric(epsilon=1, sensitivity=1),
    TruncatedGeometric(epsilon=1, sensitivity=1, n=5),
    Gaussian(rho=1, sensitivity=1),
    Gaussian(rho=1, sensitivity=PerCoordinate(1, 1), grid="1/2"),
    Laplace(epsilon=1, sensitivity=L1(1, dimension=3), grid="1/4"),
    Laplace(epsilon=1, sensitivity=L1(1, dimension=3), grid="1/3"),
    Exponential(epsilon=1, sensitivity=1),
    PermuteAndFlip(epsilon=1, sensitivity=1),
    NoisyMax(epsilon=1, sensitivity=1),
    SparseVector(epsilon=1, sensitivity=1, threshold=0),
    Threshold(epsilon=1, delta="1e-5"),
    Threshold(epsilon=1, delta="1e-5", rule="geometric"),
    RandomizedResponse(epsilon=1, categories=5),
]


@pytest.mark.parametrize("mechanism", EVERY, ids=lambda m: type(m).__name__)
def test_masked_arrays_are_refused_whatever_their_mask(mechanism: Any, no_dice: None) -> None:
    for masked in (MASKED, np.ma.MaskedArray([1, 2, 3]), np.ma.masked):
        with pytest.raises(ArgumentError, match="masked"):
            mechanism.release(masked)


@pytest.mark.parametrize("mechanism", EVERY, ids=lambda m: type(m).__name__)
def test_the_same_values_without_a_mask_are_not(mechanism: Any) -> None:
    mechanism.release(MASKED.filled(0))


@pytest.mark.parametrize("element", [None, "1/2", 1j, np.longdouble(3), object(), [1], Decimal("sNaN"), float("nan")])
@pytest.mark.parametrize("grid", ["1/4", "1/3"])
def test_no_element_of_an_object_array_is_refused(element: object, grid: str) -> None:
    noise = Laplace(epsilon=1, sensitivity=L1(1, dimension=3), grid=grid)
    exact = np.array([Fraction(1, 3), None, Decimal("0.5")], dtype=object)
    exact[1] = element
    assert len(noise.release(exact)) == 3
    assert steps(exact, Fraction(grid), noise.sensitivity)[1] == 0


def test_a_bool_in_an_object_array_counts_as_a_number() -> None:
    exact = np.array([True, np.False_, 2], dtype=object)
    assert steps(exact, Fraction(1, 2), L1(1, dimension=3)).tolist() == [2, 0, 4]


def test_score_gaps_of_a_thousand_digits_never_raise() -> None:
    for kind in (PermuteAndFlip, Exponential, NoisyMax):
        choose = kind(epsilon=1, sensitivity=1)
        assert {choose.release([0, 10**1000, -(10**5000), 5]) for _ in range(200)} == {1}
    assert PermuteAndFlip(epsilon=1, sensitivity=1).release([Fraction(1, 3), Fraction(10**900, 7)]) == 1


def test_a_coin_with_a_huge_exponent_is_decided_by_balls_as_well() -> None:
    for x in (Fraction(10) ** 500, Fraction(10) ** 200_000):
        coin = ExpCoin(x)
        assert coin.value_at(Uniform(2**64 - 1, 64)) == 0
        assert coin.draw(1000).tolist() == [0] * 1000


def test_scores_in_a_list_and_in_an_array_are_chosen_alike() -> None:
    """By the same law; ten equal best scores, so that some other index must come up."""
    choose = Exponential(epsilon=1, sensitivity=1)
    found = {choose.release([9] * 10 + [-(10**30)] * 10) for _ in range(400)}
    assert found <= set(range(10))
    assert len(found) > 3


def test_categories_that_would_wrap_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"categories.*2\^62"):
        RandomizedResponse(p="1/2", categories=2**62 + 1)
    largest = RandomizedResponse(p="1/2", categories=2**62)
    assert (largest.release(np.full(1000, 2**62)) >= 0).all()


@pytest.mark.parametrize("kind", [Geometric, NoisyMax, Exponential, PermuteAndFlip])
def test_an_unbounded_sensitivity_says_why(kind: type) -> None:
    nothing = sensitivity.sum()
    with pytest.raises(ArgumentError) as caught:
        kind(epsilon=1, sensitivity=nothing)
    assert isinstance(nothing, sensitivity.Unbounded)
    assert nothing.reason in str(caught.value)
    assert caught.value.fix == nothing.fix
