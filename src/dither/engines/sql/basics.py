"""What all printers of functions share: settling what is not a number, one kind for several arguments, whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from dither.engines.sql.text import TYPES, Sql, double, literal, made
from dither.query.functions_casts import LIMIT

_ORDER = ("null", "bool", "text", "int", "real", "date", "timestamp")


class Stages(Protocol):
    """Where helper columns are put, so that no expression is written (and computed) twice."""

    def atom(self, x: Sql) -> Sql:
        """The same value under a name."""
        ...


Printer = Callable[[Stages, list[Sql]], Sql]


# --- numbers as they are used -----------------------------------------------------------------------------------


def settled(stages: Stages, x: Sql) -> Sql:
    """The value with NULL where it is not a number, as everything that looks at a value needs it."""
    if not x.nan:
        return x
    held = stages.atom(x)
    return made(f"(CASE WHEN isnan({held.text}) THEN NULL ELSE {held.text} END)", x.kind, held)


def alike(stages: Stages, arguments: Sequence[Sql]) -> list[Sql]:
    """Arguments of one family in their widest kind, ready to be compared: doubles if one is, else as they are."""
    kind = widest(arguments)
    return [settled(stages, as_kind(x, kind)) for x in arguments]


def widest(arguments: Sequence[Sql]) -> str:
    """The kind that holds all of these."""
    return max((x.kind for x in arguments), key=_ORDER.index)


def as_kind(x: Sql, kind: str) -> Sql:
    if x.kind == kind or (x.kind == "null" and kind == "null"):
        return x
    if kind == "real":
        return double(x)
    return made(f"CAST({x.text} AS {TYPES[kind]})", kind, x)


def whole(stages: Stages, x: Sql, *, rounded: bool) -> Sql:
    """A double as BIGINT: NULL beyond 2^62 (an infinity, and what is not a number, is beyond)."""
    held = stages.atom(x)
    inside = f"{held.text} BETWEEN {literal(-float(LIMIT)).text} AND {literal(float(LIMIT)).text}"
    value = f"{'round' if rounded else 'trunc'}({held.text})"
    return made(f"(CASE WHEN {inside} THEN CAST({value} AS BIGINT) END)", "int", held)
