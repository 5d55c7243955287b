"""Another SQL engine is a dialect, an engine and a line in the registry: SQLite, whose two files are all there is of it.

It gives the reference engine's integers like the others (test_agreement.py, test_chosen.py). What it cannot compute it refuses
before anything is charged.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import dither as dt
from dither.engines.registry import backend_for, read_schema, registered
from dither.errors import ArgumentError, CatalogError, QueryError
from dither.query.nodes import Call, Column, Filter, Literal, Named
from dither.query.work import Cell, Quantised, Sums, Work
from engines.sqlite.dialect import SQLiteDialect
from engines.sqlite.engine import SQLite, SQLiteBackend
from engines.tables import KINDS
from engines.works import plain

pytestmark = pytest.mark.skipif(sqlite3.sqlite_version_info < (3, 39), reason="HAVING without GROUP BY came with SQLite 3.39")


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
