"""Arithmetic, computed in IEEE doubles. Integers are converted first, even in int + int.

Division by zero is NULL; overflow is an infinity, which later clips; what is not a number is NULL.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dither.query.facts import Bound, Facts, as_doubles, double, negative, outward, over, plus, times
from dither.query.function import Function, any_nullable, numeric

Number = int | float


def real(interval: tuple[Bound, Bound], nullable: bool, whole: bool, step: Fraction | None = None) -> Facts:
    """Facts of a double; a whole number lies on the grid of step 1 unless a coarser one is known."""
    return Facts("real", *interval, nullable, whole, None, Fraction(1) if whole and step is None else step)


def quotient(x: Number, y: Number) -> float | None:
    """x / y in doubles; NULL for y = 0.

    >>> quotient(1, 0), quotient(7, 2), quotient(1e308, 1e-308)
    (None, 3.5, inf)
    """
    a, b = double(x), double(y)
    return None if b == 0 else a / b


def remainder(x: Number, y: Number) -> float | None:
    """x - y * trunc(x / y), each step in doubles; NULL for y = 0.

    >>> remainder(-7, 3), remainder(7, 0)
    (-1.0, None)
    """
    ratio = quotient(x, y)
    if ratio is None or math.isnan(ratio):
        return None
    cut = ratio if math.isinf(ratio) else float(math.trunc(ratio))
    return double(x) - double(y) * cut


def _add(a: list[Facts]) -> Facts:
    nullable = any_nullable(a) or all(x.may_be_infinite for x in a)
    return real(plus(as_doubles(a[0]), as_doubles(a[1])), nullable, a[0].whole and a[1].whole, _common(a[0], a[1]))


def _subtract(a: list[Facts]) -> Facts:
    low, high = negative((a[1].low, a[1].high))
    return _add([a[0], replace(a[1], low=low, high=high)])


def _multiply(a: list[Facts]) -> Facts:
    x, y = a
    nullable = any_nullable(a) or (x.may_be_infinite and y.may_be(0)) or (y.may_be_infinite and x.may_be(0))
    return real(times(as_doubles(x), as_doubles(y)), nullable, x.whole and y.whole, _scaled(x, y) or _scaled(y, x))


def _divide(a: list[Facts]) -> Facts:
    x, y = a
    nullable = any_nullable(a) or y.may_be(0) or (x.may_be_infinite and y.may_be_infinite)
    point = y.low is not None and y.low == y.high and y.low != 0
    step = x.step / abs(y.low) if point and x.step is not None and y.low else None
    return real(over(as_doubles(x), as_doubles(y), y.whole), nullable, False, step)


def _modulo(a: list[Facts]) -> Facts:
    x, y = a
    nullable = any_nullable(a) or y.may_be(0) or x.may_be_infinite or y.may_be_infinite
    whole = x.whole and y.whole
    if not (x.bounded and y.bounded):
        return real((None, None), nullable, whole)
    most_x, most_y = _largest(x), _largest(y)
    if whole and max(most_x, most_y) < 2**52:
        # x / y is at least 1 / |y| away from the next whole number, so its truncation is right and all steps are exact.
        reach = min(most_x, max(most_y - 1, Fraction(0)))
        low = Fraction(0) if x.low is not None and x.low >= 0 else -reach
        high = Fraction(0) if x.high is not None and x.high <= 0 else reach
        return real((low, high), nullable, True)
    least_y = min(abs(y.low or Fraction(0)), abs(y.high or Fraction(0)))
    if y.may_be(0) or most_x > least_y * 2**1000:
        return real((None, None), nullable, whole)
    slack = most_y + most_x / 2**50  # the quotient may have been rounded up, and the product too
    return real(outward(-slack, slack), nullable, whole)


def _largest(x: Facts) -> Fraction:
    return max(abs(x.low or Fraction(0)), abs(x.high or Fraction(0)))


def _common(x: Facts, y: Facts) -> Fraction | None:
    """The grid of a sum: the coarsest one that holds both, if it is not much finer than either."""
    if _point(x):
        return y.step
    if _point(y):
        return x.step
    if x.step is None or y.step is None:
        return None
    both = Fraction(
        math.gcd(x.step.numerator * y.step.denominator, y.step.numerator * x.step.denominator),
        x.step.denominator * y.step.denominator,
    )
    return both if both * 1000 >= min(x.step, y.step) else None


def _scaled(x: Facts, y: Facts) -> Fraction | None:
    factor = y.low if _point(y) else None
    return None if x.step is None or not factor else x.step * abs(factor)


def _point(x: Facts) -> bool:
    return x.low is not None and x.low == x.high


def _negate(a: list[Facts]) -> Facts:
    return real(negative(as_doubles(a[0])), a[0].nullable, a[0].whole, a[0].step)


def _absolute(a: list[Facts]) -> Facts:
    x = a[0]
    low, high = as_doubles(x)
    if low is not None and low >= 0:
        return real((low, high), x.nullable, x.whole, x.step)
    if high is not None and high <= 0:
        return real(negative((low, high)), x.nullable, x.whole, x.step)
    top = None if low is None or high is None else max(-low, high)
    return real((Fraction(0), top), x.nullable, x.whole, x.step)


def bucket(x: Number, width: Number) -> float | None:
    """floor(x / width) * width, in doubles.

    >>> bucket(37, 10), bucket(-1, 10)
    (30.0, -10.0)
    """
    ratio = quotient(x, width)
    return None if ratio is None else (ratio if math.isinf(ratio) else math.floor(ratio)) * double(width)


def _bucketed(a: list[Facts]) -> Facts:
    x, width = a
    low, high = over(as_doubles(x), as_doubles(width), width.whole)
    floors = (None if low is None else Fraction(math.floor(low)), None if high is None else Fraction(math.floor(high)))
    return real(times(floors, as_doubles(width)), x.nullable, width.whole, width.low)


def _bad_width(constants: list[Any]) -> str | None:
    width = constants[1]
    return None if width is not None and 0 < double(width) < math.inf else "its width must be above zero"


ARITHMETIC = (
    numeric("add", 2, lambda x, y: double(x) + double(y), _add, "x + y in doubles"),
    numeric("sub", 2, lambda x, y: double(x) - double(y), _subtract, "x - y in doubles"),
    numeric("mul", 2, lambda x, y: double(x) * double(y), _multiply, "x * y in doubles"),
    numeric("div", 2, quotient, _divide, "x / y in doubles; NULL for y = 0"),
    numeric("mod", 2, remainder, _modulo, "x - y * trunc(x / y) in doubles; NULL for y = 0"),
    numeric("neg", 1, lambda x: -double(x), _negate, "-x in doubles"),
    numeric("abs", 1, lambda x: abs(double(x)), _absolute, "|x| in doubles"),
    Function(
        "bucket",
        "floor(x / width) * width in doubles",
        ("number",),
        bucket,
        _bucketed,
        2,
        2,
        constants=(1,),
        refuse=_bad_width,
    ),
)
