"""Opens every source of a catalog in one locked DuckDB connection, as views of the declared columns in their kinds.

What a question can reach is exactly what is declared: undeclared columns of private tables are not in the views. After
opening, DuckDB may read the named files and nothing else: no other path, no network, no extension, no setting (but those
of memory.py).

Reading is total. Every declared column is read once, whole, through the view that questions use, when a file is opened for
the first time; verified.py remembers it. What DuckDB's reader cannot read is copied by way of Arrow (parquet_rows.py), and
what does not fit is NULL. So no stored value can make a question fail, and a file that nobody can read is refused here.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
from duckdb import DuckDBPyConnection

from dither.catalog.check import UNSUPPORTED, complete, schema_faults
from dither.catalog.values import Catalog, Table
from dither.engines.base import Progress
from dither.engines.duckdb.dialect import identifier, literal
from dither.engines.duckdb.engine import SETTINGS, DuckDB, frame_name, interruptible, spread
from dither.engines.duckdb.files import LineError, Placed, UnreadableError, copy_parquet, place_file, types_of
from dither.engines.duckdb.frames import arrow_kind, frame_columns, frame_schema, is_frame
from dither.engines.duckdb.spill import Spill, sweep
from dither.engines.duckdb.verified import Verified, file_stats
from dither.engines.duckdb.views import NOTHING, filtered, identifying, view, whole
from dither.errors import CatalogError, Fix, Shell

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
}
_A_ROW = Fix(
    "run `{check}`, which names the line. It needs a cell for each column, in UTF-8, and a quote at the end of a "
    "cell that begins with one; a quote within such a cell is written twice.",
    check=Shell("dither check --data"),
)
_ALIKE = "write the file anew, with one kind of line ends throughout and cells of at most 131,072 characters."
_COMPLETE = "look whether its files are complete."
_Stamp = tuple[str, int, int, int, int]


class _ReaderError(Exception):
    """DuckDB cannot read a table. Its connection may be beyond use."""

    def __init__(self, table: str) -> None:
        super().__init__(table)
        self.table = table


@dataclass(frozen=True)
class Sources:
    """An open catalog. `catalog` knows the kind of every usable column; each table is a view (a CSV: a copy) of its own name.

    Frames are visible to this very connection only, not to its cursors.
    """

    connection: DuckDBPyConnection
    catalog: Catalog
    stamps: tuple[_Stamp, ...]
    engine: DuckDB

    def unchanged(self) -> bool:
        """Whether the files are those that were opened. The curator changes `snapshot` when the data changes."""
        try:
            return all(_stamp(stamp[0]) == stamp for stamp in self.stamps)
        except OSError:
            return False

    def close(self) -> None:
        """Lets go of files and memory."""
        self.connection.close()


@dataclass(frozen=True)
class DuckDBBackend:
    """Opens paths and frames in DuckDB, and refuses whatever else is named as a source."""

    threads: int | None = None
    memory_limit: str | None = None
    name: str = "DuckDB"

    def takes(self, source: Any) -> bool:
        """Everything: what no other engine takes is a path, a frame, or refused in words that name both."""
        return True

    def schema(self, source: Any) -> dict[str, str]:
        """Column names and kinds. Reads no row."""
        return schema(source)

    def open(self, catalog: Catalog, progress: Progress | None = None) -> Sources:
        """All sources in one connection. Ctrl-C is an interrupt."""
        return interruptible(
            lambda: open_catalog(catalog, threads=self.threads, memory_limit=self.memory_limit, progress=progress)
        )


def schema(source: Any) -> dict[str, str]:
    """Column names and kinds of a source, "unsupported" where questions cannot use the type. Reads no row."""
    if is_frame(source):
        return {field.name: arrow_kind(field.type) for field in frame_schema(source)}
    with duckdb.connect(":memory:", config=_CONFIG) as connection:
        return _place(connection, source).kinds


def open_catalog(
    catalog: Catalog, *, threads: int | None = None, memory_limit: str | None = None, progress: Progress | None = None
) -> Sources:
    """Opens all sources, or says all that is wrong with them. Reads rows of files that were not read before.

    The error's text depends on the catalog and on which rule is broken, on no row; `diagnosis` has more, for the curator only.
    """
    opening = _Opening(catalog, threads, memory_limit, progress)
    while True:
        try:
            return opening.attempt()
        except _ReaderError as failed:
            opening.read_carefully(failed.table)
        except (duckdb.OutOfMemoryException, MemoryError):
            what = "There is not enough memory to open the sources of this catalog."
            raise CatalogError([(None, what, "give the process more memory, or declare fewer tables.")]) from None


class _Opening:
    """One opening, begun anew with another connection whenever DuckDB's reader fails: such a failure may have broken it."""

    def __init__(
        self, catalog: Catalog, threads: int | None, memory_limit: str | None, progress: Progress | None = None
    ) -> None:
        self._catalog = catalog
        self._progress = progress
        self._settings = threads, memory_limit
        self._verified = Verified()
        self._frames: dict[str, tuple[Any, dict[str, str]]] = {}  # converted once: a stream can be read only once
        self._careful: set[str] = set()  # tables on which DuckDB's reader failed
        self._placed: dict[str, Placed] = {}

    def attempt(self) -> Sources:
        connection = duckdb.connect(":memory:", config=_CONFIG)
        try:
            configure(connection, *self._settings)
            self._placed = self._place_all(connection)
            schemas = {name: source.kinds for name, source in self._placed.items()}
            faults = schema_faults(self._catalog.tables, schemas)
            if faults:
                raise CatalogError([(None, fault.what, fault.fix) for fault in faults])
            known = complete(self._catalog, schemas)
            files = sorted({file for source in self._placed.values() for file in source.files})
            stamps = tuple(_stamp(file) for file in files)
            views = {name: self._make(connection, known, name) for name in known.tables}
            self._check_keys(connection, known, views)
            spread(connection)
            _lock(connection, [file for source in self._placed.values() for file in source.files if source.rows is None])
            return Sources(connection, known, stamps, DuckDB(connection, _schemas(known), self._progress))
        except BaseException:
            connection.close()
            raise

    def read_carefully(self, name: str) -> None:
        """Reads the table with guards from the start, Parquet files by way of Arrow; refuses it if that failed already."""
        if name in self._careful:
            raise _unreadable(name)
        self._careful.add(name)

    def _place_all(self, connection: DuckDBPyConnection) -> dict[str, Placed]:
        placed: dict[str, Placed] = {}
        found: list[tuple[int | None, str, str]] = []
        for name, table in self._catalog.tables.items():
            try:
                if is_frame(table.source):
                    placed[name] = self._place_frame(connection, name)
                else:
                    placed[name] = _place(connection, table.source)
            except CatalogError as error:
                found += [(line, f"{name}: {what}", fix) for line, what, fix in error.problems]
        if found:
            raise CatalogError(found)
        return placed

    def _place_frame(self, connection: DuckDBPyConnection, name: str) -> Placed:
        if name not in self._frames:
            self._frames[name] = frame_columns(self._catalog.tables[name].source)
        table, kinds = self._frames[name]
        place = frame_name(name)
        connection.register(place, table)
        return Placed(identifier(place), types_of(connection, identifier(place)), kinds)

    def _make(self, connection: DuckDBPyConnection, catalog: Catalog, name: str) -> str:
        """Makes a table's view, and returns its text."""
        table, source, exact = catalog.tables[name], self._placed[name], identifying(catalog, name)
        if source.rows is not None:
            return _copy(connection, name, table, source, exact)
        careful = name in self._careful
        if careful and source.parquet:
            source = _copied(connection, name, table, source)
        try:
            for guarded in (False, True) if not careful else (True,):
                text = view(table, source, exact, guarded=guarded)
                reading = whole(table, source, exact, guarded=guarded)
                if not self._needs_guards(connection, [reading, *filtered(table, text)], () if careful else source.files):
                    break
            # Where guards are needed the rows are copied: DuckDB computes functions of all values in a file's dictionary, those
            # that a guard leaves out as well, and one long cell would be seen by the clock.
            kind = "TABLE" if guarded and source.parquet and not careful else "VIEW"
            connection.execute(f"CREATE {kind} {identifier(name)} AS {text}")
        except duckdb.OutOfMemoryException:
            raise
        except duckdb.Error:  # its text may quote a value
            raise _ReaderError(name) from None
        return text

    def _needs_guards(self, connection: DuckDBPyConnection, statements: Sequence[str], files: Sequence[str]) -> bool:
        """Reads a view whole and by filters, unless it was read before and needed no guards."""
        text = "\n".join(statements)
        if self._verified.holds(text, files):
            return False
        before = file_stats(files)
        results = [connection.execute(statement).fetchall() for statement in statements]
        needed = bool(results[0][0][0])
        if not needed:
            self._verified.remember(text, files, before)
        return needed

    def _check_keys(self, connection: DuckDBPyConnection, catalog: Catalog, views: dict[str, str]) -> None:
        """Referenced columns and declared keys hold every value once. The text is constant: it names no value and no number."""
        keys = {(name, table.key): "" for name, table in catalog.tables.items() if table.key}
        for name, table in catalog.tables.items():
            if table.unit and table.unit.references:
                keys[table.unit.references] = f", and {name} refers to it"
        found: list[tuple[int | None, str, str]] = []
        diagnosis = []
        for (name, column), use in keys.items():
            doubled = self._doubled(connection, name, column, views[name])
            if doubled:
                found.append(
                    (None, f"{name}.{column} is not unique{use}.", "keep one row for each, or refer to a unique column.")
                )
                diagnosis.append(f"{doubled:,} values of {name}.{column} stand in more than one row.")
        if found:
            raise CatalogError(found, diagnosis=diagnosis)

    def _doubled(self, connection: DuckDBPyConnection, name: str, column: str, text: str) -> int:
        """How many values a column has more than once."""
        held, files = identifier(column), self._placed[name].files
        rows = f"SELECT 1 FROM {identifier(name)} WHERE {held} IS NOT NULL GROUP BY {held} HAVING count(*) > 1"
        statement = f"{rows}\n{text}"
        known = name not in self._careful and self._placed[name].rows is None
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


def _schemas(catalog: Catalog) -> dict[str, dict[str, str]]:
    """The usable columns of each table and their kinds. Never empty: a table of rows only has one column that says nothing."""
    found = {}
    for name, table in catalog.tables.items():
        kinds = {column: facts.kind or UNSUPPORTED for column, facts in table.columns.items()}
        found[name] = kinds or {NOTHING: "int"}
    return found


def _place(connection: DuckDBPyConnection, source: Any) -> Placed:
    if isinstance(source, (str, os.PathLike)):
        return place_file(connection, os.fspath(source))
    what = f"The source cannot be used: it is a {type(source).__name__}."
    raise CatalogError([(None, what, "give a path, or a pandas, Polars or Arrow table.")])


def _copied(connection: DuckDBPyConnection, name: str, table: Table, source: Placed) -> Placed:
    """A table of Parquet files that DuckDB cannot read, copied."""
    copy = f"{name} as stored"  # no table can have this name: it has spaces
    try:
        types = copy_parquet(connection, copy, source.files, {column: source.types[column] for column in table.columns})
    except (UnreadableError, duckdb.Error):
        raise _unreadable(name) from None
    return replace(source, sql=identifier(copy), types=types)


def _copy(connection: DuckDBPyConnection, name: str, table: Table, source: Placed, exact: frozenset[str]) -> str:
    """Rows of a CSV. As texts first: a cast that DuckDB does while it reads the file drops the rows that it does not fit."""
    as_text = identifier(f"{name} as text")  # no table can have this name: it has spaces
    text = view(table, replace(source, sql=as_text), exact, guarded=True)
    try:
        count = source.rows() if source.rows else 0
        connection.execute(f"CREATE TABLE {as_text} AS SELECT * FROM {source.sql}")
        if connection.execute(f"SELECT count(*) FROM {as_text}").fetchall() != [(count,)]:
            raise duckdb.InvalidInputException
        connection.execute(f"CREATE TABLE {identifier(name)} AS {text}")
        connection.execute(f"DROP TABLE {as_text}")
    except LineError as error:
        where = "one of its files" if len(source.files) > 1 else "its file"
        what = f"{name} cannot be read: a line of {where} is no row of the table."
        raise CatalogError([(None, what, _A_ROW)], diagnosis=[f"{name}: line {error.number} of {error.file}"]) from None
    except duckdb.Error:  # its text may quote a line of the file
        raise CatalogError([(None, f"{name} cannot be read.", _ALIKE)]) from None
    return text


def _unreadable(name: str) -> CatalogError:
    return CatalogError([(None, f"{name} cannot be read.", _COMPLETE)])


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
    status = os.stat(file)
    return file, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
