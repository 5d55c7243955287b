"""COUNT(DISTINCT x)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dither.planning.releases.base import Collection, Kind, Linear, Reading, Release, Term, title_of
from dither.query.nodes import Aggregate, Expression
from dither.query.show import show_expression
from dither.query.work import Distinct


@dataclass(frozen=True)
class Values(Release):
    """A count of the different values of x. Each unit adds at most `max_values` values."""

    x: Expression
    max_values: int
    row = 1

    @cached_property
    def measure(self) -> Distinct:
        return Distinct(self.x, self.max_values)

    @property
    def rows_per_unit(self) -> int:
        return self.max_values

    @property
    def words(self) -> str:
        return f"different values of {show_expression(self.x)}"


@dataclass(frozen=True)
class Different(Linear):
    """COUNT(DISTINCT x)."""

    @property
    def title(self) -> str:
        return title_of(self.aggregate, "COUNT(DISTINCT {})")


def read(aggregate: Aggregate, collection: Collection) -> Reading:
    place = collection.add(Values(collection.argument(aggregate), collection.max_rows))
    return Different(aggregate, (Term(place, 0, Fraction(1)),), whole=True)


KIND = Kind({"count_distinct": read})
