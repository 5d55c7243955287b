"""Facts (what is publicly known of an expression), interval arithmetic, and Function, an entry of the registry.

Facts are inferred before any row is read. Ends of intervals are exact rationals; None means "no bound known", and then
the value may even be infinite. Values are computed in IEEE doubles, which round to nearest: rounding keeps order, so it is
enough to widen each end to the double it would round to (`outward`). An end beyond the largest double becomes None,
because the value may then overflow. Dates count as days since 1970-01-01.

Values are None, bool, int, float, str, datetime.date and datetime.datetime. NaN counts as NULL as soon as it appears; an
engine may keep it longer if no result shows it. Evaluation never raises, whatever the values.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dither.catalog.values import Key

Bound = Fraction | None
_INF = math.inf
_End = Fraction | float  # a rational, or one of the two infinities


@dataclass(frozen=True)
class Facts:
    """The public facts about an expression: kind, interval, NULL, whole numbers, domain, grid.

    `kind` is one of catalog.KINDS, or "null" for a bare NULL. `whole`: a number without fraction, which may be a key.
    `values`: every non-NULL value it can take (NULL is listed only if the catalog declares it as a value).
    `step`: the width of its grid, as far as known; a suggestion for quantising, not a guarantee.
    `clipped`: the interval is one that values are clipped to where they are added up, so a row's value may lie outside.
    `absent`: the question itself makes it NULL in some rows (LAG in a first row), so that NULL is a value of keys made of it.
    """

    kind: str
    low: Bound = None
    high: Bound = None
    nullable: bool = True
    whole: bool = False
    values: tuple[Key, ...] | None = None
    step: Fraction | None = None
    clipped: bool = False
    absent: bool = False

    @property
    def numeric(self) -> bool:
        return self.kind in ("int", "real")

    @property
    def bounded(self) -> bool:
        return self.low is not None and self.high is not None

    @property
    def may_be_infinite(self) -> bool:
        return self.kind == "real" and not self.bounded

    def may_be(self, number: int) -> bool:
        """Returns whether the interval contains the number."""
        return (self.low is None or self.low <= number) and (self.high is None or number <= self.high)

    def lies_within(self, low: int, high: int) -> bool:
        """Returns whether the interval lies between these numbers."""
        return self.low is not None and self.high is not None and low <= self.low and self.high <= high

    def without_domain(self) -> Facts:
        return replace(self, values=None)


def double(value: int | float | Fraction) -> float:
    """Returns the nearest double; an infinity beyond the largest double, never an error.

    >>> double(Fraction(1, 10)), double(10**400), double(-10**400)
    (0.1, inf, -inf)
    """
    try:
        return float(value)
    except OverflowError:
        return _INF if value > 0 else -_INF


def outward(low: Bound, high: Bound) -> tuple[Bound, Bound]:
    """Returns an interval that contains the nearest double of every number in the given one.

    >>> outward(Fraction(0), Fraction(1)), outward(Fraction(1), Fraction(10**400))
    ((Fraction(0, 1), Fraction(1, 1)), (Fraction(1, 1), None))
    """
    return _rounded(low, min), _rounded(high, max)


def _rounded(end: Bound, pick: Callable[[Fraction, Fraction], Fraction]) -> Bound:
    if end is None:
        return None
    nearest = double(end)
    return None if math.isinf(nearest) else pick(end, Fraction(nearest))


def as_doubles(facts: Facts) -> tuple[Bound, Bound]:
    """Returns the interval of the value as a double; every arithmetic function converts first."""
    return outward(facts.low, facts.high)


def plus(a: tuple[Bound, Bound], b: tuple[Bound, Bound]) -> tuple[Bound, Bound]:
    low = None if a[0] is None or b[0] is None else a[0] + b[0]
    high = None if a[1] is None or b[1] is None else a[1] + b[1]
    return outward(low, high)


def negative(a: tuple[Bound, Bound]) -> tuple[Bound, Bound]:
    return (None if a[1] is None else -a[1], None if a[0] is None else -a[0])


def times(a: tuple[Bound, Bound], b: tuple[Bound, Bound]) -> tuple[Bound, Bound]:
    """Returns the interval of products; the extremes are at the corners."""
    corners = [_product(x, y) for x in _ends(a) for y in _ends(b)]
    return outward(_finite(min(corners)), _finite(max(corners)))


def over(a: tuple[Bound, Bound], b: tuple[Bound, Bound], whole: bool) -> tuple[Bound, Bound]:
    """Returns the interval of quotients with a nonzero divisor; a whole divisor is at least 1 away from zero."""
    gap = Fraction(1) if whole else Fraction(0)
    low, high = _ends(b)
    parts = []
    if low < 0:
        parts.append((low, min(high, -gap)))
    if high > 0:
        parts.append((max(low, gap), high))
    intervals = [_quotients(a, part) for part in parts if part[0] <= part[1]]
    if not intervals:
        return Fraction(0), Fraction(0)  # the divisor is always zero, so the result is NULL
    return hull(intervals)


def _quotients(a: tuple[Bound, Bound], divisor: tuple[_End, _End]) -> tuple[Bound, Bound]:
    if divisor[0] == 0 or divisor[1] == 0:
        # Divisors may be as close to zero as doubles can be, so only the sign of the quotient is known.
        sign = 1 if divisor[1] > 0 else -1
        up = a[0] is not None and a[0] >= 0
        down = a[1] is not None and a[1] <= 0
        never_below, never_above = (up, down) if sign > 0 else (down, up)
        return (Fraction(0) if never_below else None), (Fraction(0) if never_above else None)
    inverse = sorted((_inverse(divisor[0]), _inverse(divisor[1])))
    return times(a, (inverse[0], inverse[1]))


def hull(parts: list[tuple[Bound, Bound]]) -> tuple[Bound, Bound]:
    """Returns the smallest interval that contains all of them."""
    lows = [low for low, _ in parts]
    highs = [high for _, high in parts]
    return (
        None if not lows or None in lows else min(low for low in lows if low is not None),
        None if not highs or None in highs else max(high for high in highs if high is not None),
    )


def monotone(function: Callable[[float], float], interval: tuple[Bound, Bound]) -> tuple[Bound, Bound]:
    """Returns the image under an increasing library function, which may be off by a few units in the last place."""
    low, high = interval
    return widened(
        None if low is None else function(double(low)),
        None if high is None else function(double(high)),
    )


def widened(low: float | None, high: float | None) -> tuple[Bound, Bound]:
    """Widens an interval of doubles from a library function by far more than its error."""
    down = None if low is None or not math.isfinite(low) else Fraction(low) - abs(Fraction(low)) / 2**45 - Fraction(1, 2**1070)
    up = (
        None if high is None or not math.isfinite(high) else Fraction(high) + abs(Fraction(high)) / 2**45 + Fraction(1, 2**1070)
    )
    return outward(down, up)


def _ends(interval: tuple[Bound, Bound]) -> tuple[_End, _End]:
    return (-_INF if interval[0] is None else interval[0], _INF if interval[1] is None else interval[1])


def _product(x: _End, y: _End) -> _End:
    if x == 0 or y == 0:
        return Fraction(0)  # infinity times zero is NaN, hence NULL, and needs no place in the interval
    if isinstance(x, float) or isinstance(y, float):
        return _INF if (x > 0) == (y > 0) else -_INF
    return x * y


def _inverse(x: _End) -> Fraction:
    return Fraction(0) if isinstance(x, float) else 1 / x


def _finite(x: _End) -> Bound:
    return None if isinstance(x, float) else x


Cell = None | bool | int | float | str | datetime.date | datetime.datetime

# The kinds of an argument, by the word in the entries.
ACCEPTED: dict[str, tuple[str, ...]] = {
    "number": ("int", "real"),
    "whole": ("int",),
    "text": ("text",),
    "bool": ("bool",),
    "date": ("date", "timestamp"),
    "timestamp": ("timestamp",),
    "any": ("int", "real", "text", "bool", "date", "timestamp"),
    "plain": ("int", "text", "bool", "date"),
    "castable": ("int", "real", "text", "bool"),
    "datelike": ("text", "date", "timestamp"),
}

# Kinds that can be compared with each other, and mixed in the branches of a CASE (then as the wider kind).
FAMILIES = (("int", "real"), ("text",), ("bool",), ("date", "timestamp"))


@dataclass(frozen=True)
class Function:
    """One function of expressions.

    `accepts`: a word of ACCEPTED per argument; the last one repeats for further arguments.
    `alike`: all arguments must be of one family (`case` has its own rule, in registry.py).
    `constants`: positions that must be literals; if `most` is None, also all later ones.
    `strict`: NULL in, NULL out, without calling `compute`.
    `compute`: returns the value; with `strict` it gets no NULL. `infer`: returns the facts of the result from the facts of
    the arguments, without `values`. `refuse`: returns why these constants are impossible, or None.
    """

    name: str
    meaning: str
    accepts: tuple[str, ...]
    compute: Callable[..., Cell]
    infer: Callable[[list[Facts]], Facts]
    least: int
    most: int | None
    strict: bool = True
    alike: bool = False
    constants: tuple[int, ...] = ()
    refuse: Callable[[list[Any]], str | None] | None = None

    def accepted(self, position: int) -> tuple[str, ...]:
        """Returns the kinds that the argument at this position may have."""
        return ACCEPTED[self.accepts[min(position, len(self.accepts) - 1)]]

    def constant(self, position: int) -> bool:
        """Returns whether the argument at this position must be a literal."""
        later = self.most is None and bool(self.constants) and position > self.constants[-1]
        return later or position in self.constants


def nan_to_null(value: Cell) -> Cell:
    """Returns the value, with NaN as NULL."""
    return None if isinstance(value, float) and math.isnan(value) else value


def apply(function: Function, arguments: list[Cell]) -> Cell:
    """Applies a function to values."""
    if function.strict and None in arguments:
        return None
    return nan_to_null(function.compute(*arguments))


def together(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Converts values to one kind for comparison: numbers to doubles if one is a double, dates to midnights.

    >>> together((1, 2.5)), together((datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 2, 9)))[0]
    ((1.0, 2.5), datetime.datetime(2024, 1, 2, 0, 0))
    """
    if any(isinstance(value, float) for value in values):
        return tuple(double(value) for value in values)
    if any(isinstance(value, datetime.datetime) for value in values):
        return tuple(moment(value) for value in values)
    return values


def moment(value: datetime.date) -> datetime.datetime:
    """Returns a timestamp, or the midnight of a date."""
    return value if isinstance(value, datetime.datetime) else datetime.datetime(value.year, value.month, value.day)


def any_nullable(arguments: list[Facts]) -> bool:
    return any(argument.nullable for argument in arguments)


def family(kinds: list[str]) -> str | None:
    """Returns the widest of kinds of one family (a bare NULL fits any), or None if they are of several families.

    >>> family(["int", "null", "real"]), family(["int", "text"])
    ('real', None)
    """
    named = [kind for kind in kinds if kind != "null"]
    if not named:
        return "null"
    for members in FAMILIES:
        if all(kind in members for kind in named):
            return max(named, key=members.index)
    return None


def either(choices: list[Facts], nullable: bool) -> Facts:
    """Returns the facts of a value that is one of these."""
    kind = family([choice.kind for choice in choices]) or "null"
    real = [choice for choice in choices if choice.kind != "null"]
    low, high = hull([(choice.low, choice.high) for choice in real])
    if kind == "real":
        low, high = outward(low, high)  # integers are converted
    whole = bool(real) and all(choice.whole for choice in real)
    steps = {choice.step for choice in real}
    step = steps.pop() if len(steps) == 1 else None
    return Facts(kind, low, high, nullable, whole, None, step)


def fixed(kind: str, low: int | None = None, high: int | None = None) -> Callable[[list[Facts]], Facts]:
    """Returns the `infer` of a result within these whole numbers that is NULL only where an argument is."""
    bottom = None if low is None else Fraction(low)
    top = None if high is None else Fraction(high)
    whole = kind == "int"

    def infer(arguments: list[Facts]) -> Facts:
        return Facts(kind, bottom, top, any_nullable(arguments), whole, None, Fraction(1) if whole else None)

    return infer


def numeric(
    name: str, arity: int, compute: Callable[..., Cell], infer: Callable[[list[Facts]], Facts], meaning: str
) -> Function:
    """Returns the entry of a function of numbers."""
    return Function(name, meaning, ("number",), compute, infer, arity, arity)
