"""WHERE: plain conditions filter, IN (SELECT ...) and EXISTS (SELECT ...) beside AND become semi-joins.

Inside other conditions IN and EXISTS stand for a value, as in SELECT: see sql_scalars.py.
A subquery may name columns of the row it is read for (the outer row) in one way: by an equality of its own in its WHERE.
Whether such an equality keeps people apart is judged in legality.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dither.query.names import Scope, Source, candidates, only, refuse
from dither.query.nodes import Call, Expression, Filter, Relation, Semi
from dither.query.sql_expressions import expression
from dither.query.sql_joins import conjuncts, joined_tables
from dither.query.sql_partners import is_nested, partners
from dither.query.sql_scalars import with_values
from dither.query.sql_tables import Context, Inner, Pair, with_ctes


def inner(node: exp.Select, items: Sequence[exp.Expr], outer: Scope, context: Context) -> Inner:
    """WITH, FROM, JOIN and WHERE of a subquery, what is needed to read these items of its SELECT, and what equates its rows
    with the outer row.
    """
    context = with_ctes(node, context)
    found = kept(node, outer, context)
    relation, scope = with_values(found.source, items, found.scope, context)
    return Inner(Source(relation, found.source.fields), scope, found.pairs)


def kept(node: exp.Select, outer: Scope, context: Context) -> Inner:
    """FROM, JOIN and WHERE: filters first, then semi-joins."""
    source = joined_tables(node, context)
    scope = Scope(context.text, source.fields, "in WHERE", outer.fields)
    clause = node.args.get("where")
    if clause is None:
        return Inner(source, scope, ())
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
    relation, filled = with_values(source, [*conditions, *compared], scope, context)
    relation = filtered(relation, [expression(part, filled) for part in conditions])
    for part in nested:
        relation = _semi(relation, part, filled, context)
    return Inner(Source(relation, source.fields), scope, tuple(pairs))


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
    return (node if is_nested(node) else None), negated


def _semi(relation: Relation, part: exp.Expr, scope: Scope, context: Context) -> Relation:
    node, negated = _bare(part)
    if node is None:
        raise refuse(scope, part, "This condition cannot be read.", "write it with AND, IN and EXISTS.")
    found = partners(node, scope, context)
    if found.listed is not None and not negated:
        return Semi(relation, found.rows, (found.listed, *found.pairs), False, span=found.span)
    if found.listed is None and not found.pairs:  # the same for all rows: as a value it is looked up once, and not for each
        mark = found.mark(context)
        marked = Semi(relation, found.rows, (), False, mark=mark.name, span=found.span)
        return Filter(marked, Call("not", (mark,), span=found.span) if negated else mark)
    return Semi(relation, found.rows, found.pairs, negated, found.listed, span=found.span)


def _correlation(part: exp.Expr, outer: Scope, inside: Scope) -> Pair | None:
    """(outer expression, inner expression) if the condition equates the two; names belong to the nearest FROM that has them."""
    if not isinstance(part, exp.EQ):
        return None
    for a, b in ((part.this, part.expression), (part.expression, part.this)):
        names = [each for each in a.find_all(exp.Column) if not isinstance(each.this, exp.Star)]
        if names and not any(candidates(each, inside) for each in names) and all(candidates(each, outer) for each in names):
            return expression(a, outer), expression(b, inside)
    return None
