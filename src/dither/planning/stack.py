"""Puts noisy tables together: the grouping sets of a question, or the results of a UNION. Post-processing, which is free."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dither.planning.levels import Levels
from dither.planning.outputs import Noisy, Table, arranged, rows_of
from dither.planning.plan import Plan
from dither.query.functions.registry import evaluator
from dither.query.union import Together

Place = tuple[int, int]  # a table, and a row of it


def pick_levels(levels: Levels, plans: Sequence[Plan], released: Sequence[Noisy], tables: Sequence[Table]) -> list[Place]:
    """Returns the rows of all grouping sets in the order that the question asks for, and no more than its LIMIT."""
    places = _all(tables)
    values: dict[Place, list[Any]] = {}
    for number, (plan, noisy, table) in enumerate(zip(plans, released, tables, strict=True)):
        rows = rows_of(plan, noisy)
        orders = [evaluator(each.expression) for each in plan.query.order]
        for row, place in enumerate(table.places):
            values[number, row] = [order(rows[place]) for order in orders]
    descending = [each.descending for each in plans[0].query.order]
    return _limited(_arranged(places, values, descending), levels.limit, levels.offset)


def pick_union(together: Together, tables: Sequence[Table]) -> list[Place]:
    """Returns the rows that a UNION shows: without equal rows where it says so, ordered and limited."""
    places: list[Place] = []
    for number, table in enumerate(tables):
        places += [(number, row) for row in range(len(table.rows))]
        if number and together.distinct[number - 1]:
            places = _distinct(places, tables)
    values = {(part, row): [tables[part].rows[row][column] for column, _ in together.order] for part, row in places}
    ordered = _arranged(places, values, [descending for _, descending in together.order])
    return _limited(ordered, together.limit, together.offset)


def _all(tables: Sequence[Table]) -> list[Place]:
    return [(number, row) for number, table in enumerate(tables) for row in range(len(table.rows))]


def _distinct(places: Sequence[Place], tables: Sequence[Table]) -> list[Place]:
    """Returns the first of equal rows. TRUE is not 1."""
    first: dict[Any, Place] = {}
    for part, row in places:
        first.setdefault(tuple((isinstance(value, bool), value) for value in tables[part].rows[row]), (part, row))
    return list(first.values())


def _arranged(places: Sequence[Place], values: dict[Place, list[Any]], descending: Sequence[bool]) -> list[Place]:
    found = list(places)
    for number in reversed(range(len(descending))):
        found = arranged(found, [values[place][number] for place in found], descending[number])
    return found


def _limited(places: list[Place], limit: int | None, offset: int) -> list[Place]:
    return places[offset:] if limit is None else places[offset : offset + limit]
