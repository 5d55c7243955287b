"""COUNT(DISTINCT x)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dither.planning.releases.base import Collection, Kind, Linear, Reading, Release, Term, called
from dither.query.nodes import Aggregate, Expression
from dither.query.show import show_expression
from dither.query.work import Distinct


@dataclass(frozen=True)
class Values(Release):
    """The different values of x, each unit keeping at most `max_values` of its own."""

    x: Expression
    max_values: int
    row = 1

    @cached_property
    def measure(self) -> Distinct:
        return Distinct(self.x, self.max_values)

    @property
    def worth(self) -> int:
        return self.max_values

    @property
    def words(self) -> str:
        return f"different values of {show_expression(self.x)}"


@dataclass(frozen=True)
class Different(Linear):
    """The number of different values."""

    @property
    def title(self) -> str:
        return called(self.asked, "COUNT(DISTINCT {})")


def read(asked: Aggregate, question: Collection) -> Reading:
    place = question.add(Values(question.argument(asked), question.max_rows))
    return Different(asked, (Term(place, 0, Fraction(1)),), whole=True)


KIND = Kind({"count_distinct": read})
