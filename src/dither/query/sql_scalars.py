"""Subqueries that stand for a value: one aggregate of a public table, or of the rows of the person that a row belongs to.

    age > (SELECT AVG(limit) FROM regions)        (SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id) > 3

The subquery's rows are aggregated to one row for each value of the columns that are equated with the outer row (to one
row in all if none is), and that row is left-joined to the outer one. Where there is no such row, its aggregates are NULL
and its counts 0, as SQL has it. Whose rows may be aggregated is judged in resolve_per_unit.py and legality.py.

IN and EXISTS stand for a value, too, wherever they are not a condition of WHERE on their own: see Semi.mark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dither.query.names import Scope, Source, only, place, refuse
from dither.query.nodes import Call, Column, Compute, Expression, Join, Literal, Named, PerUnit, Relation, Semi
from dither.query.sql_aggregates import Grouping, has_aggregate
from dither.query.sql_partners import Partners, is_nested, partners
from dither.query.sql_tables import Context, check_below

_ONE = "#one"  # no name in a question begins so; resolve_per_unit.py knows a subquery that stands for a value by these two
_KEY = "#subquery key"
_LONGEST = 60  # letters of an expression that are shown


@dataclass(frozen=True)
class _Scalar:
    """An aggregation to one row per value of its keys, what these equal outside, and the value over the aggregates' names."""

    rows: PerUnit
    outside: tuple[Expression, ...]
    value: Expression


def with_values(source: Source, nodes: Sequence[exp.Expr], scope: Scope, context: Context) -> tuple[Relation, Scope]:
    """The source's relation with the subqueries of the nodes joined to it; the scope then says what each stands for."""
    relation, scope = _with_scalars(source, nodes, scope, context)
    names: dict[Partners, str] = {}  # the same subquery written twice is looked at once
    for node in [found for each in nodes for found in _nested(each)]:
        asked = partners(node, scope, context)
        if asked not in names:
            word = "exists" if asked.listed is None else "in"
            names[asked] = f"#subquery {len(context.scans)}.{word}"  # each names a table, so no two have the same number
            relation = Semi(relation, asked.rows, asked.pairs, False, asked.listed, names[asked], span=asked.span)
        value = Column(names[asked], span=asked.span)
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
    own = Column(f"{_ONE} {len(context.scans)}")
    scalars, numbers = [], []
    for node in subqueries:
        scalars.append(_read(node, own, scope, context))
        numbers.append(len(context.scans))
    relation = source.relation
    if any(own in scalar.outside for scalar in scalars):
        named = (*(Named(field.name, Column(field.name)) for field in source.fields), Named(own.name, Literal(1)))
        relation = Compute(relation, named)
    values: dict[_Scalar, Expression] = {}  # the same subquery written twice is joined once
    for scalar, number in zip(scalars, numbers, strict=True):
        if scalar not in values:
            relation, values[scalar] = _joined(relation, scalar, f"#subquery {number}.")
    found = {id(node): values[scalar] for node, scalar in zip(subqueries, scalars, strict=True)}
    alone = {id(node) for node, scalar in zip(subqueries, scalars, strict=True) if own in scalar.outside}
    return relation, replace(scope, values={**scope.values, **found}, alone=scope.alone | alone)


def _subqueries(node: exp.Expr) -> list[exp.Subquery]:
    """Those that are one aggregate: not those of IN and EXISTS."""
    if isinstance(node, exp.Subquery):
        return [node]
    if is_nested(node):
        return [] if isinstance(node, exp.Exists) else _subqueries(node.this)
    return [found for part in node.iter_expressions() for found in _subqueries(part)]


def _read(node: exp.Subquery, own: Column, scope: Scope, context: Context) -> _Scalar:
    select = _one_aggregate(node, context)
    item = select.expressions[0].unalias()
    found = context.inner(select, [item], scope, context)
    grouping = Grouping(found.scope.at("in SELECT"), per_unit=True)
    value = grouping.above(item, "in SELECT", False)
    pairs = found.pairs or ((own, Literal(1)),)
    names = [_KEY, *(f"{_KEY} {number}" for number in range(2, len(pairs) + 1))] if found.pairs else [_ONE]
    keys = tuple(Named(name, inside) for name, (_, inside) in zip(names, pairs, strict=True))
    rows = PerUnit(found.source.relation, keys, tuple(grouping.aggregates), span=place(context.text, node))
    return _Scalar(rows, tuple(outside for outside, _ in pairs), value)


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


def _joined(relation: Relation, scalar: _Scalar, prefix: str) -> tuple[Relation, Expression]:
    rows, span = scalar.rows, scalar.rows.span
    keys = [f"{prefix}{key.name}" for key in rows.keys]
    names = {each.name: f"{prefix}{each.name}" for each in rows.aggregates}
    columns = [Named(new, Column(key.name)) for new, key in zip(keys, rows.keys, strict=True)]
    columns += [Named(new, Column(old)) for old, new in names.items()]
    pairs = tuple((outside, Column(key, span=span)) for outside, key in zip(scalar.outside, keys, strict=True))
    joined = Join(relation, Compute(rows, tuple(columns)), pairs, "left", span=span)
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
