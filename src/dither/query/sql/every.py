"""Spells out GROUP BY ALL and ORDER BY ALL, before anything else reads the question: by places in SELECT, as DuckDB does.

    SELECT a, COUNT(*) FROM t GROUP BY ALL ORDER BY ALL    ->    SELECT a, COUNT(*) FROM t GROUP BY 1 ORDER BY 1, 2

GROUP BY ALL takes each item of SELECT without an aggregate. What cannot be spelled out is left, to be refused: a star.
"""

from __future__ import annotations

from sqlglot import exp

from dither.query.sql.aggregates import has_aggregate


def spell_out(tree: exp.Expr) -> None:
    """Replaces both ALL in every SELECT of a question."""
    for select in tree.find_all(exp.Select):
        if any(item.is_star for item in select.expressions):
            continue
        group, order = select.args.get("group"), select.args.get("order")
        keys = [place for place, item in enumerate(select.expressions, start=1) if not has_aggregate(item)]
        if group is not None and group.args.get("all") and not group.expressions:
            select.set("group", exp.Group(expressions=[exp.Literal.number(place) for place in keys]) if keys else None)
        if order is not None and len(order.expressions) == 1 and _is_all(order.expressions[0]):
            (item,) = order.expressions
            each = [item.copy() for _ in select.expressions]
            for place, own in enumerate(each, start=1):
                own.set("this", exp.Literal.number(place))
            order.set("expressions", each)


def _is_all(item: exp.Expr) -> bool:
    """Whether an item of ORDER BY is the word ALL, and no column of that name."""
    column = item.this if isinstance(item, exp.Ordered) else item
    name = column.this if isinstance(column, exp.Column) and len(column.parts) == 1 else None
    return isinstance(name, exp.Identifier) and not name.args.get("quoted") and str(name.this).upper() == "ALL"
