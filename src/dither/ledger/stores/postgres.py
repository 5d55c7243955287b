"""The PostgreSQL store, for several machines: tables `entries` and `state` in one schema.

Why it is serializable. Every transaction is READ COMMITTED, and its first statement locks the same row (FOR UPDATE), so at
most one transaction is between that statement and its commit. Each later statement sees everything committed before it
started, and so everything that earlier holders of the lock wrote. Hence the result equals that of running the transactions
one by one, in the order in which they got the lock. The isolation level is set explicitly: under REPEATABLE READ the snapshot
would be as old as the *start* of the wait for the lock.

Why it is durable, and why the lock is not held while waiting for the disk. The commit itself does not wait
(synchronous_commit off, for that transaction only). Then, with the lock free, one more small transaction is written and
waited for (synchronous_commit on), and only then does `transaction()` return. The server's log reaches the disk, and a
standby, in order, so once that last record is there, everything before it is there. What is acknowledged is durable, and so is
everything it depends on. A crash can only remove entries that were never acknowledged. Reads outside a transaction wait
in the same way before they return. So many processes share one flush; with the lock held they would queue for the disk.

A transaction makes two round trips, plus one for each read that was not announced: announced reads come with the lock, and
all writes go with the commit, each as one message of several statements (postgres_wire.py).
The next transaction reopens a lost connection. A transaction is retried only if its connection was dead before its first
statement was done, and never after that.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any, NoReturn

import psycopg

from dither.errors import LedgerError
from dither.ledger.stores import postgres_sql
from dither.ledger.stores.base import Row
from dither.ledger.stores.postgres_sql import Statements, written
from dither.ledger.stores.postgres_wire import Address, Statement, Value, Wire, failure, is_lost, is_refused, unknown_outcome
from dither.process import Origin


class Transaction:
    """A transaction between its lock and its commit. It buffers writes until the commit; its reads see them."""

    def __init__(
        self, name: str, statements: Statements, wire: Wire, known: dict[str, str | None], latest: dict[str, Row | None]
    ) -> None:
        self._name = name
        self._sql = statements
        self._wire = wire
        self._known = known
        self._latest = latest
        self._origin = Origin()
        self.closed = False
        self.states: dict[str, str] = {}
        self.rows: list[Row] = []

    def get(self, key: str) -> str | None:
        if key in self.states:
            return self.states[key]
        if key not in self._known:
            result = self._read(self._sql.get, written(key))
            self._known[key] = result[0][0] if result else None
        return self._known[key]

    def put(self, key: str, value: str) -> None:
        self.wire()
        self.states[key] = value

    def append(self, row: Row) -> None:
        self.wire()
        self.rows.append(row)

    def entry(self, number: int) -> Row | None:
        mine = [row for row in self.rows if row.number == number]
        return mine[-1] if mine else first(self._read(self._sql.entry, number))

    def latest(self, question: str) -> Row | None:
        mine = [row for row in self.rows if row.question == question != ""]
        if mine:
            return max(mine)
        if question not in self._latest:
            self._latest[question] = first(self._read(self._sql.latest, question))
        return self._latest[question]

    def wire(self) -> Wire:
        """Returns the connection. Refuses if this transaction is over, or in another process."""
        if self.closed or not self._origin.here:
            fix = "begin a new one, in the process that uses it."
            raise LedgerError(f"A transaction of the ledger {self._name} is over.", fix=fix)
        return self._wire

    def _read(self, statement: bytes, *values: Value) -> list[tuple[Any, ...]]:
        wire = self.wire()
        try:
            return wire.run(Statement(statement, values))[0].rows
        except psycopg.Error as error:
            self.closed = True
            raise failure(self._name, error) from None


def row_of(result: tuple[Any, ...]) -> Row:
    return Row(int(result[0]), *result[1:])


def first(result: list[tuple[Any, ...]]) -> Row | None:
    return row_of(result[0]) if result else None


RESTORE = "`dither verify` tells what else is; restore the newest backup."
_OPEN: weakref.WeakSet[Postgres] = weakref.WeakSet()
_PARENTS: list[Wire] = []  # connections inherited by a fork: never closed here, the parent still uses them


class Postgres:
    """One connection, used by one thread at a time. Use `create` or `open`.

    Guarantee: transactions are serial across all machines, and durable when they return.
    Relies on: the server's fsync and its disk.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._sql = postgres_sql.Statements(address.schema)
        self._lock = threading.RLock()
        self._wire: Wire | None = None
        self._work: Callable[[], Transaction | None] = lambda: None  # the running transaction
        self._closed = False
        _OPEN.add(self)

    @classmethod
    def create(cls, url: str, first: Mapping[str, str] | None = None, rows: Iterable[Row] = ()) -> Postgres:
        """Creates a ledger with the texts `first` and `rows`. If several try at once, exactly one succeeds."""
        store = cls(Address.of(url))
        try:
            store._make(first or {}, iter(rows))
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def open(cls, url: str) -> Postgres:
        """Opens an existing ledger. Refuses a missing one: a mistyped address must not start a new budget."""
        store = cls(Address.of(url))
        try:
            if store.get("") != postgres_sql.FORMAT:
                what = f"{store.name} is no ledger, or was written by another version of dither that this one does not read."
                raise LedgerError(what, fix="name another schema after #, or use the version it was made with.")
        except BaseException:
            store.close()
            raise
        return store

    @property
    def name(self) -> str:
        return self._address.name

    @contextmanager
    def transaction(self, *keys: str, question: str = "") -> Iterator[Transaction]:
        with self._lock:
            before = self._work()
            if before is not None and not before.closed:
                raise LedgerError(f"{self.name} is in a transaction already.", fix="end it first.")
            if self._wire is not None and self._wire.busy:  # an earlier transaction was interrupted while it ended
                self._drop()
            work: Transaction | None = None
            try:  # no interruption may leave the lock held
                work = self._begin(keys, question)
                self._work = weakref.ref(work)
                yield work
                self._finish(work)
            except BaseException:
                if work is not None:
                    work.closed = True
                self._roll_back()
                raise

    def get(self, key: str) -> str | None:
        result = self._read(self._sql.get, postgres_sql.written(key))
        return result[0][0] if result else None

    def several(self, *keys: str) -> dict[str, str]:
        result = self._read(self._sql.several, [postgres_sql.written(key) for key in keys])
        return {postgres_sql.read(key): value for key, value in result}

    def faults(self) -> list[str]:
        if {text for (text,) in self._read(self._sql.objects)} == postgres_sql.EXPECTED_OBJECTS:
            return []
        return ["the tables, triggers or indexes of the schema are not those that a ledger is made with."]

    def entry(self, number: int) -> Row | None:
        return first(self._read(self._sql.entry, number))

    def latest(self, question: str) -> Row | None:
        return first(self._read(self._sql.latest, question))

    def state(self) -> tuple[dict[str, str], int]:
        result = {postgres_sql.read(key): value for key, value in self._read(self._sql.state)}
        last = result.pop("")
        return result, int(last or 0)

    def rows(self, start: int = 1, stop: int | None = None) -> Iterator[Row]:
        # Rows never change, so pages up to a fixed number are one snapshot, and no long transaction keeps the server from
        # removing old versions of `state`.
        end = self.state()[1] if stop is None else stop
        while start <= end and (result := self._read(self._sql.rows, start, end)):
            for each in map(row_of, result):
                yield each
                start = each.number + 1

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._drop()

    def _make(self, first: Mapping[str, str], rows: Iterator[Row]) -> None:
        schema = self._address.schema
        with self._lock:
            wire, _ = self._connected()

            def say(statement: bytes, *values: str) -> list[Any]:
                return wire.run(Statement(statement, values))[0].rows

            try:
                with wire.link.transaction():
                    say(postgres_sql.ALONE, schema)
                    if say(postgres_sql.HAS_TABLE, f'"{schema}".state') == [("t",)]:
                        fix = "open it, or name another schema after #."
                        raise LedgerError(f"There is a ledger {self.name} already.", fix=fix)
                    if say(postgres_sql.HAS_SCHEMA, schema) == [("f",)]:
                        say(self._sql.schema)
                    for statement in self._sql.tables:
                        say(statement)
                    if first:
                        wire.run(_put(self._sql.put, first))
                    while page := list(islice(rows, postgres_sql.PAGE)):
                        wire.run(*(Statement(self._sql.append, tuple(row)) for row in page))
            except psycopg.Error as error:
                raise failure(self.name, error) from None

    def _begin(self, keys: tuple[str, ...], question: str) -> Transaction:
        lock = [Statement(postgres_sql.BEGIN), Statement(self._sql.lock)]
        reads = [Statement(self._sql.several, ([postgres_sql.written(key) for key in keys],))]
        if question:
            reads.append(Statement(self._sql.latest, (question,)))
        while True:
            wire, fresh = self._connected()
            try:
                _, locked, result, *seen = wire.run(*lock, *reads)
                if not locked.rows:
                    raise LedgerError(f"{self.name} is damaged: what its transactions lock is gone.", fix=RESTORE)
                values = {postgres_sql.read(key): value for key, value in result.rows}
                latest = {question: first(seen[0].rows)} if question else {}
                return Transaction(self.name, self._sql, wire, {key: values.get(key) for key in keys}, latest)
            except psycopg.Error as error:
                self._roll_back()
                if fresh or not is_lost(error):
                    raise failure(self.name, error) from None
            except BaseException:
                self._drop()
                raise

    def _finish(self, work: Transaction) -> None:
        wire = work.wire()
        work.closed = True
        writes = [Statement(self._sql.append, tuple(row)) for row in work.rows]
        if work.states:
            writes.append(_put(self._sql.put, work.states))
        try:
            done = wire.run(*writes, Statement(postgres_sql.COMMIT), Statement(postgres_sql.SETTLE))
        except psycopg.Error as error:
            if is_refused(error) and wire.failed:  # refused before the commit
                raise failure(self.name, error) from None
            self._drop()
            raise unknown_outcome(self.name) from None
        except BaseException:
            self._drop()
            raise
        if done[-2].status != "COMMIT":  # ROLLBACK without an error, if an earlier statement had failed
            raise LedgerError(f"The ledger {self.name} took back what was written.", fix="ask again.")

    def _roll_back(self) -> None:
        if self._wire is None:
            return
        try:
            self._wire.run(Statement(postgres_sql.ROLLBACK))
        except psycopg.Error:
            self._drop()
        except BaseException:
            self._drop()
            raise

    def _read(self, statement: bytes, *values: Any) -> list[Any]:
        with self._lock:
            while True:
                wire, fresh = self._connected()
                try:
                    result, settled = wire.run(Statement(statement, values), Statement(postgres_sql.SETTLED))
                    if settled.rows == [("f",)]:
                        wire.run(Statement(postgres_sql.SETTLE))
                    return result.rows
                except psycopg.Error as error:
                    if fresh or not is_lost(error):
                        raise failure(self.name, error) from None
                    self._drop()
                except BaseException:
                    self._drop()
                    raise

    def _connected(self) -> tuple[Wire, bool]:
        """Returns the connection, and whether it is new: an old one may have died unnoticed."""
        if self._closed:
            raise LedgerError(f"The ledger {self.name} was closed.", fix="open the catalog again.")
        if self._wire is not None and not self._wire.closed:
            return self._wire, False
        self._drop()
        self._wire = self._address.connect()
        return self._wire, True

    def _drop(self) -> None:
        if self._wire is not None:
            wire, self._wire = self._wire, None
            wire.close()

    def _after_fork(self) -> None:
        """Resets a child process: a thread that does not exist here may hold the lock, and the connection is the parent's."""
        self._lock = threading.RLock()
        self._work = lambda: None
        if self._wire is not None:
            _PARENTS.append(self._wire)
            self._wire = None

    def __repr__(self) -> str:
        return f"Postgres({self.name!r})"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise LedgerError("A ledger cannot be copied: its connection is one process's.", fix="open it by its address there.")


def _put(statement: bytes, states: Mapping[str, str]) -> Statement:
    return Statement(statement, ([postgres_sql.written(key) for key in states], list(states.values())))


def _after_fork() -> None:
    for store in list(_OPEN):
        store._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
