"""Runs a Work inside PostgreSQL. What comes back are exact whole numbers per group.

The server only ever gets SELECT statements printed from nodes, in read-only transactions. If one fails, the caller sees a
constant text: the server's own message may quote a value of the data. The secret is a parameter.

`prepare` has the server plan every statement, which reads no row. So types, rights and constants that would fail are found
before anything is charged. Patterns are compiled when they meet their first row, so they are tried on an empty text.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import psycopg

from dither.engines.base import Progress, check, parts
from dither.engines.postgres.connection import Connection
from dither.engines.postgres.dialect import PostgresDialect
from dither.engines.postgres.texts import spell_pattern
from dither.engines.sql.choice import key_of
from dither.engines.sql.work import Results, Statement, groups, statements
from dither.errors import ArgumentError, DitherError, EngineError
from dither.query.functions.patterns import parsed
from dither.query.nodes import Call, Literal
from dither.query.work import Group, Work

PATIENCE = 2.0  # seconds before the first progress report
_REPORT_EVERY = 0.25
_REMEMBERED = 256  # prepared Works
_LOST = "08", "57P"  # SQLSTATEs of lost connections and of servers that shut down


class Postgres:
    """Runs a Work on the tables that the dialect reads. `kinds`: the columns of each table and their kinds."""

    name = "postgres"

    def __init__(
        self,
        connection: Connection,
        dialect: PostgresDialect,
        kinds: Mapping[str, Mapping[str, str]],
        progress: Progress | None = None,
    ) -> None:
        self.dialect = dialect
        self._connection, self._kinds, self._progress = connection, kinds, progress
        self._prepared: dict[int, tuple[Work, list[Statement]]] = {}
        self._done = 0.0

    def schema(self, table: str) -> Mapping[str, str]:
        """Returns the columns and their kinds."""
        return self._kinds[table]

    def explain(self, work: Work) -> list[str]:
        """Returns the SQL that `run` sends to the server, for the curator and for tests. The secret is a parameter."""
        return [statement.text for statement in self._statements(work)]

    def _statements(self, work: Work) -> list[Statement]:
        return statements(work, lambda table: list(self.schema(table).items()), self.dialect.for_work(work))

    def prepare(self, work: Work) -> None:
        """Refuses a Work that would fail on any rows. Prints the statements as `run` does and has the server plan them only."""
        if id(work) in self._prepared:
            return
        check(work)
        try:
            planned = self._statements(work)
            with self._connection.snapshot():
                for pattern in _patterns(work):
                    self._connection.rows(f"SELECT ''::text ~ {self.dialect.string(pattern)}")
                for statement in planned:
                    self._connection.rows(f"EXPLAIN {statement.text}", _values(statement, b""))
        except (psycopg.Error, RuntimeError, TypeError, ValueError, OverflowError, LookupError) as error:
            if isinstance(error, DitherError):
                raise
            refused = _refusal(error)
        else:
            self._keep(work, planned)
            return
        raise refused

    def _keep(self, work: Work, planned: list[Statement]) -> None:
        """Remembers a Work until many others are prepared."""
        self._prepared[id(work)] = work, planned
        while len(self._prepared) > _REMEMBERED:
            del self._prepared[next(iter(self._prepared))]

    def snapshot(self) -> AbstractContextManager[None]:
        """Shows the data of one moment to all Works inside the block."""
        return self._guarded()

    def run(self, work: Work, secret: bytes) -> list[Group]:
        """Returns the groups and their integers. Runs one Work at a time; others wait."""
        _, planned = self._prepared.get(id(work)) or (work, self._statements(work))
        found: Results = {}
        with self._guarded(), self._watched():
            for place, statement in enumerate(planned):
                self._done = place / len(planned)
                statement.read(self._connection.rows(statement.text, _values(statement, secret)), found)
        return groups(work, found)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Opens a snapshot, and raises one constant error for what fails inside. It is raised outside the handler, so that its
        context does not hold the server's message either, which is for the curator only."""
        try:
            with self._connection.snapshot():
                yield
            return
        except (psycopg.Error, ValueError, OverflowError, MemoryError) as error:
            if isinstance(error, DitherError):
                raise
            diagnosis = f"{type(error).__name__}: {error}"
        raise EngineError(diagnosis=diagnosis)

    def interrupt(self) -> None:
        """Stops the running statement, from another thread. Its `run` then raises EngineError; only Ctrl-C interrupts."""
        self._connection.cancel()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Reports the share of a Work's statements that are done, after PATIENCE. The server tells no more."""
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
            progress(self._done)


def _values(statement: Statement, secret: bytes) -> tuple[str, ...]:
    """Returns the parameters of a statement: the key of the secret, if it chooses."""
    return (key_of(secret),) if statement.chooses else ()


def _patterns(work: Work) -> set[str]:
    """Returns the patterns of a Work as the server reads them."""
    calls = (part for part in parts(work) if isinstance(part, Call) and part.name == "regexp_matches")
    constants = (call.arguments[1] for call in calls)
    return {spell_pattern(parsed(str(each.value))) for each in constants if isinstance(each, Literal)}


def _refusal(error: Exception) -> DitherError:
    """Returns the error for a Work that cannot be prepared. Its text depends on the SQLSTATE, never on the message."""
    state = error.sqlstate or "" if isinstance(error, psycopg.Error) else ""
    if isinstance(error, psycopg.OperationalError) and (not state or state.startswith(_LOST)):
        return DitherError("The database cannot be reached.", fix="ask again when the server is back.")
    if state == "42501":
        fix = "grant the role SELECT on the tables of the catalog."
        return DitherError("The database does not let the catalog's role read its tables.", fix=fix)
    return ArgumentError("the engine cannot read this question.", fix="ask in fewer or simpler parts.")
