"""A Work printed as SELECT statements, and their rows read back as groups.

All sums take one statement, every histogram and every count of distinct values one of its own; they agree on which groups
a unit keeps, because that depends on the unit's rows and the secret only. The secret is no part of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from dither.engines.sql import cells
from dither.engines.sql.basics import one_zero, settled
from dither.engines.sql.dialect import Dialect
from dither.engines.sql.frame import Printed
from dither.engines.sql.relations import Schema, relation
from dither.engines.sql.rows import Rows, bounded_groups, grouped, needs_choice
from dither.query.work import SCALE, Bins, Cell, Distinct, Group, Quantised, Sums, Work

Row = tuple[Any, ...]
Found = dict[tuple[Any, ...], dict[int, Any]]  # key -> position of the measure -> its value
Keys = Callable[[Row], tuple[Any, ...]]  # what a driver hands over as a key -> the key
UNITS = -1  # where the number of units stands


@dataclass(frozen=True)
class Statement:
    """A SELECT, and what its rows mean."""

    text: str
    read: Callable[[Iterable[Row], Found], None]


class OutgrownError(Exception):
    """A sum in doubles reached 2^53, for which a group needs more than 2^33 rows: add up in integers."""


def statements(work: Work, schema: Schema, dialect: Dialect, *, wide: bool = False) -> list[Statement]:
    """What to run, one after the other. `wide`: add up in integers throughout."""
    cells.prove_widths(work, dialect)
    source = relation(work.source, schema, dialect)
    sums = [i for i, measure in enumerate(work.measures) if isinstance(measure, Sums)]
    found = []
    if sums or work.count_units or not work.measures:
        found.append(_sums(work, source, sums, dialect, wide=wide))
    for place, measure in enumerate(work.measures):
        if isinstance(measure, Bins):
            found.append(_bins(work, source, place, measure, dialect))
        elif isinstance(measure, Distinct):
            found.append(_distinct(work, source, place, measure, dialect))
    return found


def groups(work: Work, found: Found) -> list[Group]:
    """The groups in no particular order; what a statement did not mention is zero. Without keys there is always one group."""
    if not work.keys:
        found.setdefault((), {})
    empty: dict[int, tuple[int, ...] | int | dict[int, int]] = {
        i: (0,) * len(measure.cells) if isinstance(measure, Sums) else {} if isinstance(measure, Bins) else 0
        for i, measure in enumerate(work.measures)
    }
    return [
        Group(key, values.get(UNITS, 0) if work.count_units else None, tuple(values.get(i, empty[i]) for i in empty))
        for key, values in found.items()
    ]


# --- sums -------------------------------------------------------------------------------------------------------


class _Aggregates:
    """Aggregate expressions under names a0, a1, ...; the same expression is computed once."""

    def __init__(self, letter: str) -> None:
        self._letter = letter
        self._named: dict[str, str] = {}

    def name(self, text: str) -> str:
        return self._named.setdefault(text, f"{self._letter}{len(self._named)}")

    def listed(self) -> list[str]:
        return [f"{text} AS {name}" for text, name in self._named.items()]

    def place(self, name: str | None) -> int | None:
        return None if name is None else int(name[1:])


def _sums(work: Work, source: Printed, places: list[int], dialect: Dialect, *, wide: bool) -> Statement:
    rows, aggregates = Rows(work, source, dialect), _Aggregates("a")
    rows_counted = aggregates.name("count(*)")
    plan: list[tuple[int, list[tuple[Cell, cells.Moments]], int]] = []
    for place in places:
        measure = work.measures[place]
        if isinstance(measure, Sums):
            plan.append((place, _moments(rows, aggregates, measure, wide or work.by_unit), measure.max_rows))
    first = rows.only_known(grouped(rows.heads, aggregates.listed(), f"({rows.select()})"), rows_counted)
    if not work.by_unit:
        return Statement(first, _read_rows(dialect.read_keys(rows.kinds), len(work.keys), plan, aggregates, rows_counted))
    shares = _Aggregates("s")
    numbers = {place: [shares.name(cells.bounded(c, m, most, dialect)) for c, m in pairs] for place, pairs, most in plan}
    names = [f"s{i}" for i in range(len(shares.listed()))]
    bounded = f"SELECT {', '.join([*rows.heads, *shares.listed()])} FROM ({first})"
    sums = [f"COALESCE(sum({name}), 0)" for name in names]
    last = grouped(rows.keys, ["count(*) AS units", *sums], "r")
    b = dialect.cte("b", bounded, again=needs_choice(work))
    text = f"WITH {b}, {bounded_groups(work, rows.keys, names, dialect, repeated=False)} {last}"
    places_of = {place: [int(name[1:]) for name in found] for place, found in numbers.items()}
    return Statement(text, _read_units(dialect.read_keys(rows.kinds), len(work.keys), places_of))


def _moments(rows: Rows, aggregates: _Aggregates, measure: Sums, wide: bool) -> list[tuple[Cell, cells.Moments]]:
    """For each cell the columns of the first aggregation it is made from."""
    where, dialect = rows.condition(measure.where), rows.frame.dialect
    counted = aggregates.name(dialect.aggregate("count", "*", where))
    found: dict[Quantised, cells.Moments] = {}
    for argument in dict.fromkeys(cell.argument for cell in measure.cells if cell.argument):
        linear, square = cells.moments(tuple(cell for cell in measure.cells if cell.argument == argument))
        x = cells.summand(rows.frame, argument, real=not wide and cells.as_real(dialect, argument, square=square))
        q = rows.column(x.number)
        found[argument] = cells.Moments(
            counted,
            aggregates.name(dialect.aggregate("count", rows.column(x.value), where)),
            aggregates.name(cells.total(dialect, x.number, q, argument.steps, 1, where)) if linear else None,
            aggregates.name(cells.total(dialect, x.number, q, argument.steps, 2, where)) if square else None,
        )
    alone = cells.Moments(counted)
    return [(cell, found[cell.argument] if cell.argument else alone) for cell in measure.cells]


def _read_rows(
    keys: Keys, width: int, plan: list[tuple[int, list[tuple[Cell, cells.Moments]], int]], aggregates: _Aggregates, counted: str
) -> Callable[[Iterable[Row], Found], None]:
    def column(name: str | None) -> int:
        place = aggregates.place(name)
        return len(aggregates.listed()) if place is None else place  # behind the last one there is a 0

    placed = [
        (place, [(c, column(m.rows), column(m.values), column(m.linear), column(m.square)) for c, m in pairs])
        for place, pairs, _ in plan
    ]
    units = column(counted)

    def read(result: Iterable[Row], found: Found) -> None:
        for row in result:
            if any(map(cells.outgrown, row[width:])):
                raise OutgrownError
            numbers = [*map(int, row[width:]), 0]
            group = found.setdefault(keys(row[:width]), {})
            group[UNITS] = numbers[units]
            for place, cell_places in placed:
                group[place] = tuple(
                    cells.from_moments(c, numbers[n], numbers[v], numbers[q], numbers[q2]) for c, n, v, q, q2 in cell_places
                )

    return read


def _read_units(keys: Keys, width: int, places: dict[int, list[int]]) -> Callable[[Iterable[Row], Found], None]:
    def read(result: Iterable[Row], found: Found) -> None:
        for row in result:
            group = found.setdefault(keys(row[:width]), {})
            group[UNITS] = int(row[width])
            for place, columns in places.items():
                group[place] = tuple(int(row[width + 1 + column]) for column in columns)

    return read


# --- histograms -------------------------------------------------------------------------------------------------


def _bins(work: Work, source: Printed, place: int, measure: Bins, dialect: Dialect) -> Statement:
    """Rows of (key, bin, weight). Rows that are not counted have bin NULL: their group exists all the same."""
    rows = Rows(work, source, dialect)
    q, condition = cells.quantise(rows.frame, measure.argument), rows.condition(measure.where)
    name = rows.column(q)
    counted = f"(CASE WHEN {condition} THEN {name} END)" if condition else name
    inner = f"(SELECT {', '.join([*rows.heads, f'{counted} AS bin'])} FROM ({rows.select()}))"
    first = rows.only_known(grouped([*rows.heads, "bin"], ["count(*) AS n"], inner), "n")
    if work.by_unit:
        text = _bounded_bins(work, rows, measure.max_rows, first, dialect)
    else:
        text = f"SELECT {', '.join([*rows.keys, 'bin'])}, n * {SCALE} FROM ({first})"
    return Statement(text, _read_bins(dialect.read_keys(rows.kinds), len(work.keys), place))


def _bounded_bins(work: Work, rows: Rows, most: int, first: str, dialect: Dialect) -> str:
    """Units with more than m counted rows in a group have their weights scaled."""
    wide = not cells.narrow(cells.ROWS * most * SCALE)
    further, weighed = dialect.weigh_bins(rows.heads, rows.keys, most, SCALE, wide=wide)
    kept = bounded_groups(work, rows.keys, ["bin", "n"], dialect, repeated=True)
    last = grouped([*rows.keys, "bin"], ["sum(weight)"], f"({weighed})")
    return f"WITH {dialect.cte('b', first)}, {kept}{further} {last}"


def _read_bins(keys: Keys, width: int, place: int) -> Callable[[Iterable[Row], Found], None]:
    def read(result: Iterable[Row], found: Found) -> None:
        for row in result:
            bins = found.setdefault(keys(row[:width]), {}).setdefault(place, {})
            if row[width] is not None and row[width + 1]:
                bins[int(row[width])] = int(row[width + 1])

    return read


# --- distinct values --------------------------------------------------------------------------------------------


def _distinct(work: Work, source: Printed, place: int, measure: Distinct, dialect: Dialect) -> Statement:
    rows = Rows(work, source, dialect)
    x = settled(rows.frame, rows.frame.print(measure.expression))
    name = rows.column(one_zero(rows.frame, x))
    inner = f"(SELECT {', '.join([*rows.heads, f'{name} AS v'])} FROM ({rows.select()}))"
    read = _read_distinct(dialect.read_keys(rows.kinds), len(work.keys), place)
    if not work.by_unit:
        return Statement(rows.only_known(grouped(rows.keys, ["count(DISTINCT v)", "count(*) AS n"], inner), "n"), read)
    first = rows.only_known(grouped([*rows.heads, "v"], ["count(*) AS n"], inner), "n")
    further, kept = dialect.keep_values(rows.heads, rows.keys, measure.max_values)
    bound = bounded_groups(work, rows.keys, ["v"], dialect, repeated=True)
    last = grouped(rows.keys, ["count(DISTINCT v)"], f"({kept})")
    return Statement(f"WITH {dialect.cte('b', first)}, {bound}{further} {last}", read)


def _read_distinct(keys: Keys, width: int, place: int) -> Callable[[Iterable[Row], Found], None]:
    def read(result: Iterable[Row], found: Found) -> None:
        for row in result:
            found.setdefault(keys(row[:width]), {})[place] = int(row[width])

    return read
