"""Waits for another process's transaction on a SQLite file, no longer than it takes.

SQLite by itself looks again after 1, 2, 5, 10 and at last 100 milliseconds. A transaction takes about two, so with several
processes on one file every question would wait for nothing most of the time.
"""

from __future__ import annotations

import sqlite3
import time
from typing import Any

PAUSE = 0.0005  # seconds between two looks


def when_free(connection: sqlite3.Connection, wait: float, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
    """Runs a statement that begins to read or to write, as soon as no other process is in its way. Raises SQLite's error after
    `wait` seconds. What follows in the transaction waits as SQLite does: only who reads a moment longer can be in its way."""
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
