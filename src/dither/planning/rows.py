"""A noisy table on its way through the SELECTs around a question: its rows, and how each noisy value was made.

Beside each noisy value stands how it was made (a `Source`), so that symbols.py can state its margin. A margin needs rows that
were picked without looking at noise. Where noisy numbers decide which rows are combined (a WHERE on them, a window ordered by
them), the source is UNKNOWN, and no margin is stated.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dither.query.functions.base import Cell
from dither.query.functions.registry import columns, evaluator
from dither.query.nodes import Across, Column, Expression, Order
from dither.query.outer import KINDS

Values = Mapping[str, Cell]


@dataclass(frozen=True)
class Group:
    """The noisy output number `output` of the question in the group at `place`. `release`: which of several results, where some
    are put together."""

    output: int
    place: int
    release: int = 0


@dataclass(frozen=True, eq=False)
class Made:
    """An expression over values with these sources; the values of its other columns are public."""

    expression: Expression
    parts: Mapping[str, Source]
    public: Values


@dataclass(frozen=True, eq=False)
class Total:
    """The sum of `parts[start:stop]`."""

    parts: Sequence[Part]
    start: int
    stop: int


@dataclass(frozen=True, eq=False)
class Extreme:
    """The least or the greatest of `parts[start:stop]`."""

    function: str
    parts: Sequence[Part]
    start: int
    stop: int


@dataclass(frozen=True)
class Unknown:
    """A noisy value without a margin."""


UNKNOWN = Unknown()
Source = Group | Made | Total | Extreme | Unknown
Part = Source | int | float  # a public number as itself
Result = tuple[Cell, Source | None]  # a value and how it was made


@dataclass(frozen=True)
class Row:
    """A row of a noisy table: its values, and the sources of the noisy ones."""

    values: dict[str, Cell]
    sources: dict[str, Source]

    def source(self, expression: Expression) -> Source | None:
        """Returns the source of an expression; None if it is public."""
        if isinstance(expression, Column):
            return self.sources.get(expression.name)
        used = columns(expression)
        parts = {name: self.sources[name] for name in used if name in self.sources}
        if not parts:
            return None
        if any(isinstance(part, Unknown) for part in parts.values()):
            return UNKNOWN
        return Made(expression, parts, {name: self.values[name] for name in used if name not in parts})

    def with_value(self, name: str, value: Cell, source: Source | None) -> None:
        """Adds a column."""
        self.values[name] = value
        if source is not None:
            self.sources[name] = source


@dataclass(frozen=True)
class Rows:
    """A noisy table on its way: its rows, and the names of noisy columns.

    `hidden`: the data has groups that it does not show. `chosen`: noise decided which rows there are. `shuffled`: noise decided
    their order.
    """

    rows: tuple[Row, ...]
    noisy: frozenset[str]
    hidden: bool = False
    chosen: bool = False
    shuffled: bool = False

    def reads(self, *expressions: Expression | None) -> bool:
        """Whether one of the expressions depends on noisy numbers."""
        return any(columns(each) & self.noisy for each in expressions if each is not None)

    def kept(self, condition: Expression | None) -> Rows:
        """Returns the rows for which the condition is true."""
        if condition is None:
            return self
        holds = evaluator(condition)
        rows = tuple(row for row in self.rows if holds(row.values) is True)
        return replace(self, rows=rows, chosen=self.chosen or self.reads(condition))

    def sorted(self, order: Sequence[Order], limit: int | None, offset: int) -> Rows:
        """Returns the rows in order, without those that LIMIT and OFFSET leave out."""
        rows = ordered(self.rows, order)[offset:]
        shuffled = self.shuffled or self.reads(*(each.expression for each in order))
        chosen = self.chosen or (shuffled and (limit is not None or offset > 0))
        return replace(self, rows=tuple(rows if limit is None else rows[:limit]), chosen=chosen, shuffled=shuffled)

    def unsure(self, across: Across) -> bool:
        """Whether noise decides which rows a value is computed from. Hidden groups make a number of groups noisy too."""
        counting = self.hidden and across.function in _COUNTING
        by_order = self.shuffled and (not KINDS[across.function].folds or across.frame is not None)
        return self.chosen or counting or by_order or self.reads(*across.structure)


def is_noisy(across: Across, table: Rows) -> bool:
    """Whether a value across rows depends on noise."""
    return table.unsure(across) or table.reads(*across.arguments)


_COUNTING = ("count", "count_distinct", "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile")


def ordered(rows: Sequence[Row], order: Sequence[Order]) -> list[Row]:
    """Returns the rows in order, ties as they were."""
    found = list(rows)
    for each in reversed(order):
        value = evaluator(each.expression)
        known = [(value(row.values), row) for row in found]
        there = [pair for pair in known if pair[0] is not None]
        there.sort(key=lambda pair: sortable(pair[0]), reverse=each.descending)
        unknown = [row for shown, row in known if shown is None]
        found = [*unknown, *(row for _, row in there)] if each.nulls_first else [*(row for _, row in there), *unknown]
    return found


def sortable(value: Any) -> Any:
    return value.isoformat() if isinstance(value, (datetime.date, datetime.datetime)) else value
