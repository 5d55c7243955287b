"""Into how many parts DuckDB cuts the hash table of a grouping: many where memory is ample, few where it is not.

It goes by the number of threads it knows of. On few processors the parts of a table of all persons outgrow the caches, and a
row costs the more the more rows there are: so it is told of at least PARTS threads. Those that are stated as external are never
started; nothing but the parts changes. But it also shares out memory among the threads it knows of, and begins to move parts
to disk while most of the memory is free, which is many times slower than grouping in few parts. So with many parts the disk is
forbidden, and a question that does not fit is asked again in few, where whatever does not fit goes to disk.

Ctrl-C while DuckDB runs.

DuckDB looks for signals while it runs a query in the main thread. If the handler of one raises (Python's own does on Ctrl-C),
DuckDB stops and drops that exception for a RuntimeError. Other threads never see a signal, and `interrupt()` from one of them
is an InterruptException, so the two are told apart by class and text.

The default engine: DuckDB, in this process. Exact whole numbers out of Parquet files, frames and DuckDB tables.

The connection is opened elsewhere (sources.py) and only ever handed SELECT statements printed from nodes. If one
fails, for whatever reason, the caller sees one constant text: DuckDB's own message may quote a value of the data.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import duckdb
from duckdb import DuckDBPyConnection

from dither.engines.base import Progress, check
from dither.engines.duckdb.dialect import DIALECT, DuckDBDialect, identifier, secret_numbers
from dither.engines.sql.work import Found, OutgrownError, Row, Statement, groups, statements
from dither.errors import ArgumentError, DitherError, EngineError
from dither.query.work import Group, Work

PARTS = 8
SETTINGS = ("threads", "external_threads", "max_temp_directory_size")  # what may still change when all others are locked
_STATED = "SELECT current_setting('threads'), current_setting('external_threads'), current_setting('max_temp_directory_size')"


def spread(connection: DuckDBPyConnection) -> None:
    """Many parts, and nothing on disk."""
    workers = _workers(connection)
    stated = max(workers, PARTS)
    connection.execute(f"SET threads = {stated}")
    connection.execute(f"SET external_threads = {stated - workers + 1}")  # one of them is who asks
    connection.execute("SET max_temp_directory_size = '0KB'")


def is_spread(connection: DuckDBPyConnection) -> bool:
    return bool(_stated(connection)[2] == "0 bytes")


@contextmanager
def gathered(connection: DuckDBPyConnection) -> Iterator[None]:
    """Few parts, and a disk for what does not fit, inside the block."""
    workers = _workers(connection)
    connection.execute("SET external_threads = 1")
    connection.execute(f"SET threads = {workers}")
    connection.execute("RESET max_temp_directory_size")
    try:
        yield
    finally:
        spread(connection)


def _workers(connection: DuckDBPyConnection) -> int:
    stated, external, _ = _stated(connection)
    return stated - external + 1


def _stated(connection: DuckDBPyConnection) -> tuple[int, int, str]:
    ((stated, external, disk),) = connection.execute(_STATED).fetchall()
    return int(stated), int(external), str(disk)


_T = TypeVar("_T")
_TEXT = "Query interrupted"


def interruptible(call: Callable[[], _T]) -> _T:
    """Calls what calls DuckDB. Ctrl-C is a KeyboardInterrupt, raised where no error of DuckDB's is attached to it."""
    try:
        return call()
    except RuntimeError as error:
        if type(error) is not RuntimeError or str(error) != _TEXT:
            raise
    raise KeyboardInterrupt


PATIENCE = 2.0  # seconds before progress is reported at all
_BEAT = 0.25
_REMEMBERED = 64  # statements

_KINDS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), "int"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "real"),
    "VARCHAR": "text",
    "BOOLEAN": "bool",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
}


def frame_name(table: str) -> str:
    """Under which name a connection knows the frame behind a table. No table can have this name: it has a space."""
    return f"frame {table}"


class DuckDB:
    """Runs a Work on the tables and views of one DuckDB connection.

    `kinds`: for each table its columns and their kinds, if the catalog knows them; else they are read from the schema.
    `dialect`: another spelling of the same meaning, for tests.
    """

    name = "duckdb"

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        kinds: Mapping[str, Mapping[str, str]] | None = None,
        progress: Progress | None = None,
        dialect: DuckDBDialect = DIALECT,
    ) -> None:
        self._connection = connection
        self._dialect = dialect
        self._kinds = dict(kinds or {})
        self._progress = progress
        self._busy = threading.Lock()
        self._process = os.getpid()
        self._prepared: tuple[Work, list[Statement]] | None = None
        self._parsed: dict[str, Any] = {}

    def schema(self, table: str) -> Mapping[str, str]:
        """The columns and their kinds, from the schema only. Columns of other types cannot be used and are left out."""
        if table not in self._kinds:
            described = _guarded(lambda: self._connection.execute(f"DESCRIBE {identifier(table)}").fetchall())
            pairs = [(str(row[0]), str(row[1])) for row in described]
            self._kinds[table] = {column: _KINDS[kind] for column, kind in pairs if kind in _KINDS}
        return self._kinds[table]

    def prepare(self, work: Work) -> None:
        """Refuses what would fail on any rows: prints the statements as `run` does and has DuckDB parse them, no more."""
        self._same_process()
        check(work)
        readable = False
        try:
            planned = self._statements(work)
            with self._busy:
                for statement in planned:
                    self._parse(statement)
            readable = True
        except duckdb.ConnectionException:
            raise DitherError("This session was closed.", fix="open the catalog again.") from None
        except (duckdb.Error, RuntimeError, TypeError, ValueError, OverflowError, LookupError) as error:
            if isinstance(error, DitherError):
                raise
        if not readable:
            raise ArgumentError("the engine cannot read this question.", fix="ask in fewer or simpler parts.")
        self._prepared = work, planned

    def run(self, work: Work, secret: bytes) -> list[Group]:
        """The groups and their integers. One Work at a time; others wait."""
        self._same_process()
        prepared, self._prepared = self._prepared, None
        given = secret_numbers(secret)
        planned = prepared[1] if prepared and prepared[0] is work else self._statements(work)
        try:
            return self._groups(work, planned, given)
        except OutgrownError:
            return self._groups(work, self._statements(work, wide=True), given)

    def _same_process(self) -> None:
        """DuckDB's threads do not follow into a fork: a query there would wait for them for ever, its price paid."""
        if os.getpid() != self._process:
            raise DitherError(
                "This catalog was opened in another process, and a fork cannot read its data.",
                fix="open the catalog in the process that asks.",
            )

    def _statements(self, work: Work, *, wide: bool = False) -> list[Statement]:
        return statements(work, lambda table: list(self.schema(table).items()), self._dialect, wide=wide)

    def _parse(self, statement: Statement) -> Any:
        """What was prepared, or asked before at whatever price, is not parsed again."""
        if statement.text not in self._parsed:
            (found,) = self._connection.extract_statements(statement.text)
            if len(self._parsed) >= _REMEMBERED:
                del self._parsed[next(iter(self._parsed))]
            self._parsed[statement.text] = found
        return self._parsed[statement.text]

    def _groups(self, work: Work, planned: list[Statement], given: dict[str, int]) -> list[Group]:
        found: Found = {}
        with self._busy, self._watched():
            for statement in planned:
                statement.read(self._fetch(statement, given), found)
        return groups(work, found)

    def _fetch(self, statement: Statement, given: dict[str, int]) -> list[Row]:
        def fetched() -> list[Row]:
            query = self._parse(statement)
            values = {name: given[name] for name in query.named_parameters}
            try:
                return self._connection.execute(query, values).fetchall()
            except duckdb.OutOfMemoryException:
                if not is_spread(self._connection):
                    raise
            with gathered(self._connection):
                return self._connection.execute(query, values).fetchall()

        return _guarded(fetched)

    def explain(self, work: Work) -> list[str]:
        """The SQL that `run` hands to DuckDB: for the curator and for tests. The secret is given beside it."""
        return [statement.text for statement in self._statements(work)]

    def exchange(self, table: str, frame: Any) -> None:
        """Puts another Arrow table of the same columns in the place of the frame that a table was opened from: for auditors."""
        self._connection.register(frame_name(table), frame)

    def interrupt(self) -> None:
        """Ends the running query, from another thread. Its `run` then fails like any other; only Ctrl-C is an interruption."""
        self._connection.interrupt()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Reports progress from a second thread once the query has taken longer than PATIENCE."""
        if self._progress is None:
            yield
            return
        done = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(self._progress, done), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()

    def _watch(self, progress: Progress, done: threading.Event) -> None:
        if done.wait(PATIENCE):
            return
        while not done.wait(_BEAT):
            share = self._connection.query_progress()
            progress(min(max(share / 100, 0.0), 1.0))


def _guarded(query: Callable[[], list[Row]]) -> list[Row]:
    """The rows, or one constant error. It is raised outside the handler, so not even its context has DuckDB's message, which
    goes to the curator alone."""
    try:
        return interruptible(query)
    except (duckdb.Error, RuntimeError, ValueError, OverflowError, MemoryError, OSError) as error:
        diagnosis = f"{type(error).__name__}: {error}"
    raise EngineError(diagnosis=diagnosis)
