"""Computes exact confidence bounds for a counted probability, and for the epsilon between two of them.

    Clopper–Pearson: after k of n trials, p is at least the p for which Pr[Bin(n, p) >= k] = error.
    That tail is the regularised incomplete beta function I_p(k, n - k + 1).

Its logarithm is concave in p, so Newton's tangent meets the target level left of the root: from the second step on every
iterate is a valid bound. The tail is computed in floats; the last iterate is confirmed by ball arithmetic and
moved outwards until the ball lies on the safe side, so that no rounding can make a bound too good.
Reference: Clopper and Pearson, Biometrika 1934; the continued fraction is DLMF 8.17.22.
"""

from __future__ import annotations

import math

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from dither.errors import ArgumentError

Floats = NDArray[np.float64]
_TINY = 1e-300


def lower(successes: int, trials: int, error: float) -> float:
    """Returns a bound that is at most the true probability, except with probability `error`.

    >>> round(lower(8, 10, 0.05), 6), lower(0, 10, 0.05)
    (0.493099, 0.0)
    """
    _check(successes, trials, error)
    if successes == 0:
        return 0.0
    if successes == trials:  # the tail is p^n
        return _outwards(math.exp(math.log(error) / trials), successes, trials, error)
    goal, at = math.log(error), _start(successes, trials, error)
    for _ in range(100):
        tail, slope = _log_tail(at, successes, trials)
        step = (goal - tail) / slope
        new = at + step if at + step > 0 else at / 2
        if abs(new - at) <= 1e-13 * at:
            break
        at = min(new, 1 - 1e-16)
    return _outwards(at, successes, trials, error)


def upper(successes: int, trials: int, error: float) -> float:
    """Returns a bound that is at least the true probability, except with probability `error`.

    >>> round(upper(0, 100, 0.05), 6)
    0.029513
    """
    bound = 1.0 - lower(trials - successes, trials, error)
    return min(1.0, math.nextafter(bound, 2.0))  # the subtraction rounds; upwards is the safe side


def bounds(seen: tuple[int, int], other: tuple[int, int], delta: float, error: float) -> tuple[float, float]:
    """Returns lower bounds of epsilon and the advantage if an event held `seen` = (k, n) times on D and `other` on D'.

    The advantage of the event over guessing is true positives less false positives. Each of the two probabilities takes half
    the error, and both results use the same two bounds. Zero if nothing is shown.

    >>> [round(bound, 4) for bound in bounds((900, 1000), (0, 1000), 0.0, 0.05)]
    [5.4761, 0.876]
    """
    low, high = lower(*seen, error / 2), upper(*other, error / 2)
    epsilon = max(0.0, math.log((low - delta) / high)) if low > delta else 0.0
    return epsilon, max(0.0, low - high)


def tail_above(p: float, successes: int, trials: int) -> float:
    """Returns Pr[Bin(trials, p) >= successes], in floats: to describe an audit, never for a verdict.

    >>> round(tail_above(0.5, 1, 2), 12)
    0.75
    """
    if successes <= 0:
        return 1.0
    return math.exp(min(0.0, _log_tail(min(max(p, 1e-300), 1 - 1e-16), successes, trials)[0]))


def wilson(successes: Floats, trials: float, z: float) -> tuple[Floats, Floats]:
    """Returns quick approximate bounds for ranking candidates; never for a verdict."""
    share, more = successes / trials, z * z / trials
    middle = (share + more / 2) / (1 + more)
    half = np.sqrt(np.maximum(share * (1 - share) * more + more * more / 4, 0.0)) / (1 + more)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def _check(successes: int, trials: int, error: float) -> None:
    if not (0 <= successes <= trials and trials > 0 and 0 < error < 1):
        what = f"a bound needs 0 <= successes <= trials, trials > 0 and 0 < error < 1: {successes}, {trials}, {error}."
        raise ArgumentError(what, fix="count the event on at least one output.")


def _start(successes: int, trials: int, error: float) -> float:
    z = math.sqrt(-2 * math.log(error))
    low, _ = wilson(np.array([float(successes)]), trials, z)
    return float(min(max(low[0], 1e-12 / trials), 1 - 1e-16))


def _log_tail(at: float, successes: int, trials: int) -> tuple[float, float]:
    """Returns log I_at(k, n - k + 1) and its slope."""
    a, b = float(successes), float(trials - successes + 1)
    density = a * math.log(at) + b * math.log1p(-at) - (math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b))
    if at < (a + 1) / (a + b + 2):
        tail = density - math.log(a) + math.log(_fraction(a, b, at))
    else:
        tail = math.log1p(-min(math.exp(density) / b * _fraction(b, a, 1 - at), 1 - 1e-16))
    return tail, math.exp(density - math.log(at) - math.log1p(-at) - tail)


def _fraction(a: float, b: float, x: float) -> float:
    """Evaluates the continued fraction of the incomplete beta function by Lentz's method."""
    c, d = 1.0, 1.0 / _nonzero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 100_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1 / _nonzero(1 + even * d), _nonzero(1 + even / c)
        value *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1 / _nonzero(1 + odd * d), _nonzero(1 + odd / c)
        value *= d * c
        if abs(d * c - 1) < 1e-14:
            break
    return value


def _nonzero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _outwards(at: float, successes: int, trials: int, error: float) -> float:
    """Moves `at` down until ball arithmetic shows that its tail is at most `error`."""
    step = 1e-13
    while at > 0:
        before = ctx.prec
        ctx.prec = 96
        try:
            tail = arb(at).beta_lower(arb(successes), arb(trials - successes + 1), True)
        finally:
            ctx.prec = before
        if bool(tail <= arb(error)):
            return at
        at, step = (at * (1 - step), step * 8) if step < 0.5 else (0.0, step)
    return 0.0
