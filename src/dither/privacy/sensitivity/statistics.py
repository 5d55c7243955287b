"""Global sensitivity: the most a statistic can move between neighbouring tables, as an exact rational.

Each unit is one record with a value in [low, high], R = high - low. Steps k = 1, or the group's k.

    statistic            add/remove                         replace, n records
    count of matches     k                                  min(k, n)
    sum                  k max(|low|, |high|)               min(k, n) R
    mean, n public       -                                  min(k, n) R / n
    mean, n >= n0        R / (n0 + 1)           (k = 1)     R / n0
    median, max, min     R   (midpoint median: R/2)         R   (midpoint median, n even: R/2)
    variance             R^2 n0 / (n0 + 1)^2    (k = 1)     R^2 r (n - r) / n^2,   r = min(k, n // 2)
    sample variance      R^2 / (n0 + 1)         (k = 1)     R^2 r (n - r) / (n (n - 1))
    histogram, L1        k                                  2 min(k, n)

A statistic without bounds returns `Unbounded`, which states the reason and is not a number, so that every mechanism
refuses it. "n >= n0" is a promise about both neighbours. A false promise breaks the guarantee, except for
`centred_mean`, which is defined for every table. Tables may be empty only if at_least = 0;
the statistic of the empty table is then the public value `empty` (default: the middle of the range).
The tests enumerate all neighbouring tables over small universes and get exactly these numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dither.errors import ArgumentError
from dither.exact.numbers import Number, flag, items, one_of, rational, show, whole
from dither.privacy.neighbours import AddRemove, Neighbours, Replace, check_neighbours, one_step


@dataclass(frozen=True)
class Unbounded:
    """States that there is no finite sensitivity, why, and the fix. Not a number, so a mechanism refuses it.

    >>> print(sum())
    unbounded: one person's value may be anything, and so may the sum. Fix: declare bounds, as in sum(0, 120).
    """

    reason: str
    fix: str

    def __str__(self) -> str:
        return f"unbounded: {self.reason} Fix: {self.fix}"


Sensitivity = Fraction | Unbounded
_DEFAULT = AddRemove()


def count(neighbours: Neighbours = _DEFAULT) -> Fraction:
    """Returns the sensitivity of a count of matching records: each step changes it by at most one, in either relation.

    >>> count(), count(Replace())
    (Fraction(1, 1), Fraction(1, 1))
    """
    return Fraction(_changed_records(neighbours))


def sum(low: Number | None = None, high: Number | None = None, neighbours: Neighbours = _DEFAULT) -> Sensitivity:
    """Returns the sensitivity of the sum of values in [low, high].

    >>> sum(-10, 5), sum(-10, 5, Replace())
    (Fraction(10, 1), Fraction(15, 1))
    """
    bounds = _bounds(low, high)
    if bounds is None:
        return _no_bounds("sum")
    bottom, top = bounds
    if isinstance(one_step(check_neighbours(neighbours)), AddRemove):
        return neighbours.steps * max(abs(bottom), abs(top))
    return _changed_records(neighbours) * (top - bottom)


def mean(
    low: Number | None = None,
    high: Number | None = None,
    neighbours: Neighbours = _DEFAULT,
    *,
    at_least: int = 0,
    empty: Number | None = None,
) -> Sensitivity:
    """Returns the sensitivity of the mean S / n of values in [low, high]. Both neighbours have `at_least` records.

    Add/remove, sizes n0 and up: adding k extreme values to n0 opposite ones moves the mean by R k/(n0+k); a
    group may also exchange records, moving it by R j/(n0+j-i) with i out and j in, and one of the two is largest.
    Replace: k of n0 exchanged move it by R k/n0; with a public n, by R k/n.

    >>> mean(0, 120, at_least=100), mean(0, 120), mean(0, 120, empty=0), mean(0, 120, Replace(n=100))
    (Fraction(120, 101), Fraction(60, 1), Fraction(120, 1), Fraction(6, 5))
    """
    bounds, n0 = _bounds(low, high), whole(at_least, "at_least", least=0)
    if bounds is None:
        return _no_bounds("mean")
    width, steps, relation = bounds[1] - bounds[0], check_neighbours(neighbours).steps, one_step(neighbours)
    if isinstance(relation, Replace):
        n = relation.n or max(n0, 1)
        return width * Fraction(min(steps, n), n)
    n = max(n0, 1)
    out = min(steps // 2, n)
    share = max(Fraction(steps, n + steps), Fraction(steps - out, n + steps - 2 * out) if out < n else Fraction(1))
    return max(width * share, _from_empty(bounds, n0, empty))


def centred_mean(low: Number, high: Number, at_least: int, neighbours: Neighbours = _DEFAULT) -> Fraction:
    """Returns the sensitivity of m + (sum of x - m) / max(n, n0), m the middle of [low, high].

    This is the mean where n >= n0, and it is defined for *all* tables, so a false `at_least` costs
    accuracy and never privacy. Add/remove of one: R/(n0+1) if n >= n0, else R/(2 n0), which is no more.

    >>> centred_mean(0, 120, at_least=100)
    Fraction(120, 101)
    """
    bounds, n0 = _bounds(low, high), whole(at_least, "at_least", least=1)
    if bounds is None:
        raise ArgumentError("centred_mean needs finite bounds.", fix="declare low and high.")
    width, steps, relation = bounds[1] - bounds[0], check_neighbours(neighbours).steps, one_step(neighbours)
    if isinstance(relation, Replace):
        n = max(relation.n or n0, n0)
        return width * min(Fraction(min(steps, relation.n or steps), n), Fraction(1))
    return width * min(max(Fraction(steps, n0 + steps), Fraction(steps, 2 * n0)), Fraction(1))


def median(
    low: Number | None = None,
    high: Number | None = None,
    neighbours: Neighbours = _DEFAULT,
    *,
    convention: Literal["lower", "midpoint"] = "lower",
    at_least: int = 0,
    empty: Number | None = None,
) -> Sensitivity:
    """Returns the sensitivity of the median.

    "lower" is the ceil(n/2)-th smallest value; "midpoint" is the mean of the two middle ones if n is even.
    One step can move the lower median across the whole range in a table of any size: half the records low and half high.
    The midpoint moves half as far if one of the two tables has an even size (always, for add/remove).

    >>> median(0, 120), median(0, 120, convention="midpoint"), median(0, 120, Replace(n=10), convention="midpoint")
    (Fraction(120, 1), Fraction(60, 1), Fraction(60, 1))
    """
    bounds, n0 = _bounds(low, high), whole(at_least, "at_least", least=0)
    if bounds is None:
        return _no_bounds("median")
    one_of(convention, "convention", "lower", "midpoint")
    width, relation = bounds[1] - bounds[0], one_step(check_neighbours(neighbours))
    if convention == "lower" or neighbours.steps > 1:
        return width
    if isinstance(relation, Replace):
        return width / 2 if relation.n is not None and relation.n % 2 == 0 else width
    return max(width / 2, _from_empty(bounds, n0, empty))


def variance(
    low: Number | None = None,
    high: Number | None = None,
    neighbours: Neighbours = _DEFAULT,
    *,
    at_least: int = 0,
    sample: bool = False,
) -> Sensitivity:
    """Returns the sensitivity of the variance: divided by n, or by n - 1 with `sample`; 0 if there are too few records.

    Split a table into the c records that stay and those that go, A: n var = SS(C) + SS(A) + (c |A|/n)(mean C - mean A)^2.
    The terms without SS(C) are largest if C is constant at one end and r of A at the other, which leaves R^2 r (n - r)/n.
    Exact for one step and for any replacements; for groups under add/remove the k-fold step, capped by the largest variance.

    >>> variance(-1, 1, at_least=10), variance(-1, 1, Replace(n=10)), variance(-1, 1, Replace(n=10), sample=True)
    (Fraction(40, 121), Fraction(9, 25), Fraction(2, 5))
    """
    bounds, n0 = _bounds(low, high), max(whole(at_least, "at_least", least=0), 1)
    flag(sample, "sample")
    if bounds is None:
        return _no_bounds("variance")
    square, steps, relation = (bounds[1] - bounds[0]) ** 2, check_neighbours(neighbours).steps, one_step(neighbours)
    if isinstance(relation, Replace):
        sizes = [relation.n] if relation.n else range(n0, max(n0, 2 * steps) + 2)
        return square * max(_replaced_share(n, min(steps, n // 2), sample) for n in sizes)
    one = Fraction(1, n0 + 1) if sample else Fraction(n0, (n0 + 1) ** 2)
    return square * min(steps * one, Fraction(1, 2) if sample else Fraction(1, 4))


def maximum(low: Number | None = None, high: Number | None = None, neighbours: Neighbours = _DEFAULT) -> Sensitivity:
    """Returns the sensitivity of the largest value: one person may be at `high` and all others at `low`.

    >>> maximum(0, 300)
    Fraction(300, 1)
    """
    check_neighbours(neighbours)
    bounds = _bounds(low, high)
    return _no_bounds("maximum") if bounds is None else bounds[1] - bounds[0]


def minimum(low: Number | None = None, high: Number | None = None, neighbours: Neighbours = _DEFAULT) -> Sensitivity:
    """Returns the sensitivity of the smallest value, by the same argument as `maximum`."""
    check_neighbours(neighbours)
    bounds = _bounds(low, high)
    return _no_bounds("minimum") if bounds is None else bounds[1] - bounds[0]


def histogram(neighbours: Neighbours = _DEFAULT) -> Fraction:
    """Returns the L1 sensitivity of a histogram: a replaced record leaves one cell and enters another.

    >>> histogram(), histogram(Replace())
    (Fraction(1, 1), Fraction(2, 1))
    """
    per_step = 1 if isinstance(one_step(check_neighbours(neighbours)), AddRemove) else 2
    return Fraction(per_step * _changed_records(neighbours))


def thresholds(points: int, neighbours: Neighbours = _DEFAULT) -> Fraction:
    """Returns the L1 sensitivity of `points` counts "how many are at most t": one low record moves all of them.

    >>> thresholds(5)
    Fraction(5, 1)
    """
    return Fraction(whole(points, "points", least=1) * _changed_records(neighbours))


def attribute_means(
    ranges: Sequence[tuple[Number, Number]], neighbours: Neighbours = _DEFAULT, *, at_least: int = 0
) -> Sensitivity:
    """Returns the L1 sensitivity of the means of several attributes: one record moves all of them at once.

    >>> attribute_means([(0, 1)] * 30, Replace(n=1000))
    Fraction(3, 100)
    """
    pairs = items(ranges, "ranges", fix="list (low, high) per attribute.")
    if not pairs or not all(isinstance(ends, (tuple, list)) and len(ends) == 2 for ends in pairs):
        raise ArgumentError("ranges must hold a pair (low, high) for each attribute.", fix="write [(0, 1), (0, 120)].")
    total = Fraction(0)
    for low, high in pairs:
        part = mean(low, high, neighbours, at_least=at_least)
        if isinstance(part, Unbounded):
            return part
        total += part
    return total


def _changed_records(neighbours: Neighbours) -> int:
    """Returns how many records a neighbour may change: at most all of them."""
    relation = one_step(check_neighbours(neighbours))
    limit = relation.n if isinstance(relation, Replace) else None
    return neighbours.steps if limit is None else min(neighbours.steps, limit)


def _replaced_share(n: int, r: int, sample: bool) -> Fraction:
    if n < 2:
        return Fraction(0)
    return Fraction(r * (n - r), n * (n - 1) if sample else n * n)


def _from_empty(bounds: tuple[Fraction, Fraction], at_least: int, empty: Number | None) -> Fraction:
    """Returns how far the statistic can be from its value for the empty table, or 0 if no table is empty."""
    low, high = bounds
    if empty is None or at_least > 0:
        return Fraction(0) if at_least > 0 else (high - low) / 2
    value = rational(empty, "empty")
    if not low <= value <= high:
        raise ArgumentError(
            f"empty must lie in [{show(low)}, {show(high)}], and it is {show(value)}.",
            fix="give the empty table a value that other tables can have.",
        )
    return max(high - value, value - low)


def _bounds(low: Number | None, high: Number | None) -> tuple[Fraction, Fraction] | None:
    """Returns exact bounds, or None if one is missing or infinite."""
    if any(end is None or (isinstance(end, float) and math.isinf(end)) for end in (low, high)):
        return None
    bottom, top = rational(low, "low"), rational(high, "high")  # type: ignore[arg-type]
    if bottom >= top:
        raise ArgumentError(
            f"low must be below high, and they are {show(bottom)} and {show(top)}.", fix="give low and high in this order."
        )
    return bottom, top


def _no_bounds(name: str) -> Unbounded:
    return Unbounded(f"one person's value may be anything, and so may the {name}.", f"declare bounds, as in {name}(0, 120).")
