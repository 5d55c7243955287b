"""Computes the SELECTs around a question on its noisy table: WHERE, GROUP BY, window functions, QUALIFY, ORDER BY, LIMIT.

Nothing here reads a row of a person: the input is a finished table of noisy numbers. Values mean what they mean in DuckDB,
except that nothing fails: where a function has no value, it is NULL. rows.py has the table on its way and how values were made,
folds.py aggregates, windows.py the window functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dither.planning.folds import Members
from dither.planning.lookups import value_of
from dither.planning.rows import UNKNOWN, Row, Rows, is_noisy
from dither.planning.windows import with_window
from dither.query.functions.registry import columns, evaluator
from dither.query.nodes import Across, Column, Lookup, Named, Outer, Query


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


def compute_all(above: Sequence[Outer], names: Sequence[str], table: Rows) -> Rows:
    """Computes SELECTs around a noisy table with columns of these names, from the inside out."""
    for outer in above:
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
        table = with_window(across, table)
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
            rest = Members(fold, members, table)
            row.with_value(fold.name, *rest.of(0, len(rest.rows)))
        rows.append(row)
    noisy = {key.name for key in keys if table.reads(key.expression)}
    noisy |= {fold.name for fold in folds if is_noisy(fold, table)}
    return replace(table, rows=tuple(rows), noisy=frozenset(noisy))
