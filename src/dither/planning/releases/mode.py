"""MODE(x): the exponential mechanism chooses among the public values of x, by how many rows have them.

The score of a value is the weight of its bin (Bins in query/work.py). A unit adds at most max_rows rows' worth to all bins of a
group together, and never takes anything away, so all scores of neighbours move the same way: `monotone`, with half the noise of
a quantile. Under replacement one unit leaves and another enters: two such moves, as for a quantile. Values that are not public
are not counted, as in GROUP BY. There is no margin: with the stated confidence, at most `behind` rows fewer have the chosen
value than the most frequent one. In an empty group every value is as likely.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.catalog.values import Key
from dither.errors import QueryError
from dither.exact.numbers import show_rounded
from dither.mechanisms import Exponential
from dither.planning.releases.base import Bounds, Cells, Collection, Kind, Noise, Number, Reading, Release
from dither.planning.sensitivity import Bounding
from dither.query.nodes import Aggregate, Call, Expression, Literal
from dither.query.resolve.aggregates import short
from dither.query.show import show_expression
from dither.query.work import SCALE, Bins, Histogram, Quantised

MOST_LISTED = 500  # values that a CASE compares with, one by one


@dataclass(frozen=True)
class Mode(Release):
    """The place of the chosen value among the public ones."""

    x: Expression
    index: Expression  # NULL for values that are not public
    count: int
    max_rows: int
    allows_gaussian = False
    row = 0

    @property
    def empty_value(self) -> dict[int, int]:
        return {}

    @property
    def weight(self) -> float:
        """The square of its margin in rows over a count's margin, each at the same price and 95 %."""
        return ((math.log(self.count) + 3) / 3) ** 2

    @cached_property
    def measure(self) -> Bins:
        return Bins(Quantised(self.index, Fraction(0), Fraction(1), max(self.count - 1, 1)), self.max_rows)

    @property
    def parameters(self) -> dict[str, Fraction]:
        return {"values": Fraction(self.count)}

    @property
    def rows_per_unit(self) -> int:
        return self.max_rows

    @property
    def words(self) -> str:
        return f"{self.count} values of {show_expression(self.x)}"

    def pure(self, epsilon: Fraction, bounding: Bounding) -> Noise:
        changes = bounding.neighbours.changes
        each = epsilon / (bounding.max_groups * changes)
        mechanism = Exponential(epsilon=each, sensitivity=self.max_rows * SCALE, monotone=True)
        return Noise(self, mechanism, bounding.max_groups, changes)

    def gaussian(self, rho: Fraction, bounding: Bounding) -> Noise:
        raise TypeError("no noise is added to a choice")

    def scores(self, histogram: Any) -> NDArray[np.int64]:
        """Returns the weight of each value."""
        found, scores = Histogram.of(histogram), np.zeros(self.count, dtype=np.int64)
        inside = found.bins < self.count
        scores[found.bins[inside]] = found.weights[inside]
        return scores

    def draw(self, noise: Noise, exact: Sequence[Any]) -> NDArray[Any]:
        chosen = [int(noise.mechanism.release(self.scores(histogram))) for histogram in exact]
        return np.array(chosen, dtype=np.int64).reshape(-1, 1)

    def relative(self, noise: Noise) -> float:
        return 2 / float(noise.mechanism.loss().epsilon()) ** 2


def read(aggregate: Aggregate, collection: Collection) -> Chosen:
    x = collection.argument(aggregate)
    values = tuple(value for value in collection.facts(x).values or () if value is not None)
    if not values:
        raise QueryError("MODE has no value to choose from.", span=aggregate.span, fix="declare `values` for the column.")
    index = _index(x, values, aggregate)
    return Chosen(aggregate, collection.add(Mode(x, index, len(values), collection.max_rows)), values)


def _index(x: Expression, values: tuple[Key, ...], aggregate: Aggregate) -> Expression:
    """Returns the place of x among the values, NULL if it is not one of them."""
    first, last = values[0], values[-1]
    inside = Call("and", (Call("ge", (x, Literal(first))), Call("le", (x, Literal(last)))))
    if _whole(first) and list(values) == list(range(int(first), int(first) + len(values))):  # type: ignore[arg-type]
        return Call("case", (inside, Call("sub", (x, Literal(first))), Literal(None)))
    if isinstance(first, datetime.date) and [_days(first, each) for each in values] == list(range(len(values))):
        return Call("case", (inside, Call("days_between", (Literal(first), x)), Literal(None)))
    if len(values) > MOST_LISTED:
        raise QueryError(
            f"MODE chooses among at most {MOST_LISTED} values, and {short(x)} has {len(values)}.",
            span=aggregate.span,
            fix="choose among fewer, such as MODE(BUCKET(x, 10)) or MODE(YEAR(x)).",
        )
    arms = [part for place, value in enumerate(values) for part in (Call("eq", (x, Literal(value))), Literal(place))]
    return Call("case", (*arms, Literal(None)))


def _whole(value: Key) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _days(first: datetime.date, value: Key) -> int | None:
    return (value - first).days if isinstance(value, datetime.date) and type(value) is type(first) else None


@dataclass(frozen=True)
class Chosen(Reading):
    """The chosen value."""

    aggregate: Aggregate
    noise: int
    labels: tuple[Key, ...]
    label = True

    @property
    def whole(self) -> bool:  # type: ignore[override]
        return _whole(self.labels[0])

    def values(self, noises: Sequence[Noise], noisy: Cells) -> list[Number]:
        return [self.labels[place] for place in noisy[self.noise][:, 0].tolist()]

    def margins(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> list[float | None]:
        return [None] * len(noisy[self.noise])

    def bounds(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> Bounds:
        every = np.full(len(noisy[self.noise]), math.inf)
        return -every, every

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        return None

    def behind(self, noises: Sequence[Noise], confidence: Fraction) -> float:
        """Returns how many rows fewer may have the chosen value than the most frequent one."""
        mechanism = noises[self.noise].mechanism
        if not isinstance(mechanism, Exponential):
            raise TypeError("a mode is chosen by the exponential mechanism")
        return float(mechanism.margin(confidence, candidates=len(self.labels)) / SCALE)

    def expected(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> str:
        return f"at most {show_rounded(self.behind(noises, confidence))} rows behind the most frequent value"


KIND = Kind({"mode": read})
