"""Relations as plain lists of rows: the specification of what each node means. Obvious before fast.

A row is a dict from column name to value. Bags: duplicates count, order means nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dither.query.facts import double
from dither.query.function import Cell, settle
from dither.query.functions import as_key, evaluator
from dither.query.functions_logic import compared
from dither.query.nodes import Aggregate, Compute, Expression, Filter, Join, Named, PerUnit, Relation, Scan, Semi, Union

Row = Mapping[str, Any]
Pairs = Sequence[tuple[Expression, Expression]]
_equal = compared(operator.eq)


@dataclass(frozen=True)
class Bag:
    """Rows and the names of their columns, which must be known even when there is no row."""

    columns: tuple[str, ...]
    rows: list[Row]


def rows_of(relation: Relation, tables: Mapping[str, Bag]) -> Bag:
    """All rows of a relation."""
    if isinstance(relation, Scan):
        return _scan(relation, tables[relation.table])
    if isinstance(relation, Filter):
        source, holds = rows_of(relation.source, tables), evaluator(relation.condition)
        return Bag(source.columns, [row for row in source.rows if holds(row) is True])
    if isinstance(relation, Compute):
        source, parts = rows_of(relation.source, tables), _evaluators(relation.columns)
        return Bag(tuple(parts), [{name: value(row) for name, value in parts.items()} for row in source.rows])
    if isinstance(relation, Union):
        bags = [rows_of(part, tables) for part in relation.parts]
        return Bag(bags[0].columns, [row for bag in bags for row in bag.rows])
    if isinstance(relation, PerUnit):
        return _per_unit(relation, rows_of(relation.source, tables))
    if isinstance(relation, Semi):
        return _semi(relation, rows_of(relation.source, tables), rows_of(relation.other, tables))
    return _join(relation, rows_of(relation.left, tables), rows_of(relation.right, tables))


def _scan(scan: Scan, table: Bag) -> Bag:
    names = {name: f"{scan.alias}.{name}" for name in table.columns}
    rows: list[Row] = [{new: settle(row[old]) for old, new in names.items()} for row in table.rows]
    return Bag(tuple(names.values()), rows)


def _evaluators(named: Sequence[Named]) -> dict[str, Callable[[Row], Cell]]:
    return {part.name: evaluator(part.expression) for part in named}


# --- partners ---------------------------------------------------------------------------------------------------


def _join(join: Join, left: Bag, right: Bag) -> Bag:
    """Each row of the left with each of its partners; in a left join once with NULLs if it has none."""
    nothing = dict.fromkeys(right.columns)
    rows: list[Row] = []
    for row, partners in zip(left.rows, _partners(left, right, join.equal), strict=True):
        rows += [{**row, **partner} for partner in partners]
        if not partners and join.kind == "left":
            rows.append({**row, **nothing})
    return Bag((*left.columns, *right.columns), rows)


def _semi(semi: Semi, source: Bag, other: Bag) -> Bag:
    found = zip(source.rows, _partners(source, other, semi.equal), strict=True)
    if semi.listed is not None and semi.negated:
        x, y = map(evaluator, semi.listed)
        return Bag(source.columns, [row for row, partners in found if _in_none(x(row), map(y, partners))])
    return Bag(source.columns, [row for row, partners in found if bool(partners) != semi.negated])


def _in_none(x: Cell, others: Iterable[Cell]) -> bool:
    """x NOT IN (others), as SQL has it: true only if x is known to differ from each of them."""
    return all(x is not None and y is not None and not _equal(x, y) for y in others)


def _partners(left: Bag, right: Bag, equal: Pairs) -> list[list[Row]]:
    """For each row of the left the rows of the right with which all pairs are equal. NULL equals nothing."""
    ours = [evaluator(a) for a, _ in equal]
    theirs = [evaluator(b) for _, b in equal]
    sides = [([value(row) for value in theirs], row) for row in right.rows]
    found = []
    for row in left.rows:
        side = [value(row) for value in ours]
        found.append([partner for other, partner in sides if all(map(_same, side, other))])
    return found


def _same(x: Cell, y: Cell) -> bool:
    return x is not None and y is not None and _equal(x, y)


# --- aggregation inside one unit --------------------------------------------------------------------------------


def _per_unit(node: PerUnit, source: Bag) -> Bag:
    """One row for each value of the keys (of which the unit is one); NULL is a value like any other here."""
    keys = _evaluators(node.keys)
    groups: dict[tuple[Cell, ...], list[Row]] = {}
    for row in source.rows:
        groups.setdefault(tuple(plain(value(row)) for value in keys.values()), []).append(row)
    rows: list[Row] = []
    for key, members in groups.items():
        sums = {aggregate.name: _aggregate(aggregate, members) for aggregate in node.aggregates}
        rows.append({**dict(zip(keys, key, strict=True)), **sums})
    return Bag((*keys, *(aggregate.name for aggregate in node.aggregates)), rows)


def plain(value: Cell) -> Cell:
    """Zero has one sign, so that equal values are one value."""
    return 0.0 if isinstance(value, float) and value == 0 else value


def _aggregate(aggregate: Aggregate, rows: list[Row]) -> Cell:
    if aggregate.argument is None:
        return len(rows)
    compute = evaluator(aggregate.argument)
    values = [plain(value) for value in map(compute, rows) if value is not None]
    return AGGREGATES[aggregate.function](values)


def _sum(values: list[Any]) -> Cell:
    """Added up as exact whole numbers, then the nearest double: no order can matter."""
    whole = [number for number in map(as_key, values) if number is not None]
    return double(sum(whole)) if whole else None  # type: ignore[arg-type]


def _average(values: list[Any]) -> Cell:
    whole = [number for number in map(as_key, values) if number is not None]
    return double(sum(whole)) / len(whole) if whole else None  # type: ignore[arg-type]


AGGREGATES: Mapping[str, Callable[[list[Any]], Cell]] = {
    "count": len,
    "count_distinct": lambda values: len(set(values)),
    "sum": _sum,
    "avg": _average,
    "min": lambda values: min(values, default=None),
    "max": lambda values: max(values, default=None),
    "bool_or": lambda values: any(values) if values else None,
    "bool_and": lambda values: all(values) if values else None,
}
