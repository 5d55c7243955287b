"""WHERE: plain conditions filter, IN (SELECT ...) and EXISTS (SELECT ...) become semi-joins."""

from __future__ import annotations

from sqlglot import exp

from dither.query.names import Scope, Source, candidates, only, place, refuse
from dither.query.nodes import Call, Column, Expression, Filter, Relation, Semi
from dither.query.sql_aggregates import has_aggregate
from dither.query.sql_expressions import expression
from dither.query.sql_joins import Pair, conjuncts, joined_tables
from dither.query.sql_scalars import with_scalars
from dither.query.sql_tables import Context, with_ctes

SUBQUERY = "subquery"


def keep(source: Source, clause: exp.Expr | None, context: Context) -> Source:
    """The source with the conditions of WHERE applied: filters first, then semi-joins."""
    if clause is None:
        return source
    only(context.scope, clause, "this", "WHERE")
    scope = Scope(context.text, source.fields, "in WHERE")
    plain, nested = _split(clause.this)
    relation, values = with_scalars(source, plain, context)
    relation = filtered(relation, [expression(part, scope, values) for part in plain])
    for part in nested:
        relation = _semi(relation, part, scope, context)
    return Source(relation, source.fields)


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
    if negated:
        raise refuse(
            scope,
            node,
            "NOT IN (SELECT ...) keeps nothing at all as soon as one NULL is in the subquery.",
            "write NOT EXISTS (SELECT 1 FROM ... WHERE inner column = outer column).",
        )
    value = expression(node.this, scope)
    _check_uncorrelated(node.args["query"], scope)
    other = context.subquery(node.args["query"], context, SUBQUERY)
    if len(other.fields) != 1:
        raise refuse(scope, node, "The subquery of IN must have just one column.", "select one column.")
    return Semi(relation, other.relation, ((value, Column(other.fields[0].name)),), False, span=place(scope.text, node))


def _check_uncorrelated(query: exp.Expr, scope: Scope) -> None:
    inner = query.this if isinstance(query, exp.Subquery) else query
    if isinstance(inner, exp.Select) and inner.args.get("distinct"):
        raise refuse(scope, query, "DISTINCT is not needed in the subquery of IN.", "leave DISTINCT out.")


def _exists(relation: Relation, node: exp.Expr, negated: bool, scope: Scope, context: Context) -> Relation:
    inner = node.this.this if isinstance(node.this, exp.Subquery) else node.this
    if not isinstance(inner, exp.Select):
        raise refuse(scope, node, "EXISTS needs a plain SELECT.", "write EXISTS (SELECT 1 FROM ... WHERE ...).")
    only(scope, inner, "expressions from_ joins where with_", "EXISTS")
    if any(has_aggregate(item) for item in inner.expressions):
        raise refuse(scope, node, "EXISTS over an aggregate is always true.", "write EXISTS (SELECT 1 FROM ... WHERE ...).")
    context = with_ctes(inner, context)
    source = joined_tables(inner, context)
    inside = Scope(context.text, source.fields, "in WHERE")
    clause = inner.args.get("where")
    plain, nested = _split(clause.this) if clause is not None else ([], [])
    pairs: list[Pair] = []
    conditions: list[Expression] = []
    for part in plain:
        pair = _correlation(part, scope, inside)
        if pair is not None:
            pairs.append(pair)
        else:
            conditions.append(expression(part, inside))
    other = filtered(source.relation, conditions)
    for part in nested:
        other = _semi(other, part, inside, context)
    if not pairs:
        raise refuse(
            scope,
            node,
            "EXISTS must equate a column of its subquery with a column of the outer question.",
            "add a condition such as v.person_id = p.person_id to its WHERE.",
        )
    return Semi(relation, other, tuple(pairs), negated, span=place(scope.text, node) or place(scope.text, inner))


def _correlation(part: exp.Expr, outer: Scope, inside: Scope) -> Pair | None:
    """(outer expression, inner expression) if the condition equates the two; names belong to the nearest FROM that has them."""
    if not isinstance(part, exp.EQ):
        return None
    for a, b in ((part.this, part.expression), (part.expression, part.this)):
        names = [each for each in a.find_all(exp.Column) if not isinstance(each.this, exp.Star)]
        if names and not any(candidates(each, inside) for each in names) and all(candidates(each, outer) for each in names):
            return expression(a, outer), expression(b, inside)
    return None
