"""A Work printed as DuckDB statements, and their rows read back as groups.

All sums take one statement, every histogram and every count of distinct values one of its own; they agree on which groups
a unit keeps, because that depends on the unit's rows and the secret only. The secret is no part of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dither.engines.sql import cells
from dither.engines.sql.basics import settled
from dither.engines.sql.frame import Printed
from dither.engines.sql.relations import Schema, relation
from dither.engines.sql.rows import Rows, bounded_groups, grouped, keyed_hash, needs_choice
from dither.engines.sql.text import made
from dither.query.work import SCALE, Bins, Cell, Distinct, Group, Quantised, Sums, Work

Row = tuple[Any, ...]
Found = dict[tuple[Any, ...], dict[int, Any]]  # key -> position of the measure -> its value
UNITS = -1  # where the number of units stands


@dataclass(frozen=True)
class Statement:
    """A SELECT, and what its rows mean."""

    text: str
    read: Callable[[Iterable[Row], Found], None]


class OutgrownError(Exception):
    """A sum in doubles reached 2^53, for which a group needs more than 2^33 rows: add up in integers."""


def statements(work: Work, schema: Schema, *, wide: bool = False) -> list[Statement]:
    """What to run, one after the other. `wide`: add up in integers throughout."""
    cells.prove_widths(work)
    source = relation(work.source, schema)
    sums = [i for i, measure in enumerate(work.measures) if isinstance(measure, Sums)]
    found = []
    if sums or work.count_units or not work.measures:
        found.append(_sums(work, source, sums, wide))
    for place, measure in enumerate(work.measures):
        if isinstance(measure, Bins):
            found.append(_bins(work, source, place, measure))
        elif isinstance(measure, Distinct):
            found.append(_distinct(work, source, place, measure))
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


def _sums(work: Work, source: Printed, places: list[int], wide: bool) -> Statement:
    rows, aggregates = Rows(work, source), _Aggregates("a")
    rows_counted = aggregates.name("count(*)")
    plan: list[tuple[int, list[tuple[Cell, cells.Moments]], int]] = []
    for place in places:
        measure = work.measures[place]
        if isinstance(measure, Sums):
            plan.append((place, _moments(rows, aggregates, measure, wide or work.by_unit), measure.max_rows))
    first = rows.only_known(grouped(rows.heads, aggregates.listed(), f"({rows.select()})"), rows_counted)
    if not work.by_unit:
        return Statement(first, _read_rows(len(work.keys), plan, aggregates, rows_counted))
    shares = _Aggregates("s")
    numbers = {place: [shares.name(cells.bounded(c, m, most)) for c, m in pairs] for place, pairs, most in plan}
    names = [f"s{i}" for i in range(len(shares.listed()))]
    bounded = f"SELECT {', '.join([*rows.heads, *shares.listed()])} FROM ({first})"
    sums = [f"COALESCE(sum({name}), 0)" for name in names]
    last = grouped(rows.keys, ["count(*) AS units", *sums], "r")
    stored = "MATERIALIZED" if needs_choice(work) else "NOT MATERIALIZED"  # without a choice it is read only once
    text = f"WITH b AS {stored} ({bounded}), {bounded_groups(work, rows.keys, names, repeated=False)} {last}"
    places_of = {place: [int(name[1:]) for name in found] for place, found in numbers.items()}
    return Statement(text, _read_units(len(work.keys), places_of))


def _moments(rows: Rows, aggregates: _Aggregates, measure: Sums, wide: bool) -> list[tuple[Cell, cells.Moments]]:
    """For each cell the columns of the first aggregation it is made from."""
    condition = rows.condition(measure.where)
    where = f" FILTER (WHERE {condition})" if condition else ""
    counted = aggregates.name(f"count(*){where}")
    found: dict[Quantised, cells.Moments] = {}
    for argument in dict.fromkeys(cell.argument for cell in measure.cells if cell.argument):
        linear, square = cells.moments(tuple(cell for cell in measure.cells if cell.argument == argument))
        x = cells.summand(rows.frame, argument, real=not wide and cells.as_real(argument, square=square))
        q = rows.column(x.number)
        found[argument] = cells.Moments(
            counted,
            aggregates.name(f"count({rows.column(x.value)}){where}"),
            aggregates.name(cells.total(x.number, q, argument.steps, 1, where)) if linear else None,
            aggregates.name(cells.total(x.number, q, argument.steps, 2, where)) if square else None,
        )
    alone = cells.Moments(counted)
    return [(cell, found[cell.argument] if cell.argument else alone) for cell in measure.cells]


def _read_rows(
    width: int, plan: list[tuple[int, list[tuple[Cell, cells.Moments]], int]], aggregates: _Aggregates, counted: str
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
            group = found.setdefault(row[:width], {})
            group[UNITS] = numbers[units]
            for place, cell_places in placed:
                group[place] = tuple(
                    cells.from_moments(c, numbers[n], numbers[v], numbers[q], numbers[q2]) for c, n, v, q, q2 in cell_places
                )

    return read


def _read_units(width: int, places: dict[int, list[int]]) -> Callable[[Iterable[Row], Found], None]:
    def read(result: Iterable[Row], found: Found) -> None:
        for row in result:
            group = found.setdefault(row[:width], {})
            group[UNITS] = int(row[width])
            for place, columns in places.items():
                group[place] = tuple(int(row[width + 1 + column]) for column in columns)

    return read


# --- histograms -------------------------------------------------------------------------------------------------


def _bins(work: Work, source: Printed, place: int, measure: Bins) -> Statement:
    """Rows of (key, bin, weight). Rows that are not counted have bin NULL: their group exists all the same."""
    rows = Rows(work, source)
    q, condition = cells.quantise(rows.frame, measure.argument), rows.condition(measure.where)
    name = rows.column(q)
    counted = f"(CASE WHEN {condition} THEN {name} END)" if condition else name
    inner = f"(SELECT {', '.join([*rows.heads, f'{counted} AS bin'])} FROM ({rows.select()}))"
    first = rows.only_known(grouped([*rows.heads, "bin"], ["count(*) AS n"], inner), "n")
    if work.by_unit:
        text = _bounded_bins(work, rows.keys, measure.max_rows, first)
    else:
        text = f"SELECT {', '.join([*rows.keys, 'bin'])}, n * {SCALE} FROM ({first})"
    return Statement(text, _read_bins(len(work.keys), place))


def _bounded_bins(work: Work, keys: Sequence[str], most: int, first: str) -> str:
    """`heavy` are the units with more than m counted rows in a group: only their weights are scaled."""
    pair = ["u", *keys]
    n = "r.n" if cells.narrow(cells.ROWS * most * SCALE) else "CAST(r.n AS HUGEINT)"
    weight = f"CASE WHEN heavy.k IS NULL THEN {n} * {SCALE} ELSE {n} * {most * SCALE} // heavy.k END"
    same = " AND ".join(f"r.{name} IS NOT DISTINCT FROM heavy.{name}" for name in pair)
    heavy = grouped(pair, ["CAST(sum(n) AS BIGINT) AS k"], "r WHERE bin IS NOT NULL") + f" HAVING sum(n) > {most}"
    listed = [*(f"r.{key} AS {key}" for key in keys), "r.bin AS bin", f"{weight} AS weight"]
    weighed = f"SELECT {', '.join(listed)} FROM r LEFT JOIN heavy ON {same}"
    return (
        f"WITH b AS MATERIALIZED ({first}), {bounded_groups(work, keys, ['bin', 'n'], repeated=True)}, "
        f"heavy AS ({heavy}) {grouped([*keys, 'bin'], ['sum(weight)'], f'({weighed})')}"
    )


def _read_bins(width: int, place: int) -> Callable[[Iterable[Row], Found], None]:
    def read(result: Iterable[Row], found: Found) -> None:
        for row in result:
            bins = found.setdefault(row[:width], {}).setdefault(place, {})
            if row[width] is not None and row[width + 1]:
                bins[int(row[width])] = int(row[width + 1])

    return read


# --- distinct values --------------------------------------------------------------------------------------------


def _distinct(work: Work, source: Printed, place: int, measure: Distinct) -> Statement:
    rows = Rows(work, source)
    x = settled(rows.frame, rows.frame.print(measure.expression))
    name = rows.column(made(f"({x.text} + 0e0)", "real", x) if x.kind == "real" else x)  # -0 is 0
    inner = f"(SELECT {', '.join([*rows.heads, f'{name} AS v'])} FROM ({rows.select()}))"
    if not work.by_unit:
        text = rows.only_known(grouped(rows.keys, ["count(DISTINCT v)", "count(*) AS n"], inner), "n")
        return Statement(text, _read_distinct(len(work.keys), place))
    first = rows.only_known(grouped([*rows.heads, "v"], ["count(*) AS n"], inner), "n")
    pair = ", ".join(rows.heads)
    order = ", ".join([keyed_hash("values", [*rows.heads, "v"]), "v"])
    same = " AND ".join(f"r.{name} IS NOT DISTINCT FROM heavy.{name}" for name in rows.heads)
    listed = ", ".join([*(f"r.{key} AS {key}" for key in rows.keys), "r.v AS v"])
    ranked = f"SELECT r.*, row_number() OVER (PARTITION BY {_dotted(rows.heads)} ORDER BY {order}) AS place"
    kept = (
        f"SELECT {listed} FROM r ANTI JOIN heavy ON {same} UNION ALL SELECT {listed} FROM "
        f"({ranked} FROM r SEMI JOIN heavy ON {same} WHERE r.v IS NOT NULL) AS r WHERE place <= {measure.max_values}"
    )
    text = (
        f"WITH b AS MATERIALIZED ({first}), {bounded_groups(work, rows.keys, ['v'], repeated=True)}, "
        f"heavy AS (SELECT {pair} FROM r GROUP BY {pair} HAVING count(v) > {measure.max_values}) "
        f"{grouped(rows.keys, ['count(DISTINCT v)'], f'({kept})')}"
    )
    return Statement(text, _read_distinct(len(work.keys), place))


def _dotted(names: Sequence[str]) -> str:
    return ", ".join(f"r.{name}" for name in names)


def _read_distinct(width: int, place: int) -> Callable[[Iterable[Row], Found], None]:
    def read(result: Iterable[Row], found: Found) -> None:
        for row in result:
            found.setdefault(row[:width], {})[place] = int(row[width])

    return read
