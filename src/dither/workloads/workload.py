"""Workloads: many linear questions about one histogram, known before any is asked.

    Workload = terms, asked together          each term = one factor per axis (a Kronecker product) and a weight

Histograms, thresholds, ranges, marginals, attribute means and any whole-number matrix have this form, and so have their
products and unions. Nothing is written down cell by cell unless it is small: ten axes of ten cells are ten factors.

    Workload.thresholds(8) * Workload.histogram(3)      for each of 3 groups, 8 cumulative counts
    Workload.histogram(8) + Workload.thresholds(8)      both, about the same cells
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np

from dither.errors import ArgumentError
from dither.exact.numbers import Number, between, whole
from dither.privacy.neighbours import AddRemove, Replace
from dither.workloads.blocks import unit_of
from dither.workloads.factors import All, Cells, Each, Factor, Floats, Integers, Matrix, Ranges, Thresholds
from dither.workloads.price import Price

if TYPE_CHECKING:
    from dither.workloads.compare import Comparison
    from dither.workloads.design import Design

DENSE = 2048  # cells, up to which a matrix of cells by cells is written down
MOST_TERMS = 10_000


@dataclass(frozen=True)
class Term:
    """The questions of one Kronecker product. `weight` multiplies their squared errors in what is minimised."""

    factors: tuple[Factor, ...]
    weight: float = 1.0

    @property
    def size(self) -> int:
        return math.prod(each.size for each in self.factors)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many questions there are along each axis."""
        return tuple(each.size for each in self.factors)

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that are not added up."""
        return tuple(place for place, each in enumerate(self.factors) if not isinstance(each, All))

    @property
    def plain(self) -> bool:
        """Whether it is a marginal: some axes kept, all others added up."""
        return all(isinstance(each, (All, Each)) for each in self.factors)

    def apply(self, cells: Cells) -> Cells:
        for axis, factor in enumerate(self.factors):
            if not isinstance(factor, Each):
                cells = np.moveaxis(factor.apply(np.moveaxis(cells, axis, 0)), 0, axis)
        return cells


@dataclass(frozen=True)
class Workload:
    """Linear questions about the cells of a domain. Build it with the functions below, `*` and `+`.

    >>> Workload.thresholds(8).size, Workload.marginals((2, 3, 4), 2).size
    (8, 36)
    """

    shape: tuple[int, ...]
    terms: tuple[Term, ...]

    # --- kinds -------------------------------------------------------------------------------------------------------

    @classmethod
    def histogram(cls, *sizes: int) -> Workload:
        """A count for each cell."""
        return cls.of(*(Each(_cells(n)) for n in sizes))

    @classmethod
    def total(cls, *sizes: int) -> Workload:
        """The count of everything."""
        return cls.of(*(All(_cells(n)) for n in sizes))

    @classmethod
    def thresholds(cls, cells: int) -> Workload:
        """How many are at most t, for every t."""
        return cls.of(Thresholds(_cells(cells)))

    @classmethod
    def ranges(cls, cells: int) -> Workload:
        """How many lie from a to b, for every a and b."""
        return cls.of(Ranges(_cells(cells)))

    @classmethod
    def attributes(cls, count: int) -> Workload:
        """How many records have each of `count` yes-or-no attributes: their means, once divided by n."""
        has = Matrix(((0, 1),))
        if whole(count, "attributes", least=1) > MOST_TERMS:
            raise ArgumentError(f"A workload has at most {MOST_TERMS} attributes.", fix="ask about fewer.")
        places = range(count)
        terms = (Term(tuple(has if place == own else All(2) for place in places)) for own in places)
        return cls((2,) * count, tuple(terms))

    @classmethod
    def marginals(cls, sizes: Sequence[int], ways: int | Iterable[Sequence[int]]) -> Workload:
        """The tables by some axes, added up over the others: all by at most `ways` axes, or those listed.

        With a number the total is one of the tables.
        """
        axes = tuple(_cells(n) for n in _listed(sizes, "sizes", "(5, 2, 3)"))
        if isinstance(ways, int) and not isinstance(ways, bool):
            most = min(whole(ways, "ways", least=0), len(axes))
            chosen = [each for k in range(most + 1) for each in combinations(range(len(axes)), k)]
        else:
            listed = [_listed(each, "ways", "[(0, 1), (2,)]") for each in _listed(ways, "ways", "[(0, 1), (2,)]")]
            chosen = [tuple(sorted({whole(axis, "axis", least=0) for axis in each})) for each in listed]
        if not chosen or any(not 0 <= axis < len(axes) for each in chosen for axis in each):
            raise ArgumentError(
                f"Axes must be from 0 to {len(axes) - 1}, in at least one table.", fix="list axes by their place."
            )
        terms = [Term(tuple(Each(n) if i in each else All(n) for i, n in enumerate(axes))) for each in dict.fromkeys(chosen)]
        return cls(axes, tuple(terms))._checked()

    @classmethod
    def matrix(cls, rows: Any) -> Workload:
        """Any whole-number coefficients: a row per question, a column per cell."""
        listed = [_listed(row, "rows", "[[1, 0], [1, 1]]") for row in _listed(rows, "rows", "[[1, 0], [1, 1]]")]
        return cls.of(Matrix(tuple(tuple(map(_plain, row)) for row in listed)))

    @classmethod
    def of(cls, *factors: Factor) -> Workload:
        """The product of factors, one per axis."""
        if not factors:
            raise ArgumentError("A workload needs at least one axis.", fix="give the number of cells.")
        return cls(tuple(each.cells for each in factors), (Term(factors),))

    # --- several at once ---------------------------------------------------------------------------------------------

    def __mul__(self, other: Workload) -> Workload:
        terms = (Term(a.factors + b.factors, a.weight * b.weight) for a, b in product(self.terms, other.terms))
        return Workload(self.shape + other.shape, tuple(terms))._checked()

    def __add__(self, other: Workload) -> Workload:
        if self.shape != other.shape:
            raise ArgumentError(
                f"Workloads about {_show(self.shape)} and {_show(other.shape)} cells cannot be asked together.",
                fix="give both the same axes, with total() along those that one does not use.",
            )
        return Workload(self.shape, self.terms + other.terms)._checked()

    def weighted(self, weight: Number) -> Workload:
        """Returns the same questions, whose squared errors count `weight` times."""
        times = between(weight, "weight", Fraction(1, 10**9), 10**9)
        return replace(self, terms=tuple(replace(each, weight=each.weight * float(times)) for each in self.terms))

    def _checked(self) -> Workload:
        if len(self.terms) > MOST_TERMS:
            raise ArgumentError(f"A workload has at most {MOST_TERMS} terms, and this has {len(self.terms)}.", fix="ask fewer.")
        return self

    # --- facts -------------------------------------------------------------------------------------------------------

    @property
    def cells(self) -> int:
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        """The number of questions."""
        return sum(each.size for each in self.terms)

    @property
    def dense(self) -> bool:
        """Whether matrices of cells by cells can be written down."""
        return self.cells <= DENSE

    @property
    def plain(self) -> bool:
        """Whether all terms are marginals."""
        return all(each.plain for each in self.terms)

    def gram(self) -> Floats:
        """Returns W'W with the weights in it, for a small domain."""
        found = np.zeros((self.cells, self.cells))
        for term in self.terms:
            part = np.array([[term.weight]])
            for factor in term.factors:
                part = np.kron(part, factor.gram())
            found += part
        return found

    def rows(self) -> Integers:
        """Returns W, for a small domain."""
        return np.concatenate([self._rows(term) for term in self.terms])

    @staticmethod
    def _rows(term: Term) -> Integers:
        part = np.ones((1, 1), dtype=np.int64)
        for factor in term.factors:
            part = np.kron(part, factor.rows())
        return part

    def answers(self, histogram: Cells) -> tuple[Cells, ...]:
        """Returns the exact answers of each term, from one number per cell."""
        cells = self.checked(histogram)
        return tuple(term.apply(cells) for term in self.terms)

    # --- at a price --------------------------------------------------------------------------------------------------

    def design(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        neighbours: AddRemove | Replace | None = None,
        max_groups: int | None = None,
        max_rows: int | None = None,
    ) -> Design:
        """Returns the strategy with the least error at a price, with its noise. It reads no data.

        One record in one cell is protected; with `max_groups` and `max_rows`, one person in so many cells with so many rows.
        """
        from dither.workloads.design import design  # loads scipy

        relation = AddRemove() if neighbours is None else neighbours
        if not isinstance(relation, AddRemove | Replace):
            raise ArgumentError("neighbours must be AddRemove() or Replace().", fix="leave it out, or give one of these.")
        return design(self, Price.of(epsilon, delta, rho), relation, unit_of(max_groups=max_groups, max_rows=max_rows))

    def compare(self, *, epsilon: Number | None = None, delta: Number | None = None, rho: Number | None = None) -> Comparison:
        """Compares the ways to ask: one by one, as one vector, as a histogram, and by the best strategy. It reads no data."""
        from dither.workloads.compare import compare  # loads scipy

        return compare(self, Price.of(epsilon, delta, rho))

    def checked(self, histogram: Cells) -> Cells:
        """Returns a histogram in the shape of the domain. Refuses any other number of cells."""
        try:
            cells = np.asarray(histogram)
        except ValueError:  # rows of different lengths
            raise ArgumentError("A histogram must be an array.", fix="count records into the cells of the domain.") from None
        if cells.size != self.cells:
            raise ArgumentError(
                f"The histogram must have {_show(self.shape)} cells, and it has {_show(cells.shape)}.",
                fix="count records into the cells of the workload's domain.",
            )
        return cells.reshape(self.shape)

    def __iter__(self) -> Iterator[Term]:
        return iter(self.terms)


def _listed(value: Any, name: str, example: str) -> list[Any]:
    """Returns the members of a list. Refuses texts, and what has no members."""
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0):
        return list(value)
    raise ArgumentError(f"{name} must be a list, and it is a {type(value).__name__}.", fix=f"write it as in {example}.")


def _cells(value: int) -> int:
    return whole(value, "cells", least=1)


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, (np.integer, np.bool_, bool)) else value


def _show(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape))
