"""The ledger: register a catalog, reserve a price, commit an answer.

Each of them is one transaction of the store: the checks and the entry they allow cannot be separated. Sums are kept beside
the entries, so that an ask costs the same after a million others.
"""

from __future__ import annotations

import secrets
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, NoReturn

from dither.errors import ArgumentError, LedgerError
from dither.ledger import admission, state
from dither.ledger.asked import Declaration, Request, analyst_name
from dither.ledger.entries import (
    Cancelled,
    Committed,
    Declared,
    Entry,
    Opened,
    Record,
    Replayed,
    Reserved,
    found_by,
    hash_of,
    parse,
    shown_to,
)
from dither.ledger.kept import Kept, paid_by, stored_answer
from dither.ledger.keys import Key, entry_message
from dither.ledger.receipts import Receipt, issue
from dither.ledger.reservation import Reservation
from dither.ledger.saying import SHARED, SPENT, UNSURE, meaning, saying
from dither.ledger.sealed import BOOKS, Sealed, ends_at, keys_of
from dither.ledger.state import Head, History, Identity, Terms
from dither.ledger.store import Row, Store, Transaction
from dither.privacy.either import Caps, Charge, Sums

__all__ = ["Declaration", "Entry", "Head", "Kept", "Ledger", "Receipt", "Request", "Reservation", "Standing"]

BACKWARDS = timedelta(minutes=5)  # a clock that is set back by more than this is not believed


class Standing(NamedTuple):
    """What may be spent in all and what was: for everyone together."""

    caps: Caps
    sums: Sums
    rule: str | None
    entries: int
    head: Head


def utc() -> datetime:
    return datetime.now(UTC)


class Ledger:
    """What has been spent, and the only way to spend. Without a key it can be read, and nothing else."""

    def __init__(self, store: Store, key: Key | None, clock: Callable[[], datetime] = utc) -> None:
        self._store = store
        self._key = key
        self._clock = clock
        self._identity = Identity.parse(store.get("ledger"), store.name)
        self._seen = Head()
        self._guard = threading.Lock()
        self._held: weakref.WeakSet[Reservation] = weakref.WeakSet()  # what this object reserved
        if key is not None and key.public != self._identity.public_key:
            raise LedgerError(
                f"This key is not the one {store.name} was made with.", fix="name the key file that was made with the ledger."
            )

    @property
    def name(self) -> str:
        return self._store.name

    @property
    def public_key(self) -> str:
        return self._identity.public_key

    @property
    def store(self) -> Store:
        return self._store

    # --- writing ------------------------------------------------------------------------------------------------

    def register(self, declaration: Declaration, expected: tuple[str | None, ...] | None = None) -> None:
        """The catalog is in force from here on. The first one fixes the caps for ever; a later one may not change them.
        With `expected` it follows one of these, as their texts stand in the store (None: no catalog), and no other."""
        wanted = Terms.of(declaration).text()
        if self._store.get("catalog") == wanted:
            return
        with saying("nothing"), self._writing() as (inside, last):
            head, kept = last, inside.get("caps")
            if inside.get("catalog") == wanted:
                return
            admission.expected(inside.get("catalog"), expected)
            time = self._time(head)
            if kept is None:
                caps = Caps.of(declaration.epsilon, declaration.delta)
                inside.put("caps", state.caps_text(caps))
                head, _ = self._add(inside, head, time, Opened(*self._identity, caps))
            else:
                admission.unchanged(state.caps(kept), History.parse(inside.get("history")), declaration)
            terms = Terms.of(declaration)._asdict() | {"text": declaration.text}
            head, _ = self._add(inside, head, time, Declared(**terms))
            inside.put("catalog", wanted)
        self._saw(head)

    def reserve(self, request: Request) -> Reservation | Kept:
        """Pay for the question, or be shown the answer it had before. A refusal charges nothing."""
        secret = secrets.token_hex(32)
        record, question = request.reserved(secret), "" if request.fresh else request.digest
        record.written  # noqa: B018 - now, while nobody waits
        kept = None
        try:
            with self._writing(*keys_of(request.analyst), question=question) as (inside, last):
                if question and (row := inside.latest(question)) is not None:
                    kept, head = self._show(inside, last, request, row)
                else:
                    head, entry = self._charge(inside, last, request, record)
        except LedgerError as error:
            raise meaning(error, "nothing", SHARED) if kept else error from None
        self._saw(head)
        if kept:
            return kept
        held = Reservation(self._identity.ledger, entry, head.hash, request, secret)
        with self._guard:
            self._held.add(held)
        return held

    def commit(self, reservation: Reservation, payload: str) -> Receipt:
        """Keep the answer. Once only; if the store fails the answer is not given, and its price stays spent.

        Its time is that of the entry before: how long the engine ran depends on rows, and is nobody's business."""
        if not isinstance(payload, str):
            raise ArgumentError("payload must be a text.", fix="write the answer as text first.")
        secret = self._own(reservation).settle(self._identity.ledger, cancel=False)
        record = Committed(reservation.number, reservation.hash, reservation.request.digest, secret, payload)
        record.written  # noqa: B018 - now, while nobody waits
        receipts: list[Receipt] = []

        def sign(entry: Entry, hash: str) -> str:
            place = (entry.number, hash)
            receipts.append(issue(self._signing(), self._identity.ledger, reservation.entry, reservation.hash, *place))
            return receipts[-1].signature

        with saying(SPENT), self._writing() as (inside, last):
            head, _ = self._add(inside, last, max(last.time, reservation.entry.time), record, sign)
        self._saw(head)
        return receipts[-1]

    def cancel(self, reservation: Reservation) -> None:
        """Give the price back, if the engine was never called. Only the object that reserved can."""
        secret = self._own(reservation).settle(self._identity.ledger, cancel=True)
        record = Cancelled(reservation.number, reservation.hash, secret)
        analyst, charge = reservation.request.analyst, reservation.request.charge
        with saying(SPENT, UNSURE), self._writing(*keys_of(analyst)) as (inside, last):
            head, _ = self._add(inside, last, max(last.time, reservation.entry.time), record)
            inside.put("total", state.sums_text(state.sums(inside.get("total")).minus(charge)))
            inside.use(analyst, inside.used(analyst).minus(charge))
        self._saw(head)

    # --- reading ------------------------------------------------------------------------------------------------

    def standing(self) -> Standing:
        found, _ = self._store.state()
        if "caps" not in found:
            raise LedgerError(f"The ledger {self.name} has no catalog yet.", fix="open the catalog with it.")
        caps, sums, head = state.caps(found["caps"]), state.sums(found.get("total")), Head.parse(found.get("head"))
        return Standing(caps, sums, caps.rule(sums), head.number, head)

    def quota(self, analyst: str) -> Sums:
        """What one analyst used, answers that were shown again included."""
        return state.sums(self._store.get(keys_of(analyst_name(analyst))[0]))

    def history(self) -> Iterator[Entry]:
        return map(parse, self._store.rows())

    def head(self) -> Head:
        """Where the chain ends; keep its text elsewhere, and a rollback can be detected."""
        return Head.parse(self._store.get("head"))

    def close(self) -> None:
        self._store.close()

    # --- steps --------------------------------------------------------------------------------------------------

    def _charge(self, inside: Sealed, last: Head, request: Request, record: Reserved) -> tuple[Head, Entry]:
        """The question is admitted by every rule, and its price is added to what was spent."""
        terms, caps = self._terms(inside, request, request.charge)
        total, rule = admission.charged(caps, state.sums(inside.get("total")), request)
        used = admission.quota(caps, terms.per_analyst, inside.used(request.analyst), request.analyst, request.charge)
        before = History.parse(inside.get("history"))
        after = admission.noted(before, terms, request)
        head, entry = self._add(inside, last, self._time(last), record.under(rule))
        inside.put("total", state.sums_text(total))
        inside.use(request.analyst, used)
        if after != before:
            inside.put("history", after.text())
        return head, entry

    def _show(self, inside: Sealed, last: Head, request: Request, row: Row) -> tuple[Kept, Head]:
        """The answer of this row again; it counts in the quota of whoever had not seen it."""
        reserved, asked, payload, receipt = stored_answer(inside.entry, self._identity, row, request.digest)
        analyst, charged = request.analyst, False
        terms, caps = self._terms(inside, request, asked.loss)
        paid = reserved.number if asked.analyst == analyst else None
        if paid is None and (seen := inside.latest(shown_to(row.number, analyst))) is not None:
            paid = paid_by(seen, self._identity, row.number, analyst)
        if paid is None:
            paid, charged = last.number + 1, True
            inside.use(analyst, admission.quota(caps, terms.per_analyst, inside.used(analyst), analyst, asked.loss))
        record = Replayed(row.number, row.hash, request.digest, analyst, asked.loss, paid)
        head, _ = self._add(inside, last, self._time(last), record)
        return Kept(payload, receipt, asked.analyst, reserved.time, charged), head

    @contextmanager
    def _writing(self, *keys: str, question: str = "") -> Iterator[tuple[Sealed, Head]]:
        """A transaction on sums that the key's holder sealed, and sealed again at its end."""
        key = self._signing()
        with self._store.transaction(*BOOKS, *keys, question=question) as inside:
            head = self._head(inside)
            sealed = Sealed(inside, key.seal, self._identity.ledger)
            if not self._seen.number:  # once: what this process writes it knows
                ends_at(inside, head, self.name)
            yield sealed, head
            sealed.close()

    def _own(self, reservation: Reservation) -> Reservation:
        with self._guard:
            if reservation in self._held:
                return reservation
        raise LedgerError("This reservation is of another ledger, or was made up.", fix="settle it where it was made.")

    def _terms(self, inside: Sealed, request: Request, charge: Charge) -> tuple[Terms, Caps]:
        terms, caps = inside.get("catalog"), inside.get("caps")
        if terms is None or caps is None:
            raise LedgerError("This ledger has no catalog yet.", fix="open the catalog with it: dt.open(catalog, ledger=…).")
        kept = state.caps(caps)
        return admission.in_force(Terms.parse(terms), kept, request, charge), kept

    def _add(
        self,
        inside: Sealed,
        head: Head,
        time: str,
        record: Record,
        sign: Callable[[Entry, str], str] | None = None,
    ) -> tuple[Head, Entry]:
        """The next entry, in the chain and signed."""
        entry = Entry(head.number + 1, head.hash, secrets.token_hex(16), time, record)
        body = entry.body
        hash = hash_of(body)
        signature = sign(entry, hash) if sign else self._signing().sign(entry_message(hash))
        inside.append(Row(entry.number, entry.kind, found_by(record), body, hash, signature))
        after = Head(entry.number, hash, time)
        inside.put("head", after.text())
        return after, entry

    def _signing(self) -> Key:
        if self._key is None:
            raise LedgerError(f"The ledger {self.name} was opened to be read only.", fix="open it with its key.")
        return self._key

    def _head(self, inside: Transaction) -> Head:
        """Where the chain ends, unless that is before what this process has seen: then an older copy was put in place."""
        head, seen = Head.parse(inside.get("head")), self._seen
        if head.number < seen.number or (head.number == seen.number and head.hash != seen.hash):
            raise LedgerError(
                f"The ledger {self.name} was replaced by an older copy.",
                fix="put the newest one back; `dither verify --receipt` tells which one has an answer.",
            )
        return head

    def _saw(self, head: Head) -> None:
        with self._guard:
            if head.number > self._seen.number:
                self._seen = head

    def _time(self, head: Head) -> str:
        """Never earlier than the entry before."""
        now = self._clock().astimezone(UTC)
        text = now.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
        if text >= head.time:
            return text
        if datetime.fromisoformat(head.time) - now > BACKWARDS:
            raise LedgerError(
                f"This machine's clock is behind the ledger's last entry ({head.time}).", fix="set the clock right."
            )
        return head.time

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise LedgerError("A ledger cannot be copied: two copies could each be spent in full.", fix="open it again.")
