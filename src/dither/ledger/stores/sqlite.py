"""The SQLite store: one file, or memory for trying things out.

The journal is a rollback journal, not a write-ahead log. So between transactions all entries are in the file itself, and the
locks are on the file under any name. Sync is full: a transaction that returned is on the disk. `BEGIN IMMEDIATE` takes the
file's one write lock before anything is read, so no other process can write between a check and the entry it allows. Readers
open the file read-only.

Errors have fixed texts, by SQLite's error code, so that they never repeat a statement or a value.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from dither.errors import LedgerError, NoLedgerError
from dither.ledger.files import draft_of, has_one_name, publish, remove_stale_drafts
from dither.ledger.stores.base import Row

TEXTS = {  # by SQLite's primary error code: what, and how to fix it
    sqlite3.SQLITE_BUSY: ("is locked by another process", "ask again in a moment, or end the process that holds it."),
    sqlite3.SQLITE_LOCKED: ("is locked by another process", "ask again in a moment, or end the process that holds it."),
    sqlite3.SQLITE_READONLY: ("cannot be written", "give this user write access to the file and its folder."),
    sqlite3.SQLITE_PERM: ("cannot be written", "give this user write access to the file and its folder."),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "give this user access to the file and its folder."),
    sqlite3.SQLITE_FULL: ("cannot grow: the disk is full", "free some space on its disk."),
    sqlite3.SQLITE_NOTADB: ("is no ledger", "name the ledger's file, or restore the newest backup: dither restore."),
    sqlite3.SQLITE_CORRUPT: ("is damaged", "restore the newest backup: dither restore."),
}
OTHER = ("could not be used: its disk reports an error", "check the disk; `dither verify` tells whether the ledger is whole.")


HALF_WRITTEN = (
    "was left in the middle of a write by a process that died, and this command does not write",
    "the curator's next `dither ask` or `dither reopen` takes the half back; nothing that was answered is lost.",
)
_HOT = (sqlite3.SQLITE_READONLY_ROLLBACK, sqlite3.SQLITE_READONLY_RECOVERY, sqlite3.SQLITE_READONLY_CANTLOCK)


@contextmanager
def translate_errors(name: str, charged: str = "nothing") -> Iterator[None]:
    """Turns SQLite's errors into LedgerError."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0)
        what, fix = HALF_WRITTEN if code in _HOT else TEXTS.get(code & 0xFF, OTHER)
        raise LedgerError(f"The ledger {name} {what}.", fix=fix, charged=charged) from None


APPLICATION = 0x64697468  # "dith": tells a ledger from any other SQLite file
BACKUP = 0x64697462  # "ditb": a backup, which nobody can spend from
FORMAT = 2
WAIT = 30.0  # seconds to wait for another process's transaction
PAUSE = 0.0005  # seconds between two looks whether it has ended
PAGE = 256  # rows read at once when walking
MAYBE = "the price of the question, if its entry was still written: see `dither history`"

SCHEMA = """
BEGIN IMMEDIATE;
CREATE TABLE entries (
    number INTEGER PRIMARY KEY, kind TEXT NOT NULL, question TEXT NOT NULL,
    body TEXT NOT NULL, hash TEXT NOT NULL, signature TEXT NOT NULL,
    CHECK (typeof(kind) = 'text' AND typeof(question) = 'text' AND typeof(body) = 'text' AND typeof(hash) = 'text'
        AND typeof(signature) = 'text'));
CREATE INDEX entries_question ON entries (question, number) WHERE question <> '';
CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT NOT NULL,
    CHECK (typeof(key) = 'text' AND typeof(value) = 'text')) WITHOUT ROWID;
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
OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
ROWS = f"SELECT {FIELDS} FROM entries WHERE number BETWEEN ? AND ? ORDER BY number LIMIT {PAGE}"

_OPEN: weakref.WeakSet[SQLite] = weakref.WeakSet()


class SQLite:
    """One connection, used by one thread at a time. Use `create`, `open` or `memory`."""

    def __init__(self, path: Path | None, *, readonly: bool = False) -> None:
        self._path = path
        self._readonly = readonly
        self._lock = threading.RLock()
        self._lost = ""  # why this store can no longer be used
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None  # device and inode of the opened file
        self.backup = False  # whether the file is a backup; known once it is open
        _OPEN.add(self)

    @classmethod
    def create(
        cls, path: Path, first: Mapping[str, str] | None = None, rows: Iterable[Row] = (), *, backup: bool = False
    ) -> SQLite:
        """Creates a file with the texts `first` and `rows`, atomically; never replaces one."""
        path = Path(path)
        _check_no_log_beside(path)
        remove_stale_drafts(path)
        draft = draft_of(path)
        try:
            with translate_errors(path.name), closing(_connect(str(draft))) as connection:
                _prepare(connection, first or {}, rows, BACKUP if backup else APPLICATION)
            _publish(draft, path)
        finally:
            for left in (draft, Path(f"{draft}-journal")):
                left.unlink(missing_ok=True)
        return cls.open(path, readonly=backup)

    @classmethod
    def open(cls, path: Path, *, readonly: bool = False) -> SQLite:
        """Opens an existing ledger; a backup only with `readonly`. Refuses a missing file: it must not start a new budget."""
        store = cls(Path(path).absolute(), readonly=readonly)
        store._read("SELECT 1")
        return store

    @classmethod
    def memory(cls, first: Mapping[str, str] | None = None, rows: Iterable[Row] = ()) -> SQLite:
        """Creates a store in memory. It ends with the process, and cannot be copied or forked: that would double the budget."""
        store = cls(None)
        store._connection = _connect(":memory:")
        _prepare(store._connection, first or {}, rows, APPLICATION)
        return store

    @property
    def name(self) -> str:
        return self._path.name if self._path else ":memory:"

    @contextmanager
    def transaction(self, *keys: str, question: str = "") -> Iterator[_Transaction]:
        with self._lock:
            connection: Any = self._connected()
            self._check_same_file()
            if connection.in_transaction:
                raise LedgerError(f"{self.name} is in a transaction already.", fix="end it first.")
            try:
                try:  # an interrupt may come right after the lock is taken
                    with translate_errors(self.name):
                        when_free(connection, WAIT, "BEGIN IMMEDIATE")
                    if self._path is not None:
                        self._check_no_log(self._path)  # again: SQLite would use a log that appeared meanwhile
                    inside = _Transaction(connection, self.name, keys)
                    yield inside
                    inside.flush()
                    with translate_errors(self.name, charged=MAYBE):
                        connection.execute("COMMIT")
                finally:
                    if connection.in_transaction:
                        connection.rollback()
            finally:  # again, because an interrupt may come between `finally` and the line after it
                if connection.in_transaction:
                    connection.rollback()

    def get(self, key: str) -> str | None:
        result = self._read(GET, key)
        return result[0][0] if result else None

    def several(self, *keys: str) -> dict[str, str]:
        return dict(self._read(SEVERAL.format(", ".join("?" * len(keys))), *keys))

    def entry(self, number: int) -> Row | None:
        return _row(self._read(ENTRY, number))

    def latest(self, question: str) -> Row | None:
        return _row(self._read(LATEST, question))

    def faults(self) -> list[str]:
        if self._read(OBJECTS) == _objects():
            return []
        return ["the file's tables, triggers or indexes are not those that a ledger is made with."]

    def state(self) -> tuple[dict[str, str], int]:
        *result, (_, _, last) = sorted(self._read(STATE), key=lambda row: row[0])
        return {key: value for _, key, value in result}, last or 0

    def rows(self, start: int = 1, stop: int | None = None) -> Iterator[Row]:
        # Rows never change, so pages up to a fixed number are one snapshot.
        end = self.state()[1] if stop is None else stop
        while start <= end and (result := self._read(ROWS, start, end)):
            yield from map(Row._make, result)
            start = result[-1][0] + 1

    def close(self) -> None:
        with self._lock:
            self._lost = "was closed"
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _read(self, statement: str, *values: Any) -> list[Any]:
        with self._lock, translate_errors(self.name):
            return when_free(self._connected(), WAIT, statement, values).fetchall()

    def _connected(self) -> sqlite3.Connection:
        if self._lost:
            raise LedgerError(f"The ledger {self.name} {self._lost}.", fix="open the catalog again.")
        if self._connection is None:
            self._connection = self._open_file()
        return self._connection

    def _check_same_file(self) -> None:
        """Refuses a file that was moved or replaced: entries written to it now would be lost."""
        if self._path is None:
            return
        if _file(self._path) != self._file:
            raise LedgerError(
                f"The ledger {self.name} was moved or replaced while it was open.",
                fix="put it back, and open the catalog again.",
            )
        self._check_one_name(self._path)
        self._check_no_log(self._path)

    def _check_no_log(self, path: Path) -> None:
        """Refuses a write-ahead log beside the file: SQLite would write there, and not into the file."""
        if os.path.lexists(f"{path}-wal"):
            raise LedgerError(
                f"Another program put a write-ahead log beside {self.name}, so its entries could be in two files.",
                fix=f"close that program; then run: sqlite3 {self.name} 'PRAGMA journal_mode = DELETE', and `dither verify`.",
            )

    def _check_one_name(self, path: Path) -> None:
        """Refuses a second hard link: the journal is beside one name only, so a crash under the other is not rolled back."""
        if not has_one_name(path):
            raise LedgerError(
                f"The ledger {self.name} has a second name (a hard link).",
                fix="remove the other name: a ledger is one file under one name, so that its budget is one.",
            )

    def _open_file(self) -> sqlite3.Connection:
        if self._path is None or not self._path.is_file():
            raise NoLedgerError(self.name)
        self._file = _file(self._path)
        self._check_one_name(self._path)
        self._check_no_log(self._path)
        with translate_errors(self.name):
            connection = _connect(self._path.as_uri() + ("?mode=ro" if self._readonly else "?mode=rw"))
            try:
                result = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
                if result not in ([[APPLICATION, FORMAT], [BACKUP, FORMAT]] if self._readonly else [[APPLICATION, FORMAT]]):
                    raise _wrong_file(self.name, *result)
                self.backup = result[0] == BACKUP
                if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
                    raise LedgerError(
                        f"Another program switched {self.name} to a write-ahead log, which a ledger must not have.",
                        fix=f"run: sqlite3 {self.name} 'PRAGMA journal_mode = DELETE', and then `dither verify`.",
                    )
                _roll_back_only(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _after_fork(self) -> None:
        """Resets a child process: a thread that does not exist here may hold the lock, and the connection is the parent's."""
        self._lock = threading.RLock()
        if self._connection is None:
            return
        # Closing the parent's connection here could release its locks, so the object is never freed.
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
        result = self._run(SEVERAL.format(", ".join("?" * len(keys))), *keys)  # nobody else writes meanwhile
        self._put: dict[str, str] = {}
        self._known: dict[str, str | None] = dict.fromkeys(keys) | dict(result)

    def get(self, key: str) -> str | None:
        if key not in self._known:
            result = self._run(GET, key)
            self._known[key] = result[0][0] if result else None
        return self._known[key]

    def put(self, key: str, value: str) -> None:
        self._known[key] = self._put[key] = value

    def flush(self) -> None:
        """Writes all texts in one statement, before the commit: statements are slow, texts are not."""
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
        with translate_errors(self._name):
            return self._connection.execute(statement, values).fetchall()


def _file(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


@cache
def _objects() -> list[tuple[str, ...]]:
    """Returns the tables, triggers and indexes of a new ledger."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        connection.executescript(SCHEMA + "COMMIT;")
        return connection.execute(OBJECTS).fetchall()
    finally:
        connection.close()


def _wrong_file(name: str, application: int, version: int) -> LedgerError:
    if application == BACKUP:
        return LedgerError(
            f"{name} is a backup, and a backup cannot be spent from.", fix="dither restore makes a ledger of it."
        )
    if application == APPLICATION and version < FORMAT:
        what = "was written by an earlier version of dither, whose ledgers this version does not open"
    else:
        what = "is no ledger" if application != APPLICATION else "was written by a newer version of dither"
    return LedgerError(f"{name} {what}.", fix="name the ledger's file, or use the version of dither that it was made with.")


def _text(value: bytes) -> str:
    """Decodes a text. Bytes that are not UTF-8 are read too, so that verification can report them."""
    return value.decode("utf-8", "surrogateescape")


def _row(result: list[Any]) -> Row | None:
    return Row._make(result[0]) if result else None


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


def when_free(connection: sqlite3.Connection, wait: float, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
    """Runs a statement that begins to read or to write, as soon as no other process is in its way. Raises SQLite's error after
    `wait` seconds. What follows in the transaction waits as SQLite does: only who reads a moment longer can be in its way.

    SQLite by itself looks again after 1, 2, 5, 10 and at last 100 milliseconds. A transaction takes about two, so with several
    processes on one file every question would wait for nothing most of the time.
    """
    end = time.monotonic() + wait
    try:
        connection.execute("PRAGMA busy_timeout = 0")
        while True:
            try:
                return connection.execute(statement, values)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= end:  # the low byte is the kind
                    raise
            time.sleep(PAUSE)
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(1000 * wait)}")


def _roll_back_only(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = TRUNCATE").fetchone()


def _prepare(connection: sqlite3.Connection, first: Mapping[str, str], rows: Iterable[Row], application: int) -> None:
    _roll_back_only(connection)
    connection.execute(f"PRAGMA application_id = {application}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.executescript(SCHEMA)
    connection.executemany(PUT.format("(?, ?)"), first.items())
    connection.executemany(APPEND, rows)
    connection.execute("COMMIT")


def _check_no_log_beside(path: Path) -> None:
    """Refuses the log of a lost file: SQLite would apply it to the new one."""
    for ending in ("-journal", "-wal"):
        log = Path(f"{path}{ending}")
        if log.exists() and log.stat().st_size:
            raise LedgerError(
                f"{log.name} is the log of a ledger that is no longer there.",
                fix=f"put {path.name} back beside it; if it is lost, move the log away.",
            )


def _publish(draft: Path, path: Path) -> None:
    try:
        publish(draft, path)
    except FileExistsError:
        raise LedgerError(f"There is a ledger {path.name} already.", fix="open it, or name another file.") from None
    except OSError:
        raise LedgerError(
            f"{path.name} cannot be made in its folder.", fix="give this user write access to the folder, on a local disk."
        ) from None


def _after_fork() -> None:
    for store in list(_OPEN):
        store._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
