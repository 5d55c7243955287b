"""Reads SQL text into a Query: the outermost SELECT, with HAVING, ORDER BY, LIMIT and OFFSET.

`parse` reads names and structure; resolve/ then decides whether the question may be answered. Everything that is not on
a list is refused: tokens in gate.py, expressions in expressions.py, relations in tables.py, joins.py and subqueries.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from dither.catalog.values import Catalog
from dither.errors import QueryError
from dither.query.nodes import Column, Expression, Literal, Named, Order, Query
from dither.query.sql.aggregates import Grouping, has_aggregate
from dither.query.sql.expressions import expression
from dither.query.sql.gate import Narrow, read, with_hint
from dither.query.sql.names import Scope, only, place, refuse
from dither.query.sql.subqueries import group, new_context, output_name, rows
from dither.query.sql.tables import Context, with_ctes
from dither.text import folded

_LONGEST_FORM = 400  # the most characters of a whole question in a fix


def parse(text: str, catalog: Catalog, params: Mapping[str, Any] | None = None) -> Query:
    """Reads SQL text, with the values of its parameters, into a Query over the catalog's tables."""
    try:
        tree, _ = read(text, params)
    except QueryError as error:
        raise with_hint(error, text, [name for table in catalog.tables.values() for name in table.columns]) from None
    try:
        return question(tree, new_context(text, catalog))
    except RecursionError:
        raise QueryError("The question is nested too deeply.", text=text, fix="ask more simply.") from None


def question(tree: exp.Expr, context: Context) -> Query:
    """Reads the outermost SELECT, whose aggregates are released with noise."""
    scope = context.scope
    while isinstance(tree, exp.Subquery) and not [key for key, value in tree.args.items() if value and key != "this"]:
        tree = tree.this
    if isinstance(tree, exp.SetOperation):
        raise refuse(scope, tree, "Two noisy results cannot be put together by UNION.", "ask the two questions one by one.")
    if not isinstance(tree, exp.Select):
        raise refuse(scope, tree, "Only a SELECT is answered.", "ask with SELECT.")
    lists, instead = _is_list(tree), ""
    if lists:
        tree, instead = _grouped(tree, scope), _counted(tree)
    elif tree.args.get("distinct"):
        raise refuse(scope, tree, "SELECT DISTINCT has no meaning here.", "leave DISTINCT out: groups are distinct.")
    only(scope, tree, "expressions from_ joins where group having order limit offset with_", "SELECT")
    context = with_ctes(tree, context)
    source, here = rows(tree, context)
    if not lists and not any(has_aggregate(item) for item in tree.expressions) and not tree.args.get("having"):
        raise _no_aggregate(tree, here)
    grouping = group(tree, here, per_unit=False)
    _outputs(tree, grouping)
    having = tree.args.get("having")
    if having is not None:
        only(here, having, "this", "HAVING")
    condition = None if having is None else grouping.above(having.this, "in HAVING", True)
    order = _order(tree, grouping)
    limit, offset = _limit(tree, here), _offset(tree, here)
    if not grouping.aggregates and not lists:
        raise _no_aggregate(tree, here)
    keys, aggregates, outputs = tuple(grouping.keys), tuple(grouping.aggregates), tuple(grouping.outputs)
    return Query(source.relation, keys, aggregates, outputs, condition, order, limit, offset, instead)


def _is_list(tree: exp.Select) -> bool:
    """Returns whether a SELECT only asks which groups there are: DISTINCT or GROUP BY, and no aggregate."""
    clauses = (tree.args.get(clause) for clause in ("having", "order"))
    parts = [*tree.expressions, *(clause for clause in clauses if clause is not None)]
    return bool(tree.args.get("distinct")) != bool(tree.args.get("group")) and not any(map(has_aggregate, parts))


def _grouped(tree: exp.Select, scope: Scope) -> exp.Select:
    """Returns SELECT DISTINCT as GROUP BY all that is selected."""
    distinct = tree.args.get("distinct")
    if distinct is None:
        return tree
    only(scope, distinct, "", "DISTINCT")
    if tree.is_star:
        raise refuse(scope, tree.expressions[0], "This asks for rows, and rows are never shown.", "name the columns to list.")
    positions = [exp.Literal.number(place + 1) for place in range(len(tree.expressions))]
    grouped = tree.copy()
    grouped.set("distinct", None)
    grouped.set("group", exp.Group(expressions=positions))
    return grouped


def _counted(tree: exp.Select) -> str:
    """Returns the private form of a list in SQL: the same groups with a count; "" if it is long."""
    counted = tree.copy()
    keys = [item.unalias() for item in tree.expressions]
    counted.set("distinct", None)
    counted.set("expressions", [*tree.expressions, exp.alias_(exp.Anonymous(this="COUNT", expressions=[exp.Star()]), "n")])
    if tree.args.get("group") is None:
        counted.set("group", exp.Group(expressions=keys))
    text = counted.sql(dialect=Narrow)
    return text if len(text) <= _LONGEST_FORM else ""


def _no_aggregate(tree: exp.Select, scope: Scope) -> QueryError:
    for item in tree.expressions:
        if item.find(exp.Anonymous):
            expression(output_name(item, scope)[1], scope)  # refuses unknown functions and those that show rows
    first = tree.expressions[0] if tree.expressions else tree
    return refuse(
        scope,
        first,
        "This asks for rows, and rows are never shown.",
        "ask for aggregates such as COUNT(*) or AVG(x).",
    )


def _outputs(tree: exp.Select, grouping: Grouping) -> None:
    items = [(item, *output_name(item, grouping.scope)) for item in tree.expressions]
    read = [(item, name, grouping.above(value, "in SELECT", False, name)) for item, name, value in items]
    taken: set[str] = set()
    for number, (item, name, value) in enumerate(read, start=1):
        if name and folded(name) in taken:
            raise refuse(grouping.scope, item, f"Two outputs are called {name}.", "rename one with AS.")
        natural = value.name if isinstance(value, Column) else f"column_{number}"
        chosen = name or (natural if folded(natural) not in taken else f"{natural}_{number}")
        grouping.outputs.append(Named(chosen, value))
        taken.add(folded(chosen))


def _order(tree: exp.Select, grouping: Grouping) -> tuple[Order, ...]:
    clause = tree.args.get("order")
    if clause is None:
        return ()
    scope = grouping.scope
    only(scope, clause, "expressions", "ORDER BY")
    orders = []
    for item in clause.expressions:
        only(scope, item, "this desc", "ORDER BY")  # refuses NULLS FIRST: NULLs come last
        value = grouping.above(item.this, "in ORDER BY", True)
        if isinstance(value, Literal):
            value = _position(value, grouping, item)
        orders.append(Order(value, bool(item.args.get("desc"))))
    return tuple(orders)


def _position(value: Literal, grouping: Grouping, item: exp.Expr) -> Expression:
    number = value.value
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(grouping.outputs):
        raise refuse(grouping.scope, item, "ORDER BY a constant needs a position of SELECT.", "order by an output's name.")
    return grouping.outputs[number - 1].expression


def _limit(tree: exp.Select, scope: Scope) -> int | None:
    clause = tree.args.get("limit")
    if clause is None:
        return None
    if isinstance(clause, exp.Limit):
        only(scope, clause, "expression", "LIMIT")
    return _rows(clause, "LIMIT", scope)


def _offset(tree: exp.Select, scope: Scope) -> int:
    """Returns how many rows of the noisy result to skip: post-processing, like LIMIT."""
    clause, limit = tree.args.get("offset"), tree.args.get("limit")
    if clause is None:
        return 0
    only(scope, clause, "expression", "OFFSET")
    first, second = (place(scope.text, each) for each in (clause, limit if limit is not None else clause))
    if first and second and first < second:  # LIMIT 10, 5 means the other order in some databases
        raise refuse(scope, clause, "It is not clear which number is the limit.", "write LIMIT 5 OFFSET 10.")
    return _rows(clause, "OFFSET", scope)


def _rows(clause: exp.Expr, word: str, scope: Scope) -> int:
    number = clause.args.get("expression")
    if not isinstance(number, exp.Literal) or number.args.get("is_string") or not str(number.this).isdigit():
        raise refuse(scope, clause, f"{word} takes a whole number.", f"write {word} 10.")
    return min(int(str(number.this)[:18]), 10**9)
