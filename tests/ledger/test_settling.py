"""Commit, cancel and replay; keys, clocks and copies: on every store."""

from __future__ import annotations

import copy
import json
import pickle
from fractions import Fraction

import pytest

from dither.errors import ArgumentError, BudgetError, DitherWarning, LedgerError
from dither.ledger.ledger import Ledger
from dither.ledger.receipts import Key
from dither.ledger.reservations import Reservation
from dither.ledger.rules import StoredAnswer
from dither.ledger.stores.base import Store
from dither.ledger.verify.report import verify
from dither.privacy.filters import GRID, Sums
from ledger.asking import IDENTITY, KEY, Clock, abandoned, asked, declaration, pure, request, reserved

IDENTITY_OF = json.loads(IDENTITY["ledger"])["ledger"]


def spent(ledger: Ledger) -> Fraction:
    return Fraction(ledger.balance().sums.epsilon, GRID)


def kinds(ledger: Ledger) -> list[str]:
    return [entry.kind.partition("/")[0] for entry in ledger.history()]


# --- settling -----------------------------------------------------------------------------------------------------


def test_a_receipt_says_what_was_asked_and_is_signed(ledger: Ledger) -> None:
    receipt = asked(ledger, 1)
    assert receipt.verify(KEY.public)
    assert not receipt.verify(Key.new().public)
    entries = list(ledger.history())
    assert receipt.body["reserved"] == {"number": 3, "hash": entries[2].hash}
    assert receipt.body["entry"] == {"number": 4, "hash": entries[3].hash}
    assert receipt.body["rule"] == "sum"
    assert receipt.body["time"] == entries[2].time
    assert receipt.body["loss"] == {"epsilon": "1/10", "delta": "0", "rho": "1/200", "slack": "0"}


def test_a_reservation_is_settled_once(ledger: Ledger) -> None:
    held = reserved(ledger, 1)
    ledger.commit(held, "42")
    for attempt in (lambda: ledger.commit(held, "43"), lambda: ledger.cancel(held), held.touch):
        with pytest.raises(LedgerError, match="already"):
            attempt()
    assert kinds(ledger) == ["opened", "catalog", "reserved", "committed"]


def test_an_answer_is_a_text(ledger: Ledger) -> None:
    held = reserved(ledger, 1)
    with pytest.raises(ArgumentError, match="payload"):
        ledger.commit(held, b"42")  # type: ignore[arg-type]
    ledger.commit(held, "\ud800\0ε")
    kept = ledger.reserve(request(1))
    assert isinstance(kept, StoredAnswer)
    assert kept.payload == "\ud800\0ε"


def test_a_cancelled_question_costs_nothing(ledger: Ledger) -> None:
    ledger.cancel(reserved(ledger, 1))
    assert spent(ledger) == 0
    assert ledger.quota("ada") == Sums()
    assert kinds(ledger)[-1] == "cancelled"
    asked(ledger, 1, "1")
    assert verify(ledger.store).ok


def test_a_question_that_reached_the_engine_is_not_cancelled(ledger: Ledger) -> None:
    held = reserved(ledger, 1)
    held.touch()
    with pytest.raises(LedgerError, match="its price is spent"):
        ledger.cancel(held)
    assert spent(ledger) == Fraction(1, 10)
    ledger.commit(held, "42")


def test_a_reservation_is_not_copied(ledger: Ledger) -> None:
    held = reserved(ledger, 1)
    for thing in (held, ledger):
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(LedgerError, match="copied"):
                attempt(thing)


def test_a_reservation_is_settled_in_its_ledger_and_its_process(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    held = reserved(ledger, 1)
    other = Reservation("another", held.request)
    other.place(held.entry, held.hash)
    with pytest.raises(LedgerError, match="another ledger"):
        ledger.commit(other, "42")
    monkeypatch.setattr("dither.process.os.getpid", lambda: -1)
    with pytest.raises(LedgerError, match="another process"):
        ledger.commit(held, "42")


def test_a_reservation_that_was_made_up_settles_nothing(ledger: Ledger) -> None:
    held = reserved(ledger, 1, "0.3")
    forged = Reservation(IDENTITY_OF, held.request)
    forged.place(held.entry, held.hash)
    for attempt in (lambda: ledger.cancel(forged), lambda: ledger.commit(forged, "42")):
        with pytest.raises(LedgerError, match="made up"):
            attempt()
    assert spent(ledger) == Fraction(3, 10)
    ledger.commit(held, "42")


def test_a_reserved_question_is_not_run_under_its_old_charge(ledger: Ledger) -> None:
    abandoned(ledger, 1)
    assert isinstance(ledger.reserve(request(1)), Reservation)
    assert spent(ledger) == Fraction(2, 10)


# --- replays ------------------------------------------------------------------------------------------------------


def test_the_same_question_is_answered_from_the_ledger(ledger: Ledger) -> None:
    receipt = asked(ledger, 1, payload="[41]")
    kept = ledger.reserve(request(1))
    assert isinstance(kept, StoredAnswer)
    assert (kept.payload, kept.receipt, kept.analyst, kept.charged) == ("[41]", receipt, "ada", False)
    assert spent(ledger) == Fraction(1, 10)
    assert verify(ledger.store).ok


@pytest.mark.parametrize("change", [{"snapshot": "2026-12"}, {"catalog_hash": "c2"}, {"plan": "1 at another price"}])
def test_another_question_is_not(empty: Ledger, change: dict[str, str]) -> None:
    empty.register(declaration())
    asked(empty, 1)
    rest = {name: text for name, text in change.items() if name != "plan"}
    empty.register(declaration(**rest))
    assert isinstance(empty.reserve(request(change.get("plan", 1), **rest)), Reservation)


def test_a_fresh_answer_is_paid_for(ledger: Ledger) -> None:
    asked(ledger, 1, payload="first")
    asked(ledger, 1, payload="second", fresh=True)
    assert spent(ledger) == Fraction(2, 10)
    kept = ledger.reserve(request(1))
    assert isinstance(kept, StoredAnswer)
    assert kept.payload == "second"


def test_a_replay_counts_once_for_each_new_analyst(empty: Ledger) -> None:
    empty.register(declaration(per_analyst=Fraction(1, 4)))
    asked(empty, 1, "0.2")
    shown = [empty.reserve(request(1, "0.2", analyst=name)) for name in ("bob", "bob", "ada", "bob")]
    assert [kept.charged for kept in shown if isinstance(kept, StoredAnswer)] == [True, False, False, False]
    assert empty.quota("bob") == empty.quota("ada") == Sums().plus(pure("0.2"))
    assert spent(empty) == Fraction(2, 10)
    with pytest.raises(BudgetError, match="quota of bob"):
        empty.reserve(request(2, "0.1", analyst="bob"))
    asked(empty, 2, "0.05")
    asked(empty, 3, "0.1", analyst="cleo")
    with pytest.raises(BudgetError, match="quota of cleo"):
        empty.reserve(request(1, "0.2", analyst="cleo"))
    assert verify(empty.store).ok


def test_an_exhausted_budget_still_replays(ledger: Ledger) -> None:
    asked(ledger, 1, "1")
    assert isinstance(ledger.reserve(request(1, "1")), StoredAnswer)


# --- keys, clocks, copies -----------------------------------------------------------------------------------------


def test_another_key_does_not_open_it(store: Store) -> None:
    with pytest.raises(LedgerError, match="This key is not the one"):
        Ledger(store, Key.new())


def test_without_a_key_it_can_be_read(ledger: Ledger, clock: Clock) -> None:
    asked(ledger, 1)
    reader = Ledger(ledger.store, None, clock)
    assert spent(reader) == Fraction(1, 10)
    with pytest.raises(LedgerError, match="opened to be read only"):
        reader.reserve(request(2))
    assert reader.balance() == ledger.balance()


def test_a_clock_that_goes_back_a_little_stands_still(ledger: Ledger, clock: Clock) -> None:
    clock.move(minutes=-4)
    asked(ledger, 1)
    assert len({entry.time for entry in ledger.history()}) == 1


def test_an_entry_from_a_clock_that_ran_ahead_stops_nobody(ledger: Ledger, clock: Clock) -> None:
    """Order comes from numbers. The curator is warned, once."""
    clock.move(days=365)
    asked(ledger, 1)
    ahead = ledger.head().time
    clock.move(days=-365)
    with pytest.warns(DitherWarning, match="ahead of this machine's clock"):
        asked(ledger, 2)
    asked(ledger, 3)
    assert ledger.head().time == ahead
    assert verify(ledger.store).ok


def test_what_was_paid_for_is_not_lost_to_a_clock(ledger: Ledger, clock: Clock) -> None:
    held = reserved(ledger, 1)
    clock.move(minutes=-6)
    ledger.commit(held, "42")
    assert verify(ledger.store).ok


@pytest.mark.parametrize("settle", ["commit", "cancel"])
def test_the_ledger_does_not_tell_how_long_the_engine_ran(ledger: Ledger, clock: Clock, settle: str) -> None:
    """The engine's running time depends on rows, so the entry has the time of an earlier one."""
    times = []
    for seconds in (0.001, 3600):
        clock.move(seconds=1)
        held = reserved(ledger, seconds)
        clock.move(seconds=seconds)
        ledger.commit(held, "42") if settle == "commit" else ledger.cancel(held)
        entries = list(ledger.history())[-2:]
        times.append(entries[1].time == entries[0].time == held.entry.time)
    assert times == [True, True]
    held = reserved(ledger, "first")
    clock.move(seconds=5)
    second = reserved(ledger, "second")
    ledger.commit(held, "42")
    assert list(ledger.history())[-1].time == second.entry.time > held.entry.time
    assert verify(ledger.store).ok


def test_an_older_copy_under_an_open_session_is_noticed(ledger: Ledger) -> None:
    old = ledger.store.state()[0]["head"]
    asked(ledger, 1)
    with ledger.store.transaction() as inside:
        inside.put("head", old)
    with pytest.raises(LedgerError, match="replaced by an older copy"):
        ledger.reserve(request(2))


def test_entries_say_nothing_of_the_answer_but_the_answer(store: Store, clock: Clock) -> None:
    """The same questions with other answers leave the same entries, except the answer and random values."""
    ledger = Ledger(store, KEY, clock)
    ledger.register(declaration())
    for payload in ("0", "1" * 5000):
        asked(ledger, 1, "0.1", payload=payload, fresh=True)
    random = {"nonce", "previous", "token", "number", "reserved", "reserved_hash", "payload"}
    rows = [json.loads(row.body) for row in store.rows()][2:]
    plain = [{name: value for name, value in row.items() if name not in random} for row in rows]
    assert plain[:2] == plain[2:]
