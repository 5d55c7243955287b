"""What is publicly known of an expression before any row is read, and interval arithmetic that never promises too much.

Ends of intervals are exact rationals; None means "no bound known", and then the value may even be infinite. Values are
computed in IEEE doubles, which round to nearest: rounding keeps order, so it is enough to widen each end to the double
it would round to (`outward`). An end beyond the largest double becomes None, because the value may then overflow.
Dates are placed on the line by their number of days since 1970-01-01.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from dither.query.catalog import Key

Bound = Fraction | None
_INF = math.inf
_End = Fraction | float  # a rational, or one of the two infinities


@dataclass(frozen=True)
class Facts:
    """Kind, interval, whether it can be NULL, whether it is a whole number, its finite domain, its grid.

    `kind` is one of catalog.KINDS, or "null" for a bare NULL. `whole`: a number without fraction, so it may be a key.
    `values`: every non-NULL value it can take (NULL is listed only where the catalog declares NULL as a value).
    `step`: values lie on a grid this wide, as far as known; a suggestion for quantising, never a promise.
    """

    kind: str
    low: Bound = None
    high: Bound = None
    nullable: bool = True
    whole: bool = False
    values: tuple[Key, ...] | None = None
    step: Fraction | None = None

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
        """Whether the interval contains the number."""
        return (self.low is None or self.low <= number) and (self.high is None or number <= self.high)

    def without_domain(self) -> Facts:
        return replace(self, values=None)


def double(value: int | float | Fraction) -> float:
    """The nearest double; beyond the largest one an infinity, never an error.

    >>> double(Fraction(1, 10)), double(10**400), double(-10**400)
    (0.1, inf, -inf)
    """
    try:
        return float(value)
    except OverflowError:
        return _INF if value > 0 else -_INF


def outward(low: Bound, high: Bound) -> tuple[Bound, Bound]:
    """The interval that surely holds the double nearest to any number of the given one.

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
    """The interval of the value once converted to a double, as every arithmetic function does first."""
    return outward(facts.low, facts.high)


def plus(a: tuple[Bound, Bound], b: tuple[Bound, Bound]) -> tuple[Bound, Bound]:
    low = None if a[0] is None or b[0] is None else a[0] + b[0]
    high = None if a[1] is None or b[1] is None else a[1] + b[1]
    return outward(low, high)


def negative(a: tuple[Bound, Bound]) -> tuple[Bound, Bound]:
    return (None if a[1] is None else -a[1], None if a[0] is None else -a[0])


def times(a: tuple[Bound, Bound], b: tuple[Bound, Bound]) -> tuple[Bound, Bound]:
    """Every product of one number of each: its extremes are at the corners."""
    corners = [_product(x, y) for x in _ends(a) for y in _ends(b)]
    return outward(_finite(min(corners)), _finite(max(corners)))


def over(a: tuple[Bound, Bound], b: tuple[Bound, Bound], whole: bool) -> tuple[Bound, Bound]:
    """Every quotient with a divisor other than zero. A whole divisor is at least 1 away from zero."""
    gap = Fraction(1) if whole else Fraction(0)
    low, high = _ends(b)
    parts = []
    if low < 0:
        parts.append((low, min(high, -gap)))
    if high > 0:
        parts.append((max(low, gap), high))
    found = [_quotients(a, part) for part in parts if part[0] <= part[1]]
    if not found:
        return Fraction(0), Fraction(0)  # only a division by zero is left, and that is NULL
    return hull(found)


def _quotients(a: tuple[Bound, Bound], divisor: tuple[_End, _End]) -> tuple[Bound, Bound]:
    if divisor[0] == 0 or divisor[1] == 0:
        # Divisors come as near to zero as doubles go, so only the sign of the quotient can be known.
        sign = 1 if divisor[1] > 0 else -1
        up = a[0] is not None and a[0] >= 0
        down = a[1] is not None and a[1] <= 0
        never_below, never_above = (up, down) if sign > 0 else (down, up)
        return (Fraction(0) if never_below else None), (Fraction(0) if never_above else None)
    inverse = sorted((_inverse(divisor[0]), _inverse(divisor[1])))
    return times(a, (inverse[0], inverse[1]))


def hull(parts: list[tuple[Bound, Bound]]) -> tuple[Bound, Bound]:
    """The smallest interval around all of them."""
    lows = [low for low, _ in parts]
    highs = [high for _, high in parts]
    return (
        None if not lows or None in lows else min(low for low in lows if low is not None),
        None if not highs or None in highs else max(high for high in highs if high is not None),
    )


def monotone(function: Callable[[float], float], interval: tuple[Bound, Bound]) -> tuple[Bound, Bound]:
    """The image under a rising function of the mathematical library, which may be off by a few units in the last place."""
    low, high = interval
    return widened(
        None if low is None else function(double(low)),
        None if high is None else function(double(high)),
    )


def widened(low: float | None, high: float | None) -> tuple[Bound, Bound]:
    """Doubles computed by a library function, pushed apart by far more than it can be wrong."""
    down = None if low is None or not math.isfinite(low) else Fraction(low) - abs(Fraction(low)) / 2**45 - Fraction(1, 2**1070)
    up = (
        None if high is None or not math.isfinite(high) else Fraction(high) + abs(Fraction(high)) / 2**45 + Fraction(1, 2**1070)
    )
    return outward(down, up)


def _ends(interval: tuple[Bound, Bound]) -> tuple[_End, _End]:
    return (-_INF if interval[0] is None else interval[0], _INF if interval[1] is None else interval[1])


def _product(x: _End, y: _End) -> _End:
    if x == 0 or y == 0:
        return Fraction(0)  # an infinite value times zero is not a number, hence NULL, and needs no room
    if isinstance(x, float) or isinstance(y, float):
        return _INF if (x > 0) == (y > 0) else -_INF
    return x * y


def _inverse(x: _End) -> Fraction:
    return Fraction(0) if isinstance(x, float) else 1 / x


def _finite(x: _End) -> Bound:
    return None if isinstance(x, float) else x
