"""Questions whose answer is put together from several private results: SELECT ... UNION ALL SELECT ..., and SELECTs around."""

from __future__ import annotations

from dataclasses import dataclass

from dither.query.nodes import Outer, Query


@dataclass(frozen=True)
class Together:
    """How results are put together. `distinct`: for each part after the first, whether equal rows are dropped once it is added.
    `order`: columns by place, whether they fall, and whether their NULLs come first."""

    distinct: tuple[bool, ...]
    order: tuple[tuple[int, bool, bool], ...] = ()
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True)
class Results:
    """Private results, how they are put together, and the SELECTs around them, the innermost first. A part may be put together
    itself."""

    parts: tuple[Query | Results, ...]
    together: Together
    above: tuple[Outer, ...] = ()


def columns_of(node: Query | Results) -> tuple[str, ...]:
    """Returns the names of the columns of an answer. Those of a UNION are named as in its first part."""
    if node.above:
        return tuple(each.name for each in node.above[-1].outputs)
    return columns_of(node.parts[0]) if isinstance(node, Results) else tuple(each.name for each in node.outputs)


def leaves(node: Query | Results) -> tuple[Query, ...]:
    """Returns the private questions of a result, in order."""
    return (node,) if isinstance(node, Query) else tuple(leaf for part in node.parts for leaf in leaves(part))
