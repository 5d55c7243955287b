"""What IN (SELECT ...) and EXISTS (SELECT ...) look at. Whether they may is judged in legality.py.

Subqueries that stand for a value: one aggregate of a public table, or of the rows of the person that a row belongs to.

    age > (SELECT AVG(limit) FROM regions)        (SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id) > 3

Each is a Join with a `scalar`: its aggregates over the rows that are equated with the outer one. Where there is no such row
they are NULL, and counts 0, as SQL has it. Whose rows may be aggregated is judged in resolve_per_unit.py and legality.py.

IN and EXISTS stand for a value, too, wherever they are not a condition of WHERE on their own: see Semi.mark.

JOIN ... ON and USING: equalities become pairs, other conditions filters; of outer joins only what filters one side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dither.query.nodes import Aggregate, Call, Column, Expression, Filter, Join, Literal, Relation, Scalar, Semi, Span
from dither.query.sql.aggregates import Grouping, has_aggregate
from dither.query.sql.expressions import expression
from dither.query.sql.names import Field, Scope, Source, candidates, matching, only, place, refuse, spelled
from dither.query.sql.tables import Context, Pair, check_below, named_table
from dither.text import did_you_mean, folded

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


_LONGEST = 60  # letters of an expression that are shown


@dataclass(frozen=True)
class _Looked:
    """The rows that a subquery aggregates, what equates them with the outer row, its aggregates, and its value over them."""

    rows: Relation
    pairs: tuple[Pair, ...]
    aggregates: tuple[Aggregate, ...]
    value: Expression
    span: Span = field(default=None, compare=False)


def with_values(source: Source, nodes: Sequence[exp.Expr], scope: Scope, context: Context) -> tuple[Relation, Scope]:
    """The source's relation with the subqueries of the nodes joined to it; the scope then says what each stands for."""
    relation, scope = _with_scalars(source, nodes, scope, context)
    marks: dict[Partners, Column] = {}  # the same subquery written twice is looked at once
    for node in [found for each in nodes for found in _nested(each)]:
        asked = partners(node, scope, context)
        if asked not in marks:
            marks[asked] = asked.mark(context)
            relation = Semi(relation, asked.rows, asked.pairs, False, asked.listed, marks[asked].name, span=asked.span)
        value = replace(marks[asked], span=asked.span)
        scope = replace(scope, values={**scope.values, id(node): value})
    return relation, scope


def _nested(node: exp.Expr) -> list[exp.Expr]:
    """IN and EXISTS with a subquery, those that stand left of IN before it."""
    if isinstance(node, exp.Subquery):
        return []
    if is_nested(node):
        return [node] if isinstance(node, exp.Exists) else [*_nested(node.this), node]
    return [found for part in node.iter_expressions() for found in _nested(part)]


def _with_scalars(source: Source, nodes: Sequence[exp.Expr], scope: Scope, context: Context) -> tuple[Relation, Scope]:
    subqueries = [found for node in nodes for found in _subqueries(node)]
    if not subqueries:
        return source.relation, scope
    relation = source.relation
    values: dict[_Looked, Expression] = {}  # the same subquery written twice is joined once
    found: dict[int, Expression] = {}
    alone: set[int] = set()
    for node in subqueries:
        looked = _read(node, scope, context)
        if looked not in values:
            relation, values[looked] = _looked_up(relation, looked, context.alias())
        found[id(node)] = values[looked]
        alone |= set() if looked.pairs else {id(node)}
    return relation, replace(scope, values={**scope.values, **found}, alone=scope.alone | alone)


def _subqueries(node: exp.Expr) -> list[exp.Subquery]:
    """Those that are one aggregate: not those of IN and EXISTS."""
    if isinstance(node, exp.Subquery):
        return [node]
    if is_nested(node):
        return [] if isinstance(node, exp.Exists) else _subqueries(node.this)
    return [found for part in node.iter_expressions() for found in _subqueries(part)]


def _read(node: exp.Subquery, scope: Scope, context: Context) -> _Looked:
    select = _one_aggregate(node, context)
    item = select.expressions[0].unalias()
    found = context.inner(select, [item], scope, context)
    grouping = Grouping(found.scope.at("in SELECT"), per_unit=True)
    value = grouping.above(item, "in SELECT", False)
    return _Looked(found.source.relation, found.pairs, tuple(grouping.aggregates), value, place(context.text, node))


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
    """What keeps the subquery from being one aggregate, and what to write."""
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


def _looked_up(relation: Relation, looked: _Looked, alias: str) -> tuple[Relation, Expression]:
    joined = Join(relation, looked.rows, looked.pairs, "left", Scalar(alias, looked.aggregates), span=looked.span)
    return joined, _over(looked.value, alias, {each.name: each for each in looked.aggregates})


def _over(value: Expression, alias: str, aggregates: Mapping[str, Aggregate]) -> Expression:
    """The subquery's output over the joined columns; a count that is missing is 0."""
    if isinstance(value, Column):
        found = aggregates[value.name]
        words = f"(SELECT {_words(found)} ...)"
        column = Column(f"{alias}.{value.name}", span=value.span, words=words)
        counts = found.function in ("count", "count_distinct")
        return Call("coalesce", (column, Literal(0)), span=value.span, words=words) if counts else column
    if isinstance(value, Call):
        return replace(value, arguments=tuple(_over(argument, alias, aggregates) for argument in value.arguments))
    return value


def _words(found: Aggregate) -> str:
    """SUM(cost), COUNT(DISTINCT kind); "..." in place of what is no column."""
    inner = found.argument.name.rsplit(".", 1)[-1] if isinstance(found.argument, Column) and found.where is None else "..."
    return f"COUNT(DISTINCT {inner})" if found.function == "count_distinct" else f"{found.function.upper()}({inner})"


def joined_tables(node: exp.Select, context: Context) -> Source:
    """FROM and JOIN of one SELECT."""
    clause = node.args.get("from_")
    if clause is None:
        raise refuse(context.scope, node, "There is no FROM, so nothing is asked of a table.", "write SELECT ... FROM a table.")
    only(context.scope, clause, "this", "FROM")
    source = named_table(clause.this, context)
    for each in node.args.get("joins") or []:
        source = _join(source, each, context)
    return source


def _join(left: Source, node: exp.Expr, context: Context) -> Source:
    """One JOIN of FROM; RIGHT JOIN is LEFT JOIN with the sides changed over."""
    scope = context.scope
    only(scope, node, "this on using side kind", "JOIN")
    side, kind = str(node.args.get("side") or "").upper(), str(node.args.get("kind") or "").upper()
    if side not in ("", "LEFT", "RIGHT") or kind not in ("", "INNER", "OUTER"):
        raise refuse(scope, node, f"{side or kind} JOIN is not supported.", "write JOIN, LEFT JOIN or RIGHT JOIN.")
    if kind == "OUTER" and not side:
        raise refuse(scope, node.this, "An outer join keeps the left or the right side.", "write LEFT JOIN or RIGHT JOIN.")
    right = named_table(node.this, context)
    if {folded(each.alias) for each in left.fields} & {folded(each.alias) for each in right.fields}:
        raise refuse(scope, node.this, "Two tables of FROM have the same name.", "give one an alias: JOIN visits AS v.")
    if node.args.get("using"):
        if node.args.get("on") is not None:
            raise refuse(scope, node, "A join has ON or USING, not both.", "leave one out.")
        return _using(left, right, node, side, context)
    if node.args.get("on") is None:
        raise refuse(scope, node.this, "This pairs every row with every row.", "write JOIN ... ON a.x = b.x.")
    return _on(left, right, node, side, context)


def _using(left: Source, right: Source, node: exp.Expr, side: str, context: Context) -> Source:
    pairs: list[Pair] = []
    hidden: set[str] = set()
    for each in node.args["using"]:
        name, quoted = spelled(context.scope, each)
        found = [matching(name, quoted, _visible(part), lambda item: item.column) for part in (left, right)]
        if len(found[0]) != 1 or len(found[1]) != 1:
            both = {item.column for item in _visible(left)} & {item.column for item in _visible(right)}
            fix = f"{did_you_mean(name, both - {name})}write ON with both columns."
            raise refuse(context.scope, each, f"USING needs {name} once on either side.", fix)
        span = place(context.text, each)
        pairs.append((Column(found[0][0].name, span=span), Column(found[1][0].name, span=span)))
        hidden.add(found[0][0].name if side == "RIGHT" else found[1][0].name)
    joined = _joined(left, right, tuple(pairs), side, place(context.text, node))
    fields = tuple(replace(item, hidden=item.hidden or item.name in hidden) for item in joined.fields)
    return Source(joined.relation, fields)


def _visible(part: Source) -> list[Field]:
    return [item for item in part.fields if not item.hidden]


def _joined(left: Source, right: Source, pairs: tuple[Pair, ...], side: str, span: tuple[int, int] | None) -> Source:
    fields = left.fields + right.fields
    if side == "RIGHT":
        turned = tuple((b, a) for a, b in pairs)
        return Source(Join(right.relation, left.relation, turned, "left", span=span), fields)
    return Source(Join(left.relation, right.relation, pairs, "left" if side else "inner", span=span), fields)


def _on(left: Source, right: Source, node: exp.Expr, side: str, context: Context) -> Source:
    both = Scope(context.text, left.fields + right.fields, "in ON")
    pairs: list[Pair] = []
    rest: list[Expression] = []
    nested: list[exp.Expr] = []
    for part in conjuncts(node.args["on"]):
        if part.find(exp.Select) is not None:
            nested.append(_beside_inner(part, side, both))
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
            raise refuse(
                both,
                part,
                "An outer join may equate columns, or filter the side that may be missing.",
                "move it to WHERE.",
            )
    if not pairs:
        raise refuse(both, node.args["on"], "A join needs at least one equality between its two sides.", "write ON a.x = b.x.")
    joined = _joined(left, right, tuple(pairs), side, place(context.text, node.args["on"]))
    relation, filled = with_values(joined, nested, both, context)
    for condition in (*rest, *(expression(part, filled) for part in nested)):
        relation = Filter(relation, condition)
    return Source(relation, joined.fields)


def _beside_inner(part: exp.Expr, side: str, both: Scope) -> exp.Expr:
    """A condition with a subquery: it filters what an inner join finds."""
    if side:
        what = "A subquery cannot stand in ON of an outer join."
        raise refuse(
            both, part, what, "filter the side that may be missing: LEFT JOIN (SELECT ... FROM ... WHERE ...) v ON ..."
        )
    return part


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND joins, parentheses opened."""
    if isinstance(node, exp.Paren):
        return conjuncts(node.this)
    if isinstance(node, exp.And):
        return conjuncts(node.this) + conjuncts(node.expression)
    return [node]


def equality(node: exp.Expr, left: Scope, right: Scope, both: Scope) -> Pair | None:
    """(left expression, right expression) if the node equates one of each side."""
    if not isinstance(node, exp.EQ):
        return None
    for a, b in ((node.this, node.expression), (node.expression, node.this)):
        if _all_in(a, left, both) and _all_in(b, right, both):
            return expression(a, left), expression(b, right)
    return None


def _all_in(node: exp.Expr, scope: Scope, both: Scope) -> bool:
    columns = list(node.find_all(exp.Column))
    names = {field.name for field in scope.fields}
    found = [candidates(each, both) for each in columns if not isinstance(each.this, exp.Star)]
    return bool(columns) and all(len(fields) == 1 and fields[0].name in names for fields in found)


def _sides(node: exp.Expr, both: Scope, left: Source) -> set[str]:
    names = {field.name for field in left.fields}
    found = [candidates(each, both) for each in node.find_all(exp.Column) if not isinstance(each.this, exp.Star)]
    return {"left" if field.name in names else "right" for fields in found for field in fields}
