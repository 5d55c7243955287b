"""Rounding to digits, whole division, equal buckets, and the smallest or largest of values that may be NULL.

ROUND(x, n) is ROUND(x * 10^n) / 10^n in doubles, each step rounded to the nearest double; for negative n the power divides
first. If x * 10^n would overflow, x has no such digits and stays as it is.
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
    hull,
    outward,
    over,
    together,
)

MOST_DIGITS = 15
LARGEST = 2**63 - 1  # of the engines' whole numbers


def to_digits(rounding: Callable[[float], int]) -> Callable[..., float]:
    """Returns the function that rounds to so many digits after the point, or to a power of ten for negative ones."""

    def compute(x: int | float, digits: int = 0) -> float:
        value = double(x)
        power = 10.0 ** abs(digits)
        moved = value * power if digits >= 0 else value / power
        if math.isinf(moved):
            return value
        cut = float(rounding(moved))
        return cut / power if digits > 0 else cut * power if digits < 0 else cut

    return compute


def rounded(compute: Callable[..., float]) -> Callable[[list[Facts]], Facts]:
    """Returns the facts of rounding, which keeps the order."""

    def infer(a: list[Facts]) -> Facts:
        digits = int(a[1].low or 0) if len(a) > 1 else 0
        low, high = as_doubles(a[0])
        interval = (_image(compute, low, digits), _image(compute, high, digits))
        step = Fraction(1, 10**digits) if digits > 0 else Fraction(10**-digits)
        return Facts("real", *interval, a[0].nullable, digits <= 0, None, step)

    return infer


def _image(compute: Callable[..., float], end: Bound, digits: int) -> Bound:
    found = math.inf if end is None else compute(double(end), digits)
    return None if math.isinf(found) else Fraction(found)


def bad_digits(constants: list[Any]) -> str | None:
    """Returns why these digits are impossible."""
    digits = constants[1] if len(constants) > 1 else 0
    right = isinstance(digits, int) and not isinstance(digits, bool) and abs(digits) <= MOST_DIGITS
    return None if right else f"its digits must be a whole number from -{MOST_DIGITS} to {MOST_DIGITS}"


def whole_quotient(x: int, y: int) -> int | None:
    """Returns x / y without its fraction; NULL for y = 0, and where it is no 64-bit number.

    >>> whole_quotient(7, 2), whole_quotient(-7, 2), whole_quotient(1, 0)
    (3, -3, None)
    """
    if y == 0:
        return None
    found = abs(x) // abs(y)
    found = found if (x < 0) == (y < 0) else -found
    return found if found <= LARGEST else None


def _quotients(a: list[Facts]) -> Facts:
    x, y = a
    low, high = over((x.low, x.high), (y.low, y.high), True)
    interval = (None if low is None else Fraction(math.trunc(low)), None if high is None else Fraction(math.trunc(high)))
    overflows = (x.low is None or x.low < -LARGEST) and y.may_be(-1)
    return Facts("int", *interval, any_nullable(a) or y.may_be(0) or overflows, True, None, Fraction(1))


def width_bucket(x: int | float, low: Any, high: Any, count: int) -> int:
    """Returns the number of the bucket among `count` equal ones from low to high; 0 below them, count + 1 from `high` on.

    >>> [width_bucket(x, 0, 10, 5) for x in (-1, 0, 3, 9.9, 10)]
    [0, 1, 2, 5, 6]
    """
    value, first, last = double(x), double(low), double(high)
    if value < first:
        return 0
    if value >= last:
        return count + 1
    return min(math.floor((value - first) / (last - first) * count), count - 1) + 1


def _buckets(a: list[Facts]) -> Facts:
    low, high = as_doubles(a[0])
    first, last, count = (x.low for x in a[1:4])
    if first is None or last is None or count is None:
        return Facts("int", Fraction(0), None, True, True)
    bottom = Fraction(0) if low is None else Fraction(width_bucket(double(low), first, last, int(count)))
    top = count + 1 if high is None else Fraction(width_bucket(double(high), first, last, int(count)))
    return Facts("int", bottom, top, a[0].nullable, True, None, Fraction(1))


def _bad_buckets(constants: list[Any]) -> str | None:
    low, high, count = constants[1:4]
    if low is None or high is None or not double(low) < double(high) or math.isinf(double(high) - double(low)):
        return "its lower end must be below its upper end"
    right = isinstance(count, int) and not isinstance(count, bool) and 1 <= count <= 1_000_000
    return None if right else "its number of buckets must be a whole number from 1 to 1,000,000"


def _skipping(pick: Callable[[Any], Any]) -> Callable[..., Cell]:
    def compute(*values: Cell) -> Cell:
        known = tuple(value for value in values if value is not None)
        return pick(together(known)) if known else None

    return compute


def _extreme(pick: Callable[..., Fraction], end: str) -> Callable[[list[Facts]], Facts]:
    """The result is one of the values; `end` is bounded by every value that is never NULL."""

    def infer(a: list[Facts]) -> Facts:
        facts = either(a, all(x.nullable for x in a))
        real = [x for x in a if x.kind != "null"]
        low, high = hull([(x.low, x.high) for x in real])
        sure: list[Bound] = [getattr(x, end) for x in real if not x.nullable]
        known = [bound for bound in sure if bound is not None]
        if known and end == "high":
            high = pick(known)
        elif known:
            low = pick(known)
        if facts.kind == "real":
            low, high = outward(low, high)
        return replace(facts, low=low, high=high)

    return infer


ROUNDING = (
    Function(
        "whole_quotient",
        "x / y of whole numbers, without its fraction; NULL for y = 0",
        ("whole",),
        whole_quotient,
        _quotients,
        2,
        2,
    ),
    Function(
        "width_bucket",
        "the number of the bucket among equal ones; 0 below them, one more above",
        ("number",),
        width_bucket,
        _buckets,
        4,
        4,
        constants=(1, 2, 3),
        refuse=_bad_buckets,
    ),
    Function(
        "smallest",
        "the smallest that is not NULL",
        ("any",),
        _skipping(min),
        _extreme(min, "high"),
        1,
        None,
        strict=False,
        alike=True,
    ),
    Function(
        "largest",
        "the largest that is not NULL",
        ("any",),
        _skipping(max),
        _extreme(max, "low"),
        1,
        None,
        strict=False,
        alike=True,
    ),
)
