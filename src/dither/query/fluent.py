"""The fluent reader: the same questions in Python, piece by piece, giving the same Query as SQL does.

    survey.table("people").where("age >= 18").group_by("region").agg(n=dt.count(), age=dt.mean("age"))

Each piece of text is read on its own by the SQL reader's gate (grammar.py) and put into the tree that SQL would have
given, so nothing is ever pasted together and both readers go through one importer. `text` spells the chain for people;
carets of refusals point into it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from sqlglot import exp

from dither.errors import QueryError
from dither.query.catalog import Catalog
from dither.query.grammar import read_expression
from dither.query.nodes import Query
from dither.query.sql import question
from dither.query.sql_subqueries import select
from dither.query.sql_tables import Context


@dataclass(frozen=True)
class Asked:
    """An aggregate to be given to `agg`: COUNT(x), AVG(x), ... with an optional condition of its own."""

    function: str
    argument: str | None = None
    where: str | None = None
    distinct: bool = False
    share: str | None = None


def count(x: str | None = None, *, where: str | None = None) -> Asked:
    """The number of rows, or of rows where x is not NULL."""
    return Asked("COUNT", "*" if x is None else x, where)


def count_distinct(x: str, *, where: str | None = None) -> Asked:
    """How many different values x has."""
    return Asked("COUNT", x, where, distinct=True)


def count_units() -> Asked:
    """How many units (people) there are."""
    return Asked("COUNT_UNITS")


def sum_(x: str, *, where: str | None = None) -> Asked:
    """The sum of x."""
    return Asked("SUM", x, where)


def mean(x: str, *, where: str | None = None) -> Asked:
    """The mean of x."""
    return Asked("AVG", x, where)


def variance(x: str, *, population: bool = False, where: str | None = None) -> Asked:
    """The variance of x: of a sample, or of the whole population."""
    return Asked("VAR_POP" if population else "VAR_SAMP", x, where)


def stddev(x: str, *, population: bool = False, where: str | None = None) -> Asked:
    """The standard deviation of x: of a sample, or of the whole population."""
    return Asked("STDDEV_POP" if population else "STDDEV_SAMP", x, where)


def median(x: str, *, where: str | None = None) -> Asked:
    """The median of x."""
    return Asked("MEDIAN", x, where)


def quantile(x: str, p: float | str | Fraction, *, where: str | None = None) -> Asked:
    """The p-quantile of x, such as quantile("income", 0.9)."""
    return Asked("QUANTILE", x, where, share=str(float(p)) if isinstance(p, Fraction) else str(p))


def min_(x: str, *, where: str | None = None) -> Asked:
    """The smallest x, as an extreme quantile."""
    return Asked("MIN", x, where)


def max_(x: str, *, where: str | None = None) -> Asked:
    """The largest x, as an extreme quantile."""
    return Asked("MAX", x, where)


def clipped(x: str) -> Asked:
    """The share of values outside the declared bounds."""
    return Asked("CLIPPED", x)


@dataclass(frozen=True)
class Asking:
    """A question in the making. Every step returns a new one; `query` is the finished Query."""

    catalog: Catalog = field(compare=False)
    text: str
    tree: exp.Select = field(compare=False)
    base: str

    def where(self, condition: str) -> Asking:
        """Only rows for which this is true; further conditions are joined by AND."""
        after, tree = self._read(f'.where("{condition}")', condition)
        old = after.tree.args.get("where")
        after.tree.set("where", exp.Where(this=tree if old is None else exp.And(this=old.this, expression=tree)))
        return after

    def join(
        self, table: str, *, on: str | None = None, using: str | None = None, how: str = "inner", alias: str | None = None
    ) -> Asking:
        """Another table, joined on a condition or on a column both have. how: "inner", "left" or "right"."""
        if how not in ("inner", "left", "right"):
            raise QueryError(f"how is {how!r}.", fix='write how="inner", "left" or "right".')
        if (on is None) == (using is None):
            raise QueryError("A join needs either on or using.", fix='write on="a.x = b.x" or using="x".')
        if on is not None:
            after, condition = self._read(f'.join("{table}", on="{on}")', on)
            joined = exp.Join(this=_table(table, alias), on=condition)
        else:
            after = replace(self, text=f'{self.text}\n.join("{table}", using="{using}")', tree=self.tree.copy())
            joined = exp.Join(this=_table(table, alias), using=[exp.to_identifier(using)])
        if how != "inner":
            joined.set("side", how.upper())
        after.tree.append("joins", joined)
        return after

    def group_by(self, *keys: str, **named: str) -> Asking:
        """The keys: columns or expressions, with a name if wanted: group_by("region", decade="BUCKET(age, 10)")."""
        after = self
        for name, key in [*(("", key) for key in keys), *named.items()]:
            written = f'.group_by("{key}")' if not name else f'.group_by({name}="{key}")'
            after, tree = after._read(written, key)
            after.tree.append("expressions", exp.alias_(tree, name, copy=False) if name else tree)
            group = after.tree.args.get("group") or exp.Group(expressions=[])
            group.append("expressions", tree.copy())
            after.tree.set("group", group)
        return after

    def agg(self, **aggregates: Asked | str) -> Asking:
        """What is asked of each group: agg(n=count(), age=mean("age")), or as text: agg(share="SUM(x) / COUNT(*)")."""
        after = self
        for name, asked in aggregates.items():
            if isinstance(asked, str):
                after, tree = after._read(f'.agg({name}="{asked}")', asked)
            elif isinstance(asked, Asked):
                after, tree = after._asked(name, asked)
            else:
                raise QueryError(f"agg({name}=...) is no aggregate.", fix='write agg(n=dt.count(), age=dt.mean("age")).')
            after.tree.append("expressions", exp.alias_(tree, name, copy=False))
        return after

    def per_unit(self, *keys: str, **aggregates: Asked | str) -> Asking:
        """Aggregate inside each unit first: one row for each person (and key), which further steps then ask about."""
        unit = self.catalog.tables[self.base].unit if self.base in self.catalog.tables else None
        if unit is None or any(self.tree.args.get(part) for part in ("expressions", "group")):
            raise QueryError("per_unit needs a table with a unit column, and comes before group_by and agg.", fix="move it up.")
        inner = self.group_by(unit.column, *keys).agg(**aggregates)
        outer = exp.Subquery(this=inner.tree, alias=exp.TableAlias(this=exp.to_identifier(self.base)))
        return replace(inner, tree=exp.Select(from_=exp.From(this=outer)))

    def having(self, condition: str) -> Asking:
        """Only groups whose noisy numbers satisfy this."""
        after, tree = self._read(f'.having("{condition}")', condition)
        old = after.tree.args.get("having")
        after.tree.set("having", exp.Having(this=tree if old is None else exp.And(this=old.this, expression=tree)))
        return after

    def order_by(self, *keys: str, descending: bool = False) -> Asking:
        """Sort the noisy result."""
        after = self
        for key in keys:
            after, tree = after._read(f'.order_by("{key}")', key)
            order = after.tree.args.get("order") or exp.Order(expressions=[])
            order.append("expressions", exp.Ordered(this=tree, desc=descending))
            after.tree.set("order", order)
        return after

    def limit(self, rows: int, offset: int = 0) -> Asking:
        """At most this many rows of the noisy result, leaving out the first `offset`."""
        skipped = f", offset={offset}" if offset else ""
        after = replace(self, text=f"{self.text}\n.limit({rows}{skipped})", tree=self.tree.copy())
        after.tree.set("limit", exp.Limit(expression=exp.Literal.number(str(rows))))
        if offset:
            after.tree.set("offset", exp.Offset(expression=exp.Literal.number(str(offset))))
        return after

    @property
    def query(self) -> Query:
        """The question as nodes, the same as from SQL."""
        return question(self.tree, Context(self.text, self.catalog, select))

    def _asked(self, name: str, asked: Asked) -> tuple[Asking, exp.Expr]:
        arguments: list[Any] = []
        after = self
        if asked.argument == "*":
            after = replace(self, text=f"{self.text}\n.agg({name}={asked.function}(*))", tree=self.tree.copy())
            arguments = [exp.Star()]
        elif asked.argument is None:
            after = replace(self, text=f"{self.text}\n.agg({name}={asked.function}())", tree=self.tree.copy())
        else:
            after, inner = self._read(f'.agg({name}={asked.function}("{asked.argument}"))', asked.argument)
            arguments = [exp.Distinct(expressions=[inner]) if asked.distinct else inner]
        if asked.share is not None:
            arguments.append(read_expression(asked.share))
        call: exp.Expr = exp.Anonymous(this=asked.function, expressions=arguments)
        if asked.where is not None:
            after, condition = after._read(f'  where="{asked.where}"', asked.where)
            call = exp.Filter(this=call, expression=exp.Where(this=condition))
        return after, call

    def _read(self, written: str, piece: str) -> tuple[Asking, exp.Expr]:
        """A new question with one more line of text, and the piece's tree with its places moved to that line."""
        if not isinstance(piece, str):
            raise QueryError(f"A text is expected, and this is a {type(piece).__name__}.", fix="write an expression in quotes.")
        tree = read_expression(piece)
        offset = len(self.text) + 1 + written.index(piece, written.index('"'))
        for node in tree.walk():
            if "start" in node.meta:
                node.meta["start"] += offset
                node.meta["end"] += offset
        return replace(self, text=f"{self.text}\n{written}", tree=self.tree.copy()), tree


def table(catalog: Catalog, name: str, alias: str | None = None) -> Asking:
    """The beginning of a question about one table."""
    if not isinstance(name, str):
        raise QueryError("A table is named by a text.", fix='write table("people").')
    return Asking(catalog, f'table("{name}")', exp.Select(from_=exp.From(this=_table(name, alias))), name)


def _table(name: str, alias: str | None) -> exp.Table:
    named = exp.Table(this=exp.Identifier(this=name, quoted=False))
    if alias is not None:
        named.set("alias", exp.TableAlias(this=exp.Identifier(this=alias, quoted=False)))
    return named
