"""An interrupt at any point of an ask: it comes out as one, nothing stays locked, and what it says of the charge is true."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

import dither as dt
from dither.curator import Curator
from dither.errors import DitherError
from dither.ledger.verify.report import verify
from dither.session import CloseGuard
from faults.interrupting import PRICE, Points, broken_laws

PAYING = ("/ledger/", "/curator.py", "/session.py", "/engines/duckdb/engine.py")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    file = tmp_path / "people.ledger"
    opened(file, make=True).close()
    return file


def opened(ledger: Path, *, make: bool = False) -> Curator:
    people = {"person": list(range(50)), "age": list(range(50))}
    table = dt.Table(people, unit="person", max_rows=1, columns={"age": dt.between(0, 100)})
    catalog = dt.Catalog(tables={"people": table}, budget=dt.Budget(epsilon=10**6))
    return dt.open(catalog, ledger=ledger, make=make)


def question(number: int) -> str:
    return f"SELECT COUNT(*) AS n FROM people WHERE age <> {number}"


def points(ledger: Path) -> list[str]:
    """The files in which an ask can be stopped, point after point."""
    with opened(ledger) as session:
        counted = Points()
        counted.run(lambda: session.ask(question(-1), epsilon=PRICE))
    return counted.places


def sampled(places: list[str]) -> list[int]:
    """Chooses about 150 points: most where context managers start and end, or a lock or a price is held."""
    managers = [at for at, file in enumerate(places, 1) if file == contextlib.__file__]
    paying = [at for at, file in enumerate(places, 1) if any(part in file for part in PAYING)]
    return sorted({*managers[::3], *paying[::20], *range(1, len(places), len(places) // 20)})


def broken(ledger: Path, stops: Iterable[int]) -> list[str]:
    session: Callable[[], Curator] = partial(opened, ledger)
    found = [line for stop in stops for line in broken_laws(session, question(stop), stop, ledger)]
    with opened(ledger) as last:
        return [*found, *verify(last.ledger.store).problems]


def test_after_an_interrupt_anywhere_nothing_is_stuck_and_the_charge_is_true(ledger: Path) -> None:
    places = points(ledger)
    assert len(places) > 5000
    found = broken(ledger, sampled(places))
    assert not found, "\n".join(found)


@pytest.mark.long
def test_the_same_at_every_point(ledger: Path) -> None:
    found = broken(ledger, range(1, len(points(ledger)) + 1))
    assert not found, "\n".join(found)


class Counter:
    """The twin: a count that goes up before its `try`."""

    def __init__(self) -> None:
        self.closing, self.count = threading.Lock(), 0

    @contextmanager
    def question_lock(self) -> Iterator[None]:
        with self.closing:
            self.count += 1
            self.wait_for_closing()
        try:
            yield
        finally:
            with self.closing:
                self.count -= 1

    def wait_for_closing(self) -> None:
        pass

    def check(self) -> None:
        if self.count:
            raise DitherError("A question is still being answered.")


def stuck(counts: type[CloseGuard | Counter]) -> list[str]:
    """Returns the points at which an interrupt would leave a question running."""

    def work(busy: CloseGuard | Counter) -> None:
        with busy.question_lock():
            busy.wait_for_closing()

    found: list[str] = []
    kept: list[BaseException] = []  # as a notebook does
    for stop in itertools.count(1):
        busy, counted = counts(), Points(stop, ours=__file__)
        try:
            counted.run(partial(work, busy))
        except KeyboardInterrupt as stopped:
            kept.append(stopped)
        if not counted.place:
            break
        try:
            assert busy.closing.acquire(blocking=False)
            busy.closing.release()
            busy.check()
        except (AssertionError, DitherError):
            found.append(counted.place)
    assert len(kept) > 6
    return found


def test_counting_questions_bears_an_interrupt_at_every_point() -> None:
    assert stuck(CloseGuard) == []


def test_that_a_plain_count_does_not() -> None:
    assert stuck(Counter) != []
