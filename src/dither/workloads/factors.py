"""Questions along one axis: what a workload is made of.

    Each          one question per cell                  a histogram
    All           the total                              one question
    Thresholds    how many are at most t, for every t    a cumulative histogram
    Ranges        how many lie from a to b, for every a <= b
    Matrix        any whole-number coefficients

A factor is a matrix W with a row per question and a column per cell. The optimisers only need W'W (`gram`), and answers and
their variances are computed from cells without writing W down: a thousand cells have half a million ranges.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Cells = NDArray[Any]  # whole numbers, or estimates of them

LARGEST = 1 << 20  # of a coefficient


class Factor(ABC):
    """Linear questions about the cells of one axis."""

    tag: ClassVar[str]
    cells: int

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of questions."""

    @abstractmethod
    def gram(self) -> Floats:
        """Returns W'W."""

    @abstractmethod
    def apply(self, cells: Cells) -> Cells:
        """Returns the answers, along the first axis of `cells`."""

    @abstractmethod
    def totals(self) -> Integers:
        """Returns the sum of the absolute coefficients in each column."""

    @abstractmethod
    def squares(self) -> Integers:
        """Returns the sum of the squared coefficients in each column."""

    def spread(self, covariance: Floats) -> Floats:
        """Returns the variance of each answer, from the covariance of the cells."""
        found: Floats = np.einsum("ij,ij->i", self.rows().astype(float), self.apply(covariance))
        return found

    def rows(self) -> Integers:
        """Returns W itself."""
        return self.apply(np.eye(self.cells, dtype=np.int64))


@dataclass(frozen=True)
class Each(Factor):
    """One question per cell.

    >>> Each(2).rows().tolist()
    [[1, 0], [0, 1]]
    """

    tag: ClassVar[str] = "each"
    cells: int

    @property
    def size(self) -> int:
        return self.cells

    def gram(self) -> Floats:
        return np.eye(self.cells)

    def apply(self, cells: Cells) -> Cells:
        return cells

    def totals(self) -> Integers:
        return np.ones(self.cells, dtype=np.int64)

    squares = totals

    def spread(self, covariance: Floats) -> Floats:
        return np.diagonal(covariance).copy()


@dataclass(frozen=True)
class All(Factor):
    """The total of the cells.

    >>> All(3).rows().tolist()
    [[1, 1, 1]]
    """

    tag: ClassVar[str] = "all"
    cells: int

    @property
    def size(self) -> int:
        return 1

    def gram(self) -> Floats:
        return np.ones((self.cells, self.cells))

    def apply(self, cells: Cells) -> Cells:
        return np.asarray(np.sum(cells, axis=0, keepdims=True))

    def totals(self) -> Integers:
        return np.ones(self.cells, dtype=np.int64)

    squares = totals

    def spread(self, covariance: Floats) -> Floats:
        return np.array([covariance.sum()])


@dataclass(frozen=True)
class Thresholds(Factor):
    """How many are in cell t or before it, for every t.

    >>> Thresholds(3).rows().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """

    tag: ClassVar[str] = "thresholds"
    cells: int

    @property
    def size(self) -> int:
        return self.cells

    def gram(self) -> Floats:
        place = np.arange(self.cells, dtype=float)
        found: Floats = self.cells - np.maximum(place[:, None], place[None, :])
        return found

    def apply(self, cells: Cells) -> Cells:
        return np.cumsum(cells, axis=0)

    def totals(self) -> Integers:
        return np.arange(self.cells, 0, -1, dtype=np.int64)

    squares = totals

    def spread(self, covariance: Floats) -> Floats:
        return np.diagonal(np.cumsum(np.cumsum(covariance, axis=0), axis=1)).copy()


@dataclass(frozen=True)
class Ranges(Factor):
    """How many are in cells a to b, for every a <= b, by a and then b.

    >>> Ranges(2).rows().tolist()
    [[1, 0], [1, 1], [0, 1]]
    """

    tag: ClassVar[str] = "ranges"
    cells: int

    @property
    def size(self) -> int:
        return self.cells * (self.cells + 1) // 2

    def gram(self) -> Floats:
        place = np.arange(self.cells, dtype=float)
        first, last = np.minimum(place[:, None], place[None, :]), np.maximum(place[:, None], place[None, :])
        found: Floats = (first + 1) * (self.cells - last)
        return found

    @cached_property
    def _ends(self) -> tuple[Integers, Integers]:
        return np.triu_indices(self.cells)

    def apply(self, cells: Cells) -> Cells:
        until = np.concatenate([np.zeros_like(cells[:1]), np.cumsum(cells, axis=0)])
        first, last = self._ends
        return np.asarray(until[last + 1] - until[first])

    def totals(self) -> Integers:
        place = np.arange(self.cells, dtype=np.int64)
        return (place + 1) * (self.cells - place)

    squares = totals

    def spread(self, covariance: Floats) -> Floats:
        until = np.zeros((self.cells + 1, self.cells + 1))
        until[1:, 1:] = np.cumsum(np.cumsum(covariance, axis=0), axis=1)
        first, last = self._ends
        own = np.diagonal(until)
        return own[last + 1] + own[first] - 2 * until[first, last + 1]


@dataclass(frozen=True)
class Matrix(Factor):
    """Any whole-number coefficients: a row per question, a column per cell."""

    tag: ClassVar[str] = "matrix"
    coefficients: tuple[tuple[int, ...], ...]
    cells: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        widths = {len(row) for row in self.coefficients}
        if len(widths) != 1 or 0 in widths:
            raise ArgumentError(
                "The rows of a matrix must have the same length, at least 1.",
                fix="give one coefficient for each cell in every row.",
            )
        if any(type(each) is not int or abs(each) > LARGEST for row in self.coefficients for each in row):
            raise ArgumentError(
                f"Coefficients must be whole numbers from -{LARGEST} to {LARGEST}.",
                fix="multiply the questions by a whole number and round them, and divide the answers.",
            )

        object.__setattr__(self, "cells", widths.pop())

    @property
    def size(self) -> int:
        return len(self.coefficients)

    @cached_property
    def _rows(self) -> Integers:
        return np.array(self.coefficients, dtype=np.int64)

    def gram(self) -> Floats:
        rows = self._rows.astype(float)
        return np.asarray(rows.T @ rows)

    def apply(self, cells: Cells) -> Cells:
        return np.tensordot(self._rows, cells, axes=1)

    def totals(self) -> Integers:
        return np.asarray(np.abs(self._rows).sum(axis=0))

    def squares(self) -> Integers:
        return np.asarray((self._rows**2).sum(axis=0))
