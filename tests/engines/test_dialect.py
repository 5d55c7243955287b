"""The printer's plain shapes mean what DuckDB's fast ones mean: both are run in DuckDB, with one secret and one hash."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dither.engines.duckdb.dialect import DIALECT, DuckDBDialect
from dither.engines.sql.dialect import Dialect
from dither.query.nodes import Column, Named
from dither.query.work import Bins, Cell, Distinct, Group, Quantised, Sums, Work
from engines.tables import KINDS, SECRET, arrow, by_key, in_duckdb, rows
from engines.works import plain, works

Table = list[dict[str, Any]]
SHAPES = ("clip", "number_texts", "test_late", "cte", "semi", "not_in", "keep_groups", "weigh_bins", "keep_values")
SUMS = ("share_type", "narrow_sum", "wide_sum")


class Plain(DuckDBDialect):
    """DuckDB's spelling in the shapes of any SQL engine."""

    few_values, double_sums = Dialect.few_values, Dialect.double_sums


for name in (*SHAPES, *SUMS):
    setattr(Plain, name, getattr(Dialect, name))


class Fenced(Plain):
    """As for an engine whose planner pulls subselects up, and whose rounding writes its argument more than once."""

    fence, repeats = " OFFSET 0", True


def run(work: Work, tables: dict[str, Table], dialect: DuckDBDialect) -> dict[Any, Group]:
    arrows = {name: arrow(table) for name, table in tables.items()}
    return by_key(in_duckdb(arrows, threads=1, dialect=dialect).run(work, SECRET))


BOUNDED = st.sampled_from([1, 2, 20]).flatmap(lambda most: works(by_unit=True, max_groups=most, max_values=2))


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(work=st.one_of(works(), BOUNDED), table=rows(units=2, most=20), public=rows(most=4))
def test_plain_shapes_give_the_same_integers(work: Work, table: Table, public: Table) -> None:
    tables = {"t": table, "p": public}
    assert run(work, tables, Fenced()) == run(work, tables, DIALECT)


X = Quantised(Column("x"), 0, 1, 100)
MEASURES = (Sums((Cell(X, linear=1), Cell(X, square=1, null=-3)), 3), Bins(X, 2), Distinct(Column("x"), 3))


def crowd() -> Table:
    """Every unit is over every bound."""
    dice = random.Random(5)
    row = dict.fromkeys(KINDS)
    return [{**row, "who": i % 30, "i": dice.randrange(25), "x": float(dice.randrange(-5, 120))} for i in range(3000)]


@pytest.mark.parametrize("most", [1, 2, 8, 9, 20])
def test_units_far_over_their_bounds_keep_the_same_groups_and_values(most: int) -> None:
    work = Work(plain("t", "t"), (Named("i", Column("i")),), None, True, most, MEASURES, count_units=True)
    found = run(work, {"t": crowd()}, Plain())
    assert found == run(work, {"t": crowd()}, DIALECT)
    assert sum(group.units or 0 for group in found.values()) == 30 * most


def test_that_another_choice_would_be_noticed() -> None:
    class Other(Plain):
        def keyed_hash(self, purpose: str, columns: Any) -> str:
            return f"({super().keyed_hash(purpose, columns)} % 1000003)"

    work = Work(plain("t", "t"), (Named("i", Column("i")),), None, True, 2, MEASURES)
    assert run(work, {"t": crowd()}, Other()) != run(work, {"t": crowd()}, DIALECT)


def test_plain_statements_use_no_word_of_duckdb_alone() -> None:
    work = Work(plain("t", "t"), (Named("t", Column("t")),), (("a", "b", "c"),), True, 1, MEASURES)
    for text in in_duckdb({"t": arrow(crowd())}, dialect=Plain()).explain(work):
        assert not [
            word for word in ("ANTI JOIN", "SEMI JOIN", "ENUM(", "sum_no_overflow", "bit_count", "MATERIALIZED") if word in text
        ]
