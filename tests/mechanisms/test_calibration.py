"""Variances for vectors under (epsilon, delta): certified for every vector, and smaller than through zCDP."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from accounting import truth
from dither.errors import ArgumentError
from dither.exact.balls import lower, upper, working
from dither.mechanisms import L2, Gaussian, PerCoordinate
from dither.mechanisms.calibration import SEVEN, Grid, Share, for_alike, for_squares, rho_together
from dither.privacy.conversion import largest_rho
from dither.privacy.losses import ZCDP, Curve, total
from dither.privacy.parts import DiscreteGaussian, GaussianVector
from dither.privacy.parts import Gaussian as Continuous

PRICES = [
    (Fraction(e), Fraction(d)) for e, d in (("1", "1e-6"), ("1/10", "1e-9"), ("3", "1e-3"), ("1/2", "1/10"), ("10", "1e-6"))
]
MILLION = Fraction(1, 10**6)


def within(epsilon: Fraction, delta: Fraction, squares: int, moving: int, variance: Fraction) -> bool:
    return Curve.of(GaussianVector(squares, variance, moving)).delta(epsilon) <= delta


@pytest.mark.parametrize(("epsilon", "delta"), PRICES)
@pytest.mark.parametrize(("squares", "moving"), [(2, 2), (9, 3), (1000, 1000), (3 * 2**40, 64)])
def test_the_variance_is_certified_and_a_smaller_one_is_not(
    epsilon: Fraction, delta: Fraction, squares: int, moving: int
) -> None:
    variance = for_squares(epsilon, delta, squares, moving)
    assert within(epsilon, delta, squares, moving, variance)
    assert not within(epsilon, delta, squares, moving, variance * (1 - Fraction(1, 10**5)))
    assert variance <= squares / (2 * largest_rho(epsilon, delta))


def test_seven_or_eight_percent_are_won_over_zcdp() -> None:
    """At (1, 1e-6) zCDP allows rho = 0.02436, the curve of a continuous Gaussian 0.02801."""
    squares = 10**6
    rho = squares / (2 * for_squares(Fraction(1), MILLION, squares, 1000))
    assert Fraction("0.02800") < rho < Fraction("0.02802")
    assert 1.07 < math.sqrt(rho / largest_rho(Fraction(1), MILLION)) < 1.08


@pytest.mark.parametrize(("epsilon", "delta"), [(Fraction(1), Fraction(1, 1000)), (Fraction(2), Fraction(1, 20))])
def test_no_vector_exceeds_delta_outcome_by_outcome(epsilon: Fraction, delta: Fraction) -> None:
    squares = 6
    variance = for_squares(epsilon, delta, squares, squares)
    for moves in itertools.product(range(3), repeat=2):
        if 0 < sum(k * k for k in moves) <= squares:
            with working(200):
                law = truth.composed([(DiscreteGaussian(k, variance), 1) for k in moves if k])
                assert upper(truth.delta(law, epsilon)) <= delta, moves


def test_that_check_can_fail() -> None:
    """The twin: the variance of the continuous formula is too small for numbers that move by 1."""
    epsilon, delta = Fraction(1), Fraction(1, 1000)
    least = Fraction(0)
    for step in (Fraction(1), Fraction(1, 10), Fraction(1, 100), Fraction(1, 1000)):
        while Curve.of(Continuous(2 / (least + step))).delta(epsilon) > delta:
            least += step
    with working(200):
        law = truth.composed([(DiscreteGaussian(1, least + Fraction(1, 1000)), 2)])
        assert lower(truth.delta(law, epsilon)) > delta
    assert for_alike(epsilon, delta, 2, 1) > least


@pytest.mark.parametrize(("epsilon", "delta"), PRICES)
@pytest.mark.parametrize(("count", "each"), [(2, 1), (5, 1), (40, 3)])
def test_numbers_that_move_alike_get_the_least_variance_of_their_exact_curve(
    epsilon: Fraction, delta: Fraction, count: int, each: int
) -> None:
    variance = for_alike(epsilon, delta, count, each)
    assert Curve.of(DiscreteGaussian(each, variance), count).delta(epsilon) <= delta
    assert variance <= for_squares(epsilon, delta, count * each * each, count)
    if variance < 1000:
        assert Curve.of(DiscreteGaussian(each, variance * (1 - Fraction(1, 5000))), count).delta(epsilon) > delta


@pytest.mark.parametrize("epsilon", [60, 1000, 10**5, 10**6])
@pytest.mark.parametrize("delta", [Fraction(1, 10**6), Fraction(99, 100)])
def test_next_to_no_noise_has_a_variance_too(epsilon: int, delta: Fraction) -> None:
    at = Fraction(epsilon)
    assert 0 < for_alike(at, delta, 3, 1) <= for_squares(at, delta, 3, 3) <= max(3 / (2 * largest_rho(at, delta)), MILLION)


def test_little_noise_falls_back_to_zcdp() -> None:
    epsilon = Fraction(10)
    assert for_squares(epsilon, MILLION, 2, 2) == 2 / (2 * largest_rho(epsilon, MILLION))
    assert rho_together(epsilon, MILLION, (Share(Fraction(1, 2), 1, 1),) * 2) == largest_rho(epsilon, MILLION)


@pytest.mark.parametrize(("epsilon", "delta"), PRICES)
def test_several_vectors_share_the_largest_rho(epsilon: Fraction, delta: Fraction) -> None:
    shares = (Share(Fraction(1, 5), 60, 60), Share(Fraction(1, 2), 3 * 120**2, 9), Share(Fraction(3, 10), 10**8, 4))

    def price(rho: Fraction) -> Fraction:
        each = [GaussianVector(one.squares, one.squares / (2 * one.share * rho), one.moving) for one in shares]
        return total([Curve.of(part) for part in each]).delta(epsilon)

    rho = rho_together(epsilon, delta, shares)
    assert price(rho) <= delta
    assert price(rho * (1 + Fraction(1, 10**5))) > delta
    assert rho > largest_rho(epsilon, delta)
    assert ZCDP(rho).delta(epsilon) > delta  # the twin: the conversion alone would not give this price


def test_moves_far_beyond_the_range_are_refused() -> None:
    with pytest.raises(ArgumentError, match="scale"):
        for_squares(Fraction(1, 10**9), MILLION, 10**20, 5)


def test_grids_count_through_all_decades() -> None:
    for grid in (SEVEN, Grid(2, -3)):
        for place in (0, 1, grid.decade - 1, grid.decade, 3 * grid.decade + 5):
            assert grid.above(grid.value(place)) == place
            assert grid.value(place) < grid.value(place + 1)
            assert grid.above((grid.value(place) + grid.value(place + 1)) / 2) == place + 1
    assert SEVEN.value(SEVEN.last) == 10**24


def test_a_record_holds_the_variance_itself() -> None:
    """So that a stored release says what was drawn, whatever rule finds variances later."""
    for norm in (PerCoordinate(5, 1), L2.of_squares(7)):
        noise = Gaussian(epsilon=1, delta="1e-6", sensitivity=norm)
        assert Fraction(noise.record()["variance"]) == noise.variance
        assert Fraction(noise.record()["rho"]) == norm.squares(None) / (2 * noise.variance)
