"""Budget view and epsilon view: a filter fixes the total first, an odometer reads it off afterwards. With a delta they differ.

One private bit is asked again and again by randomized response at epsilon 1/2, at most forty times. The log ratio of the
answers so far is a walk in steps of 1/2, and an analyst may stop whenever it suits. Both views are computed exactly, over
all stopping rules at once: V = max over rules of Pr[stop, with the bit] - e^(limit) Pr[stop, without], by backward induction
in balls. A statement "epsilon <= limit, except with probability delta, when I stop" is true if and only if V <= delta.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from flint import arb

import dither as dt
from dither.exact import balls

EACH, TIMES, DELTA = Fraction(1, 2), 40, Fraction(1, 100)
BITS = 160


@lru_cache
def price(times: int) -> Fraction:
    """The best epsilon of that many releases, fixed in advance, at delta 1/100: certified, and rounded up."""
    return dt.Pure(EACH).curve().repeat(times).epsilon(DELTA)


def exceeded(limit: Callable[[int], Fraction]) -> arb:
    """V: the most by which a stopping analyst exceeds the limit that is stated for the number of answers so far."""
    with balls.working(BITS):
        rises = 1 / (1 + balls.exp(EACH))  # under the table without the bit
        values = {level: _gain(level, limit(TIMES)) for level in range(-TIMES, TIMES + 1)}
        for k in reversed(range(TIMES)):
            ahead = {level: rises * values[level + 1] + (1 - rises) * values[level - 1] for level in range(-k, k + 1)}
            values = {level: each.max(_gain(level, limit(k))) if k else each for level, each in ahead.items()}
        return values[0]


def _gain(level: int, limit: Fraction) -> arb:
    return balls.exp(level * EACH) - balls.exp(limit) if level * EACH > limit else arb(0)


def test_the_budget_view_holds_for_every_stopping_rule() -> None:
    """A total fixed before the first answer: stopping early is post-processing of all forty answers."""
    assert exceeded(lambda k: price(TIMES)) <= balls.ball(DELTA)


def test_the_epsilon_view_does_not() -> None:
    """The same bound, read off at the moment the analyst chooses, fails three times as often as it says."""
    assert all(price(k) <= price(k + 1) for k in range(1, TIMES))
    assert exceeded(lambda k: price(max(k, 1))) > balls.ball(3 * DELTA)


def test_each_single_reading_is_true() -> None:
    """So no number is wrong: only the moment at which it is read is."""
    for k in (1, 5, TIMES):
        assert dt.Pure(EACH).curve().repeat(k).delta(price(k)) <= DELTA * (1 + Fraction(1, 10**6))


def test_the_odometer_of_the_package_holds_at_every_moment() -> None:
    """It states the plain sum, which no walk exceeds: that is why it does not use the curve."""
    meter, stated = dt.Odometer(), [Fraction(0)]
    for _ in range(TIMES):
        assert meter.try_spend(dt.Pure(EACH))
        stated.append(meter.spent.epsilon())
    assert stated == [EACH * k for k in range(TIMES + 1)]
    assert exceeded(lambda k: stated[k]).is_zero()


def test_without_a_delta_the_two_views_are_one() -> None:
    """A pure filter admits exactly as long as the odometer reads no more than its budget."""
    budget, meter = dt.PureFilter(3), dt.Odometer()
    for epsilon in map(Fraction, ("1", "1/2", "5/4", "1/4", "1/100")):
        fits = meter.spent.epsilon() + epsilon <= 3
        assert budget.try_spend(dt.Pure(epsilon)) == fits
        if fits:
            meter.try_spend(dt.Pure(epsilon))
        assert budget.spent == meter.spent
