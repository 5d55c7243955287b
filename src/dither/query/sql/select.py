"""Reads SQL text into a Query: the SELECT that aggregates people, with HAVING, QUALIFY, ORDER BY, LIMIT and OFFSET.

outer.py reads the SELECTs around it. `parse` reads names and structure; resolve/ then decides whether the question may be
answered. Everything that is not on a list is refused: tokens in gate.py, expressions in expressions.py, relations in tables.py,
joins.py and subqueries.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from dither.catalog.values import Catalog
from dither.errors import QueryError
from dither.query.nodes import Column, Named, Outer, Query, grouping_mark
from dither.query.sql.aggregates import has_aggregate
from dither.query.sql.clauses import read_condition, read_limit, read_offset, read_order, read_outputs
from dither.query.sql.every import spell_out
from dither.query.sql.expressions import expression
from dither.query.sql.gate import Narrow, read, with_hint
from dither.query.sql.names import Scope, only, refuse
from dither.query.sql.outer import Names, read_question
from dither.query.sql.public import Public
from dither.query.sql.subqueries import group, new_context, output_name, rows
from dither.query.sql.tables import Context
from dither.query.sql.windows import Windows
from dither.query.union import Results

_LONGEST_FORM = 400  # the most characters of a whole question in a fix


def parse(text: str, catalog: Catalog, params: Mapping[str, Any] | None = None) -> Query:
    """Reads SQL text, with the values of its parameters, into a Query over the catalog's tables."""
    return _one(_read(text, catalog, params), text)


def parse_union(text: str, catalog: Catalog, params: Mapping[str, Any] | None = None) -> Results | None:
    """Reads SQL text that puts private results together; None if it does not."""
    if "union" not in text.lower():
        return None
    found = _read(text, catalog, params)
    return found if isinstance(found, Results) else None


def _read(text: str, catalog: Catalog, params: Mapping[str, Any] | None) -> Query | Results:
    """Reads a question: the SELECT that aggregates people, and those around it; or several, put together by UNION."""
    try:
        tree, _ = read(text, params)
    except QueryError as error:
        raise with_hint(error, text, [name for table in catalog.tables.values() for name in table.columns]) from None
    try:
        if "all" in text.lower():
            spell_out(tree)  # GROUP BY ALL
        return read_question(tree, Names(new_context(text, catalog)), private_select)
    except RecursionError:
        raise QueryError("The question is nested too deeply.", text=text, fix="ask more simply.") from None


def question(tree: exp.Expr, context: Context) -> Query:
    """Reads one question: the SELECT that aggregates people, and those around it."""
    return _one(read_question(tree, Names(context), private_select), context.text)


def _one(found: Query | Results, text: str) -> Query:
    if isinstance(found, Results):
        raise QueryError("Results that UNION puts together are several questions.", text=text, fix="ask its parts one by one.")
    return found


def private_select(tree: exp.Expr, context: Context) -> Query:
    """Reads the SELECT whose aggregates are released with noise."""
    scope = context.scope
    if not isinstance(tree, exp.Select):
        raise refuse(scope, tree, "Only a SELECT is answered.", "ask with SELECT.")
    tree = _spread_histogram(tree)
    lists, instead = _is_list(tree), ""
    if lists:
        tree, instead = _grouped(tree, scope), _counted(tree)
    elif tree.args.get("distinct"):
        raise refuse(scope, tree, "SELECT DISTINCT has no meaning here.", "leave DISTINCT out: groups are distinct.")
    only(scope, tree, "expressions from_ joins where group having order limit offset with_ qualify windows", "SELECT")
    source, here = rows(tree, context, noisy=True)
    if not lists and not any(map(has_aggregate, _above(tree))) and not tree.args.get("having"):
        raise _no_aggregate(tree, here)
    grouping = group(tree, here, per_unit=False)
    grouping.windows, grouping.public = Windows(tree, here), Public(context)
    read_outputs(tree, grouping)
    condition = read_condition(tree, "having", grouping)
    qualify = read_condition(tree, "qualify", grouping)
    order = read_order(tree, grouping)
    if qualify is not None or tree.args.get("windows"):
        grouping.windows.check()
    limit, offset = read_limit(tree, here), read_offset(tree, here)
    if not grouping.aggregates and (not lists or grouping.sets or grouping.windows.found):
        raise _no_aggregate(tree, here)
    outputs, keys, aggregates = tuple(grouping.outputs), tuple(grouping.keys), tuple(grouping.aggregates)
    if not grouping.windows.found and not grouping.public.found:
        rest = (condition, order, limit, offset, tuple(grouping.sets), tuple(grouping.groupings))
        return Query(source.relation, keys, aggregates, outputs, *rest, instead=instead)
    sets, groupings, lookups = tuple(grouping.sets), tuple(grouping.groupings), tuple(grouping.public.found)
    if sets and lookups:
        what = "A subquery cannot stand beside several grouping sets."
        raise refuse(here, tree.args["group"], what, "ask with one GROUP BY, or leave it out.")
    names = (*(key.name for key in keys), *(each.name for each in aggregates), *map(grouping_mark, range(len(groupings))))
    above = Outer(
        names,
        outputs,
        where=condition if lookups else None,
        windows=tuple(grouping.windows.found),
        qualify=qualify,
        order=order,
        limit=limit,
        offset=offset,
        lookups=lookups,
    )
    columns = tuple(Named(name, Column(name)) for name in names)
    kept = None if lookups else condition
    return Query(
        source.relation, keys, aggregates, columns, kept, sets=sets, groupings=groupings, above=(above,), instead=instead
    )


def _spread_histogram(tree: exp.Select) -> exp.Select:
    """Rewrites SELECT HISTOGRAM(x) AS n FROM t as SELECT x, COUNT(*) AS n FROM t GROUP BY x: one row for each public value."""
    alone = [item for item in tree.expressions if _histogram(item) is not None]
    if len(alone) != 1 or any(has_aggregate(item) for item in tree.expressions):
        return tree
    tree = tree.copy()
    item = next(each for each in tree.expressions if _histogram(each) is not None)
    call = _histogram(item)
    if call is None:
        return tree
    count = exp.Anonymous(this="COUNT", expressions=[exp.Star()])
    count.meta.update(call.meta)
    name = exp.to_identifier(item.alias or "histogram")
    value: exp.Expr = call.expressions[0]
    clause = tree.args.get("group") or exp.Group(expressions=[])
    tree.set("group", exp.Group(expressions=[*clause.expressions, value.copy()]))
    place = tree.expressions.index(item)
    shown = value if isinstance(value, exp.Column) else exp.Alias(this=value, alias=exp.to_identifier("value"))
    new = [*tree.expressions[:place], shown, exp.Alias(this=count, alias=name), *tree.expressions[place + 1 :]]
    tree.set("expressions", new)
    return tree


def _histogram(item: exp.Expr) -> exp.Anonymous | None:
    """Returns HISTOGRAM(x) if the output is one."""
    call = item.unalias()
    called = isinstance(call, exp.Anonymous) and str(call.this).upper() == "HISTOGRAM" and len(call.expressions) == 1
    return call if called and isinstance(call, exp.Anonymous) else None


def _above(tree: exp.Select) -> list[exp.Expr]:
    """Returns what may have aggregates: SELECT, HAVING, QUALIFY and ORDER BY."""
    clauses = (tree.args.get(clause) for clause in ("having", "qualify", "order"))
    return [*tree.expressions, *(clause for clause in clauses if clause is not None)]


def _is_list(tree: exp.Select) -> bool:
    """Returns whether a SELECT only asks which groups there are: DISTINCT or GROUP BY, and no aggregate."""
    return bool(tree.args.get("distinct")) != bool(tree.args.get("group")) and not any(map(has_aggregate, _above(tree)))


def _grouped(tree: exp.Select, scope: Scope) -> exp.Select:
    """Returns SELECT DISTINCT as GROUP BY all that is selected."""
    distinct = tree.args.get("distinct")
    if distinct is None:
        return tree
    only(scope, distinct, "", "DISTINCT")
    if tree.is_star:
        raise refuse(scope, tree.expressions[0], "This asks for rows, and rows are never shown.", "name the columns to list.")
    positions = [exp.Literal.number(place + 1) for place in range(len(tree.expressions))]
    grouped = tree.copy()
    grouped.set("distinct", None)
    grouped.set("group", exp.Group(expressions=positions))
    return grouped


def _counted(tree: exp.Select) -> str:
    """Returns the private form of a list in SQL: the same groups with a count; "" if it is long."""
    counted = tree.copy()
    keys = [item.unalias() for item in tree.expressions]
    counted.set("distinct", None)
    counted.set("expressions", [*tree.expressions, exp.alias_(exp.Anonymous(this="COUNT", expressions=[exp.Star()]), "n")])
    if tree.args.get("group") is None:
        counted.set("group", exp.Group(expressions=keys))
    text = counted.sql(dialect=Narrow)
    return text if len(text) <= _LONGEST_FORM else ""


def _no_aggregate(tree: exp.Select, scope: Scope) -> QueryError:
    for item in tree.expressions:
        if item.find(exp.Anonymous) and item.find(exp.Select) is None:
            expression(output_name(item, scope)[1], scope)  # refuses unknown functions and those that show rows
    first = tree.expressions[0] if tree.expressions else tree
    return refuse(
        scope,
        first,
        "This asks for rows, and rows are never shown.",
        "ask for aggregates such as COUNT(*) or AVG(x).",
    )
