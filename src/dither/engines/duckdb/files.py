"""Finds files and how to read them: Parquet, CSV, Excel, and tables of DuckDB and SQLite files. Schemas come from footers and
header lines only.

CSV. Every column is read as text (nothing is guessed from rows), once, on opening, so that no line can make a question fail. An
empty field is NULL. A file with a line that is not a row is refused. Python's strict reader checks the file from end to end
first (delimited.py). DuckDB's reader is faster and more tolerant; it must find as many rows. What DuckDB's reader cannot read
(other encodings, quotes, headers and line ends) Python's reader copies. So what is checked is what is read.

Excel and SQLite (stored.py) are copied as text too, once, on opening.

Parquet. DuckDB converts values while it reads, and raises where one does not fit: a timestamp in milliseconds beyond its range,
bytes that are not UTF-8. Such files are read through pyarrow, which returns the stored values unchanged; frames.py turns those
that do not fit into NULL, and the rows are copied into a table of the connection, once, on opening. The copy takes memory
(declared columns only; DuckDB moves it to disk beyond its memory limit). Files that DuckDB can read are never copied.
"""

from __future__ import annotations

import codecs
import glob
import os
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.parquet as pq
from duckdb import DuckDBPyConnection
from duckdb import Error as DuckDBError

from dither.catalog.check import CSV, UNSUPPORTED
from dither.catalog.file import DELTA
from dither.catalog.reading import DEFAULT, EXCEL, LINES, TEXT_FILE, Read
from dither.engines.duckdb.delimited import HeaderError, ends_with_returns, header, rows
from dither.engines.duckdb.delimited import batches as csv_batches
from dither.engines.duckdb.dialect import identifier, literal
from dither.engines.duckdb.frames import arrow_kind, readable
from dither.engines.duckdb.lakes import delta_files, refuse_lakes
from dither.engines.duckdb.stored import (
    StoredError,
    data_rows,
    is_sqlite,
    sheet_names,
    table_kinds,
    table_rows,
)
from dither.engines.duckdb.stored import batches as stored_batches
from dither.errors import CatalogError

_PARQUET = (".parquet", ".pq")
_DATABASE = (".duckdb", ".db", ".ddb")
_SQLITE = (".sqlite", ".sqlite3", ".db3")
Batches = Callable[[Sequence[str], dict[str, str]], Iterator[pa.Table]]  # wanted columns, and those of `SqlSource.typed`
_KINDS = (
    (re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?$"), "int"),
    (re.compile(r"FLOAT$|DOUBLE$|DECIMAL\(\d+,\d+\)$"), "real"),
    (re.compile(r"VARCHAR$|UUID$|ENUM\(.*\)$", re.DOTALL), "text"),
    (re.compile(r"BOOLEAN$"), "bool"),
    (re.compile(r"DATE$"), "date"),
    (re.compile(r"TIMESTAMP(_S|_MS|_NS)?$|TIMESTAMP WITH TIME ZONE$"), "timestamp"),
)


@dataclass(frozen=True)
class SqlSource:
    """A source for a FROM clause: its SQL, DuckDB's type and dither's kind of each column, and its files."""

    sql: str
    types: dict[str, str]
    kinds: dict[str, str]
    files: tuple[str, ...] = ()
    rows: Callable[[], int] | None = None  # counts rows with the strict reader; such a source is copied on opening
    batches: Batches | None = None  # yields the rows as text; such a source is copied on opening, and has no `sql`
    typed: Mapping[str, str] = field(default_factory=dict)  # where a copy has the cells of a column that are not text
    parquet: bool = False  # pyarrow can read it if DuckDB cannot
    collated: bool = False  # its columns may have collations of their own
    logs: tuple[str, ...] = ()  # files that may hold changes not yet in `files`; they come and go

    @property
    def copied(self) -> bool:
        """Whether the rows are copied on opening, and the files are not read again."""
        return self.rows is not None or self.batches is not None


def place_file(connection: DuckDBPyConnection, source: str, read: Read = DEFAULT) -> SqlSource:
    """Returns the source for a path, or refuses it by name. Reads no row."""
    try:
        return _place(connection, source, read)
    except StoredError as refused:
        raise CatalogError([(None, f"{source} cannot be used: {refused.what}.", refused.fix)]) from None


def _place(connection: DuckDBPyConnection, source: str, read: Read) -> SqlSource:
    file, mark, table = source.partition("#")
    lower = file.lower()
    if "://" in source:
        raise StoredError("addresses on the network are not read", "copy the data to a file.")
    if lower.endswith(CSV) and not mark:
        return _csv(_files(file), read)
    refuse_settings(read, TEXT_FILE, "CSV files")
    if lower.endswith(EXCEL):
        return _sheet(_files(file)[0], table, read)
    refuse_settings(read, LINES, "CSV and Excel files")
    if lower.endswith((*_DATABASE, *_SQLITE)):
        return _database_table(connection, file, table)
    if mark:
        raise StoredError("only a database or a workbook can have a table after #", 'write source = "file.duckdb#table".')
    if source.startswith(DELTA):
        gone = "a file of that version is missing"
        return _parquet(connection, [path for each in delta_files(source) for path in _files(each, gone)])
    if os.path.isdir(file):
        return _plain_parquet(
            connection, _files(os.path.join(file, "**", "*.parquet"), "the folder has no .parquet file in it")
        )
    if lower.endswith(_PARQUET):
        return _plain_parquet(connection, _files(file))
    if not os.path.splitext(file)[1]:
        _files(file)  # a name without an ending is more likely a missing file
    tables = (f"{ending}#table" for ending in (*_DATABASE, *_SQLITE))
    known = ", ".join((*_PARQUET, *CSV, *tables, *(f"{ending}#sheet" for ending in EXCEL)))
    raise StoredError("the kind of file is not known by its ending", f"name a file that ends in one of {known}.")


def refuse_settings(read: Read, parts: Sequence[str], where: str) -> None:
    """Refuses settings that make no sense for a source."""
    given = read.given(parts)
    if given:
        raise StoredError(f"{given[0]} is a setting of {where}", f"leave {' and '.join(given)} out of its settings under read.")


def duckdb_kind(type_text: str) -> str:
    """Returns the kind of a DuckDB type.

    >>> duckdb_kind("UBIGINT"), duckdb_kind("DECIMAL(18,3)"), duckdb_kind("INTEGER[]")
    ('int', 'real', 'unsupported')
    """
    return next((kind for pattern, kind in _KINDS if pattern.match(type_text)), UNSUPPORTED)


def types_of(connection: DuckDBPyConnection, sql: str) -> dict[str, str]:
    """Returns the column names and DuckDB types of a FROM clause."""
    rows = connection.execute(f"DESCRIBE SELECT * FROM {sql}").fetchall()
    return {str(row[0]): str(row[1]) for row in rows}


def _files(pattern: str, none: str = "") -> list[str]:
    paths = [pattern] if os.path.isfile(pattern) else sorted(filter(os.path.isfile, glob.glob(pattern, recursive=True)))
    if not paths:
        missing = none or ("no file matches" if glob.has_magic(pattern) else "there is no such file")
        raise StoredError(
            missing, "look at the path: in a catalog it is relative to the catalog file, elsewhere to your folder."
        )
    if not all(os.access(path, os.R_OK) for path in paths):
        raise StoredError("it may not be read", "look at the permissions of the file.")
    if any(character in path for path in paths for character in "*?["):
        raise StoredError("a file's name has one of * ? [ in it", "rename the file.")
    return [os.path.abspath(path) for path in paths]


def _plain_parquet(connection: DuckDBPyConnection, files: list[str]) -> SqlSource:
    refuse_lakes(files)
    return _parquet(connection, files)


def _parquet(connection: DuckDBPyConnection, files: list[str]) -> SqlSource:
    # All files must have the first file's schema, or rows would be cast, dropped or fail at question time.
    first: dict[str, str] | None = None
    for file in files:
        types = _describe(connection, _read_parquet([file]))
        if first is not None and types != first:
            raise StoredError("its files differ in columns or types", "write them with one schema.")
        first = types
    sql = _read_parquet(files)
    return replace(_sql_source(sql, _describe(connection, sql), files), parquet=True)


def _read_parquet(files: list[str]) -> str:
    # Columns of the path (region=north/) are text, as in a CSV; the declared kind decides.
    return f"read_parquet({_list(files)}, hive_types_autocast = false)"


def _describe(connection: DuckDBPyConnection, sql: str) -> dict[str, str]:
    try:
        return types_of(connection, sql)
    except DuckDBError:
        raise StoredError("the file cannot be read as Parquet", "look whether it is complete and readable.") from None


def _csv(files: list[str], read: Read) -> SqlSource:
    headers = {_header(file, read) for file in files}
    if len(headers) > 1:
        raise StoredError("its files differ in their header line", "write them with one header.")
    separator, names = headers.pop()
    _check_names(names)
    types = dict.fromkeys(names, "VARCHAR")
    if not _is_plain(read) or any(ends_with_returns(file, read) for file in files):
        placed = _sql_source("", types, files)
        return replace(placed, batches=lambda wanted, _: csv_batches(files, read, separator, names, wanted))
    columns = ", ".join(f"{literal(name).text}: 'VARCHAR'" for name in names)
    options = f"delim = {literal(separator).text}, columns = {{{columns}}}"
    fixed = """auto_detect = false, header = true, quote = '"', escape = '"', nullstr = '', strict_mode = true"""
    placed = _sql_source(f"read_csv({_list(files)}, {options}, {fixed})", types, files)
    return replace(placed, rows=lambda: rows(files, read, separator, len(names)))


def _is_plain(read: Read) -> bool:
    """Whether DuckDB's reader can read such files."""
    return codecs.lookup(read.encoding).name == "utf-8" and not read.given(("quote", *LINES))


def _header(file: str, read: Read) -> tuple[str, tuple[str, ...]]:
    try:
        separator, names = header(file, read)
    except HeaderError:
        fix = (
            "save it as UTF-8 with the column names in the first line, or say under read how it is written: "
            'encoding = "cp1252", or skip = 1 for a line above the names.'
        )
        raise StoredError("its header line cannot be read", fix) from None
    if not names:
        raise StoredError("it has no header line", "write the column names into the first line.")
    return separator, names


def _check_names(names: Sequence[str]) -> None:
    if len({name.lower() for name in names}) < len(names) or not all(names):
        fix = 'give every column a name of its own, or list all names under read: names = ["id", "age"].'
        raise StoredError("its header line lacks names or has one twice", fix)


def _sheet(file: str, sheet: str, read: Read) -> SqlSource:
    names = sheet_names(file, sheet, read)
    named = [name for name in names if name]
    if not named:
        raise StoredError("it has no header line", "write the column names into its first line, or write skip = 1 under read.")
    _check_names(named)
    placed = _sql_source("", dict.fromkeys(named, "VARCHAR"), [file])

    def batches(wanted: Sequence[str], typed: dict[str, str]) -> Iterator[pa.Table]:
        return stored_batches(data_rows(file, sheet, read), names, wanted, typed, empty=True)

    return replace(placed, batches=batches, typed=_beside(named))


def _beside(names: Sequence[str]) -> dict[str, str]:
    """Returns a name for each column that no column has."""
    taken, found = {name.lower() for name in names}, {}
    for name in names:
        other = f"{name} as stored"
        while other.lower() in taken:
            other += "'"
        taken.add(other.lower())
        found[name] = other
    return found


def _database_table(connection: DuckDBPyConnection, file: str, table: str) -> SqlSource:
    if not table:
        raise StoredError("the table in the database file is not named", f'write source = "{os.path.basename(file)}#table".')
    path = _files(file)[0]
    return _sqlite_table(path, table) if is_sqlite(path) else _duckdb_table(connection, path, table)


def _sqlite_table(path: str, table: str) -> SqlSource:
    kinds = table_kinds(path, table)
    names = list(kinds)

    def batches(wanted: Sequence[str], typed: dict[str, str]) -> Iterator[pa.Table]:
        return stored_batches(table_rows(path, table, wanted), wanted, wanted, typed, empty=False)

    types = dict.fromkeys(names, "VARCHAR")
    return SqlSource("", types, kinds, (path,), batches=batches, typed=_beside(names), logs=(f"{path}-wal",))


def _duckdb_table(connection: DuckDBPyConnection, path: str, table: str) -> SqlSource:
    schema, name = table.split(".", 1) if "." in table else ("main", table)
    try:
        attached = _attach(connection, path)
        sql = f"{identifier(attached)}.{identifier(schema)}.{identifier(name)}"
        exists = connection.execute(
            "SELECT 1 FROM duckdb_tables() WHERE database_name = ? AND schema_name = ? AND table_name = ?",
            [attached, schema, name],
        ).fetchall()
        types = types_of(connection, sql) if exists else {}
    except DuckDBError:
        raise StoredError("the DuckDB file cannot be opened", "look whether another program has it open for writing.") from None
    if not exists:
        raise StoredError("the DuckDB file has no such table", "name a table (views are not read), as in file.duckdb#people.")
    return replace(_sql_source(sql, types, [path]), collated=True)


def _attach(connection: DuckDBPyConnection, path: str) -> str:
    """Attaches a file if it is not attached yet, and returns its name."""
    rows = connection.execute("SELECT database_name, path FROM duckdb_databases()").fetchall()
    for name, attached_path in rows:
        if attached_path == path:
            return str(name)
    name = f"file {len(rows)}"
    connection.execute(f"ATTACH {literal(path).text} AS {identifier(name)} (READ_ONLY, TYPE duckdb)")
    return name


def _sql_source(sql: str, types: dict[str, str], files: list[str]) -> SqlSource:
    return SqlSource(sql, types, {name: duckdb_kind(text) for name, text in types.items()}, tuple(files))


def _list(files: list[str]) -> str:
    return "[" + ", ".join(literal(file).text for file in files) + "]"


_BATCH = "batch of rows"  # no table has this name, because of its spaces
_ROWS = 65_536  # in one batch
_ZONED = "TIMESTAMP WITH TIME ZONE"


def copy_batches(connection: DuckDBPyConnection, table: str, columns: Sequence[str], batches: Iterable[pa.Table]) -> None:
    """Copies batches of text into a new table."""
    listed = ", ".join(identifier(column) for column in columns)
    connection.execute(f"CREATE TABLE {table} ({', '.join(f'{identifier(column)} VARCHAR' for column in columns)})")
    for batch in batches:
        connection.register(_BATCH, batch)
        try:
            connection.execute(f"INSERT INTO {table} SELECT {listed} FROM {identifier(_BATCH)}")
        finally:
            connection.unregister(_BATCH)


class UnreadableError(Exception):
    """pyarrow cannot read the files either."""


def copy_parquet(connection: DuckDBPyConnection, name: str, files: Iterable[str], types: Mapping[str, str]) -> dict[str, str]:
    """Copies the columns into the table `name`. Returns their types: as in DuckDB, with zoned timestamps in UTC."""
    if not types:
        raise UnreadableError  # no column was converted, so pyarrow cannot help
    stored = {column: "TIMESTAMP" if text == _ZONED else text for column, text in types.items()}
    listed = ", ".join(f"{identifier(column)} {text}" for column, text in stored.items())
    connection.execute(f"CREATE TABLE {identifier(name)} ({listed})")
    try:
        for file in files:
            _copy_file(connection, name, file, stored)
    except (pa.ArrowException, OSError, ValueError, TypeError, LookupError):  # pyarrow's text may quote a value
        raise UnreadableError from None
    return stored


def _copy_file(connection: DuckDBPyConnection, name: str, file: str, types: Mapping[str, str]) -> None:
    with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as opened:
        stored = [column for column in types if column in opened.schema_arrow.names]
        path = _path_values(connection, file, [column for column in types if column not in stored])
        listed = [
            f"TRY_CAST({identifier(column) if column in stored else path[column]} AS {text})" for column, text in types.items()
        ]
        insert = f"INSERT INTO {identifier(name)} SELECT {', '.join(listed)} FROM {identifier(_BATCH)}"
        for batch in opened.iter_batches(_ROWS, columns=stored):
            connection.register(_BATCH, _batch(pa.Table.from_batches([batch]), types))
            try:
                connection.execute(insert)
            finally:
                connection.unregister(_BATCH)


def _path_values(connection: DuckDBPyConnection, file: str, columns: list[str]) -> dict[str, str]:
    """Returns the columns of a file's path (region=north/) as constants. DuckDB finds them without reading a value."""
    if not columns:
        return {}
    listed = ", ".join(identifier(column) for column in columns)
    source = f"read_parquet([{literal(file).text}], hive_types_autocast = false)"
    rows = connection.execute(f"SELECT {listed} FROM {source} LIMIT 1").fetchall()
    return {
        column: literal(value).text for column, value in zip(columns, rows[0] if rows else [None] * len(columns), strict=True)
    }


def _batch(table: pa.Table, types: Mapping[str, str]) -> pa.Table:
    """Returns the rows in a form that DuckDB reads without an error."""
    columns = {name: _as_stored(table.column(name), types[name]) for name in table.column_names}
    if any(arrow_kind(column.type) == UNSUPPORTED for column in columns.values()):
        raise UnreadableError
    return readable(pa.table(columns)) if columns else pa.table({"no column": pa.nulls(table.num_rows, pa.int8())})


def _as_stored(column: pa.ChunkedArray, stored: str) -> pa.ChunkedArray:
    """Returns the column in the file's own type: pyarrow may use an extension type, or one that the writer noted."""
    if isinstance(column.type, pa.BaseExtensionType):
        kind = column.type.storage_type
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], kind)
    if pa.types.is_duration(column.type):
        return column.cast(pa.int64())
    if stored == "UUID" and pa.types.is_fixed_size_binary(column.type):
        return pa.chunked_array([pa.array(map(_uuid, column.to_pylist()), pa.string())])
    if stored == "VARCHAR" and pa.types.is_binary(column.type):  # a Parquet ENUM
        return pa.chunked_array([chunk.cast(pa.string(), safe=False) for chunk in column.chunks], pa.string())
    return column


def _uuid(value: bytes | None) -> str | None:
    return None if value is None else str(uuid.UUID(bytes=value))
