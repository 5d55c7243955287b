"""A ledger in a SQLite file, or in memory for trying things out.

Write-ahead log with full sync: a transaction that returned is on the disk. `BEGIN IMMEDIATE` takes the file's one write lock
before anything is read, so that a check and the entry it allows cannot be separated by another process.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from dither.errors import LedgerError, NoLedgerError
from dither.ledger.files import draft_of, publish, sweep
from dither.ledger.sqlite_errors import told
from dither.ledger.store import Row

APPLICATION = 0x64697468  # "dith": tells a ledger from any other SQLite file
FORMAT = 1
WAIT = 30.0  # seconds to wait for another process's transaction
PAGE = 256  # rows read at once when walking

SCHEMA = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {FORMAT};
BEGIN IMMEDIATE;
CREATE TABLE entries (
    number INTEGER PRIMARY KEY, kind TEXT NOT NULL, question TEXT NOT NULL,
    body TEXT NOT NULL, hash TEXT NOT NULL, signature TEXT NOT NULL);
CREATE INDEX entries_question ON entries (question, number) WHERE question <> '';
CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries are for ever'); END;
CREATE TRIGGER entries_last BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries are for ever'); END;
"""
FIELDS = "number, kind, question, body, hash, signature"
GET = "SELECT value FROM state WHERE key = ?"
SEVERAL = "SELECT key, value FROM state WHERE key IN ({})"
PUT = "INSERT INTO state VALUES {} ON CONFLICT (key) DO UPDATE SET value = excluded.value"
APPEND = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)"
ENTRY = f"SELECT {FIELDS} FROM entries WHERE number = ?"
LATEST = f"SELECT {FIELDS} FROM entries WHERE question = ? AND question <> '' ORDER BY number DESC LIMIT 1"
STATE = "SELECT 0, key, value FROM state UNION ALL SELECT 1, NULL, (SELECT max(number) FROM entries)"
ROWS = f"SELECT {FIELDS} FROM entries WHERE number BETWEEN ? AND ? ORDER BY number LIMIT {PAGE}"

_OPEN: weakref.WeakSet[SQLite] = weakref.WeakSet()


class SQLite:
    """One connection, used by one thread at a time. `create`, `open` and `memory` make one."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._lost = ""  # why this store can no longer be used
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None  # which file the name stood for when it was opened
        _OPEN.add(self)

    @classmethod
    def create(cls, path: Path, first: Mapping[str, str] | None = None) -> SQLite:
        """A new file with `first` under its keys. It appears under its name whole, or not at all; never replaces one."""
        path = Path(path)
        sweep(path)
        draft = draft_of(path)
        try:
            with told(path.name):
                connection = _connect(str(draft))
                _prepare(connection, first or {})
                connection.close()
            _publish(draft, path)
        finally:
            for left in (draft, Path(f"{draft}-wal"), Path(f"{draft}-shm")):
                left.unlink(missing_ok=True)
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> SQLite:
        """A ledger that is there. A missing file is an error: a forgotten path must not start a fresh budget."""
        store = cls(Path(path).absolute())
        store._read("SELECT 1")
        return store

    @classmethod
    def memory(cls, first: Mapping[str, str] | None = None) -> SQLite:
        """Forgotten when the process ends; refuses to be copied or forked, which would double the budget."""
        store = cls(None)
        store._connection = _connect(":memory:")
        _prepare(store._connection, first or {})
        return store

    @property
    def name(self) -> str:
        return self._path.name if self._path else ":memory:"

    @contextmanager
    def transaction(self, *keys: str, question: str = "") -> Iterator[_Transaction]:
        with self._lock:
            connection = self._connected()
            self._same_file()
            if _open(connection):
                raise LedgerError(f"{self.name} is in a transaction already.", fix="end it first.")
            with told(self.name):
                connection.execute("BEGIN IMMEDIATE")
            try:
                inside = _Transaction(connection, self.name, keys)
                yield inside
                inside.flush()
                with told(self.name, charged="the price of the question, if its entry was still written: see `dither history`"):
                    connection.execute("COMMIT")
            finally:
                if _open(connection):
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")

    def get(self, key: str) -> str | None:
        found = self._read(GET, key)
        return found[0][0] if found else None

    def entry(self, number: int) -> Row | None:
        return _row(self._read(ENTRY, number))

    def latest(self, question: str) -> Row | None:
        return _row(self._read(LATEST, question))

    def state(self) -> tuple[dict[str, str], int]:
        *found, (_, _, last) = sorted(self._read(STATE), key=lambda row: row[0])
        return {key: value for _, key, value in found}, last or 0

    def rows(self, start: int = 1, stop: int | None = None) -> Iterator[Row]:
        # Rows are never changed, so page after page up to a fixed number is the ledger of one moment.
        end = self.state()[1] if stop is None else stop
        while start <= end and (found := self._read(ROWS, start, end)):
            yield from map(Row._make, found)
            start = found[-1][0] + 1

    def close(self) -> None:
        with self._lock:
            self._lost = "was closed"
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _read(self, statement: str, *values: Any) -> list[Any]:
        with self._lock, told(self.name):
            return self._connected().execute(statement, values).fetchall()

    def _connected(self) -> sqlite3.Connection:
        if self._lost:
            raise LedgerError(f"The ledger {self.name} {self._lost}.", fix="open the catalog again.")
        if self._connection is None:
            self._connection = self._reopened()
        return self._connection

    def _same_file(self) -> None:
        """A file that was moved away takes its entries along: what is written to it now would be forgotten."""
        if self._path is not None and _file(self._path) != self._file:
            raise LedgerError(
                f"The ledger {self.name} was moved or replaced while it was open.",
                fix="put it back, and open the catalog again.",
            )

    def _reopened(self) -> sqlite3.Connection:
        if self._path is None or not self._path.is_file():
            raise NoLedgerError(self.name)
        self._file = _file(self._path)
        with told(self.name):
            connection = _connect(self._path.as_uri() + "?mode=rw")
            try:
                found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
                if found != [APPLICATION, FORMAT]:
                    what = "is no ledger" if found[0] != APPLICATION else "was written by a newer version of dither"
                    raise LedgerError(f"{self.name} {what}.", fix="name the ledger's file, or update dither.")
            except BaseException:
                connection.close()
                raise
        return connection

    def _forked(self) -> None:
        """In a child process: the lock may be held by a thread that does not exist here, the connection is the parent's."""
        self._lock = threading.RLock()
        if self._connection is None:
            return
        # Closing the parent's connection from here could remove its log, so the object is kept for ever.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
        self._connection = None
        if self._path is None:
            self._lost = "is in the memory of the process that made it, and this is a fork of it"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise LedgerError("A ledger cannot be copied: two copies could each be spent in full.", fix="share the one object.")


class _Transaction:
    def __init__(self, connection: sqlite3.Connection, name: str, keys: tuple[str, ...]) -> None:
        self._connection = connection
        self._name = name
        found = self._run(SEVERAL.format(", ".join("?" * len(keys))), *keys)  # nobody else writes, so it stays true
        self._put: dict[str, str] = {}
        self._known: dict[str, str | None] = dict.fromkeys(keys) | dict(found)

    def get(self, key: str) -> str | None:
        if key not in self._known:
            found = self._run(GET, key)
            self._known[key] = found[0][0] if found else None
        return self._known[key]

    def put(self, key: str, value: str) -> None:
        self._known[key] = self._put[key] = value

    def flush(self) -> None:
        """All texts at once, before the commit: a statement costs more than a text."""
        if self._put:
            texts = [part for pair in self._put.items() for part in pair]
            self._run(PUT.format(", ".join(["(?, ?)"] * len(self._put))), *texts)

    def append(self, row: Row) -> None:
        self._run(APPEND, *row)

    def entry(self, number: int) -> Row | None:
        return _row(self._run(ENTRY, number))

    def latest(self, question: str) -> Row | None:
        return _row(self._run(LATEST, question))

    def _run(self, statement: str, *values: Any) -> list[Any]:
        with told(self._name):
            return self._connection.execute(statement, values).fetchall()


def _file(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _open(connection: sqlite3.Connection) -> bool:
    return connection.in_transaction


def _text(found: bytes) -> str:
    """What is not UTF-8 was not written by a ledger. It is read all the same, so that verification can tell."""
    return found.decode("utf-8", "surrogateescape")


def _row(found: list[Any]) -> Row | None:
    return Row._make(found[0]) if found else None


def _connect(where: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        where, timeout=WAIT, isolation_level=None, check_same_thread=False, uri=where.startswith("file:")
    )
    connection.text_factory = _text
    try:
        for pragma in ("synchronous = FULL", "fullfsync = ON", "trusted_schema = OFF"):
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, first: Mapping[str, str]) -> None:
    connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.executescript(SCHEMA)
    connection.executemany(PUT.format("(?, ?)"), first.items())
    connection.execute("COMMIT")


def _publish(draft: Path, path: Path) -> None:
    try:
        publish(draft, path)
    except FileExistsError:
        raise LedgerError(f"There is a ledger {path.name} already.", fix="open it, or name another file.") from None
    except OSError:
        raise LedgerError(
            f"{path.name} cannot be made in its folder.", fix="give this user write access to the folder, on a local disk."
        ) from None


def _forked() -> None:
    for store in list(_OPEN):
        store._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
