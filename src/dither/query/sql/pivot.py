"""Reads PIVOT: one column of the answer for each value of a column of a noisy table.

    PIVOT (SELECT region, sex, COUNT(*) AS n FROM people GROUP BY region, sex) ON sex USING SUM(n) GROUP BY region
    SELECT * FROM (SELECT region, sex, COUNT(*) AS n ...) PIVOT (SUM(n) FOR sex IN ('f', 'm'))
    PIVOT people ON sex USING COUNT(*) GROUP BY region

The values are those of IN, or the public values of the key: the columns of an answer never depend on rows. A PIVOT of a private
table is a question by both keys, and a PIVOT of its noisy table. Names are those that DuckDB gives.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from sqlglot import exp

from dither.catalog.values import Catalog, Key
from dither.query.nodes import Across, Call, Column, Expression, Literal, Named, Outer, Query
from dither.query.resolve.relations import resolve
from dither.query.sql.expressions import expression
from dither.query.sql.names import Scope, only, refuse
from dither.query.sql.subqueries import output_name
from dither.query.sql.windows import is_fold, read_call
from dither.query.union import Results
from dither.text import folded

_FIX = "write PIVOT (SELECT k, x, COUNT(*) AS n ... GROUP BY k, x) ON x USING SUM(n) GROUP BY k."


def pivot(node: exp.Expr, inner: Query | Results, scope: Scope, catalog: Catalog) -> Outer:
    """Reads a PIVOT of a noisy table, whose columns `scope` has."""
    only(scope, node, "this expressions using group fields alias columns pivot_column_naming with_", "PIVOT")
    statement = not node.args.get("fields")
    ons = node.expressions if statement else node.args["fields"]
    folds = [output_name(each, scope) for each in (node.args.get("using") or () if statement else node.expressions)]
    if len(ons) != 1 or not folds or not all(is_fold(each) for _, each in folds):
        raise refuse(scope, node, "PIVOT takes one column and at least one aggregate.", _FIX)
    on = ons[0].this if isinstance(ons[0], exp.In) else ons[0]
    column = expression(on, scope)
    values = _listed(ons[0], scope) if isinstance(ons[0], exp.In) else _public(column, inner, on, scope, catalog)
    read = [
        (name, written, read_call(written, scope, lambda each: expression(each, scope), over=False)) for name, written in folds
    ]
    keys = _keys(node, column, [each for _, _, each in read], scope)
    across = [
        _cell(f"{label}{_ending(name, written, len(read))}", each, column, value)
        for label, value in values
        for name, written, each in read
    ]
    names = [folded(name) for name in ([each.name for each in keys] + [each.name for each in across])]
    if len(set(names)) < len(names):
        raise refuse(
            scope, node, "Two columns of PIVOT would have the same name.", "give the aggregates or values other names."
        )
    outputs = tuple(Named(each.name, Column(each.name)) for each in keys)
    outputs += tuple(Named(each.name, Column(each.name)) for each in across)
    return Outer(tuple(each.name for each in scope.fields), outputs, keys=tuple(keys), folds=tuple(across))


def _ending(name: str, written: exp.Expr, count: int) -> str:
    return f"_{name}" if name else f"_{written.sql().lower()}" if count > 1 else ""


def _cell(name: str, across: Across, column: Expression, value: Key) -> Across:
    """Returns the aggregate of the rows that have a value."""
    own: Expression = Call("eq", (column, Literal(value)), span=across.span)
    where = own if across.where is None else Call("and", (own, across.where), span=across.span)
    return Across(name, across.function, across.arguments, where, span=across.span)


def _keys(node: exp.Expr, column: Expression, folds: Sequence[Across], scope: Scope) -> list[Named]:
    """Returns the columns of GROUP BY; without it, those that neither ON nor an aggregate reads."""
    clause = node.args.get("group")
    if clause is not None:
        only(scope, clause, "expressions", "GROUP BY")
        read = [expression(each, scope) for each in clause.expressions]
        columns = {each.name: each.column for each in scope.fields}
        return [Named(columns[each.name] if isinstance(each, Column) else f"key_{i}", each) for i, each in enumerate(read, 1)]
    used = {each.name for each in (column, *(part for fold in folds for part in fold.arguments)) if isinstance(each, Column)}
    return [Named(each.column, Column(each.name)) for each in scope.fields if each.name not in used]


def _listed(node: exp.In, scope: Scope) -> list[tuple[str, Key]]:
    """Returns the values of IN with their names."""
    only(scope, node, "this expressions", "IN")
    found: list[tuple[str, Key]] = []
    for item in node.expressions:
        alias = item.args.get("alias") if isinstance(item, exp.PivotAlias) else None
        value = expression(item.this if alias is not None else item, scope)
        if (
            not isinstance(value, Literal)
            or value.value is None
            or not isinstance(value.value, (bool, int, str, datetime.date))
        ):
            raise refuse(scope, item, "The values of PIVOT are constants.", "write FOR x IN ('a', 'b').")
        found.append((_label(value.value) if alias is None else str(alias.this), value.value))
    return found


def _public(
    column: Expression, inner: Query | Results, node: exp.Expr, scope: Scope, catalog: Catalog
) -> list[tuple[str, Key]]:
    """Returns the public values of the key that a column is."""
    found = None
    query = inner if isinstance(inner, Query) and not inner.above else None
    names = {each.name: each.expression for each in query.outputs} if query is not None else {}
    value = names.get(column.name) if isinstance(column, Column) else None
    places = {key.name: place for place, key in enumerate(query.keys)} if query is not None else {}
    if query is not None and isinstance(value, Column) and value.name in places:
        found = resolve(query, catalog, scope.text).operands().keys[places[value.name]].values
    if found is None:
        what = "The columns of PIVOT must be known before any row is read, and these values are not public."
        raise refuse(scope, node, what, "list them: ON x IN ('a', 'b').")
    named: list[tuple[str, Key]] = [(_label(each), each) for each in found if each is not None]
    return sorted(named, key=lambda pair: pair[0])


def _label(value: Key) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def by_both_keys(node: exp.Expr, scope: Scope) -> tuple[exp.Expr, exp.Expr]:
    """Returns the question by both keys for a PIVOT of a private table, and the PIVOT of its noisy table."""
    using, clause, ons = node.args.get("using") or [], node.args.get("group"), node.expressions
    if not using or len(ons) != 1 or clause is None:
        raise refuse(
            scope, node, "PIVOT of people's rows needs USING and GROUP BY.", "write PIVOT t ON x USING COUNT(*) GROUP BY k."
        )
    on = ons[0].this if isinstance(ons[0], exp.In) else ons[0]
    computed = [each for each in (on, *clause.expressions) if not isinstance(each, exp.Column)]
    if computed:
        what = "PIVOT of people's rows takes columns, and this is computed."
        raise refuse(
            scope, computed[0], what, "name it in a question inside: PIVOT (SELECT ... AS k, COUNT(*) AS n ...) ON ..."
        )
    keys, named = [on, *clause.expressions], [output_name(each, scope) for each in using]
    inside = [exp.alias_(each.copy(), f"using {i}", quoted=True) for i, (_, each) in enumerate(named)]
    select = exp.select(*(key.copy() for key in keys), *inside).from_(node.this.copy()).group_by(*(key.copy() for key in keys))
    outside = node.copy()
    picked = [exp.Anonymous(this="MAX", expressions=[exp.column(f"using {i}", quoted=True)]) for i in range(len(named))]
    several = len(named) > 1
    labels = [name or (each.sql().lower() if several else "") for name, each in named]
    outside.set(
        "using", [exp.alias_(each, name, quoted=True) if name else each for each, name in zip(picked, labels, strict=True)]
    )
    return select, outside
