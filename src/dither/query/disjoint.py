"""Proves that two conditions are never true in the same row, by comparisons of one expression with constants.

    sex = 'M'    sex = 'F'                     age < 18    age BETWEEN 18 AND 64    age >= 65
    x IS NULL    x > 3                         member      NOT member

A condition allows an expression an interval, or a list of values. Two conditions are disjoint if they allow the same expression
sets without a common value. NULL fails every comparison. A proof is needed for meaning only, never for privacy: the planner
gives each row to one part whatever is proved here.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from dither.query.nodes import Call, Expression, Literal, Value

_EXACT = 2**53  # every smaller whole number is a double
_SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}


@dataclass(frozen=True)
class Allowed:
    """The values that a condition allows an expression: listed ones, or those between two ends; or NULL only."""

    values: frozenset[Value] | None = None
    low: Value = None
    high: Value = None
    open_low: bool = False
    open_high: bool = False
    null: bool = False

    def apart(self, other: Allowed) -> bool:
        """Whether no value is allowed by both."""
        if self.null or other.null:
            return self.null != other.null
        if self.values is not None and other.values is not None:
            return _one_kind(*self.values, *other.values) and not self.values & other.values
        if self.values is not None:
            return all(other.excludes(value) for value in self.values)
        if other.values is not None:
            return other.apart(self)
        return self._below(other) or other._below(self)

    def excludes(self, value: Value) -> bool:
        """Whether the interval is known not to hold the value."""
        return self._below(Allowed(low=value)) or Allowed(high=value)._below(self)

    def _below(self, other: Allowed) -> bool:
        """Whether all of this interval lies below the other one."""
        top, bottom = self.high, other.low
        if top is None or bottom is None or not _one_kind(top, bottom):
            return False
        return top < bottom or (top == bottom and (self.open_high or other.open_low))  # type: ignore[operator]


def disjoint(one: Expression, other: Expression) -> bool:
    """Whether the two conditions are proved never to be true in the same row.

    >>> from dither.query.nodes import Column
    >>> age = Column("p.age")
    >>> disjoint(Call("lt", (age, Literal(18))), Call("ge", (age, Literal(18))))
    True
    >>> disjoint(Call("le", (age, Literal(18))), Call("ge", (age, Literal(18))))
    False
    """
    rules = list(_rules(other))
    return any(mine == theirs and set_.apart(allowed) for mine, set_ in _rules(one) for theirs, allowed in rules)


def _rules(condition: Expression) -> Iterator[tuple[Expression, Allowed]]:
    """Returns what the condition allows, for each expression that one of its AND-ed parts restricts."""
    if not isinstance(condition, Call):
        yield condition, Allowed(frozenset((True,)))  # a bare column is a condition
        return
    name, arguments = condition.name, condition.arguments
    if name == "and":
        for part in arguments:
            yield from _rules(part)
    elif name == "not":
        yield from _negated(arguments[0])
    elif name == "is_null":
        yield arguments[0], Allowed(null=True)
    elif name == "in_list":
        values = [value for value in map(_comparable, arguments[1:]) if value is not None]
        if len(values) == len(arguments) - 1:
            yield arguments[0], Allowed(frozenset(values))
    elif name in _SWAPPED:
        yield from _compared(name, *arguments)


def _negated(inner: Expression) -> Iterator[tuple[Expression, Allowed]]:
    if not isinstance(inner, Call):
        yield inner, Allowed(frozenset((False,)))
    elif inner.name == "is_null":
        yield inner.arguments[0], Allowed()


def _compared(name: str, left: Expression, right: Expression) -> Iterator[tuple[Expression, Allowed]]:
    if isinstance(left, Literal):
        name, left, right = _SWAPPED[name], right, left
    value = _comparable(right)
    if isinstance(left, Literal) or value is None:
        return
    if name == "eq":
        yield left, Allowed(frozenset((value,)))
    elif name in ("lt", "le"):
        yield left, Allowed(high=value, open_high=name == "lt")
    else:
        yield left, Allowed(low=value, open_low=name == "gt")


def _comparable(constant: Expression) -> Value:
    """Returns a constant as engines compare it, numbers as the nearest double; None if it is none, or beyond exact doubles."""
    value = constant.value if isinstance(constant, Literal) else None
    if isinstance(value, bool) or not isinstance(value, (int, Fraction)):
        return value
    exact = Fraction(value)
    return Fraction(float(exact)) if abs(exact) < _EXACT else None


def _one_kind(*values: Value) -> bool:
    """Whether Python compares these values as SQL does: all numbers, all texts, all dates or all timestamps."""
    kinds = {int if type(value) is Fraction else type(value) for value in values}
    return len(kinds) == 1 and kinds <= {bool, int, str, datetime.date, datetime.datetime}
