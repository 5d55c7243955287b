"""The functions an expression may use, and what an expression means on one row. What is not here is refused.

`evaluate` is the specification every engine is compared with; it also serves the planner (enumerating public domains)
and the finishing of noisy results, where the row holds keys and noisy numbers.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from dither.query.facts import double
from dither.query.function import Cell, Function, apply, settle
from dither.query.functions_casts import CASTS, DATE_TEXT, LIMIT, REAL_TEXT, WHOLE_TEXT, as_key
from dither.query.functions_dates import DATES
from dither.query.functions_logic import LOGIC
from dither.query.functions_numbers import NUMBERS
from dither.query.functions_text import TEXT
from dither.query.nodes import Call, Column, Expression, Literal

__all__ = [
    "DATE_TEXT",
    "FUNCTIONS",
    "LIMIT",
    "REAL_TEXT",
    "WHOLE_TEXT",
    "Cell",
    "Function",
    "as_key",
    "evaluate",
    "evaluator",
    "literal",
]

FUNCTIONS: Mapping[str, Function] = {entry.name: entry for entry in (*NUMBERS, *LOGIC, *CASTS, *TEXT, *DATES)}


def literal(value: Any) -> Cell:
    """A constant as it is computed with: fractions are doubles.

    >>> literal(Fraction(1, 10)), literal(7)
    (0.1, 7)
    """
    if isinstance(value, Fraction):
        return double(value)
    constant: Cell = settle(value)
    return constant


def evaluate(expression: Expression, row: Mapping[str, Any]) -> Cell:
    """The expression's value on one row, which must have the columns it names. Never raises for any value in the row.

    >>> evaluate(Call("div", (Column("x"), Literal(0))), {"x": 3}) is None
    True
    >>> evaluate(Call("add", (Column("x"), Literal(1))), {"x": 3})
    4.0
    """
    return evaluator(expression)(row)


def evaluator(expression: Expression) -> Callable[[Mapping[str, Any]], Cell]:
    """The expression as a Python function of a row: what `evaluate` calls, for those who call it often."""
    if isinstance(expression, Column):
        name = expression.name
        return lambda row: settle(row[name])
    if isinstance(expression, Literal):
        value = literal(expression.value)
        return lambda row: value
    function = FUNCTIONS[expression.name]
    parts = [evaluator(argument) for argument in expression.arguments]
    return lambda row: apply(function, [part(row) for part in parts])


def evaluate_all(expressions: Sequence[Expression], rows: Iterable[Mapping[str, Any]]) -> list[tuple[Cell, ...]]:
    """The values of all expressions at every row."""
    compute = [evaluator(each) for each in expressions]
    return [tuple([each(row) for each in compute]) for row in rows]


def columns(expression: Expression) -> frozenset[str]:
    """The names of the columns an expression reads."""
    if isinstance(expression, Column):
        return frozenset((expression.name,))
    if isinstance(expression, Call):
        return frozenset().union(*(columns(argument) for argument in expression.arguments))
    return frozenset()


def kind_of(value: Any) -> str:
    """The kind of a constant; "null" for NULL."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, datetime.datetime):
        return "timestamp"
    if isinstance(value, datetime.date):
        return "date"
    return "text" if isinstance(value, str) else "real"
