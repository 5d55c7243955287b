"""Reads subqueries over public tables above the groups: in SELECT, HAVING, QUALIFY, ORDER BY, and SELECTs around a question.

    SELECT region, COUNT(*) AS n FROM people GROUP BY region HAVING COUNT(*) > (SELECT MAX(least) FROM limits)
    SELECT region, (SELECT name FROM regions r WHERE r.id = p.region) AS name, COUNT(*) AS n FROM people p GROUP BY region

Nobody's row is in a public table, so what such a subquery finds is a public constant, or one for each group: a Lookup, which is
a column of the noisy table. Below the groups, subqueries are joined to people's rows (joins.py). Which of the two a subquery is
depends on where it stands. resolve/lookups.py checks that its tables are public.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dither.query.nodes import Column, Expression, Literal, Lookup, Order, Span
from dither.query.sql.aggregates import has_aggregate, is_aggregate
from dither.query.sql.expressions import expression
from dither.query.sql.joins import SUBQUERY, is_nested, is_plain, partners, read_scalar
from dither.query.sql.names import Scope, matching, name_of, only, place, refuse
from dither.query.sql.tables import Context

Over = Callable[[Expression], Expression]  # an expression over rows, in columns of the noisy table
Read = Callable[[exp.Expr], Expression]


def reads_public(node: exp.Expr, context: Context) -> bool:
    """Returns whether a node is a subquery, IN or EXISTS that names public tables only."""
    if isinstance(node, exp.Subquery):
        return _is_public(node, context)
    if not is_nested(node):
        return False
    return _is_public(node.this if isinstance(node, exp.Exists) else node.args["query"], context)


def _is_public(node: exp.Expr, context: Context) -> bool:
    own = {str(cte.alias).casefold() for cte in node.find_all(exp.CTE)}
    tables = [each for each in node.find_all(exp.Table) if str(each.name).casefold() not in own or each.args.get("db")]
    return bool(tables) and all(_names_public(each, context) for each in tables)


def _names_public(node: exp.Table, context: Context) -> bool:
    if not isinstance(node.this, exp.Identifier):
        return False
    name, quoted = name_of(context.scope, node.this)
    ctes = [] if node.args.get("db") else matching(name, quoted, context.ctes, str)
    if ctes:
        cte, inner = context.ctes[ctes[0]]
        return _is_public(cte.this, inner)
    found = matching(name, quoted, context.catalog.tables, str)
    return len(found) == 1 and context.catalog.tables[found[0]].public


def above_groups(node: exp.Select, keys: list[exp.Expr], context: Context) -> frozenset[int]:
    """Returns the ids of the public subqueries of a SELECT that stand above its groups: not in an aggregate, and no key."""
    clauses = [node.args.get(clause) for clause in ("having", "qualify", "order")]
    parts = [*node.expressions, *(clause for clause in clauses if clause is not None)]
    grouped = [each for key in keys for each in key.find_all(exp.Subquery, exp.In, exp.Exists)]
    every = [each for part in parts for each in _outside_aggregates(part)]
    return frozenset(id(each) for each in every if reads_public(each, context) and not any(each == key for key in grouped))


def _outside_aggregates(node: exp.Expr) -> Iterator[exp.Expr]:
    """Returns the subqueries of a node, and its IN and EXISTS, that are not inside an aggregate or another subquery."""
    if isinstance(node, exp.Subquery) or is_nested(node):
        yield node
    if isinstance(node, (exp.Subquery, exp.Exists)):
        return
    if is_nested(node):
        yield from _outside_aggregates(node.this)
        return
    if isinstance(node, exp.Window):
        call = node.this.this if isinstance(node.this, exp.Filter) else node.this
        parts = [*call.iter_expressions(), *(part for part in node.iter_expressions() if part is not node.this)]
    else:
        parts = [] if is_aggregate(node) else list(node.iter_expressions())
    for part in parts:
        yield from _outside_aggregates(part)


@dataclass
class Public:
    """Collects the lookups of one SELECT over a noisy table."""

    context: Context
    found: list[Lookup] = field(default_factory=list)

    def reads(self, node: exp.Expr) -> bool:
        """Returns whether a node is a subquery over public tables."""
        return reads_public(node, self.context)

    def stands_in(self, node: exp.Expr, scope: Scope) -> bool:
        """Returns whether a node has such a subquery, unless it is a value of rows."""
        return any(id(each) not in scope.values and self.reads(each) for each in _outside_aggregates(node))

    def add(self, node: exp.Expr, scope: Scope, read: Read, over: Over) -> Column:
        """Adds a subquery unless it is there already, and returns its column. `scope` has the columns that it may be equated
        with, `over` turns them into columns of the noisy table, and `read` reads the left side of IN."""
        lookup = self._read(node, scope, read)
        lookup = replace(lookup, equal=tuple((over(left), right) for left, right in lookup.equal))
        words = {"value": "(SELECT ...)", "in": "IN (SELECT ...)", "exists": "EXISTS (SELECT ...)"}[lookup.kind]
        for old in self.found:
            if old == replace(lookup, name=old.name):
                return Column(old.name, span=lookup.span, words=words)
        self.found.append(replace(lookup, name=f"#public {len(self.found) + 1}"))
        return Column(self.found[-1].name, span=lookup.span, words=words)

    def _read(self, node: exp.Expr, scope: Scope, read: Read) -> Lookup:
        if isinstance(node, exp.Subquery):
            return self._value(node, scope)
        here = replace(scope, values={})
        if isinstance(node, exp.In):
            here = replace(here, values={id(node.this): read(node.this)})
        other = partners(node, here, self.context)
        if other.listed is None:
            return Lookup("", "exists", other.rows, other.pairs, span=other.span)
        left, item = other.listed
        return Lookup("", "in", other.rows, other.pairs, item, listed=left, span=other.span)

    def _value(self, node: exp.Subquery, scope: Scope) -> Lookup:
        """Reads a subquery that stands for a value: an expression over one row, an aggregate, or a SELECT with one row."""
        select: exp.Expr = node
        while isinstance(select, exp.Subquery) and not select.args.get("with_"):
            only(scope, select, "this", "A subquery that stands for a value")
            select = select.this
        span = place(scope.text, node)
        if isinstance(select, exp.Select):
            select, sorts = _first_row(select, scope)
            if is_plain(select):
                return self._row(select, sorts, scope, span)
        if isinstance(select, exp.Select) and _is_one_value(select):
            scalar = read_scalar(node, scope, self.context)
            return Lookup("", "value", scalar.rows, scalar.pairs, scalar.value, scalar.aggregates, span=span)
        other = self.context.subquery(select, self.context, SUBQUERY)
        if len(other.fields) != 1:
            what = f"A subquery that stands for a value has one column, and this has {len(other.fields)}."
            raise refuse(scope, node, what, "select one, and write a second subquery for another.")
        return Lookup("", "value", other.relation, (), Column(other.fields[0].name), span=span)

    def _row(self, select: exp.Select, sorts: Sequence[exp.Expr], scope: Scope, span: Span) -> Lookup:
        """Reads an expression over one row: the only one, or the first in this order."""
        item = select.expressions[0].unalias()
        rows = self.context.inner(select, [item, *(each.this for each in sorts)], scope, self.context)
        value, here = expression(item, rows.scope.at("in SELECT")), rows.scope.at("in ORDER BY")
        order = []
        for each in sorts:
            key = expression(each.this, here)
            if isinstance(key, Literal) and key.value != 1:
                raise refuse(scope, each, "ORDER BY a constant needs a position of SELECT.", "order by a column.")
            order.append(Order(value if isinstance(key, Literal) else key, bool(each.args.get("desc"))))
        return Lookup("", "value", rows.source.relation, rows.pairs, value, order=tuple(order), span=span)


def _first_row(select: exp.Select, scope: Scope) -> tuple[exp.Select, list[exp.Expr]]:
    """Splits off ORDER BY ... LIMIT 1."""
    order, limit = select.args.get("order"), select.args.get("limit")
    number = None if limit is None else limit.args.get("expression") or limit.args.get("count")
    if order is None or not isinstance(number, exp.Literal) or number.args.get("is_string") or str(number.this) != "1":
        return select, []
    for each in order.expressions:
        only(scope, each, "this desc", "ORDER BY")
    bare = select.copy()
    bare.set("order", None)
    bare.set("limit", None)
    return bare, order.expressions


def _is_one_value(select: exp.Select) -> bool:
    """Returns whether a SELECT is read as one aggregate, or refused as a value: it picks rows by their order."""
    if select.args.get("limit") or select.args.get("order") or select.args.get("offset"):
        return True
    aggregates = any(has_aggregate(item) for item in select.expressions)
    return aggregates and not select.args.get("group") and not select.args.get("having") and not select.args.get("distinct")
