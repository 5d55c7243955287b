"""How far one unit can move a measure: read off the bounding step alone, never off the data or the expression.

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

from dither.mechanisms import L1, L2, PerCoordinate
from dither.privacy.neighbours import AddRemove, Replace

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
