"""Whether a value tells whose row it is, carried along from the tables' columns through everything computed from them.

    NONE      the value has nothing to do with the unit, as far as the catalog says
    CHOSEN    the unit decides which of several values it is: person_id > 5, CASE WHEN person_id % 2 = 0 THEN 'a' ELSE 'b' END
    COMPUTED  the value is the unit or made from it: person_id * 1, CAST(person_id AS TEXT), MAX(person_id)

A condition is true or false whatever it compares, so it chooses. What is known to equal a value depends on the unit as that
value does. In a table the unit column tells whose row it is, and so does a column that another table's unit refers to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum

from dither.query.infer import Facts, known
from dither.query.nodes import Call, Column, Expression

Levels = Mapping[str, "Dependence"]  # of the columns of a relation


class Dependence(IntEnum):
    """How a value depends on the unit; of two the larger one counts."""

    NONE = 0
    CHOSEN = 1
    COMPUTED = 2


def dependence(expression: Expression, levels: Levels, scope: Mapping[str, Facts]) -> Dependence:
    """How an expression over these columns depends on the unit."""
    if isinstance(expression, Column):
        return levels.get(expression.name, Dependence.NONE)
    if not isinstance(expression, Call):
        return Dependence.NONE
    found = max((dependence(argument, levels, scope) for argument in expression.arguments), default=Dependence.NONE)
    computed = found == Dependence.COMPUTED
    return Dependence.CHOSEN if computed and known(expression, scope).kind == "bool" else found


def equalities(condition: Expression) -> Iterator[tuple[Expression, Expression]]:
    """What is equal in every row for which the condition holds."""
    if isinstance(condition, Call) and condition.name == "and":
        for part in condition.arguments:
            yield from equalities(part)
    elif isinstance(condition, Call) and condition.name == "eq":
        yield condition.arguments[0], condition.arguments[1]
