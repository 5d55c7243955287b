"""SQLite's errors in our words: fixed texts, by the kind of error, so that nothing of a statement or a value is repeated."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from dither.errors import LedgerError

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
def told(name: str, charged: str = "nothing") -> Iterator[None]:
    """What fails inside fails as a LedgerError."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0)
        what, fix = HALF_WRITTEN if code in _HOT else TEXTS.get(code & 0xFF, OTHER)
        raise LedgerError(f"The ledger {name} {what}.", fix=fix, charged=charged) from None
