"""SELECT and UNION ALL below the private aggregate to relations. Whether they mix people is judged in legality.py."""

from __future__ import annotations

import re

from sqlglot import exp

from dither.errors import QueryError
from dither.query.catalog import Catalog
from dither.query.names import Field, Scope, Source, matching, only, place, refuse, spelled
from dither.query.nodes import Column, Compute, Expression, Filter, Named, PerUnit, Relation, Union, words_of
from dither.query.sql_aggregates import Grouping, has_aggregate
from dither.query.sql_conditions import inner, kept
from dither.query.sql_expressions import expression
from dither.query.sql_scalars import with_values
from dither.query.sql_tables import Context, check_below, with_ctes
from dither.text import folded


def begun(text: str, catalog: Catalog) -> Context:
    """What a whole question is read in."""
    return Context(text, catalog, select, inner)


def select(node: exp.Expr, context: Context, alias: str) -> Source:
    """A SELECT or UNION ALL below the private aggregate, its columns named "alias.column"."""
    if isinstance(node, exp.Subquery):
        only(context.scope, node, "this with_", "A subquery")
        return select(node.this, with_ctes(node, context), alias)
    if isinstance(node, exp.Union):
        return _union(node, context, alias)
    if not isinstance(node, exp.Select):
        raise refuse(context.scope, node, "Only SELECT and UNION ALL can stand here.", "write a SELECT.")
    check_below(node, context)
    context = with_ctes(node, context)
    source, scope = rows(node, context)
    if node.args.get("group") or node.args.get("having") or any(has_aggregate(item) for item in node.expressions):
        return _per_unit(node, source, scope, alias)
    outputs = _outputs(node, scope)
    named = tuple(Named(f"{alias}.{name}", value) for name, value in outputs)
    fields = tuple(Field(alias, name, f"{alias}.{name}") for name, _ in outputs)
    if node.args.get("distinct"):
        only(scope, node.args["distinct"], "", "DISTINCT")
        return Source(PerUnit(source.relation, named, (), span=keyword(context.text, "DISTINCT")), fields)
    return Source(Compute(source.relation, named), fields)


def _union(node: exp.Union, context: Context, alias: str) -> Source:
    only(context.scope, node, "this expression distinct with_", "UNION")
    if type(node) is not exp.Union or node.args.get("distinct"):
        raise refuse(
            context.scope,
            node,
            "UNION drops rows of different people that happen to be equal.",
            "write UNION ALL.",
        )
    context = with_ctes(node, context)
    parts = [select(part, context, alias) for part in (node.this, node.expression)]
    if len({len(part.fields) for part in parts}) != 1:
        raise refuse(context.scope, node, "The parts of UNION ALL differ in how many columns they have.", "make them alike.")
    first, second = parts
    if [each.name for each in first.fields] != [each.name for each in second.fields]:
        pairs = zip(first.fields, second.fields, strict=True)
        second = Source(Compute(second.relation, tuple(Named(a.name, Column(b.name)) for a, b in pairs)), first.fields)
    flat = first.relation.parts if isinstance(first.relation, Union) else (first.relation,)
    return Source(Union((*flat, second.relation)), first.fields)


def _outputs(node: exp.Select, scope: Scope) -> list[tuple[str, Expression]]:
    found: list[tuple[str, Expression]] = []
    for item in node.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            found += [(each.column, Column(each.name, span=place(scope.text, item))) for each in starred(item, scope)]
            continue
        name, value = output_name(item, scope)
        read = expression(value, scope)
        found.append((name or _plain_name(read) or f"column_{len(found) + 1}", read))
    names = [folded(name) for name, _ in found]
    for name, _ in found:
        if names.count(folded(name)) > 1:
            raise refuse(scope, node, f"Two columns of this subquery are called {name}.", "rename one with AS.")
    return found


def starred(item: exp.Expr, scope: Scope) -> list[Field]:
    """The fields that * or t.* stands for."""
    star = item if isinstance(item, exp.Star) else item.this
    only(scope, star, "", "*")
    fields = [each for each in scope.fields if not each.hidden]
    if isinstance(item, exp.Column):
        alias, quoted = spelled(scope, item.args.get("table"))
        fields = matching(alias, quoted, scope.fields, lambda each: each.alias)
        if not fields:
            raise refuse(scope, item, f"There is no table {alias} here.", "name a table of FROM.")
    return fields


def output_name(item: exp.Expr, scope: Scope) -> tuple[str, exp.Expr]:
    """The alias an output was given ("" if none) and its expression."""
    if isinstance(item, exp.Alias):
        only(scope, item, "this alias", "AS")
        return spelled(scope, item.args["alias"])[0], item.this
    return "", item


def _plain_name(value: Expression) -> str:
    return value.name.split(".", 1)[-1] if isinstance(value, Column) else ""


def _per_unit(node: exp.Select, source: Source, scope: Scope, alias: str) -> Source:
    """A subquery with GROUP BY: legal only if it groups by the unit, which legality.py decides."""
    if node.args.get("distinct"):
        raise refuse(scope, node, "DISTINCT together with GROUP BY is not supported.", "leave DISTINCT out.")
    grouping = group(node, scope, per_unit=True)
    outputs: list[Named] = []
    for item in node.expressions:
        name, value = output_name(item, scope)
        read = grouping.above(value, "in SELECT", False, name)
        outputs.append(Named(name or (read.name if isinstance(read, Column) else f"column_{len(outputs) + 1}"), read))
    grouping.outputs = outputs
    names = [folded(each.name) for each in outputs]
    if len(set(names)) < len(names):
        raise refuse(scope, node, "Two columns of this subquery have the same name.", "rename one with AS.")
    having = node.args.get("having")
    kept = None
    if having is not None:
        only(scope, having, "this", "HAVING")
        kept = grouping.above(having.this, "in HAVING", True)
    clause = node.args.get("group")
    span = place(scope.text, clause) if clause is not None else place(scope.text, node)
    relation: Relation = PerUnit(source.relation, tuple(grouping.keys), tuple(grouping.aggregates), span=span)
    if kept is not None:
        relation = Filter(relation, kept)
    fields = tuple(Field(alias, each.name, f"{alias}.{each.name}") for each in outputs)
    return Source(Compute(relation, tuple(Named(f"{alias}.{each.name}", each.expression) for each in outputs)), fields)


def group(node: exp.Select, scope: Scope, per_unit: bool) -> Grouping:
    """The keys of GROUP BY: columns, expressions, positions in SELECT, or names given in SELECT."""
    grouping = Grouping(scope, per_unit)
    clause = node.args.get("group")
    if clause is None:
        return grouping
    if clause.args.get("all") is not None:
        found = [each.span() for each in re.finditer(r"(?i)\bGROUP\s+BY\s+(ALL|DISTINCT)\b", scope.text)]
        word = "ALL" if clause.args["all"] else "DISTINCT"
        what, fix = f"GROUP BY {word} does not say what to group by.", "name the columns: GROUP BY a, b."
        raise QueryError(what, text=scope.text, span=found[0] if len(found) == 1 else None, fix=fix)
    only(scope, clause, "expressions", "GROUP BY")
    for item in clause.expressions:
        if isinstance(item, exp.Tuple):
            what = "GROUP BY takes columns, and this is a list in parentheses."
            raise refuse(scope, item, what, "leave the parentheses out.")
        name, value = _key(item, node, scope)
        read = expression(value, scope.at("in GROUP BY"))
        given = next((alias for alias, each in _aliases(node, scope) if each == value and alias), "")
        natural = "" if words_of(read) else _plain_name(read)
        other = words_of(read) or f"key_{len(grouping.keys) + 1}"
        grouping.add_key(natural or name or given or other, read)
    return grouping


def _key(item: exp.Expr, node: exp.Select, scope: Scope) -> tuple[str, exp.Expr]:
    if isinstance(item, exp.Literal):
        position = str(item.this)
        if item.args.get("is_string") or not position.isdigit() or not 1 <= int(position[:9]) <= len(node.expressions):
            raise refuse(scope, item, "GROUP BY a constant needs a position of SELECT.", "group by a column.")
        chosen = node.expressions[int(position) - 1]
        if has_aggregate(chosen) or isinstance(chosen, exp.Star):
            raise refuse(scope, item, "This position of SELECT cannot be grouped by.", "group by a column.")
        return output_name(chosen, scope)
    if isinstance(item, exp.Column) and item.args.get("table") is None and not isinstance(item.this, exp.Star):
        name, quoted = spelled(scope, item.this)
        if not matching(name, quoted, scope.fields, lambda each: each.column):
            found = matching(name, quoted, _aliases(node, scope), lambda pair: pair[0])
            if len(found) == 1:
                return found[0]
    return "", item


def _aliases(node: exp.Select, scope: Scope) -> list[tuple[str, exp.Expr]]:
    return [output_name(item, scope) for item in node.expressions if isinstance(item, exp.Alias)]


def rows(node: exp.Select, context: Context) -> tuple[Source, Scope]:
    """FROM, JOIN and WHERE of one SELECT, and what names and subqueries mean in its other clauses."""
    found = kept(node, context.scope, context)
    clauses = [node.args.get(clause) for clause in ("group", "having", "order")]
    parts = [*node.expressions, *(clause for clause in clauses if clause is not None)]
    relation, scope = with_values(found.source, parts, found.scope.at("in SELECT"), context)
    return Source(relation, found.source.fields), scope


def keyword(text: str, word: str) -> tuple[int, int] | None:
    """Where a keyword that left no trace in the tree was written, if it was written just once."""
    upper = text.upper()
    return (upper.index(word), upper.index(word) + len(word)) if upper.count(word) == 1 else None
