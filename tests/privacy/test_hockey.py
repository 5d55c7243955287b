"""The certified delta between two laws: equal to the sum over all outputs, at any scale, for sets and point by point."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

import dither as dt
from dither.errors import ArgumentError
from dither.exact import balls
from dither.exact.laws.base import Law
from dither.exact.laws.categorical import Categorical
from dither.exact.laws.coins import Coin
from dither.exact.laws.derived import Clamped, Finite, Moved
from dither.exact.laws.gaussian import Gaussian
from dither.exact.laws.geometric import Cut, OneSided, TwoSided
from dither.exact.laws.mixture import Mixture
from dither.mechanisms import registry
from dither.privacy.hockey import hockey_stick
from dither.privacy.losses import Approx
from laws.exactly import BITS, spill, window

PAIRS: list[tuple[Law, Law]] = [
    (TwoSided(3), Moved(TwoSided(3), 1)),
    (TwoSided(3), Moved(TwoSided(3), -7)),
    (TwoSided(2), TwoSided(3)),
    (OneSided(4), Moved(OneSided(4), 2)),
    (Cut(2, 9), Moved(Cut(2, 9), 3)),
    (Gaussian(9), Moved(Gaussian(9), 2)),
    (Gaussian(9), Gaussian(4)),
    (Gaussian(4), Gaussian(9)),
    (Clamped(TwoSided(2), -3, 3), Clamped(Moved(TwoSided(2), 1), -3, 3)),
    (Categorical((0, 1, Fraction(1, 2))), Categorical((1, 0, 0))),
    (Coin(1), Coin("1/2")),
    (Finite((lambda: arb(1), lambda: arb(0))), Categorical((0, 0))),
]
EPSILONS = [Fraction(0), Fraction(1, 7), Fraction(1, 3), Fraction(1), Fraction(5, 2)]


def agrees(x: Law, y: Law, epsilon: Fraction, wrong: Fraction = Fraction(0)) -> bool:
    """Whether the sum over all outputs lies within the certified bounds of delta, and the bounds are close."""
    found = hockey_stick(x, y, epsilon + wrong)
    with balls.working(BITS):
        listed = spill(x, y, epsilon)
        slack = balls.ball(Fraction(1, 1 << 70))  # what the window of the listed sum leaves out
        near = balls.ball(found.low) - slack <= listed <= balls.ball(found.high) + slack
    return bool(near) and found.high - found.low < Fraction(1, 1 << 300)


@pytest.mark.parametrize(("x", "y"), PAIRS, ids=[f"{type(x).__name__}-{i}" for i, (x, _) in enumerate(PAIRS)])
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_delta_is_the_sum_over_all_outputs(x: Law, y: Law, epsilon: Fraction) -> None:
    assert agrees(x, y, epsilon)
    assert agrees(y, x, epsilon)


def test_that_check_sees_another_epsilon() -> None:
    assert not agrees(TwoSided(3), Moved(TwoSided(3), 7), Fraction(1), wrong=Fraction(1, 1000))


@settings(max_examples=30, deadline=None)
@given(shift=st.integers(-6, 6), variance=st.fractions(1, 30), other=st.fractions(1, 30), epsilon=st.fractions(0, 3))
def test_delta_of_two_bells_is_the_sum_over_all_outputs(
    shift: int, variance: Fraction, other: Fraction, epsilon: Fraction
) -> None:
    assert agrees(Gaussian(variance), Moved(Gaussian(other), shift), epsilon)


def pointwise(x: Law, y: Law, epsilon: Fraction) -> arb:
    with balls.working(BITS):
        factor = balls.exp(epsilon)
        return sum((x.pmf(k) for k in window(x, y) if x.pmf(k) > factor * y.pmf(k)), arb(0))


@pytest.mark.parametrize(("x", "y"), PAIRS[:8], ids=[f"{type(x).__name__}-{i}" for i, (x, _) in enumerate(PAIRS[:8])])
def test_the_pointwise_delta_is_how_often_the_ratio_is_exceeded(x: Law, y: Law) -> None:
    epsilon = Fraction(1, 7)
    found = hockey_stick(x, y, epsilon)
    with balls.working(BITS):
        assert abs(balls.ball(found.pointwise) - pointwise(x, y, epsilon)) < arb(2) ** -70
    assert found.high <= found.pointwise


def test_the_time_does_not_grow_with_the_scale() -> None:
    """A window over all outputs would have 10^14 of them; the delta of continuous noise is 1 - e^((epsilon - 1) / 2)."""
    noise = dt.Geometric(epsilon=1, sensitivity=10**11)
    found = dt.verify(noise, [(0, 10**11)], "1/2", delta="1/2")
    assert Fraction(22119, 100_000) < found.at_least <= found.worst < Fraction(22120, 100_000)


# --- dt.verify with a delta -------------------------------------------------------------------------------------

APPROXIMATE = [
    example
    for kind in registry()
    if kind.__module__.startswith("dither.")
    for example in kind.examples()
    if isinstance(example.mechanism.loss(), Approx)
]


@pytest.mark.parametrize("example", APPROXIMATE, ids=lambda e: type(e.mechanism).__name__)
def test_every_mechanism_with_a_delta_keeps_it(example: object) -> None:
    mechanism, pairs = example.mechanism, [(example.exact, other) for other in example.neighbours]  # type: ignore[attr-defined]
    epsilon, delta = mechanism.loss().pair()
    assert dt.verify(mechanism, pairs, epsilon, delta=delta).holds


def test_a_delta_ten_percent_short_is_seen() -> None:
    noise = dt.Gaussian(epsilon=1, delta="1e-5", sensitivity=1)
    assert dt.verify(noise, [(0, 1)], 1, delta="1e-5").holds
    assert not dt.verify(noise, [(0, 1)], "0.9", delta="1e-5").holds
    assert not dt.verify(noise, [(0, 1)], 1, delta="0.9e-5").holds


def test_both_directions_are_checked() -> None:
    class OneWay:
        def loss(self) -> dt.Pure:
            return dt.Pure(1)

        def law(self, exact: int) -> Law:
            return Coin("1/100" if exact else 0)

    for pair in ((0, 1), (1, 0)):
        found = dt.verify(OneWay(), [pair], 5, delta="1/1000")
        assert not found.holds
        assert found.pair == (1, 0)  # an output that only 1 gives; the other way round nothing exceeds e^5
        assert dt.verify(OneWay(), [pair], 5, delta="1/100").holds


def test_sets_and_points_differ() -> None:
    """A coin of 50.5 %: no set of outputs shifts by more than 1 %, and every second output has a ratio above e^0."""
    coin = dt.RandomizedResponse(p="0.505")
    found = dt.verify(coin, [(0, 1)], 0, delta="0.01")
    assert found.holds
    assert found.worst - Fraction(1, 100) < Fraction(1, 1 << 400)
    assert abs(found.pointwise - Fraction(505, 1000)) < Fraction(1, 1 << 400)
    assert "0.01 for sets of outputs, 0.505 point by point: the claim holds" in str(found)


def test_points_imply_sets() -> None:
    for x, y in PAIRS:
        for epsilon in EPSILONS:
            assert hockey_stick(x, y, epsilon).high <= hockey_stick(x, y, epsilon).pointwise


def test_a_profile_falls_and_stays_below_the_stated_curve() -> None:
    noise = dt.Gaussian(epsilon=1, delta="1e-5", sensitivity=1)
    found = dt.profile(noise, [(0, 1)], ["0", "1/2", 1, "3/2", 2])
    assert [each.worst for each in found] == sorted((each.worst for each in found), reverse=True)
    assert all(each.holds and each.worst < each.pointwise for each in found)
    assert found[2].worst <= Fraction("1e-5") < found[1].worst
    with pytest.raises(ArgumentError, match="epsilons"):
        dt.profile(noise, [(0, 1)], [])


def test_mixtures_with_different_tails_are_gone_through() -> None:
    """Sampled Gaussian noise: its members' tails differ, so there is no finite list of segments."""
    gaussian = Gaussian(4)
    moved = Moved(gaussian, 3)
    mixed = Mixture((Fraction(3, 4), Fraction(1, 4)), (gaussian, moved))
    for epsilon in (Fraction(0), Fraction(1, 5)):
        found = [hockey_stick(mixed, gaussian, epsilon), hockey_stick(gaussian, mixed, epsilon)]
        with balls.working(128):
            for (x, y), each in zip(((mixed, gaussian), (gaussian, mixed)), found, strict=True):
                exact = sum(max(float(x.pmf(k)) - math.exp(epsilon) * float(y.pmf(k)), 0.0) for k in range(-60, 61))
                assert float(each.low) == pytest.approx(exact, rel=1e-9)
                assert each.low <= each.high <= each.low + Fraction(1, 1 << 400)
    with pytest.raises(ArgumentError, match="spread"):
        hockey_stick(
            Mixture((Fraction(1, 2), Fraction(1, 2)), (Gaussian(10**12), Moved(Gaussian(10**12), 1))), gaussian, Fraction(1)
        )
