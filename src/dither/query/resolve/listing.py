"""Checks questions that only ask which groups there are: SELECT DISTINCT ward FROM visits, or GROUP BY without an aggregate.

They list the values that the catalog declares, or those of public tables. No private row is read, so they are free. What only
rows could decide is refused: undeclared values, and conditions on anything but the listed columns themselves.

    decided       WHERE ward IN ('a', 'b')      each value of ward meets it or does not
    not decided   WHERE age >= 65               which wards have such people is in their rows
"""

from __future__ import annotations

from collections.abc import Iterator

from dither.catalog.values import Catalog
from dither.errors import QueryError
from dither.query.functions.base import Facts
from dither.query.functions.registry import columns, evaluator
from dither.query.nodes import Call, Expression, Filter, Join, Named, PerUnit, Query, Relation, Semi, sources
from dither.query.resolve.aggregates import short
from dither.query.resolve.narrowing import made_of, possible, traced
from dither.query.resolve.shapes import Shape


def listed(query: Query, source: Shape, catalog: Catalog) -> dict[Expression, Facts]:
    """Returns the facts of each listed key, with its public values; refuses what only rows could decide."""
    _check_relation(query, source)
    found = {key.expression: possible(key.expression, source) for key in query.keys}
    for key in query.keys:
        if found[key.expression].values is None:
            raise QueryError(
                f"The values of {_name(key)} are not declared, so a list of them would show rows.",
                span=key.expression.span,
                fix=f"{_instead(query)}, or declare their `values` in the catalog.",
            )
    used = _check_conditions(query, source)
    _check_combinations(query, source, used, catalog)
    return found


def _check_relation(query: Query, source: Shape) -> None:
    """Refuses subqueries that only rows decide, and conditions that are not about columns of tables."""
    nodes = list(_walk(query.source))
    for node in nodes:
        if isinstance(node, (Semi, PerUnit)) or (isinstance(node, Join) and node.scalar is not None):
            raise _undecided(query, node.span)
    filters = [node for node in nodes if isinstance(node, Filter)]
    if len(filters) != len(source.conditions):
        raise _undecided(query, filters[0].condition.span)


def _walk(node: Relation) -> Iterator[Relation]:
    yield node
    for each in sources(node):
        yield from _walk(each)


def _check_conditions(query: Query, source: Shape) -> list[frozenset[str]]:
    """Refuses conditions on anything but one column that is listed. Returns the leaves of each key."""
    used = []
    for key in query.keys:
        shape = traced(source, columns(key.expression))
        expression = made_of(key.expression, shape.columns)
        used.append(frozenset[str]() if expression is None else frozenset(columns(expression)))
    for part in (part for condition in source.conditions for part in _parts(condition)):
        names = columns(part)
        decided = len(names) == 1 and any(names <= each for each in used)
        if not decided and (names or evaluator(part)({}) is not True):
            raise _undecided(query, part.span or _first_condition(query.source))
    return used


def _check_combinations(query: Query, source: Shape, used: list[frozenset[str]], catalog: Catalog) -> None:
    """Refuses keys whose values depend on each other: made of one column, or columns of one public table."""
    origins = [source.columns[name].origin for key in query.keys for name in columns(key.expression)]
    public = [origin[0] for origin in origins if origin is not None and catalog.tables[origin[0]].public]
    if sum(map(len, used)) == len(frozenset[str]().union(*used)) and len(set(public)) == len(public):
        return
    raise QueryError(
        "Not every combination of these values exists.",
        span=query.keys[-1].expression.span,
        fix=f"list them one by one, or ask about a public table alone; or {_instead(query)}.",
    )


def _parts(condition: Expression) -> Iterator[Expression]:
    if isinstance(condition, Call) and condition.name == "and":
        for argument in condition.arguments:
            yield from _parts(argument)
    else:
        yield condition


def _first_condition(node: Relation) -> tuple[int, int] | None:
    return next((each.condition.span for each in _walk(node) if isinstance(each, Filter)), None)


def _undecided(query: Query, span: tuple[int, int] | None) -> QueryError:
    names = ", ".join(_name(key) for key in query.keys)
    return QueryError(
        f"Which values of {names} meet this condition is in the rows of people, and a list without a price reads none.",
        span=span,
        fix=f"leave the condition out, or {_instead(query)}.",
    )


def _name(key: Named) -> str:
    return short(key.expression)


def _instead(query: Query) -> str:
    """Returns the private form, which has a price."""
    keys = ", ".join(_name(key) for key in query.keys)
    form = query.instead or f"SELECT {keys}, COUNT(*) AS n FROM ... GROUP BY {keys}"
    return f"count them, at a price: {form}"
