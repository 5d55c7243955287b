"""Arithmetic, powers, rounding, roots, logarithms, and choosing among numbers, computed in IEEE doubles.

Integers are converted first, even in int + int; only -x of an integer stays one. Division by zero is NULL; overflow is an
infinity, which later clips; NaN is NULL.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dither.query.functions.base import (
    Bound,
    Cell,
    Facts,
    Function,
    any_nullable,
    as_doubles,
    double,
    either,
    monotone,
    negative,
    numeric,
    outward,
    over,
    plus,
    times,
    together,
    widened,
)
from dither.query.functions.rounding import bad_digits, rounded, to_digits

Number = int | float
_LEAST = -(2**63)  # of the engines' whole numbers


def real(interval: tuple[Bound, Bound], nullable: bool, whole: bool, step: Fraction | None = None) -> Facts:
    """Returns the facts of a double; a whole number has step 1 unless a coarser one is known."""
    return Facts("real", *interval, nullable, whole, None, Fraction(1) if whole and step is None else step)


def quotient(x: Number, y: Number) -> float | None:
    """Returns x / y in doubles; NULL for y = 0.

    >>> quotient(1, 0), quotient(7, 2), quotient(1e308, 1e-308)
    (None, 3.5, inf)
    """
    a, b = double(x), double(y)
    return None if b == 0 else a / b


def remainder(x: Number, y: Number) -> float | None:
    """Returns x - y * trunc(x / y), each step in doubles; NULL for y = 0.

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
        # x / y is at least 1 / |y| away from the next whole number, so truncation is correct and all steps are exact.
        reach = min(most_x, max(most_y - 1, Fraction(0)))
        low = Fraction(0) if x.low is not None and x.low >= 0 else -reach
        high = Fraction(0) if x.high is not None and x.high <= 0 else reach
        return real((low, high), nullable, True)
    least_y = min(abs(y.low or Fraction(0)), abs(y.high or Fraction(0)))
    if y.may_be(0) or most_x > least_y * 2**1000:
        return real((None, None), nullable, whole)
    slack = most_y + most_x / 2**50  # the quotient and the product may have been rounded up
    return real(outward(-slack, slack), nullable, whole)


def _largest(x: Facts) -> Fraction:
    return max(abs(x.low or Fraction(0)), abs(x.high or Fraction(0)))


def _common(x: Facts, y: Facts) -> Fraction | None:
    """Returns the grid of a sum: the coarsest that contains both, unless it is much finer than either."""
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


def negated(x: Number) -> Number | None:
    """Returns -x, whole for a whole number; NULL for the least 64-bit number, whose negative is none.

    >>> negated(3), negated(2.5), negated(-(2**63))
    (-3, -2.5, None)
    """
    return -x if x != _LEAST or isinstance(x, float) else None


def _negate(a: list[Facts]) -> Facts:
    if a[0].kind == "int":
        low, high = negative((a[0].low, a[0].high))
        return Facts("int", low, high, a[0].nullable or a[0].may_be(_LEAST), True, None, a[0].step)
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
    """Returns floor(x / width) * width, in doubles.

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
    numeric("neg", 1, negated, _negate, "-x, whole for a whole number"),
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


def power(x: int | float, y: int | float) -> float | None:
    """Returns x to the y in doubles; NULL for a negative x with a fractional y, and for zero to a negative power.

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


def _power_facts(a: list[Facts]) -> Facts:
    x, y = a
    below = x.low is None or x.low < 0
    nullable = any_nullable(a) or (below and not y.whole) or (x.may_be(0) and (y.low is None or y.low < 0))
    whole = x.whole and y.whole and y.low is not None and y.low >= 0
    return Facts("real", *_power_interval(as_doubles(x), as_doubles(y)), nullable, whole, None, Fraction(1) if whole else None)


def _power_interval(x: tuple[Bound, Bound], y: tuple[Bound, Bound]) -> tuple[Bound, Bound]:
    even = y[0] is not None and y[0] == y[1] and y[0] % 2 == 0
    sign_only = (Fraction(0) if even or (x[0] is not None and x[0] >= 0) else None, None)
    if x[0] is None or x[1] is None or y[0] is None or y[1] is None or (x[0] <= 0 and y[0] < 0):
        return sign_only
    if x[0] < 0:
        # |x^y| <= max(|x|, 1)^max(y): generous, but correct for odd and even powers.
        top = power(double(max(-x[0], x[1], Fraction(1))), double(y[1]))
        low, high = widened(None if top is None else -top, top)
        return (Fraction(0) if even else low), high
    # x >= 0: x^y is monotone in x and in y, so the extremes are at the corners.
    corners = [power(double(base), double(exponent)) for base in (x[0], x[1]) for exponent in (y[0], y[1])]
    finite = [corner for corner in corners if corner is not None]
    if len(finite) < len(corners):
        return sign_only
    low, high = widened(min(finite), max(finite))
    return max(low or Fraction(0), Fraction(0)), high


POWER = numeric(
    "power", 2, power, _power_facts, "x to the y in doubles; NULL if x < 0 with a fractional y, or x = 0 with y < 0"
)


def whole_part(rounding: Callable[[float], int]) -> Callable[[Number], float]:
    def compute(x: Number) -> float:
        value = double(x)
        return value if math.isinf(value) else float(rounding(value))

    return compute


def half_away(x: Any) -> int:
    """Returns the nearest whole number, halves away from zero.

    >>> [half_away(x) for x in (0.5, -0.5, 2.5, 0.49999999999999994)]
    [1, -1, 3, 0]
    """
    cut = int(x)
    if abs(x - cut) < 0.5:  # the difference is exact: both are within 1 of each other
        return cut
    return cut + (1 if x > 0 else -1)


def _root(x: Number) -> float | None:
    value = double(x)
    return math.sqrt(value) if value >= 0 else None


def _logarithm(x: Number) -> float | None:
    value = double(x)
    return math.log(value) if value > 0 else None


def exponential(x: Number) -> float:
    try:
        return math.exp(double(x))
    except OverflowError:
        return math.inf


def _sign(x: Number) -> float:
    return float((x > 0) - (x < 0))


def _to_whole(rounding: Callable[[Fraction], int]) -> Callable[[list[Facts]], Facts]:
    def infer(a: list[Facts]) -> Facts:
        low, high = as_doubles(a[0])
        interval = (None if low is None else Fraction(rounding(low)), None if high is None else Fraction(rounding(high)))
        return real(interval, a[0].nullable, True)

    return infer


def _rooted(a: list[Facts]) -> Facts:
    low, high = as_doubles(a[0])
    root = monotone(math.sqrt, (max(low or Fraction(0), Fraction(0)), None if high is None else max(high, Fraction(0))))
    return real((max(root[0] or Fraction(0), Fraction(0)), root[1]), a[0].nullable or low is None or low < 0, False)


def _logged(a: list[Facts]) -> Facts:
    low, high = as_doubles(a[0])
    domain = (low if low is not None and low > 0 else None, high if high is None or high > 0 else Fraction(1))
    # The logarithm of the smallest positive double is above -746.
    bottom, top = monotone(lambda x: math.log(x) if x > 0 else -746.0, domain)
    bottom = bottom if bottom is not None else Fraction(-746)
    return real((bottom, top), a[0].nullable or low is None or low <= 0, False)


def _exponentiated(a: list[Facts]) -> Facts:
    low, high = monotone(exponential, as_doubles(a[0]))
    return real((max(low or Fraction(0), Fraction(0)), high), a[0].nullable, False)


# --- choosing among numbers -------------------------------------------------------------------------------------


def least(*values: Any) -> Cell:
    """Returns the smallest value, as a double if any of them is one."""
    smallest: Cell = min(together(values))
    return smallest


def greatest(*values: Any) -> Cell:
    largest: Cell = max(together(values))
    return largest


def clamp(x: Any, low: Any, high: Any) -> Cell:
    return least(greatest(x, low), high)


def _extreme(pick: Callable[..., Fraction], one_bound_is_enough: str) -> Callable[[list[Facts]], Facts]:
    def infer(a: list[Facts]) -> Facts:
        facts = either(a, any_nullable(a))
        ends = {end: [getattr(x, end) for x in a] for end in ("low", "high")}
        interval: dict[str, Bound] = {}
        for end, bounds in ends.items():
            known = [bound for bound in bounds if bound is not None]
            enough = known if end == one_bound_is_enough else len(known) == len(bounds)
            interval[end] = pick(known) if enough else None
        if facts.kind == "real":
            interval["low"], interval["high"] = outward(interval["low"], interval["high"])
        return replace(facts, low=interval["low"], high=interval["high"])

    return infer


_least = _extreme(min, "high")
_greatest = _extreme(max, "low")


def _clamped(a: list[Facts]) -> Facts:
    return replace(_least([_greatest([a[0], a[1]]), a[2]]), step=a[0].step)


def _bad_clamp(constants: list[Any]) -> str | None:
    low, high = constants[1], constants[2]
    return "its lower end is above its upper end" if low is not None and high is not None and low > high else None


def _digits(name: str, rounding: Callable[[Any], int], meaning: str) -> Function:
    compute = to_digits(rounding)
    return Function(name, meaning, ("number",), compute, rounded(compute), 1, 2, constants=(1,), refuse=bad_digits)


NUMBERS = (
    numeric("floor", 1, whole_part(math.floor), _to_whole(math.floor), "the next whole number below"),
    numeric("ceil", 1, whole_part(math.ceil), _to_whole(math.ceil), "the next whole number above"),
    _digits("round", half_away, "the nearest whole number, or so many digits after the point; halves away from zero"),
    _digits("trunc", math.trunc, "without its fraction, or with so many digits after the point"),
    numeric("sqrt", 1, _root, _rooted, "the square root; NULL below 0"),
    numeric("ln", 1, _logarithm, _logged, "the natural logarithm; NULL at or below 0"),
    numeric("exp", 1, exponential, _exponentiated, "e to the x; an infinity where it overflows"),
    numeric("sign", 1, _sign, lambda a: real((Fraction(-1), Fraction(1)), a[0].nullable, True), "-1, 0 or 1"),
    Function("least", "the smallest; NULL if any is NULL", ("any",), least, _least, 1, None, alike=True),
    Function("greatest", "the largest; NULL if any is NULL", ("any",), greatest, _greatest, 1, None, alike=True),
    Function(
        "clamp",
        "x moved into [low, high]; NULL stays NULL",
        ("number",),
        clamp,
        _clamped,
        3,
        3,
        constants=(1, 2),
        refuse=_bad_clamp,
    ),
    POWER,
    *ARITHMETIC,
)
