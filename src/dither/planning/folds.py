"""Aggregates rows of a noisy table: a group of a SELECT around the question, or the frame of a window. As in DuckDB, but
nothing fails: where an aggregate has no value, it is NULL.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from typing import Any

from dither.planning.rows import UNKNOWN, Extreme, Made, Part, Result, Row, Rows, Source, Total, Unknown, sortable
from dither.query.functions.base import Cell, double, nan_to_null
from dither.query.functions.registry import evaluator
from dither.query.nodes import Across, Call, Column, Literal


class Members:
    """The values of an aggregate's arguments in the rows of a group or partition, with FILTER applied."""

    def __init__(self, across: Across, rows: Sequence[Row], table: Rows) -> None:
        holds = None if across.where is None else evaluator(across.where)
        self.across = across
        self.rows = rows
        self.counts = [holds is None or holds(row.values) is True for row in rows]
        self.unsure = table.unsure(across)
        self.noisy = table.reads(*across.arguments)
        compute = [evaluator(each) for each in across.arguments]
        self.values = [tuple(value(row.values) for value in compute) for row in rows]
        self.before = [0, *itertools.accumulate(self.counts)]  # how many rows count before each place
        self.parts: list[Part] | None = None  # of the rows that count; None: there are none to compute a margin from
        if self.noisy and not self.unsure and across.function in _SOUND:
            every = zip(rows, self.values, self.counts, strict=True)
            parts = [self._part(row, value[0]) for row, value, counts in every if counts]
            self.parts = None if any(isinstance(part, Unknown) for part in parts) else parts

    def _part(self, row: Row, value: Cell) -> Part:
        """Returns the source of a row's argument, or its public number."""
        source = row.source(self.across.arguments[0])
        if value is None or not isinstance(value, (int, float)):
            return UNKNOWN  # noise decided that it is NULL, or it is no number
        return value if source is None else source

    def of(self, start: int, stop: int) -> Result:
        """Returns the aggregate of the rows from start to stop."""
        return self.over([(start, stop)])[0]

    def over(self, frames: Sequence[tuple[int, int]]) -> list[Result]:
        """Returns the aggregate of each frame."""
        running = _Running(self.across.function) if self.across.function in _RUNNING else None
        result: list[Result] = []
        for start, stop in frames:
            if running is not None and start == 0:
                value = running.up_to(stop, self)
            else:
                value = fold(self.across.function, [self.values[i] for i in range(start, stop) if self.counts[i]])
            result.append((value, self._source(start, stop)))
        return result

    def _source(self, start: int, stop: int) -> Source | None:
        function = self.across.function
        if not self.noisy and not self.unsure:
            return None
        start, stop = self.before[start], self.before[stop]
        if self.parts is None or start >= stop:
            return UNKNOWN
        if stop - start == 1:
            only = self.parts[start]
            return None if isinstance(only, (int, float)) else only
        if function in ("min", "max"):
            return Extreme("least" if function == "min" else "greatest", self.parts, start, stop)
        total = Total(self.parts, start, stop)
        mean = Call("div", (Column("total"), Literal(stop - start)))
        return total if function == "sum" else Made(mean, {"total": total}, {})


_SOUND = ("sum", "avg", "min", "max")  # what a margin can be stated for
_RUNNING = ("count", "sum", "avg", "min", "max")


class _Running:
    """An aggregate of a growing frame, so that a running total takes one step for each row."""

    def __init__(self, function: str) -> None:
        self.function = function
        self.stop, self.count, self.sum = 0, 0, 0.0
        self.whole: int | None = 0  # the exact sum, while all values are whole
        self.best: Cell = None

    def up_to(self, stop: int, members: Members) -> Cell:
        """Returns the aggregate of the first rows. `stop` never goes back."""
        for place in range(self.stop, stop):
            if members.counts[place]:
                self._add(members.values[place])
        self.stop = stop
        return self._value()

    def _add(self, values: tuple[Cell, ...]) -> None:
        value: Any = values[0] if values else 1
        if value is None:
            return
        self.count += 1
        if self.function in ("sum", "avg"):
            self.whole = self.whole + value if self.whole is not None and type(value) is int else None
            self.sum += double(value)
        elif self.function in ("min", "max") and (self.best is None or _before(value, self.best, self.function)):
            self.best = value

    def _value(self) -> Cell:
        if self.function == "count":
            return self.count
        if not self.count:
            return None
        if self.function in ("min", "max"):
            return self.best
        total = self.sum if self.whole is None else self.whole
        return nan_to_null(total if self.function == "sum" else double(total) / self.count)


def _before(value: Any, best: Any, function: str) -> bool:
    return bool(sortable(value) < sortable(best) if function == "min" else sortable(value) > sortable(best))


def fold(function: str, rows: Sequence[tuple[Cell, ...]]) -> Cell:
    """Aggregates the arguments of rows; NULLs do not count."""
    if function == "count":
        return sum(not row or row[0] is not None for row in rows)
    given = [row for row in rows if row[0] is not None and (len(row) < 2 or row[1] is not None)]
    values: list[Any] = [row[0] for row in given]
    if function == "count_distinct":
        return len({sortable(value) for value in values})
    if not values:
        return None
    if function in ("arg_max", "arg_min"):
        best = given[0]
        for row in given[1:]:
            best = row if _before(row[1], best[1], function[4:]) else best
        return best[0]
    if function in ("min", "max"):
        return (min if function == "min" else max)(values, key=sortable)  # type: ignore[no-any-return]
    return _statistic(function, values)


def _statistic(function: str, values: Sequence[Any]) -> Cell:
    """Aggregates numbers. Infinities give what doubles give; NaN is NULL."""
    total = sum(values) if all(type(value) is int for value in values) else sum(map(double, values))
    if function == "sum":
        return nan_to_null(total)
    numbers = [double(value) for value in values]
    if function == "avg":
        return nan_to_null(double(total) / len(values))
    if not all(map(math.isfinite, numbers)):
        return None
    if function == "median":
        return statistics.median(numbers)
    count = len(numbers) - function.endswith("_samp")
    if count < 1:
        return None
    try:
        mean = math.fsum(numbers) / len(numbers)
        spread = math.fsum((number - mean) ** 2 for number in numbers) / count
    except OverflowError:
        return None
    return math.sqrt(spread) if function.startswith("stddev") else spread
