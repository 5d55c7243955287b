"""Opens every source of a catalog in one locked DuckDB connection, as views of the declared columns in their kinds.

What a question can reach is exactly what is declared: undeclared columns of private tables are not in the views. After
opening, DuckDB may read the named files and nothing else: no other path, no network, no extension, no setting (but those
of duckdb_parts.py). A decimal in a column of kind int is rounded, except where the column says who or which row it is: two
people must never become one, so there only what is a whole number as it stands is read. What does not cast at all is NULL.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import duckdb
from duckdb import DuckDBPyConnection

from dither.engines.csv_lines import LineError
from dither.engines.duckdb_parts import SETTINGS, spread
from dither.engines.duckdb_text import TYPES, identifier, literal
from dither.engines.files import Placed, place_file, types_of
from dither.engines.frames import arrow_kind, frame_schema, frame_table, is_frame, readable
from dither.errors import CatalogError
from dither.query.catalog import Catalog, Table
from dither.query.check import UNSUPPORTED, complete, schema_faults

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
}
_SMALL = ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER")
_ALWAYS_FITS = {(stored, kind) for stored in _SMALL for kind in ("int", "real")} | {("BIGINT", "real"), ("FLOAT", "real")}
_NOTHING = "no column"  # a view needs one, even where only the number of rows matters
_A_ROW = (
    "look at that line: it needs a cell for each column, in UTF-8, and a quote at the end of a cell that begins with one; "
    "a quote within such a cell is written twice."
)
_ALIKE = "write the file anew, with one kind of line ends throughout and cells of at most 131,072 characters."
_COMPLETE = "look whether its files are complete and their text is UTF-8."
_Stamp = tuple[str, int, int]


@dataclass(frozen=True)
class Sources:
    """An open catalog. `catalog` knows the kind of every usable column; each table is a view (a CSV: a copy) of its own name.

    Frames are visible to this very connection only, not to its cursors.
    """

    connection: DuckDBPyConnection
    catalog: Catalog
    stamps: tuple[_Stamp, ...]

    def schema(self, table: str) -> dict[str, str]:
        """The usable columns of a table and their kinds. Never empty: a table of rows only has one column that says nothing."""
        columns = self.catalog.tables[table].columns
        return {name: facts.kind or UNSUPPORTED for name, facts in columns.items()} or {_NOTHING: "int"}

    @property
    def kinds(self) -> dict[str, dict[str, str]]:
        """The schema of every table, as the DuckDB engine takes it."""
        return {name: self.schema(name) for name in self.catalog.tables}

    def unchanged(self) -> bool:
        """Whether the files are those that were opened. The curator changes `snapshot` when the data changes."""
        try:
            return all(_stamp(stamp[0]) == stamp for stamp in self.stamps)
        except OSError:
            return False

    def close(self) -> None:
        """Lets go of files and memory."""
        self.connection.close()


def schema(source: Any) -> dict[str, str]:
    """Column names and kinds of a source, "unsupported" where questions cannot use the type. Reads no row."""
    if is_frame(source):
        return {field.name: arrow_kind(field.type) for field in frame_schema(source)}
    with duckdb.connect(":memory:", config=_CONFIG) as connection:
        return _place(connection, source, 0).kinds


def open_catalog(catalog: Catalog, *, threads: int | None = None, memory_limit: str | None = None) -> Sources:
    """Opens all sources, or says all that is wrong with them. Reads rows only to see that keys are unique and text is text."""
    connection = duckdb.connect(":memory:", config=_CONFIG)
    try:
        configure(connection, threads, memory_limit)
        placed = _place_all(connection, catalog)
        schemas = {name: source.kinds for name, source in placed.items()}
        faults = schema_faults(catalog.tables, schemas)
        if faults:
            raise CatalogError([(None, fault.what, fault.fix) for fault in faults])
        known = complete(catalog, schemas)
        stamps = tuple(_stamp(file) for file in sorted({file for source in placed.values() for file in source.files}))
        for name, table in known.tables.items():
            _make(connection, name, table, placed[name], _identifying(known, name))
        _check_keys(connection, known)
        spread(connection)
        _lock(connection, [file for source in placed.values() for file in source.files if source.rows is None])
        return Sources(connection, known, stamps)
    except BaseException:
        connection.close()
        raise


def _place_all(connection: DuckDBPyConnection, catalog: Catalog) -> dict[str, Placed]:
    placed: dict[str, Placed] = {}
    found: list[tuple[int | None, str, str]] = []
    for number, (name, table) in enumerate(catalog.tables.items()):
        try:
            placed[name] = _place(connection, table.source, number)
        except CatalogError as error:
            found += [(line, f"{name}: {what}", fix) for line, what, fix in error.problems]
    if found:
        raise CatalogError(found)
    return placed


def _place(connection: DuckDBPyConnection, source: Any, number: int) -> Placed:
    if is_frame(source):
        name = f"frame {number}"  # no table can have this name: it has a space
        table = frame_table(source)
        connection.register(name, readable(table))
        kinds = {field.name: arrow_kind(field.type) for field in table.schema}
        return Placed(identifier(name), types_of(connection, identifier(name)), kinds)
    if isinstance(source, (str, os.PathLike)):
        return place_file(connection, os.fspath(source))
    what = f"The source cannot be used: it is a {type(source).__name__}."
    raise CatalogError([(None, what, "give a path, or a pandas, Polars or Arrow table.")])


def _make(connection: DuckDBPyConnection, name: str, table: Table, source: Placed, exact: frozenset[str]) -> None:
    try:
        if source.rows is not None:
            _copy(connection, name, _select(table, source, exact), source.sql, source.rows)
        else:
            connection.execute(f"CREATE VIEW {identifier(name)} AS {_select(table, source, exact)} FROM {source.sql}")
        texts = [identifier(column) for column in table.columns if source.types[column] == "VARCHAR"]
        if texts and source.unproved:  # bytes that are no text would make questions fail, so they are met here
            connection.execute(f"SELECT {', '.join(f'sum(length({text}))' for text in texts)} FROM {source.sql}").fetchall()
    except LineError as error:
        where = f"line {error.number} of {'one of its files' if len(source.files) > 1 else 'its file'} is no row of the table"
        raise CatalogError([(None, f"{name} cannot be read: {where}.", _A_ROW)]) from None
    except duckdb.Error:  # its text may quote a line of the file
        raise CatalogError([(None, f"{name} cannot be read.", _COMPLETE if source.rows is None else _ALIKE)]) from None


def _copy(connection: DuckDBPyConnection, name: str, select: str, source: str, rows: Callable[[], int]) -> None:
    """Rows of a CSV. As texts first: a cast that DuckDB does while it reads the file drops the rows that it does not fit."""
    count, text = rows(), identifier(f"{name} as text")  # no table can have this name: it has spaces
    connection.execute(f"CREATE TABLE {text} AS SELECT * FROM {source}")
    if connection.execute(f"SELECT count(*) FROM {text}").fetchall() != [(count,)]:
        raise duckdb.InvalidInputException
    connection.execute(f"CREATE TABLE {identifier(name)} AS {select} FROM {text}")
    connection.execute(f"DROP TABLE {text}")


def _identifying(catalog: Catalog, name: str) -> frozenset[str]:
    """The columns of a table that say whose row it is, or which row."""
    table = catalog.tables[name]
    referenced = [other.unit.references for other in catalog.tables.values() if other.unit and other.unit.references]
    named = [table.unit and table.unit.column, table.key, *(column for parent, column in referenced if parent == name)]
    return frozenset(column for column in named if column)


def _select(table: Table, source: Placed, exact: frozenset[str]) -> str:
    columns = [
        f"{(_read_exactly if name in exact else _read_as)(_stored(name, source), source.types[name], facts.kind or '')}"
        f" AS {identifier(name)}"
        for name, facts in table.columns.items()
    ]
    listed = ", ".join(columns) or f"CAST(NULL AS BIGINT) AS {identifier(_NOTHING)}"
    return f"SELECT {listed}"


def _stored(name: str, source: Placed) -> str:
    """A column, its texts equal only where they are the same. A table may have been made so that 'a' = 'A' in one column: then
    groups and joins would go by rules that differ from column to column, and one row could be two, or take another's group."""
    return f"{identifier(name)} COLLATE C" if source.collated and source.types[name] == "VARCHAR" else identifier(name)


def _read_as(column: str, stored: str, kind: str) -> str:
    """A stored column in its declared kind. TRY_CAST makes NULL of what does not fit; a cast that always fits is cheaper."""
    wanted = TYPES[kind]
    if stored == wanted:
        return column
    return f"CAST({column} AS {wanted})" if (stored, kind) in _ALWAYS_FITS else f"TRY_CAST({column} AS {wanted})"


def _read_exactly(column: str, stored: str, kind: str) -> str:
    """The same where different stored values must stay different: NULL unless the value says what was stored, no less."""
    read = _read_as(column, stored, kind)
    if read == column or (stored, kind) in _ALWAYS_FITS:
        return read
    if stored in ("FLOAT", "DOUBLE") or stored.startswith("DECIMAL"):
        # Beyond 2^53 neighbouring whole numbers are one double.
        number = f"TRY_CAST({column} AS DOUBLE)" if stored in ("FLOAT", "DOUBLE") else column
        same = f"{column} = trunc({column}) AND abs({number}) <= {2**53}"
    else:
        same = f"TRY_CAST({read} AS {stored}) = {column}"
    return f"(CASE WHEN {same} THEN {read} END)"


def _check_keys(connection: DuckDBPyConnection, catalog: Catalog) -> None:
    """Referenced columns and declared keys hold every value once. The text is constant: it names no value and no number."""
    keys = {(name, table.key): "" for name, table in catalog.tables.items() if table.key}
    for name, table in catalog.tables.items():
        if table.unit and table.unit.references:
            keys[table.unit.references] = f", and {name} refers to it"
    found: list[tuple[int | None, str, str]] = []
    for (name, column), use in keys.items():
        held = identifier(column)
        twice = f"SELECT 1 FROM {identifier(name)} WHERE {held} IS NOT NULL GROUP BY {held} HAVING count(*) > 1 LIMIT 1"
        try:
            doubled = connection.execute(twice).fetchall()
        except duckdb.Error:
            raise CatalogError([(None, f"{name} cannot be read.", _COMPLETE)]) from None
        if doubled:
            found.append((None, f"{name}.{column} is not unique{use}.", "keep one row for each, or refer to a unique column."))
    if found:
        raise CatalogError(found)


def configure(connection: DuckDBPyConnection, threads: int | None = None, memory_limit: str | None = None) -> None:
    """The settings every question is asked with. What they may not change is what the question finds."""
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET python_enable_replacements = false")  # a table's name must never find a Python variable
    # The least and the greatest value that a file states leave out its NaNs (and may be wrong): believed, they would fold the
    # guards against NaN and beyond the bounds away, and one row could make a question fail.
    # Splitting a grouping by those values believes them too, and reads a file of sorted units once for each part.
    connection.execute("SET disabled_optimizers = 'statistics_propagation,partitioned_execution'")
    connection.execute("SET parquet_metadata_cache = true")  # footers only, and only while the file stays as it was
    connection.execute("SET enable_progress_bar = true")
    connection.execute("SET enable_progress_bar_print = false")
    if threads is not None:
        connection.execute(f"SET threads = {int(threads)}")
    if memory_limit is not None:
        connection.execute(f"SET memory_limit = {literal(memory_limit).text}")
    # What does not fit into memory goes where only this user can read it, and goes away with the connection.
    spill = tempfile.mkdtemp(prefix="dither-")
    weakref.finalize(connection, _remove, spill, os.getpid())
    connection.execute(f"SET temp_directory = {literal(spill).text}")


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked child that ends must not take its parent's folder away
        shutil.rmtree(folder, ignore_errors=True)


def _lock(connection: DuckDBPyConnection, files: list[str]) -> None:
    allowed = ", ".join(literal(file).text for file in files)
    connection.execute(f"SET allowed_configs = [{', '.join(literal(name).text for name in SETTINGS)}]")
    connection.execute(f"SET allowed_paths = [{allowed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _stamp(file: str) -> _Stamp:
    status = os.stat(file)
    return file, status.st_size, status.st_mtime_ns
