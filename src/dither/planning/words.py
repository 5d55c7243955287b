"""Words for what a plan is about."""

from __future__ import annotations

from fractions import Fraction

from dither.query.nodes import Call, Expression, Literal, words_of

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%"}


def describe(x: Expression) -> str:
    """A short plain text of an expression, for people."""
    if isinstance(x, Literal):
        return "NULL" if x.value is None else str(x.value)
    if words_of(x):
        return words_of(x)
    if isinstance(x, Call):
        if x.name in _INFIX and len(x.arguments) == 2:
            return f"({describe(x.arguments[0])} {_INFIX[x.name]} {describe(x.arguments[1])})"
        return f"{x.name}({', '.join(describe(argument) for argument in x.arguments)})"
    return x.name


def percent(p: Fraction) -> str:
    """0.5 as "50 %"; what is less than everything is never rounded to 100 %.

    >>> percent(Fraction(19, 20)), percent(1 - Fraction(1, 10**18))
    ('95 %', '99.9999 %')
    """
    text = f"{float(100 * p):g}"
    return f"{text if text != '100' or p >= 1 else '99.9999'} %"
