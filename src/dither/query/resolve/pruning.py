"""Drops the columns of a resolved query that nothing reads, so that plans are short and engines read little.

It changes no answer. Rows that a window does not tell apart by ORDER BY are ordered by the columns that are read: rows that are
equal in all of them stay interchangeable, whatever is dropped.
"""

from __future__ import annotations

from dataclasses import replace

from dither.query.functions.registry import columns
from dither.query.nodes import (
    Aggregate,
    Compute,
    Filter,
    Join,
    Named,
    PerUnit,
    Query,
    Relation,
    Scan,
    Semi,
    Union,
    Window,
    WithinUnit,
)
from dither.query.work import UNIT

Names = frozenset[str]


def prune(query: Query, by_unit: bool) -> Query:
    """Drops the columns of the source that the keys, the aggregates and the unit do not use."""
    used = used_by(query.keys) | _arguments(query.aggregates) | frozenset([UNIT] if by_unit else [])
    return replace(query, source=_prune(query.source, used))


def prune_relation(relation: Relation, used: Names) -> Relation:
    """Drops the columns of a relation that are not used."""
    return _prune(relation, used)


def used_by(named: tuple[Named, ...]) -> Names:
    """Returns the columns that expressions read."""
    return frozenset[str]().union(*(columns(each.expression) for each in named))


def _arguments(aggregates: tuple[Aggregate, ...]) -> Names:
    return frozenset[str]().union(*(columns(value) for each in aggregates for value in each.values))


def _prune(node: Relation, used: Names) -> Relation:
    if isinstance(node, Scan):
        return node
    if isinstance(node, Filter):
        return replace(node, source=_prune(node.source, used | columns(node.condition)))
    if isinstance(node, Compute):
        kept = tuple(each for each in node.columns if each.name in used) or node.columns[:1]
        return Compute(_prune(node.source, used_by(kept)), kept)
    if isinstance(node, PerUnit):
        aggregates = tuple(each for each in node.aggregates if each.name in used)
        return replace(node, source=_prune(node.source, used_by(node.keys) | _arguments(aggregates)), aggregates=aggregates)
    if isinstance(node, Union):
        return Union(tuple(_prune(part, used) for part in node.parts))
    if isinstance(node, WithinUnit):
        return _prune_windows(node, used)
    pairs = node.equal if isinstance(node, Join) or node.listed is None else (node.listed, *node.equal)
    ours = frozenset[str]().union(*(columns(left) for left, _ in pairs))
    theirs = frozenset[str]().union(*(columns(right) for _, right in pairs))
    if isinstance(node, Semi):
        return replace(node, source=_prune(node.source, used | ours), other=_prune(node.other, theirs))
    return _prune_join(node, used | ours, used | theirs)


def _prune_join(node: Join, left: Names, right: Names) -> Relation:
    # Both sides may have a column UNIT; only the left one is passed on (`_join` renames the right one).
    return replace(node, left=_prune(node.left, left), right=_prune(node.right, right))


def _prune_windows(node: WithinUnit, used: Names) -> Relation:
    """Drops windows that nothing reads. Those that are left are ordered by ORDER BY, then by all columns that are read."""
    kept = tuple(each for each in node.windows if each.name in used)
    names = frozenset(each.name for each in node.windows)
    read = frozenset[str]().union(used - names, *(_read(each) for each in kept))
    source = _prune(node.source, read)
    if not kept:
        return source
    trimmed = (replace(each, ties=tuple(tie for tie in each.ties if columns(tie) <= read)) for each in kept)
    return WithinUnit(source, tuple(trimmed))


def _read(window: Window) -> Names:
    parts = [*window.arguments, *window.partition, *(key.expression for key in window.order)]
    return frozenset[str]().union(*(columns(part) for part in parts))
