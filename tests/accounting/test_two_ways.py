"""Certified prices against laws listed outcome by outcome: never below the truth, and within 1e-6 of it."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from accounting import truth
from dither.exact.balls import lower, upper, working
from dither.privacy import parts
from dither.privacy.losses import Curve, total
from dither.privacy.parts import Part

GAP = Fraction(1, 10**6)


def some_epsilon(r: random.Random) -> Fraction:
    return Fraction(r.randint(1, 40), r.choice([3, 7, 10, 20, 50, 100]))


def some_atoms(r: random.Random) -> tuple[Part, int]:
    kind = r.random()
    if kind < 0.5:
        return parts.Response(some_epsilon(r)), r.randint(1, 4)
    if kind < 0.85:
        return parts.DiscreteLaplace(some_epsilon(r), r.randint(1, 5)), r.randint(1, 3)
    return parts.DiscreteGaussian(r.randint(1, 3), Fraction(r.randint(1, 20), r.choice([1, 2, 10]))), 1


def some_delta(r: random.Random) -> Fraction:
    return Fraction(r.randint(1, 9), 10 ** r.randint(1, 10))


def check_against_listing(seed: int, cases: int) -> None:
    r = random.Random(seed)
    for _ in range(cases):
        curve = total([Curve.of(*some_atoms(r)) for _ in range(r.randint(1, 2))]).curve()
        delta = some_delta(r)
        with working(200):
            law = truth.composed(curve.parts)
        epsilon = curve.epsilon(delta)
        assert lower(truth.delta(law, epsilon)) <= delta, (curve, delta)
        if epsilon > 0:
            assert upper(truth.delta(law, epsilon * (1 - GAP))) > delta, (curve, delta)
        at = epsilon * Fraction(9, 10)
        exact = truth.delta(law, at)
        assert lower(exact) <= curve.delta(at) <= upper(exact) * (1 + 10 * GAP), (curve, at)


@pytest.mark.parametrize("seed", range(4))
def test_hundreds_of_small_compositions_match_their_listing(seed: int) -> None:
    check_against_listing(seed, 25)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 110))
def test_thousands_of_small_compositions_match_their_listing(seed: int) -> None:
    check_against_listing(seed, 300)


def test_continuous_releases_are_never_below_their_merged_cells() -> None:
    r = random.Random(5)
    for _ in range(8):
        kinds = [parts.Laplace(some_epsilon(r)), parts.Gaussian(some_epsilon(r) ** 2 / 4), parts.Response(some_epsilon(r))]
        curve = total([Curve.of(r.choice(kinds)) for _ in range(2)]).curve()
        delta = some_delta(r)
        epsilon = float(curve.epsilon(delta))
        assert truth.merged_delta(curve.parts, 600, epsilon) <= float(delta) * (1 + 1e-9), (curve, delta)
        if epsilon > 0:
            assert truth.merged_delta(curve.parts, 600, epsilon * (1 - 1e-4)) > float(delta), (curve, delta)


def test_tiny_and_huge_laplace_releases_are_never_below_their_merged_cells() -> None:
    for part, count, delta in (
        (parts.Laplace("1e-5"), 3, "1e-6"),
        (parts.Laplace(30), 2, "1e-4"),
    ):
        found = float(Curve.of(part, count).epsilon(delta))
        assert truth.merged_delta(((part, count),), 60, found) <= float(delta) * (1 + 1e-9)
        assert truth.merged_delta(((part, count),), 60, found * (1 - 1e-2)) > float(delta)


def test_the_discrete_gaussian_row_by_plain_convolution() -> None:
    # The reference table prints 4.887102 here; plain convolution of a hundred positive laws gives 4.8865707.
    k = np.arange(-120, 121)
    one = np.exp(-(k**2) / 200.0)
    one /= one.sum()
    law = np.ones(1)
    for _ in range(100):
        law = np.convolve(law, one)
    losses = 0.01 * (np.arange(len(law)) - 12000) + 0.5
    found = float(Curve.of(parts.DiscreteGaussian(1, 100), 100).epsilon("1e-6"))

    def delta(epsilon: float) -> float:
        above = losses > epsilon
        return float((law[above] * -np.expm1(epsilon - losses[above])).sum())

    assert delta(found) <= 1e-6 * (1 + 1e-11)
    assert delta(found * (1 - 1e-6)) > 1e-6


def test_bounded_range_is_the_worst_over_different_ranges() -> None:
    # Three releases of range 1/2, each with its own t: no choice on a grid beats the common optimum.
    eps, at = 0.5, 0.3

    def law(t: float) -> tuple[np.ndarray, np.ndarray]:
        p = (np.exp(eps) - np.exp(t)) / (np.exp(eps) - 1)
        return np.array([t, t - eps]), np.array([p, 1 - p])

    grid = [law(t) for t in np.linspace(0, eps, 21)]
    worst = 0.0
    for i, a in enumerate(grid):
        for j, b in enumerate(grid[: i + 1]):
            for c in grid[: j + 1]:
                x = np.add.outer(np.add.outer(a[0], b[0]), c[0])
                p = np.multiply.outer(np.multiply.outer(a[1], b[1]), c[1])
                worst = max(worst, float((p * np.maximum(0, -np.expm1(at - x))).sum()))
    found = float(Curve.of(parts.BoundedRange("1/2"), 3).delta("0.3"))
    assert worst * (1 - 1e-12) <= found <= worst * 1.01


def test_subsampling_everything_is_the_gaussian_and_both_engines_agree() -> None:
    for count in (20, 400):  # the grid, then the contour
        every = Curve.of(parts.SubsampledGaussian(1, 10), count).epsilon("1e-6")
        plain = Curve.of(parts.Gaussian("0.01"), count).epsilon("1e-6")
        assert plain * (1 - GAP / 100) <= every <= plain * (1 + GAP)


def test_subsampled_releases_grow_smoothly_across_engines() -> None:
    # 300 is the last count on the grid, 301 the first on the contour; convexity leaves little room between.
    found = [float(Curve.of(parts.SubsampledGaussian("1/100", 2), n).epsilon("1e-6")) for n in (299, 300, 301)]
    steps = np.diff(found)
    assert np.all(steps > 0)
    assert np.all(steps < 2 * steps[0])


def test_discrete_laplace_with_many_steps_approaches_the_continuous_law() -> None:
    fine = Curve.of(parts.DiscreteLaplace("0.1", 10**6), 100).epsilon("1e-6")
    continuous = Curve.of(parts.Laplace("0.1"), 100).epsilon("1e-6")
    assert abs(fine / continuous - 1) < GAP
