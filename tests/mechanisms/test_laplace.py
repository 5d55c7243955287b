"""Laplace on a grid: every answer is rounded, none is refused, and the price includes the rounding."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.exact import replay
from dither.exact.balls import ball, exp, working
from dither.exact.laws.derived import Moved
from dither.exact.laws.geometric import TwoSided
from dither.mechanisms import L1, L2, Exponential, Laplace, PerCoordinate
from dither.mechanisms.base import steps
from dither.privacy.proof import verify
from laws.exactly import Claim

WIDE = np.longdouble  # reading one means rounding it, which can move neighbours apart by one more step
answers = st.fractions(-20, 20, max_denominator=40)


@settings(max_examples=40, deadline=None)
@given(
    x=answers,
    move=st.fractions(-1, 1, max_denominator=60),
    sensitivity=st.fractions(Fraction(1, 20), 3, max_denominator=20),
    grid=st.fractions(Fraction(1, 10), 2, max_denominator=10),
)
def test_any_two_answers_within_the_sensitivity_stay_within_epsilon(
    x: Fraction, move: Fraction, sensitivity: Fraction, grid: Fraction
) -> None:
    noise = Laplace(epsilon=1, sensitivity=sensitivity, grid=grid)
    assert verify(noise, [(x, x + move * sensitivity)]).holds


def test_a_price_that_forgets_the_rounding_is_broken() -> None:
    grid, sensitivity = Fraction(1, 4), Fraction(3, 10)
    honest = Laplace(epsilon=1, sensitivity=sensitivity, grid=grid)
    assert honest.scale == grid * 2  # 3/10 is not a multiple of 1/4: the rounded answers can be two steps apart
    planted = Claim(1, lambda x: Moved(TwoSided(sensitivity / grid), steps(x, grid)))
    pair = (Fraction(1, 8) - Fraction(1, 100), Fraction(1, 8) - Fraction(1, 100) + sensitivity)
    assert verify(honest, [pair]).holds
    assert not verify(planted, [pair]).holds


def test_a_grid_that_divides_the_sensitivity_costs_nothing() -> None:
    assert Laplace(epsilon="1/2", sensitivity=10, grid="1/8").scale == 20
    assert Laplace(epsilon="1/2", sensitivity=10, grid="3/10").scale == 2 * Fraction(3, 10) * math.ceil(Fraction(100, 3))


def test_the_price_of_a_vector_counts_a_step_for_every_further_coordinate() -> None:
    assert Laplace(epsilon=1, sensitivity=L1(1, dimension=5), grid="1/4").scale == Fraction(4 + 4, 4)
    assert Laplace(epsilon=1, sensitivity=PerCoordinate(3, "0.3"), grid="1/4").scale == Fraction(6, 4)
    assert Laplace(epsilon=1, sensitivity=L2(1, dimension=4), grid=1).scale == 4


@pytest.mark.parametrize("t", [1, 2, 5])
def test_the_tail_is_that_of_continuous_laplace_on_a_fine_grid(t: int) -> None:
    noise = Laplace(epsilon=1, sensitivity=1, grid="1/65536")
    law, last = noise.law(0), t * 65536
    with working(128):
        beyond = law.more_than(last) + law.at_most(-last - 1)
        assert abs(beyond / exp(-t) - 1) < 1e-4
    assert abs(float(noise.margin(1 - Fraction(math.exp(-t)))) - t) < 1e-3


def test_the_score_of_distance_gives_two_sided_geometric_noise_of_twice_the_scale() -> None:
    """The exponential mechanism with score -|f - o| is geometric noise of scale 2 sensitivity / epsilon, given that
    the output lies in the range; the range's probability is the only difference, and it is known exactly."""
    epsilon, sensitivity, low, high = Fraction(1, 2), 3, -60, 60
    choose = Exponential(epsilon=epsilon, sensitivity=sensitivity)
    for f in (-60, -5, 0, 31):
        chosen = choose.law([-abs(f - o) for o in range(low, high + 1)])
        noise = Moved(TwoSided(2 * sensitivity / epsilon), f)
        with working(300):
            inside = 1 - noise.at_most(low - 1) - noise.more_than(high)
            for o in range(low, high + 1):
                left, right = chosen.pmf(o - low) * inside, noise.pmf(o)
                assert left.overlaps(right)
                assert (left - right).rad() < 1e-80


def test_that_equality_fails_at_the_scale_without_the_factor_two() -> None:
    chosen = Exponential(epsilon=1, sensitivity=1).law([-abs(o) for o in range(-60, 61)])
    with working(300):
        assert not chosen.pmf(60).overlaps(TwoSided(1).pmf(0))


def test_laplace_at_ten_and_twenty_has_ratio_e_outside_and_less_inside() -> None:
    noise = Laplace(epsilon=1, sensitivity=10, grid="1/10")
    x, y = noise.law(10), noise.law(20)
    with working(200):
        for k in (-500, 0, 100, 200, 201, 900):
            ratio = abs(x.pmf(k).log() - y.pmf(k).log())
            assert ratio.overlaps(ball(1))
        assert all(abs(x.pmf(k).log() - y.pmf(k).log()) < 1 for k in range(101, 200))


@pytest.mark.parametrize("exact", [0.1, 7, Fraction(1, 3), float("nan"), float("inf"), float("-inf"), 1e308, 5e-324, -0.0])
def test_no_value_is_refused(exact: float) -> None:
    for grid in ("1/4", "1/10", 3):
        noise = Laplace(epsilon=1, sensitivity=1, grid=grid)
        assert (noise.release(exact) / Fraction(grid)).denominator == 1


@pytest.mark.parametrize("text", ["NaN", "sNaN", "-Infinity", "1e999999", "-1e-999999", "0.1", "-0"])
def test_no_decimal_is_refused_or_takes_long(text: str) -> None:
    noise = Laplace(epsilon=1, sensitivity=1, grid="1/10")
    assert (noise.release(Decimal(text)) * 10).denominator == 1
    assert (noise.release(np.array([Decimal(text)]))[0] * 10).denominator == 1


@pytest.mark.parametrize(("grid", "kind"), [(1, np.int64), ("1/8", np.float64), (2, np.float64), ("1/10", object), (3, object)])
def test_the_form_of_a_vector_depends_on_the_grid_alone(grid: str | int, kind: type) -> None:
    noise = Laplace(epsilon=1, sensitivity=L1(1, dimension=4), grid=grid)
    for exact in (np.array([0.5, np.nan, np.inf, -1e300]), np.array([1, 2, 3, 2**62]), np.array([Fraction(1, 3)] * 4)):
        released = noise.release(exact)
        assert released.dtype == kind
        assert all((Fraction(value) / Fraction(grid)).denominator == 1 for value in released.tolist())


@pytest.mark.parametrize("grid", [0, -1, float("nan"), "inf", None])
def test_bad_grids_are_refused(grid: object) -> None:
    with pytest.raises(ArgumentError, match="grid"):
        Laplace(epsilon=1, sensitivity=1, grid=grid)


@pytest.mark.parametrize(("epsilon", "sensitivity", "word"), [(0, 1, "epsilon"), (1, 0, "sensitivity"), ("1e-13", 1, "scale")])
def test_bad_parameters_are_refused(epsilon: object, sensitivity: object, word: str) -> None:
    with pytest.raises(ArgumentError, match=word):
        Laplace(epsilon=epsilon, sensitivity=sensitivity, grid=1)


@pytest.mark.parametrize(
    "exact",
    [
        "1",
        None,
        True,
        1j,
        {1.0},
        np.zeros((1, 1)),
        np.array(["a"]),
        WIDE(1),
        np.array([1], dtype=WIDE),
    ],
)
def test_answers_that_are_not_numbers_are_refused(exact: object, no_dice: None) -> None:
    with pytest.raises(ArgumentError, match="exact"):
        Laplace(epsilon=1, sensitivity=1, grid=1).release(exact)


def test_a_vector_needs_its_dimension_declared(no_dice: None) -> None:
    with pytest.raises(ArgumentError, match="dimension=2"):
        Laplace(epsilon=1, sensitivity=1, grid="1/2").release(np.zeros(2))


MIXED = [0.3, Fraction(-7, 3), 5, Decimal("2.25"), float("nan"), float("inf"), True, None, "x", 2**70]


@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.parametrize("grid", ["1/4", "1/10", 1])
def test_lists_and_tuples_are_released_as_arrays_are(kind: type, grid: str | int) -> None:
    noise = Laplace(epsilon=1, sensitivity=L1(1, dimension=len(MIXED)), grid=grid)
    array = np.array(MIXED, dtype=object)
    with replay.stream(b"lists"):
        expected = noise.release(array)
    with replay.stream(b"lists"):
        released = noise.release(kind(MIXED))
    assert released.dtype == expected.dtype
    assert released.tolist() == expected.tolist()
    with replay.stream(b"lists"):  # the twin: another number is another release
        assert noise.release(kind([1.3, *MIXED[1:]])).tolist() != expected.tolist()


def test_a_list_longer_than_its_sensitivity_covers_is_refused_and_no_element_decides() -> None:
    with pytest.raises(ArgumentError, match="2 coordinates"):
        Laplace(epsilon=1, sensitivity=1, grid=1).release([1, 2])
    noise = Laplace(epsilon=1, sensitivity=L1(1, dimension=3), grid="1/4")
    assert len(noise.release([[1, 2], {}, np.array([1, 2])])) == 3
