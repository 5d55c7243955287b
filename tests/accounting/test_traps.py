"""Known ways for an accountant to report too little, each built on purpose and caught."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from accounting import truth
from dither.exact.balls import lower, upper, working
from dither.privacy import parts
from dither.privacy.accountant.contour import Contour
from dither.privacy.accountant.evaluators import Plan
from dither.privacy.accountant.lattice import Lattice
from dither.privacy.losses import Curve

TEN = ((parts.Response("1/2"), 10),)
AT = Fraction(13, 10)


def truth_of_ten() -> arb:
    with working(200):
        return truth.delta(truth.composed(TEN), AT)


def test_the_lattice_integral_is_above_the_listing_by_a_hair() -> None:
    plan = Plan(TEN)
    with working(200):
        lattice = Lattice(plan.whole, plan.guide, float(AT), math.log(0.05))
        lattice.choose()
        lattice.prepare()
        found = lattice(AT)
    exact = truth_of_ten()
    assert lower(exact) <= upper(found) <= upper(exact) * (1 + Fraction(1, 10**6))


def truncated(plan: Plan, reach: float) -> float:
    """The integral over |t| <= reach, as if the law had a density: the trap."""
    c, step = plan.guide.order(float(AT)), 1e-3
    t = np.arange(-reach, reach, step)
    z = c + 1j * t
    values = np.exp(plan.whole.log(z) - z * float(AT)) / (z * (z + 1))
    return float(values.sum().real * step / (2 * math.pi))


def test_a_truncated_integral_of_a_lattice_law_comes_out_below_the_truth() -> None:
    exact = float(truth_of_ten())
    found = [truncated(Plan(TEN), reach) for reach in (3.0, 5.0, 12.0, 20.0)]
    assert min(found) < exact * (1 - 1e-3)


def test_dropping_the_bound_of_what_was_left_out_is_noticed() -> None:
    # Smoothing with the tail's bound stays above; cutting the same sum short without it can go below.
    plan = Plan(TEN)
    exact = truth_of_ten()
    with working(200):
        contour = Contour(plan.whole, None, plan.guide, float(AT), math.log(0.05), smooth=True)
        contour.prepare()
        assert lower(contour(AT)) >= lower(exact)
        contour.bound = arb(0)
        below = []
        for kept in (5, 8, 12, 20, 30):
            contour.nodes_in_balls = contour.nodes_in_balls[: max(kept, 1)]
            below.append(contour(AT) < exact)
            contour.prepare()
            contour.bound = arb(0)
    assert any(below)


@pytest.mark.parametrize("part", [parts.Response("1/2"), parts.DiscreteLaplace("1/2", 3), parts.Laplace("1/2")], ids=str)
def test_rounding_the_price_down_is_detected(part: parts.Part) -> None:
    delta = Fraction(1, 1000)
    curve = Curve.of(part, 4)
    optimistic = curve.epsilon(delta) * (1 - Fraction(1, 10**4))
    assert truth.merged_delta(curve.parts, 40, float(optimistic)) > float(delta) * (1 - 2e-3)
    assert curve.delta(optimistic) > delta


def test_a_bounded_range_release_is_not_a_plain_pure_one() -> None:
    # Charging permute-and-flip (pure only) as bounded range would be below the truth.
    credit = Curve.of(parts.BoundedRange("0.1"), 100).epsilon("1e-6")
    plain = Curve.of(parts.Response("0.1"), 100).epsilon("1e-6")
    assert credit < plain / 2


def test_composition_is_not_priced_as_one_release() -> None:
    assert Curve.of(parts.Response("1.0986"), 100).epsilon("1e-6") > 80
