"""The public grid a number is put on before it is added up. The choice depends on the catalog and the question alone.

    declared step         as declared, from the declared low end (whole numbers over a wide range: as without one)
    no step, added up     the smallest power of two (1 or more for whole numbers) that leaves at most 2^22 steps
    no step, squared      the same with 2^11 steps, and for quantiles with 2^12

Why 2^22: sums over 2^40 rows stay within 2^62, where arrays of 64-bit integers and their noise live. Why 2^11: the same for
squares. Wider declared grids are added up in the engine's 128 bits and get their noise one number at a time; a grid of more
than 2^40 steps could leave 128 bits when squared or weighted, and is refused.

How far one unit can move a measure: read off the bounding step alone, never off the data or the expression.

A unit has at most `max_groups` = L groups and `max_rows` = m rows' worth in each, and a row moves the cells of one measure
by at most `row` in all. So under add-remove neighbours

    sum of moves           L m row                  (geometric noise)
    sum of squared moves   L (m row)^2              (Gaussian noise: within a group the L2 norm is at most the L1 norm)

Under replace neighbours one unit leaves (v) and another enters (w): two changes, and the cells move by w - v:

    sum of moves           2 L m row                |w - v| <= |w| + |v|
    squared moves          2 L (m row)^2            if no cell is ever negative: |w - v|^2 <= |w|^2 + |v|^2, since <v, w> >= 0
                           4 L (m row)^2            otherwise
    one cell, never negative: at most min(2 L, groups) coordinates move, each by at most m row
    one cell in one group, of any sign: one coordinate moves, by at most 2 m row
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from dither.catalog.rules import LARGEST_BOUND
from dither.errors import QueryError
from dither.mechanisms import L1, L2, PerCoordinate
from dither.privacy.neighbours import AddRemove, Replace
from dither.query.functions.base import Facts
from dither.query.nodes import Aggregate, Expression
from dither.query.work import Quantised

SUMS, SQUARES, BINS = 1 << 22, 1 << 11, 1 << 12
WIDEST = 1 << 40
ROWS = 1 << 40
NARROW = 1 << 62


def fits(row: int) -> bool:
    """Whether 2^40 rows that count up to `row` each stay within 64 bits with room for noise.

    >>> fits(SUMS), fits(SQUARES**2), fits(SUMS + 1)
    (True, True, False)
    """
    return row * ROWS <= NARROW


def summed(argument: Expression, facts: Facts, asked: Aggregate) -> Quantised:
    """For sums and means: the declared step if there is one."""
    low, high = bounds(facts, asked)
    if facts.step is None or (facts.whole and facts.step == 1 and high - low > SUMS):
        return _power_of_two(argument, low, high, SUMS, facts.whole)
    steps = max(1, math.ceil((high - low) / facts.step))
    if steps > WIDEST:
        raise QueryError(
            f"{title(asked)} has {steps} steps of {facts.step}, and at most 2^40 can be added up.",
            span=asked.span,
            fix="declare a coarser step, or narrower bounds.",
        )
    return Quantised(argument, low, facts.step, steps)


def coarse(argument: Expression, facts: Facts, asked: Aggregate, most: int) -> Quantised:
    """For squares and quantiles: the declared step if it has few enough steps."""
    low, high = bounds(facts, asked)
    if facts.step is not None and math.ceil((high - low) / facts.step) <= most:
        return Quantised(argument, low, facts.step, max(1, math.ceil((high - low) / facts.step)))
    return _power_of_two(argument, low, high, most, facts.whole)


def moved(q: Quantised, facts: Facts) -> Fraction:
    """How far the grid may move a value, where the grid is the planner's choice: half a step.

    Rounding to a step that was declared is part of what is asked, as clipping to declared bounds is; plans say so.
    """
    return Fraction(0) if q.step == facts.step or (facts.whole and q.step == 1) else q.step / 2


def bounds(facts: Facts, asked: Aggregate) -> tuple[Fraction, Fraction]:
    """The public interval, or the error that asks for it."""
    if facts.low is None or facts.high is None:
        if not facts.numeric:
            what = f"{title(asked)} needs a number, and its argument is {facts.kind}."
            raise QueryError(what, span=asked.span, fix="cast it, or count it.")
        raise QueryError(
            f"{title(asked)} has no bounds, so one person could change it without limit.",
            span=asked.span,
            fix="declare bounds for the column in the catalog, or write CLAMP(x, low, high) inside, with your own limits.",
        )
    if max(abs(facts.low), abs(facts.high)) > LARGEST_BOUND or 0 < facts.high - facts.low < 1 / LARGEST_BOUND:
        raise QueryError(
            f"{title(asked)} has bounds beyond 2^500, or less than 2^-500 apart: doubles cannot square or divide that.",
            span=asked.span,
            fix="write CLAMP(x, low, high) inside, with your own limits, or ask in other units.",
        )
    return facts.low, facts.high


def title(asked: Aggregate) -> str:
    """The function as people write it."""
    return f"{asked.function.upper()}({asked.name})" if asked.function != "count" else "COUNT"


def _power_of_two(argument: Expression, low: Fraction, high: Fraction, most: int, whole: bool) -> Quantised:
    """Multiples of a power of two around [low, high]: exact in doubles, and 0 is on the grid."""
    step = Fraction(1) if whole else _not_below((high - low) / most)
    while True:
        first, last = math.floor(low / step), math.ceil(high / step)
        if last - first <= most:
            return Quantised(argument, first * step, step, max(1, last - first))
        step *= 2


def _not_below(value: Fraction) -> Fraction:
    """The smallest power of two that is at least `value` (1 for a point interval)."""
    if value <= 0:
        return Fraction(1)
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    power = Fraction(2) ** (exponent - 1)
    while power < value:
        power *= 2
    return power


Norm = L1 | L2 | PerCoordinate


@dataclass(frozen=True)
class Bounding:
    """What the engine enforces on every unit. `groups`: how many groups there are, if that is public.

    >>> Bounding(max_rows=20, max_groups=5, groups=None, neighbours=AddRemove()).l1(row=1, cells=1, signed=False)
    PerCoordinate(count=5, each=Fraction(20, 1))
    """

    max_rows: int
    max_groups: int
    groups: int | None
    neighbours: AddRemove | Replace

    def worth(self, rows: int) -> Bounding:
        """The same for a measure to which a unit gives that many rows' worth: who counts people counts each of them once."""
        return replace(self, max_rows=rows)

    @property
    def touched(self) -> int:
        """The most groups in which anything differs between neighbours."""
        most = self.max_groups * self.neighbours.changes
        return most if self.groups is None else min(most, self.groups)

    def total(self, row: int, cells: int, signed: bool) -> int:
        """The largest sum of moves over all groups and cells."""
        if cells == 1 and not signed:
            return self.touched * self.max_rows * row
        return self.max_groups * self.max_rows * row * self.neighbours.changes

    def squares(self, row: int, cells: int, signed: bool) -> int:
        """The largest sum of squared moves over all groups and cells."""
        each = (self.max_rows * row) ** 2
        if cells == 1 and not signed:
            return self.touched * each
        changes = self.neighbours.changes
        return self.max_groups * each * (changes**2 if signed else changes)

    def l1(self, row: int, cells: int, signed: bool) -> Norm:
        """For geometric noise. Coordinates that move alike are said to, where that is the whole truth."""
        if self._alike(cells, signed):
            return PerCoordinate(self.touched, self.max_rows * row)
        return L1(self.total(row, cells, signed))

    def l2(self, row: int, cells: int, signed: bool) -> Norm:
        """For Gaussian noise."""
        if self._alike(cells, signed):
            return PerCoordinate(self.touched, self.max_rows * row)
        if cells == 1 and self.groups == 1:
            return PerCoordinate(1, self.neighbours.changes * self.max_rows * row)
        return _root(self.squares(row, cells, signed))

    def _alike(self, cells: int, signed: bool) -> bool:
        """Whether each coordinate that moves does so by at most one unit's worth: two signed units may move one by both."""
        return cells == 1 and not (signed and self.neighbours.changes > 1)

    def __str__(self) -> str:
        rows = "1 row" if self.max_rows == 1 else f"{self.max_rows} rows' worth"
        if self.groups == 1:
            return f"at most {rows}"
        groups = "1 group" if self.max_groups == 1 else f"{self.max_groups} groups"
        return f"at most {rows} in each of at most {groups}"


def _root(squares: int) -> L2:
    """An L2 bound whose square, rounded down to whole steps, is exactly `squares`.

    >>> _root(2).squares(None), _root(10**30 + 1).squares(None) == 10**30 + 1
    (2, True)
    """
    root = math.isqrt(squares)
    if root * root == squares:
        return L2(root)
    bits = squares.bit_length() + 2  # 2 sqrt(squares) / 2^bits stays below 1
    return L2(Fraction(math.isqrt(squares << (2 * bits)) + 1, 1 << bits))
