"""The Renyi view: certified divergences of every part, and prices by orders, which are never below the curve."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from accounting import truth
from dither.errors import ArgumentError, PriceError
from dither.privacy import parts
from dither.privacy.conversion import epsilon_of_zcdp
from dither.privacy.losses import Curve
from dither.privacy.parts import Part, registry

PARTS: list[Part] = [part for kind in registry() for part in kind.examples() if not part.lost]
LISTED = [
    parts.Response(1),
    parts.KaryResponse("1/2", 5),
    parts.DiscreteLaplace("1/2", 3),
    parts.DiscreteGaussian(1, 4),
    parts.Subsampled(parts.DiscreteLaplace(1, 4), "1/10"),
    parts.Subsampled(parts.DiscreteGaussian(1, 4), "1/10"),
]


def divergence(part: Part, order: float) -> float:
    """From the two output laws, the larger direction."""
    pairs = [truth.outputs(part), truth.outputs(part.reverse())]
    logs = [order * np.log(p) + (1 - order) * np.log(q) for p, q in pairs]
    return max(float(np.logaddexp.reduce(each)) for each in logs) / (order - 1)


@pytest.mark.parametrize("part", LISTED, ids=str)
@pytest.mark.parametrize("order", [1.5, 2.0, 8.0])
def test_divergences_are_those_of_the_output_laws_from_above(part: Part, order: float) -> None:
    exact, found = divergence(part, order), float(Curve.of(part, 3).renyi(order))
    assert 3 * exact * (1 - 1e-9) <= found <= 3 * exact * (1 + 1e-9)
    assert not 3 * exact * (1 - 1e-9) <= found * (1 - 1e-6)  # the twin: a millionth less is below the truth


@pytest.mark.parametrize("order", [2, 3, 8, 32])
def test_subsampled_gaussian_divergences_at_whole_orders_are_binomial_sums(order: int) -> None:
    q, sigma = 0.01, 1.0
    logs = [
        math.lgamma(order + 1) - math.lgamma(j + 1) - math.lgamma(order - j + 1)
        + (order - j) * math.log(1 - q) + j * math.log(q) + j * (j - 1) / (2 * sigma**2)
        for j in range(order + 1)
    ]  # fmt: skip
    exact = float(np.logaddexp.reduce(logs)) / (order - 1)
    assert float(Curve.of(parts.SubsampledGaussian("0.01", 1)).renyi(order)) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_prices_by_orders_are_never_below_the_curve(part: Part) -> None:
    curve = Curve.of(part, 3)
    assert curve.epsilon("1e-6") <= curve.renyi_epsilon("1e-6", [2, 4, 8, 16, 32])
    for order in ("1.1", 2, 32):
        assert curve.renyi(order) <= curve.zcdp().rho * Fraction(order)


def test_a_dp_sgd_run_has_the_price_that_papers_print() -> None:
    # Renyi accounting of q = 0.01, sigma = 1, 1000 steps at 1e-6; the curve itself is 13 % below.
    curve = Curve.of(parts.SubsampledGaussian("0.01", 1), 1000)
    found = float(curve.renyi_epsilon("1e-6"))
    assert 2.40 < found < 2.45
    assert float(curve.epsilon("1e-6")) < found / 1.12


def test_gaussian_orders_reach_the_optimal_conversion_of_zcdp() -> None:
    curve, rho = Curve.of(parts.Gaussian("1/100"), 10), Fraction(1, 20)
    orders = [1 + Fraction(k, 10) for k in range(1, 400)]
    assert curve.renyi_epsilon("1e-6", orders) == pytest.approx(epsilon_of_zcdp(rho, Fraction(1, 10**6)), rel=1e-5)


def test_orders_that_mean_nothing_are_refused() -> None:
    curve = Curve.of(parts.Gaussian(1))
    for order in (1, 0, -2, "nan", "1e9"):
        with pytest.raises(ArgumentError, match="order"):
            curve.renyi(order)
    with pytest.raises(ArgumentError, match="orders"):
        curve.renyi_epsilon("1e-6", [])
    with pytest.raises(PriceError, match="Renyi"):
        Curve.of(parts.Response(1, "1e-9")).renyi(2)
