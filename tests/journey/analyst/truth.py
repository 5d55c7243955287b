"""What a question's answer is by plain SQL: of all rows, and of what given bounds keep of each person.

    rows ─▶ one row per person and group: rows k, sums a ─▶ each person's weight min(1, max_rows / k) ─▶ groups ─▶ outputs

A person in G > max_groups groups keeps each with probability max_groups / G. So a group has an expected sum, and a spread
around it that Bernstein's inequality limits. Values are clipped to the declared bounds of their column.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import duckdb
import numpy as np
import pandas as pd
from sqlglot import exp, parse_one

Key = tuple[str, ...]
NULL = "NULL"  # of a key; no group, unless it is declared
_AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Median, exp.PercentileCont, exp.Stddev)
_STEP = 2.0**-16  # of a value's range: the grid on which people with too many rows are added up


@dataclass(frozen=True)
class Data:
    """Tables in DuckDB, the column that names the unit, and the declared bounds of columns."""

    connection: duckdb.DuckDBPyConnection
    unit: str
    bounds: Mapping[str, tuple[float, float]]

    def ask(self, sql: str) -> pd.DataFrame:
        return self.connection.execute(sql).df()


@dataclass(frozen=True)
class Kept:
    """A number after bounding: its expected value, and how far the choice of groups and the grid can move it."""

    value: float
    spread: float


@dataclass
class Question:
    """A question taken apart: its keys, and its outputs as expressions of sums that people add to."""

    sql: str
    data: Data
    keys: list[str] = field(default_factory=list)
    outputs: dict[str, exp.Expression] = field(default_factory=dict)
    sums: list[str] = field(default_factory=list)  # as SQL, per person and group
    ranges: list[float] = field(default_factory=list)  # of what one row adds to each
    people: list[bool] = field(default_factory=list)  # whether it counts people, whatever their rows
    clipped: set[str] = field(default_factory=set)  # columns that are added up
    clipped_inside: set[str] = field(default_factory=set)  # and those that a subquery adds up for each person

    def __post_init__(self) -> None:
        self.tree = parse_one(self.sql, read="duckdb")
        for each in [each for select in self.tree.find_all(exp.Subquery) for each in select.find_all(exp.Sum, exp.Avg)]:
            if isinstance(each.this, exp.Column) and each.this.name in self.data.bounds:
                self.clipped_inside.add(each.this.name)
                each.set("this", parse_one(self._clip(each.this)[0], read="duckdb"))
        for item in self.tree.expressions:
            if item.find(*_AGGREGATES):
                self.outputs[item.alias] = item.this
            else:
                self.keys.append(item.alias_or_name)
        self.quantile = next(self._quantiles(), None)
        self.counted = "*"  # what a person's rows are, of which at most max_rows count
        simple = all(not each.find(exp.Median, exp.PercentileCont, exp.Stddev) for each in self.outputs.values())
        self.finished = {name: each.transform(self._take) for name, each in self.outputs.items()} if simple else {}
        self.persons = data_frame = self.data.ask(self._per_person())
        self.groups = data_frame.groupby("#unit")["#rows"].transform("size").to_numpy(float)

    # --- taking apart -------------------------------------------------------------------------------------------

    def _quantiles(self) -> Iterator[tuple[str, exp.Expression, float]]:
        for name, each in self.outputs.items():
            if isinstance(each, (exp.Median, exp.PercentileCont)):
                yield name, each.this, 0.5 if isinstance(each, exp.Median) else float(each.expression.this)

    def _take(self, node: exp.Expression) -> exp.Expression:
        """Replaces an aggregate by the sums it consists of."""
        where = f" FILTER ({self._sql(node.expression)})" if isinstance(node, exp.Filter) else ""
        call = node.this if isinstance(node, exp.Filter) else node
        if isinstance(call, exp.Count):
            if isinstance(call.this, exp.Distinct):
                return self._sum("1", 1, people=True)
            if isinstance(call.this, exp.Column):
                self.counted = self._sql(call.this)
            return self._sum(f"COUNT({self._sql(call.this)}){where}", 1)
        if isinstance(call, (exp.Sum, exp.Avg)):
            value, width = self._clip(call.this)
            self.clipped |= {call.this.name} & set(self.data.bounds)
            total = self._sum(f"COALESCE(SUM({value}){where}, 0)", width)
            if isinstance(call, exp.Sum):
                return total
            return exp.Div(this=total, expression=self._sum(f"COUNT({value}){where}", 1))
        return node

    def _clip(self, value: exp.Expression) -> tuple[str, float]:
        text = self._sql(value)
        if not isinstance(value, exp.Column) or value.name not in self.data.bounds:
            return text, 1.0
        low, high = self.data.bounds[value.name]
        return f"CLAMP({text}, {low}, {high})", max(abs(low), abs(high))

    def _sum(self, sql: str, width: float, people: bool = False) -> exp.Expression:
        self.sums.append(sql)
        self.ranges.append(width)
        self.people.append(people)
        return exp.column(f"a{len(self.sums) - 1}")

    def _sql(self, node: exp.Expression) -> str:
        """Returns SQL without the names of tables: the rows are those of one relation."""
        bare = node.transform(lambda each: exp.column(each.this) if isinstance(each, exp.Column) else each)
        return str(bare.sql(dialect="duckdb"))

    def _rows(self) -> str:
        """Returns the question's rows, with the person and the keys of each."""
        tree = self.tree.copy()
        keys = [f'{self._key(place)} AS "#key{place}"' for place, _ in enumerate(self.keys)]
        tree.set("group", None)
        tree.set("expressions", [parse_one("*"), *(parse_one(each, read="duckdb") for each in (*keys, self._unit()))])
        return str(tree.sql(dialect="duckdb"))

    def _unit(self) -> str:
        return f'"{self.data.unit}" AS "#unit"'

    def _key(self, place: int) -> str:
        items = [each for each in self.tree.expressions if each.alias_or_name == self.keys[place]]
        return str(items[0].unalias().sql(dialect="duckdb"))

    def _per_person(self) -> str:
        keys = "".join(f'"#key{place}", ' for place, _ in enumerate(self.keys))
        sums = "".join(f", {sql} AS a{place}" for place, sql in enumerate(self.sums))
        return f'SELECT {keys}"#unit", COUNT({self.counted}) AS "#rows"{sums} FROM ({self._rows()}) GROUP BY {keys}"#unit"'

    # --- what bounds keep ---------------------------------------------------------------------------------------

    def weights(self, max_rows: float, max_groups: float) -> tuple[np.ndarray, np.ndarray]:
        """Returns the share of its rows that each person keeps in each group, and the probability that the group counts."""
        return np.minimum(1, max_rows / np.maximum(self.persons["#rows"].to_numpy(float), 1)), np.minimum(
            1, max_groups / self.groups
        )

    def kept(self, max_rows: float, max_groups: float, doubt: float) -> dict[Key, dict[str, Kept]]:
        """Returns the outputs of each group after bounding. With probability `doubt`, chosen groups move one further."""
        if not self.finished:  # of one row per person, none of which is clipped
            return {key: {name: Kept(value, 0.0) for name, value in row.items()} for key, row in self.plain.items()}
        weight, chance = self.weights(max_rows, max_groups)
        found = {}
        for key, at in self.places.items():
            sums = [self._kept(place, at, weight, chance, doubt) for place, _ in enumerate(self.sums)]
            found[key] = {name: self._output(each, sums) for name, each in self.finished.items()}
        return found

    @cached_property
    def places(self) -> dict[Key, np.ndarray]:
        """The rows of `persons` in each group."""
        if not self.keys:
            return {(): np.arange(len(self.persons))}
        grouped = self.persons.groupby([f"#key{place}" for place, _ in enumerate(self.keys)], dropna=False).indices
        return {tuple(map(plain, key if isinstance(key, tuple) else (key,))): at for key, at in grouped.items()}

    @cached_property
    def plain(self) -> dict[Key, dict[str, float]]:
        """What plain DuckDB says, by group."""
        rows = self.data.ask(self.sql).to_dict("records")
        return {tuple(plain(row[key]) for key in self.keys): {name: float(row[name]) for name in self.outputs} for row in rows}

    def people_in_groups(self, max_groups: float) -> dict[Key, float]:
        """Returns how many people are in each group, if each is in so many at most."""
        chance = np.minimum(1, max_groups / self.groups)
        return {key: float(chance[at].sum()) for key, at in self.places.items() if NULL not in key}

    def _kept(self, place: int, at: np.ndarray, weight: np.ndarray, chance: np.ndarray, doubt: float) -> Kept:
        each = self.persons[f"a{place}"].to_numpy(float)[at] * (1 if self.people[place] else weight[at])
        variance = float((chance[at] * (1 - chance[at]) * each**2).sum())
        largest = float(np.abs(each).max(initial=0)) if variance > 0 else 0.0
        far = math.log(2 / doubt)
        grid = 0.0 if self.people[place] else _STEP * self.ranges[place] * float((self.persons["#rows"].to_numpy()[at]).sum())
        return Kept(float((chance[at] * each).sum()), math.sqrt(2 * variance * far) + largest * far / 3 + grid)

    def _output(self, output: exp.Expression, sums: list[Kept]) -> Kept:
        """Returns a sum, a quotient of two sums times a number, or a difference."""
        if isinstance(output, exp.Column):
            return sums[int(output.name[1:])]
        if isinstance(output, exp.Literal):
            return Kept(float(output.this), 0.0)
        one, other = self._output(output.this, sums), self._output(output.expression, sums)
        if isinstance(output, exp.Mul):
            return Kept(one.value * other.value, abs(one.value) * other.spread + abs(other.value) * one.spread)
        if isinstance(output, exp.Sub):
            return Kept(one.value - other.value, one.spread + other.spread)
        if not isinstance(output, exp.Div):
            raise NotImplementedError(self.sql)
        if other.value <= other.spread:
            return Kept(math.nan, math.inf)
        ratio = one.value / other.value
        return Kept(ratio, (one.spread + abs(ratio) * other.spread) / (other.value - other.spread))

    def ranks(self, value: float, max_rows: float) -> tuple[float, float, float]:
        """Returns the rows' worth below a value, that up to it, and the rank that the quantile should have."""
        if self.quantile is None or self.keys:
            raise NotImplementedError(self.sql)
        _, column, share = self.quantile
        rows = self.data.ask(
            f'SELECT {self._clip(column)[0]} AS x, COUNT(*) OVER (PARTITION BY "#unit") AS k FROM ({self._rows()})'
        )
        weight = np.minimum(1, max_rows / rows["k"].to_numpy(float))[rows["x"].notna()]
        x = rows["x"].dropna().to_numpy(float)
        return float(weight[x < value].sum()), float(weight[x <= value].sum()), share * float(weight.sum())

    # --- what bounds leave out ----------------------------------------------------------------------------------

    def left_out(self, max_rows: float, max_groups: float) -> pd.DataFrame:
        """Returns one row for each person: what it has, in rows (or groups, if people are counted), what it keeps on average,
        and how far the choice of groups can move that."""
        weight, chance = self.weights(max_rows, max_groups)
        people = bool(self.people) and all(self.people)
        rows = np.ones(len(self.persons)) if people else self.persons["#rows"].to_numpy(float)
        held = rows * (1 if people else weight)
        frame = {"unit": self.persons["#unit"], "has": rows, "keeps": held * chance, "moves": held * (chance < 1)}
        return pd.DataFrame(frame).groupby("unit").sum()

    def outside(self, column: str) -> int:
        """Returns how many values of a column are outside its bounds, in the table that has it."""
        tables = [each.name for each in self.tree.find_all(exp.Table)]
        (table,) = (name for name in tables if column in self.data.ask(f'SELECT * FROM "{name}" LIMIT 0').columns)
        low, high = self.data.bounds[column]
        return int(self.data.ask(f'SELECT COUNT(*) AS n FROM "{table}" WHERE "{column}" NOT BETWEEN {low} AND {high}')["n"][0])

    def clipping(self, column: str) -> tuple[float, pd.Series]:
        """Returns the sum of a column over the question's rows, and how far each person's values are above its bound."""
        high = self.data.bounds[column][1]
        over = f'SUM(GREATEST("{column}" - {high}, 0))'
        frame = self.data.ask(f'SELECT SUM("{column}") AS s, COALESCE({over}, 0) AS o FROM ({self._rows()}) GROUP BY "#unit"')
        return float(frame["s"].sum()), frame["o"]


def plain(value: Any) -> str:
    """Returns a key as a text that does not depend on the library it comes from."""
    if pd.isna(value):
        return NULL
    if hasattr(value, "year"):
        return str(pd.Timestamp(value))
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    return str(int(value)) if isinstance(value, (int, float, np.number)) and value == int(value) else str(value)


def declared_bounds(tables: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Returns the declared bounds of every number in a catalog's tables."""
    found = {}
    for table in tables.values():
        for name, facts in table.columns.items():
            if isinstance(facts.low, Fraction) and isinstance(facts.high, Fraction) and facts.kind not in ("date", "timestamp"):
                found[name] = (float(facts.low), float(facts.high))
    return found
