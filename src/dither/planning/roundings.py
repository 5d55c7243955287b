"""Roundings around a number with a margin. ROUND(x, 2) lies between the rounded ends of x: so it keeps the margin of x, and
less than a unit of its last place comes on top."""

from __future__ import annotations

from dataclasses import replace

from dither.planning import forms
from dither.planning.intervals import farthest_end, is_number
from dither.query.functions.registry import evaluate
from dither.query.nodes import Call, Column, Expression

_INNER = "#inner"


def peel(expression: Expression) -> tuple[Expression, Expression] | None:
    """Splits off a rounding with constants around it. Returns what is around, over the column `#inner`, and what is inside.

    >>> from dither.query.nodes import Literal
    >>> around, inner = peel(Call("div", (Call("round", (Call("mul", (Column("x"), Literal(10))),)), Literal(10))))
    >>> inner
    Call(name='mul', arguments=(Column(name='x', span=None), Literal(value=10, span=None)), span=None)
    """
    if not isinstance(expression, Call):
        return None
    if expression.name in ("round", "floor", "ceil", "trunc"):
        inner, *digits = expression.arguments
        constant = all(forms.number_of(each) is not None for each in digits)
        return (replace(expression, arguments=(Column(_INNER), *digits)), inner) if constant else None
    if expression.name not in ("mul", "div", "add", "sub"):
        return None
    left, right = expression.arguments
    if forms.number_of(right) is not None and (found := peel(left)) is not None:
        return replace(expression, arguments=(found[0], right)), found[1]
    if expression.name != "div" and forms.number_of(left) is not None and (found := peel(right)) is not None:
        return replace(expression, arguments=(left, found[0])), found[1]
    return None


def through(around: Expression, shown: float, middle: object, wide: float | None) -> float | None:
    """Returns the margin of `shown` if what is inside is `middle` ± `wide`. It covers the truth, rounded or not."""
    if not is_number(middle) or wide is None:
        return None
    both = (around, _unrounded(around))
    ends = [evaluate(each, {_INNER: middle + sign * wide}) for each in both for sign in (-1, 1)]
    return farthest_end(shown, filter(is_number, ends)) if all(map(is_number, ends)) else None


def _unrounded(around: Expression) -> Expression:
    if not isinstance(around, Call):
        return around
    if around.name in ("round", "trunc"):
        return around.arguments[0]
    return replace(around, arguments=tuple(map(_unrounded, around.arguments)))
