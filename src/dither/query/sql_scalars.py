"""Scalar subqueries in WHERE: one aggregate over a public table, such as age > (SELECT AVG(limit) FROM regions).

The public table is aggregated to one row and joined to every row. Where it is empty, the row is missing: then its aggregates
are NULL and its counts 0, as SQL has it. An aggregate over private rows is refused in resolve_per_unit.py: it would be
an exact number that depends on other people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from dither.query.names import Source, only, place, refuse
from dither.query.nodes import Call, Column, Compute, Expression, Join, Literal, Named, PerUnit, Relation
from dither.query.sql_aggregates import has_aggregate
from dither.query.sql_expressions import Replace
from dither.query.sql_tables import Context

_ONE = "#one"  # no name in a question begins so; resolve_per_unit.py knows a subquery that stands for a value by it


def with_scalars(source: Source, conditions: list[exp.Expr], context: Context) -> tuple[Relation, Replace | None]:
    """The source's relation with the subqueries of the conditions joined to it, and what each of them stands for."""
    found = [node for condition in conditions for node in _subqueries(condition)]
    if not found:
        return source.relation, None
    values: dict[int, Expression] = {}
    own = f"{_ONE} {len(context.scans)}"
    named = (*(Named(field.name, Column(field.name)) for field in source.fields), Named(own, Literal(1)))
    relation: Relation = Compute(source.relation, named)
    for node in found:
        relation, values[id(node)] = _joined(relation, own, node, context)
    return relation, lambda node: values.get(id(node))


def _subqueries(node: exp.Expr) -> list[exp.Subquery]:
    """Those that stand for a value: not those of IN and EXISTS."""
    if isinstance(node, exp.Subquery):
        return [node]
    if isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None):
        return []
    return [found for part in node.iter_expressions() for found in _subqueries(part)]


def _joined(relation: Relation, own: str, node: exp.Subquery, context: Context) -> tuple[Relation, Expression]:
    inner, span = node.this, place(context.text, node)
    plain = isinstance(inner, exp.Select) and len(inner.expressions) == 1 and has_aggregate(inner.expressions[0])
    if not plain or any(inner.args.get(clause) for clause in ("group", "having", "distinct")):
        raise refuse(
            context.scope,
            node,
            "A subquery that stands for a value is one aggregate, without GROUP BY.",
            "write (SELECT MAX(x) FROM a public table), or join it.",
        )
    only(context.scope, node, "this", "A subquery")
    source = context.subquery(node, context, "#scalar").relation
    if not isinstance(source, Compute) or not isinstance(source.source, PerUnit):
        raise TypeError("an aggregating subquery is a computation over an aggregation")
    prefix = f"#scalar {len(context.scans)} "  # each subquery names a table, so no two have the same number
    one_row = replace(source.source, keys=(Named(_ONE, Literal(1)),), span=span)
    names = {each.name: f"{prefix}{each.name}" for each in one_row.aggregates}
    columns = [Named(f"{prefix}{_ONE}", Column(_ONE)), *(Named(new, Column(old)) for old, new in names.items())]
    joined = Join(relation, Compute(one_row, tuple(columns)), ((Column(own), Column(f"{prefix}{_ONE}")),), "left", span=span)
    counts = frozenset(each.name for each in one_row.aggregates if each.function == "count")
    return joined, _over(source.columns[0].expression, names, counts)


def _over(value: Expression, names: Mapping[str, str], counts: frozenset[str]) -> Expression:
    """The subquery's output over the joined columns; a count that is missing is 0."""
    if isinstance(value, Column):
        column = replace(value, name=names[value.name])
        return Call("coalesce", (column, Literal(0)), span=value.span) if value.name in counts else column
    if isinstance(value, Call):
        return replace(value, arguments=tuple(_over(argument, names, counts) for argument in value.arguments))
    return value
