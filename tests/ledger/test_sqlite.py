"""The SQLite file: created once and atomically, never by asking, with clear errors when it cannot be used."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from dither.errors import LedgerError
from dither.ledger import opening
from dither.ledger.ledger import Ledger
from dither.ledger.records import hash_of
from dither.ledger.reservations import Reservation
from dither.ledger.rules import StoredAnswer
from dither.ledger.stores import sqlite
from dither.ledger.stores.sqlite import SQLite
from dither.ledger.verify.report import verify
from dither.privacy.filters import GRID
from ledger.asking import asked, declaration, request, reserved


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "survey.ledger"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    made = opening.create(path)
    made.register(declaration())
    yield made
    made.close()


def in_child(work: Callable[[], None]) -> int:
    """The exit code of a forked child: 0 if the work raised nothing."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# --- making and opening -------------------------------------------------------------------------------------------


def test_a_ledger_is_made_once(path: Path) -> None:
    opening.create(path).close()
    before = path.read_bytes()
    for attempt in (lambda: opening.create(path), lambda: SQLite.create(path)):
        with pytest.raises(LedgerError, match="already"):
            attempt()
    assert path.read_bytes() == before
    assert sorted(each.name for each in path.parent.iterdir()) == ["survey.ledger", "survey.ledger.key"]


def test_opening_never_makes_one(path: Path) -> None:
    with pytest.raises(LedgerError, match=r"no ledger survey.ledger"):
        opening.open(path)
    assert list(path.parent.iterdir()) == []


def test_a_ledger_that_could_not_be_finished_is_not_there(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError

    monkeypatch.setattr("dither.ledger.stores.sqlite.os.link", fails)
    with pytest.raises(LedgerError, match="cannot be made"):
        SQLite.create(path)
    assert list(path.parent.iterdir()) == []


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be"):
        opening.create(tmp_path / "nowhere" / "survey.ledger")
    with pytest.raises(LedgerError, match="cannot be opened"):
        SQLite.create(tmp_path / "nowhere" / "survey.ledger")


@pytest.mark.parametrize("content", [b"", b"name,age\nada,36\n" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_another_file_is_no_ledger(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=r"is no ledger|is damaged"):
        SQLite.open(path)
    assert path.read_bytes() == content


def test_another_database_is_no_ledger(path: Path) -> None:
    raw = sqlite3.connect(path)
    raw.execute("CREATE TABLE entries (number)")
    raw.close()
    with pytest.raises(LedgerError, match="is no ledger"):
        SQLite.open(path)


def test_a_newer_format_is_told(path: Path) -> None:
    SQLite.create(path, {"ledger": '{"format":3}'}).close()
    with pytest.raises(LedgerError, match=r"update dither|this version"):
        opening.view(path)
    for version, told in ((3, "newer version"), (1, "earlier version of dither")):
        raw = sqlite3.connect(path)
        raw.execute(f"PRAGMA user_version = {version}")
        raw.close()
        with pytest.raises(LedgerError, match=told):
            SQLite.open(path)


def test_what_was_spent_is_there_after_reopening(path: Path, ledger: Ledger) -> None:
    asked(ledger, 1, "0.4")
    ledger.close()
    again = opening.open(path)
    assert again.balance().sums.epsilon == GRID * 2 // 5
    assert verify(again.store).ok
    again.close()


def test_it_is_durable_as_promised(ledger: Ledger) -> None:
    store = ledger.store
    assert isinstance(store, SQLite)
    raw = store._connected()
    assert raw.execute("PRAGMA journal_mode").fetchone() == ("truncate",)
    assert raw.execute("PRAGMA synchronous").fetchone() == (2,)


# --- what goes wrong ----------------------------------------------------------------------------------------------


def test_a_locked_file_is_told(path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "WAIT", 0.05)
    impatient = opening.open(path)
    with ledger.store.transaction(), pytest.raises(LedgerError, match="locked by another process"):
        impatient.reserve(request(1))
    assert isinstance(impatient.reserve(request(1)), Reservation)
    impatient.close()


def test_a_read_does_not_wait_for_a_writer(path: Path, ledger: Ledger) -> None:
    other = opening.view(path)
    with ledger.store.transaction() as inside:
        inside.put("total", "{}")
        assert other.balance().entries == 2
    other.close()


def test_a_file_that_was_replaced_while_open_is_told(path: Path, ledger: Ledger) -> None:
    path.rename(path.with_suffix(".old"))
    with pytest.raises(LedgerError, match="moved or replaced"):
        ledger.reserve(request(1))
    opening.create(path, key=f"{path}.key").close()
    with pytest.raises(LedgerError, match="moved or replaced"):
        ledger.reserve(request(1))


def test_a_full_disk_gives_no_answer_and_keeps_the_price(ledger: Ledger) -> None:
    held = reserved(ledger, 1)
    store = ledger.store
    assert isinstance(store, SQLite)
    pages = store._connected().execute("PRAGMA page_count").fetchone()[0]
    store._connected().execute(f"PRAGMA max_page_count = {pages}").fetchone()
    with pytest.raises(LedgerError, match="disk is full") as caught:
        ledger.commit(held, "x" * 100_000)
    assert caught.value.charged == "the price of the question"
    assert Fraction(ledger.balance().sums.epsilon, GRID) == Fraction(1, 10)
    store._connected().execute("PRAGMA max_page_count = 100000").fetchone()
    asked(ledger, 2)
    assert verify(store).ok


def test_a_file_that_cannot_grow_is_told(path: Path, ledger: Ledger) -> None:
    """A real limit of the operating system, in a child: writing beyond it fails as on a full disk."""
    ledger.close()

    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limited = opening.open(path)
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
        held = []
        for number in range(100):
            try:
                held.append(limited.reserve(request(number, "0.001")))
            except LedgerError as error:
                os._exit(0 if "disk" in str(error) else 2)
        os._exit(3)

    assert in_child(work) == 0
    again = opening.open(path)
    assert verify(again.store).ok
    time.sleep(1.1)  # after which it is looked at whether a process is still there
    assert again.reopen().closed  # the child died with many questions charged
    asked(again, "more", "0.001")
    again.close()


def test_a_file_that_may_not_be_written_is_told(path: Path, ledger: Ledger) -> None:
    store = ledger.store
    assert isinstance(store, SQLite)
    store._connected().execute("PRAGMA query_only = ON")
    with pytest.raises(LedgerError, match="cannot be written"):
        ledger.reserve(request(1))
    assert ledger.balance().entries == 2


def test_an_edited_answer_is_never_shown(path: Path, ledger: Ledger) -> None:
    asked(ledger, 1, payload="[41]")
    row = ledger.store.entry(4)
    assert row is not None
    body = row.body.replace("[41]", "[14]")
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("DROP TRIGGER entries_stay")
    for edited, hash in ((body, row.hash), (body, hash_of(body))):
        raw.execute("UPDATE entries SET body = ?, hash = ? WHERE number = 4", (edited, hash))
        with pytest.raises(LedgerError, match="changed after it was written"):
            ledger.reserve(request(1))
    raw.execute("UPDATE entries SET body = ?, hash = ? WHERE number = 4", (row.body, row.hash))
    raw.close()
    assert isinstance(ledger.reserve(request(1)), StoredAnswer)  # the twin: as it was, it is


# --- processes and threads ----------------------------------------------------------------------------------------


def test_a_child_writes_to_the_same_file(ledger: Ledger) -> None:
    asked(ledger, 0)
    assert in_child(lambda: [asked(ledger, number) for number in (1, 2, 3)] and None) == 0
    asked(ledger, 4)
    assert Fraction(ledger.balance().sums.epsilon, GRID) == Fraction(1, 2)
    assert verify(ledger.store).ok


def test_a_child_that_is_forked_while_a_thread_writes_is_not_stuck(ledger: Ledger) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with ledger.store.transaction():
            inside.set()
            go_on.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(60)
    code = in_child(lambda: ledger.balance() and None)
    go_on.set()
    thread.join()
    assert code == 0
    asked(ledger, 1)


def test_a_child_cannot_settle_its_parents_reservation(ledger: Ledger) -> None:
    held = reserved(ledger, 1)
    assert in_child(lambda: ledger.commit(held, "42") and None) == 1
    ledger.commit(held, "42")


def test_a_ledger_in_memory_is_not_forked() -> None:
    ledger = opening.memory()
    ledger.register(declaration())
    assert in_child(lambda: reserved(ledger, 1) and None) == 1
    asked(ledger, 1)
    ledger.close()


def test_an_ended_process_leaves_its_charge(path: Path, ledger: Ledger) -> None:
    def work() -> None:
        reserved(ledger, 1)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(work) == -signal.SIGKILL
    assert Fraction(ledger.balance().sums.epsilon, GRID) == Fraction(1, 10)
    assert verify(ledger.store).open == 1
