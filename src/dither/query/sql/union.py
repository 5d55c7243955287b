"""Reads UNION of private results: each SELECT has its own noise; ORDER BY and LIMIT at the end are about all rows.

UNION ALL below the private aggregate, in FROM, is read in subqueries.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from dither.catalog.values import Catalog
from dither.errors import QueryError
from dither.query.nodes import Query
from dither.query.sql.clauses import read_limit, read_offset
from dither.query.sql.gate import read, with_hint
from dither.query.sql.names import matching, name_of, only, refuse
from dither.query.sql.select import question
from dither.query.sql.subqueries import new_context
from dither.query.sql.tables import Context, with_ctes
from dither.query.union import Results, Together

MOST_PARTS = 64


def parse_union(text: str, catalog: Catalog, params: Mapping[str, Any] | None = None) -> Results | None:
    """Reads SQL text that puts private results together; None if it does not."""
    if "union" not in text.lower():
        return None
    try:
        tree, _ = read(text, params)
    except QueryError as error:
        raise with_hint(error, text, [name for table in catalog.tables.values() for name in table.columns]) from None
    tree = _bare(tree)
    if not isinstance(tree, exp.Union):
        return None
    context = new_context(text, catalog)
    try:
        return _results(tree, with_ctes(tree, context))
    except RecursionError:
        raise QueryError("The question is nested too deeply.", text=text, fix="ask more simply.") from None


def _results(tree: exp.Union, context: Context) -> Results:
    scope = context.scope
    only(scope, tree, "this expression distinct with_ order limit offset", "UNION")
    leaves, distinct = _leaves(tree, context)
    if len(leaves) > MOST_PARTS:
        what = f"This UNION has {len(leaves)} parts, and at most {MOST_PARTS} are put together."
        raise refuse(scope, leaves[MOST_PARTS], what, "ask several questions.")
    parts = tuple(question(leaf, context) for leaf in leaves)
    width = len(parts[0].outputs)
    for leaf, part in zip(leaves, parts, strict=True):
        if len(part.outputs) != width:
            what = f"The parts of UNION have different numbers of columns: {width} and {len(part.outputs)}."
            raise refuse(scope, leaf, what, "select as many columns in each part; NULL stands for one that a part lacks.")
    order = _order(tree, parts[0], context)
    return Results(parts, Together(tuple(distinct), order, read_limit(tree, scope), read_offset(tree, scope)))


def _bare(tree: exp.Expr) -> exp.Expr:
    """Returns a question without the parentheses around it."""
    while isinstance(tree, exp.Subquery) and not [key for key, value in tree.args.items() if value and key != "this"]:
        tree = tree.this
    return tree


def _leaves(tree: exp.Expr, context: Context) -> tuple[list[exp.Expr], list[bool]]:
    """Returns the SELECTs of a UNION, and for each but the first whether equal rows are dropped once it is added."""
    if not isinstance(tree, exp.Union):
        return [tree], []
    left, before = _leaves(tree.this, context)
    right, after = _leaves(tree.expression, context)
    distinct = bool(tree.args.get("distinct"))
    bare = _bare(tree.expression)
    if bare is not tree.expression and isinstance(bare, exp.Union):  # a UNION (b UNION c)
        what = "UNION in parentheses is not supported."
        raise refuse(context.scope, bare, what, "leave the parentheses out: parts are put together from left to right.")
    return [*left, *right], [*before, distinct, *after]


def _order(tree: exp.Union, first: Query, context: Context) -> tuple[tuple[int, bool], ...]:
    clause, scope = tree.args.get("order"), context.scope
    if clause is None:
        return ()
    only(scope, clause, "expressions", "ORDER BY")
    found = []
    for item in clause.expressions:
        only(scope, item, "this desc", "ORDER BY")  # refuses NULLS FIRST: NULLs come last
        found.append((_place(item.this, first, context), bool(item.args.get("desc"))))
    return tuple(found)


def _place(item: exp.Expr, first: Query, context: Context) -> int:
    """Returns the place of a column of the result, by its name or its position."""
    if isinstance(item, exp.Literal) and not item.args.get("is_string") and str(item.this).isdigit():
        number = int(str(item.this)[:9])
        if 1 <= number <= len(first.outputs):
            return number - 1
    if isinstance(item, exp.Column) and item.args.get("table") is None and not isinstance(item.this, exp.Star):
        outputs = list(enumerate(first.outputs))
        named = matching(*name_of(context.scope, item.this), outputs, lambda pair: pair[1].name)
        if len(named) == 1:
            return named[0][0]
    names = ", ".join(output.name for output in first.outputs)
    what = "ORDER BY after UNION is about the whole result, and this is none of its columns."
    raise refuse(context.scope, item, what, f"order by one of {names}, or by a position such as 1.")
