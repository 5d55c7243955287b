"""WHERE: plain conditions filter, IN (SELECT ...) and EXISTS (SELECT ...) become semi-joins.

A subquery may name columns of the row it is read for (the outer row) in one way: by an equality of its own in its WHERE.
Whether such an equality keeps people apart is judged in legality.py.
"""

from __future__ import annotations

from sqlglot import exp

from dither.query.names import Scope, Source, candidates, only, place, refuse
from dither.query.nodes import Call, Column, Expression, Filter, Relation, Semi
from dither.query.sql_aggregates import has_aggregate
from dither.query.sql_expressions import expression
from dither.query.sql_joins import Pair, conjuncts, joined_tables
from dither.query.sql_scalars import Inner, with_scalars
from dither.query.sql_tables import Context, with_ctes

SUBQUERY = "subquery"


def inner(node: exp.Select, outer: Scope, context: Context) -> Inner:
    """WITH, FROM, JOIN and WHERE of a subquery, and the equalities between its rows and the outer row."""
    return kept(node, outer, with_ctes(node, context))


def kept(node: exp.Select, outer: Scope, context: Context) -> Inner:
    """FROM, JOIN and WHERE: filters first, then semi-joins."""
    source = joined_tables(node, context)
    scope = Scope(context.text, source.fields, "in WHERE", outer.fields)
    clause = node.args.get("where")
    if clause is None:
        return Inner(source, scope, (), context)
    only(context.scope, clause, "this", "WHERE")
    plain, nested = _split(clause.this)
    pairs: list[Pair] = []
    conditions: list[exp.Expr] = []
    for part in plain:
        pair = _correlation(part, outer, scope)
        if pair is None:
            conditions.append(part)
        else:
            pairs.append(pair)
    compared = [node.this for node, _ in map(_bare, nested) if isinstance(node, exp.In)]
    relation, filled = with_scalars(source, [*conditions, *compared], scope, context, inner)
    relation = filtered(relation, [expression(part, filled) for part in conditions])
    for part in nested:
        relation = _semi(relation, part, filled, context)
    return Inner(Source(relation, source.fields), scope, tuple(pairs), context)


def filtered(relation: Relation, conditions: list[Expression]) -> Relation:
    """One filter by all of the conditions."""
    if not conditions:
        return relation
    whole = conditions[0]
    for condition in conditions[1:]:
        whole = Call("and", (whole, condition), span=_around(whole, condition))
    return Filter(relation, whole)


def _around(left: Expression, right: Expression) -> tuple[int, int] | None:
    return (left.span[0], right.span[1]) if left.span and right.span else None


def _split(node: exp.Expr) -> tuple[list[exp.Expr], list[exp.Expr]]:
    parts = conjuncts(node)
    nested = [part for part in parts if _bare(part)[0] is not None]
    return [part for part in parts if not any(part is other for other in nested)], nested


def _bare(node: exp.Expr) -> tuple[exp.Expr | None, bool]:
    """The IN or EXISTS under NOT and parentheses, and whether it is negated."""
    negated = False
    while isinstance(node, (exp.Not, exp.Paren)):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    nested = isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None)
    return (node if nested else None), negated


def _semi(relation: Relation, part: exp.Expr, scope: Scope, context: Context) -> Relation:
    node, negated = _bare(part)
    if isinstance(node, exp.Exists):
        only(scope, node, "this", "EXISTS")
        return _exists(relation, node, negated, scope, context)
    if not isinstance(node, exp.In):
        raise refuse(scope, part, "This condition cannot be read.", "write it with AND, IN and EXISTS.")
    only(scope, node, "this query", "IN")
    other, pairs, item = _listed(node, scope, context)
    pair, span = (expression(node.this, scope), item), place(scope.text, node)
    if negated:
        return Semi(relation, other, pairs, True, pair, span=span)
    return Semi(relation, other, (pair, *pairs), False, span=span)


def _listed(node: exp.In, scope: Scope, context: Context) -> tuple[Relation, tuple[Pair, ...], Expression]:
    """The rows of the subquery of IN, what equates them with the outer row, and the one value each of them lists."""
    query = node.args["query"]
    select = query.this if isinstance(query, exp.Subquery) and not query.args.get("with_") else query
    if isinstance(select, exp.Select) and select.args.get("distinct"):
        raise refuse(scope, query, "DISTINCT is not needed in the subquery of IN.", "leave DISTINCT out.")
    if isinstance(select, exp.Select) and _plain(select):
        found = inner(select, scope, context)
        item = select.expressions[0].unalias()
        relation, filled = with_scalars(found.source, [item], found.scope, found.context, inner)
        return relation, found.pairs, expression(item, filled.at("in SELECT"))
    other = context.subquery(query, context, SUBQUERY)
    if len(other.fields) != 1:
        raise refuse(scope, node, "The subquery of IN must have just one column.", "select one column.")
    return other.relation, (), Column(other.fields[0].name)


def _plain(select: exp.Select) -> bool:
    """One expression of rows: no star, no aggregate, no clause that stands for more."""
    items = select.expressions
    clauses = {key for key, value in select.args.items() if value} - {"expressions", "from_", "joins", "where", "with_"}
    return len(items) == 1 and not clauses and items[0].find(exp.Star) is None and not has_aggregate(items[0])


def _exists(relation: Relation, node: exp.Expr, negated: bool, scope: Scope, context: Context) -> Relation:
    select = node.this.this if isinstance(node.this, exp.Subquery) else node.this
    if not isinstance(select, exp.Select):
        raise refuse(scope, node, "EXISTS needs a plain SELECT.", "write EXISTS (SELECT 1 FROM ... WHERE ...).")
    only(scope, select, "expressions from_ joins where with_", "EXISTS")
    if any(has_aggregate(item) for item in select.expressions):
        raise refuse(scope, node, "EXISTS over an aggregate is always true.", "write EXISTS (SELECT 1 FROM ... WHERE ...).")
    found = inner(select, scope, context)
    if not found.pairs:
        raise refuse(
            scope,
            node,
            "EXISTS must equate a column of its subquery with a column of the outer question.",
            "add a condition such as v.person_id = p.person_id to its WHERE.",
        )
    span = place(scope.text, node) or place(scope.text, select)
    return Semi(relation, found.source.relation, found.pairs, negated, span=span)


def _correlation(part: exp.Expr, outer: Scope, inside: Scope) -> Pair | None:
    """(outer expression, inner expression) if the condition equates the two; names belong to the nearest FROM that has them."""
    if not isinstance(part, exp.EQ):
        return None
    for a, b in ((part.this, part.expression), (part.expression, part.this)):
        names = [each for each in a.find_all(exp.Column) if not isinstance(each.this, exp.Star)]
        if names and not any(candidates(each, inside) for each in names) and all(candidates(each, outer) for each in names):
            return expression(a, outer), expression(b, inside)
    return None
