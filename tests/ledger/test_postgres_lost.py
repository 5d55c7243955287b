"""A connection that dies at any moment: what was told is there, what failed is there in full or not at all, and the text
of the error says which of the two can be believed."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

from dither.errors import LedgerError
from dither.ledger.stores.base import Row
from dither.ledger.stores.postgres import Postgres
from dither.ledger.stores.postgres_wire import MAYBE
from ledger.cut_wire import Wire
from ledger.postgres_server import Server

SECRET = "open-sesame"


def row(number: int) -> Row:
    return Row(number, "committed/1", f"question {number}", "{}", f"hash {number}", "")


def ask(store: Postgres, number: int) -> None:
    """A transaction with every kind of statement: announced and other reads, a look-up, two writes."""
    with store.transaction("head") as work:
        work.get("head")
        work.get("total")
        work.latest(f"question {number}")
        work.append(row(number))
        work.put("head", str(number))
        work.put("total", str(number))


def holds(store: Postgres, number: int) -> bool:
    """Whether the transaction is in the ledger; fails if a part of it is."""
    entry, (state, last) = store.entry(number), store.state()
    there = {entry == row(number), state.get("head") == str(number), state.get("total") == str(number), last == number}
    assert len(there) == 1
    return there.pop()


def told(store: Postgres, number: int) -> str:
    """Returns what the analyst is told."""
    try:
        ask(store, number)
    except LedgerError as error:
        if SECRET in "".join(traceback.format_exception(error)):
            return "the password"
        return {("nothing", False): "nothing", (MAYBE, True): "perhaps"}[error.charged, "Nothing was released" in str(error)]
    return "told"


@pytest.fixture
def wire(postgres: Server) -> Iterator[Wire]:
    folder = parse_qs(urlsplit(postgres.uri).query)["host"][0]
    wire = Wire(folder)
    yield wire
    wire.close()


@pytest.fixture
def cuttable(postgres_url: str, wire: Wire) -> Iterator[Postgres]:
    """A store behind the wire."""
    Postgres.create(postgres_url).close()
    schema = postgres_url.partition("#")[2]
    options = "sslmode=disable&gssencmode=disable"
    store = Postgres.open(f"postgresql://postgres:{SECRET}@127.0.0.1:{wire.port}/postgres?{options}#{schema}")
    yield store
    store.close()


@pytest.mark.parametrize("way", ["asked", "told"])
def test_a_wire_cut_after_any_message(way: str, cuttable: Postgres, wire: Wire, postgres_url: str) -> None:
    direct = Postgres.open(postgres_url)
    ask(cuttable, 1)
    number, left, outcomes = 2, 0, set()
    while True:
        ask(cuttable, number)  # on a connection that is open, or is opened again: what is cut below is an ordinary one
        number += 1
        wire.cut(**{way: left})
        outcome = told(cuttable, number)
        if wire.whole():
            assert outcome == "told"
            break
        with direct.transaction():  # waits until the server has done with the session that was cut
            pass
        there = holds(direct, number)
        assert there or outcome != "told"
        assert not there or outcome != "nothing"
        outcomes.add((outcome, there))
        number += there
        left += 1
    # Every outcome was met, so the lines above could have failed. "told" after a cut: it came before the lock was had.
    # Cut on the way there, the word to commit had reached the server or not; cut on the way back it had.
    perhaps = {("perhaps", True), ("perhaps", False)} if way == "asked" else {("perhaps", True)}
    assert outcomes == {("told", True), ("nothing", False)} | perhaps
    assert left > 20
    direct.close()


def end(store: Postgres, postgres: Server) -> None:
    assert store._wire is not None
    postgres.sql("SELECT pg_terminate_backend(%s, 10000)", store._wire.link.info.backend_pid)


def ended_at(step: int, store: Postgres, postgres: Server) -> None:
    """A transaction whose session is ended by the server before its n-th step."""
    with store.transaction("head") as work:
        steps: list[Callable[[], object]] = [
            lambda: work.get("head"),  # came with the lock
            lambda: work.get("total"),
            lambda: work.append(row(2)),
            lambda: work.put("head", "2"),
            lambda: None,
        ]
        for number, act in enumerate(steps):
            if number == step:
                end(store, postgres)
            act()


@pytest.mark.parametrize("step", range(5))
def test_a_session_ended_by_the_server_at_every_step(step: int, postgres: Server, postgres_url: str) -> None:
    store = Postgres.create(postgres_url)
    ask(store, 1)
    with pytest.raises(LedgerError) as caught:
        ended_at(step, store, postgres)
    assert caught.value.charged == ("nothing" if step < 2 else MAYBE)
    assert holds(store, 1)
    ask(store, 2)
    store.close()


def test_a_session_ended_between_transactions_is_opened_again(postgres: Server, postgres_url: str) -> None:
    store = Postgres.create(postgres_url)
    ask(store, 1)
    for number in (2, 3):
        end(store, postgres)
        ask(store, number)
    end(store, postgres)
    assert holds(store, 3)
    store.close()


def stopped(store: Postgres, postgres: Server) -> None:
    with store.transaction("head") as work:
        work.put("head", "2")
        postgres.stop()


def test_a_server_that_is_stopped(postgres: Server, postgres_url: str) -> None:
    store = Postgres.create(postgres_url)
    ask(store, 1)
    try:
        with pytest.raises(LedgerError, match="may have been written"):
            stopped(store, postgres)
        with pytest.raises(LedgerError, match=r"cannot be reached(?s:.)*Charged: nothing"):
            ask(store, 2)
        with pytest.raises(LedgerError, match="cannot be reached"):
            store.get("head")
    finally:
        postgres.start()
    assert holds(store, 1)
    ask(store, 2)
    assert holds(store, 2)
    store.close()
