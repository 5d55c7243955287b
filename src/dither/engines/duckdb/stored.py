"""Reads Excel sheets and SQLite tables, whose cells have types of their own, as batches of text for a copy in DuckDB.

A cell becomes text that reads back as the same value: 1234.5, 2026-11-30, 2026-11-30 08:15:00, true. Whole numbers have no
point, so that an id of 7 is 7 wherever it stands. What has no such text (a blob, text that is not UTF-8) is NULL. The declared
kind decides what a column means, so one cell of another type is NULL and changes nothing else.

Settings such as `format` and `decimal` are for cells that hold text. So a batch can also have the cells that are no text in a
column of their own, which is read as it stands.

Excel: python-calamine, an extra (`dither[excel]`). A sheet is held in memory while it is copied. SQLite: Python's own sqlite3,
read-only, in one statement, so one state of the file.
"""

from __future__ import annotations

import datetime
import math
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from dither.catalog.reading import Read
from dither.engines.duckdb.cells import BLANKS
from dither.errors import extra

_ROWS = 16_384  # in one batch
_MAGIC = b"SQLite format 3\0"


class StoredError(Exception):
    """Why a file cannot be read: `what` and how to fix it."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what, self.fix = what, fix


def is_sqlite(file: str) -> bool:
    """Whether a file is a SQLite database, by its first bytes."""
    try:
        with open(file, "rb") as stream:
            return stream.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def text_of(value: Any) -> str | None:
    """Returns a cell as text; None if it is empty or has no text.

    >>> text_of(5.0), text_of(0.1), text_of(True), text_of(datetime.date(2026, 11, 30)), text_of(b"\\xff")
    ('5', '0.1', 'true', '2026-11-30', None)
    """
    if isinstance(value, str):
        return value if value.isascii() or _is_whole_text(value) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        whole = math.isfinite(value) and value == math.floor(value)  # 1e16 is the person 10000000000000000
        return str(int(value)) if whole else repr(value)
    if isinstance(value, (int, datetime.date, datetime.time)):
        return value.isoformat(sep=" ") if isinstance(value, datetime.datetime) else _plain(value)
    return str(value) if isinstance(value, datetime.timedelta) else None


def _plain(value: int | datetime.date | datetime.time) -> str:
    return str(value) if isinstance(value, int) else value.isoformat()


def _is_whole_text(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def batches(
    rows: Iterable[Sequence[Any]], names: Sequence[str], wanted: Sequence[str], typed: dict[str, str], *, empty: bool
) -> Iterator[pa.Table]:
    """Yields the wanted columns as text. `typed` names, for some of them, the column with the cells that are no text.
    `empty`: an empty text is NULL, as in a CSV."""
    places = {name: names.index(name) for name in wanted}
    kept: list[Sequence[Any]] = []
    for row in rows:
        kept.append(row)
        if len(kept) == _ROWS:
            yield _table(kept, places, typed, empty)
            kept = []
    yield _table(kept, places, typed, empty)


def _table(rows: Sequence[Sequence[Any]], places: dict[str, int], typed: dict[str, str], empty: bool) -> pa.Table:
    columns: dict[str, list[str | None]] = {}
    for name, place in places.items():
        cells = [row[place] if place < len(row) else None for row in rows]
        columns[name] = [text or None if empty else text for text in map(text_of, cells)]
        if name in typed:
            columns[typed[name]] = [None if isinstance(cell, str) else text_of(cell) for cell in cells]
    return pa.table({name: pa.array(texts, pa.large_string()) for name, texts in columns.items()})


# --- Excel --------------------------------------------------------------------------------------------------------


def sheet_rows(file: str, sheet: str, most: int | None = None) -> list[list[Any]]:
    """Returns the rows of a sheet, from its first line on. Without a name, the workbook must have one sheet only."""
    try:
        import python_calamine as calamine
    except ImportError:
        raise StoredError("Excel files need the package python-calamine", extra("excel")) from None
    try:
        with calamine.CalamineWorkbook.from_path(file) as book:
            names = [each.name for each in book.sheets_metadata if each.typ == calamine.SheetTypeEnum.WorkSheet]
            if sheet in names or (not sheet and len(names) == 1):
                found = book.get_sheet_by_name(sheet or names[0]).to_python(skip_empty_area=False, nrows=most)
                return [list(row) for row in found]
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException:  # calamine's own errors, and its PanicException, which is no Exception; their text may quote a cell
        raise StoredError("the file cannot be read as a workbook", "save it anew with a spreadsheet program.") from None
    raise StoredError(_no_sheet(sheet), f"name one of its sheets after #: {', '.join(sorted(names)[:30])}.")


def _no_sheet(sheet: str) -> str:
    return "the workbook has no such sheet" if sheet else "the workbook does not have exactly one sheet"


def sheet_names(file: str, sheet: str, read: Read) -> tuple[str, ...]:
    """Returns the columns' names, from the first line of the header; "" for columns without a name, which are not read."""
    if read.names is not None:
        return read.names
    lines = sheet_rows(file, sheet, read.skip + 1)[read.skip :]
    names = [text_of(cell) or "" for cell in lines[0]] if lines else []
    return tuple(name.strip(BLANKS) if read.cells.trim else name for name in names)


def data_rows(file: str, sheet: str, read: Read) -> Iterator[list[Any]]:
    """Yields the rows below the header that have a cell."""
    for row in sheet_rows(file, sheet)[read.skip + read.header :]:
        if any(cell not in ("", None) for cell in row):
            yield row


# --- SQLite -------------------------------------------------------------------------------------------------------


def table_kinds(file: str, table: str) -> dict[str, str]:
    """Returns the columns of a SQLite table and their kinds: numbers as declared there, everything else is text."""
    with closing(_connect(file)) as connection:
        try:
            listed = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name = ?", [table])
            found = [name for name, text in listed if not text.upper().startswith("CREATE VIRTUAL")]
            columns = connection.execute(f"PRAGMA table_info({_identifier(table)})").fetchall() if found else []
        except (sqlite3.Error, UnicodeError):
            raise _unreadable() from None
    if not columns:
        raise StoredError("the SQLite file has no such table", "name a table (views are not read), as in file.sqlite#people.")
    return {str(column[1]): _kind(str(column[2]).upper()) for column in columns}


def _kind(declared: str) -> str:
    if "INT" in declared and "POINT" not in declared:
        return "int"
    return "real" if any(word in declared for word in ("REAL", "FLOA", "DOUB", "NUMERIC", "DECIMAL")) else "text"


def table_rows(file: str, table: str, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yields the rows of a SQLite table."""
    listed = ", ".join(map(_identifier, names))
    with closing(_connect(file)) as connection:
        try:
            yield from connection.execute(f"SELECT {listed} FROM {_identifier(table)}")
        except (sqlite3.Error, UnicodeError):
            raise _unreadable() from None


def _connect(file: str) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(f"file:{quote(os.path.abspath(file))}?mode=ro", uri=True)
    except sqlite3.Error:
        raise _unreadable() from None
    connection.text_factory = _decoded
    return connection


def _decoded(stored: bytes) -> str | None:
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return None


def _unreadable() -> StoredError:
    return StoredError("the SQLite file cannot be read", "look whether it is complete, and whether another program locks it.")


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
