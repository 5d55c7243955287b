"""Finds columns that a Work uses only as keys with known values.

Groups with any other value are dropped, so it does not matter there whether a long text is one of its own or NULL. So no row
needs the test.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

from dither.query.nodes import Column, Literal, Named, Scan
from dither.query.work import Work


def known_only(work: Work) -> dict[str, frozenset[str]]:
    """Returns the columns of each table that are used once, as a key whose known values do not have NULL among them.

    >>> from dither.query.nodes import Compute
    >>> source = Compute(Scan("people", "p"), (Named("p.region", Column("p.region")), Named("age", Column("p.age"))))
    >>> known_only(Work(source, (Named("region", Column("p.region")),), (("north", "south"),), False, None, ()))
    {'people': frozenset({'region'})}
    """
    if work.known is None or work.pairs is not None:
        return {}
    pairs = zip(work.keys, work.known, strict=True)
    keys = {key.expression.name for key, known in pairs if isinstance(key.expression, Column) and None not in known}
    nodes = _nodes(work)
    uses: Counter[str] = Counter()
    for node, times in nodes:
        if isinstance(node, Column):
            uses[node.name] += times
    scans = [node for node, times in nodes if isinstance(node, Scan) for _ in range(min(times, 2))]
    found: dict[str, set[str]] = {}
    for node, times in nodes:
        if isinstance(node, Named) and isinstance(node.expression, Column) and node.name in keys and times == 1:
            column = node.expression.name
            once = uses[column] == 2 if column == node.name else uses[column] == uses[node.name] == 1
            alias, _, own = column.partition(".")
            tables = [scan.table for scan in scans if scan.alias == alias]
            if once and len(tables) == 1 and [scan.table for scan in scans].count(tables[0]) == 1:
                found.setdefault(tables[0], set()).add(own)
    return {table: frozenset(columns) for table, columns in found.items()}


def _nodes(work: Work) -> list[tuple[Any, int]]:
    """Returns every node of a Work with how many ways lead to it: a question built in Python may use one part many times."""
    order: list[Any] = []
    seen: set[int] = set()
    waiting: list[tuple[Any, bool]] = [(work, False)]
    while waiting:  # children before parents
        node, done = waiting.pop()
        if done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            waiting.append((node, True))
            waiting += [(child, False) for child in _children(node)]
    ways: Counter[int] = Counter({id(work): 1})
    for node in reversed(order):
        for child in _children(node):
            ways[id(child)] += ways[id(node)]
    return [(node, ways[id(node)]) for node in order]


def _children(node: Any) -> list[Any]:
    if isinstance(node, (tuple, list)):
        return list(node)
    if not dataclasses.is_dataclass(node) or isinstance(node, Literal):
        return []
    parts = [getattr(node, field.name) for field in dataclasses.fields(node)]
    return [part for part in parts if isinstance(part, (tuple, list)) or dataclasses.is_dataclass(part)]
