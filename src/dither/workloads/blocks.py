"""What a strategy measures: whole numbers computed from the cells, and how far one unit moves them.

    Coefficients    A x, for a whole-number matrix per axis (their Kronecker product)
    Marginal        the table by some axes: every cell is counted once
    Residual        what the table by some axes adds to the tables by fewer: (n_i I - J) along each of its axes

Measurements are whole numbers, because a real A x with whole-number noise would show A x mod 1 exactly. Every bound here
is computed in whole numbers from the very coefficients that are used.

A unit is a vector u of what it has in each cell. A `Record` is in exactly one cell. A `Person` is in at most L cells, with at
most m rows in each; columns of A are not orthogonal, so L cells move sums of squares by up to L^2, not L. Squares are convex in
u, so the worst u has m rows in each of its cells. With X = A'A and J the cells of u:

    |A u|^2 = m^2 sum_{j,k in J} X_jk <= m^2 sum_{j in J} r_j       r_j = X_jj + the L - 1 largest X_jk above 0

so the sum of the L largest r_j bounds all J. Two persons that replace each other move by u - u': |A(u - u')|^2 =
|Au|^2 + |Au'|^2 - 2 u'Xu, at most 2 times as much where no X_jk is negative, at most 4 times otherwise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from dither.errors import ArgumentError
from dither.exact.numbers import whole
from dither.workloads.factors import Integers

WIDEST = 1 << 22  # a coefficient: 2^22 times 2^40 rows stays below 2^62
MOST_ROWS = 1 << 40
MOST_MEASURED = 1 << 18  # numbers along one axis
MOST_SQUARES = 1 << 60  # of one column: differences of two columns have at most 4 times as much, which fits into 64 bits


@dataclass(frozen=True)
class Record:
    """One record, in exactly one cell."""

    groups = 1
    rows = 1

    def __str__(self) -> str:
        return "one record in one cell"


@dataclass(frozen=True)
class Person:
    """One person, in at most `groups` cells with at most `rows` rows in each."""

    groups: int
    rows: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", whole(self.groups, "max_groups", least=1))  # no numpy number: those overflow
        object.__setattr__(self, "rows", whole(self.rows, "max_rows", least=1))

    def __str__(self) -> str:
        return f"one person in at most {self.groups} cells, with at most {self.rows} rows in each"


Unit = Record | Person


def unit_of(*, max_groups: int | None = None, max_rows: int | None = None) -> Unit:
    """Returns what is protected: one record, or one person with at most so many cells and rows."""
    if max_groups is None and max_rows is None:
        return Record()
    return Person(1 if max_groups is None else max_groups, 1 if max_rows is None else max_rows)


@dataclass(frozen=True)
class Moves:
    """How far one unit moves a block: the sum of moves, of their squares, and the largest single one."""

    total: int
    squares: int
    largest: int


class Block(ABC):
    """Whole numbers that are measured together, with the same noise."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many numbers it measures."""

    @abstractmethod
    def measure(self, cells: Integers) -> Integers:
        """Returns the exact numbers, from one whole number per cell."""

    @abstractmethod
    def moves(self, unit: Unit, replaced: bool) -> Moves:
        """Returns how far one unit moves them by coming or going, or by being replaced."""


@dataclass(frozen=True)
class Coefficients(Block):
    """A x for A = the Kronecker product of whole-number matrices, one per axis."""

    matrices: tuple[Integers, ...]

    def __post_init__(self) -> None:
        wide = math.prod(max(int(each.max(initial=0)), -int(each.min(initial=0))) for each in self.matrices) > WIDEST
        if wide or any(len(each) > MOST_MEASURED for each in self.matrices):
            raise ArgumentError(
                "The coefficients of this strategy are too large.", fix="use fewer axes or smaller coefficients."
            )

    @property
    def size(self) -> int:
        return math.prod(len(each) for each in self.matrices)

    def measure(self, cells: Integers) -> Integers:
        for axis, matrix in enumerate(self.matrices):
            cells = np.moveaxis(np.tensordot(matrix, cells, axes=(1, axis)), 0, axis)
        return cells

    @cached_property
    def _grams(self) -> tuple[Integers, ...]:
        found = tuple(exact_gram(each) for each in self.matrices)
        if any(int(np.diagonal(each).max()) > MOST_SQUARES for each in found):
            raise ArgumentError("This strategy is too large.", fix="use fewer rows or smaller coefficients.")
        return found

    def moves(self, unit: Unit, replaced: bool) -> Moves:
        column = math.prod(int(np.abs(each).sum(axis=0).max()) for each in self.matrices)
        entry = math.prod(int(np.abs(each).max()) for each in self.matrices)
        rows, changes = unit.groups * unit.rows, 2 if replaced else 1
        if replaced and isinstance(unit, Record) and len(self.matrices) == 1:
            return self._exchanged()
        return Moves(rows * column * changes, self._squares(unit, replaced), rows * entry * changes)

    def _exchanged(self) -> Moves:
        """How far one record that goes from one cell to another moves the numbers: exactly."""
        (matrix,), (gram,) = self.matrices, self._grams
        total = max((int(np.abs(matrix - matrix[:, [j]]).sum(axis=0).max()) for j in range(matrix.shape[1])), default=0)
        own = np.diagonal(gram)
        squares = int((own[:, None] + own[None, :] - 2 * gram).max())
        return Moves(total, squares, int((matrix.max(axis=1) - matrix.min(axis=1)).max()))

    def _squares(self, unit: Unit, replaced: bool) -> int:
        once = math.prod(int(np.diagonal(each).max()) for each in self._grams)
        most = once * unit.groups**2
        if unit.groups > 1 and len(self.matrices) == 1:
            most = min(most, together(self._grams[0], unit.groups))
        negative = any(bool((each < 0).any()) for each in self._grams)
        return most * unit.rows**2 * ((4 if negative else 2) if replaced else 1)


@dataclass(frozen=True)
class Marginal(Block):
    """The table by some axes: disjoint sums of cells. `shape`: of the whole domain."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]

    @property
    def kept(self) -> tuple[int, ...]:
        return tuple(self.shape[axis] for axis in self.axes)

    @property
    def merged(self) -> int:
        """How many cells are added up in one number."""
        return math.prod(self.shape) // math.prod(self.kept)

    @property
    def size(self) -> int:
        return math.prod(self.kept)

    def measure(self, cells: Integers) -> Integers:
        return np.asarray(cells.sum(axis=tuple(axis for axis in range(len(self.shape)) if axis not in self.axes)))

    def moves(self, unit: Unit, replaced: bool) -> Moves:
        if replaced and self.size == 1 and isinstance(unit, Record):
            return Moves(0, 0, 0)  # the number of records is public
        changes = 2 if replaced and self.size > 1 else 1
        most = min(unit.groups, self.merged)
        total, squares = unit.groups * unit.rows, crowded(unit, self.merged)
        if self.size == 1:
            total, squares = most * unit.rows, (most * unit.rows) ** 2
        return Moves(total * changes, squares * changes, most * unit.rows)


@dataclass(frozen=True)
class Residual(Block):
    """(n_i I - J) along each of its axes, on the table by those axes.

    Along one axis a record adds n - 1 to its own number and -1 to all others. Along several these multiply, so all records
    move the same multiset of amounts: X_jk is the product over axes of n_i(n_i - 1) where j and k agree, -n_i where not.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]

    def __post_init__(self) -> None:
        if math.prod(each - 1 for each in self.kept) > WIDEST:
            raise ArgumentError(
                f"A table of {' × '.join(map(str, self.kept))} cells is too large to be measured.",
                fix="ask for smaller tables.",
            )

    @property
    def kept(self) -> tuple[int, ...]:
        return tuple(self.shape[axis] for axis in self.axes)

    @property
    def size(self) -> int:
        return math.prod(self.kept)

    def measure(self, cells: Integers) -> Integers:
        return self.from_table(Marginal(self.shape, self.axes).measure(cells))

    def from_table(self, table: Integers) -> Integers:
        """Returns the numbers, from the exact table by its axes."""
        for axis, n in enumerate(self.kept):
            table = n * table - table.sum(axis=axis, keepdims=True)
        return table

    @property
    def squares(self) -> int:
        return math.prod(n * (n - 1) for n in self.kept)

    @property
    def total(self) -> int:
        return math.prod(2 * (n - 1) for n in self.kept)

    def gram(self, agree: Sequence[bool]) -> int:
        """Returns X_jk for two cells that agree along some of its axes."""
        return math.prod(n * (n - 1) if same else -n for n, same in zip(self.kept, agree, strict=True))

    def moves(self, unit: Unit, replaced: bool) -> Moves:
        changes = 2 if replaced and self.axes else 1
        entry, rows = math.prod(n - 1 for n in self.kept), unit.groups * unit.rows
        if isinstance(unit, Record) and not replaced:
            return Moves(self.total, self.squares, entry)
        if isinstance(unit, Record):
            squares = max((2 * (self.squares - self.gram(each)) for each in self._patterns()), default=0)
            return Moves(self.total * 2 if self.axes else 0, squares, entry * 2 if self.axes else 0)
        squares = self._of_person(unit)
        if replaced:
            squares *= 4 if self.axes else 1
        return Moves(self.total * rows * changes, squares, entry * rows * changes)

    def _patterns(self) -> list[tuple[bool, ...]]:
        """All ways in which two different cells may agree along its axes."""
        return [each for each in product((True, False), repeat=len(self.axes)) if not all(each)]

    def _of_person(self, unit: Unit) -> int:
        """c_a rows in number a: sum c_a^2 S + (the other pairs) times the largest X_jk between different numbers."""
        other = max([self.gram(each) for each in self._patterns()] + [0])
        merged = math.prod(self.shape) // self.size
        same = crowded(unit, merged)
        return same * (self.squares - other) + (unit.groups * unit.rows) ** 2 * other


def crowded(unit: Unit, merged: int) -> int:
    """Returns the largest sum of squares of what a unit has in disjoint sums of `merged` cells each.

    >>> crowded(Person(5, 1), 2), crowded(Person(5, 1), 1), crowded(Person(5, 3), 10)
    (9, 5, 225)
    """
    full, rest = divmod(unit.groups, merged)
    return (full * merged**2 + rest**2) * unit.rows**2


def together(gram: Integers, groups: int) -> int:
    """Returns a bound on the sum of X_jk over the pairs of any `groups` cells: the sum of the largest r_j of the header."""
    n, most = len(gram), min(groups, len(gram))
    others = np.maximum(gram, 0)
    others[np.arange(n), np.arange(n)] = 0
    others = np.sort(others, axis=1)[:, n - most + 1 :] if most > 1 else others[:, :0]
    each = [int(own) + sum(row) for own, row in zip(np.diagonal(gram).tolist(), others.tolist(), strict=True)]
    return sum(sorted(each)[-most:])


def exact_gram(matrix: Integers) -> Integers:
    """Returns A'A in whole numbers.

    Entries are split into halves of 11 bits, whose products and sums are exact in doubles. A'A stays below 2^62 with up to
    2^18 rows.
    """
    low, high = (matrix & 2047).astype(float), (matrix >> 11).astype(float)
    cross = (high.T @ low).astype(np.int64)
    found: Integers = ((high.T @ high).astype(np.int64) << 22) + ((cross + cross.T) << 11) + (low.T @ low).astype(np.int64)
    return found
