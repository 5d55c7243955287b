"""What all printers of functions share: settling what is not a number, one kind for several arguments, whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from dither.engines.sql.dialect import Dialect
from dither.engines.sql.text import Sql, made
from dither.query.functions_casts import LIMIT

_ORDER = ("null", "bool", "text", "int", "real", "date", "timestamp")


class Stages(Protocol):
    """Where helper columns are put, so that no expression is written (and computed) twice."""

    @property
    def dialect(self) -> Dialect:
        """How the engine spells it."""
        ...

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
    return made(f"(CASE WHEN {stages.dialect.is_nan(held.text)} THEN NULL ELSE {held.text} END)", x.kind, held)


def alike(stages: Stages, arguments: Sequence[Sql]) -> list[Sql]:
    """Arguments of one family in their widest kind, ready to be compared: doubles if one is, else as they are."""
    kind = widest(arguments)
    return [settled(stages, stages.dialect.as_kind(x, kind)) for x in arguments]


def widest(arguments: Sequence[Sql]) -> str:
    """The kind that holds all of these."""
    return max((x.kind for x in arguments), key=_ORDER.index)


def whole(stages: Stages, x: Sql, *, rounded: bool) -> Sql:
    """A double as a 64-bit integer: NULL beyond 2^62 (an infinity, and what is not a number, is beyond)."""
    dialect, held = stages.dialect, stages.atom(x)
    inside = f"{held.text} BETWEEN {dialect.double(-float(LIMIT))} AND {dialect.double(float(LIMIT))}"
    value = dialect.round(held.text) if rounded else dialect.trunc(held.text)
    return made(f"(CASE WHEN {inside} THEN {dialect.cast(value, 'real', 'int')} END)", "int", held)


def one_zero(stages: Stages, x: Sql) -> Sql:
    """Zero has one sign, so that equal values are one value."""
    return made(f"({x.text} + {stages.dialect.number('0')})", "real", x) if x.kind == "real" else x
