"""The same question asked at once is charged once and has one answer: by threads, processes and sessions, on every store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dither.errors import BudgetError, ClosedError, DitherError, LedgerError
from dither.ledger import opening, reservations
from dither.ledger.ledger import Ledger
from dither.ledger.records import ENGINE, INTERRUPT
from dither.ledger.reservations import Reservation, find_reservation
from dither.ledger.rules import StoredAnswer
from dither.ledger.stores.base import Store
from dither.ledger.stores.postgres import Postgres
from dither.ledger.stores.sqlite import SQLite
from dither.ledger.verify.report import verify
from dither.privacy.filters import GRID
from ledger.asking import IDENTITY, KEY, abandoned, asked, declaration, request, reserved

EIGHT = 8
BRIEFLY = partial(time.sleep, 0.1)


def spent(ledger: Ledger) -> Fraction:
    return Fraction(ledger.balance().sums.epsilon, GRID)


def again(store: Store) -> Store:
    """Another connection to the same ledger; one in memory has only one."""
    if isinstance(store, Postgres):
        return Postgres(store._address)
    return SQLite.open(store._path) if isinstance(store, SQLite) and store._path else store


@pytest.fixture
def sessions(store: Store) -> Iterator[Callable[..., Ledger]]:
    """Sessions of their own on one ledger."""
    Ledger(store, KEY).register(declaration())
    made: list[Store] = []

    def session(**options: object) -> Ledger:
        made.append(again(store))
        return Ledger(made[-1], KEY, **options)  # type: ignore[arg-type]

    yield session
    for each in made:
        each.close()


def answered(
    ledger: Ledger, wait: Callable[[], object] = lambda: None, question: int = 1, **changes: object
) -> tuple[bool, str]:
    """Whether the answer was given again, and the answer, which is another one each time it is computed, after `wait`."""
    found = ledger.reserve(request(question, **changes))
    if isinstance(found, StoredAnswer):
        return True, found.payload
    found.touch()
    wait()
    payload = os.urandom(8).hex()
    ledger.commit(found, payload)
    return False, payload


def at_once(work: Callable[[int], object], count: int = EIGHT) -> list[Any]:
    """All of them begin together."""
    start = threading.Barrier(count)

    def begun(number: int) -> object:
        start.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begun, range(count)))


def test_eight_at_once_pay_once_and_see_one_answer(sessions: Callable[..., Ledger]) -> None:
    shared = sessions()
    for ledgers in ([shared] * EIGHT, [sessions() for _ in range(EIGHT)]):
        before = spent(shared)
        question = len(ledgers) + (ledgers[0] is shared)
        found = at_once(lambda number, ledgers=ledgers, question=question: answered(ledgers[number], BRIEFLY, question))
        assert sorted(kept for kept, _ in found) == [False] + [True] * (EIGHT - 1)
        assert len({payload for _, payload in found}) == 1
        assert spent(shared) - before == Fraction(1, 10)
    assert verify(shared.store).ok


def test_that_check_can_fail(sessions: Callable[..., Ledger], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without leases each of them pays, as it was before."""
    monkeypatch.setattr(Ledger, "_in_flight", lambda *_: 0)
    ledgers, charged = [sessions() for _ in range(EIGHT)], threading.Barrier(EIGHT)
    found = at_once(lambda number: answered(ledgers[number], charged.wait))
    assert len({payload for _, payload in found}) == EIGHT
    assert spent(ledgers[0]) == Fraction(EIGHT, 10)


def test_what_a_waiter_sees_counts_in_its_quota(store: Store) -> None:
    ledger = Ledger(store, KEY)
    ledger.register(declaration(per_analyst=Fraction(3, 20)))
    asked(ledger, 2, "0.1", analyst="cleo")
    others = [Ledger(again(store), KEY) for _ in range(3)]
    names, charged = ("ada", "bob", "cleo"), threading.Event()

    def compute() -> None:
        charged.set()
        BRIEFLY()  # while the others wait for the answer

    def ask(number: int) -> object:
        if number:
            charged.wait()
        try:
            return answered(others[number], compute, analyst=names[number])[0]
        except BudgetError:
            return "refused"

    assert at_once(ask, 3) == [False, True, "refused"]
    assert ledger.quota("ada") == ledger.quota("bob") == ledger.quota("cleo")
    assert spent(ledger) == Fraction(2, 10)
    for other in others:
        other.close()


def test_fresh_questions_join_no_flight(sessions: Callable[..., Ledger]) -> None:
    ledgers = [sessions() for _ in range(3)]
    found = at_once(lambda number: answered(ledgers[number], BRIEFLY, fresh=True), 3)
    assert [kept for kept, _ in found] == [False] * 3
    assert len({payload for _, payload in found}) == 3
    assert spent(ledgers[0]) == Fraction(3, 10)


def waiting(ledger: Ledger, count: int = 3) -> tuple[ThreadPoolExecutor, list[Future[Any]]]:
    """Threads that wait for the answer to the first question, and have looked at the lease at least once."""
    pool = ThreadPoolExecutor(count)

    def ask() -> object:
        try:
            return answered(ledger, BRIEFLY)
        except DitherError as error:
            return error

    found = [pool.submit(ask) for _ in range(count)]
    time.sleep(0.3)
    assert not any(each.done() for each in found)
    return pool, found


@pytest.mark.parametrize("way", ["cancel", "interrupt"])
def test_if_the_first_gives_up_exactly_one_waiter_pays(sessions: Callable[..., Ledger], way: str) -> None:
    ledger, other = sessions(), sessions()
    held = reserved(ledger, 1)
    pool, found = waiting(other)
    if way == "cancel":
        ledger.cancel(held)
    else:
        held.touch()
        ledger.give_up(held, INTERRUPT)
    results = [each.result(timeout=60) for each in found]
    pool.shutdown()
    assert sorted(kept for kept, _ in results) == [False, True, True]
    assert spent(ledger) == Fraction(1 if way == "cancel" else 2, 10)
    assert verify(ledger.store).ok


def test_if_the_engine_failed_waiters_are_refused_and_pay_nothing(sessions: Callable[..., Ledger]) -> None:
    ledger, other = sessions(), sessions()
    held = reserved(ledger, 1)
    held.touch()
    pool, found = waiting(other)
    ledger.give_up(held, ENGINE)
    assert [type(each.result(timeout=60)) for each in found] == [ClosedError] * 3
    pool.shutdown()
    assert spent(ledger) == Fraction(1, 10)


def test_a_waiter_may_leave_and_has_paid_nothing(sessions: Callable[..., Ledger], monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, other = sessions(), sessions()
    held = reserved(ledger, 1)

    def leave(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dither.ledger.ledger.time.sleep", leave)
    left: list[object] = []

    def ask() -> None:
        try:
            other.reserve(request(1))
        except KeyboardInterrupt as stopped:
            left.append(stopped)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert len(left) == 1
    assert spent(ledger) == Fraction(1, 10)
    ledger.commit(held, "42")


def test_a_thread_does_not_wait_for_itself(ledger: Ledger) -> None:
    reserved(ledger, 1)
    with pytest.raises(LedgerError, match="answering the same question already"):
        ledger.reserve(request(1))


def test_a_reservation_that_was_let_go_is_not_waited_for(ledger: Ledger) -> None:
    """A reservation of this process whose object is gone is dead, long before its lease ends."""
    held = ledger.reserve(request(1))
    token = held.record.token[: reservations.MARK] if isinstance(held, Reservation) else ""
    found = [find_reservation(token) is held]
    del held
    assert found == [True]
    assert find_reservation(token) is None
    begin = time.monotonic()
    again = ledger.reserve(request(1))
    assert isinstance(again, Reservation)
    assert time.monotonic() - begin < reservations.SECONDS / 2
    assert spent(ledger) == Fraction(2, 10)


# --- leases -------------------------------------------------------------------------------------------------------


class Clock:
    """A clock that goes on when it is told to. Leases run out by it, and not by how long a busy machine takes."""

    def __init__(self) -> None:
        self._start, self.seconds = datetime.now(UTC), 0.0

    def __call__(self) -> datetime:
        return self._start + timedelta(seconds=self.seconds)


def ends(ledger: Ledger) -> list[int]:
    return [lease.until for lease in reservations.decode_leases(ledger.store.get("leases")).values()]


def test_a_long_question_keeps_its_lease(sessions: Callable[..., Ledger]) -> None:
    """Three times as long as a lease lasts, of which three quarters pass before each renewal."""
    clock = Clock()
    ledger, other = (sessions(lease=2.0, clock=clock) for _ in range(2))
    assert ledger._renewal._pause <= 2.0 / 4
    held = reserved(ledger, 1)
    held.touch()
    pool, found = waiting(other, 1)
    for _ in range(4):
        clock.seconds += 1.5
        until = reservations.milliseconds(clock()) + 2000
        wait_for(lambda until=until: ends(ledger) == [until])
    ledger.commit(held, "42")
    assert found[0].result(timeout=60) == (True, "42")
    pool.shutdown()
    assert spent(ledger) == Fraction(1, 10)


def wait_for(holds: Callable[[], bool]) -> None:
    for _ in range(6000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("a minute was not enough")


def test_a_lease_that_runs_out_is_taken_over_and_the_old_holder_cannot_commit(store: Store) -> None:
    """As when a machine stood still: its charge stays, exactly one waiter pays anew, and the old answer is never shown."""
    Ledger(store, KEY).register(declaration())
    clock = Clock()
    ledger, other = Ledger(store, KEY, clock=clock), Ledger(again(store), KEY, clock=clock)
    ledger._renew = lambda: None  # type: ignore[method-assign]
    ledger._renewal._renew = lambda: None
    held = reserved(ledger, 1)
    held.touch()
    pool, found = waiting(other)
    clock.seconds += 61
    results = [each.result(timeout=60) for each in found]
    pool.shutdown()
    assert sorted(kept for kept, _ in results) == [False, True, True]
    with pytest.raises(LedgerError, match="without a sign of life"):
        ledger.commit(held, "too late")
    assert spent(ledger) == Fraction(2, 10)
    kept = ledger.reserve(request(1))
    assert isinstance(kept, StoredAnswer)
    assert kept.payload == results[0][1]
    assert verify(ledger.store).ok
    assert ledger.fuse().dead == 1
    if other.store is not store:
        other.close()


def test_a_clock_that_was_set_back_does_not_keep_a_lease_alive_for_ever() -> None:
    now = datetime.now(UTC)
    lease = reservations.Lease.new("a" * 64, "b" * 64, now, 60)
    at = reservations.milliseconds(now)
    assert lease.alive(at, 60)
    for seconds in (-3600, -121, 61, 3600):
        assert not lease.alive(at + 1000 * seconds, 60), seconds
    assert lease.alive(at - 59_000, 60)


HOLD = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
from dither.ledger import opening
from ledger.asking import request
ledger = opening.open(sys.argv[2])
held = ledger.reserve(request(1))
held.touch()
print("held", flush=True)
if sys.argv[3] == "stand still":
    ledger._renewal.stop()
    os.kill(os.getpid(), signal.SIGSTOP)
else:
    time.sleep(60)
try:
    ledger.commit(held, "late")
    print("committed", flush=True)
except Exception as error:
    print(type(error).__name__, str(error).splitlines()[0], flush=True)
"""


def hold(path: Path, way: str) -> subprocess.Popen[str]:
    tests = str(Path(__file__).parents[1])
    child = subprocess.Popen([sys.executable, "-c", HOLD, tests, str(path), way], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = opening.create(tmp_path / "survey.ledger")
    made.register(declaration())
    made.close()
    return tmp_path / "survey.ledger"


def test_a_killed_process_is_known_at_once(path: Path) -> None:
    """No waiting for its lease to run out: on the same machine its number is free, or another process has it."""
    child = hold(path, "be killed")
    ledger = opening.open(path)
    pool, found = waiting(ledger, 2)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    results = [each.result(timeout=30) for each in found]
    pool.shutdown()
    assert sorted(kept for kept, _ in results) == [False, True]
    assert spent(ledger) == Fraction(2, 10)
    assert verify(ledger.store).ok
    ledger.close()


def test_a_process_that_stood_still_cannot_commit(path: Path) -> None:
    child = hold(path, "stand still")
    ledger = opening.open(path)
    ledger._clock = lambda: datetime.now(UTC) + timedelta(seconds=90)  # later
    assert answered(ledger)[0] is False
    child.send_signal(signal.SIGCONT)
    told, _ = child.communicate(timeout=60)
    assert told.startswith("LedgerError This question took long without a sign of life")
    assert spent(ledger) == Fraction(2, 10)
    assert verify(ledger.store).ok
    ledger.close()


# --- deaths -------------------------------------------------------------------------------------------------------


def test_the_third_death_closes_and_the_curator_reopens(ledger: Ledger) -> None:
    for number in range(3):
        abandoned(ledger, number, "0.1")
    with pytest.raises(ClosedError):
        ledger.reserve(request(9))
    assert spent(ledger) == Fraction(3, 10)
    assert verify(ledger.store).ok
    assert ledger.reopen().dead == 3
    assert isinstance(ledger.reserve(request(9)), Reservation)


def test_two_deaths_do_not_and_what_is_acknowledged_counts_no_more(ledger: Ledger) -> None:
    for _ in range(3):
        for number in range(2):
            abandoned(ledger, f"{number} {os.urandom(4).hex()}", "0.01")
        ledger.reopen()
    asked(ledger, 9)
    assert verify(ledger.store).ok


def test_many_leases_lapse_together(store: Store) -> None:
    ledger = Ledger(store, KEY)
    ledger.register(declaration())
    for number in range(2):
        abandoned(ledger, number)
    held = [reserved(ledger, f"alive {number}", "0.01") for number in range(5)]
    asked(ledger, "more", "0.01")
    assert set(reservations.decode_leases(ledger.store.get("leases"))) == {each.number for each in held}
    for each in held:
        ledger.commit(each, "42")
    assert reservations.decode_leases(ledger.store.get("leases")) == {}
    assert verify(ledger.store).ok


def test_a_ledger_with_another_identity_is_another_flight(tmp_path: Path) -> None:
    one = Ledger(SQLite.memory(IDENTITY), KEY)
    two = Ledger(SQLite.memory(IDENTITY), KEY)
    for ledger in (one, two):
        ledger.register(declaration())
        reserved(ledger, 1)
        ledger.close()
