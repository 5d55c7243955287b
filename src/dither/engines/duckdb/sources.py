"""Opens every source of a catalog in one locked DuckDB connection, as views of the declared columns in their kinds.

A question can reach only what is declared: undeclared columns of private tables are not in the views. After opening, DuckDB may
read the named files only: no other path, no network, no extension, and no setting but those of `engine.SETTINGS`.

Reading is total. When a file is opened for the first time, every declared column is read in full through the view that
questions use; verified.py remembers it. Files that DuckDB's reader cannot read are copied through Arrow (files.py), and values
that do not fit are NULL. So no stored value can make a question fail, and an unreadable file is refused here.
"""

from __future__ import annotations

import os
import secrets
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import duckdb
import pyarrow as pa
from duckdb import DuckDBPyConnection

from dither.catalog.reading import DEFAULT, LINES, TEXT_FILE, Read
from dither.catalog.values import Catalog, Key, Table
from dither.engines.base import Progress
from dither.engines.duckdb.contents import Contents
from dither.engines.duckdb.delimited import LineError
from dither.engines.duckdb.dialect import identifier, literal
from dither.engines.duckdb.engine import SETTINGS, DuckDB, frame_name, use_many_parts
from dither.engines.duckdb.files import (
    SqlSource,
    UnreadableError,
    copy_batches,
    copy_parquet,
    place_file,
    refuse_settings,
    types_of,
)
from dither.engines.duckdb.frames import arrow_kind, frame_columns, frame_schema, is_frame
from dither.engines.duckdb.spill import Spill, sweep
from dither.engines.duckdb.stored import StoredError
from dither.engines.duckdb.views import filtered, has_settings, kept, typed_columns, view, whole
from dither.engines.opening import check_unique, completed, identifying, kinds_of, with_found
from dither.engines.verified import Verified, file_stats
from dither.errors import CatalogError, Fix, Shell

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
}
_LINE_FIX = Fix(
    "run `{check}`, which names the line. It needs a cell for each column, in the declared encoding (UTF-8 if none is), and a "
    "quote at the end of a cell that begins with one; a quote within such a cell is written twice.",
    check=Shell("dither check --data"),
)
_CSV_FIX = "write the file anew, with one kind of line ends throughout and cells of at most 131,072 characters."
_COMPLETE_FIX = "look whether its files are complete."
_Stamp = tuple[str, int, int, int, int]
# Called with each table while its rows are there as they are stored: the connection, the catalog, its name and its source.
Inspect = Callable[[DuckDBPyConnection, Catalog, str, SqlSource], None]


class _ReaderError(Exception):
    """DuckDB cannot read a table. Its connection may be broken."""

    def __init__(self, table: str) -> None:
        super().__init__(table)
        self.table = table


@dataclass(frozen=True)
class Sources:
    """An open catalog. `catalog` has the kind of every usable column. Each table is a view (a CSV: a copy) of its own name.

    Frames are visible to this connection only, not to its cursors.
    """

    connection: DuckDBPyConnection
    catalog: Catalog
    stamps: tuple[_Stamp, ...]
    engine: DuckDB
    contents: Mapping[str, Contents] = field(default_factory=dict)

    def unchanged(self) -> bool:
        """Whether the files are still as they were when opened. The curator changes `snapshot` when the data changes."""
        try:
            return all(_stamp(stamp[0]) == stamp for stamp in self.stamps)
        except OSError:
            return False

    def close(self) -> None:
        """Frees files and memory."""
        self.connection.close()


def schema(source: Any, read: Read = DEFAULT) -> dict[str, str]:
    """Returns the column names and kinds of a source, "unsupported" for types that questions cannot use. Reads no row."""
    if is_frame(source):
        _refuse_for_frames(read)
        return {field.name: arrow_kind(field.type) for field in frame_schema(source, bool(read.cells.trim))}
    with duckdb.connect(":memory:", config=_CONFIG) as connection:
        return _place(connection, source, read).kinds


def open_catalog(
    catalog: Catalog,
    *,
    threads: int | None = None,
    memory_limit: str | None = None,
    progress: Progress | None = None,
    inspect: Inspect | None = None,
) -> Sources:
    """Opens all sources, or names every fault in one error. Reads the rows of files that were not read before.

    The error's text depends on the catalog and the broken rule, never on a row; `diagnosis` has more, for the curator only.
    """
    opening = _Opening(catalog, threads, memory_limit, progress, inspect)
    while True:
        try:
            return opening.attempt()
        except _ReaderError as failed:
            opening.read_carefully(failed.table)
        except (duckdb.OutOfMemoryException, MemoryError):
            what = "There is not enough memory to open the sources of this catalog."
            raise CatalogError([(None, what, "give the process more memory, or declare fewer tables.")]) from None


class _Opening:
    """One opening. It starts again with a new connection whenever DuckDB's reader fails, which may break the connection."""

    def __init__(
        self,
        catalog: Catalog,
        threads: int | None,
        memory_limit: str | None,
        progress: Progress | None = None,
        inspect: Inspect | None = None,
    ) -> None:
        self._inspect = inspect or (lambda *_: None)
        self._catalog = catalog
        self._progress = progress
        self._settings = threads, memory_limit
        self._verified = Verified(duckdb.__version__)
        self._secret = secrets.token_bytes(16)  # keys the choice of rows beyond `most_rows`, anew at each opening
        self._frames: dict[str, tuple[Any, dict[str, str]]] = {}  # converted once: a stream can be read only once
        self._careful: set[str] = set()  # tables on which DuckDB's reader failed
        self._placed: dict[str, SqlSource] = {}

    def attempt(self) -> Sources:
        connection = duckdb.connect(":memory:", config=_CONFIG)
        try:
            configure(connection, *self._settings)
            self._placed = self._place_all(connection)
            schemas = {name: source.kinds for name, source in self._placed.items()}
            known = completed(self._catalog, schemas)
            files = sorted({file for source in self._placed.values() for file in source.files})
            logs = sorted({log for source in self._placed.values() for log in source.logs})
            stamps = tuple(_stamp(file) for file in (*files, *logs))
            views = {name: self._make(connection, known, name) for name in known.tables}
            check_unique(known, lambda name, column: self._doubled(connection, name, column, views[name]))
            found = {name: with_found(table, partial(_different, connection, name)) for name, table in known.tables.items()}
            known = replace(known, tables=found)
            use_many_parts(connection)
            _lock(connection, [file for source in self._placed.values() for file in source.files if not source.copied])
            contents = {
                name: Contents(source.files, self._frames[name][0] if name in self._frames else None)
                for name, source in self._placed.items()
            }
            return Sources(connection, known, stamps, DuckDB(connection, kinds_of(known), self._progress), contents)
        except BaseException:
            connection.close()
            raise

    def read_carefully(self, name: str) -> None:
        """Reads the table with guards from the start, Parquet files through Arrow. Refuses it if that has failed already."""
        if name in self._careful:
            raise _unreadable(name)
        self._careful.add(name)

    def _place_all(self, connection: DuckDBPyConnection) -> dict[str, SqlSource]:
        placed: dict[str, SqlSource] = {}
        problems: list[tuple[int | None, str, str]] = []
        for name, table in self._catalog.tables.items():
            try:
                if is_frame(table.source):
                    placed[name] = self._place_frame(connection, name)
                else:
                    placed[name] = _place(connection, table.source, table.read)
            except CatalogError as error:
                problems += [(line, f"{name}: {what}", fix) for line, what, fix in error.problems]
        if problems:
            raise CatalogError(problems)
        return placed

    def _place_frame(self, connection: DuckDBPyConnection, name: str) -> SqlSource:
        declared = self._catalog.tables[name]
        if name not in self._frames:
            _refuse_for_frames(declared.read)
            self._frames[name] = frame_columns(declared.source, bool(declared.read.cells.trim))
        table, kinds = self._frames[name]
        place = frame_name(name)
        connection.register(place, table)
        return SqlSource(identifier(place), types_of(connection, identifier(place)), kinds)

    def _make(self, connection: DuckDBPyConnection, catalog: Catalog, name: str) -> str:
        """Creates a table's view, and returns its text."""
        table, source, exact = catalog.tables[name], self._placed[name], identifying(catalog, name)
        if source.copied:
            as_stored = partial(self._inspect, connection, catalog, name)
            return _copy_texts(connection, name, table, source, exact, as_stored, self._secret)
        careful = name in self._careful
        if careful and source.parquet:
            source = _copy_parquet_files(connection, name, table, source)
        copied = has_settings(table, source) or table.most_rows is not None
        try:
            for guarded in (False, True) if not careful and not copied else (True,):
                text = view(table, source, exact, guarded=guarded)
                reading = whole(table, source, exact, guarded=guarded)
                if copied:  # the rows are copied below, so that questions do not pay for patterns and formats
                    break
                if not self._needs_guards(connection, [reading, *filtered(table, text)], () if careful else source.files):
                    break
            # If guards are needed, the rows are copied: DuckDB computes functions of all values in a file's dictionary, even of
            # those that a guard leaves out, so the running time would reveal one long cell.
            kind = "TABLE" if copied or (guarded and source.parquet and not careful) else "VIEW"
            connection.execute(f"CREATE {kind} {identifier(name)} AS {kept(table, text, self._secret)}")
            self._inspect(connection, catalog, name, source)
        except duckdb.OutOfMemoryException:
            raise
        except duckdb.Error:  # its text may quote a value
            raise _ReaderError(name) from None
        return text

    def _needs_guards(self, connection: DuckDBPyConnection, statements: Sequence[str], files: Sequence[str]) -> bool:
        """Whether a view needs guards. Reads it in full and by filters, unless it was read before and needed none."""
        text = "\n".join(statements)
        if self._verified.holds(text, files):
            return False
        before = file_stats(files)
        results = [connection.execute(statement).fetchall() for statement in statements]
        needed = bool(results[0][0][0])
        if not needed:
            self._verified.remember(text, files, before)
        return needed

    def _doubled(self, connection: DuckDBPyConnection, name: str, column: str, text: str) -> int:
        """Returns how many values a column has more than once."""
        quoted, files = identifier(column), self._placed[name].files
        rows = f"SELECT 1 FROM {identifier(name)} WHERE {quoted} IS NOT NULL GROUP BY {quoted} HAVING count(*) > 1"
        statement = f"{rows}\n{text}"
        changes = self._placed[name].copied or self._catalog.tables[name].most_rows is not None
        known = name not in self._careful and not changes
        if known and self._verified.holds(statement, files):
            return 0
        before = file_stats(files)
        try:
            ((count,),) = connection.execute(f"SELECT count(*) FROM ({rows})").fetchall()
        except duckdb.Error:
            raise _ReaderError(name) from None
        if known and not count:
            self._verified.remember(statement, files, before)
        return int(count)


def _different(connection: DuckDBPyConnection, name: str, column: str, most: int) -> list[Key]:
    """Returns so many different values of a column at most."""
    try:
        rows = connection.execute(f"SELECT DISTINCT {identifier(column)} FROM {identifier(name)} LIMIT {most}").fetchall()
    except duckdb.Error:
        raise _ReaderError(name) from None
    return [value for (value,) in rows]


def _refuse_for_frames(read: Read) -> None:
    try:
        refuse_settings(read, TEXT_FILE, "CSV files")
        refuse_settings(read, LINES, "CSV and Excel files")
    except StoredError as refused:
        raise CatalogError([(None, f"The frame cannot be used: {refused.what}.", refused.fix)]) from None


def _place(connection: DuckDBPyConnection, source: Any, read: Read = DEFAULT) -> SqlSource:
    if isinstance(source, (str, os.PathLike)):
        return place_file(connection, os.fspath(source), read)
    what = f"The source cannot be used: it is a {type(source).__name__}."
    raise CatalogError([(None, what, "give a path, or a pandas, Polars or Arrow table.")])


def _copy_parquet_files(connection: DuckDBPyConnection, name: str, table: Table, source: SqlSource) -> SqlSource:
    """Copies Parquet files that DuckDB cannot read into a table, through Arrow."""
    copy = f"{name} as stored"  # no table has this name, because of its spaces
    try:
        types = copy_parquet(connection, copy, source.files, {column: source.types[column] for column in table.columns})
    except (UnreadableError, duckdb.Error):
        raise _unreadable(name) from None
    return replace(source, sql=identifier(copy), types=types)


def _copy_texts(
    connection: DuckDBPyConnection,
    name: str,
    table: Table,
    source: SqlSource,
    exact: frozenset[str],
    inspect: Callable[[SqlSource], None],
    secret: bytes,
) -> str:
    """Copies the rows of a file, as text first: a cast while DuckDB reads a CSV drops rows that do not fit."""
    as_text = identifier(f"{name} as text")  # no table has this name, because of its spaces
    text = view(table, replace(source, sql=as_text), exact, guarded=True)
    try:
        if source.batches is not None:
            wanted = list(table.columns) or list(source.types)[:1]
            typed = typed_columns(table, source)
            copy_batches(connection, as_text, [*wanted, *typed.values()], source.batches(wanted, typed))
        else:
            count = source.rows() if source.rows else 0
            connection.execute(f"CREATE TABLE {as_text} AS SELECT * FROM {source.sql}")
            if connection.execute(f"SELECT count(*) FROM {as_text}").fetchall() != [(count,)]:
                raise duckdb.InvalidInputException
        connection.execute(f"CREATE TABLE {identifier(name)} AS {kept(table, text, secret)}")
        inspect(replace(source, sql=as_text))
        connection.execute(f"DROP TABLE {as_text}")
    except LineError as error:
        where = "one of its files" if len(source.files) > 1 else "its file"
        what = f"{name} cannot be read: a line of {where} is no row of the table."
        raise CatalogError([(None, what, _LINE_FIX)], diagnosis=[f"{name}: line {error.number} of {error.file}"]) from None
    except StoredError as error:
        raise CatalogError([(None, f"{name} cannot be read: {error.what}.", error.fix)]) from None
    except duckdb.OutOfMemoryException:
        raise
    except (duckdb.Error, pa.ArrowException):  # its text may quote a line of the file
        raise CatalogError([(None, f"{name} cannot be read.", _CSV_FIX)]) from None
    return text


def _unreadable(name: str) -> CatalogError:
    return CatalogError([(None, f"{name} cannot be read.", _COMPLETE_FIX)])


def configure(connection: DuckDBPyConnection, threads: int | None = None, memory_limit: str | None = None) -> None:
    """Applies the settings of every question. They must not change results."""
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET python_enable_replacements = false")  # a table's name must never match a Python variable
    # The minimum and maximum that a file states leave out NaN, and may be wrong. If DuckDB relied on them, it would optimise
    # the guards against NaN and out-of-bounds values away, and one row could make a question fail. Partitioned grouping relies
    # on them too, and reads a file of sorted units once for each part.
    connection.execute("SET disabled_optimizers = 'statistics_propagation,partitioned_execution'")
    connection.execute("SET parquet_metadata_cache = true")  # footers only, and only while the file is unchanged
    connection.execute("SET enable_progress_bar = true")
    connection.execute("SET enable_progress_bar_print = false")
    if threads is not None:
        connection.execute(f"SET threads = {int(threads)}")
    if memory_limit is not None:
        connection.execute(f"SET memory_limit = {literal(memory_limit).text}")
    # Data that does not fit into memory goes to a folder that only this user can read, removed with the connection.
    sweep()
    spill = Spill()
    weakref.finalize(connection, spill.remove)
    connection.execute(f"SET temp_directory = {literal(spill.folder).text}")


def _lock(connection: DuckDBPyConnection, files: list[str]) -> None:
    allowed = ", ".join(literal(file).text for file in files)
    connection.execute(f"SET allowed_configs = [{', '.join(literal(name).text for name in SETTINGS)}]")
    connection.execute(f"SET allowed_paths = [{allowed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _stamp(file: str) -> _Stamp:
    """Returns what distinguishes versions of a file. An empty file is as none: logs come and go."""
    try:
        status = os.stat(file)
    except FileNotFoundError:
        return file, 0, 0, 0, 0
    if not status.st_size:
        return file, 0, 0, 0, 0
    return file, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
