"""COUNT(*), COUNT(x) and COUNT(DISTINCT unit).

A count is read from the joint releases (sums.py) that count the same rows, where there are any: several columns bring several
counts, which are combined by inverse variance. Else it is a release of its own. Where x cannot be NULL by the catalog,
COUNT(*) and COUNT(x) are the same number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

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
    present,
)
from dither.planning.releases.sums import joint
from dither.query.nodes import Aggregate, Expression
from dither.query.show import show_expression
from dither.query.work import Cell, Sums


@dataclass(frozen=True)
class Rows(Release):
    """The rows; with x, those where it is not NULL; `where` if that is all that x says."""

    max_rows: int
    x: Expression | None = None
    where: Expression | None = None
    row = 1
    nothing = (0,)

    @cached_property
    def measure(self) -> Sums:
        return Sums((Cell(constant=1),), self.max_rows, None if self.x is None else present(self.x))

    @property
    def worth(self) -> int:
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
    """One for each unit in the group."""

    row = 1
    worth = 1
    nothing = (0,)
    measure = Sums((Cell(constant=1),), 1)
    words = "one for each person"


def read(asked: Aggregate, question: Collection) -> Reading:
    x = question.lowered(asked).argument
    everywhere = question.everywhere(x)
    if question.known is not None and everywhere:
        return Linear(asked, (), Fraction(question.known), whole=True)
    places = tuple(place for each, place in question.joint.items() if _counts(question, each, x, everywhere))
    if places:
        return Combined(asked, places, everywhere)
    where = asked.where if asked.argument is None else None
    place = question.add(Rows(question.max_rows, None if everywhere else x, where))
    return Linear(asked, (Term(place, 0, Fraction(1)),), whole=True)


def _counts(question: Collection, joined: Expression, x: Expression | None, everywhere: bool) -> bool:
    """Whether the joint release of a column counts the rows where x is not NULL."""
    if everywhere:
        return joint(question, joined)[1].nulls or not question.facts(joined).nullable
    return joined == x


def read_units(asked: Aggregate, question: Collection) -> Reading:
    return People(asked, (Term(question.add(Units()), 0, Fraction(1)),), whole=True)


@dataclass(frozen=True)
class People(Linear):
    """COUNT(DISTINCT unit)."""

    @property
    def title(self) -> str:
        return "COUNT(DISTINCT unit)"


@dataclass(frozen=True)
class Combined(Reading):
    """The counts of all joint releases that count the same rows, weighted by inverse variance; the weights add to 1."""

    asked: Aggregate
    places: tuple[int, ...]
    nulls: bool  # COUNT(*) adds the NULL cell, COUNT(x) does not
    whole = True

    def linear(self, noises: Sequence[Noise]) -> Linear:
        """The weighted sum of cells, once the noises are known."""
        alone = len(self.places) == 1
        variances = [1.0] if alone else [self._variance(noises[place]) for place in self.places]
        inverse = [max(1, round(min(variances) / v * (1 << 20))) for v in variances]
        terms = []
        for place, weight in zip(self.places, inverse, strict=True):
            each = Fraction(weight, sum(inverse)) / noises[place].of.row
            terms += [Term(place, cell, each) for cell in range(self._width(noises[place]))]
        return Linear(self.asked, tuple(terms), whole=True)

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

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        return self.linear(noises).predicted(noises, rows, confidence)


KIND = Kind({"count": read, "count_units": read_units})
