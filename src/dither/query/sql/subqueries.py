"""Reads SELECT, WHERE and UNION ALL below the private aggregate into relations.

In WHERE, plain conditions filter; IN (SELECT ...) and EXISTS (SELECT ...) joined by AND become semi-joins, and inside
other conditions they are values: see joins.py. A subquery may use columns of the outer row only in an equality of its
own in its WHERE. resolve/joins.py decides whether a relation mixes people.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from dither.catalog.values import Catalog
from dither.errors import QueryError
from dither.query.nodes import (
    Call,
    Column,
    Compute,
    Expression,
    Filter,
    Named,
    PerUnit,
    Relation,
    Semi,
    Union,
    WithinUnit,
    words_of,
)
from dither.query.sql import commas
from dither.query.sql.aggregates import Grouping, has_aggregate
from dither.query.sql.expressions import expression
from dither.query.sql.gate import Narrow
from dither.query.sql.joins import conjuncts, is_nested, partners, with_values
from dither.query.sql.names import Field, Scope, Source, candidates, matching, name_of, only, place, refuse
from dither.query.sql.public import above_groups
from dither.query.sql.sets import expand, has_sets
from dither.query.sql.tables import Context, Inner, Pair, check_below, with_ctes
from dither.query.sql.within import read_windows
from dither.text import folded

_LONGEST_FORM = 200  # the most characters of a subquery in a fix


def inner(node: exp.Select, items: Sequence[exp.Expr], outer: Scope, context: Context) -> Inner:
    """Reads WITH, FROM, JOIN and WHERE of a subquery, and joins the subqueries of these items of its SELECT."""
    context = with_ctes(node, context)
    read = from_where(node, outer, context)
    relation, scope = with_values(read.source, items, read.scope, context)
    return Inner(Source(relation, read.source.fields), scope, read.pairs)


def from_where(node: exp.Select, outer: Scope, context: Context) -> Inner:
    """Reads FROM, JOIN and WHERE: joins first, then filters, then semi-joins."""
    clause = node.args.get("where")
    if clause is not None:
        only(context.scope, clause, "this", "WHERE")
    plain, nested = _split(clause.this) if clause is not None else ([], [])
    source, plain = commas.tables(node, plain, context)
    scope = Scope(context.text, source.fields, "in WHERE", outer.fields)
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
    relation = filter_by(relation, [expression(part, filled) for part in conditions])
    for part in nested:
        relation = _semi(relation, part, filled, context)
    return Inner(Source(relation, source.fields), scope, tuple(pairs))


def filter_by(relation: Relation, conditions: list[Expression]) -> Relation:
    """Filters a relation by all conditions."""
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
    """Returns the IN or EXISTS under NOT and parentheses, and whether it is negated."""
    negated = False
    while isinstance(node, (exp.Not, exp.Paren)):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    return (node if is_nested(node) else None), negated


def _semi(relation: Relation, part: exp.Expr, scope: Scope, context: Context) -> Relation:
    node, negated = _bare(part)
    if node is None:
        raise refuse(scope, part, "This condition cannot be read.", "write it with AND, IN and EXISTS.")
    other = partners(node, scope, context)
    if other.listed is not None and not negated:
        return Semi(relation, other.rows, (other.listed, *other.pairs), False, span=other.span)
    if other.listed is None and not other.pairs:  # the same for all rows: as a value it is computed once
        mark = other.mark(context)
        marked = Semi(relation, other.rows, (), False, mark=mark.name, span=other.span)
        return Filter(marked, Call("not", (mark,), span=other.span) if negated else mark)
    return Semi(relation, other.rows, other.pairs, negated, other.listed, span=other.span)


def _correlation(part: exp.Expr, outer: Scope, inside: Scope) -> Pair | None:
    """Returns (outer expression, inner expression) if a condition equates them; a name means the nearest FROM that has it."""
    if not isinstance(part, exp.EQ):
        return None
    for a, b in ((part.this, part.expression), (part.expression, part.this)):
        names = [each for each in a.find_all(exp.Column) if not isinstance(each.this, exp.Star)]
        if names and not any(candidates(each, inside) for each in names) and all(candidates(each, outer) for each in names):
            return expression(a, outer), expression(b, inside)
    return None


def new_context(text: str, catalog: Catalog) -> Context:
    """Returns the context of a whole question."""
    return Context(text, catalog, select, inner)


def select(node: exp.Expr, context: Context, alias: str) -> Source:
    """Reads a SELECT or UNION ALL below the private aggregate; its columns are named "alias.column"."""
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
    source, scope = _windowed(node, source, scope)
    outputs = _outputs(node, scope)
    named = tuple(Named(f"{alias}.{name}", value) for name, value in outputs)
    fields = tuple(Field(alias, name, f"{alias}.{name}") for name, _ in outputs)
    if node.args.get("distinct"):
        only(scope, node.args["distinct"], "", "DISTINCT")
        return Source(PerUnit(source.relation, named, (), span=keyword(context.text, "DISTINCT")), fields)
    return Source(Compute(source.relation, named), fields)


def _windowed(node: exp.Select, source: Source, scope: Scope) -> tuple[Source, Scope]:
    """Adds the window functions of SELECT and QUALIFY to the rows, and filters by QUALIFY."""
    condition = _qualify(node, scope)
    parts = [*node.expressions, *([] if condition is None else [condition])]
    windows, values = read_windows(parts, scope, lambda part: expression(part, scope))
    relation = WithinUnit(source.relation, windows) if windows else source.relation
    scope = replace(scope, values={**scope.values, **values})
    if condition is not None:
        relation = Filter(relation, expression(condition, scope.at("in QUALIFY"), lambda part: _alias(part, node, scope)))
    return Source(relation, source.fields), scope


def _qualify(node: exp.Select, scope: Scope) -> exp.Expr | None:
    clause = node.args.get("qualify")
    if clause is None:
        return None
    only(scope, clause, "this", "QUALIFY")
    condition: exp.Expr = clause.this
    return condition


def _alias(part: exp.Expr, node: exp.Select, scope: Scope) -> Expression | None:
    """Returns the output of SELECT that a name in QUALIFY means, unless a column has the name."""
    if not isinstance(part, exp.Column) or part.args.get("table") is not None or candidates(part, scope):
        return None
    outputs = matching(*name_of(scope, part.this), _aliases(node, scope), lambda pair: pair[0])
    return expression(outputs[0][1], scope) if len(outputs) == 1 else None


def _union(node: exp.Union, context: Context, alias: str) -> Source:
    only(context.scope, node, "this expression distinct with_", "UNION")
    if type(node) is not exp.Union:
        raise refuse(context.scope, node, "Only SELECT and UNION ALL can stand here.", "write a SELECT.")
    context = with_ctes(node, context)
    parts = [select(part, context, alias) for part in (node.this, node.expression)]
    if len({len(part.fields) for part in parts}) != 1:
        raise refuse(context.scope, node, "The parts of UNION ALL have different numbers of columns.", "make them alike.")
    first, second = parts
    if [each.name for each in first.fields] != [each.name for each in second.fields]:
        pairs = zip(first.fields, second.fields, strict=True)
        second = Source(Compute(second.relation, tuple(Named(a.name, Column(b.name)) for a, b in pairs)), first.fields)
    flat = first.relation.parts if isinstance(first.relation, Union) else (first.relation,)
    both = Source(Union((*flat, second.relation)), first.fields)
    return _distinct(both, place(context.text, node)) if node.args.get("distinct") else both


def _distinct(source: Source, span: tuple[int, int] | None) -> Source:
    """Keeps each row once: UNION. resolve/per_unit.py refuses it unless the unit is among the columns."""
    named = tuple(Named(each.name, Column(each.name)) for each in source.fields)
    return Source(PerUnit(source.relation, named, (), span=span), source.fields)


def _outputs(node: exp.Select, scope: Scope) -> list[tuple[str, Expression]]:
    outputs: list[tuple[str, Expression]] = []
    for item in node.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            outputs += [(each.column, Column(each.name, span=place(scope.text, item))) for each in star_fields(item, scope)]
            continue
        name, value = output_name(item, scope)
        read = expression(value, scope)
        outputs.append((name or _plain_name(read) or f"column_{len(outputs) + 1}", read))
    names = [folded(name) for name, _ in outputs]
    for name, _ in outputs:
        if names.count(folded(name)) > 1:
            raise refuse(scope, node, f"Two columns of this subquery are called {name}.", "rename one with AS.")
    return outputs


def star_fields(item: exp.Expr, scope: Scope) -> list[Field]:
    """Returns the fields of * or t.*."""
    star = item if isinstance(item, exp.Star) else item.this
    only(scope, star, "", "*")
    fields = [each for each in scope.fields if not each.hidden]
    if isinstance(item, exp.Column):
        alias, quoted = name_of(scope, item.args.get("table"))
        fields = matching(alias, quoted, scope.fields, lambda each: each.alias)
        if not fields:
            raise refuse(scope, item, f"There is no table {alias} here.", "name a table of FROM.")
    return fields


def output_name(item: exp.Expr, scope: Scope) -> tuple[str, exp.Expr]:
    """Returns the alias of an output ("" if it has none) and its expression."""
    if isinstance(item, exp.Alias):
        only(scope, item, "this alias", "AS")
        return name_of(scope, item.args["alias"])[0], item.this
    return "", item


def _plain_name(value: Expression) -> str:
    return value.name.split(".", 1)[-1] if isinstance(value, Column) else ""


def _per_unit(node: exp.Select, source: Source, scope: Scope, alias: str) -> Source:
    """Reads a subquery with GROUP BY; resolve/per_unit.py refuses it unless it groups by the unit."""
    if node.args.get("distinct"):
        raise refuse(scope, node, "DISTINCT together with GROUP BY is not supported.", "leave DISTINCT out.")
    grouping = group(node, scope, per_unit=True)
    qualify = _qualify(node, scope)
    parts = [*node.expressions, *([] if qualify is None else [qualify])]
    windows, grouping.within = read_windows(parts, scope, lambda part: grouping.above(part, "in SELECT", False))
    outputs = _grouped_outputs(node, grouping)
    having = node.args.get("having")
    condition = None
    if having is not None:
        only(scope, having, "this", "HAVING")
        condition = grouping.above(having.this, "in HAVING", True)
    clause = node.args.get("group")
    span = place(scope.text, clause) if clause is not None else place(scope.text, node)
    keys, aggregates = tuple(grouping.keys), tuple(grouping.aggregates)
    relation: Relation = PerUnit(source.relation, keys, aggregates, span=span, alone=_alone(node, scope))
    if condition is not None:
        relation = Filter(relation, condition)
    relation = WithinUnit(relation, windows) if windows else relation
    if qualify is not None:
        relation = Filter(relation, grouping.above(qualify, "in QUALIFY", True))
    fields = tuple(Field(alias, each.name, f"{alias}.{each.name}") for each in outputs)
    return Source(Compute(relation, tuple(Named(f"{alias}.{each.name}", each.expression) for each in outputs)), fields)


def _alone(node: exp.Select, scope: Scope) -> str:
    """Returns a subquery as a question of its own, if it needs nothing around it and is short."""
    text = node.sql(dialect=Narrow) if not node.find(exp.Parameter, exp.Placeholder) else ""
    return text if len(text) <= _LONGEST_FORM and not scope.outer else ""


def _grouped_outputs(node: exp.Select, grouping: Grouping) -> list[Named]:
    outputs = grouping.outputs
    for item in node.expressions:
        name, value = output_name(item, grouping.scope)
        read = grouping.above(value, "in SELECT", False, name)
        natural = read.name if isinstance(read, Column) and not words_of(read) else f"column_{len(outputs) + 1}"
        outputs.append(Named(name or natural, read))
    names = [folded(each.name) for each in outputs]
    if len(set(names)) < len(names):
        raise refuse(grouping.scope, node, "Two columns of this subquery have the same name.", "rename one with AS.")
    return outputs


def group(node: exp.Select, scope: Scope, per_unit: bool) -> Grouping:
    """Reads the keys of GROUP BY: columns, expressions, positions in SELECT, or aliases of SELECT."""
    grouping = Grouping(scope, per_unit)
    clause = node.args.get("group")
    if clause is None:
        return grouping
    if clause.args.get("all") is not None:
        spans = [each.span() for each in re.finditer(r"(?i)\bGROUP\s+BY\s+(ALL|DISTINCT)\b", scope.text)]
        word = "ALL" if clause.args["all"] else "DISTINCT"
        what, fix = f"GROUP BY {word} does not say what to group by.", "name the columns: GROUP BY a, b."
        raise QueryError(what, text=scope.text, span=spans[0] if len(spans) == 1 else None, fix=fix)
    only(scope, clause, "expressions", "GROUP BY")
    if not has_sets(clause.expressions):
        for item in clause.expressions:
            if isinstance(item, exp.Tuple):
                what = "GROUP BY takes columns, and this is a list in parentheses."
                raise refuse(scope, item, what, "leave the parentheses out.")
            _add_key(grouping, item, node)
        return grouping
    if per_unit:
        raise refuse(scope, clause, "A subquery per person has no totals.", "leave ROLLUP, CUBE and GROUPING SETS out.")
    sets = [tuple(dict.fromkeys(_add_key(grouping, item, node) for item in one)) for one in expand(clause.expressions, scope)]
    grouping.sets = [tuple(sorted(one)) for one in sets]
    if grouping.sets == [tuple(range(len(grouping.keys)))]:
        grouping.sets = []  # the only set has all keys
        return grouping
    repeated = next((one for one in grouping.sets if grouping.sets.count(one) > 1), None)
    if repeated is not None:
        names = ", ".join(grouping.keys[each].name for each in repeated)
        raise refuse(scope, clause, f"The grouping set ({names}) is asked for twice.", "write it once.")
    if not any(grouping.sets):
        raise refuse(scope, clause, "This GROUP BY has no key.", "to ask about everyone at once, leave GROUP BY out.")
    return grouping


def _add_key(grouping: Grouping, item: exp.Expr, node: exp.Select) -> int:
    """Adds a key of GROUP BY under its name, and returns its place."""
    scope = grouping.scope
    name, value = _key(item, node, scope)
    read = expression(value, scope.at("in GROUP BY"))
    given = next((alias for alias, each in _aliases(node, scope) if each == value and alias), "")
    natural = "" if words_of(read) else _plain_name(read)
    other = words_of(read) or f"key_{len(grouping.keys) + 1}"
    return grouping.add_key(natural or name or given or other, read)


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
        name, quoted = name_of(scope, item.this)
        if not matching(name, quoted, scope.fields, lambda each: each.column):
            outputs = matching(name, quoted, _aliases(node, scope), lambda pair: pair[0])
            if len(outputs) == 1:
                return outputs[0]
    return "", item


def _aliases(node: exp.Select, scope: Scope) -> list[tuple[str, exp.Expr]]:
    return [output_name(item, scope) for item in node.expressions if isinstance(item, exp.Alias)]


def rows(node: exp.Select, context: Context, *, noisy: bool = False) -> tuple[Source, Scope]:
    """Reads FROM, JOIN and WHERE of one SELECT. Returns its rows, and the scope of its other clauses. `noisy`: the SELECT
    aggregates people, so subqueries over public tables above its groups are no part of its rows (public.py)."""
    read = from_where(node, context.scope, context)
    clauses = [node.args.get(clause) for clause in ("group", "having", "qualify", "order")]
    parts = [*node.expressions, *(clause for clause in clauses if clause is not None)]
    above = above_groups(node, _written_keys(node, read.scope), context) if noisy else frozenset[int]()
    relation, scope = with_values(read.source, parts, read.scope.at("in SELECT"), context, above)
    return Source(relation, read.source.fields), scope


def _written_keys(node: exp.Select, scope: Scope) -> list[exp.Expr]:
    """Returns the keys of GROUP BY, those that are named or numbered as written in SELECT."""
    items = node.args["group"].expressions if node.args.get("group") else []
    if has_sets(items):
        items = [item for one in expand(items, scope) for item in one]
    return [_key(item, node, scope)[1] for item in items]


def keyword(text: str, word: str) -> tuple[int, int] | None:
    """Returns the span of a keyword that the tree does not record, if the text has it just once."""
    upper = text.upper()
    return (upper.index(word), upper.index(word) + len(word)) if upper.count(word) == 1 else None
