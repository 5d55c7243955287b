"""Reads the SELECTs around the one that aggregates people: everything they do is post-processing of its noisy table.

A SELECT in FROM or WITH is *noisy* if it aggregates across people: if it has aggregates and does not group by the unit, or if
it reads a noisy SELECT itself. (One that groups by the unit is exact and below: subqueries.py.) The SELECT that reads noisy
ones alone becomes an `Outer`. Several noisy SELECTs of one row each over the same rows become one question, with FILTER.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dither.errors import QueryError
from dither.query.nodes import Across, Aggregate, Call, Column, Expression, Filter, Literal, Named, Outer, Query, Relation
from dither.query.resolve.relations import aggregates_people
from dither.query.sql.aggregates import Grouping, has_aggregate
from dither.query.sql.clauses import read_condition, read_limit, read_offset, read_order, read_outputs
from dither.query.sql.expressions import expression
from dither.query.sql.names import Field, Scope, matching, name_of, only, place, refuse
from dither.query.sql.pivot import by_both_keys, pivot
from dither.query.sql.public import Public
from dither.query.sql.subqueries import group, output_name, rows, star_fields
from dither.query.sql.tables import Context, cte_name
from dither.query.sql.union import read_results
from dither.query.sql.windows import Windows, is_fold, read_call
from dither.query.union import Results, columns_of
from dither.text import folded

Private = Callable[[exp.Expr, Context], Query]  # reads the SELECT that aggregates people
Read = Query | Results  # what is read: a question, or results that UNION puts together
_SHAPE = "expressions from_ joins where group having qualify windows order limit offset with_ distinct"


@dataclass(frozen=True)
class Names:
    """What a SELECT may name in FROM: tables and exact CTEs (`context`), and noisy CTEs with what they may name."""

    context: Context
    noisy: Mapping[str, tuple[exp.Expr, Names]] = field(default_factory=dict)

    def with_ctes(self, node: exp.Expr) -> Names:
        """Adds the WITH clause of a node."""
        clause, names = node.args.get("with_"), self
        if clause is None:
            return self
        only(self.context.scope, clause, "expressions", "WITH")
        for cte in clause.expressions:
            if is_noisy(cte.this, names):
                name = cte_name(cte, names.context)
                context = replace(names.context, noisy=(*names.context.noisy, name))
                names = Names(context, {**names.noisy, name: (cte, names)})
            else:
                names = replace(names, context=names.context.with_cte(cte, cte_name(cte, names.context)))
        return names

    def find(self, node: exp.Expr) -> tuple[exp.Expr, Names] | None:
        """Returns the SELECT that an item of FROM reads if it is noisy, and what that may name."""
        if isinstance(node, exp.Subquery):
            return (node.this, self.with_ctes(node)) if is_noisy(node.this, self.with_ctes(node)) else None
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier) or node.args.get("db") is not None:
            return None
        found = matching(*name_of(self.context.scope, node.this), self.noisy, str)
        return (self.noisy[found[0]][0].this, self.noisy[found[0]][1]) if found else None


def bare(tree: exp.Expr) -> exp.Expr:
    """Returns the statement inside parentheses."""
    while isinstance(tree, exp.Subquery) and not [key for key, value in tree.args.items() if value and key != "this"]:
        tree = tree.this
    return tree


def is_noisy(tree: exp.Expr, names: Names) -> bool:
    """Returns whether a SELECT aggregates across people, itself or in its FROM."""
    tree = bare(tree)
    if isinstance(tree, exp.Pivot):
        return True
    if not isinstance(tree, (exp.Select, exp.Union)):
        return False
    names = names.with_ctes(tree)
    if isinstance(tree, exp.Union):
        return is_noisy(tree.this, names) or is_noisy(tree.expression, names)
    if any(names.find(each) is not None for each in _sources(tree)):
        return True
    clauses = [tree.args.get("group"), tree.args.get("having")]
    if not any(clauses) and not any(has_aggregate(item) for item in tree.expressions):
        return False
    try:
        source, scope = rows(tree, replace(names.context, scans=[]), noisy=True)
        keys = group(tree, scope, per_unit=False).keys
        return aggregates_people(source.relation, keys, names.context.catalog)
    except QueryError:
        return True  # it is refused as a question, with its own reason


def _sources(tree: exp.Select) -> list[exp.Expr]:
    clause = tree.args.get("from_")
    first = [] if clause is None else [clause.this]
    return [*first, *(join.this for join in tree.args.get("joins") or ())]


def read_question(tree: exp.Expr, names: Names, private: Private) -> Read:
    """Reads a question from the inside out: the SELECT that aggregates people, then each SELECT around it."""
    tree = bare(tree)
    if isinstance(tree, exp.Pivot):
        return _pivot_statement(tree, names.with_ctes(tree), private)
    if isinstance(tree, exp.Union):
        inside = names.with_ctes(tree)
        return read_results(tree, names.context.scope, lambda part: read_question(part, inside, private))
    if not isinstance(tree, exp.Select):
        return private(tree, names.context)
    names = names.with_ctes(tree)
    items = _sources(tree)
    found = [names.find(each) for each in items]
    if not items or None in found:
        return private(tree, names.context)
    scope = names.context.scope
    only(scope, tree, _SHAPE, "SELECT")
    _check_joins(tree, scope)
    parts = [_source(item, *each, private) for item, each in zip(items, found, strict=True) if each is not None]
    aliases = [_alias(item, scope, number) for number, item in enumerate(items, start=1)]
    inner = parts[0] if len(parts) == 1 else _together(parts, aliases, items, scope)
    here = Scope(scope.text, _fields(inner, parts, aliases, items, scope))
    before, here = _with_scalars(tree, items, here, names)
    if before is not None:
        inner = replace(inner, above=(*inner.above, before))
    return replace(inner, above=(*inner.above, *_outers(tree, here, columns_of(inner), names.context)))


def _source(item: exp.Expr, tree: exp.Expr, names: Names, private: Private) -> Read:
    """Reads an item of FROM, with its PIVOT."""
    inner = read_question(tree, names, private)
    for node in item.args.get("pivots") or ():
        inner = _pivoted(node, inner, names.context)
    return inner


def _pivoted(node: exp.Expr, inner: Read, context: Context) -> Read:
    fields = tuple(Field("", name, name) for name in columns_of(inner))
    return replace(inner, above=(*inner.above, pivot(node, inner, Scope(context.text, fields), context.catalog)))


def _pivot_statement(tree: exp.Pivot, names: Names, private: Private) -> Read:
    if tree.this is None:
        raise refuse(
            names.context.scope, tree, "PIVOT needs a table.", "write PIVOT (SELECT ...) ON x USING SUM(n) GROUP BY k."
        )
    found = names.find(tree.this)
    if found is not None:
        return _pivoted(tree, read_question(*found, private), names.context)
    select, outside = by_both_keys(tree, names.context.scope)
    return _pivoted(outside, private(select, names.context), names.context)


def _alias(item: exp.Expr, scope: Scope, number: int) -> str:
    if isinstance(item, exp.Subquery):
        only(scope, item, "this alias with_ pivots", "A subquery in FROM")
    else:
        only(scope, item, "this alias pivots", "A table")
    pivots = item.args.get("pivots") or [item]
    alias = pivots[-1].args.get("alias")
    if alias is not None and alias.this is not None:
        only(scope, alias, "this columns", "An alias")
        return name_of(scope, alias.this)[0]
    return name_of(scope, item.this)[0] if isinstance(item, exp.Table) else f"subquery_{number}"


def _fields(
    inner: Read, parts: Sequence[Read], aliases: Sequence[str], items: Sequence[exp.Expr], scope: Scope
) -> tuple[Field, ...]:
    """Returns the columns that the SELECT around may name; `alias (a, b)` renames them."""
    names, fields = iter(columns_of(inner)), []
    for part, alias, item in zip(parts, aliases, items, strict=True):
        clause = item.args.get("alias")
        given = [name_of(scope, each)[0] for each in (clause.args.get("columns") or () if clause is not None else ())]
        own = columns_of(part)
        if given and len(given) != len(own):
            raise refuse(scope, clause, f"{len(given)} names for {len(own)} columns.", "name each column.")
        fields += [Field(alias, name, next(names)) for name in given or own]
    return tuple(fields)


def _check_joins(tree: exp.Select, scope: Scope) -> None:
    for join in tree.args.get("joins") or ():
        if any(join.args.get(key) for key in ("on", "using", "side", "method")):
            raise refuse(
                scope,
                join.this,
                "Noisy results can only be put side by side if each has one row.",
                "ask one question that has both numbers, such as COUNT(*) and COUNT(*) FILTER (WHERE ...).",
            )


def _together(results: Sequence[Read], aliases: Sequence[str], items: Sequence[exp.Expr], scope: Scope) -> Query:
    """Returns one question with the aggregates of several over the same rows; conditions become FILTER."""
    if len({folded(alias) for alias in aliases}) < len(aliases):
        raise refuse(scope, items[-1], "Two results here have the same name.", "give one an alias.")
    parts = [each for each in results if isinstance(each, Query)]
    sources = [_unfiltered(part.source) for part in parts]
    for part, (source, _), item in zip(parts, sources, items, strict=False):
        simple = not part.keys and not part.above and part.having is None and part.limit is None and not part.offset
        if (
            len(parts) < len(results)
            or not simple
            or source != sources[0][0]
            or any(each.function == "count_units" for each in part.aggregates)
        ):
            raise refuse(
                scope,
                item,
                "Noisy results can only be put side by side if each has one row, and all are about the same FROM.",
                "ask one question with COUNT(*) FILTER (WHERE ...) for each number, or ask one by one.",
            )
    aggregates: list[Aggregate] = []
    outputs: list[Named] = []
    for part, alias, (_, condition) in zip(parts, aliases, sources, strict=True):
        names = {each.name: f"{alias}.{each.name}" for each in part.aggregates}
        aggregates += [replace(each, name=names[each.name], where=_both(condition, each.where)) for each in part.aggregates]
        outputs += [Named(f"{alias}.{each.name}", _renamed(each.expression, names)) for each in part.outputs]
    return Query(sources[0][0], (), tuple(aggregates), tuple(outputs))


def _unfiltered(relation: Relation) -> tuple[Relation, Expression | None]:
    return (relation.source, relation.condition) if isinstance(relation, Filter) else (relation, None)


def _both(first: Expression | None, second: Expression | None) -> Expression | None:
    return Call("and", (first, second)) if first is not None and second is not None else first if first is not None else second


def _renamed(value: Expression, names: Mapping[str, str]) -> Expression:
    if isinstance(value, Column):
        return replace(value, name=names.get(value.name, value.name))
    if isinstance(value, Literal):
        return value
    return replace(value, arguments=tuple(_renamed(each, names) for each in value.arguments))


@dataclass
class Folding(Grouping):
    """Collects keys, aggregates and windows of a SELECT over a noisy table. Without `grouped` it has no aggregates."""

    folds: list[Across] = field(default_factory=list)
    grouped: bool = True
    below: Public | None = None  # the lookups of WHERE and of aggregates

    def is_aggregate(self, node: exp.Expr) -> bool:
        return is_fold(node)

    def add(self, node: exp.Expr, name: str = "") -> Column:
        """Adds an aggregate unless it is there already, and returns its column."""
        inside = self.scope.at("inside an aggregate")
        across = read_call(node, inside, lambda each: self.over_rows(each, inside), over=False)
        for old in self.folds:
            if old == replace(across, name=old.name):
                return Column(old.name, span=across.span)
        self.folds.append(replace(across, name=self._unique_name(name or across.function)))
        return Column(self.folds[-1].name, span=across.span)

    def natural_name(self, value: Expression, number: int) -> str:
        written = {each.name: each.column for each in self.scope.fields}
        if isinstance(value, Column) and not self.grouped and value.name in written:
            return written[value.name]
        return super().natural_name(value, number)

    def over_rows(self, node: exp.Expr, here: Scope) -> Expression:
        """Reads an expression over the rows of the noisy table."""

        def look(part: exp.Expr) -> Expression | None:
            if self.below is None or id(part) in here.values or not self.below.reads(part):
                return None
            return self.below.add(part, here, lambda left: self.over_rows(left, here), lambda value: value)

        return expression(node, here, look)

    def over(self, value: Expression, part: exp.Expr, here: Scope) -> Expression:
        return super().over(value, part, here) if self.grouped else value

    def _value(self, part: exp.Expr, here: Scope, aliases: bool = False) -> Expression:
        value = here.values.get(id(part))
        if value is None and self.is_public(part):
            return super()._value(part, here, aliases)
        if value is None or self.grouped:
            what = "Above the noisy result, a subquery is one aggregate of the same result, without GROUP BY around it."
            raise refuse(here, part, what, "write SELECT x / (SELECT SUM(x) FROM c) FROM c, or use SUM(x) OVER ().")
        return value

    def _key(self, part: exp.Expr, here: Scope, aliases: bool) -> Expression | None:
        return super()._key(part, here, aliases) if self.grouped else None

    def _unique_name(self, base: str) -> str:
        taken = {each.name for each in self.keys} | {each.name for each in self.folds}
        number, name = 1, base
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        return name


def _with_scalars(tree: exp.Select, items: Sequence[exp.Expr], scope: Scope, names: Names) -> tuple[Outer | None, Scope]:
    """Reads scalar subqueries over the same noisy CTE: n / (SELECT SUM(n) FROM c). Each becomes a column of the table.

    Their aggregates are computed over all rows, before WHERE. Returns what adds the columns, and the scope with their values.
    """
    source = names.find(items[0]) if len(items) == 1 and isinstance(items[0], exp.Table) else None
    own = [each for each in tree.find_all(exp.Subquery) if _is_scalar(each, names, source)] if source is not None else []
    if not own:
        return None, scope
    windows: list[Across] = []
    outputs = [Named(each.name, Column(each.name)) for each in scope.fields]
    values = dict(scope.values)
    for number, node in enumerate(own, start=1):
        select, alias = bare(node), f"#scalar {number}"
        inside = replace(scope, fields=tuple(replace(each, alias="") for each in scope.fields))
        folding = Folding(inside, per_unit=False)
        value = folding.above(output_name(select.expressions[0], scope)[1], "in SELECT", False)
        where = select.args.get("where")
        condition = None if where is None else expression(where.this, inside.at("in WHERE"))
        named = {each.name: f"{alias} {each.name}" for each in folding.folds}
        windows += [replace(each, name=named[each.name], where=_both(condition, each.where)) for each in folding.folds]
        outputs.append(Named(alias, _renamed(value, named)))
        values[id(node)] = Column(alias, span=place(scope.text, node), words="(SELECT ...)")
    fields = tuple(each.name for each in scope.fields)
    return Outer(fields, tuple(outputs), windows=tuple(windows)), replace(scope, values=values)


def _is_scalar(node: exp.Subquery, names: Names, source: tuple[exp.Expr, Names] | None) -> bool:
    """Returns whether a subquery is one aggregate of a noisy CTE."""
    select = bare(node)
    if not isinstance(select, exp.Select) or isinstance(node.parent, (exp.From, exp.Join, exp.CTE)):
        return False
    others = [key for key, value in select.args.items() if value and key not in ("expressions", "from_", "where")]
    items = _sources(select)
    found = names.find(items[0]) if len(items) == 1 and isinstance(items[0], exp.Table) else None
    same = found is not None and source is not None and found[0] is source[0]
    return same and not others and len(select.expressions) == 1 and has_aggregate(select.expressions[0], is_fold)


def _outers(tree: exp.Select, scope: Scope, columns: tuple[str, ...], context: Context) -> tuple[Outer, ...]:
    """Reads a SELECT over a noisy table with these columns. It is two if public tables are looked up above its groups."""
    _write_out_stars(tree, scope)
    clauses = [tree.args.get("group"), tree.args.get("having")]
    grouped = any(clauses) or any(has_aggregate(item, is_fold) for item in tree.expressions)
    keys = group(tree, scope.at("in GROUP BY"), per_unit=False).keys
    grouping = Folding(scope.at("in SELECT"), per_unit=False, keys=keys, grouped=grouped)
    grouping.windows = Windows(tree, scope)
    above = grouping.public = Public(context)
    below = grouping.below = Public(context) if grouped else above
    where = _where(tree, scope, grouping)
    read_outputs(tree, grouping)
    having = read_condition(tree, "having", grouping)
    qualify = read_condition(tree, "qualify", grouping)
    order = read_order(tree, grouping)
    grouping.windows.check()
    shown = {each.expression for each in grouping.outputs}
    if tree.args.get("distinct") and any(each.expression not in shown for each in order):
        raise refuse(
            scope, tree.args["order"], "With DISTINCT, ORDER BY can only name outputs.", "add it to SELECT, or leave it out."
        )
    folds = tuple(grouping.folds) if grouped else None
    own = Outer(columns, tuple(grouping.outputs), where, tuple(grouping.keys), folds, having, lookups=tuple(below.found))
    last = replace(
        own,
        windows=tuple(grouping.windows.found),
        qualify=qualify,
        distinct=bool(tree.args.get("distinct")),
        order=order,
        limit=read_limit(tree, scope),
        offset=read_offset(tree, scope),
    )
    if not grouped or not above.found:
        return (last,)
    names = tuple([key.name for key in grouping.keys] + [each.name for each in grouping.folds])
    inner = replace(own, outputs=tuple(Named(name, Column(name)) for name in names), having=None)
    return inner, replace(last, fields=names, where=having, keys=(), folds=None, having=None, lookups=tuple(above.found))


def _where(tree: exp.Select, scope: Scope, grouping: Folding) -> Expression | None:
    clause = tree.args.get("where")
    if clause is None:
        return None
    only(scope, clause, "this", "WHERE")
    window = clause.find(exp.Window)
    if window is not None:
        fix = "write QUALIFY instead of WHERE, or filter in a SELECT around this one."
        raise refuse(scope, window.this, "A window function cannot stand in WHERE.", fix)
    return grouping.over_rows(clause.this, scope.at("in WHERE"))


def _write_out_stars(tree: exp.Select, scope: Scope) -> None:
    """Writes out * and t.* of a SELECT."""
    items: list[exp.Expr] = []
    for item in tree.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            items += [exp.column(each.column, table=each.alias, quoted=True) for each in star_fields(item, scope)]
        else:
            items.append(item)
    tree.set("expressions", items)  # not in a copy: the values of subqueries are known by their nodes
