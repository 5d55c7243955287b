"""Intervals of aggregates for margins of arbitrary expressions: what is known of the truth, and how far a value may be off."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import TypeGuard

from dither.query.functions.base import Facts
from dither.query.nodes import FUNCTIONS, Call, Column, Expression

_STRICT = ("add", "sub", "mul", "div", "neg", "sqrt", "exp", "ln", "power", "abs", "round", "to_real")  # NULL if a part is NULL


def fact(function: str, low: float, high: float) -> Facts:
    """Returns the facts of an aggregate whose truth is in [low, high]. Counts are whole and never below zero."""
    if FUNCTIONS[function].counts:
        top = None if math.isinf(high) else Fraction(math.floor(high))
        return Facts("int", Fraction(max(0, math.ceil(low)) if math.isfinite(low) else 0), top, False, whole=True)
    bottom, top = (None if math.isinf(end) else Fraction(end) for end in (low, high))
    return Facts("real", bottom, top, nullable=False)


def farthest(value: float, truth: Facts) -> float | None:
    """Returns the largest distance of the value from where the truth may be if it is not NULL; None if that is unbounded."""
    if truth.low is None or truth.high is None:
        return None
    return farthest_end(value, (float(truth.low), float(truth.high)))


def farthest_end(value: float, ends: Iterable[float]) -> float:
    """Returns the largest distance of the value from one of the ends."""
    return max((abs(end - value) for end in ends), default=0.0)


def is_number(value: object) -> TypeGuard[int | float]:
    """Returns whether a value is a finite number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def divisors(expression: Expression) -> set[str]:
    """Returns the columns that are not 0 where the expression is not NULL: divisors, also under a root, and those of LN."""
    if not isinstance(expression, Call) or expression.name not in _STRICT:
        return set()
    found = set().union(*(divisors(argument) for argument in expression.arguments))
    if expression.name in ("div", "ln"):
        inner = expression.arguments[-1]
        while isinstance(inner, Call) and inner.name in ("sqrt", "nullif", "to_real", "neg", "abs"):
            inner = inner.arguments[0]
        found |= {inner.name} if isinstance(inner, Column) else set()
    return found
