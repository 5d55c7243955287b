"""Another SQL engine is a dialect, an engine and a line in the registry: SQLite gives the reference engine's integers too.

Its two files are all there is of it. What it cannot compute it refuses before anything is charged.
"""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dither as dt
from dither.engines.reference import Reference
from dither.engines.registry import backend_for, read_schema, registered
from dither.errors import ArgumentError, CatalogError, QueryError
from dither.query.nodes import Call, Column, Filter, Literal, Named
from dither.query.work import Bins, Cell, Distinct, Group, Quantised, Sums, Work
from engines.sqlite.dialect import SQLiteDialect, keyed_hash
from engines.sqlite.engine import SQLite, SQLiteBackend
from engines.tables import DATES, INTS, KINDS, REALS, SECRET, TEXTS, TIMES, by_key, rows
from engines.works import plain, works

pytestmark = pytest.mark.skipif(sqlite3.sqlite_version_info < (3, 39), reason="HAVING without GROUP BY came with SQLite 3.39")
STORED = {"int": "INTEGER", "real": "REAL", "text": "TEXT", "bool": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMP"}
Table = list[dict[str, Any]]


def written(value: Any) -> Any:
    """As SQLite stores it: days and times as ISO text."""
    return value.isoformat(*([" "] if hasattr(value, "hour") else [])) if hasattr(value, "isoformat") else value


def stored(connection: sqlite3.Connection, name: str, table: Sequence[dict[str, Any]]) -> None:
    connection.execute(f"CREATE TABLE {name} ({', '.join(f'{column} {STORED[kind]}' for column, kind in KINDS.items())})")
    values = [[written(row[column]) for column in KINDS] for row in table]
    connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' for _ in KINDS)})", values)


def ours(work: Work, tables: dict[str, Table], secret: bytes = SECRET) -> dict[Any, Group]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for name, table in tables.items():
            stored(connection, name, table)
        engine = SQLite(connection, SQLiteDialect({name: name for name in tables}), dict.fromkeys(tables, KINDS))
        engine.prepare(work)
        return by_key(engine.run(work, secret))


def chosen(secret: bytes, unit: Any, candidates: list[Any], most: int) -> list[Any]:
    """SQLite's choice of groups, for the reference engine."""
    if len(candidates) <= most:
        return candidates
    return sorted(candidates, key=lambda key: keyed_hash(secret + b"groups", unit, *map(written, key)))[:most]


def specified(work: Work, tables: dict[str, Table]) -> dict[Any, Group]:
    return by_key(Reference(tables, dict.fromkeys(tables, KINDS), chosen).run(work, SECRET))


# --- the reference engine's integers ----------------------------------------------------------------------------


AGE = Quantised(Column("x"), Fraction(0), Fraction(1, 2), 200)
MEASURES = (
    Sums((Cell(AGE, linear=1), Cell(AGE, constant=200, linear=-1), Cell(AGE, null=200), Cell(constant=1)), 3),
    Sums((Cell(AGE, square=1),), 2, Call("gt", (Column("i"), Literal(0)))),
    Bins(Quantised(Column("x"), Fraction(0), Fraction(10), 10), 2),
    Distinct(Column("x"), 1000),
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(work=works(), measures=st.lists(st.sampled_from(MEASURES), max_size=3), table=rows(), public=rows(most=4))
def test_generated_works_give_the_reference_engines_integers(work: Work, measures: Any, table: Table, public: Table) -> None:
    """Relations, filters, keys and bounds of all kinds; measures that fit into 64 bits."""
    tables, work = {"t": table, "p": public}, replace(work, measures=tuple(measures))
    try:
        found = ours(work, tables)
    except (QueryError, ArgumentError):
        return  # refused before any row was read
    assert found == specified(work, tables)


def crowd(size: int = 2000) -> Table:
    """Few units with many rows each, so that every bound is needed, and hard values in every column."""
    dice = random.Random(7)
    values: dict[str, list[Any]] = {"i": INTS, "x": [*REALS, 3.5, 40.25, 88.0], "t": TEXTS[:6], "b": [True, False], "d": DATES}
    columns = values | {"s": TIMES, "who": list(range(40))}
    return [{name: dice.choice([*columns[name], None]) for name in KINDS} for _ in range(size)]


KEYS = {
    "texts": ((Named("t", Column("t")),), None),
    "public texts": ((Named("t", Column("t")),), (("a", "ab", "", None),)),
    "truths": ((Named("b", Column("b")), Named("t", Column("t"))), None),
    "days": ((Named("d", Column("d")),), None),
    "buckets": ((Named("k", Call("bucket", (Column("x"), Literal(10)))),), None),
    "nothing": ((), None),
}


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("keys", KEYS)
def test_units_are_bounded_as_the_reference_engine_bounds_them(keys: str, most: int) -> None:
    named, known = KEYS[keys]
    work = Work(plain("t", "t"), named, known, True, most, MEASURES, count_units=True)
    assert ours(work, {"t": crowd()}) == specified(work, {"t": crowd()})


def test_that_the_comparison_sees_a_bound_that_is_left_out() -> None:
    named, known = KEYS["texts"]
    work, loose = (Work(plain("t", "t"), named, known, True, most, MEASURES) for most in (1, None))
    assert ours(loose, {"t": crowd()}) != specified(work, {"t": crowd()})


def test_no_unit_counts_with_more_values_than_it_may() -> None:
    """Which values stay is SQLite's own choice; how many is not."""
    work = Work(plain("t", "t"), (), None, True, None, (Distinct(Column("x"), 2),))
    for unit in range(5):
        (group,) = ours(work, {"t": [row for row in crowd() if row["who"] == unit]}).values()
        assert group.measures == (2,)


# --- what it cannot do ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "what"),
    [
        (
            Work(
                Filter(plain("t", "t"), Call("gt", (Call("ln", (Column("x"),), (3, 8)), Literal(0)))), (), None, False, None, ()
            ),
            "LN",
        ),
        (
            Work(plain("t", "t"), (Named("m", Call("regexp_matches", (Column("t"), Literal("^a+$")))),), None, False, None, ()),
            "REGEXP_MATCHES",
        ),
        (Work(plain("t", "t"), (Named("y", Call("year", (Column("d"),))),), None, False, None, ()), "YEAR"),
        (
            Work(plain("t", "t"), (), None, False, None, (Sums((Cell(Quantised(Column("x"), 0, 1, 2**30), linear=1),), 1),)),
            "62 bits",
        ),
    ],
)
def test_what_it_cannot_compute_is_refused_when_it_is_prepared(work: Work, what: str) -> None:
    engine = SQLite(sqlite3.connect(":memory:"), SQLiteDialect({"t": "t"}), {"t": KINDS})  # there is no table: no row is read
    with closing(engine._connection), pytest.raises((QueryError, ArgumentError), match=what):
        engine.prepare(work)


# --- from end to end --------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "survey.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE persons (id INTEGER, age REAL, region TEXT, diary BLOB)")
        regions = [("north", "south")[i % 2] for i in range(1000)]
        connection.executemany("INSERT INTO persons VALUES (?, ?, ?, ?)", [(i, 40, regions[i], b"") for i in range(1000)])
        connection.execute("INSERT INTO persons VALUES ('nobody', 'old', 7, NULL)")  # of other types than was declared
    return path


def catalog(file: Path, **others: dt.Table) -> dt.Catalog:
    columns = {"age": dt.between(0, 100, step=1), "region": dt.values("north", "south")}
    people = dt.Table(f"sqlite://{file}#persons", unit="id", max_rows=1, columns=columns)
    # Estimates of what is left out add up the rows of a person, and this engine has no exact SUM of fractions.
    return dt.Catalog({"people": people, **others}, dt.Budget(100, left_out=False))


@pytest.fixture
def _sqlite() -> Iterator[None]:
    with registered(SQLiteBackend()):
        yield


@pytest.mark.usefixtures("_sqlite")
def test_a_question_goes_the_whole_way(file: Path) -> None:
    with dt.open(catalog(file), ledger=":memory:") as survey:
        answer = survey.ask("SELECT region, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY region", epsilon=50)
        assert [(region, round(n, -1), round(age)) for region, n, age in answer.rows] == [
            ("north", 500, 40),
            ("south", 500, 40),
        ]
        spent = survey.budget.spent
        with pytest.raises(QueryError, match="SQLite cannot compute LN") as refused:
            survey.ask("SELECT COUNT(*) AS n FROM people WHERE LN(age) > 1", epsilon=1)
        assert "^^" in str(refused.value)
        assert survey.budget.spent == spent
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("DELETE FROM persons WHERE id = 3")
        with pytest.raises(dt.DitherError, match="no longer those that were opened"):
            survey.ask("SELECT COUNT(*) AS n FROM people", epsilon=1)


@pytest.mark.usefixtures("_sqlite")
def test_schemas_and_drafts_come_from_the_engine_that_reads_the_source(file: Path) -> None:
    assert read_schema(f"sqlite://{file}#persons") == {"id": "int", "age": "real", "region": "text", "diary": "unsupported"}
    with pytest.raises(CatalogError, match="no table nobody"):
        read_schema(f"sqlite://{file}#nobody")


@pytest.mark.usefixtures("_sqlite")
def test_one_catalog_is_read_by_one_engine(file: Path) -> None:
    other = dt.Table({"id": [1]}, unit="id", max_rows=1)
    with pytest.raises(CatalogError, match="people is read by SQLite and pets by DuckDB"):
        dt.open(catalog(file, pets=other), ledger=":memory:")


def test_without_its_line_in_the_registry_the_address_is_refused(file: Path) -> None:
    assert backend_for(f"sqlite://{file}#persons").name == "DuckDB"
    with pytest.raises(CatalogError, match="addresses on the network are not read"):
        dt.open(catalog(file), ledger=":memory:")


def test_the_printer_needs_no_engine() -> None:
    program = "import sys, dither.engines.sql.work; sys.exit('duckdb' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
