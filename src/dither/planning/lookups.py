"""Reads what subqueries above the groups find in public tables, before anything is charged. It costs nothing.

The engine returns the different values that a subquery selects, and how many rows have each; they are aggregated here, sums of
doubles exactly rounded, so that no order of rows matters. A refusal here depends on the question and on public tables only.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

from dither.errors import QueryError
from dither.query.functions.base import Cell
from dither.query.functions.registry import evaluator
from dither.query.nodes import Aggregate, Expression, Found, Literal, Lookup, Named, Order
from dither.query.resolve.relations import Resolved
from dither.query.work import MOST_PLAIN, Group, Sums, Work
from dither.query.work import Cell as Amount

_COUNT = Sums((Amount(constant=1),), 1)
Weighed = Sequence[tuple[Any, int]]  # values, and the number of rows that have each


def lookups(question: Resolved) -> Iterator[Lookup]:
    """Returns the lookups of a question."""
    return (lookup for outer in question.query.above for lookup in outer.lookups)


def look_up(question: Resolved, prepare: Callable[[Sequence[Work]], None], run: Callable[[Work], Sequence[Group]]) -> Resolved:
    """Returns the question with what its lookups find."""
    works = {lookup: work(lookup) for lookup in lookups(question)}
    if not works:
        return question
    prepare(list(works.values()))
    found = {lookup: read(lookup, run(each)) for lookup, each in works.items()}
    above = tuple(
        replace(outer, lookups=tuple(replace(each, found=found[each]) for each in outer.lookups))
        for outer in question.query.above
    )
    return replace(question, query=replace(question.query, above=above))


def work(lookup: Lookup) -> Work:
    """Returns what the engine reads: the values that are equated, and the item or the arguments of its aggregates."""
    if lookup.aggregates:
        read: tuple[Expression, ...] = tuple(each.argument or Literal(1) for each in lookup.aggregates)
    else:
        read = () if lookup.item is None else (lookup.item, *(each.expression for each in lookup.order))
    values = (*(right for _, right in lookup.equal), *read)
    keys = tuple(Named(f"v{place}", each) for place, each in enumerate(values or (Literal(1),)))
    return Work(lookup.rows, keys, None, False, None, (_COUNT,), plain=True)


def read(lookup: Lookup, groups: Sequence[Group]) -> Found:
    """Returns what a lookup finds in the engine's values."""
    if len(groups) > MOST_PLAIN:
        raise QueryError(
            f"This subquery reads more than {MOST_PLAIN} different public rows.",
            span=lookup.span,
            fix="add conditions to its WHERE.",
        )
    width = len(lookup.equal)
    by_key: dict[tuple[Any, ...], list[tuple[tuple[Any, ...], int]]] = {}
    for group in groups:
        values, count = tuple(map(finite, group.key)), _rows(group)
        key = tuple(map(comparable, values[:width]))
        if None not in key:  # NULL equals nothing
            by_key.setdefault(key, []).append((values[width:], count))
    if lookup.aggregates:
        item = evaluator(lookup.item or Literal(None))
        totals = {key: item(_aggregated(lookup.aggregates, rows)) for key, rows in by_key.items()}
        return Found({key: frozenset([value]) for key, value in totals.items()}, item(_aggregated(lookup.aggregates, ())))
    if lookup.order:
        return Found({key: frozenset([_first(lookup.order, rows)]) for key, rows in by_key.items()})
    if lookup.kind == "value" and any(len(rows) > 1 or rows[0][1] > 1 for rows in by_key.values()):
        raise _several(lookup)
    if lookup.kind == "exists":
        return Found(dict.fromkeys(by_key, frozenset([True])))
    shown = comparable if lookup.kind == "in" else finite
    return Found({key: frozenset(shown(values[0]) for values, _ in rows) for key, rows in by_key.items()})


def _first(order: Sequence[Order], rows: Sequence[tuple[tuple[Any, ...], int]]) -> Any:
    """Returns the item of the first row; rows that the order does not tell apart are taken by their items. NULLs come last."""
    found = [values for values, _ in rows]
    sorts = [(0, False), *reversed([(place, each.descending) for place, each in enumerate(order, start=1)])]
    for place, descending in sorts:  # the last key first: sorting keeps the order of equal rows
        known = [values for values in found if values[place] is not None]
        rest = [values for values in found if values[place] is None]
        found = sorted(known, key=itemgetter(place), reverse=descending) + rest
    return found[0][0]


def _several(lookup: Lookup) -> QueryError:
    each = " for the same value that it is equated with" if lookup.equal else ""
    return QueryError(
        f"This subquery stands for one value, and has more than one row{each}.",
        span=lookup.span,
        fix="select an aggregate such as MAX(x), or add conditions to its WHERE.",
    )


def _rows(group: Group) -> int:
    (counted,) = group.measures
    return counted[0] if isinstance(counted, tuple) else 0


def finite(value: Any) -> Any:
    """Returns a value of a public table; an infinite number is NULL, as in all that is computed from noisy numbers."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def comparable(value: Any) -> Any:
    """Returns a value so that equal ones of two kinds are equal: a date is the midnight that it begins with.

    >>> comparable(datetime.date(2026, 1, 31)) == comparable(datetime.datetime(2026, 1, 31)), comparable(2.0) == comparable(2)
    (True, True)
    """
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return datetime.datetime(value.year, value.month, value.day)
    return value


def value_of(lookup: Lookup, values: Mapping[str, Cell], outside: Sequence[Callable[[Mapping[str, Cell]], Cell]]) -> Cell:
    """Returns the value of a lookup in a row of a noisy table. `outside` computes what it reads of the row."""
    found = lookup.found
    if found is None:
        raise TypeError("public tables are read before the noisy table is finished")
    own = [comparable(each(values)) for each in outside]
    items = found.items.get(tuple(own[: len(lookup.equal)]))
    if lookup.kind == "exists":
        return items is not None
    if lookup.kind == "value":
        value: Cell = found.empty if items is None else next(iter(items))
        return value
    if items is None:
        return False
    if own[-1] is None:
        return None
    return True if own[-1] in items else None if None in items else False


# --- aggregates ---------------------------------------------------------------------------------------------------


def _aggregated(aggregates: Sequence[Aggregate], rows: Sequence[tuple[tuple[Any, ...], int]]) -> dict[str, Any]:
    found = {}
    for place, each in enumerate(aggregates):
        known = [(values[place], count) for values, count in rows if values[place] is not None]
        found[each.name] = _FUNCTIONS[each.function](known)
    return found


def _count(rows: Weighed) -> int:
    return sum(count for _, count in rows)


def _sum(rows: Weighed) -> Any:
    if not rows:
        return None
    if all(isinstance(value, int) for value, _ in rows):
        return sum(value * count for value, count in rows)
    try:
        return finite(math.fsum(value * count for value, count in rows))
    except (OverflowError, ValueError):  # beyond doubles, as infinite numbers are
        return None


def _average(rows: Weighed) -> Any:
    total = _sum(rows)
    return None if total is None else total / _count(rows)


_FUNCTIONS: Mapping[str, Callable[[Weighed], Any]] = {
    "count": _count,
    "count_distinct": lambda rows: len({value for value, _ in rows}),
    "sum": _sum,
    "avg": _average,
    "min": lambda rows: min((value for value, _ in rows), default=None),
    "max": lambda rows: max((value for value, _ in rows), default=None),
    "bool_or": lambda rows: any(value for value, _ in rows) if rows else None,
    "bool_and": lambda rows: all(value for value, _ in rows) if rows else None,
}
