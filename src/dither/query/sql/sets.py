"""Reads ROLLUP, CUBE and GROUPING SETS: the keys of a GROUP BY, and which of them each grouping set has."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from sqlglot import exp

from dither.query.sql.names import Scope, refuse

MOST_SETS = 64
WORDS = ("GROUPING", "GROUPING_ID")
Set = tuple[exp.Expr, ...]


def has_sets(items: Sequence[exp.Expr]) -> bool:
    """Returns whether a GROUP BY has more than plain keys."""
    return any(isinstance(item, (exp.Rollup, exp.Cube, exp.GroupingSets)) for item in items)


def expand(items: Sequence[exp.Expr], scope: Scope) -> list[Set]:
    """Returns the grouping sets of a GROUP BY, each as the keys that it writes. Several elements are combined."""
    found: list[Set] = [()]
    for item in items:
        found = [(*before, *after) for before in found for after in _sets(item, scope)]
        if len(found) > MOST_SETS:
            what = f"This GROUP BY has {len(found)} grouping sets, and at most {MOST_SETS} are answered at once."
            raise refuse(scope, item, what, "write the sets that you need: GROUPING SETS ((a, b), (a), ()).")
    return found


def _sets(item: exp.Expr, scope: Scope) -> list[Set]:
    parts = item.expressions
    if isinstance(item, exp.Rollup):
        return [_joined(_columns(part) for part in parts[:length]) for length in range(len(parts), -1, -1)]
    if isinstance(item, exp.Cube):
        if len(parts) > MOST_SETS.bit_length():
            what = f"CUBE of {len(parts)} keys has {2 ** len(parts)} grouping sets, and at most {MOST_SETS} are answered."
            raise refuse(scope, item, what, "write the sets that you need: GROUPING SETS ((a, b), (a), ()).")
        chosen = (each for size in range(len(parts), -1, -1) for each in itertools.combinations(parts, size))
        return [_joined(_columns(part) for part in each) for each in chosen]
    if isinstance(item, exp.GroupingSets):
        return [each for part in parts for each in _sets(part, scope)]
    return [_columns(item)]


def _columns(item: exp.Expr) -> Set:
    """Returns the keys of one element: (a, b), (a), () or a."""
    if isinstance(item, exp.Tuple):
        return tuple(item.expressions)
    return (item.this,) if isinstance(item, exp.Paren) else (item,)


def _joined(parts: Iterable[Set]) -> Set:
    return tuple(each for part in parts for each in part)


def is_grouping(node: exp.Expr) -> bool:
    """Returns whether a node is GROUPING(a, b) or GROUPING_ID(a, b)."""
    return isinstance(node, exp.Anonymous) and isinstance(node.this, str) and node.this.upper() in WORDS
