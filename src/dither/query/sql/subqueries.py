"""WHERE: plain conditions filter, IN (SELECT ...) and EXISTS (SELECT ...) beside AND become semi-joins.

Inside other conditions IN and EXISTS stand for a value, as in SELECT: see sql_scalars.py.
A subquery may name columns of the row it is read for (the outer row) in one way: by an equality of its own in its WHERE.
Whether such an equality keeps people apart is judged in legality.py.

SELECT and UNION ALL below the private aggregate to relations. Whether they mix people is judged in legality.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from dither.catalog.values import Catalog
from dither.errors import QueryError
from dither.query.nodes import Call, Column, Compute, Expression, Filter, Named, PerUnit, Relation, Semi, Union, words_of
from dither.query.sql.aggregates import Grouping, has_aggregate
from dither.query.sql.expressions import expression
from dither.query.sql.joins import conjuncts, is_nested, joined_tables, partners, with_values
from dither.query.sql.names import Field, Scope, Source, candidates, matching, only, place, refuse, spelled
from dither.query.sql.tables import Context, Inner, Pair, check_below, with_ctes
from dither.text import folded


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
