"""Leaves out the columns that nobody asks for, so that plans read well and engines read little. Changes no answer."""

from __future__ import annotations

from dataclasses import replace

from dither.query.functions import columns
from dither.query.nodes import Aggregate, Compute, Filter, Join, Named, PerUnit, Query, Relation, Scan, Semi, Union
from dither.query.work import UNIT

Names = frozenset[str]


def prune(query: Query, by_unit: bool) -> Query:
    """The query with a source that offers just what its keys and aggregates use, and the unit."""
    wanted = _used(query.keys) | _arguments(query.aggregates) | frozenset([UNIT] if by_unit else [])
    return replace(query, source=_pruned(query.source, wanted))


def _used(named: tuple[Named, ...]) -> Names:
    return frozenset[str]().union(*(columns(each.expression) for each in named))


def _arguments(aggregates: tuple[Aggregate, ...]) -> Names:
    return frozenset[str]().union(*(columns(each.value) for each in aggregates if each.value is not None))


def _pruned(node: Relation, wanted: Names) -> Relation:
    if isinstance(node, Scan):
        return node
    if isinstance(node, Filter):
        return replace(node, source=_pruned(node.source, wanted | columns(node.condition)))
    if isinstance(node, Compute):
        kept = tuple(each for each in node.columns if each.name in wanted) or node.columns[:1]
        return Compute(_pruned(node.source, _used(kept)), kept)
    if isinstance(node, PerUnit):
        aggregates = tuple(each for each in node.aggregates if each.name in wanted)
        return replace(node, source=_pruned(node.source, _used(node.keys) | _arguments(aggregates)), aggregates=aggregates)
    if isinstance(node, Union):
        return Union(tuple(_pruned(part, wanted) for part in node.parts))
    pairs = node.equal if isinstance(node, Join) or node.listed is None else (node.listed, *node.equal)
    ours = frozenset[str]().union(*(columns(left) for left, _ in pairs))
    theirs = frozenset[str]().union(*(columns(right) for _, right in pairs))
    if isinstance(node, Semi):
        return replace(node, source=_pruned(node.source, wanted | ours), other=_pruned(node.other, theirs))
    return _joined(node, wanted | ours, wanted | theirs)


def _joined(node: Join, left: Names, right: Names) -> Relation:
    # Both sides may offer a column UNIT; only the left one's is handed on (resolve.py renames the right one's).
    return replace(node, left=_pruned(node.left, left), right=_pruned(node.right, right))
