"""Waiting for another process's transaction on a SQLite file."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dither.ledger.stores import sqlite
from dither.ledger.stores.sqlite import when_free


def connect(path: Path, wait: float = 7.0) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=wait, isolation_level=None, check_same_thread=False)


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[sqlite3.Connection, sqlite3.Connection]]:
    with closing(connect(tmp_path / "file")) as one, closing(connect(tmp_path / "file")) as other:
        one.execute("CREATE TABLE t (x)")
        yield one, other


def patience(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA busy_timeout").fetchone()[0])


def test_it_begins_when_the_other_ends(two: tuple[sqlite3.Connection, sqlite3.Connection]) -> None:
    one, other = two
    one.execute("BEGIN IMMEDIATE")
    one.execute("INSERT INTO t VALUES (1)")
    ending = threading.Timer(0.1, lambda: one.execute("COMMIT"))
    ending.start()
    when_free(other, 7.0, "BEGIN IMMEDIATE")
    ending.join()
    assert other.execute("SELECT x FROM t").fetchall() == [(1,)]
    assert patience(other) == 7000  # the rest of the transaction waits as SQLite does


def test_it_gives_up_in_the_end(two: tuple[sqlite3.Connection, sqlite3.Connection]) -> None:
    one, other = two
    one.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        when_free(other, 0.01, "BEGIN IMMEDIATE")
    assert patience(other) == 10


def test_other_errors_are_raised_at_once(
    two: tuple[sqlite3.Connection, sqlite3.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "PAUSE", None)  # sleeping would fail
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        when_free(two[0], 7.0, "SELECT * FROM nowhere")
    assert when_free(two[0], 7.0, "SELECT ?", (5,)).fetchall() == [(5,)]
    assert patience(two[0]) == 7000


def test_an_interrupt_ends_the_waiting(
    two: tuple[sqlite3.Connection, sqlite3.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    one.execute("BEGIN IMMEDIATE")

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sqlite.time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        when_free(other, 7.0, "BEGIN IMMEDIATE")
    assert not other.in_transaction
    assert patience(other) == 7000
