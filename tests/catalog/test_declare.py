"""Catalogs built in Python: the example of the design works, and a broken rule is refused at once."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dither.catalog import declare as dt
from dither.catalog.text import catalog_json
from dither.catalog.values import Budget, Catalog, ColumnFacts, Rows, Table, Unit
from dither.engines.duckdb.sources import open_catalog
from dither.errors import CatalogError


def test_the_design_example() -> None:
    frame = pd.DataFrame({"person_id": [1, 2], "age": [30, 40], "region": ["north", "south"]})
    columns = {"age": dt.between(0, 120), "region": dt.values("north", "south")}
    catalog = Catalog(tables={"people": Table(frame, unit="person_id", max_rows=1, columns=columns)}, budget=Budget(epsilon=1))
    people = catalog.tables["people"]
    assert (people.unit, people.max_rows, people.max_groups) == (Unit("person_id"), 1, 1)
    opened = open_catalog(catalog)
    assert opened.engine.schema("people") == {"person_id": "int", "age": "int", "region": "text"}
    opened.close()


def test_numbers_mean_what_they_print_as() -> None:
    assert Budget(0.1).epsilon == Budget("0.1").epsilon == Budget(Decimal("0.1")).epsilon == Fraction(1, 10)
    assert Budget(np.float32(0.1)).epsilon == Fraction(1, 10)
    assert Budget(np.int64(3), delta="1e-6", per_analyst="1/3").per_analyst == Fraction(1, 3)
    assert dt.between(0.1, np.float64(0.7), step="0.2").step == Fraction(1, 5)


def test_units_and_rows_are_read_as_in_a_file() -> None:
    assert Table("v", unit={"column": "p", "references": "people.id"}, max_rows=3).unit == Unit("p", ("people", "id"))
    assert Table("v", unit="row").by_row
    assert Table("v", unit="p", max_rows=1, rows={"at_least": 5}).rows == Rows(at_least=5)
    assert Table("v", unit="p", max_rows=3).max_groups is None


def test_numpy_values_become_keys() -> None:
    public = dt.values(*np.array([3, 1])).values
    assert public == (3, 1)
    assert public is not None
    assert all(type(value) is int for value in public)
    assert dt.values(np.str_("a")).kind == "text"


def test_values_are_frozen_and_travel() -> None:
    table = Table("v", unit="p", max_rows=1, columns={"x": dt.between(0, 1)})
    with pytest.raises(FrozenInstanceError):
        table.max_rows = 2  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(table)) == copy.deepcopy(table) == replace(table) == table
    assert replace(table, max_rows=2) != table


WRONG: list[tuple[Any, str]] = [
    (lambda: dt.between(120, 0), "not below"),
    (lambda: dt.between(0, float("inf")), "finite"),
    (lambda: dt.between(float("nan"), 1), "finite"),
    (lambda: dt.between(False, True), "finite"),
    (lambda: dt.between(0, 1, step="1/3", kind="int"), "whole"),
    (lambda: dt.between(0, 1, step="2/3"), "whole number of steps"),
    (lambda: dt.between(date(2000, 1, 1), 7), "finite"),
    (lambda: dt.between(datetime(2000, 1, 1, tzinfo=UTC), datetime(2001, 1, 1, tzinfo=UTC)), "finite"),
    (lambda: dt.between(datetime(2000, 1, 1), datetime(2001, 1, 1), step=1), "no step"),
    (lambda: dt.between(0, 120, kind="timestamp"), "two dates"),
    (dt.values, "no value"),
    (lambda: dt.values(None), "no value"),
    (lambda: dt.values(0.5), "cannot be keys"),
    (lambda: dt.values(Fraction(1, 2)), "neither text"),
    (lambda: dt.values("a", None, null=False), "at once"),
    (lambda: dt.values("\ud800"), "a database can hold"),
    (lambda: dt.values("a", ["b"]), "must be a list"),
    (lambda: dt.column(kind="number"), "no known kind"),
    (lambda: Budget("ten"), "finite number"),
    (lambda: Budget(float("nan")), "finite number"),
    (lambda: Table("x", unit=3, max_rows=1), "names no column"),
    (lambda: Table("x", unit={"column": "a", "reference": "b.c"}, max_rows=1), "names no column"),
    (lambda: Table("x", unit={"column": "a", "references": "b"}, max_rows=1), "a table and a column"),
    (lambda: Table("x", unit="a", max_rows=1, rows={"exactly": 3}), "public or at_least"),
    (lambda: Table("x", unit="a", max_rows=1, caps={"rows": 3}), "max_rows or max_groups"),
    (lambda: Table("x", unit="a", max_rows=1, columns={"x": {"between": [0, 1]}}), "has the wrong type"),
    (lambda: Table("x", unit="a", max_rows=1, columns=["x"]), "not a mapping of names"),
    (lambda: Catalog({"t": "x.parquet"}, Budget(1)), "has the wrong type"),
    (lambda: Catalog({"t": Table("x", unit="a", max_rows=1)}, 1), "budget is a int"),
    (lambda: Catalog({}, Budget(1)), "No table"),
    (lambda: Catalog({"t": Table("x")}, Budget(1)), "declares neither a unit"),
    (lambda: Catalog({"t": Table("x", unit="a", public=True)}, Budget(1)), "public and has a unit"),
    (lambda: Catalog({"t": Table("x", unit="a", max_rows=-1)}, Budget(1)), "above 0"),
    (lambda: Catalog({"t": Table("x", unit="", max_rows=1)}, Budget(1)), "column's name"),
    (lambda: Catalog({"t": Table("x", unit="a", max_rows=1)}, Budget(1), "replace"), "declared public"),
    (
        lambda: Catalog({"t": Table("x", unit="a", max_rows=1, columns={"x": ColumnFacts(low=Fraction(1))})}, Budget(1)),
        "only one bound",
    ),
]


@pytest.mark.parametrize(("make", "words"), WRONG)
def test_what_breaks_a_rule_is_refused(make: Any, words: str) -> None:
    with pytest.raises(CatalogError, match=words):
        make()


def test_the_same_put_right_is_taken() -> None:
    columns = {
        "a": dt.between(0, 120),
        "b": dt.between(0, 1, step="1/3"),
        "c": dt.between(date(2000, 1, 1), date(2000, 1, 7)),
        "d": dt.values("a", None),
        "e": dt.column(),
    }
    assert Catalog({"t": Table("x", unit="u", max_rows=1, columns=columns)}, Budget("1/2")).tables["t"].columns == columns
    assert Catalog({"t": Table("x", unit="a", max_rows=1, rows={"public": 9})}, Budget(1), "replace").neighbours == "replace"


def test_python_catalogs_report_all_problems_at_once() -> None:
    with pytest.raises(CatalogError) as caught:
        Catalog({"t": Table("x"), "u": Table("y", unit="a", max_rows=1, max_groups=0)}, Budget(0, 2))
    assert len(caught.value.problems) == 4


def test_whether_a_kind_was_said_or_implied_is_no_part_of_the_declaration() -> None:
    said, implied = dt.column(kind="int", values=(1, 2)), dt.values(1, 2)
    assert (said.implied, implied.implied) == (False, True)
    assert said == implied
    catalogs = [Catalog({"t": Table("t.parquet", unit="row", columns={"x": each})}, Budget(1)) for each in (said, implied)]
    assert catalog_json(catalogs[0]) == catalog_json(catalogs[1])
    assert "implied" not in catalog_json(catalogs[0])


@pytest.mark.parametrize("written", [{"unit": "id"}, {"unit": "row"}, {"unit": "id", "max_rows": 1}, {"max_rows": 1}])
def test_a_public_table_is_told_once_and_only_of_what_was_written(written: dict[str, Any]) -> None:
    with pytest.raises(CatalogError) as refused:
        Catalog({"t": Table({"id": [1]}, public=True, **written)}, Budget(1))
    (problem,) = refused.value.problems
    assert "max_groups" not in problem[2]
