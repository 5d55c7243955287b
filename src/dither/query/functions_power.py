"""Powers: the one numeric function whose domain has corners enough to deserve its own page."""

from __future__ import annotations

import math
from fractions import Fraction

from dither.query.facts import Bound, Facts, as_doubles, double, widened
from dither.query.function import any_nullable, numeric


def power(x: int | float, y: int | float) -> float | None:
    """x to the y in doubles. NULL for a negative x with a fractional y, and for zero to a negative power.

    >>> power(2, 10), power(0, -1), power(-8, 0.5), power(-10, 309)
    (1024.0, None, None, -inf)
    """
    base, exponent = double(x), double(y)
    if base == 0 and exponent < 0:
        return None
    if base < 0 and math.isfinite(exponent) and exponent != math.trunc(exponent):
        return None
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and math.fmod(exponent, 2) != 0 else math.inf
    except ValueError:
        return None


def _infer(a: list[Facts]) -> Facts:
    x, y = a
    below = x.low is None or x.low < 0
    nullable = any_nullable(a) or (below and not y.whole) or (x.may_be(0) and (y.low is None or y.low < 0))
    whole = x.whole and y.whole and y.low is not None and y.low >= 0
    return Facts("real", *_interval(as_doubles(x), as_doubles(y)), nullable, whole, None, Fraction(1) if whole else None)


def _interval(x: tuple[Bound, Bound], y: tuple[Bound, Bound]) -> tuple[Bound, Bound]:
    even = y[0] is not None and y[0] == y[1] and y[0] % 2 == 0
    sign_only = (Fraction(0) if even or (x[0] is not None and x[0] >= 0) else None, None)
    if x[0] is None or x[1] is None or y[0] is None or y[1] is None or (x[0] <= 0 and y[0] < 0):
        return sign_only
    if x[0] < 0:
        # |x^y| <= max(|x|, 1)^max(y): generous, but right for odd and even powers alike.
        top = power(double(max(-x[0], x[1], Fraction(1))), double(y[1]))
        low, high = widened(None if top is None else -top, top)
        return (Fraction(0) if even else low), high
    # x >= 0: x^y is monotone in each of the two, so the corners are the extremes.
    corners = [power(double(base), double(exponent)) for base in (x[0], x[1]) for exponent in (y[0], y[1])]
    found = [corner for corner in corners if corner is not None]
    if len(found) < len(corners):
        return sign_only
    low, high = widened(min(found), max(found))
    return max(low or Fraction(0), Fraction(0)), high


POWER = numeric("power", 2, power, _infer, "x to the y in doubles; NULL if x < 0 with a fractional y, or x = 0 with y < 0")
