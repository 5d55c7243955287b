"""Runs a Work on Spark.

sources.py opens the session. It only ever gets SELECT statements printed from nodes, with the secret's key as a parameter. If
one fails, the caller sees a constant text: Spark's own message may quote a value of the data.

Retries. Spark repeats a task whose executor is lost, and may run two copies of a slow one. What a statement computes depends on
the rows and the key only: groups and values are chosen by a hash, never by rand() or by the order of rows. So a repeated task
gives the same rows.

Keys. What a question discovers is held in this process, about a kilobyte for each key. More than MOST_KEYS are a failure like
any other: the price stays charged, and the error is the constant one.

Ctrl-C. A statement runs under a tag of its own, and an interrupt cancels the jobs of that tag before it is passed on.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from dither.engines.base import Progress, check
from dither.engines.spark.dialect import SECRET, SparkDialect
from dither.engines.spark.session import quiet
from dither.engines.sql.choice import key_of
from dither.engines.sql.work import Results, Row, Statement, groups, statements
from dither.errors import ArgumentError, EngineError
from dither.process import Origin
from dither.query.work import Group, Work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_T = TypeVar("_T")
_REMEMBERED = 256  # prepared Works
MOST_KEYS = 2_000_000  # discovered keys, or keys and bins of a histogram: 2 GB
PATIENCE = 2.0  # seconds before the first progress report
_ELSEWHERE = "This catalog was opened in another process, and a fork shares its parent's connection to Spark."


class Spark:
    """Runs a Work on the views of one session. `kinds`: the columns of each table and their kinds."""

    name = "spark"

    def __init__(
        self,
        session: SparkSession,
        dialect: SparkDialect,
        kinds: Mapping[str, Mapping[str, str]],
        progress: Progress | None = None,
    ) -> None:
        self._session, self._dialect, self._kinds, self._progress = session, dialect, kinds, progress
        self._busy = threading.Lock()
        self._origin = Origin()
        self._prepared: dict[int, tuple[Work, list[Statement]]] = {}

    def schema(self, table: str) -> Mapping[str, str]:
        """Returns the columns and their kinds."""
        return self._kinds[table]

    def prepare(self, work: Work) -> None:
        """Refuses a Work that would fail on any rows. Prints its statements and has Spark analyse them, which reads no row."""
        self._origin.check(_ELSEWHERE, "open the catalog in the process that asks.")
        if id(work) in self._prepared:
            return
        check(work)
        planned = self._statements(work)
        readable = False
        with self._busy, quiet(), suppress(Exception):
            for statement in planned:
                self._frame(statement, "").schema  # noqa: B018  asking for the schema analyses the statement
            readable = True
        if not readable:
            raise ArgumentError("Spark cannot read this question.", fix="ask in fewer or simpler parts.")
        self._prepared[id(work)] = work, planned
        while len(self._prepared) > _REMEMBERED:
            del self._prepared[next(iter(self._prepared))]

    def run(self, work: Work, secret: bytes) -> list[Group]:
        """Returns the groups and their integers. Runs one Work at a time; others wait."""
        self._origin.check(_ELSEWHERE, "open the catalog in the process that asks.")
        _, planned = self._prepared.get(id(work)) or (work, self._statements(work))
        results: Results = {}
        began = time.monotonic()
        with self._busy:
            for place, statement in enumerate(planned):
                if self._progress is not None and time.monotonic() - began > PATIENCE:
                    self._progress(place / len(planned))
                self._read(statement, secret, results, limited=discovers(work))
        return groups(work, results)

    def _read(self, statement: Statement, secret: bytes, results: Results, *, limited: bool) -> None:
        table = self.guarded(lambda: self._frame(statement, key_of(secret)).toArrow())
        if limited and table.num_rows > MOST_KEYS:
            raise EngineError(diagnosis=f"The question discovers more than {MOST_KEYS:,} keys. Declare `values` for its keys.")
        if statement.read_table is None:
            statement.read(_rows(table), results)
        else:
            statement.read_table(table, results)

    def explain(self, work: Work) -> list[str]:
        """Returns the SQL that `run` sends to Spark, for the curator and for tests. The secret is a parameter."""
        return [statement.text for statement in self._statements(work)]

    def interrupt(self) -> None:
        """Stops the running statement, from another thread. Its `run` then raises EngineError."""
        with quiet(), suppress(Exception):
            self._session.interruptAll()

    def guarded(self, query: Callable[[], _T]) -> _T:
        """Returns what a query returns, or raises one constant error. It is raised outside the handler, so that its context
        does not hold Spark's message either, which is for the curator only."""
        tag = f"dither-{uuid.uuid4().hex}"
        try:
            with quiet():
                self._session.addTag(tag)
                try:
                    return query()
                finally:
                    self._session.removeTag(tag)
        except KeyboardInterrupt:
            with quiet(), suppress(Exception):
                self._session.interruptTag(tag)
            raise
        except Exception as error:
            diagnosis = f"{type(error).__name__}: {error}"
        raise EngineError(diagnosis=diagnosis)

    def _statements(self, work: Work) -> list[Statement]:
        printed = statements(work, lambda table: list(self.schema(table).items()), self._dialect)
        if not discovers(work):
            return printed
        return [replace(each, body=f"{each.body} LIMIT {MOST_KEYS + 1}") for each in printed]

    def _frame(self, statement: Statement, key: str) -> Any:
        text = statement.text
        return self._session.sql(text, args={SECRET: key} if statement.chooses else None)


def discovers(work: Work) -> bool:
    """Whether the data decide how many groups there are. Works over public tables have a limit of their own."""
    return bool(work.keys) and work.known is None and not work.plain


def _rows(table: pa.Table) -> Iterator[Row]:
    """Yields rows as tuples; columns may have equal names."""
    return zip(*(column.to_pylist() for column in table.columns), strict=True)
