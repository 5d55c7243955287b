"""Excel sheets and SQLite tables are copied on opening: every cell as it is stored, or NULL."""

from __future__ import annotations

import datetime
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import dither as dt
from catalog.workbook import write_workbook
from dither.engines.duckdb.sources import Sources, open_catalog, schema
from dither.errors import CatalogError

DAY, TIME = datetime.date(2010, 12, 1), datetime.datetime(2010, 12, 1, 8, 26)
SHEET = [
    ["Report of invoices", None, None, None, None, None],
    [None, " id ", "day", "paid", "total", "note"],
    [None, 7, DAY, True, 1234.5, " fine "],
    [None, 8.0, "24.10.1947", False, "1.234,50", 12],
    [None, None, None, None, None, None],
    ["stray", "9", TIME, "perhaps", "k. A.", "#N/A"],
    [None, "7,5", 40513, None, 1e300, 0.1],
]
READ = {"skip": 1, "trim": True, "na": ["k. A.", "#N/A"], "decimal": ",", "thousands": "."}
COLUMNS = {
    "id": dt.column(kind="int", decimal="."),
    "day": dt.column(format="%d.%m.%Y"),
    "paid": dt.column(kind="bool"),
    "total": dt.between(0, 10**6),
    "note": dt.column(),
}
CLEAN = [
    (7, DAY, True, 1234.5, "fine"),
    (8, datetime.date(1947, 10, 24), False, 1234.5, "12"),
    (9, DAY, None, None, None),
    (None, None, None, 1e300, "0.1"),
]


@contextmanager
def opened(source: Any, columns: dict[str, Any], **settings: Any) -> Iterator[Sources]:
    found = open_catalog(dt.Catalog({"t": dt.Table(source, columns=columns, **settings)}, dt.Budget(epsilon=1)), threads=1)
    try:
        yield found
    finally:
        found.close()


def rows(source: Any, columns: dict[str, Any], **settings: Any) -> list[tuple[Any, ...]]:
    with opened(source, columns, **{"unit": "row", **settings}) as found:
        listed = ", ".join(f'"{name}"' for name in columns)
        return found.connection.execute(f"SELECT {listed} FROM t").fetchall()


def database(file: Path, create: str, cells: Sequence[Sequence[Any]] = ()) -> Path:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(create)
        if cells:
            connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(cells[0]))})", cells)
        connection.commit()
    return file


@pytest.mark.parametrize("name", ["book.xlsx", "book.xlsx#Data"])
def test_a_sheet_is_read_cell_by_cell(name: str, tmp_path: Path) -> None:
    write_workbook(tmp_path / "book.xlsx", {"Data": SHEET})
    assert rows(tmp_path / name, COLUMNS, read=READ) == CLEAN


def test_that_stored_numbers_would_be_read_wrongly_as_text(tmp_path: Path) -> None:
    """The twin: the same cells, all written as text. A decimal point is no decimal comma."""
    texts = [[None if cell is None else str(cell) for cell in row] for row in SHEET]
    write_workbook(tmp_path / "book.xlsx", {"Data": texts})
    assert rows(tmp_path / "book.xlsx", COLUMNS, read=READ)[0] != CLEAN[0]


def test_a_sheet_answers_questions(tmp_path: Path) -> None:
    lines = [["person", "day", "total"], *([i % 50, DAY + datetime.timedelta(i % 60), i % 10] for i in range(500))]
    write_workbook(tmp_path / "book.xlsx", {"Other": [["x"]], "Data": lines})
    columns = {"total": dt.between(0, 10, step=1), "day": dt.between(datetime.date(2010, 12, 1), datetime.date(2011, 1, 31))}
    table = dt.Table(f"{tmp_path / 'book.xlsx'}#Data", unit="person", max_rows=10, max_groups=2, columns=columns)
    with dt.open(dt.Catalog({"t": table}, dt.Budget(epsilon=10**6)), ledger=":memory:") as survey:
        answer = survey.ask("SELECT SUM(total) AS s FROM t", epsilon=50_000)
        assert [tuple(row) for row in answer.rows] == [(sum(i % 10 for i in range(500)),)]
        answer = survey.ask("SELECT COUNT(DISTINCT person) AS p FROM t", epsilon=500)
        assert [tuple(row) for row in answer.rows] == [(50,)]
        answer = survey.ask("SELECT MONTH(day) AS m, COUNT(*) AS n FROM t GROUP BY 1 HAVING COUNT(*) > 0", epsilon=5000)
        december = sum(i % 60 < 31 for i in range(500))
        assert [tuple(row) for row in answer.rows] == [(1, 500 - december), (12, december)]


def test_kinds_of_a_workbook_do_not_depend_on_rows(tmp_path: Path) -> None:
    for place, cells in enumerate(([1, DAY], ["x", "y"], [None, None])):
        write_workbook(tmp_path / f"{place}.xlsx", {"Data": [["a", "b"], cells]})
        assert schema(tmp_path / f"{place}.xlsx") == {"a": "text", "b": "text"}


SHEETS = {
    "a sheet that is not there": ("book.xlsx#None", {}, "has no such sheet", "name one of its sheets after #: Data, More."),
    "none of two sheets": ("book.xlsx", {}, "does not have exactly one sheet", "name one of its sheets after #"),
    "an empty sheet": ("book.xlsx#More", {}, "no header line", "write skip = 1 under read"),
    "an encoding": ("book.xlsx#Data", {"encoding": "cp1252"}, "encoding is a setting of CSV files", "leave encoding out"),
    "a torn file": ("torn.xlsx", {}, "cannot be read as a workbook", "save it anew"),
}


@pytest.mark.parametrize("name", SHEETS)
def test_a_workbook_that_cannot_be_read_is_refused(name: str, tmp_path: Path) -> None:
    source, read, what, fix = SHEETS[name]
    write_workbook(tmp_path / "book.xlsx", {"Data": SHEET, "More": []})
    (tmp_path / "torn.xlsx").write_bytes((tmp_path / "book.xlsx").read_bytes()[:900])
    with pytest.raises(CatalogError) as refused:
        rows(f"{tmp_path / source}", {}, read=read)
    assert what in str(refused.value)
    assert fix in str(refused.value)


def test_a_missing_reader_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "python_calamine", None)
    write_workbook(tmp_path / "book.xlsx", {"Data": SHEET})
    with pytest.raises(CatalogError, match=r"python-calamine.*\n.*dither\[excel\]"):
        schema(tmp_path / "book.xlsx")


CREATE = 'CREATE TABLE t (id INTEGER PRIMARY KEY, "Total (€)" NUMERIC(10,2), at DATETIME, note NVARCHAR(9), raw)'
STORED: list[tuple[Any, ...]] = [
    (1, 3.5, "2010-12-01 08:26:00", " a ", 5),
    (2, "1,5", "2010-12-01", None, "x"),
    (3, 10**17, "12/1/2010 8:26", "", b"\xff\x00"),
    (4, float("inf"), 1291191960, "é\0e", 2.5),
    (2**62 + 1, None, None, "-", None),
]


def test_a_sqlite_table_is_read_cell_by_cell(tmp_path: Path) -> None:
    database(tmp_path / "shop.db", CREATE, STORED)
    source = f"{tmp_path / 'shop.db'}#t"
    kinds = {"id": "int", "Total (€)": "real", "at": "text", "note": "text", "raw": "text"}
    assert schema(source) == kinds
    columns = {
        "id": dt.column(),
        "Total (€)": dt.column(),
        "at": dt.column(kind="timestamp"),
        "note": dt.column(),
        "raw": dt.column(),
    }
    with opened(source, columns, unit="row") as found:
        read = found.connection.execute("SELECT * FROM t").fetchall()
    assert read == [
        (1, 3.5, TIME, " a ", "5"),
        (2, None, datetime.datetime(2010, 12, 1), None, "x"),
        (3, 1e17, None, "", None),
        (4, float("inf"), None, "é\0e", "2.5"),
        (2**62 + 1, None, None, "-", None),
    ]


def test_text_that_is_not_utf8_is_null_in_sqlite(tmp_path: Path) -> None:
    database(tmp_path / "shop.db", "CREATE TABLE t (a TEXT, b TEXT)")
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("INSERT INTO t VALUES (CAST(x'ff61' AS TEXT), 'x'), ('é', 'y')")
        connection.commit()
    assert rows(f"{tmp_path / 'shop.db'}#t", {"a": dt.column(), "b": dt.column()}) == [(None, "x"), ("é", "y")]


def test_sqlite_text_is_read_by_settings(tmp_path: Path) -> None:
    database(tmp_path / "t.sqlite", "CREATE TABLE t (at, n)", [("12/1/2010 8:26", "1,5"), ("-", 2.5), (None, 7)])
    columns = {"at": dt.column(format="%m/%d/%Y %H:%M"), "n": dt.column(decimal=",")}
    assert rows(f"{tmp_path / 't.sqlite'}#t", columns) == [(TIME, 1.5), (None, 2.5), (None, 7.0)]


def test_references_between_sqlite_tables_are_followed(tmp_path: Path) -> None:
    file = database(tmp_path / "shop.db", "CREATE TABLE t (id INTEGER, customer INTEGER)", [(i, i % 5) for i in range(20)])
    with closing(sqlite3.connect(file)) as connection:
        connection.execute('CREATE TABLE "the lines" (invoice INTEGER, price REAL)')
        connection.executemany('INSERT INTO "the lines" VALUES (?, ?)', [(i % 20, 2.5) for i in range(60)])
        connection.commit()
    tables = {
        "invoices": dt.Table(f"{file}#t", unit="customer", max_rows=4, max_groups=4),
        "lines": dt.Table(
            f"{file}#the lines",
            unit={"column": "invoice", "references": "invoices.id"},
            max_rows=12,
            columns={"price": dt.between(0, 5, step="0.5")},
        ),
    }
    with dt.open(dt.Catalog(tables, dt.Budget(epsilon=10**6)), ledger=":memory:") as survey:
        answer = survey.ask("SELECT SUM(price) AS s FROM lines JOIN invoices ON lines.invoice = invoices.id", epsilon=50_000)
        assert [tuple(row) for row in answer.rows] == [(150.0,)]


WRONG = {
    "no table": ("shop.db", "the table in the database file is not named"),
    "another table": ("shop.db#u", "has no such table"),
    "a view": ("shop.db#v", "has no such table"),
    "a torn file": ("torn.db#t", "cannot be read"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_sqlite_file_that_cannot_be_read_is_refused(name: str, tmp_path: Path) -> None:
    source, what = WRONG[name]
    file = database(tmp_path / "shop.db", CREATE, STORED)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE VIEW v AS SELECT random() AS x")
        connection.commit()
    (tmp_path / "torn.db").write_bytes(file.read_bytes()[:200])
    with pytest.raises(CatalogError, match=what):
        rows(f"{tmp_path / source}", {})


def test_a_changed_source_is_noticed(tmp_path: Path) -> None:
    file = database(tmp_path / "shop.db", "CREATE TABLE t (id INTEGER)", [(1,)])
    book = write_workbook(tmp_path / "book.xlsx", {"Data": [["id"], [1]]})
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        for source, change in (
            (f"{file}#t", lambda: connection.execute("INSERT INTO t VALUES (2)") and connection.commit()),
            (book, lambda: write_workbook(book, {"Data": [["id"], [1], [2]]})),
        ):
            with opened(source, {"id": dt.column()}, unit="row") as found:
                assert found.unchanged()
                change()
                assert not found.unchanged()
                assert found.connection.execute("SELECT count(*) FROM t").fetchall() == [(1,)]
        assert connection.execute("SELECT count(*) FROM t").fetchall() == [(2,)]
    assert len(rows(f"{file}#t", {"id": dt.column()})) == 2


def test_an_opened_catalog_reads_no_other_file(tmp_path: Path) -> None:
    file = database(tmp_path / "shop.db", "CREATE TABLE t (id INTEGER)", [(1,)])
    (tmp_path / "other.csv").write_text("a\n1\n", encoding="utf-8")
    with opened(f"{file}#t", {"id": dt.column()}, unit="row") as found, pytest.raises(Exception, match="disabled"):
        found.connection.execute(f"SELECT * FROM read_csv('{tmp_path / 'other.csv'}')")
