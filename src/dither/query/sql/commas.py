"""Reads FROM with commas and CROSS JOIN: finds in WHERE the equalities that join the tables.

    FROM orders o, customers c WHERE o.customer = c.id AND c.age > 30
    FROM orders o JOIN customers c ON o.customer = c.id WHERE c.age > 30          the same question

A comma binds less than JOIN, so `a, b LEFT JOIN c ON ...` lists two items: a, and b with c. The first item is read first. Then,
again and again, the first item that WHERE equates with what is read already; before others one that is equated by unit columns,
so that rows of one person are put together first. An equality that stands in every branch of an OR holds in every row, so it
joins, too (TPC-H 19 is written so). An item that nothing equates is refused: it would pair every row with every row.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dither.catalog.values import Catalog
from dither.errors import QueryError
from dither.query.nodes import Column, Join
from dither.query.sql.joins import conjuncts, equality, join
from dither.query.sql.names import Scope, Source, only, place, refuse
from dither.query.sql.tables import Context, Pair, named_table
from dither.text import folded


def tables(node: exp.Select, conditions: Sequence[exp.Expr], context: Context) -> tuple[Source, list[exp.Expr]]:
    """Reads FROM, with the AND-ed conditions of WHERE. Returns the rows, and the conditions that are left."""
    clause = node.args.get("from_")
    if clause is None:
        raise refuse(context.scope, node, "There is no FROM, so nothing is asked of a table.", "write SELECT ... FROM a table.")
    only(context.scope, clause, "this", "FROM")
    items = [(clause.this, named_table(clause.this, context))]
    for each in node.args.get("joins") or []:
        if _is_comma(each):
            only(context.scope, each, "this kind", "FROM")
            items.append((each.this, named_table(each.this, context)))
        else:
            items[-1] = (items[-1][0], join(items[-1][1], each, context))
    if len(items) == 1:
        return items[0][1], list(conditions)
    _check_names(items, context)
    return _joined(items, list(conditions), context)


def _is_comma(node: exp.Expr) -> bool:
    """Returns whether a join is a comma or CROSS JOIN; sqlglot reads JOIN without ON alike, but `join` refuses that."""
    kind = str(node.args.get("kind") or "").upper()
    return kind == "CROSS" or not any(node.args.get(part) for part in ("kind", "side", "on", "using", "method"))


def _check_names(items: Sequence[tuple[exp.Expr, Source]], context: Context) -> None:
    taken: set[str] = set()
    for node, source in items:
        names = {folded(each.alias) for each in source.fields}
        if names & taken:
            raise refuse(context.scope, node, "Two tables of FROM have the same name.", "give one an alias: FROM visits v, ...")
        taken |= names


def _joined(
    items: list[tuple[exp.Expr, Source]], conditions: list[exp.Expr], context: Context
) -> tuple[Source, list[exp.Expr]]:
    fields = tuple(field for _, source in items for field in source.fields)
    every = Scope(context.text, fields, "in WHERE")
    implied = [part for each in conditions for part in _implied(each) if part.find(exp.Select) is None]
    (_, whole), *waiting = items
    used: set[int] = set()
    while waiting:
        place_of, pairs = _next(whole, waiting, implied, every, context.catalog)
        node, source = waiting.pop(place_of)
        if not pairs:
            raise _product(whole, node, source, context)
        used |= set(pairs)
        written = next(each for each in implied if id(each) in pairs)
        relation = Join(whole.relation, source.relation, tuple(pairs.values()), "inner", span=place(context.text, written))
        whole = Source(relation, whole.fields + source.fields)
    left = [each for each in conditions if id(each) not in used]
    return Source(whole.relation, fields), left


def _next(
    whole: Source, waiting: Sequence[tuple[exp.Expr, Source]], conditions: Sequence[exp.Expr], every: Scope, catalog: Catalog
) -> tuple[int, dict[int, Pair]]:
    """Returns the place of the item to join next, and its pairs, by the id of their condition; no pairs if none is equated."""
    left = Scope(every.text, whole.fields, "in WHERE")
    found = []
    for number, (_, source) in enumerate(waiting):
        right = Scope(every.text, source.fields, "in WHERE")
        read = ((id(each), equality(each, left, right, every)) for each in conditions)
        found.append((number, {key: pair for key, pair in read if pair is not None}))
    units = {folded(table.unit.column) for table in catalog.tables.values() if table.unit is not None}
    personal = (each for each in found if any(_by_unit(pair, units) for pair in each[1].values()))
    return next(personal, next((each for each in found if each[1]), (0, {})))


def _by_unit(pair: Pair, units: set[str]) -> bool:
    return all(isinstance(side, Column) and folded(side.name.rsplit(".", 1)[-1]) in units for side in pair)


def _implied(node: exp.Expr) -> list[exp.Expr]:
    """Returns conditions that hold in every row for which the node is true: itself, or what all branches of OR have."""
    if isinstance(node, exp.Paren):
        return _implied(node.this)
    if not isinstance(node, exp.Or):
        return [node]
    branches = [[part for each in conjuncts(branch) for part in _implied(each)] for branch in (node.this, node.expression)]
    return [part for part in branches[0] if any(_same(part, other) for other in branches[1])]


def _same(one: exp.Expr, other: exp.Expr) -> bool:
    """Returns whether two conditions are the same, also if their sides are swapped: a = b, b = a."""
    equal = isinstance(one, exp.EQ) and isinstance(other, exp.EQ)
    return one == other or (equal and one.this == other.expression and one.expression == other.this)


def _product(whole: Source, node: exp.Expr, source: Source, context: Context) -> QueryError:
    example = _example(whole, source, context.catalog)
    return refuse(
        context.scope,
        node,
        "This pairs every row with every row: no condition of WHERE equates it with the tables before it.",
        f"add the columns that must be equal: WHERE {example}.",
    )


def _example(whole: Source, source: Source, catalog: Catalog) -> str:
    """Returns the equality of two columns of the same name, of the unit if there is one."""
    units = {folded(table.unit.column) for table in catalog.tables.values() if table.unit is not None}
    same = [(a, b) for a in whole.fields for b in source.fields if folded(a.column) == folded(b.column)]
    a, b = min(same, key=lambda pair: folded(pair[0].column) not in units, default=(None, None))
    return "a.x = b.x" if a is None or b is None else f"{a.alias}.{a.column} = {b.alias}.{b.column}"
