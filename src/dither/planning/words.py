"""Words for what a plan is about."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dither.query.nodes import Aggregate, Call, Expression, Literal
from dither.query.wording import is_subquery, worded

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%"}


def describe(x: Expression) -> str:
    """A short plain text of an expression, for people."""
    if isinstance(x, Literal):
        return "NULL" if x.value is None else str(x.value)
    if is_subquery(x):
        return worded(x)
    if isinstance(x, Call):
        if x.name in _INFIX and len(x.arguments) == 2:
            return f"({describe(x.arguments[0])} {_INFIX[x.name]} {describe(x.arguments[1])})"
        return f"{x.name}({', '.join(describe(argument) for argument in x.arguments)})"
    return x.name


def filtered(asked: Aggregate) -> tuple[Aggregate, Expression] | None:
    """The aggregate and the condition of its FILTER, if it has one: sql_aggregates.py makes CASE of it."""
    x = asked.argument
    if not isinstance(x, Call) or x.name != "case" or len(x.arguments) != 3 or x.arguments[2] != Literal(None):
        return None
    condition, inner, _ = x.arguments
    every = asked.function == "count" and inner == Literal(1)
    return replace(asked, argument=None if every else inner), condition


def percent(p: Fraction) -> str:
    """0.5 as "50 %"; what is less than everything is never rounded to 100 %.

    >>> percent(Fraction(19, 20)), percent(1 - Fraction(1, 10**18))
    ('95 %', '99.9999 %')
    """
    text = f"{float(100 * p):g}"
    return f"{text if text != '100' or p >= 1 else '99.9999'} %"


def rounded(value: float) -> str:
    """Three digits, never in powers of ten where a plain number is short."""
    if value == 0 or 1e-4 <= abs(value) < 1e15:
        digits = 0 if abs(value) >= 100 else 2 if abs(value) >= 1 else 4
        return f"{value:.{digits}f}".rstrip("0").rstrip(".") if digits else f"{value:.0f}"
    return f"{value:.3g}"
