"""Converts between kinds of loss. Each formula is evaluated in balls and rounded up, so that no price is too small.

zCDP to (epsilon, delta), for any order a > 1 (so the best a is searched in floats, and the result certified in balls):

    delta   = exp((a - 1)(a rho - epsilon)) / (a - 1) * (1 - 1/a)^a
    epsilon = a rho + (ln(1/delta) + (a - 1) ln(1 - 1/a) - ln a) / (a - 1)

References: Canonne, Kamath and Steinke, NeurIPS 2020, proposition 12; Kairouz, Oh and Viswanath, ICML 2015
(every (epsilon, delta)-DP release is a function of one randomized response that fails openly with probability delta).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from flint import arb

from dither.exact.balls import ball, exp, upper, working

BITS = 192
_LEAST = -20_000  # a smaller delta is reported as 2^-20000: still an upper bound, and a short rational
_FAR = 1e290  # cuts floats that only guide a search
_CLOSE = Fraction(1, 10**9)  # the assumed relative error of a guess in floats; it is checked
_STEPS = 40  # of the search for the largest rho
_HALVINGS = 256  # a rho smaller than this gives would be below 1/GRID of any budget (filters.py): it is 0


def round_up(value: Fraction, bits: int = 64) -> Fraction:
    """Returns the smallest rational with about `bits` significant bits that is not below `value` (exact if it is short)."""
    if value <= 0:
        return Fraction(0)
    shift = bits - (value.numerator.bit_length() - value.denominator.bit_length())
    if shift <= 0:
        return Fraction(math.ceil(value))
    scaled = value * (1 << shift)
    return value if scaled.denominator == 1 else Fraction(math.ceil(scaled), 1 << shift)


def delta_above(x: arb) -> Fraction:
    """Returns a short rational that is not below the delta inside this ball, at most 1."""
    if x.is_zero():
        return Fraction(0)
    if not x < 1:
        return Fraction(1)
    return Fraction(1, 1 << -_LEAST) if x < arb(2) ** _LEAST else min(round_up(upper(x)), Fraction(1))


def _least(cost: Callable[[float], float]) -> float:
    """Returns the ln(a - 1) with the least cost, by golden section: the cost falls and then rises."""
    low, high, golden = -60.0, 60.0, (math.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = cost(left), cost(right)
    for _ in range(80):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = cost(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = cost(right)
    return (low + high) / 2


def _order_terms(s: float) -> tuple[float, float]:
    """Returns (b, b ln(b) - (b + 1) ln(b + 1)) for b = a - 1 = e^s, without cancellation."""
    b = math.exp(s)
    return b, -b * math.log1p(math.exp(-s)) - math.log1p(b)


def epsilon_of_zcdp(rho: Fraction, delta: Fraction) -> Fraction:
    """Returns the smallest epsilon that the conversion gives at a delta in (0, 1), rounded up."""
    if delta >= 1 or rho == 0:
        return Fraction(0)
    with working(BITS):
        price = -ball(delta).log()
        r, known = min(float(ball(rho)), _FAR), float(price)

        def cost(s: float) -> float:
            b, terms = _order_terms(s)
            return (b + 1) * r + (known + terms) / b

        b = ball(Fraction(math.exp(_least(cost))))
        epsilon = (b + 1) * ball(rho) + (price + b * b.log() - (b + 1) * (b + 1).log()) / b
        return round_up(max(upper(epsilon), Fraction(0)))


def epsilon_of_renyi(order: Fraction, divergence: Fraction, delta: Fraction) -> Fraction:
    """Returns the epsilon at a delta in (0, 1) that a Renyi divergence of one order a > 1 gives, rounded up.

    epsilon = divergence + (ln(1/delta) + (a - 1) ln(1 - 1/a) - ln a) / (a - 1)
    """
    with working(BITS):
        a = ball(order)
        extra = (-ball(delta).log() + (a - 1) * (1 - 1 / a).log() - a.log()) / (a - 1)
        return round_up(max(upper(ball(divergence) + extra), Fraction(0)))


def delta_of_zcdp(rho: Fraction, epsilon: Fraction) -> Fraction:
    """Returns the smallest delta that the conversion gives at an epsilon, rounded up, at most 1."""
    if rho == 0:
        return Fraction(0)
    with working(BITS):
        r, e = min(float(ball(rho)), _FAR), min(float(ball(epsilon)), _FAR)

        def cost(s: float) -> float:
            b, terms = _order_terms(s)
            return b * ((b + 1) * r - e) + terms

        b = ball(Fraction(math.exp(_least(cost))))
        log_delta = b * ((b + 1) * ball(rho) - ball(epsilon)) + b * b.log() - (b + 1) * (b + 1).log()
        return delta_above(log_delta.exp())


@lru_cache(maxsize=256)
def largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Returns the largest rho of seven digits that is (epsilon, delta)-DP by the certified conversion, or 0 if none is.

    The planner, the mechanisms and the budget all use it. Ledgers store it, so its values must never change.

    >>> largest_rho(Fraction(1), Fraction("1e-6"))
    Fraction(2435597, 100000000)
    """
    guess = _guessed_rho(epsilon, delta)
    near = guess * (1 - _CLOSE), guess * (1 + _CLOSE)
    if _shortened(near[0]) == _shortened(near[1]) and delta_of_zcdp(near[0], epsilon) <= delta < delta_of_zcdp(
        near[1], epsilon
    ):
        return _shortened(near[0])
    return _shortened(_searched_rho(epsilon, delta))


def _guessed_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Solves the conversion for rho in floats: (epsilon - (ln(1/delta) + ...) / (a - 1)) / a at its best order."""
    with working(BITS):
        e, known = min(float(ball(epsilon)), _FAR), -float(ball(delta).log())

    def negated(s: float) -> float:
        b, terms = _order_terms(s)
        return ((known + terms) / b - e) / (b + 1)

    return max(Fraction(-negated(_least(negated))), Fraction(0))


def _searched_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Returns rho by bisection on the certified conversion, where the guess in floats is not certain."""
    low, high = Fraction(0), max(epsilon, Fraction(1))
    while delta_of_zcdp(high, epsilon) <= delta:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        if low:
            break
        low, high = (high / 2, high) if delta_of_zcdp(high / 2, epsilon) <= delta else (Fraction(0), high / 2)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of_zcdp(middle, epsilon) <= delta else (low, middle)
    return low


def _shortened(value: Fraction) -> Fraction:
    """Rounds down to seven decimal digits, so that a four-hundredth of it is on the grid of filters.py."""
    digits = 7
    while value and value * 10**digits < 10**6:
        digits += 1
    return Fraction(math.floor(value * 10**digits), 10**digits)


def epsilon_of_response(epsilon: Fraction, delta: Fraction, allowed: Fraction) -> Fraction:
    """Returns the exact epsilon at `allowed` >= delta of one (epsilon, delta)-DP release, rounded up.

    delta(e) = delta + (1 - delta)(e^epsilon - e^e) / (1 + e^epsilon) solved for e.
    """
    if allowed == delta or epsilon == 0:
        return epsilon
    if delta == 1 or allowed >= 1:
        return Fraction(0)
    spare = (allowed - delta) / (1 - delta)
    with working(BITS):
        # e^e = e^epsilon (1 - spare (1 + e^-epsilon)); the logarithm form stays accurate for any epsilon.
        factor = 1 - ball(spare) * (1 + exp(-epsilon))
        if not factor > 0:
            return Fraction(0) if factor < 0 or epsilon < 1 else epsilon
        exact = upper(ball(epsilon) + factor.log())
    return min(round_up(max(exact, Fraction(0))), epsilon)


def delta_of_response(epsilon: Fraction, delta: Fraction, at: Fraction) -> Fraction:
    """Returns the exact delta at epsilon `at` of one (epsilon, delta)-DP release, rounded up."""
    if at >= epsilon:
        return delta
    with working(BITS):
        response = -ball(at - epsilon).expm1() / (1 + exp(-epsilon))
        return delta_above(ball(delta) + (1 - ball(delta)) * response)


def group_delta(epsilon: Fraction, delta: Fraction, size: int) -> Fraction:
    """Returns delta (e^{k epsilon} - 1) / (e^epsilon - 1), the delta of a group of k, rounded up, at most 1."""
    if delta == 0 or epsilon == 0:
        return min(delta * size, Fraction(1))
    if size * epsilon > 10_000:
        return Fraction(1)
    with working(BITS):
        grown = ball(delta) * (ball(size * epsilon).expm1() / ball(epsilon).expm1())
        return delta_above(grown)
