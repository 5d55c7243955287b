"""Balls always contain the true value, comparisons never guess, and each of them ends."""

from __future__ import annotations

import threading
from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from dither.exact import balls
from dither.exact.samplers.buckets import _smooth, direct, total

rationals = st.fractions(min_value=-(10**6), max_value=10**6, max_denominator=10**9)


@given(x=rationals, bits=st.integers(8, 200))
def test_below_and_above_enclose_tightly(x: Fraction, bits: int) -> None:
    low, high = balls.below(lambda: balls.ball(x), bits), balls.above(lambda: balls.ball(x), bits)
    assert low <= x <= high
    assert high - low <= abs(x) * Fraction(8, 2**bits) + (Fraction(2, 2**bits) if x == 0 else 0)


@given(x=rationals, shift=st.integers(0, 100))
def test_floor_near_is_the_floor_or_one_less(x: Fraction, shift: int) -> None:
    scaled = x * 2**shift
    assert (scaled - 1 - Fraction(1, 2**16)) < balls.floor_near(lambda: balls.ball(x), shift) <= scaled


def test_a_real_on_the_grid_whose_ball_is_not_exact_ends() -> None:
    one = lambda: balls.ball(Fraction(1, 3)) * 3  # noqa: E731
    assert balls.below(one) <= 1 <= balls.above(one)
    assert balls.floor_near(one, 64) in (2**64 - 1, 2**64)
    with pytest.raises(ArithmeticError):
        balls.floor_scaled(one, 8)
    with pytest.raises(ArithmeticError):
        balls.less(one, lambda: balls.ball(1))
    assert not balls.certainly_at_most(one, Fraction(1))


def test_comparisons_decide_what_differs_late() -> None:
    tiny = Fraction(1, 2**1500)
    assert balls.less(lambda: balls.exp(1), lambda: balls.exp(1) + balls.ball(tiny))
    assert not balls.less(lambda: balls.exp(1) + balls.ball(tiny), lambda: balls.exp(1))
    assert balls.certainly_at_most(lambda: balls.ball(1), Fraction(1))


def test_precision_is_restored_and_not_shared_between_threads() -> None:
    before, seen = ctx.prec, []

    def other() -> None:
        with balls.working(3000):
            seen.append(ctx.prec)

    with balls.working(500):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(0.05)
        assert balls.precision() == 500
    thread.join()
    assert seen == [3000]
    assert ctx.prec == before


@pytest.mark.parametrize("variance", [Fraction(30), Fraction(1001, 7), Fraction(2500)])
@pytest.mark.parametrize("first", [0, 1, 20, 37])
def test_both_ways_of_summing_a_bell_agree(variance: Fraction, first: int) -> None:
    with balls.working(300):
        slow, fast = direct(1 / (2 * variance), first, 300), _smooth(variance, first, 260)
        assert slow.overlaps(fast)
        assert (slow - fast).rad() < arb(2) ** -180
        wrong = direct(1 / (2 * (variance + Fraction(1, 10**6))), first, 300)
        assert not wrong.overlaps(fast)


@pytest.mark.parametrize("variance", [Fraction(1, 100), Fraction(1, 6), Fraction(1, 5), Fraction(3), Fraction(100)])
def test_the_normaliser_is_the_sum_of_all_terms(variance: Fraction) -> None:
    with balls.working(200):
        slow = 2 * direct(1 / (2 * variance), 0, 200) - 1
        assert slow.overlaps(total(variance))
        assert (slow - total(variance)).rad() < arb(2) ** -160
