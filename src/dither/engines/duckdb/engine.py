"""The default engine: runs a Work on DuckDB, in this process.

sources.py opens the connection. It only ever gets SELECT statements printed from nodes. If one fails, the caller sees a
constant text: DuckDB's own message may quote a value of the data.

Parts. DuckDB cuts the hash table of a grouping into parts by its number of threads. On few processors, the parts of a table of
all persons exceed the caches, and each row costs more as rows are added. So DuckDB is given at least PARTS threads; the extra
ones are declared external, which never start, so that only the parts change. But DuckDB also divides memory among its threads,
and starts to move parts to disk while most of the memory is free, which is many times slower than grouping in few parts. So
with many parts the disk is forbidden. A question that does not fit is run again in few parts, with the disk.

Ctrl-C. DuckDB checks for signals while it runs a query in the main thread. If a signal handler raises (as Python's does on
Ctrl-C), DuckDB stops and replaces that exception by a RuntimeError. Other threads never see a signal, and `interrupt()` from
one of them is an InterruptException. So class and text tell the two apart.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import duckdb
import pyarrow as pa
from duckdb import DuckDBPyConnection

from dither.engines.base import Progress, check
from dither.engines.duckdb.dialect import DIALECT, DuckDBDialect, identifier, secret_numbers
from dither.engines.duckdb.edges import edge_statements
from dither.engines.sql.joint import Joint, join
from dither.engines.sql.work import InexactSumError, Results, Row, Statement, groups, statements
from dither.errors import ArgumentError, DitherError, EngineError
from dither.query.sample import KEY, sample_key
from dither.query.work import Group, Work

PARTS = 8
SETTINGS = ("threads", "external_threads", "max_temp_directory_size")  # may still change when all others are locked
_SETTINGS_QUERY = (
    "SELECT current_setting('threads'), current_setting('external_threads'), current_setting('max_temp_directory_size')"
)


def use_many_parts(connection: DuckDBPyConnection) -> None:
    """Sets many parts, and no disk."""
    workers = _workers(connection)
    threads = max(workers, PARTS)
    connection.execute(f"SET threads = {threads}")
    connection.execute(f"SET external_threads = {threads - workers + 1}")  # one of them is the calling thread
    connection.execute("SET max_temp_directory_size = '0KB'")


def uses_many_parts(connection: DuckDBPyConnection) -> bool:
    return bool(_settings(connection)[2] == "0 bytes")


@contextmanager
def few_parts(connection: DuckDBPyConnection) -> Iterator[None]:
    """Sets few parts, and the disk for what does not fit, inside the block."""
    workers = _workers(connection)
    connection.execute("SET external_threads = 1")
    connection.execute(f"SET threads = {workers}")
    connection.execute("RESET max_temp_directory_size")
    try:
        yield
    finally:
        use_many_parts(connection)


def _workers(connection: DuckDBPyConnection) -> int:
    threads, external, _ = _settings(connection)
    return threads - external + 1


def _settings(connection: DuckDBPyConnection) -> tuple[int, int, str]:
    ((threads, external, disk),) = connection.execute(_SETTINGS_QUERY).fetchall()
    return int(threads), int(external), str(disk)


_T = TypeVar("_T")
_INTERRUPTED = "Query interrupted"


def interruptible(call: Callable[[], _T]) -> _T:
    """Calls a function that uses DuckDB. Raises KeyboardInterrupt on Ctrl-C, without DuckDB's error as its context."""
    try:
        return call()
    except RuntimeError as error:
        if type(error) is not RuntimeError or str(error) != _INTERRUPTED:
            raise
    raise KeyboardInterrupt


Parameters = Mapping[str, int | str]
PATIENCE = 2.0  # seconds before the first progress report
_REPORT_EVERY = 0.25
_REMEMBERED = 128  # prepared Works
_PARSED = 32  # statements: each is run soon after it was prepared, and then rarely again

_KINDS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), "int"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "real"),
    "VARCHAR": "text",
    "BOOLEAN": "bool",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
}


def frame_name(table: str) -> str:
    """Returns the connection's name for the frame behind a table. No table has this name, because of its space."""
    return f"frame {table}"


@dataclass(frozen=True)
class _Prepared:
    """The statements of a Work. `beside`: another Work, and the statement that replaces the first one and computes it, too.

    `first`: the Work that this one is beside.
    """

    work: Work
    statements: list[Statement]
    beside: tuple[Work, Joint] | None = None
    first: Work | None = None


class DuckDB:
    """Runs a Work on the tables and views of one DuckDB connection.

    `kinds`: the columns of each table and their kinds, if the catalog has them; else they are read from the schema.
    `dialect`: another dialect, for tests.
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
        self._prepared: dict[int, _Prepared] = {}
        self._computed = threading.local()  # of each thread: a Work computed beside another, and its groups
        self._preparing = threading.Lock()  # guards _prepared
        self._parsed: dict[str, Any] = {}

    def schema(self, table: str) -> Mapping[str, str]:
        """Returns the columns and their kinds, from the schema only. Leaves out columns of other types."""
        if table not in self._kinds:
            described = _guarded(lambda: self._connection.execute(f"DESCRIBE {identifier(table)}").fetchall())
            pairs = [(str(row[0]), str(row[1])) for row in described]
            self._kinds[table] = {column: _KINDS[kind] for column, kind in pairs if kind in _KINDS}
        return self._kinds[table]

    def prepare(self, work: Work) -> None:
        """Refuses a Work that would fail on any rows. Prints the statements as `run` does and has DuckDB parse them only."""
        self._same_process()
        if self._known(work):
            return
        check(work)
        readable = False
        try:
            joined = self._joined(work)
            planned = self._statements(work) if joined is None else []
            with self._busy:
                for text in [each.text for each in planned] if joined is None else [joined[1].text]:
                    self._parse(text)
            readable = True
        except duckdb.ConnectionException:
            raise DitherError("This session was closed.", fix="open the catalog again.") from None
        except (duckdb.Error, RuntimeError, TypeError, ValueError, OverflowError, LookupError) as error:
            if isinstance(error, DitherError):
                raise
        if not readable:
            raise ArgumentError("the engine cannot read this question.", fix="ask in fewer or simpler parts.")
        self._keep(_Prepared(work, planned, first=joined[0].work if joined else None))
        if joined is not None:
            self._keep(replace(joined[0], beside=(work, joined[1])))

    def run(self, work: Work, secret: bytes) -> list[Group]:
        """Returns the groups and their integers. Runs one Work at a time; others wait.

        If a Work was prepared that shares its pairs, both are computed, and the other is not computed again when it is run.
        """
        self._same_process()
        found: tuple[Work, list[Group]] | None = getattr(self._computed, "beside", None)
        self._computed.beside = None
        if found is not None and found[0] is work:
            return found[1]
        prepared, numbers = self._prepared.get(id(work)), _parameters(work, secret)
        first = None if prepared is None else self._prepared.get(id(prepared.first))
        try:
            if first is not None and first.beside is not None and first.beside[0] is work:
                return self._both(first, numbers)[1]
            if prepared is not None and prepared.beside is not None:
                own, others = self._both(prepared, numbers)
                self._computed.beside = prepared.beside[0], others
                return own
            return self._groups(work, (prepared and prepared.statements) or self._statements(work), numbers)
        except InexactSumError:
            return self._groups(work, self._statements(work, wide=True), numbers)

    def _joined(self, work: Work) -> tuple[_Prepared, Joint] | None:
        """Returns the prepared Work whose pairs this one shares, and the statement of both."""
        with self._preparing:
            prepared_works = list(reversed(self._prepared.values())) if work.pairs is not None else []
        for prepared in prepared_works:
            if work.pairs is not None and prepared.work == work.pairs.of:
                joint = join(prepared.work, work, self._columns, self._dialect)
                return None if joint is None else (prepared, joint)
        return None

    def _known(self, work: Work) -> bool:
        """Whether this Work is prepared, and if it shares pairs, is still beside the first one."""
        known = self._prepared.get(id(work))
        if known is None:
            return False
        if known.first is not None:
            first = self._prepared.get(id(known.first))
            if first is None or first.beside is None or first.beside[0] is not work:
                return False
        self._keep(known)
        return True

    def _keep(self, prepared: _Prepared) -> None:
        """Remembers a Work until many others were prepared after it was last used."""
        with self._preparing:
            self._prepared.pop(id(prepared.work), None)
            self._prepared[id(prepared.work)] = prepared
            while len(self._prepared) > _REMEMBERED:
                del self._prepared[next(iter(self._prepared))]

    def _same_process(self) -> None:
        """Refuses to run in a fork. DuckDB's threads are not there, and a query would wait for them forever, its price paid."""
        if os.getpid() != self._process:
            raise DitherError(
                "This catalog was opened in another process, and a fork cannot read its data.",
                fix="open the catalog in the process that asks.",
            )

    def _statements(self, work: Work, *, wide: bool = False) -> list[Statement]:
        if work.edges is not None:
            return edge_statements(work.edges, work.source)
        return statements(work, self._columns, self._dialect, wide=wide)

    def _columns(self, table: str) -> list[tuple[str, str]]:
        return list(self.schema(table).items())

    def _parse(self, text: str) -> Any:
        """Parses a statement, or returns it if it was parsed before."""
        if text not in self._parsed:
            (parsed,) = self._connection.extract_statements(text)
            if len(self._parsed) >= _PARSED:
                del self._parsed[next(iter(self._parsed))]
            self._parsed[text] = parsed
        return self._parsed[text]

    def _both(self, prepared: _Prepared, numbers: Parameters) -> tuple[list[Group], list[Group]]:
        """Runs a Work and the one beside it."""
        if prepared.beside is None:
            raise TypeError("nothing is beside this Work")
        other, joint = prepared.beside
        results: Results = {}
        others: Results = {}
        with self._busy, self._watched():
            joint.read(self._fetch(joint.text, numbers, _rows), results, others)
        return self._groups(prepared.work, prepared.statements[1:], numbers, results), groups(other, others)

    def _groups(
        self, work: Work, planned: Sequence[Statement], numbers: Parameters, found: Results | None = None
    ) -> list[Group]:
        """Runs statements and returns their groups, with those that were found before."""
        results: Results = {} if found is None else found
        with self._busy, self._watched():
            for statement in planned:
                if statement.read_table is None:
                    statement.read(self._fetch(statement.text, numbers, _rows), results)
                else:
                    statement.read_table(self._fetch(statement.text, numbers, _table), results)
        return groups(work, results) if work.edges is None else [Group((), None, (results[()][0],))]

    def _fetch(self, text: str, numbers: Parameters, read: Callable[..., _T]) -> _T:
        def fetch() -> _T:
            query = self._parse(text)
            values = {name: numbers[name] for name in query.named_parameters}
            try:
                return read(self._connection, query, values)
            except duckdb.OutOfMemoryException:
                if not uses_many_parts(self._connection):
                    raise
            with few_parts(self._connection):
                return read(self._connection, query, values)

        return _guarded(fetch)

    def explain(self, work: Work) -> list[str]:
        """Returns the SQL that `run` sends to DuckDB, for the curator and for tests. The secret is a parameter."""
        return [statement.text for statement in self._statements(work)]

    def exchange(self, table: str, frame: Any) -> None:
        """Replaces the frame behind a table by another Arrow table of the same columns, for auditors."""
        self._computed.beside = None
        self._connection.register(frame_name(table), frame)

    def interrupt(self) -> None:
        """Stops the running query, from another thread. Its `run` then raises EngineError; only Ctrl-C interrupts."""
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
        while not done.wait(_REPORT_EVERY):
            share = self._connection.query_progress()
            progress(min(max(share / 100, 0.0), 1.0))


def _parameters(work: Work, secret: bytes) -> Parameters:
    """Returns the parameters that hold the secret. The key of a sample is one more."""
    numbers = secret_numbers(secret)
    return numbers if work.sample is None else {**numbers, KEY: sample_key(secret)}


def _rows(connection: DuckDBPyConnection, query: Any, values: Parameters) -> list[Row]:
    return connection.execute(query, values).fetchall()


def _table(connection: DuckDBPyConnection, query: Any, values: Parameters) -> pa.Table:
    return connection.sql(query, params=values).to_arrow_table()


def _guarded(query: Callable[[], _T]) -> _T:
    """Returns what the query returns, or raises one constant error. It is raised outside the handler, so that its context does
    not hold DuckDB's message either, which is for the curator only."""
    try:
        return interruptible(query)
    except (duckdb.Error, RuntimeError, ValueError, OverflowError, MemoryError, OSError) as error:
        diagnosis = f"{type(error).__name__}: {error}"
    raise EngineError(diagnosis=diagnosis)
