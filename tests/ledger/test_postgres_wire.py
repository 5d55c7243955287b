"""Messages of several statements: whatever interrupts one leaves no lock behind, and no answer to another question."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from dither.errors import LedgerError
from dither.ledger.stores.base import Row
from dither.ledger.stores.postgres import Postgres
from ledger.postgres_server import Server


@pytest.fixture
def store(postgres_url: str) -> Iterator[Postgres]:
    store = Postgres.create(postgres_url, {"left": "1"})
    yield store
    store.close()


@pytest.fixture
def other(store: Postgres, postgres_url: str) -> Iterator[Postgres]:
    other = Postgres.open(postgres_url)
    yield other
    other.close()


def spend(store: Postgres, number: int) -> None:
    with store.transaction("left", question="q") as work:
        work.get("left")
        work.get("more")
        work.append(Row(number, "committed/1", "q", "{}", str(number), ""))
        work.put("left", str(number))


class Stop:
    """Ctrl-C at the n-th line that is executed in the store's own files."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if "/ledger/stores/postgres" not in frame.f_code.co_filename or "test" in frame.f_code.co_filename:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


def interrupted(store: Postgres, number: int, at: int) -> bool:
    before, stop = sys.gettrace(), Stop(at)
    sys.settrace(stop)
    try:
        spend(store, number)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_an_interruption_anywhere_leaves_no_lock_and_no_half(store: Postgres, other: Postgres) -> None:
    number, at = 1, 1
    spend(store, number)
    while interrupted(store, number + 1, at):
        with other.transaction("left") as work:  # at once: nobody holds the lock
            left = work.get("left")
        _, last = other.state()
        assert left == str(last)  # all of it or nothing
        assert last in (number, number + 1)
        spend(store, last + 1)  # and the store that was interrupted is of use
        number, at = last + 1, at + 1
    assert at > 60


def test_a_name_that_somebody_else_gave_is_not_taken_for_ours(store: Postgres) -> None:
    """As on a connection that a proxy shares."""
    spend(store, 1)
    store._drop()
    wire, _ = store._connected()
    lock = f"dither_{hashlib.sha256(store._sql.lock).hexdigest()[:32]}_0"
    wire.link.execute(f"PREPARE {lock} AS SELECT 'no lock at all'".encode())
    with pytest.raises(LedgerError, match="SQLSTATE 42P05"):
        spend(store, 2)
    spend(store, 2)
    assert store.state()[1] == 2


def test_without_the_row_that_is_locked_nothing_is_done(store: Postgres, postgres: Server) -> None:
    postgres.sql(f'DELETE FROM "{store._address.schema}".state WHERE key = %s', "")
    with pytest.raises(LedgerError, match="damaged"):
        spend(store, 1)
    with pytest.raises(LedgerError, match="damaged"):
        spend(store, 1)


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_what_is_no_text_is_refused_before_it_is_sent(store: Postgres, text: str) -> None:
    with pytest.raises(LedgerError):
        store.latest(text)
    with pytest.raises(LedgerError), store.transaction(question=text):
        pass
    spend(store, 1)
    assert store.get("left") == "1"


def test_arrays_hold_any_text(store: Postgres) -> None:
    texts = {
        f"k{i}": text for i, text in enumerate(['"', "\\", "{}", "a,b", "NULL", "", " ", "é€", "\\u0041", "'; --", "\t\n"])
    }
    with store.transaction() as work:
        for key, text in texts.items():
            work.put(key, text)
    assert {key: store.get(key) for key in texts} == texts
    with store.transaction(*texts) as work:
        assert {key: work.get(key) for key in texts} == texts
