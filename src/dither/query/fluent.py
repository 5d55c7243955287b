"""Builds questions in Python, step by step; the Query is the same as from SQL.

    survey.table("people").where("age >= 18").group_by("region").agg(n=dt.count(), age=dt.mean("age"))

Each piece of text is parsed on its own by sql/gate.py and put into the syntax tree that SQL would give. No texts are
concatenated, and the rest of the path is the SQL reader's. `text` shows the chain of calls; carets of refusals point into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from dither.catalog.values import Catalog, Unit
from dither.errors import Fix, Python, QueryError
from dither.exact.numbers import Number, parse_number
from dither.query.nodes import Query
from dither.query.resolve.shapes import next_hop, root
from dither.query.sql.gate import read_expression, shown_values
from dither.query.sql.names import matching, similar
from dither.query.sql.parameters import Params, read_params
from dither.query.sql.select import question
from dither.query.sql.subqueries import new_context

__all__ = [
    "FluentAggregate",
    "FluentQuestion",
    "clipped",
    "count",
    "count_distinct",
    "count_units",
    "max_",
    "mean",
    "median",
    "min_",
    "quantile",
    "quoted",
    "stddev",
    "sum_",
    "table",
    "variance",
]


@dataclass(frozen=True)
class FluentAggregate:
    """An aggregate for `agg`: COUNT(x), AVG(x), ... with an optional condition."""

    function: str
    argument: str | None = None
    where: str | None = None
    distinct: bool = False
    share: str | None = None

    def __post_init__(self) -> None:
        texts = {"x": self.argument, "where": self.where}
        for name, piece in texts.items():
            if piece is not None and not isinstance(piece, str):
                raise QueryError(
                    f"{self.function}: {name} must be text, and it is a {type(piece).__name__}.",
                    fix="write a column or an expression in quotes.",
                )

    def __repr__(self) -> str:
        parts = [("DISTINCT " if self.distinct else "") + self.argument] if self.argument else []
        parts += [self.share] if self.share is not None else []
        condition = f" FILTER (WHERE {self.where})" if self.where is not None else ""
        return f"{self.function}({', '.join(parts)}){condition}"


def count(x: str | None = None, *, where: str | None = None) -> FluentAggregate:
    """Counts rows, or rows where x is not NULL."""
    return FluentAggregate("COUNT", "*" if x is None else x, where)


def count_distinct(x: str, *, where: str | None = None) -> FluentAggregate:
    """Counts the distinct values of x."""
    return FluentAggregate("COUNT", _needed(x), where, distinct=True)


def count_units() -> FluentAggregate:
    """Counts units (people)."""
    return FluentAggregate("COUNT_UNITS")


def sum_(x: str, *, where: str | None = None) -> FluentAggregate:
    """Sums x."""
    return FluentAggregate("SUM", _needed(x), where)


def mean(x: str, *, where: str | None = None) -> FluentAggregate:
    """Averages x."""
    return FluentAggregate("AVG", _needed(x), where)


def variance(x: str, *, population: bool = False, where: str | None = None) -> FluentAggregate:
    """Computes the variance of x: of a sample, or of the whole population."""
    return FluentAggregate("VAR_POP" if _flag(population) else "VAR_SAMP", _needed(x), where)


def stddev(x: str, *, population: bool = False, where: str | None = None) -> FluentAggregate:
    """Computes the standard deviation of x: of a sample, or of the whole population."""
    return FluentAggregate("STDDEV_POP" if _flag(population) else "STDDEV_SAMP", _needed(x), where)


def median(x: str, *, where: str | None = None) -> FluentAggregate:
    """Computes the median of x."""
    return FluentAggregate("MEDIAN", _needed(x), where)


def quantile(x: str, p: Number | None = None, *, where: str | None = None) -> FluentAggregate:
    """Computes the p-quantile of x, such as quantile("income", 0.9)."""
    share = parse_number(p)
    if share is None or not 0 < share < 1:
        raise QueryError(
            "A quantile needs its share p, a number between 0 and 1 and neither of them.",
            fix=Fix(
                "write {call}, or {median} for p = 0.5.",
                call=Python('dt.quantile("age", 0.9)'),
                median=Python('dt.median("age")'),
            ),
        )
    return FluentAggregate(
        "QUANTILE", _needed(x), where, share=repr(float(share)) if float(share) > 1e-4 else f"{float(share):.20f}"
    )


def min_(x: str, *, where: str | None = None) -> FluentAggregate:
    """Estimates the smallest x, as an extreme quantile."""
    return FluentAggregate("MIN", _needed(x), where)


def max_(x: str, *, where: str | None = None) -> FluentAggregate:
    """Estimates the largest x, as an extreme quantile."""
    return FluentAggregate("MAX", _needed(x), where)


def clipped(x: str) -> FluentAggregate:
    """Computes the share of values outside the declared bounds."""
    return FluentAggregate("CLIPPED", _needed(x))


def _needed(x: str) -> str:
    if x is None:
        raise QueryError("This aggregate needs a column.", fix=Fix("name one, as in {call}.", call=Python('dt.mean("age")')))
    return x


def _flag(population: bool) -> bool:
    if not isinstance(population, bool):
        raise QueryError(
            f"population is a {type(population).__name__}.", fix=Fix("write {population} or leave it out.", population=True)
        )
    return population


_OWNER, _KEY, _UNIT = "whose row", "key of its owner", "owner"  # unlikely as names of tables or columns
_EXAMPLE = Fix("write {call}.", call=Python('agg(n=dt.count(), age=dt.mean("age"))'))
_LONGEST = 400  # characters of a question in its repr


@dataclass(frozen=True)
class FluentQuestion:
    """A question built step by step. Every step returns a new one; `query` is the Query."""

    catalog: Catalog = field(compare=False)
    text: str
    tree: exp.Select = field(compare=False)
    base: str

    def where(self, condition: str, *, params: Params | None = None) -> FluentQuestion:
        """Keeps rows for which the condition is true; several conditions are joined by AND. `params`: the values of ?, $1 and
        :name in it."""
        after, tree = self._read('.where("', condition, '")', params or {})
        old = after.tree.args.get("where")
        after.tree.set("where", exp.Where(this=tree if old is None else exp.And(this=old.this, expression=tree)))
        return after

    def join(
        self,
        table: str,
        *,
        on: str | None = None,
        using: str | None = None,
        how: str = "inner",
        alias: str | None = None,
        params: Params | None = None,
    ) -> FluentQuestion:
        """Joins a table on a condition or on a shared column. how: "inner", "left" or "right". `params`: the values of ?, $1
        and :name in `on`."""
        if not isinstance(how, str) or how not in ("inner", "left", "right"):
            raise QueryError("how is not a known join.", fix=Fix('write {how}, "left" or "right".', how="inner"))
        named = _table(table, alias)
        if (on is None) == (using is None):
            raise QueryError("A join needs either on or using.", fix=Fix("write {on} or {using}.", on="a.x = b.x", using="x"))
        if on is not None:
            after, condition = self._read(f'.join("{table}", on="', on, '")', params or {})
            joined = exp.Join(this=named, on=condition)
        else:
            both = exp.to_identifier(_text(using, "using"))
            after = replace(self, text=f'{self.text}\n.join("{table}", using="{using}")', tree=self.tree.copy())
            joined = exp.Join(this=named, using=[both])
        if how != "inner":
            joined.set("side", how.upper())
        after.tree.append("joins", joined)
        return after

    def group_by(self, *keys: str, **named: str) -> FluentQuestion:
        """Groups by columns or expressions, named or not: group_by("region", decade="BUCKET(age, 10)")."""
        after = self
        for name, key in [*(("", key) for key in keys), *named.items()]:
            after, tree = after._read(f'.group_by({name}="' if name else '.group_by("', key, '")')
            after.tree.append("expressions", exp.alias_(tree, name, copy=False) if name else tree)
            group = after.tree.args.get("group") or exp.Group(expressions=[])
            group.append("expressions", tree.copy())
            after.tree.set("group", group)
        return after

    def agg(self, *unnamed: object, **aggregates: FluentAggregate | str) -> FluentQuestion:
        """Aggregates each group: agg(n=count(), age=mean("age")), or as text: agg(share="SUM(x) / COUNT(*)")."""
        _refuse_unnamed(unnamed, "agg")
        if not aggregates:
            raise QueryError("agg has no aggregate.", fix=_EXAMPLE)
        return self._agg(aggregates)

    def _agg(self, aggregates: dict[str, FluentAggregate | str]) -> FluentQuestion:
        after = self
        for name, aggregate in aggregates.items():
            if isinstance(aggregate, str):
                after, tree = after._read(f'.agg({name}="', aggregate, '")')
            elif isinstance(aggregate, FluentAggregate):
                after, tree = after._aggregate(name, aggregate)
            else:
                raise QueryError(f"agg({name}=...) is not an aggregate.", fix=_EXAMPLE)
            after.tree.append("expressions", exp.alias_(tree, name, copy=False))
        return after

    def per_unit(self, *keys: str, **aggregates: FluentAggregate | str) -> FluentQuestion:
        """Aggregates inside each unit first: further steps see one row for each person and key."""
        _refuse_unnamed([key for key in keys if isinstance(key, FluentAggregate)], "per_unit")
        unit = self._unit()
        if unit is None or any(self.tree.args.get(part) for part in ("expressions", "group")):
            raise QueryError("per_unit needs a table with a unit column, and comes before group_by and agg.", fix="move it up.")
        inner = self._by_unit(unit).group_by(*keys)._agg(aggregates)
        outer = exp.Subquery(this=inner.tree, alias=exp.TableAlias(this=exp.to_identifier(self.base)))
        return replace(inner, tree=exp.Select(from_=exp.From(this=outer)))

    def _by_unit(self, unit: Unit) -> FluentQuestion:
        """Groups by the unit: the table's own column, or the unit of the parent row that it refers to."""
        hop = next_hop(self._table(), self.catalog)
        if hop is None:
            return self.group_by(unit.column if _is_bare(unit.column) else quoted(unit.column))
        after = replace(self, tree=self.tree.copy())
        base = after.tree.args["from_"].this.alias_or_name
        after.tree.append("joins", _owner(self.catalog, hop, exp.column(unit.column, base, quoted=True)))
        key = exp.column(_UNIT, _OWNER, quoted=True)
        named = exp.to_identifier(root(self._table(), self.catalog)[1], quoted=True)
        after.tree.append("expressions", exp.alias_(key, named))
        after.tree.set("group", exp.Group(expressions=[key.copy()]))
        return after

    def having(self, condition: str, *, params: Params | None = None) -> FluentQuestion:
        """Keeps groups whose noisy numbers satisfy the condition. `params`: the values of ?, $1 and :name in it."""
        after, tree = self._read('.having("', condition, '")', params or {})
        old = after.tree.args.get("having")
        after.tree.set("having", exp.Having(this=tree if old is None else exp.And(this=old.this, expression=tree)))
        return after

    def order_by(self, *keys: str, descending: bool = False) -> FluentQuestion:
        """Sorts the noisy result."""
        if not isinstance(descending, bool):
            raise QueryError(
                f"descending is a {type(descending).__name__}.", fix=Fix("write {descending} or leave it out.", descending=True)
            )
        after = self
        for key in keys:
            after, tree = after._read('.order_by("', key, '")')
            order = after.tree.args.get("order") or exp.Order(expressions=[])
            order.append("expressions", exp.Ordered(this=tree, desc=descending))
            after.tree.set("order", order)
        return after

    def limit(self, rows: int, offset: int = 0) -> FluentQuestion:
        """Keeps at most this many rows of the noisy result, after the first `offset`."""
        for name, value in (("rows", rows), ("offset", offset)):
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 62:
                raise QueryError(f"{name} of a limit must be a whole number from 0.", fix="write limit(10).")
        skipped = f", offset={offset}" if offset else ""
        after = replace(self, text=f"{self.text}\n.limit({rows}{skipped})", tree=self.tree.copy())
        after.tree.set("limit", exp.Limit(expression=exp.Literal.number(str(rows))))
        if offset:
            after.tree.set("offset", exp.Offset(expression=exp.Literal.number(str(offset))))
        return after

    @property
    def query(self) -> Query:
        """The Query, the same as from SQL."""
        return question(self.tree, new_context(self.text, self.catalog))

    def __str__(self) -> str:
        """The whole question as SQL."""
        return self.tree.sql().removeprefix("" if self.tree.expressions else "SELECT ")

    def __repr__(self) -> str:
        """The question as SQL, shortened if it is long."""
        sql = str(self)
        return sql if len(sql) <= _LONGEST else sql[: _LONGEST - 3] + "..."

    def _unit(self) -> Unit | None:
        """Returns the unit of the first table."""
        return self.catalog.tables[self._table()].unit

    def _table(self) -> str:
        """Returns the name of the first table, as in the catalog."""
        names = matching(self.base, False, self.catalog.tables, str)
        if not names:
            known = similar(self.base, self.catalog.tables)
            raise QueryError(
                f"There is no table {self.base} in the catalog.", text=self.text, span=(7, 7 + len(self.base)), fix=known
            )
        return names[0]

    def _aggregate(self, name: str, aggregate: FluentAggregate) -> tuple[FluentQuestion, exp.Expr]:
        arguments: list[Any] = []
        after = self
        if aggregate.argument == "*":
            after = replace(self, text=f"{self.text}\n.agg({name}={aggregate.function}(*))", tree=self.tree.copy())
            arguments = [exp.Star()]
        elif aggregate.argument is None:
            after = replace(self, text=f"{self.text}\n.agg({name}={aggregate.function}())", tree=self.tree.copy())
        else:
            after, inner = self._read(f'.agg({name}={aggregate.function}("', aggregate.argument, '"))')
            arguments = [exp.Distinct(expressions=[inner]) if aggregate.distinct else inner]
        if aggregate.share is not None:
            arguments.append(read_expression(aggregate.share))
        call: exp.Expr = exp.Anonymous(this=aggregate.function, expressions=arguments)
        if aggregate.where is not None:
            after, condition = after._read('  where="', aggregate.where, '"')
            call = exp.Filter(this=call, expression=exp.Where(this=condition))
        return after, call

    def _read(self, before: str, piece: str, behind: str, params: Params | None = None) -> tuple[FluentQuestion, exp.Expr]:
        """Parses a piece of text. Returns the question with one more line, and the tree with its spans on that line."""
        values = None if params is None else read_params(params)
        tree = read_expression(_text(piece, "this"), values)
        if values:
            behind = f"{behind[:1]}, params={shown_values(piece, values)}{behind[1:]}"
        offset = len(self.text) + 1 + len(before)
        for node in tree.walk():
            if "start" in node.meta:
                node.meta["start"] += offset
                node.meta["end"] += offset
        return replace(self, text=f"{self.text}\n{before}{piece}{behind}", tree=self.tree.copy()), tree


def table(catalog: Catalog, name: str, alias: str | None = None) -> FluentQuestion:
    """Begins a question about one table."""
    start = exp.Select(from_=exp.From(this=_table(name, alias)))
    return FluentQuestion(catalog, f'table("{name}")', start, name)


def _owner(catalog: Catalog, hop: tuple[str, str], own: exp.Column) -> exp.Join:
    """Returns a join to the parent row that has the unit. The referenced column is unique, so no row is multiplied."""
    parent, column = hop
    unit, above = catalog.tables[parent].unit, next_hop(parent, catalog)
    owner = exp.column(unit.column if unit else column, parent, quoted=True)
    outputs = {_KEY: exp.column(column, parent, quoted=True), _UNIT: owner}
    rows = exp.Select(from_=exp.From(this=_table(parent, None)))
    if above is not None:
        outputs[_UNIT] = exp.column(_UNIT, _OWNER, quoted=True)
        rows.append("joins", _owner(catalog, above, owner))
    for name, value in outputs.items():
        rows.append("expressions", exp.alias_(value, exp.to_identifier(name, quoted=True)))
    alias = exp.TableAlias(this=exp.to_identifier(_OWNER, quoted=True))
    equal = exp.EQ(this=own, expression=exp.column(_KEY, _OWNER, quoted=True))
    return exp.Join(this=exp.Subquery(this=rows, alias=alias), on=equal)


def quoted(name: str) -> str:
    """Returns a name as SQL writes it in any case: a column of this name and no other.

    >>> print(quoted('the "good" ones'))
    "the ""good"" ones"
    """
    return '"' + name.replace('"', '""') + '"'


def _is_bare(name: str) -> bool:
    """Whether a name is read as a column without quotes."""
    try:
        return isinstance(read_expression(name), exp.Column) and name.isidentifier()
    except QueryError:
        return False


def _refuse_unnamed(unnamed: Sequence[object], step: str) -> None:
    """Refuses aggregates without a name, which the answer's columns need."""
    if unnamed:
        what = f"{step} has an aggregate without a name, and the answer needs one."
        raise QueryError(what, fix=Fix("write {call}.", call=Python(f'{step}(n=dt.count(), age=dt.mean("age"))')))


def _table(name: str, alias: str | None) -> exp.Table:
    named = exp.Table(this=exp.Identifier(this=_text(name, "a table's name"), quoted=False))
    if _text(alias, "alias", optional=True) is not None:
        named.set("alias", exp.TableAlias(this=exp.Identifier(this=alias, quoted=False)))
    return named


def _text(piece: Any, name: str, optional: bool = False) -> Any:
    if isinstance(piece, str) or (optional and piece is None):
        return piece
    what = f"{name[0].upper()}{name[1:]} must be text, and it is a {type(piece).__name__}."
    raise QueryError(what, fix='write it in quotes, as in table("people").where("age >= 18").')
