"""Bounds how far one unit can move a measure: by the public grid of its numbers and the bounding step, never by the data.

Grids. Each number is put on a public grid before it is added up. The grid depends on the catalog and the question only.

    declared step         as declared, from the declared low end (whole numbers over a wide range: as without one)
    no step, added up     the smallest power of two (1 or more for whole numbers) that leaves at most 2^22 steps
    no step, squared      the same with 2^11 steps
    running sums          the same with 2^16 steps
    quantiles             declared steps and whole numbers up to 2^40 steps; else the smallest power of two with 2^20

Where a unit may have more rows than count, its share S m / k is cut to whole steps. So a step of few is divided by a power of
two, until there are 2^16 (2^11 squared): a 0/1 column would lose nearly all of such units.

Why 2^22: sums over 2^40 rows stay within 2^62, so 64-bit integers can hold them and their noise. Why 2^11: the same for
squares. Wider declared grids are added up in the engine's 128 bits and get their noise one number at a time. A grid of more
than 2^40 steps could exceed 128 bits when squared or weighted, and is refused.

Bounding. A unit has at most `max_groups` = L groups and `max_rows` = m rows' worth in each, and a row moves the cells of one
measure by at most `row` in all. So under add-remove neighbours

    sum of moves           L m row                  (geometric noise)
    sum of squared moves   L (m row)^2              (Gaussian noise: within a group the L2 norm is at most the L1 norm)

Under replace neighbours one unit leaves (v) and another enters (w): two changes, and the cells move by w - v:

    sum of moves           2 L m row                |w - v| <= |w| + |v|
    squared moves          2 L (m row)^2            if no cell is ever negative: |w - v|^2 <= |w|^2 + |v|^2, since <v, w> >= 0
                           4 L (m row)^2            otherwise
    one cell, never negative: at most min(2 L, groups) coordinates move, each by at most m row
    one cell in one group, of any sign: one coordinate moves, by at most 2 m row

Grouping sets are bounded once, at the finest level: by all keys. A coarser group adds up f of the finest ones, so a unit can
have several of its L groups in it, and moves it by up to min(L, f) m row, not m row:

    sum of moves           as at the finest level: |a + b| <= |a| + |b|
    sum of squared moves   P (m row)^2 with P = [L / f] f^2 + (L mod f)^2: the squares of numbers up to f that add up to L are
                           largest if they are as unequal as can be
    one cell in one group  one coordinate moves, by at most min(L, f) m row
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
from dither.query.nodes import Aggregate, Call, Expression, Literal
from dither.query.resolve.shapes import constant
from dither.query.work import Quantised

SUMS, SQUARES, VALUES = 1 << 22, 1 << 11, 1 << 20
PARTS = 1 << 16
WIDEST = 1 << 40
ROWS = 1 << 40
NARROW = 1 << 62


def fits(row: int) -> bool:
    """Whether 2^40 rows of up to `row` each stay within 64 bits, noise included.

    >>> fits(SUMS), fits(SQUARES**2), fits(SUMS + 1)
    (True, True, False)
    """
    return row * ROWS <= NARROW


def sum_grid(argument: Expression, facts: Facts, aggregate: Aggregate, fine: bool = False) -> Quantised:
    """Returns the grid for sums and means: with the declared step if there is one. `fine`: units may be cut to a part."""
    grid = _sum_grid(argument, facts, aggregate)
    return _divided(grid, PARTS) if fine else grid


def _divided(grid: Quantised, most: int) -> Quantised:
    """Divides the steps of a grid by a power of two, into at most `most`."""
    parts = 1 << max(0, (most // grid.steps).bit_length() - 1)
    return replace(grid, step=grid.step / parts, steps=grid.steps * parts)


def _sum_grid(argument: Expression, facts: Facts, aggregate: Aggregate) -> Quantised:
    low, high = bounds(facts, aggregate)
    argument = _within(argument, low, high)
    if facts.step is None or (facts.whole and facts.step == 1 and high - low > SUMS):
        return _power_of_two(argument, low, high, SUMS, facts.whole)
    steps = max(1, math.ceil((high - low) / facts.step))
    if steps > WIDEST:
        raise QueryError(
            f"{title(aggregate)} has {steps} steps of {facts.step}, and at most 2^40 can be added up.",
            span=aggregate.span,
            fix="declare a coarser step, or narrower bounds.",
        )
    return Quantised(argument, low, facts.step, steps)


def square_grid(argument: Expression, facts: Facts, aggregate: Aggregate, fine: bool) -> Quantised:
    """Returns the grid for squares. `fine`: units may be cut to a part."""
    grid = _coarse_grid(argument, facts, aggregate, SQUARES)
    return _divided(grid, SQUARES) if fine else grid


def running_grid(argument: Expression, facts: Facts, aggregate: Aggregate, fine: bool) -> Quantised:
    """Returns the grid for running sums. `fine`: units may be cut to a part."""
    grid = _coarse_grid(argument, facts, aggregate, PARTS)
    return _divided(grid, PARTS) if fine else grid


def _coarse_grid(argument: Expression, facts: Facts, aggregate: Aggregate, most: int) -> Quantised:
    """Returns a grid with the declared step if that makes at most `most` steps."""
    low, high = bounds(facts, aggregate)
    argument = _within(argument, low, high)
    if facts.step is not None and math.ceil((high - low) / facts.step) <= most:
        return Quantised(argument, low, facts.step, max(1, math.ceil((high - low) / facts.step)))
    return _power_of_two(argument, low, high, most, facts.whole)


def fine_grid(argument: Expression, facts: Facts, aggregate: Aggregate) -> Quantised:
    """Returns the grid for quantiles: all declared steps or whole numbers, up to 2^40; without a step, about a million."""
    return _coarse_grid(argument, facts, aggregate, VALUES if facts.step is None and not facts.whole else WIDEST)


def _within(argument: Expression, low: Fraction, high: Fraction) -> Expression:
    """Clips an argument whose bounds are one point: a grid has at least one step, which rows outside the bounds would reach."""
    if low != high or isinstance(argument, Literal):
        return argument
    return Call("clamp", (argument, constant(low), constant(high)))


def rounding_error(q: Quantised, facts: Facts) -> Fraction:
    """Returns how far the grid may move a value: half a step if the planner chose the grid, else 0.

    Rounding to a declared step is part of the question, like clipping to declared bounds; plans say so.
    """
    declared = facts.step if facts.step is not None else Fraction(1) if facts.whole else None
    return Fraction(0) if declared is not None and (declared / q.step).denominator == 1 else q.step / 2


def bounds(facts: Facts, aggregate: Aggregate) -> tuple[Fraction, Fraction]:
    """Returns the public bounds of the argument. Refuses an argument without bounds, or with bounds that doubles cannot use."""
    if facts.low is None or facts.high is None:
        if not facts.numeric:
            what = f"{title(aggregate)} needs a number, and its argument is {facts.kind}."
            raise QueryError(what, span=aggregate.span, fix="cast it, or count it.")
        raise QueryError(
            f"{title(aggregate)} has no bounds, so one person could change it without limit.",
            span=aggregate.span,
            fix="declare bounds for the column in the catalog, or write CLAMP(x, low, high) inside, with your own limits.",
        )
    if max(abs(facts.low), abs(facts.high)) > LARGEST_BOUND or 0 < facts.high - facts.low < 1 / LARGEST_BOUND:
        raise QueryError(
            f"{title(aggregate)} has bounds beyond 2^500, or less than 2^-500 apart: doubles cannot square or divide that.",
            span=aggregate.span,
            fix="write CLAMP(x, low, high) inside, with your own limits, or ask in other units.",
        )
    return facts.low, facts.high


def title(aggregate: Aggregate) -> str:
    """Shows the aggregate in errors."""
    return f"{aggregate.function.upper()}({aggregate.name})" if aggregate.function != "count" else "COUNT"


def _power_of_two(argument: Expression, low: Fraction, high: Fraction, most: int, whole: bool) -> Quantised:
    """Returns a grid of multiples of a power of two around [low, high]: exact in doubles, and 0 is on the grid."""
    step = Fraction(1) if whole else _power_at_least((high - low) / most)
    while True:
        first, last = math.floor(low / step), math.ceil(high / step)
        if last - first <= most:
            return Quantised(argument, first * step, step, max(1, last - first))
        step *= 2


def _power_at_least(value: Fraction) -> Fraction:
    """Returns the smallest power of two that is at least `value` (1 for a point interval)."""
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
    """The limits that the engine enforces on every unit. `groups`: the number of groups, if public. `merged`: how many of the
    groups that were bounded are added up in one group; more than 1 for totals of grouping sets.

    >>> Bounding(max_rows=20, max_groups=5, groups=None, neighbours=AddRemove()).l1(row=1, cells=1, signed=False)
    PerCoordinate(count=5, each=Fraction(20, 1))
    """

    max_rows: int
    max_groups: int
    groups: int | None
    neighbours: AddRemove | Replace
    merged: int = 1

    def coarser(self, groups: int, merged: int) -> Bounding:
        """Returns the limits of groups that each add up so many of these."""
        if self.max_groups == 1:  # a unit is in one of these groups, so in one of those
            return replace(self, groups=groups)
        return replace(self, groups=groups, merged=merged)

    def with_max_rows(self, rows: int) -> Bounding:
        """Returns the bounding of a measure to which a unit adds at most `rows` rows' worth (1 for people)."""
        return replace(self, max_rows=rows)

    @property
    def touched(self) -> int:
        """The most groups in which anything differs between neighbours: of those that were bounded."""
        most = self.max_groups * self.neighbours.changes
        return most if self.groups is None else min(most, self.groups * self.merged)

    @property
    def most_merged(self) -> int:
        """The most groups of one unit that are added up in one group."""
        return min(self.max_groups, self.merged)

    def total(self, row: int, cells: int, signed: bool) -> int:
        """The largest sum of moves over all groups and cells."""
        if cells == 1 and not signed:
            return self.touched * self.max_rows * row
        return self.max_groups * self.max_rows * row * self.neighbours.changes

    def squares(self, row: int, cells: int, signed: bool) -> int:
        """The largest sum of squared moves over all groups and cells."""
        each = (self.max_rows * row) ** 2
        if self.merged > 1:
            return self._merged_squares(cells, signed) * each
        if cells == 1 and not signed:
            return self.touched * each
        changes = self.neighbours.changes
        return self.max_groups * each * (changes**2 if signed else changes)

    def _merged_squares(self, cells: int, signed: bool) -> int:
        """The largest sum of squares of how many groups' worth each coarser group moves by."""
        changes = self.neighbours.changes
        if cells == 1 and self.groups == 1:
            return (self.most_merged * (changes if signed else 1)) ** 2
        full, rest = divmod(self.max_groups, self.merged)
        return (full * self.merged**2 + rest**2) * (changes**2 if signed else changes)

    def l1(self, row: int, cells: int, signed: bool) -> Norm:
        """Returns the norm for geometric noise: per coordinate where each coordinate moves by at most one unit's worth."""
        if self.merged > 1 and cells == 1 and self.groups == 1 and not signed:
            return PerCoordinate(1, self.most_merged * self.max_rows * row)
        if self._moves_alike(cells, signed):
            return PerCoordinate(self.touched, self.max_rows * row)
        return L1(self.total(row, cells, signed))

    def l2(self, row: int, cells: int, signed: bool) -> Norm:
        """Returns the norm for Gaussian noise."""
        if self.merged > 1 and cells == 1 and self.groups == 1:
            return PerCoordinate(1, self.most_merged * self.max_rows * row * (self.neighbours.changes if signed else 1))
        if self._moves_alike(cells, signed):
            return PerCoordinate(self.touched, self.max_rows * row)
        if cells == 1 and self.groups == 1:
            return PerCoordinate(1, self.neighbours.changes * self.max_rows * row)
        return L2.of_squares(self.squares(row, cells, signed))

    def _moves_alike(self, cells: int, signed: bool) -> bool:
        """Whether each coordinate moves by at most one unit's worth. Two replaced signed units may both move one coordinate."""
        return self.merged == 1 and cells == 1 and not (signed and self.neighbours.changes > 1)

    def __str__(self) -> str:
        rows = "1 row" if self.max_rows == 1 else f"{self.max_rows} rows' worth"
        if self.groups == 1 and self.merged == 1:
            return f"at most {rows}"
        if self.max_groups == 1:
            return f"at most {rows} in one group"
        return f"at most {rows} in each of at most {self.max_groups} groups"
