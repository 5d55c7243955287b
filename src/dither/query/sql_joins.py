"""JOIN ... ON and USING: equalities become pairs, other conditions filters; of outer joins only what filters one side."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dither.query.names import Field, Scope, Source, candidates, matching, only, place, refuse, spelled
from dither.query.nodes import Column, Expression, Filter, Join
from dither.query.sql_expressions import expression
from dither.query.sql_scalars import with_values
from dither.query.sql_tables import Context, Pair, named_table
from dither.text import did_you_mean, folded


def joined_tables(node: exp.Select, context: Context) -> Source:
    """FROM and JOIN of one SELECT."""
    clause = node.args.get("from_")
    if clause is None:
        raise refuse(context.scope, node, "There is no FROM, so nothing is asked of a table.", "write SELECT ... FROM a table.")
    only(context.scope, clause, "this", "FROM")
    source = named_table(clause.this, context)
    for each in node.args.get("joins") or []:
        source = _join(source, each, context)
    return source


def _join(left: Source, node: exp.Expr, context: Context) -> Source:
    """One JOIN of FROM; RIGHT JOIN is LEFT JOIN with the sides changed over."""
    scope = context.scope
    only(scope, node, "this on using side kind", "JOIN")
    side, kind = str(node.args.get("side") or "").upper(), str(node.args.get("kind") or "").upper()
    if side not in ("", "LEFT", "RIGHT") or kind not in ("", "INNER", "OUTER"):
        raise refuse(scope, node, f"{side or kind} JOIN is not supported.", "write JOIN, LEFT JOIN or RIGHT JOIN.")
    if kind == "OUTER" and not side:
        raise refuse(scope, node.this, "An outer join keeps the left or the right side.", "write LEFT JOIN or RIGHT JOIN.")
    right = named_table(node.this, context)
    if {folded(each.alias) for each in left.fields} & {folded(each.alias) for each in right.fields}:
        raise refuse(scope, node.this, "Two tables of FROM have the same name.", "give one an alias: JOIN visits AS v.")
    if node.args.get("using"):
        if node.args.get("on") is not None:
            raise refuse(scope, node, "A join has ON or USING, not both.", "leave one out.")
        return _using(left, right, node, side, context)
    if node.args.get("on") is None:
        raise refuse(scope, node.this, "This pairs every row with every row.", "write JOIN ... ON a.x = b.x.")
    return _on(left, right, node, side, context)


def _using(left: Source, right: Source, node: exp.Expr, side: str, context: Context) -> Source:
    pairs: list[Pair] = []
    hidden: set[str] = set()
    for each in node.args["using"]:
        name, quoted = spelled(context.scope, each)
        found = [matching(name, quoted, _visible(part), lambda item: item.column) for part in (left, right)]
        if len(found[0]) != 1 or len(found[1]) != 1:
            both = {item.column for item in _visible(left)} & {item.column for item in _visible(right)}
            fix = f"{did_you_mean(name, both - {name})}write ON with both columns."
            raise refuse(context.scope, each, f"USING needs {name} once on either side.", fix)
        span = place(context.text, each)
        pairs.append((Column(found[0][0].name, span=span), Column(found[1][0].name, span=span)))
        hidden.add(found[0][0].name if side == "RIGHT" else found[1][0].name)
    joined = _joined(left, right, tuple(pairs), side, place(context.text, node))
    fields = tuple(replace(item, hidden=item.hidden or item.name in hidden) for item in joined.fields)
    return Source(joined.relation, fields)


def _visible(part: Source) -> list[Field]:
    return [item for item in part.fields if not item.hidden]


def _joined(left: Source, right: Source, pairs: tuple[Pair, ...], side: str, span: tuple[int, int] | None) -> Source:
    fields = left.fields + right.fields
    if side == "RIGHT":
        turned = tuple((b, a) for a, b in pairs)
        return Source(Join(right.relation, left.relation, turned, "left", span=span), fields)
    return Source(Join(left.relation, right.relation, pairs, "left" if side else "inner", span=span), fields)


def _on(left: Source, right: Source, node: exp.Expr, side: str, context: Context) -> Source:
    both = Scope(context.text, left.fields + right.fields, "in ON")
    pairs: list[Pair] = []
    rest: list[Expression] = []
    nested: list[exp.Expr] = []
    for part in conjuncts(node.args["on"]):
        if part.find(exp.Select) is not None:
            nested.append(_beside_inner(part, side, both))
            continue
        pair = equality(part, Scope(context.text, left.fields, "in ON"), Scope(context.text, right.fields, "in ON"), both)
        if pair is not None:
            pairs.append(pair)
            continue
        read = expression(part, both)
        sides = _sides(part, both, left)
        if sides == {"right"} and side in ("", "LEFT"):
            right = Source(Filter(right.relation, read), right.fields)
        elif sides == {"left"} and side in ("", "RIGHT"):
            left = Source(Filter(left.relation, read), left.fields)
        elif not side:
            rest.append(read)
        else:
            raise refuse(
                both,
                part,
                "An outer join may equate columns, or filter the side that may be missing.",
                "move it to WHERE.",
            )
    if not pairs:
        raise refuse(both, node.args["on"], "A join needs at least one equality between its two sides.", "write ON a.x = b.x.")
    joined = _joined(left, right, tuple(pairs), side, place(context.text, node.args["on"]))
    relation, filled = with_values(joined, nested, both, context)
    for condition in (*rest, *(expression(part, filled) for part in nested)):
        relation = Filter(relation, condition)
    return Source(relation, joined.fields)


def _beside_inner(part: exp.Expr, side: str, both: Scope) -> exp.Expr:
    """A condition with a subquery: it filters what an inner join finds."""
    if side:
        what = "A subquery cannot stand in ON of an outer join."
        raise refuse(
            both, part, what, "filter the side that may be missing: LEFT JOIN (SELECT ... FROM ... WHERE ...) v ON ..."
        )
    return part


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND joins, parentheses opened."""
    if isinstance(node, exp.Paren):
        return conjuncts(node.this)
    if isinstance(node, exp.And):
        return conjuncts(node.this) + conjuncts(node.expression)
    return [node]


def equality(node: exp.Expr, left: Scope, right: Scope, both: Scope) -> Pair | None:
    """(left expression, right expression) if the node equates one of each side."""
    if not isinstance(node, exp.EQ):
        return None
    for a, b in ((node.this, node.expression), (node.expression, node.this)):
        if _all_in(a, left, both) and _all_in(b, right, both):
            return expression(a, left), expression(b, right)
    return None


def _all_in(node: exp.Expr, scope: Scope, both: Scope) -> bool:
    columns = list(node.find_all(exp.Column))
    names = {field.name for field in scope.fields}
    found = [candidates(each, both) for each in columns if not isinstance(each.this, exp.Star)]
    return bool(columns) and all(len(fields) == 1 and fields[0].name in names for fields in found)


def _sides(node: exp.Expr, both: Scope, left: Source) -> set[str]:
    names = {field.name for field in left.fields}
    found = [candidates(each, both) for each in node.find_all(exp.Column) if not isinstance(each.this, exp.Star)]
    return {"left" if field.name in names else "right" for fields in found for field in fields}
