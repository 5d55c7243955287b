"""Vectors with discrete Gaussian noise of which only the sum of squared moves is known: the bound of parts/vector.py."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from accounting import truth
from dither.exact.balls import lower, working
from dither.privacy import parts
from dither.privacy.accountant import closed
from dither.privacy.losses import Curve, total
from dither.privacy.parts.vector import LEAST_VARIANCE, Moves, smooth

EPSILONS = [Fraction(0), Fraction(1, 10), Fraction(1), Fraction(3)]
# Each move with how often it occurs: one coordinate, many alike, mixed, one far beyond the others, more than a thousand.
VECTORS = [((1, 1),), ((7, 1),), ((1, 20),), ((3, 5),), ((1, 3), (2, 2), (3, 1)), ((1, 10), (30, 1)), ((1, 1000), (5, 50))]


def by_transforms(moves: Sequence[tuple[int, int]], variance: Fraction) -> Curve:
    """The exact curve of these moves, by the accountant's lattice."""
    return total([Curve.of(parts.DiscreteGaussian(k, variance), n) for k, n in moves]).curve()


def vector(moves: Sequence[tuple[int, int]], variance: Fraction) -> Curve:
    squares, moving = sum(k * k * n for k, n in moves), sum(n for _, n in moves)
    return Curve.of(parts.GaussianVector(squares, variance, moving))


def continuous(squares: int, variance: Fraction, epsilon: Fraction) -> Fraction:
    """What the formula of continuous noise says, without the rounding."""
    return Curve.of(parts.Gaussian(squares / variance)).delta(epsilon)


@pytest.mark.parametrize("moves", VECTORS, ids=str)
@pytest.mark.parametrize("precision", ["1/50", "1/5", "2"])
def test_the_bound_is_never_below_the_exact_curve(moves: Sequence[tuple[int, int]], precision: str) -> None:
    squares = sum(k * k * n for k, n in moves)
    variance = squares / Fraction(precision)
    for epsilon in EPSILONS:
        exact, bound = by_transforms(moves, variance).delta(epsilon), vector(moves, variance).delta(epsilon)
        assert exact * (1 - Fraction(1, 10**7)) <= bound, (variance, epsilon)


def norms_up_to(squares: int, dimension: int) -> list[tuple[int, ...]]:
    """Every vector of whole moves above 0 whose squares add up to at most `squares`, but for order."""
    reach = range(math.isqrt(squares) + 1)
    found = itertools.combinations_with_replacement(reach, dimension)
    return [tuple(k for k in each if k) for each in found if 0 < sum(k * k for k in each) <= squares]


@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(2), Fraction(15), Fraction(55, 7)])
def test_every_vector_with_smaller_squares_is_covered_outcome_by_outcome(variance: Fraction) -> None:
    """By listing all outcomes of up to two coordinates: no transform, no rounding."""
    bound = Curve.of(parts.GaussianVector(5, variance))
    for moves in norms_up_to(5, 2):
        with working(200):
            law = truth.composed([(parts.DiscreteGaussian(k, variance), 1) for k in moves])
            for epsilon in EPSILONS:
                assert lower(truth.delta(law, epsilon)) <= bound.delta(epsilon), (moves, epsilon)


def test_the_continuous_formula_alone_is_too_small() -> None:
    """The twin: without rounding, one and several coordinates exceed it."""
    variance = Fraction("3.7306316348") ** 2
    assert by_transforms(((1, 1),), variance).delta(1) > continuous(1, variance, Fraction(1)) * Fraction(103, 100)
    several = by_transforms(((1, 5),), Fraction("89.2")).delta(1)
    assert several > continuous(5, Fraction("89.2"), Fraction(1)) * Fraction(1001, 1000)


def test_rounding_without_its_slack_is_too_small() -> None:
    """The twin: with little rounding the factor e^l is what holds the bound up."""
    variance, t = Fraction("3.7306316348") ** 2, Fraction(1, 20)
    with working(200):
        kept = lower(closed.delta(((parts.Gaussian(1 / (variance - t)), 1),))(Fraction(1)))  # type: ignore[misc]
    assert by_transforms(((1, 1),), variance).delta(1) > kept * Fraction(1003, 1000)


def rounded(t: float, variance: float, j: int) -> float:
    """Pr[a normal of variance v - t is rounded to j], by a sum over a fine grid: exact to 1e-12 for smooth integrands."""
    y = np.linspace(-12 * math.sqrt(variance) - 2, 12 * math.sqrt(variance) + 2, 8_001)
    weights = np.zeros_like(y)
    for k in range(-40, 41):
        weights += np.exp(-((k - y) ** 2) / (2 * t))
    density = np.exp(-(y**2) / (2 * (variance - t))) / math.sqrt(2 * math.pi * (variance - t))
    return float((density * np.exp(-((j - y) ** 2) / (2 * t)) / weights).sum() * (y[1] - y[0]))


@pytest.mark.parametrize("t", [0.06, 0.1, 0.2])
def test_noise_on_the_integers_is_rounded_continuous_noise_up_to_the_stated_factor(t: float) -> None:
    variance, q = 3.0, math.exp(-2 * math.pi**2 * t)
    wobble, own = (2 * sum(p ** (n * n) for n in range(1, 8)) for p in (q, math.exp(-2 * math.pi**2 * variance)))
    weights = {k: math.exp(-k * k / (2 * variance)) for k in range(-60, 61)}
    ratios = [weights[j] / sum(weights.values()) / rounded(t, variance, j) for j in range(-6, 7)]
    assert min(ratios) >= (1 - wobble) / (1 + own) * (1 - 1e-9)
    assert max(ratios) <= (1 + wobble) / (1 + own) * (1 + 1e-9)
    # The twin: a thousandth of the factor would not do.
    assert max(ratios) > 1 + wobble / 1000 or min(ratios) < 1 - wobble / 1000


def test_rounding_is_cheap_where_noise_is_wide() -> None:
    for variance, worth in ((100, Fraction(1, 100)), (10**4, Fraction(2, 10**4)), (10**10, Fraction(3, 10**10))):
        bound = smooth([Moves(10, 10, Fraction(variance))])
        assert Fraction(10, variance) < bound.mu2 < Fraction(10, variance) * (1 + worth)
        assert bound.slack < bound.mu2 / 10


@pytest.mark.parametrize("moves", [Moves(5, 5, Fraction(90)), Moves(10**6, 40, Fraction(3)), Moves(1, 1, Fraction(1, 2))])
def test_the_factor_is_counted_for_every_number_that_moves(moves: Moves) -> None:
    bound = smooth([moves])
    t = moves.variance - moves.squares / bound.mu2
    wobble = 2 * sum(math.exp(-2 * math.pi**2 * n * n * float(t)) for n in range(1, 6))
    assert abs(float(bound.slack) / (2 * moves.moving * math.atanh(wobble)) - 1) < 1e-3
    both = smooth([moves, moves._replace(variance=moves.variance * 10**6)])
    assert both.mu2 > bound.mu2
    assert both.slack > 0


def test_vectors_add_up_and_stand_beside_other_parts() -> None:
    one, other = ((1, 4), (3, 2)), ((2, 6),)
    aside = Curve.of(parts.Response("1/5"), 3) + Curve.of(parts.Laplace("1/10"), 5)
    exact = total([by_transforms(one, Fraction(300)), by_transforms(other, Fraction(1000)), aside])
    bound = total([vector(one, Fraction(300)), vector(other, Fraction(1000)), aside])
    for epsilon in (Fraction(1, 2), Fraction(1), Fraction(2)):
        assert (
            exact.delta(epsilon) * (1 - Fraction(1, 10**6)) <= bound.delta(epsilon) <= exact.delta(epsilon) * Fraction(104, 100)
        )
    assert exact.epsilon("1e-6") <= bound.epsilon("1e-6") <= exact.epsilon("1e-6") * Fraction(101, 100)


def residuals() -> list[tuple[parts.DiscreteGaussian, int]]:
    """The moves of all marginals of up to 3 of 14 columns, as parts: (n - 1) or 1 for each column, multiplied."""
    sizes = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
    found: dict[parts.DiscreteGaussian, int] = {}
    for chosen in (each for r in range(4) for each in itertools.combinations(sizes, r)):
        squares = math.prod(n * (n - 1) for n in chosen)
        variance = Fraction(470 * squares) + Fraction(1, 1 + math.prod(chosen))  # rho = 1/2 in all, without a common grid
        for own in itertools.product((True, False), repeat=len(chosen)):
            shift = math.prod(n - 1 for n, alone in zip(chosen, own, strict=True) if alone)
            count = math.prod(n - 1 for n, alone in zip(chosen, own, strict=True) if not alone)
            part = parts.DiscreteGaussian(shift, variance)
            found[part] = found.get(part, 0) + count
    return list(found.items())


def test_more_than_a_thousand_different_parts_are_priced_as_one() -> None:
    listed = residuals()
    assert len(listed) > 1000
    curve = Curve(tuple(listed))
    assert abs(curve.zcdp().rho - Fraction(1, 2)) < Fraction(1, 1000)
    alike = Curve.of(parts.Gaussian(2 * curve.zcdp().rho))
    assert 1 < curve.epsilon("1e-6") / alike.epsilon("1e-6") < 1 + Fraction(1, 10**3)
    assert curve.epsilon("1e-6") < curve.zcdp().epsilon("1e-6") * Fraction(94, 100)


def test_many_different_parts_cost_no_less_than_equal_ones_with_more_noise() -> None:
    many = total([Curve.of(parts.DiscreteGaussian(1, 400 + i)) for i in range(40)])
    least = Curve.of(parts.DiscreteGaussian(1, 439), 40)
    few = total([Curve.of(parts.DiscreteGaussian(1, 400 + i), 4) for i in range(0, 40, 4)])
    assert least.epsilon("1e-6") < many.epsilon("1e-6")
    assert many.epsilon("1e-6") < Curve.of(parts.DiscreteGaussian(1, 400), 40).epsilon("1e-6")
    assert abs(many.epsilon("1e-6") / few.epsilon("1e-6") - 1) < Fraction(1, 100)


def test_little_noise_is_priced_by_zcdp() -> None:
    little = Curve.of(parts.GaussianVector(3, LEAST_VARIANCE / 2))
    assert little.epsilon("1e-6") == little.zcdp().epsilon("1e-6")
    assert little.delta(20) == little.zcdp().delta(20)


def test_a_group_moves_further_and_more_numbers() -> None:
    part = parts.GaussianVector(100, 1000, moving=4)
    assert part.group(3) == parts.GaussianVector(900, 1000, moving=12)
    assert parts.GaussianVector(3, 1000, moving=50).moving == 3  # whole numbers that move have squares of at least 1
