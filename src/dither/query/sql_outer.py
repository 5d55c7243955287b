"""What to write instead, where a subquery names a column of the outer row in a way that is not supported."""

from __future__ import annotations

from sqlglot import exp

# What it takes that some row of the subquery is above (or below) the outer value; seen from the subquery's side.
_SOME: dict[type[exp.Expr], str] = {exp.GT: "MAX", exp.GTE: "MAX", exp.LT: "MIN", exp.LTE: "MIN"}
_SIGNS: dict[type[exp.Expr], str] = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}
_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE}
_LONGEST = 60


def instead(node: exp.Column) -> str:
    """A fix for this column of the outer row."""
    holder = node.find_ancestor(exp.EQ, exp.NEQ, *_SOME, exp.Between, exp.And, exp.Or, exp.Where, exp.Select)
    if isinstance(holder, exp.EQ):
        return "make the equality a condition of its own in the subquery's WHERE, joined to others by AND."
    compared = _compared(holder, node) if holder is not None and type(holder) in _SOME and _decides(holder) else ""
    if compared:
        return f"compare outside, instead of EXISTS: {compared}."
    return "use it outside the subquery, or JOIN the two tables on the unit and use it there."


def _decides(holder: exp.Expr) -> bool:
    """Whether the condition stands beside AND in the WHERE of an EXISTS that is not negated."""
    above = holder.parent
    while isinstance(above, (exp.And, exp.Paren)):
        above = above.parent
    select = above.parent if isinstance(above, exp.Where) else None
    found = select.parent if isinstance(select, exp.Select) else None
    return isinstance(found, exp.Exists) and found.find_ancestor(exp.Not) is None


def _compared(holder: exp.Expr, node: exp.Column) -> str:
    if holder.expression is node:
        mine, way = holder.this, type(holder)
    elif holder.this is node:
        mine, way = holder.expression, _TURNED[type(holder)]
    else:
        return ""
    text = f"(SELECT {_SOME[way]}({mine.sql()}) FROM ... WHERE ...) {_SIGNS[way]} {node.sql()}"
    return text if len(mine.sql()) + len(node.sql()) <= _LONGEST else ""
