"""Discrete Gaussian noise: calibrated on its own law, never by a formula for another."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from dither.errors import ArgumentError, PriceError
from dither.exact.balls import ball, certainly_at_most, evaluate, exp, working
from dither.exact.laws import derived, gaussian
from dither.mechanisms import L1, L2, Gaussian, PerCoordinate
from dither.mechanisms.gaussian import delta
from dither.privacy import parts
from dither.privacy.losses import ZCDP, Approx, Curve
from dither.privacy.proof import verify
from laws.exactly import Claim, renyi, spill

TARGETS = [("1", "1e-5"), ("0.1", "1e-6"), ("10", "1e-6"), ("0.5", "0.1"), ("3", "1e-12")]


def fits(epsilon: Fraction, target: Fraction, shift: int, variance: Fraction) -> bool:
    return certainly_at_most(delta(epsilon, shift, variance), target)


@pytest.mark.parametrize(("epsilon", "target"), TARGETS)
def test_the_calibrated_noise_is_certified_and_the_next_smaller_is_not(epsilon: str, target: str) -> None:
    noise = Gaussian(epsilon=epsilon, delta=target, sensitivity=1)
    assert fits(Fraction(epsilon), Fraction(target), 1, noise.variance)
    assert not fits(Fraction(epsilon), Fraction(target), 1, noise.variance * (1 - Fraction(1, 10**6)))
    assert noise.loss() == Approx(epsilon, target)


def test_the_continuous_sigma_is_rejected_on_the_discrete_law() -> None:
    sigma = Fraction("3.7306316348")
    assert not fits(Fraction(1), Fraction("1e-5"), 1, sigma**2)
    found = float(evaluate(delta(Fraction(1), 1, sigma**2), 128))
    assert round(found * 1e5, 4) == 1.0346
    assert Gaussian(epsilon=1, delta="1e-5", sensitivity=1).variance > sigma**2


def textbook(epsilon: Fraction, target: Fraction) -> Fraction:
    """The variance of sigma = sqrt(2 ln(1.25 / delta)) / epsilon, proved only for epsilon below 1."""
    return Fraction(2 * math.log(1.25 / float(target))) / epsilon**2


def test_the_textbook_formula_is_rejected_above_epsilon_one() -> None:
    epsilon, target = Fraction(10), Fraction("1e-6")
    assert round(float(textbook(epsilon, target)) ** 0.5, 5) == 0.52988
    # One answer with fine steps is as good as continuous noise: there the true delta is 1.90e-6.
    steps = 1000
    assert not fits(epsilon, target, steps, textbook(epsilon, target) * steps**2)
    assert round(float(evaluate(delta(epsilon, steps, textbook(epsilon, target) * steps**2), 128)) * 1e6, 2) == 1.90


@pytest.mark.parametrize(
    ("epsilon", "target", "sigma"), [("1", "1e-5", 3.7306316348), ("0.1", "1e-6", 36.3046904262), ("10", "1e-6", 0.5410868318)]
)
def test_fine_steps_approach_the_continuous_calibration(epsilon: str, target: str, sigma: float) -> None:
    noise = Gaussian(epsilon=epsilon, delta=target, sensitivity=1, grid="1/1000")
    assert abs(float(noise.variance) ** 0.5 / 1000 / sigma - 1) < 2e-6


def test_delta_by_half_lines_is_delta_by_all_outputs() -> None:
    for shift, variance in ((1, Fraction(14)), (3, Fraction(50)), (2, Fraction(1, 2))):
        x, y = gaussian.Gaussian(variance), derived.Moved(gaussian.Gaussian(variance), shift)
        for epsilon in (Fraction(0), Fraction(1, 2), Fraction(3)):
            with working(200):
                assert abs(delta(epsilon, shift, variance)() - spill(x, y, epsilon)) < 1e-45
                assert abs(delta(epsilon, shift, variance)() - spill(y, x, epsilon)) < 1e-45


def test_delta_grows_with_the_shift() -> None:
    with working(200):
        found = [delta(Fraction(1, 2), shift, Fraction(30))() for shift in range(1, 12)]
    assert all(a < b for a, b in itertools.pairwise(found))


@pytest.mark.parametrize("order", [Fraction(3, 2), Fraction(2), Fraction(10)])
def test_rho_is_the_renyi_divergence_per_order(order: Fraction) -> None:
    noise = Gaussian(rho="1/50", sensitivity=3)
    x, y = noise.law(0), noise.law(3)
    with working(320):
        found = renyi(x, y, order)
        assert not found > ball(order * Fraction(1, 50))
        assert found > ball(order * Fraction(1, 50) * Fraction(9, 10))


def test_a_tenth_less_noise_breaks_rho() -> None:
    x, y = gaussian.Gaussian(Fraction(81, 100) * 25), derived.Moved(gaussian.Gaussian(Fraction(81, 100) * 25), 1)
    assert Gaussian(rho="1/50", sensitivity=1).variance == 25
    with working(320):
        assert renyi(x, y, Fraction(2)) > ball(2 * Fraction(1, 50))


@pytest.mark.parametrize("claimed", [1, 100, 10**6])
def test_it_is_not_epsilon_dp_for_any_epsilon(claimed: int) -> None:
    noise = Gaussian(rho="1/2", sensitivity=1)
    found = verify(Claim(claimed, noise.law), [(0, 1)])
    assert not found.holds
    assert found.worst == math.inf
    # And by hand: at output -k the log ratio is (1 + 2k) / 2v, above any claim for k large enough.
    with working(128):
        k = claimed + 1
        assert noise.law(0).pmf(-k) / noise.law(1).pmf(-k) > exp(claimed)
    with pytest.raises(PriceError):
        noise.loss().epsilon(0)


def test_vectors_are_priced_by_rho() -> None:
    assert Gaussian(rho="1/8", sensitivity=L2(2, dimension=3)).variance == 16
    assert Gaussian(rho="1/8", sensitivity=PerCoordinate(4, 3)).variance == 4 * 36
    assert Gaussian(rho="1/8", sensitivity=L1(3)).variance == 36
    assert Gaussian(scale=2, sensitivity=PerCoordinate(3, 2)).loss() == ZCDP(Fraction(12, 8))


def test_numbers_that_move_alike_are_calibrated_on_their_exact_curve() -> None:
    noise = Gaussian(epsilon=1, delta="1e-6", sensitivity=PerCoordinate(9, 2))
    assert noise.curve().delta(1) <= Fraction("1e-6")
    assert Curve.of(parts.DiscreteGaussian(2, noise.variance * Fraction(999, 1000)), 9).delta(1) > Fraction("1e-6")
    # The twin: zCDP needs 15 % more variance.
    assert ZCDP(Fraction(36) / (2 * noise.variance * Fraction(114, 100))).delta(1) > Fraction("1e-6")
    # As good as one number that moves by 6, nearly.
    alone = Gaussian(epsilon=1, delta="1e-6", sensitivity=L2(6, dimension=1))
    assert abs(noise.variance / alone.variance - 1) < Fraction(1, 100)


def test_the_curve_of_coordinates_that_move_alike_is_no_dearer_than_rho() -> None:
    noise = Gaussian(rho="1/8", sensitivity=PerCoordinate(4, 1))
    assert noise.curve().zcdp() == ZCDP("1/8")


@pytest.mark.parametrize("sensitivity", [L2(3, dimension=4), L2.of_squares(7), L1(5), L1(5, dimension=2)])
def test_other_vectors_have_a_curve_that_covers_them_all(sensitivity: L1 | L2) -> None:
    noise = Gaussian(rho="1/8", sensitivity=sensitivity)
    squares = sensitivity.squares(None)
    assert noise.curve() == Curve.of(parts.GaussianVector(squares, noise.variance, sensitivity.moving(None)))
    assert noise.curve().zcdp() == ZCDP("1/8")
    assert noise.curve().epsilon("1e-6") < ZCDP("1/8").epsilon("1e-6")


def test_a_calibrated_vector_keeps_its_price_beside_others() -> None:
    """Its curve composes by the noise itself: two cost less than twice what they were calibrated to."""
    noise = Gaussian(epsilon=1, delta="1e-6", sensitivity=L2.of_squares(30))
    assert noise.loss() == Approx(1, "1e-6")
    assert noise.curve().delta(1) <= Fraction("1e-6")
    assert noise.curve().repeat(2).epsilon("2e-6") < Fraction(3, 2)


@pytest.mark.parametrize("sensitivity", [1, L1(1), L2("1.2"), PerCoordinate(1, 5)])
def test_one_moving_coordinate_is_priced_as_one_number_in_a_vector_of_any_length(sensitivity: object) -> None:
    noise = Gaussian(epsilon=1, delta="1e-5", sensitivity=sensitivity)
    step = 5 if isinstance(sensitivity, PerCoordinate) else 1
    assert noise.variance == Gaussian(epsilon=1, delta="1e-5", sensitivity=L2(step, dimension=1)).variance
    assert noise.release(np.zeros(50, dtype=int)).shape == (50,)


def test_a_plain_number_above_one_is_one_coordinate_at_epsilon_and_delta(no_dice: None) -> None:
    noise = Gaussian(epsilon=1, delta="1e-5", sensitivity=5)
    with pytest.raises(ArgumentError, match="dimension=2"):
        noise.release(np.zeros(2, dtype=int))


def test_on_a_grid_the_steps_of_rounding_are_counted() -> None:
    assert Gaussian(rho="1/2", sensitivity="0.3", grid="1/4").variance == 4
    assert Gaussian(rho="1/2", sensitivity=L2("0.3", dimension=2), grid="1/4").variance == 2 + 1 + 2 * 1
    released = Gaussian(rho="1/2", sensitivity=L2(1, dimension=2), grid="1/4").release(np.array([0.3, np.nan]))
    assert released.dtype == np.float64
    assert ((released * 4) % 1 == 0).all()


def test_the_margin_is_near_two_sigma() -> None:
    noise = Gaussian(scale=1000, sensitivity=1)
    assert noise.margin("0.95") == 1959 or noise.margin("0.95") == 1960


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({}, "epsilon with delta"),
        ({"epsilon": 1}, "epsilon with delta"),
        ({"epsilon": 1, "delta": "1e-5", "rho": 1}, "nothing more"),
        ({"rho": 1, "scale": 1}, "nothing more"),
        ({"epsilon": 0, "delta": "1e-5"}, "epsilon"),
        ({"epsilon": 1, "delta": 0}, "delta"),
        ({"epsilon": 1, "delta": 1}, "delta"),
        ({"rho": -1}, "rho"),
        ({"rho": "nan"}, "rho"),
        ({"scale": float("inf")}, "scale"),
        ({"scale": "1e13"}, "variance"),
        ({"rho": 1, "grid": 0}, "grid"),
        ({"epsilon": "1e-13", "delta": "1e-13"}, "scale"),
    ],
)
def test_bad_parameters_are_refused(arguments: dict[str, object], word: str) -> None:
    with pytest.raises(ArgumentError, match=word):
        Gaussian(sensitivity=1, **arguments)


def test_answers_of_the_wrong_kind_are_refused(no_dice: None) -> None:
    with pytest.raises(ArgumentError, match="exact"):
        Gaussian(rho=1, sensitivity=1).release(0.5)
    with pytest.raises(ArgumentError, match="one axis"):
        Gaussian(rho=1, sensitivity=1).release(np.zeros((2, 2), dtype=int))


def test_the_law_of_one_release_is_the_discrete_gaussian() -> None:
    law = Gaussian(rho="1/8", sensitivity=1).law(10)
    with working(200):
        total = sum((exp(Fraction(-j * j, 8)) for j in range(-60, 61)), arb(0))
        assert abs(law.pmf(12) - exp(Fraction(-4, 8)) / total) < 1e-50
