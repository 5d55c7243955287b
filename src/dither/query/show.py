"""Nodes as text a person can read: one line for an expression, an indented tree for a relation.

Used by EXPLAIN and by the golden files; never parsed and never handed to an engine.
"""

from __future__ import annotations

import datetime
from fractions import Fraction

from dither.query.nodes import (
    Aggregate,
    Column,
    Compute,
    Expression,
    Filter,
    Join,
    Literal,
    Named,
    PerUnit,
    Query,
    Relation,
    Scan,
    Semi,
    Union,
    Value,
)


def show_expression(node: Expression) -> str:
    """
    >>> from dither.query.nodes import Call
    >>> show_expression(Call("ge", (Column("p.age"), Literal(18))))
    'ge(p.age, 18)'
    """
    if isinstance(node, Column):
        return node.name
    if isinstance(node, Literal):
        return show_value(node.value)
    return f"{node.name}({', '.join(show_expression(part) for part in node.arguments)})"


def show_value(value: Value) -> str:
    """A constant: texts in quotes, rationals as fractions, dates as ISO."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    return str(value)


def show_aggregate(node: Aggregate) -> str:
    """n = avg(p.age), m = quantile(p.age; 9/10), k = count(*) where p.active."""
    inner = "*" if node.argument is None else show_expression(node.argument)
    extra = "" if node.parameter is None else f"; {show_value(node.parameter)}"
    where = "" if node.where is None else f" where {show_expression(node.where)}"
    return f"{node.name} = {node.function}({inner}{extra}){where}"


def show_query(query: Query) -> str:
    """The whole question."""
    lines = ["output " + _named(query.outputs)]
    if query.having is not None:
        lines.append("having " + show_expression(query.having))
    if query.order:
        lines.append("order " + ", ".join(show_expression(o.expression) + " desc" * o.descending for o in query.order))
    if query.limit is not None:
        lines.append(f"limit {query.limit}")
    if query.offset:
        lines.append(f"offset {query.offset}")
    lines.append("private " + ", ".join(show_aggregate(each) for each in query.aggregates))
    if query.keys:
        lines.append("by " + _named(query.keys))
    return "\n".join([*lines, *_lines(query.source)])


def show_relation(node: Relation) -> str:
    """A relation as an indented tree."""
    return "\n".join(_lines(node))


def _named(columns: tuple[Named, ...]) -> str:
    return ", ".join(f"{each.name} = {show_expression(each.expression)}" for each in columns)


def _lines(node: Relation) -> list[str]:
    if isinstance(node, Scan):
        return [f"scan {node.table} as {node.alias}"]
    if isinstance(node, Filter):
        return [f"filter {show_expression(node.condition)}", *_under(node.source)]
    if isinstance(node, Compute):
        return [f"compute {_named(node.columns)}", *_under(node.source)]
    if isinstance(node, PerUnit):
        inner = ", ".join(show_aggregate(each) for each in node.aggregates)
        return [f"per unit by [{_named(node.keys)}] {inner}".rstrip(), *_under(node.source)]
    if isinstance(node, Join):
        if node.scalar is not None:
            inner = ", ".join(show_aggregate(each) for each in node.scalar.aggregates)
            return [f"{node.scalar.alias}: {inner} on {_pairs(node.equal)}", *_under(node.left), *_under(node.right)]
        return [f"{node.kind} join on {_pairs(node.equal)}", *_under(node.left), *_under(node.right)]
    if isinstance(node, Semi):
        marks = f"{node.mark} = " if node.mark is not None else ""
        head = f"{marks}{'without' if node.negated else 'with'} partner on {_pairs(node.equal)}"
        if node.listed is not None:
            x, y = map(show_expression, node.listed)
            word = "not in" if node.negated else "in"
            head = f"{marks}{x} {word} {y}" + (f" of partners on {_pairs(node.equal)}" if node.equal else "")
        return [head, *_under(node.source), *_under(node.other)]
    return ["union", *(line for part in _parts(node) for line in _under(part))]


def _parts(node: Union) -> tuple[Relation, ...]:
    return node.parts


def _pairs(pairs: tuple[tuple[Expression, Expression], ...]) -> str:
    return " and ".join(f"{show_expression(left)} = {show_expression(right)}" for left, right in pairs)


def _under(node: Relation) -> list[str]:
    return ["  " + line for line in _lines(node)]
