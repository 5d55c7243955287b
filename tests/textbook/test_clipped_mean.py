"""A clipped mean released with Laplace noise: simulated error against the theory, for several epsilon and n.

Clipped to [0, 100] with n public, one person moves the mean by 100/n, so the noise scale is b = 100 / (n epsilon) and
the expected absolute error around the clipped mean is b (on a fine grid). Clipping adds a bias that no noise shows.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from distribution.allowance import share
from dither.exact.numbers import Number
from dither.mechanisms.laplace import Laplace
from dither.privacy import sensitivity
from dither.privacy.neighbours import Replace

CASES = [(epsilon, n) for epsilon in ("1/10", "1/2", 2) for n in (50, 1000)]
DRAWS = 40_000
LIMIT = math.log(2 / share("clipped mean", tests=len(CASES)))


def incomes(n: int) -> list[int]:
    """Made-up incomes with a long tail: one in ten lies far above the clip."""
    return [20 + 37 * i % 61 if i % 10 else 400 + i for i in range(n)]


def clipped_mean(values: list[int]) -> Fraction:
    return Fraction(sum(min(max(v, 0), 100) for v in values), len(values))


def release_of(epsilon: Number, n: int) -> Laplace:
    move = sensitivity.mean(0, 100, Replace(n))
    assert move == Fraction(100, n)
    return Laplace(epsilon=epsilon, sensitivity=move, grid=move / 1000)


def surprise(found: float, scale: float, draws: int) -> float:
    """-log of Chernoff's bound on a mean absolute error this far from what two-sided geometric noise of this scale has.

    E e^(t|X|) = (1 - a)/(1 + a) (1 + 2 a e^t / (1 - a e^t)); the bound is the best over t, so it is proved, not asymptotic.
    """
    a = math.exp(-1 / scale)
    best = 0.0
    for step in range(-200, 200):
        t = step / 200 * 0.9 / scale
        moment = (1 - a) / (1 + a) * (1 + 2 * a * math.exp(t) / (1 - a * math.exp(t)))
        best = max(best, t * found - math.log(moment))
    return draws * best


@pytest.mark.parametrize(("epsilon", "n"), CASES)
def test_the_error_of_a_clipped_mean_follows_the_theory(epsilon: Number, n: int) -> None:
    exact, mechanism = clipped_mean(incomes(n)), release_of(epsilon, n)
    law = mechanism.law(exact)
    centre = round(exact / mechanism.grid)
    errors = np.abs(law.draw(DRAWS) - centre)
    scale = float(mechanism.scale / mechanism.grid)
    assert mechanism.scale == Fraction(100, n) / Fraction(epsilon)
    assert surprise(float(errors.mean()), scale, DRAWS) <= LIMIT
    assert surprise(float(errors.mean()), 1.1 * scale, DRAWS) > LIMIT  # the twin: a scale 10 % off is rejected
    assert surprise(float(errors.mean()), scale / 1.1, DRAWS) > LIMIT
    assert abs(mechanism.release(exact) - exact) < 60 * mechanism.scale  # beyond it with probability e^-60


def test_ten_times_the_people_or_the_epsilon_is_a_tenth_of_the_error() -> None:
    base = release_of("1/10", 100)
    assert release_of(1, 100).scale == release_of("1/10", 1000).scale == base.scale / 10
    assert float(release_of(1, 1000).margin("0.95")) == pytest.approx(math.log(20) * 100 / 1000, rel=1e-3)


def test_clipping_has_a_bias_that_the_margin_does_not_show() -> None:
    values = incomes(1000)
    bias = Fraction(sum(values), len(values)) - clipped_mean(values)
    assert bias > 20 * release_of(2, 1000).margin("0.95")
