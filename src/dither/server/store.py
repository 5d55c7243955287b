"""The service's own tables: one SQLite file beside the ledger's key, readable by its owner only.

They hold accounts and what requests need: hashes of tokens and passwords, sessions, idempotency keys, answers as sent. If the
file is lost, logins are lost; the budget is not, because it is in the ledger alone. Worker processes share the file.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dither.errors import DitherError
from dither.ledger.stores.sqlite import when_free

_SCHEMA = """
CREATE TABLE IF NOT EXISTS people (
    name TEXT PRIMARY KEY, role TEXT NOT NULL, password TEXT, active INTEGER NOT NULL, created REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS tokens (
    id TEXT PRIMARY KEY, hash BLOB NOT NULL UNIQUE, person TEXT NOT NULL REFERENCES people, scopes TEXT NOT NULL,
    project TEXT, label TEXT NOT NULL, created REAL NOT NULL, expires REAL, revoked REAL) STRICT;
CREATE TABLE IF NOT EXISTS sessions (
    hash BLOB PRIMARY KEY, person TEXT NOT NULL REFERENCES people, created REAL NOT NULL, expires REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS codes (
    hash BLOB PRIMARY KEY, person TEXT NOT NULL REFERENCES people, expires REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS oidc (
    hash BLOB PRIMARY KEY, nonce TEXT NOT NULL, verifier TEXT NOT NULL, expires REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS failures (bucket BLOB NOT NULL, minute INTEGER NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (bucket, minute)) STRICT;
CREATE TABLE IF NOT EXISTS projects (name TEXT PRIMARY KEY, quota TEXT) STRICT;
CREATE TABLE IF NOT EXISTS members (
    project TEXT NOT NULL REFERENCES projects, person TEXT NOT NULL REFERENCES people, PRIMARY KEY (project, person)) STRICT;
CREATE TABLE IF NOT EXISTS spent (
    id INTEGER PRIMARY KEY, project TEXT NOT NULL, person TEXT NOT NULL, epsilon TEXT NOT NULL, entry INTEGER) STRICT;
CREATE INDEX IF NOT EXISTS spent_project ON spent (project);
CREATE TABLE IF NOT EXISTS jobs (
    id TEXT PRIMARY KEY, person TEXT NOT NULL, worker TEXT NOT NULL, state TEXT NOT NULL, entry INTEGER, problem TEXT,
    created REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS keys (
    person TEXT NOT NULL, key TEXT NOT NULL, request BLOB NOT NULL, job TEXT NOT NULL, created REAL NOT NULL,
    PRIMARY KEY (person, key)) STRICT;
CREATE TABLE IF NOT EXISTS answers (
    job TEXT PRIMARY KEY, entry INTEGER, person TEXT NOT NULL, body BLOB NOT NULL, created REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS clock (id INTEGER PRIMARY KEY, epsilon TEXT NOT NULL, delta TEXT NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS answers_entry ON answers (entry, person);
CREATE TABLE IF NOT EXISTS verifiers (
    token TEXT PRIMARY KEY REFERENCES tokens, stored BLOB NOT NULL, server BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
"""
_VERSION = 1
_WAIT = 30.0  # seconds to wait for another worker's transaction


class ServiceStore:
    """Two connections to the file, each used by one thread at a time. Who reads never waits for who writes to the disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._connection, self._reader = _connect(path), _connect(path)
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if version > _VERSION:
                raise _unusable(path)
            self._connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {_VERSION}; COMMIT;")
        except (OSError, sqlite3.Error):
            raise _unusable(path) from None

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """Opens a transaction with the file's write lock. `durable`: it is on the disk when the block ends, even if the machine
        loses power; otherwise it survives the end of the process."""
        with self._lock:
            connection = self._connection
            try:
                connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                when_free(connection, _WAIT, "BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except sqlite3.IntegrityError:
                raise
            except sqlite3.Error:
                raise _unusable(self.path) from None
            finally:
                with suppress(sqlite3.Error):
                    if connection.in_transaction:
                        connection.rollback()

    def read(self, statement: str, *values: Any) -> list[Any]:
        with self._reading:
            try:
                return self._reader.execute(statement, values).fetchall()
            except sqlite3.Error:
                raise _unusable(self.path) from None

    def write(self, statement: str, *values: Any, durable: bool = False) -> int:
        """Runs one statement in a transaction of its own. Returns how many rows it changed."""
        with self.transaction(durable=durable) as inside:
            return inside.execute(statement, values).rowcount

    def close(self) -> None:
        with self._lock, self._reading:
            self._reader.close()
            self._connection.close()


def _connect(path: Path) -> sqlite3.Connection:
    made = sqlite3.connect(path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
    for pragma in ("journal_mode = WAL", "foreign_keys = ON", "trusted_schema = OFF", "synchronous = NORMAL"):
        made.execute(f"PRAGMA {pragma}").fetchone()
    return made


def _unusable(path: Path) -> DitherError:
    return DitherError(
        f"The file of accounts {path.name} cannot be used.",
        fix="see that it is on a local disk with space left, belongs to this user, and was not written by a newer dither.",
    )
