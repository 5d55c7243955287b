"""Reads the clauses of a SELECT whose values are noisy: its outputs, ORDER BY, LIMIT and OFFSET."""

from __future__ import annotations

from sqlglot import exp

from dither.query.nodes import Expression, Literal, Named, Order
from dither.query.sql.aggregates import Grouping, spread_lists
from dither.query.sql.names import Scope, only, place, refuse
from dither.query.sql.subqueries import output_name
from dither.text import folded


def read_outputs(tree: exp.Select, grouping: Grouping) -> None:
    """Reads the outputs in order, so that a window function may name an output before it."""
    taken: set[str] = set()
    items = spread_lists([(item, *output_name(item, grouping.scope)) for item in tree.expressions], grouping.scope)
    for number, (item, name, written) in enumerate(items, start=1):
        value = grouping.above(written, "in SELECT", False, name)
        if name and folded(name) in taken:
            raise refuse(grouping.scope, item, f"Two outputs are called {name}.", "rename one with AS.")
        natural = grouping.natural_name(value, number)
        chosen = name or (natural if folded(natural) not in taken else f"{natural}_{number}")
        grouping.outputs.append(Named(chosen, value))
        taken.add(folded(chosen))


def read_condition(tree: exp.Select, clause: str, grouping: Grouping) -> Expression | None:
    """Reads HAVING or QUALIFY; both may name outputs of SELECT."""
    node = tree.args.get(clause)
    if node is None:
        return None
    only(grouping.scope, node, "this", clause.upper())
    return grouping.above(node.this, f"in {clause.upper()}", True)


def read_order(tree: exp.Select, grouping: Grouping) -> tuple[Order, ...]:
    """Reads ORDER BY: outputs, positions, and expressions over keys and aggregates."""
    clause = tree.args.get("order")
    if clause is None:
        return ()
    scope = grouping.scope
    only(scope, clause, "expressions", "ORDER BY")
    orders = []
    for item in clause.expressions:
        only(scope, item, "this desc nulls_first", "ORDER BY")
        value = grouping.above(item.this, "in ORDER BY", True)
        if isinstance(value, Literal):
            value = _position(value, grouping, item)
        orders.append(Order(value, bool(item.args.get("desc")), bool(item.args.get("nulls_first"))))
    return tuple(orders)


def _position(value: Literal, grouping: Grouping, item: exp.Expr) -> Expression:
    number = value.value
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(grouping.outputs):
        raise refuse(grouping.scope, item, "ORDER BY a constant needs a position of SELECT.", "order by an output's name.")
    return grouping.outputs[number - 1].expression


def read_limit(tree: exp.Query, scope: Scope) -> int | None:
    """Returns how many rows of the noisy result to show; None for all."""
    clause = tree.args.get("limit")
    if clause is None:
        return None
    if isinstance(clause, exp.Fetch):
        only(scope, clause, "direction count limit_options", "FETCH")
        count = clause.args.get("count")
        return 1 if count is None else _rows(exp.Limit(expression=count), "FETCH FIRST", scope)
    if isinstance(clause, exp.Limit):
        only(scope, clause, "expression", "LIMIT")
    return _rows(clause, "LIMIT", scope)


def read_offset(tree: exp.Query, scope: Scope) -> int:
    """Returns how many rows of the noisy result to skip: post-processing, like LIMIT."""
    clause, limit = tree.args.get("offset"), tree.args.get("limit")
    if clause is None:
        return 0
    only(scope, clause, "expression", "OFFSET")
    first, second = (place(scope.text, each) for each in (clause, limit if limit is not None else clause))
    fetched = isinstance(limit, exp.Fetch)  # which stands behind OFFSET
    if first and second and first < second and not fetched:  # LIMIT 10, 5 means the other order in some databases
        raise refuse(scope, clause, "It is not clear which number is the limit.", "write LIMIT 5 OFFSET 10.")
    return _rows(clause, "OFFSET", scope)


_WHOLE = (exp.DataType.Type.INT, exp.DataType.Type.BIGINT, exp.DataType.Type.SMALLINT)


def _rows(clause: exp.Expr, word: str, scope: Scope) -> int:
    number = clause.args.get("expression")
    if isinstance(number, exp.Cast) and number.args["to"].this in _WHOLE:  # LIMIT 10::INTEGER, as SQLAlchemy writes it
        number = number.this
    if not isinstance(number, exp.Literal) or number.args.get("is_string") or not str(number.this).isdigit():
        raise refuse(scope, clause, f"{word} takes a whole number.", f"write {word} 10.")
    return min(int(str(number.this)[:18]), 10**9)
