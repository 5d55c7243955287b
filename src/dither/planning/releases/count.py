"""COUNT(*), COUNT(x) and COUNT(DISTINCT unit).

Counts with disjoint FILTERs are read from one release (parts.py). If joint releases (sums.py) count the same rows, a count is
read from them; several counts are combined by inverse variance. Otherwise it is a release of its own. If the catalog says that
x is never NULL, COUNT(*) and COUNT(x) are the same number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dither.planning.releases import parts
from dither.planning.releases.base import (
    Bounds,
    Cells,
    Collection,
    Kind,
    Linear,
    Noise,
    Number,
    Reading,
    Release,
    Term,
    not_null,
)
from dither.planning.releases.sums import joint
from dither.planning.sensitivity import PARTS
from dither.query.nodes import Aggregate, Call, Expression, Literal
from dither.query.show import show_expression
from dither.query.work import Cell, Quantised, Sums


@dataclass(frozen=True)
class Rows(Release):
    """A count of rows; with x, of those where x is not NULL. `where`: the condition, if x comes from a FILTER.

    `rows`: those by whose number a unit is cut. Where they are more than are counted here, a unit may add a part of a row, so
    a row counts for 2^16.
    """

    max_rows: int
    x: Expression | None = None
    where: Expression | None = None
    rows: Expression | None = None
    empty_value = (0,)

    @property
    def row(self) -> int:
        return 1 if self._own == self.rows else PARTS

    @property
    def _own(self) -> Expression | None:
        return None if self.x is None else not_null(self.x)

    @cached_property
    def measure(self) -> Sums:
        if self._own is None or self._own == self.rows:
            return Sums((Cell(constant=1),), self.max_rows, self.rows)
        counts = Quantised(Call("case", (self._own, Literal(1), Literal(0))), Fraction(0), Fraction(1), 1)
        return Sums((Cell(counts, linear=self.row),), self.max_rows, self.rows)

    @property
    def rows_per_unit(self) -> int:
        return self.max_rows

    @property
    def words(self) -> str:
        if self.x is None:
            return "rows"
        if self.where is not None:
            return f"rows where {show_expression(self.where)}"
        return f"rows where {show_expression(self.x)} is not NULL"


@dataclass(frozen=True)
class Units(Release):
    """A count of the units in the group."""

    row = 1
    rows_per_unit = 1
    empty_value = (0,)
    measure = Sums((Cell(constant=1),), 1)
    words = "one for each person"


def read(aggregate: Aggregate, collection: Collection) -> Reading:
    x = collection.lower(aggregate).argument
    everywhere = collection.counts_every_row(x)
    if collection.public_rows is not None and everywhere:
        return Linear(aggregate, (), Fraction(collection.public_rows), whole=True)
    if aggregate.name in collection.parts:
        part, cells = collection.parts[aggregate.name]
        each = Fraction(1, collection.releases[part].row)
        terms = tuple(Term(part, cell, each) for cell in cells)
        return Linear(aggregate, terms, whole=True, parted=collection.may_be_cut)
    places = tuple(place for each, place in collection.joint.items() if _counts(collection, each, x, everywhere))
    if places:
        return Combined(aggregate, places, everywhere)
    where = aggregate.where if aggregate.argument is None else None
    own = None if everywhere or x is None else not_null(x)
    release = Rows(collection.max_rows, None if everywhere else x, where, collection.rows_that_count(own))
    terms = (Term(collection.add(release), 0, Fraction(1, release.row)),)
    return Linear(aggregate, terms, whole=True, parted=release.row > 1)


def _counts(collection: Collection, joined: Expression, x: Expression | None, everywhere: bool) -> bool:
    """Whether the joint release of the column `joined` counts the rows where x is not NULL."""
    if everywhere:
        return joint(collection, joined)[1].nulls or not collection.facts(joined).nullable
    return joined == x


def read_units(aggregate: Aggregate, collection: Collection) -> Reading:
    return People(aggregate, (Term(collection.add(Units()), 0, Fraction(1)),), whole=True)


@dataclass(frozen=True)
class People(Linear):
    """COUNT(DISTINCT unit)."""

    @property
    def title(self) -> str:
        return "COUNT(DISTINCT unit)"


@dataclass(frozen=True)
class Combined(Reading):
    """The counts of all joint releases that count the same rows, weighted by inverse variance. The weights add up to 1."""

    aggregate: Aggregate
    places: tuple[int, ...]
    nulls: bool  # COUNT(*) adds the NULL cell, COUNT(x) does not
    whole = True

    def linear(self, noises: Sequence[Noise]) -> Linear:
        """Returns the weighted sum of cells for these noises."""
        alone = len(self.places) == 1
        variances = [1.0] if alone else [self._variance(noises[place]) for place in self.places]
        inverse = [max(1, round(min(variances) / v * (1 << 20))) for v in variances]
        terms = []
        for place, weight in zip(self.places, inverse, strict=True):
            each = Fraction(weight, sum(inverse)) / noises[place].of.row
            terms += [Term(place, cell, each) for cell in range(self._width(noises[place]))]
        return Linear(self.aggregate, tuple(terms), whole=True)

    def _variance(self, noise: Noise) -> float:
        return noise.variance * self._width(noise) / noise.of.row**2

    def _width(self, noise: Noise) -> int:
        return noise.of.cells if self.nulls else 2

    def values(self, noises: Sequence[Noise], noisy: Cells) -> list[Number]:
        return self.linear(noises).values(noises, noisy)

    def margins(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> list[float | None]:
        return self.linear(noises).margins(noises, noisy, confidence)

    def bounds(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> Bounds:
        return self.linear(noises).bounds(noises, noisy, confidence)

    def smallest(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> NDArray[np.float64]:
        return self.linear(noises).smallest(noises, noisy, confidence)

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        return self.linear(noises).predicted(noises, rows, confidence)


KIND = Kind({"count": read, "count_units": read_units}, parts.share_counts)
