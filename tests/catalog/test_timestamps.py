"""Bounds of timestamps: month keys and hours from one declaration."""

from __future__ import annotations

import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import dither as dt
from dither.catalog.declare import date_of, time_of
from dither.catalog.file import parse
from dither.catalog.text import catalog_text

FIRST, LAST = datetime.datetime(2010, 12, 1), datetime.datetime(2011, 2, 28, 23, 59)
CATALOG = """
[budget]
epsilon = 1000000
[tables.sales]
source = "sales.csv"
unit = "Customer"
max_rows = 40
max_groups = 40
[tables.sales.columns]
InvoiceDate = { kind = "timestamp", between = [2010-12-01, 2011-02-28], format = "%m/%d/%Y %H:%M" }
"""
TIMES = [FIRST + (LAST - FIRST) * i / 299 for i in range(300)]
TIMES = [time.replace(second=0, microsecond=0) for time in TIMES]


@pytest.fixture(scope="module")
def sales(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("sales")
    lines = [f"{i % 20},{at.month}/{at.day}/{at.year} {at.hour}:{at.minute:02}" for i, at in enumerate(TIMES)]
    (folder / "sales.csv").write_text("\n".join(["Customer,InvoiceDate", *lines, "3,unknown", "4,"]), encoding="utf-8")
    (folder / "sales.toml").write_text(CATALOG, encoding="utf-8")
    with dt.open(folder / "sales.toml", ledger=":memory:") as survey:
        yield survey


QUESTIONS = [
    "SELECT DATE_TRUNC('month', InvoiceDate) AS m, COUNT(*) AS n FROM sales GROUP BY 1 HAVING COUNT(*) > 0",
    "SELECT HOUR(InvoiceDate) AS h, COUNT(*) AS n FROM sales GROUP BY 1 HAVING COUNT(*) > 0",
    "SELECT YEAR(InvoiceDate) AS y, MONTH(InvoiceDate) AS m, COUNT(*) AS n FROM sales GROUP BY 1, 2 HAVING COUNT(*) > 0",
    "SELECT CAST(InvoiceDate AS DATE) AS d, COUNT(*) AS n FROM sales GROUP BY 1 HAVING COUNT(*) > 0",
    "SELECT COUNT(*) AS n FROM sales WHERE InvoiceDate >= TIMESTAMP '2011-01-15 12:00:00'",
    "SELECT COUNT(*) AS n, COUNT(InvoiceDate) AS k FROM sales",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_months_and_hours_are_answered_as_in_duckdb(question: str, sales: Any) -> None:
    with duckdb.connect() as connection:
        connection.register("rows", pa.table({"InvoiceDate": pa.array([*TIMES, None, None], pa.timestamp("us"))}))
        connection.execute("CREATE TABLE sales AS SELECT * FROM rows")
        truth = {tuple(_day(cell) for cell in row) for row in connection.execute(question).fetchall()}
    known = {row for row in truth if None not in row}  # rows with NULL are in no public group
    answer = sales.ask(question, epsilon=100_000 if "GROUP" in question else 5000)
    assert {tuple(_day(cell) for cell in row) for row in answer.rows} == known


def _day(value: Any) -> Any:
    return value.date() if isinstance(value, datetime.datetime) else value


def test_the_last_day_counts_to_its_end() -> None:
    column = parse(CATALOG).tables["sales"].columns["InvoiceDate"]
    assert (column.kind, column.low) == ("timestamp", Fraction(14944))
    assert column.high is not None
    assert time_of(column.high) == datetime.datetime(2011, 2, 28, 23, 59, 59, 999999)
    assert date_of(column.high) == datetime.date(2011, 2, 28)


def test_timestamps_can_be_bounds() -> None:
    low, high = datetime.datetime(2010, 12, 1, 8, 30), datetime.datetime(2011, 2, 28, 18, 0, 0, 5)
    column = dt.between(low, high)
    assert column.kind == "timestamp"
    assert column.low is not None
    assert column.high is not None
    assert (time_of(column.low), time_of(column.high)) == (low, high)
    catalog = dt.Catalog({"t": dt.Table("t.csv", unit="row", columns={"at": column})}, dt.Budget(epsilon=1))
    assert parse(catalog_text(catalog)) == catalog


def test_dates_bound_a_stored_timestamp_as_declared(tmp_path: Path) -> None:
    frame = pa.table({"at": pa.array(TIMES, pa.timestamp("us"))})
    days = (datetime.date(2010, 12, 1), datetime.date(2011, 2, 28))
    for kind, seen in (("timestamp", "timestamp"), (None, "date")):
        table = dt.Table(frame, unit="row", columns={"at": dt.between(*days, kind=kind)})
        with dt.open(dt.Catalog({"t": table}, dt.Budget(epsilon=1)), ledger=":memory:") as survey:
            assert survey.catalog.tables["t"].columns["at"].kind == seen


def test_numbers_do_not_bound_a_stored_timestamp() -> None:
    table = dt.Table(pa.table({"at": pa.array(TIMES, pa.timestamp("us"))}), unit="row", columns={"at": dt.between(0, 9)})
    with pytest.raises(dt.DitherError, match="holds dates"):
        dt.open(dt.Catalog({"t": table}, dt.Budget(epsilon=1)), ledger=":memory:")


def test_the_public_months_are_exactly_those_between_the_bounds(sales: Any) -> None:
    months = sales.ask("SELECT DATE_TRUNC('month', InvoiceDate) AS m, COUNT(*) AS n FROM sales GROUP BY 1", epsilon=1)
    assert [row[0] for row in months.rows] == [datetime.date(2010, 12, 1), datetime.date(2011, 1, 1), datetime.date(2011, 2, 1)]
    hours = sales.ask("SELECT HOUR(InvoiceDate) AS h, COUNT(*) AS n FROM sales GROUP BY 1", epsilon=1)
    assert [row[0] for row in hours.rows] == list(range(24))
