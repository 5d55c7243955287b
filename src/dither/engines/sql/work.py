"""Prints a Work as SELECT statements, and reads their rows back as groups.

All sums share one statement; each histogram and each count of distinct values has its own. The statements agree on the groups
that a unit keeps, because that depends on the unit's rows and the secret only. The secret is not in the text.

Values become whole numbers q inside the engine. All cells of one argument are combinations of four numbers: the counted rows,
those of them with a value, the sum of q and the sum of q^2. Only these are summed over rows; "R - q" is never added up row by
row. Every intermediate integer is wide enough for 2^40 rows, which is proved from the Work before anything runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa

from dither.engines.sql.dialect import NARROW, Dialect, Sql, build, fix_zero, nan_to_null, nearest, too_wide
from dither.engines.sql.frame import Frame, Printed
from dither.engines.sql.histograms import read_histograms
from dither.engines.sql.relations import Rows, Schema, bounded_groups, group_by, needs_choice, relation
from dither.errors import ArgumentError
from dither.query.nodes import Aggregate
from dither.query.work import MOST_PLAIN, SCALE, Bins, Cell, Distinct, Group, Quantised, Sums, Work

ROWS = 1 << 40  # every width is proved for so many rows
EXACT = 1 << 53  # below this, sums of whole numbers in doubles are exact


def quantise(frame: Frame, argument: Quantised) -> Sql:
    """Prints q as an integer from 0 to `steps`, NULL where the expression is NULL or NaN."""
    x = frame.print(argument.expression)
    if _counts(x, argument):
        low, high = int(argument.low), int(_high(argument))
        atom = frame.atom(x)
        clipped = build(frame.dialect.clip(atom.text, str(low), str(high), f"{atom.text} > {high}"), "int", atom)
        return _in_steps(frame.dialect, _from_zero(frame.dialect, clipped, low), argument)
    steps, atom = _steps(frame, frame.dialect.as_double(x), argument)
    rounded = frame.dialect.round_steps(steps, frame.dialect.integer_type(argument.steps))
    return _cut(frame, build(rounded, "int", atom), argument, str(argument.steps))


@dataclass(frozen=True)
class Summand:
    """An argument as it is added up: `number` is q, and `value` is NULL where there is no value (`number`: 0 or NULL)."""

    value: Sql
    number: Sql


def summand(frame: Frame, argument: Quantised, *, real: bool) -> Summand:
    """Prints q for a sum. `real`: as a double, in half the time; `may_be_inexact` checks the sums afterwards."""
    x, dialect = frame.print(argument.expression), frame.dialect
    if _counts(x, argument) and argument.steps * argument.step <= dialect.few_values:
        atom, low = frame.atom(x), int(argument.low)
        clipped = build(dialect.clip_few(atom.text, low, int(_high(argument))), "int", atom)
        number = _from_zero(dialect, dialect.as_double(clipped) if real else clipped, low)
        return Summand(atom, _in_steps(dialect, number, argument))
    if dialect.counts_arguments and not _counts(x, argument):
        return Summand(nan_to_null(frame, frame.atom(dialect.as_double(x))), quantise(frame, argument))
    if real and not _counts(x, argument):
        q = _cut(frame, _real(frame, dialect.as_double(x), argument), argument, dialect.double(argument.steps))
    else:
        q = dialect.as_double(quantise(frame, argument)) if real else quantise(frame, argument)
    return Summand(q, q)


def _high(argument: Quantised) -> Fraction:
    return argument.low + argument.steps * argument.step


def _counts(x: Sql, argument: Quantised) -> bool:
    """Whether x is a stored integer, an integer is a whole number of steps, and all of them are exact doubles."""
    low, high, step = argument.low, _high(argument), argument.step
    small = max(abs(low), abs(high)) < 2**51 and argument.steps < 2**51
    whole = {step.numerator, low.denominator, high.denominator} == {1}
    return x.kind == "int" and x.constant is None and whole and small


def _in_steps(dialect: Dialect, x: Sql, argument: Quantised) -> Sql:
    """Prints a whole number above the lower bound as a number of steps."""
    parts = argument.step.denominator
    if parts == 1:
        return x
    if x.kind == "real":
        return build(f"({x.text} * {dialect.double(parts)})", x.kind, x)
    return build(f"({dialect.cast(x.text, 'int', 'int')} * {parts})", x.kind, x)


def _from_zero(dialect: Dialect, x: Sql, low: int) -> Sql:
    if not low:
        return x
    text = dialect.double(low) if x.kind == "real" else f"({low})"
    return build(f"({x.text if x.kind == 'real' else dialect.cast(x.text, 'int', 'int')} - {text})", x.kind, x)


def _real(frame: Frame, number: Sql, argument: Quantised) -> Sql:
    """Prints q as a double that is a whole number."""
    steps, x = _steps(frame, number, argument)
    return build(frame.dialect.floor(f"{steps} + {frame.dialect.number('0.5')}"), "real", x)


def _steps(frame: Frame, number: Sql, argument: Quantised) -> tuple[str, Sql]:
    """Prints how many steps a double is above its lower bound, before rounding. Returns the double too, which may be named."""
    x = frame.atom(number)
    low, top, step = nearest(argument.low), nearest(_high(argument)), nearest(argument.step)
    return frame.dialect.steps_above(x.text, low, top, step), x


def _cut(frame: Frame, q: Sql, argument: Quantised, most: str) -> Sql:
    """Cuts q to at most `steps`, unless rounding cannot exceed it: the operations before are monotone, so the upper bound gives
    the largest q."""
    low, top, step = nearest(argument.low), nearest(_high(argument)), nearest(argument.step)
    if math.floor((top - low) / step + 0.5) <= argument.steps:
        return q
    atom = frame.atom(q)
    return build(f"(CASE WHEN {atom.text} > {most} THEN {most} ELSE {atom.text} END)", q.kind, atom)


@dataclass(frozen=True)
class Moments:
    """The columns that hold an argument's four numbers; None if no cell needs it."""

    rows: str
    values: str | None = None
    linear: str | None = None
    square: str | None = None


def needed_moments(cells: tuple[Cell, ...]) -> tuple[bool, bool]:
    """Whether the sum of q, and of q^2, is needed for one of these cells."""
    return any(cell.linear for cell in cells), any(cell.square for cell in cells)


def is_narrow(bound: int) -> bool:
    return bound < NARROW


def most_per_row(cell: Cell) -> int:
    """Returns the most that one row can add to the cell."""
    steps = cell.argument.steps if cell.argument else 0
    value = abs(cell.constant) + abs(cell.linear) * steps + abs(cell.square) * steps**2
    return max(value, abs(cell.null), 1)


def cell_sum(cell: Cell, found: Moments, dialect: Dialect, *, wide: bool) -> str:
    """Prints the cell's sum over the rows of one unit and group, from the four numbers."""

    def column(name: str | None) -> str:
        return dialect.widen(str(name)) if wide else str(name)

    if cell.argument is None:
        return f"{_times(cell.constant, column(found.rows))}"
    terms = [
        _times(cell.constant, column(found.values)) if cell.constant else "",
        _times(cell.linear, column(found.linear)) if cell.linear else "",
        _times(cell.square, column(found.square)) if cell.square else "",
        _times(cell.null, f"({column(found.rows)} - {column(found.values)})") if cell.null else "",
    ]
    return "(" + (" + ".join(term for term in terms if term) or "0") + ")"


def _times(factor: int, text: str) -> str:
    return text if factor == 1 else f"({factor}) * {text}"


def bounded_share(cell: Cell, found: Moments, max_rows: int, dialect: Dialect) -> str:
    """Prints a unit's bounded share of the cell: S if k <= m, else S * m / k cut towards zero.

    It is at most m times what one row can add, however many rows there are. Its type is just wide enough for that.
    """
    wide = not is_narrow(most_per_row(cell) * ROWS * max_rows)
    share = cell_sum(cell, found, dialect, wide=wide)
    # Each row adds the same to a cell without an argument, so no division is needed.
    less = f"({cell.constant * max_rows})"
    if cell.argument is not None:
        less = dialect.quotient(f"({share}) * {max_rows}", found.rows, wide=wide)
    kind = dialect.share_type(most_per_row(cell) * max_rows)
    return f"CAST(CASE WHEN {found.rows} <= {max_rows} THEN {share} ELSE {less} END AS {kind})"


def from_moments(cell: Cell, rows: int, values: int, linear: int, square: int) -> int:
    """Computes the cell's sum in Python, for tables whose rows are their own units."""
    if cell.argument is None:
        return cell.constant * rows
    return cell.constant * values + cell.linear * linear + cell.square * square + cell.null * (rows - values)


def prove_widths(work: Work, dialect: Dialect) -> None:
    """Refuses a Work whose integers could overflow the engine's with 2^40 rows. Depends on question and catalog only."""
    for measure in work.measures:
        if isinstance(measure, Sums):
            per_row = max((most_per_row(cell) for cell in measure.cells), default=1)
            squares = max((cell.argument.steps**2 for cell in measure.cells if cell.argument and cell.square), default=1)
            most = max(per_row, squares) * measure.max_rows
        else:
            most = measure.max_rows * SCALE if isinstance(measure, Bins) else measure.max_values
        if most * ROWS >= dialect.widest or most < 1:
            raise too_wide(dialect)


def as_real(dialect: Dialect, argument: Quantised, *, square: bool) -> bool:
    """Whether to add up in doubles: exact for 2^33 rows of a group. Beyond that, `may_be_inexact` asks for integers."""
    return dialect.double_sums and argument.steps ** (2 if square else 1) <= 1 << 20


def may_be_inexact(total: object) -> bool:
    """Whether a sum in doubles may be inexact. Its terms are whole and not negative, so partial sums never fall: if the last is
    below 2^53, all were exact.
    """
    return isinstance(total, float) and total >= EXACT


def total(dialect: Dialect, q: Sql, name: str, steps: int, power: int, where: str) -> str:
    """Prints the sum of q or of q^2 over rows: in doubles, or in the narrowest integer that 2^40 rows cannot overflow."""
    if q.kind == "real":
        value = name if power == 1 else f"{name} * {name}"
        return f"COALESCE({dialect.aggregate('sum', value, where)}, {dialect.number('0')})"
    value = name if power == 1 else f"CAST({name} AS {dialect.integer_type(steps**2)}) * {name}"
    if not is_narrow(steps**power * ROWS):
        return f"COALESCE({dialect.wide_sum(value, where)}, 0)"
    return f"CAST(COALESCE({dialect.narrow_sum(value, where)}, 0) AS {dialect.type('int')})"


Row = tuple[Any, ...]
Results = dict[tuple[Any, ...], dict[int, Any]]  # key -> position of the measure -> its value
Keys = Callable[[Row], tuple[Any, ...]]  # turns a driver's values into a key
UNITS = -1  # the position of the number of units


@dataclass(frozen=True)
class Statement:
    """A SELECT, and the function that reads its rows. `head`: the WITH before it; `width`: the number of its columns.
    `chooses`: it has the keyed hash, so it needs the secret."""

    body: str
    read: Callable[[Iterable[Row], Results], None]
    read_table: Callable[[pa.Table, Results], None] | None = None  # the same from Arrow, for results with many rows
    head: str = ""
    width: int = 0
    chooses: bool = False

    @property
    def text(self) -> str:
        return f"{self.head} {self.body}" if self.head else self.body


class InexactSumError(Exception):
    """A sum in doubles reached 2^53, for which a group needs more than 2^33 rows: add up in integers."""


def statements(work: Work, schema: Schema, dialect: Dialect, *, wide: bool = False) -> list[Statement]:
    """Returns the statements to run, in order. `wide`: adds up in integers throughout.

    Refuses edges of a graph: an engine that lists them prints its own statements.
    """
    if work.edges is not None:
        raise ArgumentError("this engine cannot list the edges of a graph.", fix="keep the tables of this catalog in files.")
    prove_widths(work, dialect)
    source = relation(work.source, schema, dialect)
    sums = [i for i, measure in enumerate(work.measures) if isinstance(measure, Sums)]
    texts = []
    if sums or work.count_units or not work.measures:
        texts.append(_limited(work, sums_of(work, source, sums, dialect, wide=wide)))
    for place, measure in enumerate(work.measures):
        if isinstance(measure, Bins):
            texts.append(_bins(work, source, place, measure, dialect))
        elif isinstance(measure, Distinct):
            texts.append(_distinct(work, source, place, measure, dialect))
    return texts


def _limited(work: Work, statement: Statement) -> Statement:
    """Returns the statement of a work over public tables with one row more than may be read: more are refused."""
    return replace(statement, body=f"{statement.body} LIMIT {MOST_PLAIN + 1}") if work.plain else statement


def groups(work: Work, found: Results) -> list[Group]:
    """Returns the groups in any order; measures without a row are zero. Without keys there is always one group."""
    if not work.keys:
        found.setdefault((), {})
    empty: dict[int, tuple[int, ...] | int | Mapping[int, int]] = {
        i: (0,) * len(measure.cells) if isinstance(measure, Sums) else {} if isinstance(measure, Bins) else 0
        for i, measure in enumerate(work.measures)
    }
    return [
        Group(key, values.get(UNITS, 0) if work.count_units else None, tuple(values.get(i, empty[i]) for i in empty))
        for key, values in found.items()
    ]


# --- sums -------------------------------------------------------------------------------------------------------


class _Aggregates:
    """Aggregate expressions under names a0, a1, ...; equal expressions share a name."""

    def __init__(self, letter: str) -> None:
        self._letter = letter
        self._named: dict[str, str] = {}

    def name(self, text: str) -> str:
        return self._named.setdefault(text, f"{self._letter}{len(self._named)}")

    def listed(self) -> list[str]:
        return [f"{text} AS {name}" for text, name in self._named.items()]

    def place(self, name: str | None) -> int | None:
        return None if name is None else int(name[1:])


def sums_of(
    work: Work, source: Printed, places: list[int], dialect: Dialect, *, wide: bool, counts: Sequence[Aggregate] = ()
) -> Statement:
    """Prints all sums. `counts`: of rows, which b has for each unit and group as n0, n1, ..., for joint.py."""
    rows, aggregates = Rows(work, source, dialect), _Aggregates("a")
    rows_counted = aggregates.name("count(*)")
    plan: list[tuple[int, list[tuple[Cell, Moments]], int]] = []
    for place in places:
        measure = work.measures[place]
        if isinstance(measure, Sums):
            plan.append((place, _moments(rows, aggregates, measure, wide or work.by_unit), measure.max_rows))
    counted = [f"{aggregates.name(_count(rows, each))} AS n{place}" for place, each in enumerate(counts)]
    selected = dialect.named(f"({rows.select(aggregates.listed())})")
    first = rows.only_known(group_by(rows.heads, aggregates.listed(), selected), rows_counted)
    keys, width = dialect.read_keys(rows.kinds), len(work.keys)
    if not work.by_unit:
        read = _read_rows(keys, width, plan, aggregates, rows_counted)
        return Statement(first, read, width=width + len(aggregates.listed()))
    shares = _Aggregates("s")
    numbers = {place: [shares.name(bounded_share(c, m, most, dialect)) for c, m in pairs] for place, pairs, most in plan}
    names = [f"s{i}" for i in range(len(shares.listed()))]
    bounded = f"SELECT {', '.join([*rows.heads, *shares.listed(), *counted])} FROM {dialect.named(f'({first})')}"
    sums = [f"COALESCE(sum({name}), 0)" for name in names]
    last = group_by(rows.keys, ["count(*) AS units", *sums], "r")
    b = dialect.cte("b", bounded, again=needs_choice(work) or bool(counts))
    head = f"WITH {b}, {bounded_groups(work, rows, names, repeated=False)}"
    places_of = {place: [int(name[1:]) for name in found] for place, found in numbers.items()}
    read_units = _read_units(keys, width, places_of)
    return Statement(last, read_units, head=head, width=width + 1 + len(names), chooses=needs_choice(work))


def _count(rows: Rows, aggregate: Aggregate) -> str:
    if aggregate.argument is None:
        return "count(*)"
    return f"count({rows.column(nan_to_null(rows.frame, rows.frame.print(aggregate.argument)))})"


def _moments(rows: Rows, aggregates: _Aggregates, measure: Sums, wide: bool) -> list[tuple[Cell, Moments]]:
    """Returns each cell with the columns of the first aggregation that it is computed from."""
    where, dialect = rows.condition(measure.where), rows.frame.dialect
    counted = aggregates.name(dialect.aggregate("count", "*", where))
    by_argument: dict[Quantised, Moments] = {}
    for argument in dict.fromkeys(cell.argument for cell in measure.cells if cell.argument):
        linear, square = needed_moments(tuple(cell for cell in measure.cells if cell.argument == argument))
        x = summand(rows.frame, argument, real=not wide and as_real(dialect, argument, square=square))
        q = rows.column(x.number)
        by_argument[argument] = Moments(
            counted,
            aggregates.name(dialect.aggregate("count", rows.column(x.value), where)),
            aggregates.name(total(dialect, x.number, q, argument.steps, 1, where)) if linear else None,
            aggregates.name(total(dialect, x.number, q, argument.steps, 2, where)) if square else None,
        )
    alone = Moments(counted)
    return [(cell, by_argument[cell.argument] if cell.argument else alone) for cell in measure.cells]


def _read_rows(
    keys: Keys, width: int, plan: list[tuple[int, list[tuple[Cell, Moments]], int]], aggregates: _Aggregates, counted: str
) -> Callable[[Iterable[Row], Results], None]:
    def column(name: str | None) -> int:
        place = aggregates.place(name)
        return len(aggregates.listed()) if place is None else place  # a 0 follows the last column

    placed = [
        (place, [(c, column(m.rows), column(m.values), column(m.linear), column(m.square)) for c, m in pairs])
        for place, pairs, _ in plan
    ]
    units = column(counted)

    def read(result: Iterable[Row], found: Results) -> None:
        for row in result:
            if any(map(may_be_inexact, row[width:])):
                raise InexactSumError
            numbers = [*map(int, row[width:]), 0]
            group = found.setdefault(keys(row[:width]), {})
            group[UNITS] = numbers[units]
            for place, cell_places in placed:
                group[place] = tuple(
                    from_moments(c, numbers[n], numbers[v], numbers[q], numbers[q2]) for c, n, v, q, q2 in cell_places
                )

    return read


def _read_units(keys: Keys, width: int, places: dict[int, list[int]]) -> Callable[[Iterable[Row], Results], None]:
    def read(result: Iterable[Row], found: Results) -> None:
        for row in result:
            group = found.setdefault(keys(row[:width]), {})
            group[UNITS] = int(row[width])
            for place, columns in places.items():
                group[place] = tuple(int(row[width + 1 + column]) for column in columns)

    return read


# --- histograms -------------------------------------------------------------------------------------------------


def _bins(work: Work, source: Printed, place: int, measure: Bins, dialect: Dialect) -> Statement:
    """Prints rows of (key, bin, weight). Rows that do not count have bin NULL: their group still exists."""
    rows = Rows(work, source, dialect)
    q, condition = quantise(rows.frame, measure.argument), rows.condition(measure.where)
    name = rows.column(q)
    counted = f"(CASE WHEN {condition} THEN {name} END)" if condition else name
    inner = f"(SELECT {', '.join([*rows.heads, f'{counted} AS bin'])} FROM {dialect.named(f'({rows.select()})')})"
    first = rows.only_known(group_by([*rows.heads, "bin"], ["count(*) AS n"], dialect.named(inner)), "n")
    if work.by_unit:
        text = _bounded_bins(work, rows, measure.max_rows, first, dialect)
    else:
        text = f"SELECT {', '.join([*rows.keys, 'bin'])}, n * {SCALE} FROM {dialect.named(f'({first})')}"
    keys, width = dialect.read_keys(rows.kinds), len(work.keys)
    narrow = is_narrow(measure.argument.steps)
    columns = _read_bin_columns(keys, width, place, measure.argument.steps) if narrow else None
    return Statement(text, _read_bins(keys, width, place), columns, chooses=needs_choice(work))


def _bounded_bins(work: Work, rows: Rows, most: int, first: str, dialect: Dialect) -> str:
    """Prints the histogram with the weights of units scaled that have more than `most` counted rows in a group."""
    wide = not is_narrow(ROWS * most * SCALE)
    further, weighed = dialect.weigh_bins(rows.heads, rows.keys, most, SCALE, wide=wide)
    kept = bounded_groups(work, rows, ["bin", "n"], repeated=True)
    # A unit's weights are at most SCALE for each of its rows, so 2^40 rows weigh at most 2^56.
    last = group_by([*rows.keys, "bin"], [f"CAST(sum(weight) AS {dialect.type('int')})"], dialect.named(f"({weighed})"))
    return f"WITH {dialect.cte('b', first)}, {kept}{further} {last}"


def _read_bins(keys: Keys, width: int, place: int) -> Callable[[Iterable[Row], Results], None]:
    def read(result: Iterable[Row], found: Results) -> None:
        for row in result:
            bins = found.setdefault(keys(row[:width]), {}).setdefault(place, {})
            if row[width] is not None and row[width + 1]:
                bins[int(row[width])] = int(row[width + 1])

    return read


def _read_bin_columns(keys: Keys, width: int, place: int, steps: int) -> Callable[[pa.Table, Results], None]:
    def read(table: pa.Table, found: Results) -> None:
        for key, histogram in read_histograms(table, width, steps, keys).items():
            found.setdefault(key, {})[place] = histogram

    return read


# --- distinct values --------------------------------------------------------------------------------------------


def _distinct(work: Work, source: Printed, place: int, measure: Distinct, dialect: Dialect) -> Statement:
    rows = Rows(work, source, dialect)
    x = nan_to_null(rows.frame, rows.frame.print(measure.expression))
    value = fix_zero(rows.frame, x)
    name = rows.column(value)
    inner = dialect.named(f"(SELECT {', '.join([*rows.heads, f'{name} AS v'])} FROM {dialect.named(f'({rows.select()})')})")
    read = _read_distinct(dialect.read_keys(rows.kinds), len(work.keys), place)
    if not work.by_unit:
        return Statement(rows.only_known(group_by(rows.keys, ["count(DISTINCT v)", "count(*) AS n"], inner), "n"), read)
    first = rows.only_known(group_by([*rows.heads, "v"], ["count(*) AS n"], inner), "n")
    further, kept = dialect.keep_values(rows.columns, Sql("v", value.kind, atom=True), measure.max_values)
    bound = bounded_groups(work, rows, ["v"], repeated=True)
    last = group_by(rows.keys, ["count(DISTINCT v)"], dialect.named(f"({kept})"))
    return Statement(f"WITH {dialect.cte('b', first)}, {bound}{further} {last}", read, chooses=True)


def _read_distinct(keys: Keys, width: int, place: int) -> Callable[[Iterable[Row], Results], None]:
    def read(result: Iterable[Row], found: Results) -> None:
        for row in result:
            found.setdefault(keys(row[:width]), {})[place] = int(row[width])

    return read
