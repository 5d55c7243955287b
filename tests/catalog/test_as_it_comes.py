"""Data as offices write it: encodings, formats, commas, words for NULL, blanks, header lines. Answers equal those of plain
DuckDB on the cleaned data."""

from __future__ import annotations

import datetime
import gzip
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import dither as dt
from dither import workspace
from dither.catalog.file import parse
from dither.engines.duckdb.guesses import guess
from dither.engines.duckdb.sources import open_catalog
from dither.errors import CatalogError

Row = tuple[Any, ...]
BORN = [datetime.date(1920 + i % 80, 1 + i % 12, 1 + i % 28) if i % 9 else None for i in range(300)]
PARTIES = ["ÖVP", "SPÖ", "Grüne / Grünes Forum", None]
CLEAN: list[Row] = [
    (i // 3, PARTIES[i % 4], BORN[i], None if i % 7 == 3 else i * 37 % 1401 * 2.5 - 1000, i % 5 if i % 6 else None)
    for i in range(300)
]
NAMES = ("Personen-ID", "Partei / Klub", "Geburtsdatum", "Gehalt (€)", "Anzahl Ämter")
OFFICE = """
[budget]
epsilon = 10000000000000
[tables.abg]
source = "abg.csv"
unit = "Personen-ID"
max_rows = 3
max_groups = 3
[tables.abg.read]
encoding = "cp1252"
skip = 1
header = 2
na = ["k. A.", "-"]
trim = true
decimal = ","
thousands = "."
[tables.abg.columns]
"Personen-ID" = { kind = "int" }
"Partei / Klub" = { values = ["ÖVP", "SPÖ", "Grüne / Grünes Forum"], null = "group" }
Geburtsdatum = { between = [1900-01-01, 2019-12-31], format = "%d.%m.%Y" }
"Gehalt (€)" = { between = [-1000, 2500], step = 2.5 }
"Anzahl Ämter" = { between = [0, 10], kind = "int", na = ["keine Angabe"] }
"""


def _money(value: float) -> str:
    whole, cents = divmod(round(abs(value) * 100), 100)
    return f"{'-' if value < 0 else ''}{whole:,}".replace(",", ".") + f",{cents:02}"


def _office_line(row: Row) -> str:
    person, party, born, wage, offices = row
    cells = [
        f" {person}",
        "k. A." if party is None else f'"{party}" ' if "/" in party and person % 2 == 7 else f"{party} ",
        "-" if born is None else f"{born.day}.{born.month:02}.{born.year}" if person % 2 else f"{born:%d.%m.%Y}",
        " k. A. " if wage is None else _money(wage),
        "keine Angabe" if offices is None else str(offices),
    ]
    return ";".join(cells)


def _office_file(folder: Path, name: str = "abg.csv") -> Path:
    lines = ["Abgeordnete zum Nationalrat, Stand 2021 ", "; ".join(NAMES), "Nr.;Text;Datum;EUR", *map(_office_line, CLEAN), ""]
    data = "\r\n".join(lines).encode("cp1252")
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder / name


def _rows(table: dt.Table, columns: Sequence[str] = ()) -> list[Row]:
    """Returns the rows as questions see them."""
    sources = open_catalog(dt.Catalog({"t": table}, dt.Budget(epsilon=1)), threads=1)
    try:
        listed = ", ".join(f'"{name}"' for name in columns) or "*"
        return sources.connection.execute(f"SELECT {listed} FROM t").fetchall()
    finally:
        sources.close()


def _truth(rows: Sequence[Row], types: Mapping[str, str], question: str, table: str) -> list[Row]:
    """Answers a question with plain DuckDB."""
    with duckdb.connect() as connection:
        connection.execute(
            f"CREATE TABLE {table} ({', '.join(f'{chr(34)}{name}{chr(34)} {of}' for name, of in types.items())})"
        )
        connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(types))})", [list(row) for row in rows])
        return connection.execute(question).fetchall()


def _same(found: Sequence[Row], truth: Sequence[Row]) -> bool:
    def plain(rows: Sequence[Row]) -> list[tuple[str, ...]]:
        return sorted(tuple(f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row) for row in rows)

    return plain(found) == plain(truth)


TYPES = dict(zip(NAMES, ("BIGINT", "VARCHAR", "DATE", "DOUBLE", "BIGINT"), strict=True))
QUESTIONS = [
    "SELECT COUNT(*) AS n FROM abg",
    'SELECT COUNT(DISTINCT "Personen-ID") AS n FROM abg',
    'SELECT COUNT(Geburtsdatum) AS n, COUNT("Gehalt (€)") AS w, COUNT("Anzahl Ämter") AS a FROM abg',
    'SELECT "Partei / Klub" AS p, COUNT(*) AS n FROM abg GROUP BY "Partei / Klub"',
    'SELECT AVG("Anzahl Ämter") AS a FROM abg',
    'SELECT SUM("Gehalt (€)") AS s FROM abg',
    'SELECT COUNT(*) AS n FROM abg WHERE "Gehalt (€)" < -512.5',
    "SELECT COUNT(*) AS n FROM abg WHERE YEAR(Geburtsdatum) BETWEEN 1950 AND 1959 AND MONTH(Geburtsdatum) > 6",
    'SELECT "Anzahl Ämter" AS a, COUNT(*) AS n FROM abg WHERE "Anzahl Ämter" < 5 GROUP BY "Anzahl Ämter" HAVING COUNT(*) > 0',
    "SELECT COUNT(*) AS n FROM abg WHERE \"Partei / Klub\" LIKE 'Grüne%'",
]


def _epsilon(question: str) -> int:
    """Returns a price at which the noise is zero, but not so large that it is refused."""
    return 1_000_000 if "SUM" in question else 10_000 if "AVG" in question else 1000


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("office")
    _office_file(folder)
    (folder / "abg.toml").write_text(OFFICE, encoding="utf-8")
    with dt.open(folder / "abg.toml", ledger=":memory:") as opened:
        yield opened


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_office_export_answers_as_the_cleaned_table(question: str, office: Any) -> None:
    answer = office.ask(question, epsilon=_epsilon(question))
    assert _same([tuple(row) for row in answer.rows], _truth(CLEAN, TYPES, question, "abg"))


def test_that_check_can_fail(office: Any) -> None:
    """The twin: one cell of the cleaned table differs."""
    question = QUESTIONS[5]
    answer = office.ask(question, epsilon=_epsilon(question))
    other = [*CLEAN[:-1], (*CLEAN[-1][:3], CLEAN[-1][3] + 2.5, CLEAN[-1][4])]
    assert not _same([tuple(row) for row in answer.rows], _truth(other, TYPES, question, "abg"))


@pytest.mark.parametrize("name", ["abg.csv", "abg.csv.gz"])
def test_an_office_export_is_read_cell_by_cell(name: str, tmp_path: Path) -> None:
    table = parse(OFFICE).tables["abg"]
    found = _rows(
        dt.Table(_office_file(tmp_path, name), unit="Personen-ID", max_rows=3, columns=table.columns, read=table.read), NAMES
    )
    assert found == CLEAN


READ = {
    "a Mac's text": ("utf-16", "a;b\nä;1\n€;2\n", [("ä", 1), ("€", 2)]),
    "Latin-1": ("latin-1", "a;b\nä;1\n", [("ä", 1)]),
    "cp1252": ("cp1252", "a;b\n€;1\n", [("€", 1)]),
    "Cyrillic": ("cp1251", "a;b\nЖ;1\n", [("Ж", 1)]),
    "Japanese": ("shift_jis", "a;b\n年;1\n", [("年", 1)]),
    "UTF-8": ("utf-8", "a;b\nä;1\n", [("ä", 1)]),
    "UTF-8 with its mark": ("utf-8-sig", "a;b\nä;1\n", [("ä", 1)]),
}


@pytest.mark.parametrize("name", READ)
def test_encodings_are_read(name: str, tmp_path: Path) -> None:
    encoding, text, rows = READ[name]
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    columns = {"a": dt.column(), "b": dt.column(kind="int")}
    assert _rows(dt.Table(tmp_path / "t.csv", unit="row", columns=columns, read={"encoding": encoding})) == rows


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16-le"])
def test_a_byte_that_is_not_of_the_encoding_is_refused_on_opening(encoding: str, tmp_path: Path) -> None:
    bad = {"utf-8": b"\xff", "cp1252": b"\x81", "utf-16-le": b"\x00\xd8"}[encoding]
    data = "a,b\n1,2\n3,".encode(encoding) + bad + "\n".encode(encoding)
    (tmp_path / "t.csv").write_bytes(data)
    with pytest.raises(CatalogError, match="a line of its file is no row") as refused:
        _rows(dt.Table(tmp_path / "t.csv", unit="row", columns={"a": dt.column()}, read={"encoding": encoding}))
    assert refused.value.diagnosis == (f"t: line 3 of {tmp_path / 't.csv'}",)
    assert "3" not in str(refused.value).split("Fix")[0]


@pytest.mark.parametrize("read", [{}, {"encoding": "cp1252"}, {"skip": 1}], ids=str)
def test_an_open_quote_is_refused_by_both_readers(read: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("title\n" * read.get("skip", 0) + 'a,b\n1,2\n3,"x\n5,6\n', encoding="ascii")
    with pytest.raises(CatalogError, match="a line of its file is no row") as refused:
        _rows(dt.Table(tmp_path / "t.csv", unit="row", columns={"a": dt.column()}, read=read))
    assert refused.value.diagnosis == (f"t: line {3 + read.get('skip', 0)} of {tmp_path / 't.csv'}",)


GUESSED: list[tuple[bytes, dict[str, Any]]] = [
    (b"a,b\n1,2\n", {}),
    ("a,b\nä,2\n".encode(), {}),
    ("\ufeffa,b\nä,2\n".encode(), {}),
    ("a,b\nä,€\n".encode("cp1252"), {"encoding": "cp1252"}),
    (b"a,b\n\x81,2\n", {"encoding": "latin-1"}),
    ("a,b\nä,2\n".encode("utf-16"), {"encoding": "utf-16"}),
    (b"a, b\n1, 2\n", {"trim": True}),
    ("a, ä\n1, 2\n".encode("cp1252"), {"encoding": "cp1252", "trim": True}),
    (b"# made by a program\n\na,b,c\n1,2,3\n4,5,6\n", {"skip": 2}),
    (b"A title;;\n1 to 3;;\na;b;c\n1,5;2,5;3\n4,5;5,5;6\n", {"skip": 2}),
    (b"a,b,a,\n1,2,3,\n", {"names": ["a", "b", "a_2"]}),
    (b"a,b,\n1,2,\n", {}),
    (b'a;"b,c,d,e"\n1;2\n3;4\n', {"delimiter": ";"}),
    (b"a,b\n1,2 \n", {"trim": True}),
    (b"a\r1\r2\r", {}),
    (b"a,b\r1,2\r", {}),
    (b"", {}),
    (("a,b\n" + "x" * ((1 << 20) - 5) + "ä").encode(), {}),
]


@pytest.mark.parametrize(("data", "settings"), GUESSED, ids=lambda value: str(value)[:30])
def test_settings_can_be_guessed_for_the_curator(data: bytes, settings: dict[str, Any], tmp_path: Path) -> None:
    for name, stored in (("t.csv", data), ("t.csv.gz", gzip.compress(data))):
        (tmp_path / name).write_bytes(stored)
        assert guess(str(tmp_path / name)).read == settings


CELLS: list[tuple[str, list[dict[str, Any]]]] = [
    ("1 20 -3", [{"kind": "int"}]),
    ("1 2.5 1e3", [{"kind": "real"}]),
    ("01234 99999", []),
    ("0.5 12", [{"kind": "real"}]),
    ("1,5 2", [{"kind": "real", "decimal": ","}]),
    ("1.234,50 12 1.000.000", [{"kind": "real", "decimal": ",", "thousands": "."}]),
    ("1.000.000 12", [{"kind": "int", "decimal": ",", "thousands": "."}]),
    ("1,234.50 12", [{"kind": "real", "thousands": ","}]),
    ("NA 1 -", [{"kind": "int", "na": ["NA", "-"]}]),
    ("NA -", []),
    ("Ada 1", []),
    ("2024-01-31 1900-12-01", [{"kind": "date"}]),
    ("2024-01-31T08:30:00", [{"kind": "timestamp"}]),
    ("31.12.1999 1.1.2001", [{"kind": "date", "format": "%d.%m.%Y"}]),
    ("12/31/1999 1/1/2001", [{"kind": "date", "format": "%m/%d/%Y"}]),
    ("1/2/1999", [{"kind": "date", "format": "%m/%d/%Y"}, {"kind": "date", "format": "%d/%m/%Y"}]),
    ("12/31/1999T08:15", [{"kind": "timestamp", "format": "%m/%d/%YT%H:%M"}]),
]


@pytest.mark.parametrize(("cells", "settings"), CELLS, ids=lambda value: str(value)[:30])
def test_kinds_and_marks_of_columns_are_guessed(cells: str, settings: list[dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id;x\n" + "".join(f"p{n};{cell}\n" for n, cell in enumerate(["", *cells.split(" ")])))
    assert list(guess(str(tmp_path / "t.csv")).columns.get("x", ())) == settings
    for each in settings:  # and everything is read by them, but for words for NULL
        known = dt.Table(tmp_path / "t.csv", unit="row", columns={"x": dt.column(**each)})
        words = each.get("na", [])
        assert [row[0] is not None for row in _rows(known)] == [
            bool(cell) and cell not in words for cell in ["", *cells.split(" ")]
        ]


@pytest.mark.usefixtures("recorded")
def test_a_draft_of_an_office_export_opens_and_asks_as_the_settings_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ["Members of parliament;;", "Nr;Born;Wage (€) "]
    lines += [
        f"{n};{1 + n % 28:02}.{1 + n % 12:02}.{1950 + n % 40};{'k. A.' if n % 9 == 0 else f'{n}.000,50'} " for n in range(1, 90)
    ]
    Path("members.csv").write_bytes("\r\n".join(lines).encode("cp1252"))
    text = workspace.draft(["members.csv"], "Nr")
    columns = text.partition("[tables.members.columns]")[2]
    assert 'encoding = "cp1252"\nskip = 1\ntrim = true\n' in text
    assert 'Born = {}                # reads as { kind = "date", format = "%d.%m.%Y" }' in columns
    assert '"Wage (€)" = {}          # reads as { kind = "real", decimal = ",", thousands = ".", na = ["k. A."] }' in columns
    filled = re.sub(r"= \{\} +# reads as", "=", text).replace("epsilon = 1.0 ", "epsilon = 1e9 ")
    filled = filled.replace('{ kind = "real",', '{ between = [0, 100000], step = 0.5, kind = "real",')
    Path("catalog.toml").write_text(filled, encoding="utf-8")
    with dt.open("catalog.toml", ledger=":memory:") as survey:
        wages = survey.ask('SELECT SUM("Wage (€)") AS s FROM members', epsilon=10**6)
        born = survey.ask("SELECT COUNT(Born) AS n FROM members", epsilon=1000)
    assert wages["s"] == [sum(n * 1000 + 0.5 for n in range(1, 90) if n % 9)]
    assert born["n"][0] == 89


LINES: list[tuple[dict[str, Any], str, list[Row]]] = [
    ({"skip": 2}, "Report\n\na,b\n1,2\n", [("1", "2")]),
    ({"header": 2}, "a,b\nnumber,text,\n1,2\n", [("1", "2")]),
    ({"header": 0, "names": ["a", "b"]}, "1,2\n3,4\n", [("1", "2"), ("3", "4")]),
    ({"names": ["a", "b"]}, "x,x\n1,2\n", [("1", "2")]),
    ({"delimiter": "^"}, "a^b\n1;5^2,3\n", [("1;5", "2,3")]),
    ({"quote": "'"}, "a,b\n'1,5','it''s'\n", [("1,5", "it's")]),
    ({"quote": "", "delimiter": "\t"}, 'a\tb\n"1\t5" tall\n', [('"1', '5" tall')]),
    ({"trim": True}, " a, b \n 1 ,\u00a0x\t\n  ,y\n", [("1", "x"), (None, "y")]),
    ({"trim": True, "header": 1, "encoding": "latin-1"}, " a, b \n 1 ,\u00a0x\t\n", [("1", "x")]),
    ({"na": ["NA", ""]}, "a,b\nNA,x\nna, NA\n", [(None, "x"), ("na", " NA")]),
    ({"na": ["NA"], "trim": True}, "a,b\nNA,x\nna, NA\n", [(None, "x"), ("na", None)]),
    ({"encoding": "latin-1"}, 'a,b\n 1,"x\ny"\n', [(" 1", "x\ny")]),
    ({}, "a,b,\n1,2,\n3,4\n", [("1", "2"), ("3", "4")]),
    ({"encoding": "cp1252"}, "a,b,\n1,2,\n", [("1", "2")]),
    ({}, 'a,b\r1,"x\ny"\r3,"x\ry"\r', [("1", "x\ny"), ("3", "x\ry")]),
    ({"encoding": "utf-16"}, "a,b\r1,2", [("1", "2")]),
    ({"skip": 1}, '12" records\ra,b\r1,2\r', [("1", "2")]),
    ({"header": 0, "names": ["a", "b"]}, '"1\r5",2\n3,4\n', [("1\r5", "2"), ("3", "4")]),
    ({"names": ["a", "b"]}, '"a\rb",c\r\n1,2\r\n', [("1", "2")]),
]


@pytest.mark.parametrize(("read", "text", "rows"), LINES, ids=lambda value: str(value)[:40])
def test_lines_and_cells_are_read_as_declared(read: dict[str, Any], text: str, rows: list[Row], tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(text.encode(read.get("encoding", "utf-8")))
    table = dt.Table(tmp_path / "t.csv", unit="row", columns={"a": dt.column(), "b": dt.column()}, read=read)
    assert _rows(table) == rows


@pytest.mark.parametrize("text", ["a,b\r1,2\n3,4\r", "a,b\n1,2\r3,4\n", 'a,b\r1,"2\r3,4\r'])
def test_mixed_line_ends_and_open_quotes_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(text.encode())
    with pytest.raises(CatalogError, match="is no row of the table"):
        _rows(dt.Table(tmp_path / "t.csv", unit="row", columns={"a": dt.column()}))


DATES: list[tuple[str | list[str], str, object]] = [
    ("%d.%m.%Y", "24.10.1947", datetime.date(1947, 10, 24)),
    ("%d.%m.%Y", " 4.1.1947 ", datetime.date(1947, 1, 4)),
    ("%d.%m.%Y", "24.10.47", None),
    ("%d.%m.%Y", "30.2.2020", None),
    ("%d.%m.%Y", "2020-01-01", None),
    ("%d.%m.%Y", "epoch", None),
    ("%d.%m.%Y", "infinity", None),
    ("%d.%m.%Y", "24.10.99999", None),
    ("%d.%m.%Y", "24.10.1947 x", None),
    ("%d.%m.%y", "24.10.47", datetime.date(2047, 10, 24)),
    ("%d.%m.%y", "24.10.69", datetime.date(1969, 10, 24)),
    (["%Y-%m-%d", "%d.%m.%Y"], "24.10.1947", datetime.date(1947, 10, 24)),
    ("%d %b %Y", "1 Feb 2020", datetime.date(2020, 2, 1)),
    ("%Y年%m月%d日", "2020年1月2日", datetime.date(2020, 1, 2)),
    ("%Y%m%d", "20200102", datetime.date(2020, 1, 2)),
    ("%m/%d/%Y %H:%M", "12/1/2010 8:26", datetime.datetime(2010, 12, 1, 8, 26)),
    ("%m/%d/%Y %H:%M", "12/1/2010", None),
    ("%m/%d/%Y %I:%M %p", "12/1/2010 8:26 PM", datetime.datetime(2010, 12, 1, 20, 26)),
    ("%Y-%m-%d %H:%M:%S.%f", "2010-12-01 08:26:00.5", datetime.datetime(2010, 12, 1, 8, 26, 0, 500_000)),
]


@pytest.mark.parametrize(("format", "text", "value"), DATES, ids=str)
def test_dates_are_read_in_their_format_or_not_at_all(format: Any, text: str, value: object) -> None:
    table = dt.Table(pa.table({"x": [text]}), unit="row", columns={"x": dt.column(format=format)})
    assert _rows(table) == [(value,)]


NUMBERS: list[tuple[dict[str, Any], str, object]] = [
    ({"decimal": ","}, "1234,5", 1234.5),
    ({"decimal": ","}, "1.234,5", None),
    ({"decimal": ","}, "1234.5", None),
    ({"decimal": ",", "thousands": "."}, "1.234,50", 1234.5),
    ({"decimal": ",", "thousands": "."}, "1234,50", 1234.5),
    ({"decimal": ",", "thousands": "."}, "-1.234.567", -1234567.0),
    ({"decimal": ",", "thousands": "."}, "1.5", None),
    ({"decimal": ",", "thousands": "."}, "24.10.1947", None),
    ({"decimal": ",", "thousands": "."}, "NaN", None),
    ({"thousands": ","}, "1,234.5", 1234.5),
    ({"thousands": "'"}, "1'234.5", 1234.5),
    ({"thousands": " "}, "1\u00a0234.5", 1234.5),
    ({"decimal": ","}, "1,5e3", 1500.0),
    ({"decimal": ","}, "+,5", 0.5),
]


@pytest.mark.parametrize(("cells", "text", "value"), NUMBERS, ids=str)
def test_numbers_are_read_by_their_marks_or_not_at_all(cells: Any, text: str, value: object) -> None:
    assert _rows(dt.Table(pa.table({"x": [text]}), unit="row", columns={"x": dt.column(**cells)})) == [(value,)]


def test_ids_with_marks_stay_different() -> None:
    """A number that is rounded, or written with zeros in front, could be another person's."""
    frame = pa.table({"id": ["1.234", "1234", "01.234", "1.234,5", "x"]})
    table = dt.Table(frame, unit="id", columns={"id": dt.column(kind="int", decimal=",", thousands=".")})
    assert _rows(table) == [(1234,), (1234,), (None,), (None,), (None,)]


HOSTILE = [
    "x" * 5000,
    "9" * 5000,
    "a\0b",
    "1e400",
    "-1e400",
    "NaN",
    "inf",
    "1.1.99999",
    "1.1.0000",
    "99999-01-01",
    "epoch",
    "\ufffd",
]
SOURCES = ["csv", "parquet", "duckdb", "frame", "sqlite", "xlsx"]


def _store(folder: Path, form: str, cells: Sequence[str | None]) -> Any:
    """Stores the cells, the texts of a column, in each kind of source."""
    table = pa.table({"id": [str(i) for i in range(len(cells))], "x": pa.array(cells, pa.string())})
    if form == "frame":
        return table
    if form == "csv":
        lines = ["id;x", *(f'{i};"{cell}"' if cell is not None else f"{i};" for i, cell in enumerate(cells))]
        (folder / "t.csv").write_text("\n".join(lines), encoding="utf-8")
        return folder / "t.csv"
    if form == "parquet":
        pa.parquet.write_table(table, folder / "t.parquet")
        return folder / "t.parquet"
    if form == "duckdb":
        with duckdb.connect(str(folder / "t.duckdb")) as connection:
            connection.register("cells", table)
            connection.execute("CREATE TABLE t AS SELECT * FROM cells")
        return f"{folder / 't.duckdb'}#t"
    return _stored(folder, form, cells)


def _stored(folder: Path, form: str, cells: Sequence[str | None]) -> str:
    import sqlite3
    from contextlib import closing

    from catalog.workbook import write_workbook

    if form == "sqlite":
        with closing(sqlite3.connect(folder / "t.db")) as connection:
            connection.execute("CREATE TABLE t (id, x)")
            connection.executemany("INSERT INTO t VALUES (?, ?)", [(str(i), cell) for i, cell in enumerate(cells)])
            connection.commit()
        return f"{folder / 't.db'}#t"
    rows = [["id", "x"], *([str(i), cell.replace("\0", "") if cell else cell] for i, cell in enumerate(cells))]
    return f"{write_workbook(folder / 't.xlsx', {'Data': rows})}#Data"


ASKED = {
    "real": ("SELECT SUM(x) AS s, COUNT(x) AS n FROM t", dt.between(0, 10, kind="real", decimal=",", thousands=".")),
    "int": ("SELECT SUM(x) AS s, COUNT(x) AS n FROM t", dt.between(0, 10, kind="int", decimal=",")),
    "date": (
        "SELECT COUNT(*) AS n FROM t WHERE DATE_TRUNC('month', x) = x OR YEAR(x) > 3",
        dt.between(datetime.date(1900, 1, 1), datetime.date(2030, 1, 1), format="%d.%m.%Y"),
    ),
    "timestamp": ("SELECT COUNT(*) AS n FROM t WHERE HOUR(x) > 3", dt.column(format="%d.%m.%Y %H:%M")),
    "text": ("SELECT COUNT(DISTINCT x) AS n FROM t WHERE x LIKE '%a%'", dt.column(na=["a"], trim=True)),
}


@pytest.mark.parametrize("form", SOURCES)
@pytest.mark.parametrize("kind", ASKED)
def test_no_cell_makes_a_question_fail(kind: str, form: str, tmp_path: Path) -> None:
    question, column = ASKED[kind]
    seen = []
    for cells in (["7"], ["7", *HOSTILE]):
        source = _store(tmp_path, form, cells)
        table = dt.Table(source, unit="row", columns={"x": column}, read={"na": ["-"]})
        with dt.open(dt.Catalog({"t": table}, dt.Budget(epsilon=10)), ledger=":memory:") as survey:
            answer = survey.ask(question, epsilon=1)
            seen.append((len(answer.rows), answer.columns))
        for file in tmp_path.iterdir():
            file.unlink()
    assert seen[0] == seen[1]


@pytest.mark.parametrize("form", SOURCES)
def test_every_source_reads_text_by_the_same_settings(form: str, tmp_path: Path) -> None:
    cells = ["24.10.1947", " 1.2.2020 ", "k. A.", None, "2020-01-01", "x"]
    table = dt.Table(
        _store(tmp_path, form, cells),
        unit="row",
        columns={"x": dt.column(format="%d.%m.%Y")},
        read={"trim": True, "na": ["k. A."]},
    )
    assert [row[0] for row in _rows(table)] == [datetime.date(1947, 10, 24), datetime.date(2020, 2, 1), None, None, None, None]


def test_a_columns_own_setting_comes_first() -> None:
    frame = pa.table({"a": [" 1,5", "-"], "b": [" 1.5", "-"], "c": [" x ", "-"]})
    columns = {"a": dt.column(kind="real"), "b": dt.column(kind="real", decimal="."), "c": dt.column(trim=False, na=[])}
    table = dt.Table(frame, unit="row", columns=columns, read={"trim": True, "na": ["-"], "decimal": ","})
    assert _rows(table) == [(1.5, 1.5, " x "), (None, None, "-")]


def test_a_file_without_a_header_is_read_by_names(tmp_path: Path) -> None:
    """UCI Adult as it is shipped: no header, a blank after every comma, ? for NULL, an empty line at the end."""
    lines = [f"{20 + i % 50}, {'?' if i % 5 == 0 else 'Private'}, {'Male' if i % 3 else 'Female'}, <=50K" for i in range(300)]
    (tmp_path / "adult.csv").write_text("\n".join([*lines, "", ""]), encoding="utf-8")
    read = {"header": 0, "names": ["age", "workclass", "sex", "income"], "trim": True, "na": ["?"]}
    columns = {"sex": dt.values("Male", "Female"), "workclass": dt.values("Private", None), "age": dt.between(17, 90)}
    table = dt.Table(tmp_path / "adult.csv", unit="row", columns=columns, read=read)
    with dt.open(dt.Catalog({"adult": table}, dt.Budget(epsilon=1000)), ledger=":memory:") as survey:
        by_sex = survey.ask("SELECT sex, COUNT(*) AS n FROM adult GROUP BY sex ORDER BY sex", epsilon=100)
        by_class = survey.ask("SELECT workclass, COUNT(*) AS n FROM adult GROUP BY workclass", epsilon=100)
    assert [tuple(row) for row in by_sex.rows] == [("Female", 100), ("Male", 200)]
    assert {tuple(row) for row in by_class.rows} == {("Private", 240), (None, 60)}


def test_python_dates_in_pandas_are_read_by_their_kind() -> None:
    days = [datetime.date(2020, 1, 1), None, datetime.date(1947, 10, 24)]
    frame = pd.DataFrame({"x": pd.Series([*days, "no date"], dtype=object)})
    for column in (dt.column(kind="date"), dt.between(datetime.date(1900, 1, 1), datetime.date(2030, 1, 1))):
        assert [row[0] for row in _rows(dt.Table(frame, unit="row", columns={"x": column}))] == [*days, None]


def test_blanks_around_names_are_removed() -> None:
    frame = pa.table({" sex": [" Male", " Female"]})
    table = dt.Table(frame, unit="row", columns={"sex": dt.values("Male", "Female")}, read={"trim": True})
    assert _rows(table) == [("Male",), ("Female",)]
