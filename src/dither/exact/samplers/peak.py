"""Chooses a place on a straight rise and fall, exactly, for any number of places.

    Pr[u] proportional to exp(-rate |start + slope u|)        u = 0, ..., count - 1, whole numbers, slope >= 0

Left of the peak lie the n places with start + slope u <= 0, right of it the other m. With r = exp(-rate slope), x and y the
exponents of the two places next to the peak,

    Pr[left] = e^-x (1 - r^n) / (e^-x (1 - r^n) + e^-y (1 - r^m))

which one comparison of a uniform real with a ball decides. On either side the distance g from the place next to the peak
has Pr[g] proportional to r^g below n (or m): that of a geometric number modulo n. A geometric number of ratio e^-c is drawn as
v + s j (Canonne, Kamath and Steinke, NeurIPS 2020): s = ceil(1/c), v uniform below s and kept with probability e^-cv, j the
number of successes in a row of probability e^-cs.
"""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb

from dither.exact import balls
from dither.exact.samplers import uniform
from dither.exact.samplers.uniform import Uniform


def draw_peak(start: int, slope: int, count: int, rate: Fraction) -> int:
    """Draws a place u below `count` with probability proportional to exp(-rate |start + slope u|).

    >>> draw_peak(-(10**9), 10**8, 100, Fraction(1))
    10
    """
    if slope == 0:
        return uniform.below(count)
    left = min(max(-start // slope + 1, 0), count)
    if left == count or (left > 0 and _is_left(start, slope, left, count - left, rate)):
        return left - 1 - _geometric(rate * slope) % left
    return left + _geometric(rate * slope) % (count - left)


def _is_left(start: int, slope: int, left: int, right: int, rate: Fraction) -> bool:
    """Draws the side of the peak."""
    nearer = rate * (start + slope * left + start + slope * (left - 1))  # y - x

    def chance() -> arb:
        ratio = balls.one_minus_exp(rate * slope * right) / balls.one_minus_exp(rate * slope * left)
        return 1 / (1 + balls.exp(-nearer) * ratio)

    return Uniform().below(chance)


def _geometric(c: Fraction) -> int:
    """Draws a whole number g with probability proportional to exp(-c g)."""
    s = math.ceil(1 / c)
    v = uniform.below(s)
    while not _happens(c * v):
        v = uniform.below(s)
    j = 0
    while _happens(c * s):
        j += 1
    return v + s * j


def _happens(exponent: Fraction) -> bool:
    """Draws an event of probability exp(-exponent)."""
    return Uniform().below_about(math.exp(-float(min(exponent, Fraction(800)))), lambda: balls.exp(-exponent))
