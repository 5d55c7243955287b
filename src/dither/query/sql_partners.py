"""What IN (SELECT ...) and EXISTS (SELECT ...) look at. Whether they may is judged in legality.py."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from dither.query.names import Scope, only, place, refuse
from dither.query.nodes import Column, Relation, Span
from dither.query.sql_aggregates import has_aggregate
from dither.query.sql_expressions import expression
from dither.query.sql_tables import Context, Pair

SUBQUERY = "subquery"


@dataclass(frozen=True)
class Partners:
    """Rows, what equates them with the outer row; for IN also what is looked for and what each of the rows lists."""

    rows: Relation
    pairs: tuple[Pair, ...]
    listed: Pair | None = None
    span: Span = field(default=None, compare=False)

    def mark(self, context: Context) -> Column:
        """The column that says whether there is a partner, or whether one lists what is looked for."""
        name, words = ("exists", "EXISTS (SELECT ...)") if self.listed is None else ("in", "IN (SELECT ...)")
        return Column(f"{context.alias()}.{name}", span=self.span, words=words)


def is_nested(node: exp.Expr) -> bool:
    """Whether the node is IN or EXISTS with a subquery."""
    return isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None)


def partners(node: exp.Expr, scope: Scope, context: Context) -> Partners:
    """The rows that IN or EXISTS looks at; `scope` tells what names, and subqueries left of IN, mean outside."""
    if isinstance(node, exp.In):
        only(scope, node, "this query", "IN")
        if isinstance(node.this, exp.Tuple):
            what = f"IN (SELECT ...) looks for one value, and these are {len(node.this.expressions)}."
            raise refuse(scope, node, what, "write EXISTS (SELECT 1 FROM ... WHERE ...), with each equality joined by AND.")
        return _listed(node, scope, context)
    only(scope, node, "this", "EXISTS")
    return _existing(node, scope, context)


def _listed(node: exp.In, scope: Scope, context: Context) -> Partners:
    query, span = node.args["query"], place(scope.text, node)
    select = query.this if isinstance(query, exp.Subquery) and not query.args.get("with_") else query
    if isinstance(select, exp.Select) and select.args.get("distinct"):
        query = select = _with_repeats(select, scope)
    if isinstance(select, exp.Select) and _plain(select):
        item = select.expressions[0].unalias()
        found = context.inner(select, [item], scope, context)
        pair = expression(node.this, scope), expression(item, found.scope.at("in SELECT"))
        return Partners(found.source.relation, found.pairs, pair, span)
    other = context.subquery(query, context, SUBQUERY)
    if len(other.fields) != 1:
        raise refuse(scope, node, "The subquery of IN must have just one column.", "select one column.")
    return Partners(other.relation, (), (expression(node.this, scope), Column(other.fields[0].name)), span)


def _with_repeats(select: exp.Select, scope: Scope) -> exp.Select:
    """The SELECT without its DISTINCT: IN and EXISTS ask whether there is such a row, and not how many."""
    only(scope, select.args["distinct"], "", "DISTINCT")
    select = select.copy()
    select.set("distinct", None)
    return select


def _plain(select: exp.Select) -> bool:
    """One expression of rows: no star, no aggregate, no clause that stands for more."""
    items = select.expressions
    clauses = {key for key, value in select.args.items() if value} - {"expressions", "from_", "joins", "where", "with_"}
    return len(items) == 1 and not clauses and items[0].find(exp.Star) is None and not has_aggregate(items[0])


def _existing(node: exp.Expr, scope: Scope, context: Context) -> Partners:
    select = node.this.this if isinstance(node.this, exp.Subquery) else node.this
    if not isinstance(select, exp.Select):
        raise refuse(scope, node, "EXISTS needs a plain SELECT.", "write EXISTS (SELECT 1 FROM ... WHERE ...).")
    if select.args.get("distinct"):
        select = _with_repeats(select, scope)
    only(scope, select, "expressions from_ joins where with_", "EXISTS")
    if any(has_aggregate(item) for item in select.expressions):
        raise refuse(scope, node, "EXISTS over an aggregate is always true.", "write EXISTS (SELECT 1 FROM ... WHERE ...).")
    found = context.inner(select, [], scope, context)
    return Partners(found.source.relation, found.pairs, span=place(scope.text, node) or place(scope.text, select))
