"""`suggest` takes any declared column: far from its unit, with any name, of any kind, by any key; and prints lines to paste."""

from __future__ import annotations

import datetime
import json
import tomllib
from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dither as dt
from dither.catalog import file
from dither.planning.proposal import Proposal

SURE = 300  # an epsilon at which noise is hardly any
ODD = ("Personen-ID", "MRN #", 'the "good" one', "order", "Anzahl Ämter", "a.b", " age", "select", "X")


def opened(**tables: dt.Table) -> dt.Curator:
    return dt.open(dt.Catalog(tables=tables, budget=dt.Budget(epsilon=10**6, delta="1e-3")), ledger=":memory:")


def referring(column: str, to: str) -> dict[str, str]:
    return {"column": column, "references": to}


def pasted(found: Proposal, source: str = "t.parquet") -> Any:
    """Returns the table that a catalog with the proposed lines declares."""
    table = tomllib.loads(found.toml)["tables"][found.table]
    assert set(table) <= {"max_rows", "max_groups", "columns"}
    head, _, rest = found.toml.partition("\n")
    lines = f'[budget]\nepsilon = 1\ndelta = 1e-6\n{head}\nsource = "{source}"\nunit = "unit"\n'
    if "max_rows" not in found.toml:
        lines += "max_rows = 1\n"
    return file.parse(lines + rest).tables[found.table]


@pytest.fixture
def shop() -> Iterator[dt.Curator]:
    """Customers, their orders, the lines of these, and what was returned of each line: three references to the customer."""
    random = np.random.default_rng(14)
    customers, orders, lines, returns = 400, 2000, 8000, 4000
    columns: Any = dt.column
    tables = {
        "customer": dt.Table({"c_custkey": np.arange(customers)}, unit="c_custkey"),
        "orders": dt.Table(
            {"o_orderkey": np.arange(orders), "o_custkey": random.integers(0, customers, orders)},
            unit=referring("o_custkey", "customer.c_custkey"),
            max_rows=5,
        ),
        "lineitem": dt.Table(
            {
                "l_id": np.arange(lines),
                "l_orderkey": random.integers(0, orders, lines),
                "l_quantity": np.arange(lines) % 50 + 1,
            },
            unit=referring("l_orderkey", "orders.o_orderkey"),
            max_rows=20,
            columns={"l_quantity": columns()},
        ),
        "returned": dt.Table(
            {"r_line": random.integers(0, lines, returns), "r_days": np.arange(returns) % 30},
            unit=referring("r_line", "lineitem.l_id"),
            max_rows=10,
            columns={"r_days": columns()},
        ),
    }
    with opened(**tables) as curator:
        yield curator


@pytest.mark.parametrize(("column", "most"), [("lineitem.l_quantity", 50), ("returned.r_days", 29)])
def test_at_any_number_of_references(shop: dt.Curator, column: str, most: int) -> None:
    found = shop.suggest(column, epsilon=SURE)
    assert 0.9 * most <= found.high <= 1.2 * most  # type: ignore[operator]
    name = column.partition(".")[0]
    frames = {each: shop.catalog.tables[each].source for each in ("customer", "orders", "lineitem", "returned")}
    chain = {
        "lineitem": "lineitem JOIN orders ON l_orderkey = o_orderkey",
        "returned": "returned JOIN lineitem ON r_line = l_id JOIN orders ON l_orderkey = o_orderkey",
    }[name]
    with duckdb.connect() as plain:
        for each, rows in frames.items():
            plain.register(each, pd.DataFrame(rows))
        rows = plain.execute(
            f"SELECT quantile_disc(n, 0.95) FROM (SELECT count(*) n FROM {chain} GROUP BY o_custkey)"
        ).fetchall()
    assert found.max_rows is not None
    assert rows[0][0] <= found.max_rows < 2 * rows[0][0] + 1  # the end of its class of powers of two


@pytest.mark.parametrize("unit", ODD)
@pytest.mark.parametrize("column", ["Anzahl Ämter", 'say "x"', "from"])
def test_names_that_need_quotes(unit: str, column: str) -> None:
    if unit == column:
        return
    frame = {unit: np.arange(3000) // 3, column: np.arange(3000) % 90}
    with opened(abg=dt.Table(frame, unit=unit, max_rows=3, columns={column: dt.column()})) as survey:
        found = survey.suggest(f"abg.{column}", epsilon=SURE, by=column)
        counted = survey.ask(survey.table("abg").per_unit(k=dt.count()).group_by(c="CLAMP(k, 0, 5)").agg(n=dt.count()), SURE)
    assert (found.max_rows, found.max_groups) == (3, 3)
    table = pasted(found)
    assert list(table.columns) == [column]
    assert table.columns[column].high == found.high
    assert {c: n for c, n in counted.rows if n} == {3: 1000}


def test_an_unquoted_name_declares_another_column() -> None:
    """The twin of the test above: what is printed must be parsed, because odd names parse as something else."""
    assert tomllib.loads(" age = 1") == {"age": 1}
    assert tomllib.loads("a.b = 1") == {"a": {"b": 1}}


def retail(people: int = 2000) -> dict[str, Any]:
    """Fifteen months of invoices; each customer buys in five different months."""
    number = np.arange(people * 5)
    months = pd.to_datetime("2010-01-15") + pd.to_timedelta((number % 5) * 31 + (number // 5 % 10) * 31, unit="D")
    country = np.where(number // 5 % 10 < 8, "United Kingdom", np.where(number // 5 % 10 < 9, "EIRE", 'Malta "M"'))
    country = np.where(number // 5 == 7, "Nobody else", country)
    return {"customer": number // 5, "at": months, "on": months.date, "country": country, "total": number % 500}


def sold(**more: Any) -> dt.Table:
    names = {"at": dt.column(), "on": dt.column(kind="date"), "country": dt.column(), "total": dt.column()}
    return dt.Table(pd.DataFrame(retail()), unit="customer", **{"max_rows": 10, "columns": names, **more})


def test_by_any_key() -> None:
    keys = ("DATE_TRUNC('month', at)", 'YEAR("on")', "country", "BUCKET(total, 500)")
    with opened(sold=sold()) as survey:
        found = [survey.suggest("sold.total", epsilon=SURE, by=each).max_groups for each in keys]
    assert found == [7, 3, 1, 1]  # five months, two years, one country, one bucket: the ends of their classes
    with opened(sold=sold()) as survey, pytest.raises(dt.DitherError, match=r"DATE_TRUNC(.|\n)*Charged: nothing"):
        survey.suggest("sold.total", epsilon=SURE, by="DATE_TRUNC('fortnight', at)")


def test_a_key_is_read_on_its_own() -> None:
    """Text of the key never becomes part of the question around it."""
    with opened(sold=sold()) as survey:
        for odd in ("total) + COUNT(DISTINCT at", "total), COUNT(*", "1; SELECT 2"):
            with pytest.raises(dt.DitherError, match="Charged: nothing"):
                survey.suggest("sold.total", epsilon=SURE, by=odd)
        assert survey.budget.spent.epsilon == 0


def test_common_values_of_text() -> None:
    with opened(sold=sold()) as survey:
        found = survey.suggest("sold.country", epsilon=SURE, delta="1e-6")
    assert found.values == ("EIRE", 'Malta "M"', "United Kingdom")  # one person alone is never shown
    assert found.people > 1
    assert pasted(found).columns["country"].values == found.values
    assert "the common values" in str(found)
    assert found.as_data()["between"] is None


def test_declared_values_do_not_limit_the_proposal() -> None:
    columns = {"country": dt.values("Atlantis", "EIRE"), "total": dt.between(0, 10)}
    with opened(sold=sold(columns=columns)) as survey:
        assert "United Kingdom" in (survey.suggest("sold.country", epsilon=SURE, delta="1e-6").values or ())
        assert survey.suggest("sold.total", epsilon=SURE).high > 400  # type: ignore[operator]


def test_text_without_common_values() -> None:
    frame = {"id": np.arange(100), "name": [f"person {n}" for n in range(100)]}
    with opened(t=dt.Table(frame, unit="id", columns={"name": dt.column()})) as survey:
        found = survey.suggest("t.name", epsilon=1, delta="1e-6")
    assert found.values == ()
    assert "NO VALUE" in str(found)
    assert pasted(found).columns["name"].values is None


def test_values_need_a_delta_and_say_so() -> None:
    catalog = dt.Catalog({"sold": sold()}, dt.Budget(epsilon=1))
    with dt.open(catalog, ledger=":memory:") as survey:
        with pytest.raises(dt.DitherError, match=r"only with a delta(.|\n)*declare a delta(.|\n)*Charged: nothing"):
            survey.suggest("sold.country", epsilon=1)
        assert survey.budget.spent.epsilon == 0
    with opened(sold=sold()) as survey, pytest.raises(dt.DitherError, match="ask with a delta"):
        survey.suggest("sold.country", epsilon=1, delta=0)


def test_the_price_of_values_is_what_was_named() -> None:
    with opened(sold=sold()) as survey:
        survey.suggest("sold.country", epsilon=1, delta="1e-6", by="total")
        spent = survey.budget.spent
        assert (spent.epsilon, spent.delta) == (1, dt.Budget(1, "1e-6").delta)
        survey.suggest("sold.country", epsilon=1, delta="1e-6", by="total")  # given again
        assert survey.budget.spent.epsilon == 1


@pytest.mark.parametrize("column", ["on", "at"])
def test_dates_and_times(column: str) -> None:
    with opened(sold=sold()) as survey:
        found = survey.suggest(f"sold.{column}", epsilon=SURE)
    assert isinstance(found.low, datetime.date)
    assert datetime.date(2009, 12, 1) <= found.low <= datetime.date(2010, 1, 15)
    assert datetime.date(2011, 2, 1) <= found.high <= datetime.date(2011, 6, 30)  # type: ignore[operator]
    assert pasted(found).columns[column].kind == {"on": "date", "at": "timestamp"}[column]


@pytest.mark.parametrize(("first", "last"), [("1700-01-01", "1750-01-01"), ("2300-01-01", "2400-01-01")])
def test_dates_beyond_the_public_range_end_there(first: str, last: str) -> None:
    days = [datetime.date.fromisoformat(first), datetime.date.fromisoformat(last)]
    with opened(t=dt.Table({"day": days * 500}, unit="row", columns={"day": dt.column()})) as survey:
        found = survey.suggest("t.day", epsilon=SURE)
    assert datetime.date(1799, 12, 1) <= found.low <= found.high <= datetime.date(2150, 12, 31)  # type: ignore[operator]


def test_rows_of_their_own_have_one_group() -> None:
    rows = dt.Table({"x": np.arange(100)}, unit="row", columns={"x": dt.column()})
    with opened(t=rows) as survey, pytest.raises(dt.DitherError, match=r"own person(.|\n)*leave by out"):
        survey.suggest("t.x", epsilon=1, by="x")


def reserved(people: int, max_rows: int = 10) -> dict[str, Any]:
    """Returns what the ledger records of a proposal, without what differs from ledger to ledger."""
    columns = {"country": dt.column()}
    table = dt.Table(pd.DataFrame(retail(people)), unit="customer", max_rows=max_rows, columns=columns)
    with opened(sold=table) as survey:
        survey.suggest("sold.country", epsilon=1, delta="1e-6")
        (entry,) = (each for each in survey.ledger.history() if each.kind == "reserved/1")
    hidden = ("time", "token", "nonce", "previous", "digest", "lease")
    return {name: value for name, value in json.loads(entry.body).items() if name not in hidden}


def test_what_is_charged_depends_on_no_row() -> None:
    assert reserved(3) == reserved(2000)


def test_that_check_can_fail() -> None:
    assert reserved(3) != reserved(3, max_rows=11)


@pytest.mark.parametrize(
    ("declared", "cells"),
    [
        ({"kind": "int", "na": ["-"]}, ["-" if n % 9 == 0 else str(n % 80) for n in range(2000)]),
        ({"kind": "real", "decimal": ",", "thousands": "."}, [f"{n % 9 + 1}.000,5" for n in range(2000)]),
        ({"format": "%d.%m.%Y"}, [f"{1 + n % 28}.{1 + n % 12}.{1960 + n % 30}" for n in range(2000)]),
        (
            {"kind": "timestamp", "format": "%m/%d/%Y %H:%M"},
            [f"{1 + n % 12}/{1 + n % 28}/2020 {n % 24}:30" for n in range(2000)],
        ),
        ({"kind": "text", "trim": True, "longest": 9}, [" north ", "south "] * 1000),
    ],
)
def test_pasted_lines_read_the_cells_as_before(declared: dict[str, Any], cells: list[str]) -> None:
    frame = pd.DataFrame({"unit": np.arange(2000), "x": cells})

    def filled(column: Any) -> int:
        table = dt.Table(frame, unit="unit", max_rows=1, columns={"x": column})
        with opened(t=table) as curator:
            found.append(curator.suggest("t.x", epsilon=SURE, delta="1e-6"))
            return int(curator.ask("SELECT COUNT(x) AS n FROM t", epsilon=SURE)["n"][0])

    found: list[Proposal] = []
    before = filled(dt.column(**declared))
    after = filled(pasted(found[0]).columns["x"])
    assert before == after > 1000
