"""Norms: how far one unit can move an answer, and how many steps of a grid that is.

    L1(value)                     the coordinates' moves add up to at most `value`
    L2(value)                     their squares add up to at most `value` squared; L2.of_squares(s) takes that sum
    PerCoordinate(count, each)    at most `count` coordinates move, each by at most `each`

A plain number is L1 for geometric and Laplace noise, L2 for Gaussian noise; for one coordinate all agree.
`grid=None` means answers that are whole numbers already: a move is then a whole number and may be rounded
*down*. Other answers are rounded to the nearest multiple of the grid, halves upwards, which commutes with
whole steps. In units of the grid, let D be the bound and k_i the whole number of steps coordinate i moves.
k_i >= 1 needs a real move above k_i - 1 (the two answers lie on either side of k_i rounding edges), so with
j_i = k_i - 1 over the moving coordinates, at most d of them:

    one coordinate   k <= ceil(D)
    L1               sum j_i < D,    so sum k_i   <= ceil(D) + d - 1
                                     and sum k_i^2 <= ceil(D)^2 + d - 1            (one j takes all)
    L2               sum j_i^2 < D^2, so with J = ceil(D^2) - 1: sum j_i <= m = min(J, floor(sqrt(d J))),
                     sum k_i <= d + m  and  sum k_i^2 <= d + 2 m + J
    PerCoordinate    count * ceil(each)  and  count * ceil(each)^2

`moving` bounds how many coordinates move: those that move at all move by one step or more, so at most as many as the sum
of squares allows, and at most d.

Tests have answers that reach the L1 bound, so the d - 1 extra steps are needed. The dimension d must be
declared where a formula uses it; without it, vectors longer than one coordinate are refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, SupportsIndex

from dither.errors import ArgumentError
from dither.exact.numbers import Number, positive, show, whole
from dither.privacy.sensitivity import Unbounded

_USUAL = 1 << 1000  # whole numbers below this need no further check


def bound(sensitivity: Number | Unbounded) -> Fraction:
    """Returns a sensitivity as a rational above 0. Refuses `Unbounded` with its own reason."""
    if isinstance(sensitivity, Unbounded):
        raise ArgumentError(f"sensitivity must be a number, and it is unbounded: {sensitivity.reason}", fix=sensitivity.fix)
    if type(sensitivity) is int and 0 < sensitivity < _USUAL:
        return Fraction(sensitivity)
    return positive(sensitivity, "sensitivity")


def _dimension(value: int | None) -> int | None:
    return None if value is None else whole(value, "dimension", least=1)


def _record(norm: str, value: Fraction, dimension: int | None) -> dict[str, Any]:
    return {"norm": norm, "bound": str(value)} | ({} if dimension is None else {"dimension": dimension})


def _whole_move(value: Fraction) -> int:
    """Returns a bound on the move of whole numbers, rounded down: differences of whole numbers are whole."""
    if value < 1:
        raise ArgumentError(
            f"sensitivity must be at least 1 for whole-number answers, and it is {show(value)}.",
            fix="give a sensitivity of 1 or more, or use a mechanism with a grid.",
        )
    return math.floor(value)


@dataclass(frozen=True)
class L1:
    """The moves of all coordinates add up to at most `value`.

    >>> L1("5/2").total(None), L1("5/2", dimension=4).total(Fraction(1))
    (2, 6)
    """

    value: Fraction
    dimension: int | None

    def __init__(self, value: Number, dimension: int | None = None) -> None:
        object.__setattr__(self, "value", bound(value))
        object.__setattr__(self, "dimension", _dimension(dimension))

    def covers(self, moves: Sequence[Fraction]) -> bool:
        """Returns whether coordinates may move this far together."""
        return sum(abs(move) for move in moves) <= self.value

    def record(self) -> dict[str, Any]:
        """Returns the norm in plain values, for the records of mechanisms."""
        return _record("L1", self.value, self.dimension)

    def total(self, grid: Fraction | None) -> int:
        """Returns the largest sum of |steps|."""
        if grid is None:
            return _whole_move(self.value)
        return math.ceil(self.value / grid) + (self.dimension or 1) - 1

    def squares(self, grid: Fraction | None) -> int:
        """Returns the largest sum of steps squared."""
        if grid is None:
            return _whole_move(self.value) ** 2
        return math.ceil(self.value / grid) ** 2 + (self.dimension or 1) - 1

    def moving(self, grid: Fraction | None) -> int:
        """Returns the largest number of coordinates that move."""
        return min(self.total(grid), self.longest(grid) or self.total(grid))

    def separate(self, grid: Fraction | None) -> tuple[int, int] | None:
        """Returns (c, s) if the worst case is c coordinates that move s steps each, else None."""
        if self.dimension == 1 or self.total(grid) == 1 or (grid is not None and self.dimension is None):
            return 1, self.total(grid)
        return None

    def longest(self, grid: Fraction | None) -> int | None:
        """Returns the largest number of coordinates that the price covers (None: any)."""
        return self.dimension if grid is None or self.dimension else 1


@dataclass(frozen=True)
class L2:
    """The squares of all coordinates' moves add up to at most `value` squared.

    >>> L2(2).total(None), L2(2, dimension=2).total(None), L2(2, dimension=2).squares(Fraction(1))
    (4, 2, 9)
    """

    value: Fraction
    dimension: int | None

    def __init__(self, value: Number, dimension: int | None = None) -> None:
        object.__setattr__(self, "value", bound(value))
        object.__setattr__(self, "dimension", _dimension(dimension))

    @classmethod
    def of_squares(cls, squares: SupportsIndex, dimension: int | None = None) -> L2:
        """Returns the norm of whole numbers whose squared moves add up to at most `squares`, exactly.

        The root is rounded up, by so little that its square rounded down to a whole number is `squares` again.

        >>> L2.of_squares(9) == L2(3), L2.of_squares(2).squares(None), L2.of_squares(10**30 + 1).squares(None) - 10**30
        (True, 2, 1)
        """
        total = whole(squares, "squares", least=1)
        root = math.isqrt(total)
        if root * root == total:
            return cls(root, dimension)
        bits = total.bit_length() + 2  # 2 sqrt(total) / 2^bits stays below 1
        return cls(Fraction(math.isqrt(total << (2 * bits)) + 1, 1 << bits), dimension)

    def covers(self, moves: Sequence[Fraction]) -> bool:
        """Returns whether coordinates may move this far together."""
        return sum(move * move for move in moves) <= self.value**2

    def record(self) -> dict[str, Any]:
        """Returns the norm in plain values, for the records of mechanisms."""
        return _record("L2", self.value, self.dimension)

    def _excess(self, grid: Fraction) -> tuple[int, int, int]:
        """Returns (d, J, m) of the file's header."""
        d, most = self.dimension or 1, math.ceil((self.value / grid) ** 2) - 1
        return d, most, min(most, math.isqrt(d * most))

    def total(self, grid: Fraction | None) -> int:
        """Returns the largest sum of |steps|: for whole numbers |k| <= k^2, and Cauchy-Schwarz."""
        if grid is not None:
            d, _, most = self._excess(grid)
            return d + most
        squares = self.squares(None)
        return squares if self.dimension is None else min(squares, math.isqrt(self.dimension * squares))

    def squares(self, grid: Fraction | None) -> int:
        """Returns the largest sum of steps squared."""
        if grid is None:
            _whole_move(self.value)
            return math.floor(self.value**2) if self.dimension != 1 else math.floor(self.value) ** 2
        d, squares, most = self._excess(grid)
        return d + 2 * most + squares if d > 1 else (1 + most) ** 2

    def moving(self, grid: Fraction | None) -> int:
        """Returns the largest number of coordinates that move."""
        return min(self.squares(grid), self.longest(grid) or self.squares(grid))

    def separate(self, grid: Fraction | None) -> tuple[int, int] | None:
        """Returns (c, s) if the worst case is c coordinates that move s steps each, else None."""
        if self.dimension == 1 or self.squares(grid) == 1 or (grid is not None and self.dimension is None):
            return 1, math.isqrt(self.squares(grid))
        return None

    def longest(self, grid: Fraction | None) -> int | None:
        """Returns the largest number of coordinates that the price covers (None: any)."""
        return self.dimension if grid is None or self.dimension else 1


@dataclass(frozen=True)
class PerCoordinate:
    """At most `count` coordinates move, each by at most `each` (L0 and L-infinity). Any number of coordinates.

    >>> PerCoordinate(3, "1/2").total(Fraction(1, 4)), PerCoordinate(3, 2).squares(None)
    (6, 12)
    """

    count: int
    each: Fraction

    def __init__(self, count: int, each: Number) -> None:
        object.__setattr__(self, "count", whole(count, "count", least=1))
        object.__setattr__(self, "each", bound(each))

    def covers(self, moves: Sequence[Fraction]) -> bool:
        """Returns whether coordinates may move this far together."""
        return sum(move != 0 for move in moves) <= self.count and all(abs(move) <= self.each for move in moves)

    def record(self) -> dict[str, Any]:
        """Returns the norm in plain values, for the records of mechanisms.

        >>> PerCoordinate(3, "1/2").record()
        {'norm': 'PerCoordinate', 'count': 3, 'each': '1/2'}
        """
        return {"norm": "PerCoordinate", "count": self.count, "each": str(self.each)}

    def _step(self, grid: Fraction | None) -> int:
        return _whole_move(self.each) if grid is None else math.ceil(self.each / grid)

    def total(self, grid: Fraction | None) -> int:
        """Returns the largest sum of |steps|."""
        return self.count * self._step(grid)

    def squares(self, grid: Fraction | None) -> int:
        """Returns the largest sum of steps squared."""
        return self.count * self._step(grid) ** 2

    def moving(self, grid: Fraction | None) -> int:
        """Returns the largest number of coordinates that move."""
        return self.count

    def separate(self, grid: Fraction | None) -> tuple[int, int] | None:
        """Returns (c, s): c coordinates that move s steps each."""
        return self.count, self._step(grid)

    def longest(self, grid: Fraction | None) -> int | None:
        """Returns the largest number of coordinates that the price covers (None: any)."""
        return None


Norm = L1 | L2 | PerCoordinate
Sensitivity = Number | L1 | L2 | PerCoordinate


def as_l1(sensitivity: Sensitivity) -> Norm:
    """Returns the norm; a plain number is an L1 norm."""
    return sensitivity if isinstance(sensitivity, (L1, L2, PerCoordinate)) else L1(sensitivity)


def as_l2(sensitivity: Sensitivity) -> Norm:
    """Returns the norm; a plain number is an L2 norm."""
    return sensitivity if isinstance(sensitivity, (L1, L2, PerCoordinate)) else L2(sensitivity)
