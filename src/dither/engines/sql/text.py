"""A printed expression with what is known of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Sql:
    """A printed expression.

    `kind` is one of catalog.KINDS, or "null" for a bare NULL. `atom`: a column or a constant, so it may be written twice
    without computing anything twice. `nan`: a double that may be "not a number" where the meaning says NULL.
    `level`: how many stages of helper columns must exist before it can be computed. `constant`: its value, if it has one.
    """

    text: str
    kind: str
    atom: bool = False
    nan: bool = False
    level: int = 0
    constant: int | float | Fraction | str | None = None


def made(text: str, kind: str, *arguments: Sql, nan: bool = False) -> Sql:
    """An expression over arguments: it needs as many stages as they do."""
    return Sql(text, kind, nan=nan, level=max((argument.level for argument in arguments), default=0))


def nearest(value: int | float | Fraction) -> float:
    """The nearest double; an infinity beyond the largest one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
