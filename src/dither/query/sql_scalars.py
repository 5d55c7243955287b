"""Subqueries that stand for a value: one aggregate of a public table, or of the rows of the person that a row belongs to.

    age > (SELECT AVG(limit) FROM regions)        (SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id) > 3

The subquery's rows are aggregated to one row for each value of the column that is equated with the outer row (to one
row in all if none is), and that row is left-joined to the outer one. Where there is no such row, its aggregates are NULL
and its counts 0, as SQL has it. Whose rows may be aggregated is judged in resolve_per_unit.py and legality.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dither.query.names import Scope, Source, only, place, refuse
from dither.query.nodes import Call, Column, Compute, Expression, Join, Literal, Named, PerUnit, Relation
from dither.query.sql_aggregates import Grouping, has_aggregate
from dither.query.sql_joins import Pair
from dither.query.sql_tables import Context, check_below

_ONE = "#one"  # no name in a question begins so; resolve_per_unit.py knows a subquery that stands for a value by these two
_KEY = "#subquery key"


@dataclass(frozen=True)
class Inner:
    """The rows of a subquery, what names mean in its SELECT, and (outer, inner) expressions that must be equal."""

    source: Source
    scope: Scope
    pairs: tuple[Pair, ...]
    context: Context


Reader = Callable[[exp.Select, Scope, Context], Inner]


@dataclass(frozen=True)
class _Scalar:
    """An aggregation to one row per key, what the key equals outside, and the value over the aggregates' names."""

    rows: PerUnit
    outside: Expression
    value: Expression


def with_scalars(
    source: Source, nodes: Sequence[exp.Expr], scope: Scope, context: Context, read: Reader
) -> tuple[Relation, Scope]:
    """The source's relation with the subqueries of the nodes joined to it; the scope then says what each stands for."""
    subqueries = [found for node in nodes for found in _subqueries(node)]
    if not subqueries:
        return source.relation, scope
    own = Column(f"{_ONE} {len(context.scans)}")
    scalars, numbers = [], []
    for node in subqueries:
        scalars.append(_read(node, own, scope, context, read))
        numbers.append(len(context.scans))  # each subquery names a table, so no two here have the same number
    relation = source.relation
    if any(scalar.outside is own for scalar in scalars):
        named = (*(Named(field.name, Column(field.name)) for field in source.fields), Named(own.name, Literal(1)))
        relation = Compute(relation, named)
    values: dict[_Scalar, Expression] = {}  # the same subquery written twice is joined once
    for scalar, number in zip(scalars, numbers, strict=True):
        if scalar not in values:
            relation, values[scalar] = _joined(relation, scalar, f"#subquery {number}.")
    found = {id(node): values[scalar] for node, scalar in zip(subqueries, scalars, strict=True)}
    return relation, replace(scope, values={**scope.values, **found})


def _subqueries(node: exp.Expr) -> list[exp.Subquery]:
    """Those that stand for a value: not those of IN and EXISTS."""
    if isinstance(node, exp.Subquery):
        return [node]
    if isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None):
        return []
    return [found for part in node.iter_expressions() for found in _subqueries(part)]


def _read(node: exp.Subquery, own: Column, scope: Scope, context: Context, read: Reader) -> _Scalar:
    select = _one_aggregate(node, context)
    found = read(select, scope, context)
    if len(found.pairs) > 1:
        raise refuse(
            context.scope,
            node,
            "A subquery that stands for a value may equate one column with the outer question, and this equates more.",
            "equate the unit only, or join the table and aggregate outside.",
        )
    item = select.expressions[0].unalias()
    relation, filled = with_scalars(found.source, [item], found.scope, found.context, read)
    grouping = Grouping(filled.at("in SELECT"), per_unit=True)
    value = grouping.above(item, "in SELECT", False)
    outside, inside = found.pairs[0] if found.pairs else (own, Literal(1))
    key = Named(_KEY if found.pairs else _ONE, inside)
    span = place(context.text, node)
    return _Scalar(PerUnit(relation, (key,), tuple(grouping.aggregates), span=span), outside, value)


def _one_aggregate(node: exp.Subquery, context: Context) -> exp.Select:
    inner: exp.Expr = node
    while isinstance(inner, exp.Subquery):
        only(context.scope, inner, "this", "A subquery that stands for a value")
        inner = inner.this
    if not isinstance(inner, exp.Select) or not _is_one_value(inner):
        raise refuse(
            context.scope,
            node,
            "A subquery that stands for a value is one aggregate, without GROUP BY.",
            "write (SELECT MAX(x) FROM a public table), or per person: WHERE v.person_id = p.person_id; or join it.",
        )
    check_below(inner, context)
    return inner


def _is_one_value(node: exp.Select) -> bool:
    grouped = any(node.args.get(clause) for clause in ("group", "having", "distinct"))
    return len(node.expressions) == 1 and has_aggregate(node.expressions[0]) and not grouped


def _joined(relation: Relation, scalar: _Scalar, prefix: str) -> tuple[Relation, Expression]:
    rows, span = scalar.rows, scalar.rows.span
    key = rows.keys[0].name
    names = {each.name: f"{prefix}{each.name}" for each in rows.aggregates}
    columns = [Named(f"{prefix}{key}", Column(key)), *(Named(new, Column(old)) for old, new in names.items())]
    pair = scalar.outside, Column(f"{prefix}{key}", span=span)
    joined = Join(relation, Compute(rows, tuple(columns)), (pair,), "left", span=span)
    counts = frozenset(each.name for each in rows.aggregates if each.function in ("count", "count_distinct"))
    return joined, _over(scalar.value, names, counts)


def _over(value: Expression, names: Mapping[str, str], counts: frozenset[str]) -> Expression:
    """The subquery's output over the joined columns; a count that is missing is 0."""
    if isinstance(value, Column):
        column = replace(value, name=names[value.name])
        return Call("coalesce", (column, Literal(0)), span=value.span) if value.name in counts else column
    if isinstance(value, Call):
        return replace(value, arguments=tuple(_over(argument, names, counts) for argument in value.arguments))
    return value
