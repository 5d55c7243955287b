"""What a subquery is called where people read of it: its inner name says which it is, and these words what it asks.

The words are made of the name alone, so equal questions are told in equal words however they were written.
"""

from __future__ import annotations

from dither.query.nodes import Call, Column, Expression, Literal

SCALAR = "#subquery"  # what sql_scalars.py names begins with this, or with "#one"; nothing else takes such a name
_MARKS = {"exists": "EXISTS (SELECT ...)", "in": "IN (SELECT ...)"}
_FUNCTIONS = ("count_distinct", "count", "sum", "avg", "min", "max", "bool_or", "bool_and")  # the longer of two goes first
_COUNTS = ("count_distinct", "count")


def is_subquery(expression: Expression) -> bool:
    """Whether this is the value of a subquery and no more: its column, or for a count 0 where that is missing."""
    if isinstance(expression, Call) and expression.name == "coalesce" and expression.arguments[1:] == (Literal(0),):
        inner = expression.arguments[0]
        return isinstance(inner, Column) and is_subquery(inner) and _parts(inner.name)[0] in _COUNTS
    return isinstance(expression, Column) and expression.name.startswith(f"{SCALAR} ") and "." in expression.name


def worded(expression: Expression) -> str:
    """The subquery in words.

    >>> worded(Column("#subquery 2.exists")), worded(Column("#subquery 2.sum_cost")), worded(Column("#subquery 3.sum_2"))
    ('EXISTS (SELECT ...)', '(SELECT SUM(cost) ...)', '(SELECT SUM(...) ...)')
    >>> worded(Call("coalesce", (Column("#subquery 2.count_distinct_kind"), Literal(0))))
    '(SELECT COUNT(DISTINCT kind) ...)'
    """
    column = expression.arguments[0] if isinstance(expression, Call) else expression
    if not isinstance(column, Column):
        raise TypeError("not a subquery")
    function, inner = _parts(column.name)
    if function in _MARKS:
        return _MARKS[function]
    if function == "count_distinct":
        return f"(SELECT COUNT(DISTINCT {inner}) ...)"
    return f"(SELECT {function.upper()}({inner}) ...)"


def _parts(name: str) -> tuple[str, str]:
    """The function and what it is of, as sql_aggregates.natural put them together; "..." where it is no column."""
    last = name.split(".", 1)[-1]
    for function in _FUNCTIONS:
        if last.startswith(f"{function}_"):
            inner = last[len(function) + 1 :]
            return function, "..." if inner.isdigit() else inner
    return last, "..."
