"""Puts noisy tables together: the grouping sets of a question, or the results of a UNION. Post-processing, which is free.

SELECTs around them read the rows of all parts, and each value's source says which part it is from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dither.planning.consistent import counts
from dither.planning.levels import Levels
from dither.planning.outer import compute_all, opened
from dither.planning.outputs import Noisy, Table, arranged, outputs, rows_of
from dither.planning.plan import Plan
from dither.planning.rows import Extreme, Group, Made, Part, Row, Rows, Source, Total
from dither.query.functions.registry import evaluator
from dither.query.nodes import Outer
from dither.query.union import Together

Place = tuple[int, int]  # a table, and a row of it


@dataclass(frozen=True)
class Stack:
    """What is done with tables that are put together. `order`: the places of the columns that all rows are sorted by;
    `distinct`: equal rows are dropped; `limited`: LIMIT or OFFSET leave rows out; `above`: the SELECTs around them."""

    order: tuple[int, ...] = ()
    distinct: bool = False
    limited: bool = False
    above: tuple[Outer, ...] = ()

    @classmethod
    def of_union(cls, together: Together, above: tuple[Outer, ...]) -> Stack:
        limited = together.limit is not None or together.offset > 0
        return cls(tuple(place for place, *_ in together.order), any(together.distinct), limited, above)

    @classmethod
    def of_levels(cls, levels: Levels) -> Stack:
        return cls(limited=levels.limit is not None or levels.offset > 0, above=levels.above)

    def put(self, parts: Sequence[Rows], names: Sequence[Sequence[str]], rows: Sequence[Row] = ()) -> Rows:
        """Returns these rows of the parts as one table. `names`: the columns of each part; those of the first name all."""
        columns = list(zip(*names, strict=True))
        theirs = [any(name in part.noisy for part, name in zip(parts, column, strict=True)) for column in columns]
        noisy = frozenset(column[0] for column, own in zip(columns, theirs, strict=True) if own)
        shuffled = any(part.shuffled for part in parts) or any(theirs[place] for place in self.order)
        chosen = any(part.chosen for part in parts) or (shuffled and self.limited) or (self.distinct and bool(noisy))
        return Rows(tuple(rows), noisy, any(part.hidden for part in parts), chosen, shuffled)


PLAIN = Stack()


def traced(plan: Plan, table: Table | None = None) -> Rows:
    """Returns the answer of a plan with the sources of its values; without a table, it has no rows."""
    query = plan.query
    names = tuple(each.name for each in query.outputs)
    finished = compute_all(query.above, names, opened(query, plan.threshold is not None))
    if table is None:
        return finished
    noisy = [bool(each.readings) for each in outputs(plan)]
    rows = []
    for row, values in enumerate(table.rows):
        if query.above:
            sources = table.sources[row]
        else:
            sources = tuple(Group(i, table.places[row]) if own else None for i, own in enumerate(noisy))
        made = {name: each for name, each in zip(table.columns, sources, strict=True) if each is not None}
        rows.append(Row(dict(zip(table.columns, values, strict=True)), made))
    return replace(finished, rows=tuple(rows))


def renumbered(rows: Sequence[Row], names: Sequence[str], by: int) -> list[Row]:
    """Returns the rows of a part under other names, with the numbers of their releases that much higher."""
    memo: dict[int, list[Part]] = {}
    found = []
    for row in rows:
        renamed = dict(zip(row.values, names, strict=True))
        values = {renamed[name]: value for name, value in row.values.items()}
        found.append(Row(values, {renamed[name]: _renumbered(source, by, memo) for name, source in row.sources.items()}))
    return found


def _renumbered(source: Source, by: int, memo: dict[int, list[Part]]) -> Source:
    if not by:
        return source
    if isinstance(source, Group):
        return replace(source, release=source.release + by)
    if isinstance(source, Made):
        return replace(source, parts={name: _renumbered(part, by, memo) for name, part in source.parts.items()})
    if isinstance(source, (Total, Extreme)):
        if id(source.parts) not in memo:  # running totals share their parts
            parts = [each if isinstance(each, (int, float)) else _renumbered(each, by, memo) for each in source.parts]
            memo[id(source.parts)] = parts
        return replace(source, parts=memo[id(source.parts)])
    return source


def pick_levels(
    levels: Levels, plans: Sequence[Plan], released: Sequence[Noisy], tables: Sequence[Table], consistent: bool = False
) -> list[Place]:
    """Returns the rows of all grouping sets in the order that the question asks for, and no more than its LIMIT. `consistent`:
    by consistent counts."""
    places = _all(tables)
    values: dict[Place, list[Any]] = {}
    for number, (plan, noisy, table) in enumerate(zip(plans, released, tables, strict=True)):
        moved: dict[str, list[Any]] = dict(counts(plan, noisy)) if consistent else {}
        rows = rows_of(plan, noisy, moved)
        orders = [evaluator(each.expression) for each in plan.query.order]
        for row, place in enumerate(table.places):
            values[number, row] = [order(rows[place]) for order in orders]
    order = [(each.descending, each.nulls_first) for each in plans[0].query.order]
    return _limited(_arranged(places, values, order), levels.limit, levels.offset)


def pick_union(together: Together, tables: Sequence[Table]) -> list[Place]:
    """Returns the rows that a UNION shows: without equal rows where it says so, ordered and limited."""
    places: list[Place] = []
    for number, table in enumerate(tables):
        places += [(number, row) for row in range(len(table.rows))]
        if number and together.distinct[number - 1]:
            places = _distinct(places, tables)
    values = {(part, row): [tables[part].rows[row][column] for column, *_ in together.order] for part, row in places}
    ordered = _arranged(places, values, [(descending, first) for _, descending, first in together.order])
    return _limited(ordered, together.limit, together.offset)


def _all(tables: Sequence[Table]) -> list[Place]:
    return [(number, row) for number, table in enumerate(tables) for row in range(len(table.rows))]


def _distinct(places: Sequence[Place], tables: Sequence[Table]) -> list[Place]:
    """Returns the first of equal rows. TRUE is not 1."""
    first: dict[Any, Place] = {}
    for part, row in places:
        first.setdefault(tuple((isinstance(value, bool), value) for value in tables[part].rows[row]), (part, row))
    return list(first.values())


def _arranged(places: Sequence[Place], values: dict[Place, list[Any]], order: Sequence[tuple[bool, bool]]) -> list[Place]:
    found = list(places)
    for number in reversed(range(len(order))):
        found = arranged(found, [values[place][number] for place in found], *order[number])
    return found


def _limited(places: list[Place], limit: int | None, offset: int) -> list[Place]:
    return places[offset:] if limit is None else places[offset : offset + limit]
