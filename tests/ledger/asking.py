"""Declarations and requests for the ledger's tests, and a fake store for what no real one would do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

from dither.ledger.ledger import Ledger
from dither.ledger.receipts import Key, Receipt
from dither.ledger.records import Declaration, Request, StreamStep
from dither.ledger.reservations import Reservation
from dither.ledger.state import Identity, first_texts
from dither.ledger.stores.base import Row, Store, Transaction
from dither.ledger.streams import continues, stream_key
from dither.privacy.filters import Caps, Charge

KEY = Key.new()


def identity(last: str) -> dict[str, str]:
    """Returns the texts of a new ledger."""
    return first_texts(Identity("0" * 31 + last, KEY.public), KEY)


IDENTITY = identity("7")
SMALLEST = Fraction(1, 10**40)  # a least price for tests of prices that are smaller than any catalog's
RHO_MAX = Caps.of(1, "1e-6").rho_max


def declaration(epsilon: str = "1", delta: str = "0", **changes: Any) -> Declaration:
    fields: dict[str, Any] = {
        "catalog_hash": "c1",
        "text": '{"tables":{"people":{}}}',
        "epsilon": Fraction(epsilon),
        "delta": Fraction(delta),
        "per_analyst": None,
        "per_query": None,
        "least_epsilon": Fraction(epsilon) / 10_000,
        "analysts": None,
        "neighbours": "add or remove one person",
        "snapshot": "2026-11",
        "units": {"people": "person_id", "visits": "person_id", "regions": "public"},
    }
    return Declaration(**fields | changes)


def pure(epsilon: str | Fraction) -> Charge:
    price = Fraction(epsilon)
    return Charge(price, Fraction(0), price**2 / 2, Fraction(0))


def gaussian(rho: Fraction, slack: Fraction = Fraction(0)) -> Charge:
    """Returns a charge that only the sum of rho admits: its epsilon is too high for the other sum."""
    return Charge(Fraction(10), Fraction(1, 10**7), rho, slack)


def request(plan: Any = 1, epsilon: str | Charge = "0.1", analyst: str = "ada", **changes: Any) -> Request:
    fields: dict[str, Any] = {
        "question": f"SELECT COUNT(*) FROM people WHERE age = {plan}",
        "plan": plan if str(plan).startswith("{") else f"plan {plan}",
        "catalog_hash": "c1",
        "snapshot": "2026-11",
        "analyst": analyst,
        "charge": epsilon if isinstance(epsilon, Charge) else pure(epsilon),
        "tables": ("people",),
        "unit": "person_id",
        "neighbours": "add or remove one person",
        "mechanisms": ({"noise": "geometric", "epsilon": "1/10", "sensitivity": 1},),
    }
    return Request(**fields | changes)


def reserved(ledger: Ledger, *args: Any, **changes: Any) -> Reservation:
    """A question that is on its way for as long as the ledger object lives."""
    found = ledger.reserve(request(*args, **changes))
    assert isinstance(found, Reservation)
    vars(ledger).setdefault("held by tests", []).append(found)
    return found


def abandoned(ledger: Ledger, *args: Any, **changes: Any) -> None:
    """Charges a question and drops its reservation, as if its process had died."""
    assert isinstance(ledger.reserve(request(*args, **changes)), Reservation)


def asked(ledger: Ledger, *args: Any, payload: str = "42", **changes: Any) -> Receipt:
    held = reserved(ledger, *args, **changes)
    held.touch()
    return ledger.commit(held, payload)


FREE = Charge(Fraction(0), Fraction(0), Fraction(0))


def opened_stream(ledger: Ledger, plan: str = "days", epsilon: str = "0.1", analyst: str = "ada", **changes: Any) -> str:
    """Opens a stream, and returns its key."""
    key = stream_key(f"plan {plan}", analyst)
    held = reserved(ledger, plan, epsilon, analyst, stream=StreamStep(key), **changes)
    held.touch()
    ledger.advance(held, "opened", 0, "state 0")
    return key


def advanced(ledger: Ledger, key: str, at: int, step: int, **changes: Any) -> Receipt:
    """Releases the steps of a stream from one to another."""
    held = reserved(ledger, **continued(key, at) | changes)
    held.touch()
    return ledger.advance(held, f"sums {at} {step}", step, f"state {step}")


def continued(key: str, at: int) -> dict[str, Any]:
    """Returns the request that continues a stream."""
    return {"charge": FREE, "mechanisms": (), "stream": StreamStep(key, at), "plan": continues(key, at)}


class Clock:
    """Time that a test sets."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 15, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def move(self, **by: float) -> None:
        self.now += timedelta(**by)


class Fake:
    """Rows and texts as an attacker would have them: any rows, any order. It can only be read."""

    name = "fake"

    def __init__(self, rows: list[Row], state: Mapping[str, str]) -> None:
        self.kept = rows
        self.texts = dict(state)

    @classmethod
    def of(cls, store: Store) -> Fake:
        return cls(list(store.rows()), store.state()[0])

    def rows(self, start: int = 1, stop: int | None = None) -> Iterator[Row]:
        return (row for row in self.kept if row.number >= start)

    def entry(self, number: int) -> Row | None:
        return next((row for row in self.kept if row.number == number), None)

    def latest(self, question: str) -> Row | None:
        return next((row for row in reversed(self.kept) if row.question == question), None)

    def state(self) -> tuple[dict[str, str], int]:
        return dict(self.texts), max((row.number for row in self.kept), default=0)

    def get(self, key: str) -> str | None:
        return self.texts.get(key)

    def several(self, *keys: str) -> dict[str, str]:
        return {key: self.texts[key] for key in keys if key in self.texts}

    def faults(self) -> list[str]:
        return []

    def transaction(self, *keys: str, question: str = "") -> AbstractContextManager[Transaction]:
        raise NotImplementedError

    def close(self) -> None: ...
