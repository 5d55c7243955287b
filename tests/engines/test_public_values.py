"""The values of a public table are public keys; no value of a private table ever is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pytest

import dither as dt
from dither.catalog.text import catalog_hash
from dither.catalog.values import Catalog, Table
from dither.engines.duckdb import sources as opened
from dither.engines.duckdb.sources import open_catalog

NATIONS = ["AUSTRIA", "BRAZIL", "CHINA", "DENMARK", "ECUADOR"]
NATION = {"n_nationkey": list(range(5)), "n_name": NATIONS, "n_region": ["EUROPE", "AMERICA", "ASIA", "EUROPE", "AMERICA"]}
CUSTOMERS = 300


def customers(extra: int = 0) -> pa.Table:
    """Returns customers of nations 0 to 3 and, every 10th, of a nation that is not listed; `extra` customers more."""
    keys = list(range(CUSTOMERS + extra))
    return pa.table({"c_custkey": keys, "c_nationkey": [99 if key % 10 == 0 else key % 4 for key in keys]})


def orders() -> pa.Table:
    return pa.table({"o_custkey": [key for key in range(CUSTOMERS) for _ in range(key % 3)]})


def catalog(nation: Any = None, extra: int = 0, **tables: Any) -> Catalog:
    nation = pa.table(NATION) if nation is None else nation
    found = {
        "nation": nation if isinstance(nation, Table) else dt.Table(nation, public=True, key="n_nationkey"),
        "customer": dt.Table(
            customers(extra), unit="c_custkey", key="c_custkey", columns={"c_nationkey": dt.column(kind="int")}
        ),
        "orders": dt.Table(
            orders(), unit={"column": "o_custkey", "references": "customer.c_custkey"}, max_rows=5, max_groups=2, columns={}
        ),
    }
    return dt.Catalog(tables={**found, **tables}, budget=dt.Budget(epsilon=100_000))


@contextlib.contextmanager
def survey(*arguments: Any, **named: Any) -> Iterator[dt.Curator]:
    with dt.open(catalog(*arguments, **named), ledger=":memory:") as curator:
        yield curator


JOIN = "customer JOIN nation ON c_nationkey = n_nationkey"


def truth(question: str) -> dict[Any, Any]:
    """Returns DuckDB's own answer, with 0 for each nation that has no row."""
    with duckdb.connect() as connection:
        for name, table in (("nation", pa.table(NATION)), ("customer", customers()), ("orders", orders())):
            connection.register(name, table)
        return dict(connection.execute(question).fetchall())


@pytest.mark.parametrize(
    ("question", "empty"),
    [
        (f"SELECT n_name, COUNT(*) AS n FROM {JOIN} GROUP BY n_name", ["ECUADOR"]),
        (f"SELECT n_region, COUNT(*) AS n FROM {JOIN} GROUP BY n_region", []),
        (f"SELECT n_name, COUNT(*) AS n FROM {JOIN} WHERE n_name LIKE '%A' GROUP BY n_name", []),
        (f"SELECT n_name, COUNT(*) AS n FROM {JOIN} WHERE n_name > 'C' GROUP BY n_name", ["ECUADOR"]),
        (f"SELECT n_name, COUNT(*) AS n FROM orders JOIN customer ON o_custkey = c_custkey {JOIN[8:]} GROUP BY n_name", None),
        (
            f"SELECT n_name, COUNT(*) AS n FROM {JOIN.replace('JOIN', 'LEFT JOIN')} GROUP BY n_name",
            ["ECUADOR"],
        ),
        (f"SELECT SUBSTR(n_name, 1, 1) AS a, COUNT(*) AS n FROM {JOIN} GROUP BY a", ["E"]),
    ],
)
def test_groups_are_those_of_the_public_table(question: str, empty: list[str] | None) -> None:
    with survey() as curator:
        answer = dict(curator.ask(question, epsilon=1000).rows)
    expected = truth(question) | dict.fromkeys(["ECUADOR"] if empty is None else empty, 0)
    assert answer == expected


def test_public_numbers_have_the_bounds_of_their_values() -> None:
    with survey() as curator:
        ((total,),) = curator.ask(f"SELECT SUM(n_nationkey) AS s FROM {JOIN}", epsilon=1000).rows
    assert total == truth(f"SELECT 1, SUM(n_nationkey) FROM {JOIN}")[1]


def test_nulls_of_a_public_table_are_a_group_and_long_lists_are_none() -> None:
    nation = pa.table({**NATION, "n_name": ["AUSTRIA", None, "CHINA", "DENMARK", None]})
    with survey(nation) as curator:
        assert [row[0] for row in curator.ask(f"SELECT n_name, COUNT(*) AS n FROM {JOIN} GROUP BY n_name", epsilon=1).rows] == [
            "AUSTRIA",
            "CHINA",
            "DENMARK",
            None,
        ]
    many = pa.table({"n_nationkey": range(20_000), "n_name": [f"name {n}" for n in range(20_000)], "big": [2**62 + 1] * 20_000})
    with contextlib.closing(open_catalog(catalog(many))) as sources:
        columns = sources.catalog.tables["nation"].columns
    assert {name: facts.found for name, facts in columns.items()} == {"n_nationkey": None, "n_name": None, "big": None}


def test_declared_facts_come_first() -> None:
    table = dt.Table(pa.table(NATION), public=True, key="n_nationkey", columns={"n_name": dt.values("CHINA", "FRANCE")})
    with survey(table) as curator:
        answer = curator.ask(f"SELECT n_name, COUNT(*) AS n FROM {JOIN} GROUP BY n_name", epsilon=1000)
    assert [row[0] for row in answer.rows] == ["CHINA", "FRANCE"]


# --- identity ---------------------------------------------------------------------------------------------------


def test_found_values_do_not_change_what_is_declared() -> None:
    declared = catalog()
    with contextlib.closing(open_catalog(declared)) as sources:
        plain = {
            name: replace(table, columns={column: replace(facts, found=None) for column, facts in table.columns.items()})
            for name, table in sources.catalog.tables.items()
        }
        assert sources.catalog.tables["nation"].columns["n_name"].found == tuple(NATIONS)
        assert catalog_hash(sources.catalog) == catalog_hash(replace(sources.catalog, tables=plain))


def test_a_changed_public_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "nation.csv"
    pa.csv.write_csv(pa.table(NATION), path)
    numbered = dt.Table(str(path), public=True, key="n_nationkey", columns={"n_nationkey": dt.column(kind="int")})
    with survey(numbered) as curator:
        curator.ask(f"SELECT n_name, COUNT(*) AS n FROM {JOIN} GROUP BY n_name", epsilon=1)
        path.write_text(path.read_text() + "5,FRANCE,EUROPE\n")
        with pytest.raises(dt.DitherError, match="no longer those that were opened"):
            curator.ask(f"SELECT n_name, COUNT(*) AS n FROM {JOIN} GROUP BY n_name", epsilon=2)


# --- no private row is read -------------------------------------------------------------------------------------

QUESTIONS = (
    "SELECT c_nationkey, COUNT(*) AS n FROM customer GROUP BY c_nationkey",
    f"SELECT n_name, COUNT(*) AS n FROM {JOIN} GROUP BY n_name",
)


def planned(extra: int) -> list[str]:
    """Returns what a session knows and plans with `extra` more customers, each of a nation of its own."""
    shown = []
    keys = pa.array([*range(CUSTOMERS), *range(1000, 1000 + extra)])
    private = dt.Table(
        pa.table({"c_custkey": keys, "c_nationkey": keys}),
        unit="c_custkey",
        key="c_custkey",
        columns={"c_nationkey": dt.column(kind="int")},
    )
    with survey(customer=private) as curator:
        shown += [repr([facts.found for facts in curator.catalog.tables["customer"].columns.values()])]
        for question in QUESTIONS:
            try:
                shown.append(str(curator.quote(question, epsilon=1)))
            except dt.DitherError as refused:
                shown.append(str(refused))
    return shown


def test_private_values_are_never_looked_up() -> None:
    assert planned(0) == planned(1)


def test_that_check_finds_private_values(monkeypatch: pytest.MonkeyPatch) -> None:
    honest: Callable[..., Table] = opened.with_found

    def careless(table: Table, different: Callable[..., Any]) -> Table:
        return replace(honest(replace(table, public=True), different), public=table.public)

    monkeypatch.setattr(opened, "with_found", careless)
    assert planned(0) != planned(1)
