"""A question whose answer is put together from several private results: SELECT ... UNION ALL SELECT ..."""

from __future__ import annotations

from dataclasses import dataclass

from dither.query.nodes import Query


@dataclass(frozen=True)
class Together:
    """How results are put together. `distinct`: for each part after the first, whether equal rows are dropped once it is added.
    `order`: columns by place, and whether they fall."""

    distinct: tuple[bool, ...]
    order: tuple[tuple[int, bool], ...] = ()
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True)
class Results:
    """Private results and how they are put together."""

    parts: tuple[Query, ...]
    together: Together
