"""Computes the SELECTs around a question on its noisy table: WHERE, GROUP BY, window functions, QUALIFY, ORDER BY, LIMIT.

Nothing here reads a row of a person: the input is a finished table of noisy numbers. Values mean what they mean in DuckDB,
except that nothing fails: where a function has no value, it is NULL.

Beside each noisy value stands how it was made (a `Source`), so that symbols.py can state its margin. A margin needs rows that
were picked without looking at noise. Where noisy numbers decide which rows are combined (a WHERE on them, a window ordered by
them), the source is UNKNOWN, and no margin is stated.
"""

from __future__ import annotations

import datetime
import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dither.planning.lookups import value_of
from dither.query.functions.base import Cell, double, nan_to_null
from dither.query.functions.registry import columns, evaluator
from dither.query.nodes import Across, Call, Column, Expression, Literal, Lookup, Named, Order, Outer, Query
from dither.query.outer import KINDS

Values = Mapping[str, Cell]


@dataclass(frozen=True)
class Group:
    """The noisy output number `output` of the question in the group at `place`."""

    output: int
    place: int


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
        rows = _sorted(self.rows, order)[offset:]
        shuffled = self.shuffled or self.reads(*(each.expression for each in order))
        chosen = self.chosen or (shuffled and (limit is not None or offset > 0))
        return replace(self, rows=tuple(rows if limit is None else rows[:limit]), chosen=chosen, shuffled=shuffled)

    def unsure(self, across: Across) -> bool:
        """Whether noise decides which rows a value is computed from. Hidden groups make a number of groups noisy too."""
        counting = self.hidden and across.function in _COUNTING
        by_order = self.shuffled and (not KINDS[across.function].folds or across.frame is not None)
        return self.chosen or counting or by_order or self.reads(*across.structure)


def opened(query: Query, hidden: bool, rows: Sequence[Row] = ()) -> Rows:
    """Returns the table of a question itself, which the first SELECT around it reads. `hidden`: small groups are not shown."""
    aggregates = {each.name for each in query.aggregates}
    noisy = frozenset(each.name for each in query.outputs if columns(each.expression) & aggregates)
    chosen = query.having is not None and bool(columns(query.having) & aggregates)
    shuffled = any(columns(each.expression) & aggregates for each in query.order)
    cut = query.limit is not None or query.offset > 0
    return Rows(tuple(rows), noisy, hidden, chosen or (shuffled and cut), shuffled)


def read_by(outer: Outer, table: Rows, names: Sequence[str]) -> Rows:
    """Returns a table with columns of these names under the names by which a SELECT around it reads them."""
    if tuple(names) == outer.fields:
        return table
    renamed = dict(zip(names, outer.fields, strict=True))
    rows = []
    for row in table.rows:
        values = {renamed[name]: value for name, value in row.values.items()}
        rows.append(Row(values, {renamed[name]: source for name, source in row.sources.items()}))
    return replace(table, rows=tuple(rows), noisy=frozenset(renamed[name] for name in table.noisy))


def compute_all(query: Query, table: Rows) -> Rows:
    """Computes every SELECT around a question, from the inside out."""
    names = [each.name for each in query.outputs]
    for outer in query.above:
        table = compute(outer, read_by(outer, table, names))
        names = [each.name for each in outer.outputs]
    return table


def compute(outer: Outer, table: Rows) -> Rows:
    """Computes a SELECT over a noisy table whose columns are named as in `outer.fields`."""
    for lookup in outer.lookups:
        table = _looked_up(lookup, table)
    table = table.kept(outer.where)
    if outer.folds is not None:
        table = _grouped(outer.keys, outer.folds, table)
    table = table.kept(outer.having)
    for across in outer.windows:
        table = _with_window(across, table)
    table = table.kept(outer.qualify)
    if not outer.distinct:
        table = table.sorted(outer.order, outer.limit, outer.offset)
    noisy = frozenset(each.name for each in outer.outputs if table.reads(each.expression))
    values = [(each.name, each.expression, evaluator(each.expression)) for each in outer.outputs]
    rows = []
    for old in table.rows:
        row = Row({}, {})
        for name, expression, value in values:
            row.with_value(name, value(old.values), old.source(expression))
        rows.append(row)
    finished = replace(table, rows=tuple(rows), noisy=noisy)
    return _distinct(outer, finished) if outer.distinct else finished


def _looked_up(lookup: Lookup, table: Rows) -> Rows:
    """Adds the column of a subquery over public tables. It is public, unless it was looked up by a noisy number."""
    outside = [evaluator(each) for each in lookup.outside]
    noisy = table.reads(*lookup.outside)
    for row in table.rows:
        row.with_value(lookup.name, value_of(lookup, row.values, outside), UNKNOWN if noisy else None)
    return replace(table, noisy=table.noisy | {lookup.name}) if noisy else table


def _distinct(outer: Outer, table: Rows) -> Rows:
    """Returns each row once; ORDER BY then reads outputs."""
    seen: dict[Any, Row] = {}
    for row in table.rows:
        seen.setdefault(tuple((type(value), value) for value in row.values.values()), row)
    chosen = table.chosen or bool(table.noisy)
    by_expression = {each.expression: Column(each.name) for each in outer.outputs}
    order = [replace(each, expression=by_expression[each.expression]) for each in outer.order]
    return replace(table, rows=tuple(seen.values()), chosen=chosen).sorted(order, outer.limit, outer.offset)


# --- groups -----------------------------------------------------------------------------------------------------


def _grouped(keys: Sequence[Named], folds: Sequence[Across], table: Rows) -> Rows:
    by_key: dict[Any, list[Row]] = {} if keys else {(): []}
    compute = [evaluator(key.expression) for key in keys]
    for row in table.rows:
        found = tuple(value(row.values) for value in compute)
        by_key.setdefault(found, []).append(row)
    parts = [key.expression for key in keys]
    table = replace(table, chosen=table.chosen or table.reads(*parts))
    rows = []
    for found, members in by_key.items():
        row = Row({}, {})
        for key, value in zip(keys, found, strict=True):
            row.with_value(key.name, value, members[0].source(key.expression))
        for fold in folds:
            rest = _Members(fold, members, table)
            row.with_value(fold.name, *rest.of(0, len(rest.rows)))
        rows.append(row)
    noisy = {key.name for key in keys if table.reads(key.expression)}
    noisy |= {fold.name for fold in folds if is_noisy(fold, table)}
    return replace(table, rows=tuple(rows), noisy=frozenset(noisy))


def is_noisy(across: Across, table: Rows) -> bool:
    """Whether a value across rows depends on noise."""
    return table.unsure(across) or table.reads(*across.arguments)


_COUNTING = ("count", "count_distinct", "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile")


# --- windows ----------------------------------------------------------------------------------------------------


def _with_window(across: Across, table: Rows) -> Rows:
    """Adds the column of a window function."""
    compute = [evaluator(each) for each in across.partition]
    parts: dict[Any, list[Row]] = {}
    for row in table.rows:
        parts.setdefault(tuple(value(row.values) for value in compute), []).append(row)
    for members in parts.values():
        ordered = _sorted(members, across.order)
        rest = _Members(across, ordered, table)
        for row, (value, source) in zip(ordered, _window(across, ordered, rest), strict=True):
            row.with_value(across.name, value, source)
    noisy = table.noisy | ({across.name} if is_noisy(across, table) else set())
    return replace(table, noisy=frozenset(noisy))


Result = tuple[Cell, Source | None]


def _window(across: Across, rows: Sequence[Row], members: _Members) -> list[Result]:
    if across.function in _PLACES:
        unknown = UNKNOWN if members.unsure else None
        return [(value, unknown) for value in _PLACES[across.function](across, len(rows), _peers(across, rows))]
    if across.function in ("lag", "lead"):
        return _moved(across, rows, members)
    frames = _frames(across, rows)
    if across.function in ("first_value", "last_value", "nth_value"):
        return [_picked(across, rows, members, start, stop) for start, stop in frames]
    return members.over(frames)


def _peers(across: Across, rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Returns for each row the first and the end of the rows that ORDER BY does not tell apart."""
    compute = [evaluator(each.expression) for each in across.order]
    found = [tuple(value(row.values) for value in compute) for row in rows]
    result: list[tuple[int, int]] = []
    start = 0
    while start < len(rows):
        stop = start + 1
        while stop < len(rows) and found[stop] == found[start]:
            stop += 1
        result += [(start, stop)] * (stop - start)
        start = stop
    return result


def _dense(peers: Sequence[tuple[int, int]]) -> list[Cell]:
    places = {start: place for place, start in enumerate(sorted({start for start, _ in peers}), start=1)}
    return [places[start] for start, _ in peers]


def _tiles(count: int, tiles: int) -> list[Cell]:
    """Returns the parts of NTILE: as equal as possible, the first ones larger."""
    size, more = divmod(count, tiles)
    large = more * (size + 1)
    return [i // (size + 1) + 1 if i < large else more + (i - large) // max(size, 1) + 1 for i in range(count)]


_PLACES: Mapping[str, Callable[[Across, int, Sequence[tuple[int, int]]], list[Cell]]] = {
    "row_number": lambda across, n, peers: list(range(1, n + 1)),
    "rank": lambda across, n, peers: [start + 1 for start, _ in peers],
    "dense_rank": lambda across, n, peers: _dense(peers),
    "percent_rank": lambda across, n, peers: [start / (n - 1) if n > 1 else 0.0 for start, _ in peers],
    "cume_dist": lambda across, n, peers: [stop / n for _, stop in peers],
    "ntile": lambda across, n, peers: _tiles(n, _whole(across.arguments[0])),
}


def _whole(expression: Expression) -> int:
    """Returns a constant that the reader has checked."""
    value = expression.value if isinstance(expression, Literal) else None
    return value if isinstance(value, int) else 1


def _moved(across: Across, rows: Sequence[Row], members: _Members) -> list[Result]:
    """Returns LAG and LEAD: the argument some rows before or after, or the default."""
    distance = _whole(across.arguments[1]) if len(across.arguments) > 1 else 1
    distance = -distance if across.function == "lag" else distance
    default = across.arguments[2] if len(across.arguments) > 2 else Literal(None)
    value, other = evaluator(across.arguments[0]), evaluator(default)
    result: list[Result] = []
    for place, row in enumerate(rows):
        there = 0 <= place + distance < len(rows)
        from_row, expression = (rows[place + distance], across.arguments[0]) if there else (row, default)
        shown = (value if there else other)(from_row.values)
        result.append((shown, UNKNOWN if members.unsure else from_row.source(expression)))
    return result


def _picked(across: Across, rows: Sequence[Row], members: _Members, start: int, stop: int) -> Result:
    """Returns FIRST_VALUE, LAST_VALUE and NTH_VALUE of a frame."""
    nth = _whole(across.arguments[1]) - 1 if across.function == "nth_value" else 0
    place = stop - 1 if across.function == "last_value" else start + nth
    if not start <= place < stop:
        return None, UNKNOWN if members.unsure else None
    row, argument = rows[place], across.arguments[0]
    return evaluator(argument)(row.values), UNKNOWN if members.unsure else row.source(argument)


def _frames(across: Across, rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Returns the first and the end of each row's frame."""
    count = len(rows)
    if across.frame is None:
        return [(0, stop) for _, stop in _peers(across, rows)] if across.order else [(0, count)] * count
    first, last = across.frame.start, across.frame.end
    frames = []
    for place in range(count):
        start = 0 if first is None else min(max(place + first, 0), count)
        stop = count if last is None else min(max(place + last + 1, 0), count)
        frames.append((start, max(start, stop)))
    return frames


# --- values across rows -----------------------------------------------------------------------------------------


class _Members:
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

    def up_to(self, stop: int, members: _Members) -> Cell:
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
    return bool(_sortable(value) < _sortable(best) if function == "min" else _sortable(value) > _sortable(best))


def fold(function: str, rows: Sequence[tuple[Cell, ...]]) -> Cell:
    """Aggregates the arguments of rows; NULLs do not count."""
    if function == "count":
        return sum(not row or row[0] is not None for row in rows)
    given = [row for row in rows if row[0] is not None and (len(row) < 2 or row[1] is not None)]
    values: list[Any] = [row[0] for row in given]
    if function == "count_distinct":
        return len({_sortable(value) for value in values})
    if not values:
        return None
    if function in ("arg_max", "arg_min"):
        best = given[0]
        for row in given[1:]:
            best = row if _before(row[1], best[1], function[4:]) else best
        return best[0]
    if function in ("min", "max"):
        return (min if function == "min" else max)(values, key=_sortable)  # type: ignore[no-any-return]
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


def _sorted(rows: Sequence[Row], order: Sequence[Order]) -> list[Row]:
    """Returns the rows in order; NULLs last, ties as they were."""
    found = list(rows)
    for each in reversed(order):
        value = evaluator(each.expression)
        known = [(value(row.values), row) for row in found]
        there = [pair for pair in known if pair[0] is not None]
        there.sort(key=lambda pair: _sortable(pair[0]), reverse=each.descending)
        found = [row for _, row in there] + [row for shown, row in known if shown is None]
    return found


def _sortable(value: Any) -> Any:
    return value.isoformat() if isinstance(value, (datetime.date, datetime.datetime)) else value
