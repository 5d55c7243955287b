"""Reads JOIN, IN (SELECT ...), EXISTS (SELECT ...) and scalar subqueries into joins.

JOIN ... ON and USING: equalities become pairs, other conditions filters. ON of an outer join may filter only the side that
may be missing. A column of USING is the one of the side that is kept; of a FULL JOIN, that of the side that has the row.

A scalar subquery is one aggregate of a public table, or of the rows of the person that a row belongs to:

    age > (SELECT AVG(limit) FROM regions)        (SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id) > 3

It becomes a Join with a `scalar`: its aggregates over the rows that are equated with the outer row. Without such a row
they are NULL, and counts are 0, as in SQL. IN and EXISTS are values too, unless they are a condition of WHERE: see Semi.mark.
Whose rows may be joined or aggregated is decided in resolve/joins.py and resolve/per_unit.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dither.errors import QueryError
from dither.query.nodes import (
    Aggregate,
    Call,
    Column,
    Compute,
    Expression,
    Filter,
    Join,
    Literal,
    Named,
    PerUnit,
    Relation,
    Scalar,
    Semi,
    Span,
    words_of,
)
from dither.query.sql.aggregates import Grouping, has_aggregate, is_aggregate
from dither.query.sql.expressions import expression
from dither.query.sql.gate import Narrow
from dither.query.sql.names import Field, Scope, Source, candidates, matching, name_of, only, place, refuse
from dither.query.sql.tables import Context, Pair, check_below, named_table
from dither.text import did_you_mean, folded, sql_name

SUBQUERY = "subquery"


@dataclass(frozen=True)
class Partners:
    """The rows of IN or EXISTS, the pairs that equate them with the outer row, and for IN the pair (value, list item)."""

    rows: Relation
    pairs: tuple[Pair, ...]
    listed: Pair | None = None
    span: Span = field(default=None, compare=False)

    def mark(self, context: Context) -> Column:
        """Returns the column that says whether there is a partner, or for IN whether the value is in the list."""
        name, words = ("exists", "EXISTS (SELECT ...)") if self.listed is None else ("in", "IN (SELECT ...)")
        return Column(f"{context.alias()}.{name}", span=self.span, words=words)


def is_nested(node: exp.Expr) -> bool:
    """Returns whether a node is IN or EXISTS with a subquery."""
    return isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None)


def partners(node: exp.Expr, scope: Scope, context: Context) -> Partners:
    """Reads IN or EXISTS; `scope` is the outer scope, with the subqueries left of IN."""
    if isinstance(node, exp.In):
        only(scope, node, "this query", "IN")
        if isinstance(node.this, exp.Tuple):
            what = f"IN (SELECT ...) looks for one value, and these are {len(node.this.expressions)}."
            raise refuse(scope, node, what, "write EXISTS (SELECT 1 FROM ... WHERE ...), with each equality joined by AND.")
        return _read_in(node, scope, context)
    only(scope, node, "this", "EXISTS")
    return _read_exists(node, scope, context)


def _read_in(node: exp.In, scope: Scope, context: Context) -> Partners:
    query, span = node.args["query"], place(scope.text, node)
    select = query.this if isinstance(query, exp.Subquery) and not query.args.get("with_") else query
    if isinstance(select, exp.Select) and select.args.get("distinct"):
        query = select = _without_distinct(select, scope)
    if isinstance(select, exp.Select) and is_plain(select):
        item = select.expressions[0].unalias()
        rows = context.inner(select, [item], scope, context)
        pair = expression(node.this, scope), expression(item, rows.scope.at("in SELECT"))
        return Partners(rows.source.relation, rows.pairs, pair, span)
    other = context.subquery(query, context, SUBQUERY)
    if len(other.fields) != 1:
        raise refuse(scope, node, "The subquery of IN must have just one column.", "select one column.")
    read = expression(node.this, scope)
    relation = _told(other.relation, within_person(select, read)) if isinstance(select, exp.Select) else other.relation
    return Partners(relation, (), (read, Column(other.fields[0].name)), span)


def _told(relation: Relation, within: str) -> Relation:
    """Tells the aggregation of a subquery what to write instead of it, for its refusal."""
    if isinstance(relation, PerUnit):
        return replace(relation, within=within)
    return replace(relation, source=_told(relation.source, within)) if isinstance(relation, (Compute, Filter)) else relation


def within_person(select: exp.Select, value: Expression) -> str:
    """Returns v.k IN (SELECT k FROM t GROUP BY k HAVING SUM(x) > 2) for the rows of one person, or "" for other forms:

    (SELECT SUM(x) FROM t AS b WHERE b.{unit} = v.{unit} AND b.k = v.k) > 2
    """
    clauses = {key for key, value in select.args.items() if value} - {"expressions", "from_", "where", "group", "having"}
    having, table = select.args.get("having"), select.args["from_"].this if select.args.get("from_") else None
    keys = select.args["group"].expressions if select.args.get("group") else []
    plain = len(keys) == 1 and isinstance(keys[0], exp.Column) and isinstance(value, Column) and not words_of(value)
    if clauses or having is None or not isinstance(table, exp.Table) or not plain or not isinstance(value, Column):
        return ""
    outer, _, column = value.name.partition(".")
    where = select.args.get("where")
    conditions = [f"b.{{unit}} = {outer}.{{unit}}", f"b.{keys[0].name} = {outer}.{column}"]
    conditions += [where.this.sql(dialect=Narrow)] if where is not None else []

    def own(part: exp.Expr) -> exp.Expr:
        if not is_aggregate(part):
            return part
        return exp.Var(this=f"(SELECT {part.sql(dialect=Narrow)} FROM {table.name} AS b WHERE {' AND '.join(conditions)})")

    text = having.this.transform(own).sql(dialect=Narrow)
    named = table.args.get("alias") is not None and table.alias in text
    return "" if named or len(text) > _LONGEST_FORM else text


def _without_distinct(select: exp.Select, scope: Scope) -> exp.Select:
    """Drops DISTINCT from a SELECT: IN and EXISTS do not depend on the number of equal rows."""
    only(scope, select.args["distinct"], "", "DISTINCT")
    select = select.copy()
    select.set("distinct", None)
    return select


def is_plain(select: exp.Select) -> bool:
    """Returns whether a SELECT is one expression over rows: no star, no aggregate, no further clause."""
    items = select.expressions
    clauses = {key for key, value in select.args.items() if value} - {"expressions", "from_", "joins", "where", "with_"}
    return len(items) == 1 and not clauses and items[0].find(exp.Star, exp.Window) is None and not has_aggregate(items[0])


def _read_exists(node: exp.Expr, scope: Scope, context: Context) -> Partners:
    select = node.this.this if isinstance(node.this, exp.Subquery) else node.this
    if not isinstance(select, exp.Select):
        raise refuse(scope, node, "EXISTS needs a plain SELECT.", "write EXISTS (SELECT 1 FROM ... WHERE ...).")
    if select.args.get("distinct"):
        select = _without_distinct(select, scope)
    only(scope, select, "expressions from_ joins where with_", "EXISTS")
    if any(has_aggregate(item) for item in select.expressions):
        raise refuse(scope, node, "EXISTS over an aggregate is always true.", "write EXISTS (SELECT 1 FROM ... WHERE ...).")
    rows = context.inner(select, [], scope, context)
    return Partners(rows.source.relation, rows.pairs, span=place(scope.text, node) or place(scope.text, select))


_LONGEST = 60  # the most characters of an expression in a fix
_LONGEST_FORM = 300  # and of a condition


@dataclass(frozen=True)
class ReadScalar:
    """A scalar subquery: its rows, the pairs that equate them with the outer row, its aggregates, its value over them."""

    rows: Relation
    pairs: tuple[Pair, ...]
    aggregates: tuple[Aggregate, ...]
    value: Expression
    span: Span = field(default=None, compare=False)


def with_values(
    source: Source, nodes: Sequence[exp.Expr], scope: Scope, context: Context, above: frozenset[int] = frozenset()
) -> tuple[Relation, Scope]:
    """Joins the subqueries of the nodes to the source. Returns the relation, and the scope with the subqueries' values.
    `above`: the ids of subqueries that are not about rows (public.py)."""
    relation, scope = _with_scalars(source, nodes, scope, context, above)
    marks: dict[Partners, Column] = {}  # equal subqueries are joined once
    for node in [part for each in nodes for part in _nested(each) if id(part) not in above]:
        other = partners(node, scope, context)
        if other not in marks:
            marks[other] = other.mark(context)
            relation = Semi(relation, other.rows, other.pairs, False, other.listed, marks[other].name, span=other.span)
        value = replace(marks[other], span=other.span)
        scope = replace(scope, values={**scope.values, id(node): value})
    return relation, scope


def _nested(node: exp.Expr) -> list[exp.Expr]:
    """Returns the IN and EXISTS with a subquery in a node; those left of an IN come before it."""
    if isinstance(node, exp.Subquery):
        return []
    if is_nested(node):
        return [node] if isinstance(node, exp.Exists) else [*_nested(node.this), node]
    return [nested for part in node.iter_expressions() for nested in _nested(part)]


def _with_scalars(
    source: Source, nodes: Sequence[exp.Expr], scope: Scope, context: Context, above: frozenset[int]
) -> tuple[Relation, Scope]:
    subqueries = [subquery for node in nodes for subquery in _subqueries(node) if id(subquery) not in above]
    if not subqueries:
        return source.relation, scope
    relation = source.relation
    values: dict[ReadScalar, Expression] = {}  # equal subqueries are joined once
    by_id: dict[int, Expression] = {}
    alone: set[int] = set()
    for node in subqueries:
        scalar = read_scalar(node, scope, context)
        if scalar not in values:
            relation, values[scalar] = _join_scalar(relation, scalar, context.alias())
        by_id[id(node)] = values[scalar]
        alone |= set() if scalar.pairs else {id(node)}
    return relation, replace(scope, values={**scope.values, **by_id}, alone=scope.alone | alone)


def _subqueries(node: exp.Expr) -> list[exp.Subquery]:
    """Returns the scalar subqueries of a node, without those of IN and EXISTS."""
    if isinstance(node, exp.Subquery):
        return [node]
    if is_nested(node):
        return [] if isinstance(node, exp.Exists) else _subqueries(node.this)
    return [subquery for part in node.iter_expressions() for subquery in _subqueries(part)]


def read_scalar(node: exp.Subquery, scope: Scope, context: Context) -> ReadScalar:
    """Reads a subquery that is one aggregate."""
    select = _one_aggregate(node, context)
    item = select.expressions[0].unalias()
    rows = context.inner(select, [item], scope, context)
    grouping = Grouping(rows.scope.at("in SELECT"), per_unit=True)
    value = grouping.above(item, "in SELECT", False)
    return ReadScalar(rows.source.relation, rows.pairs, tuple(grouping.aggregates), value, place(context.text, node))


def _one_aggregate(node: exp.Subquery, context: Context) -> exp.Select:
    inner: exp.Expr = node
    while isinstance(inner, exp.Subquery):
        only(context.scope, inner, "this", "A subquery that stands for a value")
        inner = inner.this
    if not isinstance(inner, exp.Select):
        what = "A subquery that stands for a value is one SELECT."
        raise refuse(context.scope, node, what, "put UNION ALL into its FROM: (SELECT MAX(x) FROM (... UNION ALL ...) t).")
    wrong = _not_one_value(inner)
    if wrong is not None:
        raise refuse(context.scope, node, f"A subquery that stands for a value is one aggregate; {wrong[0]}.", wrong[1])
    check_below(inner, context)
    return inner


def _not_one_value(node: exp.Select) -> tuple[str, str] | None:
    """Returns why a subquery is not one aggregate, and the fix; None if it is."""
    clauses = (("group", "GROUP BY"), ("having", "HAVING"), ("distinct", "DISTINCT"), ("limit", "LIMIT"), ("order", "ORDER BY"))
    written = [word for clause, word in clauses if node.args.get(clause)]
    if len(node.expressions) != 1:
        return f"this selects {len(node.expressions)} columns", "select one, and write a second subquery for another."
    item = node.expressions[0].unalias()
    if not node.args.get("from_") and not has_aggregate(item):
        shown = f": {item.sql()}" if len(item.sql()) <= _LONGEST else ""
        return "this reads no table", f"write the value itself{shown}."
    without = f"leave {' and '.join(written)} out" if written else ""
    if not has_aggregate(item):
        shown = item.sql() if not isinstance(item, exp.Star) and len(item.sql()) <= _LONGEST else "x"
        both = f"{without} and " if without else ""
        return "this selects rows" + (f" with {written[0]}" if written else ""), f"{both}write (SELECT MAX({shown}) ...)."
    if set(written) & {"GROUP BY", "HAVING", "DISTINCT"}:
        other = "a condition on an aggregate is a second subquery, as in (SELECT COUNT(*) ...) > 3"
        fix = f"{without}; {other if 'HAVING' in written else 'conditions on its rows go into its WHERE'}."
        return f"this has {' and '.join(written)}", fix
    return None


def _join_scalar(relation: Relation, scalar: ReadScalar, alias: str) -> tuple[Relation, Expression]:
    joined = Join(relation, scalar.rows, scalar.pairs, "left", Scalar(alias, scalar.aggregates), span=scalar.span)
    return joined, _over(scalar.value, alias, {each.name: each for each in scalar.aggregates})


def _over(value: Expression, alias: str, aggregates: Mapping[str, Aggregate]) -> Expression:
    """Returns the subquery's output over the joined columns; a missing count is 0."""
    if isinstance(value, Column):
        aggregate = aggregates[value.name]
        words = f"(SELECT {_words(aggregate)} ...)"
        column = Column(f"{alias}.{value.name}", span=value.span, words=words)
        counts = aggregate.function in ("count", "count_distinct")
        return Call("coalesce", (column, Literal(0)), span=value.span, words=words) if counts else column
    if isinstance(value, Call):
        return replace(value, arguments=tuple(_over(argument, alias, aggregates) for argument in value.arguments))
    return value


def _words(node: Aggregate) -> str:
    """Shows an aggregate: SUM(cost), COUNT(DISTINCT kind), with "..." for what is not a column."""
    inner = node.argument.name.rsplit(".", 1)[-1] if isinstance(node.argument, Column) and node.where is None else "..."
    return f"COUNT(DISTINCT {inner})" if node.function == "count_distinct" else f"{node.function.upper()}({inner})"


def join(left: Source, node: exp.Expr, context: Context) -> Source:
    """Reads one JOIN; RIGHT JOIN is LEFT JOIN with the sides swapped."""
    scope = context.scope
    only(scope, node, "this on using side kind", "JOIN")
    side, kind = str(node.args.get("side") or "").upper(), str(node.args.get("kind") or "").upper()
    if kind == "CROSS":
        fix = "write JOIN ... ON with the columns that must be equal."
        raise refuse(scope, node.this, "CROSS JOIN pairs everyone with everyone.", fix)
    if side not in ("", "LEFT", "RIGHT", "FULL") or kind not in ("", "INNER", "OUTER"):
        raise refuse(scope, node, f"{side or kind} JOIN is not supported.", "write JOIN, LEFT JOIN, RIGHT JOIN or FULL JOIN.")
    if kind == "OUTER" and not side:
        what = "An outer join keeps the left side, the right side or both."
        raise refuse(scope, node.this, what, "write LEFT JOIN, RIGHT JOIN or FULL JOIN.")
    right = named_table(node.this, context)
    if {folded(each.alias) for each in left.fields} & {folded(each.alias) for each in right.fields}:
        raise refuse(scope, node.this, "Two tables of FROM have the same name.", "give one an alias: JOIN visits AS v.")
    if node.args.get("using"):
        if node.args.get("on") is not None:
            raise refuse(scope, node, "A join has ON or USING, not both.", "leave one out.")
        return _using(left, right, node, side, context)
    if node.args.get("on") is None:
        raise refuse(scope, node.this, f"{side or kind} JOIN needs ON or USING.", "write JOIN ... ON a.x = b.x.")
    return _on(left, right, node, side, context)


def _using(left: Source, right: Source, node: exp.Expr, side: str, context: Context) -> Source:
    pairs: list[Pair] = []
    hidden: set[str] = set()
    for each in node.args["using"]:
        name, quoted = name_of(context.scope, each)
        sides = [matching(name, quoted, _visible(part), lambda item: item.column) for part in (left, right)]
        if len(sides[0]) != 1 or len(sides[1]) != 1:
            both = {item.column for item in _visible(left)} & {item.column for item in _visible(right)}
            near = did_you_mean(name, both - {name}, show=sql_name)
            what = f"USING needs {name} once on either side"
            what += ", and there is no such column." if not any(sides) else "." if all(sides) else ", and only one has it."
            raise refuse(context.scope, each, what, f"{near}write ON with both columns.")
        span = place(context.text, each)
        pairs.append((Column(sides[0][0].name, span=span), Column(sides[1][0].name, span=span)))
        hidden |= {sides[0][0].name} if side in ("RIGHT", "FULL") else set()
        hidden |= {sides[1][0].name} if side != "RIGHT" else set()
    joined = _joined(left, right, tuple(pairs), side, place(context.text, node))
    fields = tuple(replace(item, hidden=item.hidden or item.name in hidden) for item in joined.fields)
    return _merged(Source(joined.relation, fields), pairs) if side == "FULL" else Source(joined.relation, fields)


def _merged(joined: Source, pairs: Sequence[Pair]) -> Source:
    """Adds the columns of USING to a FULL JOIN: the value of the side that has one."""
    columns = [Named(item.name, Column(item.name)) for item in joined.fields]
    fields = list(joined.fields)
    by_name = {item.name: item for item in joined.fields}
    for a, b in pairs:
        if isinstance(a, Column) and isinstance(b, Column):
            one, two = by_name[a.name], by_name[b.name]
            alias = f"{one.alias}+{two.alias}"
            columns.append(Named(f"{alias}.{one.column}", Call("coalesce", (a, b), span=a.span)))
            fields.insert(fields.index(one), Field(alias, one.column, columns[-1].name))
    return Source(Compute(joined.relation, tuple(columns)), tuple(fields))


def _visible(part: Source) -> list[Field]:
    return [item for item in part.fields if not item.hidden]


def _joined(left: Source, right: Source, pairs: tuple[Pair, ...], side: str, span: tuple[int, int] | None) -> Source:
    fields = left.fields + right.fields
    if side == "RIGHT":
        swapped = tuple((b, a) for a, b in pairs)
        return Source(Join(right.relation, left.relation, swapped, "left", span=span), fields)
    kind = side.lower() or "inner"
    return Source(Join(left.relation, right.relation, pairs, kind, span=span), fields)


def _on(left: Source, right: Source, node: exp.Expr, side: str, context: Context) -> Source:
    both = Scope(context.text, left.fields + right.fields, "in ON")
    pairs: list[Pair] = []
    rest: list[Expression] = []
    nested: list[exp.Expr] = []
    for part in conjuncts(node.args["on"]):
        if part.find(exp.Select) is not None:
            nested.append(_check_inner(part, side, both))
            continue
        pair = equality(part, Scope(context.text, left.fields, "in ON"), Scope(context.text, right.fields, "in ON"), both)
        if pair is not None:
            pairs.append(pair)
            continue
        read = expression(part, both)
        sides = _sides(part, both, left)
        if sides == {"right"} and side in ("", "LEFT"):
            right = Source(Filter(right.relation, read), right.fields)
        elif sides == {"left"} and side in ("", "RIGHT"):
            left = Source(Filter(left.relation, read), left.fields)
        elif not side:
            rest.append(read)
        else:
            raise _outer_filter(part, side, both)
    if not pairs:
        raise refuse(both, node.args["on"], "A join needs at least one equality between its two sides.", "write ON a.x = b.x.")
    joined = _joined(left, right, tuple(pairs), side, place(context.text, node.args["on"]))
    relation, filled = with_values(joined, nested, both, context)
    for condition in (*rest, *(expression(part, filled) for part in nested)):
        relation = Filter(relation, condition)
    return Source(relation, joined.fields)


def _outer_filter(part: exp.Expr, side: str, both: Scope) -> QueryError:
    if side == "FULL":
        what = "A FULL JOIN equates columns, and nothing else."
        return refuse(both, part, what, "filter one side in a subquery: FULL JOIN (SELECT ... FROM ... WHERE ...) v ON ...")
    what = "An outer join may equate columns, or filter the side that may be missing."
    return refuse(both, part, what, "move it to WHERE.")


def _check_inner(part: exp.Expr, side: str, both: Scope) -> exp.Expr:
    """Refuses a subquery in ON of an outer join; with an inner join it filters the joined rows."""
    if side:
        what = "A subquery cannot stand in ON of an outer join."
        raise refuse(
            both, part, what, "filter the side that may be missing: LEFT JOIN (SELECT ... FROM ... WHERE ...) v ON ..."
        )
    return part


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """Returns the conditions joined by AND, without parentheses."""
    if isinstance(node, exp.Paren):
        return conjuncts(node.this)
    if isinstance(node, exp.And):
        return conjuncts(node.this) + conjuncts(node.expression)
    return [node]


def equality(node: exp.Expr, left: Scope, right: Scope, both: Scope) -> Pair | None:
    """Returns (left expression, right expression) if the node equates one of each side."""
    if not isinstance(node, exp.EQ):
        return None
    for a, b in ((node.this, node.expression), (node.expression, node.this)):
        if _all_in(a, left, both) and _all_in(b, right, both):
            return expression(a, left), expression(b, right)
    return None


def _all_in(node: exp.Expr, scope: Scope, both: Scope) -> bool:
    columns = list(node.find_all(exp.Column))
    names = {field.name for field in scope.fields}
    choices = [candidates(each, both) for each in columns if not isinstance(each.this, exp.Star)]
    return bool(columns) and all(len(fields) == 1 and fields[0].name in names for fields in choices)


def _sides(node: exp.Expr, both: Scope, left: Source) -> set[str]:
    names = {field.name for field in left.fields}
    choices = [candidates(each, both) for each in node.find_all(exp.Column) if not isinstance(each.this, exp.Star)]
    return {"left" if field.name in names else "right" for fields in choices for field in fields}
