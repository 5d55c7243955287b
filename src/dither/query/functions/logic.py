"""Comparison, three-valued logic, choice. Integers are compared exactly; if either side is a double, both are doubles.

Text is compared by code point, false is below true, and a date is compared with a timestamp as its midnight.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dither.query.functions.base import Cell, Facts, Function, any_nullable, either, fixed, nan_to_null, together


def comparison(relation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], bool]:
    """Returns the comparison of two values that are not NULL."""

    def compute(x: Any, y: Any) -> bool:
        left, right = together((x, y))
        return bool(relation(left, right))

    return compute


_equal = comparison(operator.eq)


def conjunction(*values: Cell) -> bool | None:
    """Returns False if one is false, else NULL if one is NULL, else True."""
    if any(value is False for value in values):
        return False
    return None if None in values else True


def disjunction(*values: Cell) -> bool | None:
    """Returns True if one is true, else NULL if one is NULL, else False."""
    if any(value is True for value in values):
        return True
    return None if None in values else False


def in_list(x: Cell, *choices: Cell) -> bool | None:
    """Returns x = a OR x = b OR ...: NULL if x equals no choice and a choice is NULL.

    >>> in_list(1, 2, 1), in_list(1, 2, None), in_list(1, 2)
    (True, None, False)
    """
    if x is None:
        return None
    return disjunction(*(None if choice is None else _equal(x, choice) for choice in choices))


def case(*parts: Cell) -> Cell:
    """Takes (when, then, when, then, ..., else) and returns the first `then` whose `when` is true."""
    for when, then in zip(parts[:-1:2], parts[1::2], strict=True):
        if when is True:
            return then
    return parts[-1]


def coalesce(*values: Cell) -> Cell:
    return next((value for value in values if nan_to_null(value) is not None), None)


def nullif(x: Cell, y: Cell) -> Cell:
    return None if x is not None and y is not None and _equal(x, y) else x


def _truth(nullable: Callable[[list[Facts]], bool]) -> Callable[[list[Facts]], Facts]:
    return lambda a: Facts("bool", nullable=nullable(a))


def _case(a: list[Facts]) -> Facts:
    thens = [*a[1:-1:2], a[-1]]
    return either(thens, any_nullable(thens))


def _coalesce(a: list[Facts]) -> Facts:
    return either(a, all(x.nullable for x in a))


def _logic(name: str, meaning: str, compute: Callable[..., Cell]) -> Function:
    return Function(name, meaning, ("bool",), compute, _truth(any_nullable), 1, None, strict=False)


_COMPARISONS = (
    ("eq", operator.eq, "="),
    ("ne", operator.ne, "<>"),
    ("lt", operator.lt, "<"),
    ("le", operator.le, "<="),
    ("gt", operator.gt, ">"),
    ("ge", operator.ge, ">="),
)

LOGIC = (
    *(
        Function(name, f"x {sign} y; NULL if either is", ("any",), comparison(op), fixed("bool"), 2, 2, alike=True)
        for name, op, sign in _COMPARISONS
    ),
    Function(
        "is_null",
        "whether x is NULL (or not a number)",
        ("any",),
        lambda x: x is None,
        _truth(lambda a: False),
        1,
        1,
        strict=False,
    ),
    Function(
        "in_list",
        "whether x equals one of the constants",
        ("any",),
        in_list,
        _truth(any_nullable),
        2,
        None,
        strict=False,
        alike=True,
        constants=(1,),
    ),
    _logic("and", "false if one is false, else NULL if one is NULL", conjunction),
    _logic("or", "true if one is true, else NULL if one is NULL", disjunction),
    Function("not", "NULL stays NULL", ("bool",), lambda x: not x, fixed("bool"), 1, 1),
    Function("case", "the first `then` whose `when` is true, else the last", ("any",), case, _case, 3, None, strict=False),
    Function("coalesce", "the first that is not NULL", ("any",), coalesce, _coalesce, 1, None, strict=False, alike=True),
    Function(
        "nullif",
        "NULL if x = y, else x",
        ("any",),
        nullif,
        lambda a: replace(a[0], nullable=True, values=None),
        2,
        2,
        strict=False,
        alike=True,
    ),
)
