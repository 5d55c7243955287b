"""Subqueries that stand for a value: one aggregate of a public table, or of the rows of the person that a row belongs to.

    age > (SELECT AVG(limit) FROM regions)        (SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id) > 3

Each is a Join with a `scalar`: its aggregates over the rows that are equated with the outer one. Where there is no such row
they are NULL, and counts 0, as SQL has it. Whose rows may be aggregated is judged in resolve_per_unit.py and legality.py.

IN and EXISTS stand for a value, too, wherever they are not a condition of WHERE on their own: see Semi.mark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dither.query.names import Scope, Source, only, place, refuse
from dither.query.nodes import Aggregate, Call, Column, Expression, Join, Literal, Relation, Scalar, Semi, Span
from dither.query.sql_aggregates import Grouping, has_aggregate
from dither.query.sql_partners import Partners, is_nested, partners
from dither.query.sql_tables import Context, Pair, check_below

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
            relation, values[looked] = _joined(relation, looked, context.alias())
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


def _joined(relation: Relation, looked: _Looked, alias: str) -> tuple[Relation, Expression]:
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
