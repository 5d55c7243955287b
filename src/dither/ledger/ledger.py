"""The ledger: register a catalog, reserve a price, commit an answer.

Each of them is one transaction of the store: the checks and the entry they allow cannot be separated. Sums are kept beside
the entries, so that an ask costs the same after a million others.

The same question asked at once is charged once: the first holds a lease (leases.py), the others wait for its answer. A
failure after a charge closes the catalog to new questions (state.Fuse) until the curator reopens it.
"""

from __future__ import annotations

import secrets
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, NamedTuple, NoReturn

from dither.errors import ArgumentError, BudgetError, DitherWarning, Fix, LedgerError, Shell
from dither.ledger import reservations, rules, state
from dither.ledger.receipts import Key, Receipt, entry_message, issue
from dither.ledger.records import (
    ENGINE,
    Cancelled,
    Committed,
    Declaration,
    Declared,
    Entry,
    Failed,
    Lapsed,
    Opened,
    Record,
    Reopened,
    Replayed,
    Request,
    Restored,
    analyst_name,
    found_by,
    hash_of,
    parse,
)
from dither.ledger.reservations import SHARED, SPENT, UNSURE, Lease, Leases, Renewal, Reservation, held_here, meaning, saying
from dither.ledger.rules import Kept, Preview, again, preview
from dither.ledger.state import BOOKS, Fuse, Head, History, Identity, Sealed, Terms, ends_at, keys_of
from dither.ledger.stores.base import Row, Store, Transaction
from dither.ledger.witness import Witness
from dither.privacy.filters import Caps, Sums

__all__ = [
    "Declaration",
    "Ending",
    "Entry",
    "Head",
    "Kept",
    "Ledger",
    "Preview",
    "Receipt",
    "Request",
    "Reservation",
    "Standing",
]

BACKWARDS = timedelta(minutes=5)  # a clock that is behind the ledger by more than this is worth a warning
POLLS = (0.01, 0.2)  # seconds between two looks at somebody else's lease: at first, and at most


class Standing(NamedTuple):
    """What may be spent in all and what was: for everyone together."""

    caps: Caps
    sums: Sums
    rule: str | None
    entries: int
    head: Head


class Ending(Enum):
    """What came of the price of a question that broke off."""

    UNCHARGED = "its price was not charged, or was given back"
    CHARGED = "its price stays charged"
    ANSWERED = "its price stays charged, and its answer is kept"


def utc() -> datetime:
    return datetime.now(UTC)


class Ledger:
    """What has been spent, and the only way to spend. Without a key it can be read, and nothing else."""

    def __init__(
        self,
        store: Store,
        key: Key | None,
        clock: Callable[[], datetime] = utc,
        *,
        lease: float = reservations.SECONDS,
        witness: Witness | None = None,
    ) -> None:
        self._store = store
        self._key = key
        self._clock = clock
        self._lease = lease
        self._witness = witness
        self._identity = Identity.parse(store.get("ledger"), store.name)
        self._seen = Head()
        self._warned = False
        self._guard = threading.Lock()
        self._held: weakref.WeakSet[Reservation] = weakref.WeakSet()  # what this object reserved
        self._renewal = Renewal(lambda: bool(self._pending()), self._renew, lease)
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
            rules.check_in_force(inside.get("catalog"), expected)
            time = self._time(head)
            if kept is None:
                inside.put("caps", state.caps_text(declaration.caps))
                head, _ = self._add(inside, head, time, Opened(*self._identity, declaration.caps))
            else:
                rules.unchanged(state.caps(kept), History.parse(inside.get("history")), declaration)
            terms = Terms.of(declaration)._asdict() | {"text": declaration.text}
            head, _ = self._add(inside, head, time, Declared(**terms))
            inside.put("catalog", wanted)
        self._saw(head)

    def attempt(self, request: Request) -> Reservation:
        """A question about to be reserved. Keep it: `give_up` tells from it what was charged, whatever interrupts."""
        held = Reservation(self._identity.ledger, request)
        held.record.written  # noqa: B018 - now, while nobody waits
        with self._guard:
            self._held.add(held)
        return held

    def reserve(self, asked: Request | Reservation) -> Reservation | Kept:
        """Pay for the question, or be shown the answer it had before. A refusal charges nothing.

        If somebody is answering the same question now, waits for that answer, uncharged; `fresh` questions do not.
        """
        held = asked if isinstance(asked, Reservation) else self.attempt(asked)
        pause = POLLS[0]
        while True:
            found = self._reserve(held)
            if isinstance(found, Reservation):
                self._witnessed(found)
            if not isinstance(found, int):
                return found
            while self._busy(found, held.request.digest):
                time.sleep(pause)
                pause = min(2 * pause, POLLS[1])

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
            self._end(inside, reservation)
            head, _ = self._add(inside, last, max(last.time, reservation.entry.time), record, sign)
        self._saw(head)
        return receipts[-1]

    def cancel(self, reservation: Reservation) -> None:
        """Give the price back, if the engine was never called. Only the object that reserved can."""
        secret = self._own(reservation).settle(self._identity.ledger, cancel=True)
        with saying(SPENT, UNSURE), self._writing(*keys_of(reservation.request.analyst)) as (inside, last):
            self._end(inside, reservation)
            head = self._cancel(inside, last, reservation, secret)
        self._saw(head)

    def give_up(self, reservation: Reservation, why: str) -> Ending:
        """End a question that broke off, from whatever state it is in, and say what came of its price.

        Before the engine was called the price is given back. After that it stays, and `why` is written down: a failure of
        the ENGINE closes the catalog to new questions. A question that was settled stays as it is.
        """
        self._own(reservation)
        if not reservation.charged:
            return Ending.UNCHARGED
        with saying(SPENT, UNSURE), self._writing(*keys_of(reservation.request.analyst)) as (inside, last):
            written = inside.entry(reservation.number)
            if written is None or written.hash != reservation.hash:
                return Ending.UNCHARGED  # its transaction was taken back
            if reservation.number not in reservations.from_text(inside.get("leases")):
                return _ending(inside, reservation)
            self._end(inside, reservation)
            secret = reservation.withdraw()
            if not reservation.touched:
                head = self._cancel(inside, last, reservation, secret)
            else:
                record = Failed(reservation.number, reservation.hash, secret, why)
                head, entry = self._add(inside, last, max(last.time, reservation.entry.time), record)
                if why == ENGINE:
                    inside.put("fuse", Fuse.parse(inside.get("fuse")).failed(entry.number).text())
        self._saw(head)
        return Ending.CHARGED if reservation.touched else Ending.UNCHARGED

    def reopen(self) -> Fuse:
        """Let new questions in again. Returns what is forgiven: what had closed the catalog, and the deaths so far."""
        with saying("nothing"), self._writing() as (inside, last):
            head = self._bury(inside, last)
            fuse = Fuse.parse(inside.get("fuse"))
            if fuse != Fuse():
                head, _ = self._add(inside, head, self._time(head), Reopened(fuse.closed))
                inside.put("fuse", Fuse().text())
        self._saw(head)
        return fuse

    def restored(self, checked: str) -> Head:
        """Note that the ledger goes on from a backup that ends here. `checked` is the newest head it was compared with."""
        with saying("nothing"), self._writing() as (inside, last):
            head, _ = self._add(inside, last, self._time(last), Restored(last.number, checked))
        self._saw(head)
        return head

    # --- reading ------------------------------------------------------------------------------------------------

    def preview(self, request: Request, declaration: Declaration, expected: tuple[str | None, ...]) -> Preview:
        """What reserving this would come to now, were this declaration registered first. Writes nothing."""
        return preview(self._store, self._identity, request, declaration, expected)

    def standing(self) -> Standing:
        found = self._store.several("caps", "total", "head")
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

    def fuse(self) -> Fuse:
        """Whether the catalog is closed to new questions, and how many processes died with a question charged."""
        return Fuse.parse(self._store.get("fuse"))

    def close(self) -> None:
        self._renewal.stop()
        self._store.close()

    # --- steps --------------------------------------------------------------------------------------------------

    def _reserve(self, held: Reservation) -> Reservation | Kept | int:
        """One try, in one transaction; the number of a reservation that is being answered now, if this would double it."""
        request = held.request
        question = "" if request.fresh else request.digest
        refusal: BudgetError | ArgumentError | LedgerError | None = None
        kept: Kept | None = None
        flight = 0
        try:
            with self._writing(*keys_of(request.analyst), question=question) as (inside, last):
                head = self._bury(inside, last)
                before = inside.writes
                row = inside.latest(question) if question else None
                flight = 0 if row or not question else self._in_flight(inside, question)
                try:
                    if row is not None:
                        kept, head = self._show(inside, head, request, row)
                    elif not flight:
                        head = self._charge(inside, head, held)
                except (BudgetError, ArgumentError, LedgerError) as error:
                    if inside.writes != before:
                        raise
                    refusal = error  # raised below: what _bury found stays written
        except LedgerError as error:
            raise meaning(error, "nothing", SHARED) if kept else error from None
        self._saw(head)
        if refusal is not None:
            raise refusal
        if flight:
            return flight
        if kept is None:
            self._renewal.start()
        return kept or held

    def _witnessed(self, held: Reservation) -> None:
        """The head with this charge, kept elsewhere before any row is read; a charge that no witness saw is given back."""
        if self._witness is None:
            return
        try:
            self._witness.add(self._identity.ledger, Head(held.number, held.hash))
            # Again, because a copy of this ledger may have been charged since: one of the two is the first in the file.
            self._witness.compare(self._identity.ledger, self._store.entry, self.name)
        except LedgerError:
            self.cancel(held)
            raise

    def _charge(self, inside: Sealed, last: Head, held: Reservation) -> Head:
        """The question is admitted by every rule, its price is added to what was spent, and its lease begins."""
        request = held.request
        admitted = rules.admit(inside, request)
        before = History.parse(inside.get("history"))
        after = rules.noted(before, admitted.terms, request)
        now = self._clock()
        held_now = reservations.from_text(inside.get("leases"))
        head, entry = self._add(inside, last, self._time(last), held.record.under(admitted.rule))
        held.admitted = admitted
        held.place(entry, head.hash)
        lease = Lease.new("" if request.fresh else request.digest, held.record.token, now, self._lease)
        inside.put("leases", reservations.to_text(held_now | {entry.number: lease}))
        inside.put("total", state.sums_text(admitted.total))
        inside.use(request.analyst, admitted.used)
        if after != before:
            inside.put("history", after.text())
        return head

    def _show(self, inside: Sealed, last: Head, request: Request, row: Row) -> tuple[Kept, Head]:
        """The answer of this row again; it counts, once, in the quota of whoever had not seen it."""
        found = again(inside, self._identity, request, row)
        if found.used is None:
            return found.kept, last
        inside.use(request.analyst, found.used)
        record = Replayed(row.number, row.hash, request.digest, request.analyst, found.loss)
        head, _ = self._add(inside, last, self._time(last), record, lambda _, hash: self._signing().sign(entry_message(hash)))
        return found.kept, head

    def _cancel(self, inside: Sealed, last: Head, reservation: Reservation, secret: str) -> Head:
        record = Cancelled(reservation.number, reservation.hash, secret)
        analyst, charge = reservation.request.analyst, reservation.request.charge
        head, _ = self._add(inside, last, max(last.time, reservation.entry.time), record)
        inside.put("total", state.sums_text(state.sums(inside.get("total")).minus(charge)))
        inside.use(analyst, inside.used(analyst).minus(charge))
        return head

    # --- leases -------------------------------------------------------------------------------------------------

    def _bury(self, inside: Sealed, head: Head) -> Head:
        """Ends the questions whose process died. They stay charged, and the third of them closes the catalog."""
        held, now = reservations.from_text(inside.get("leases")), reservations.milliseconds(self._clock())
        dead = [number for number, lease in sorted(held.items()) if not self._alive(lease, now)]
        if not dead:
            return head
        fuse = Fuse.parse(inside.get("fuse"))
        for number in dead:
            row = inside.entry(number)
            head, entry = self._add(inside, head, self._time(head), Lapsed(number, row.hash if row else ""))
            fuse = fuse.died(entry.number)
            del held[number]
        inside.put("leases", reservations.to_text(held))
        inside.put("fuse", fuse.text())
        return head

    def _end(self, inside: Sealed, reservation: Reservation) -> None:
        """Its lease ends; if it ended before, somebody took the process for dead and the question is settled."""
        held = reservations.from_text(inside.get("leases"))
        if held.pop(reservation.number, None) is None:
            raise LedgerError(
                "This question took long without a sign of life, and was given up: its answer is not shown.",
                fix="ask again; if it happens again, look why the process stood still.",
            )
        inside.put("leases", reservations.to_text(held))

    def _in_flight(self, inside: Sealed, question: str) -> int:
        """The reservation that is being answered for this question, or 0."""
        for number, lease in reservations.from_text(inside.get("leases")).items():
            if lease.question == question[: reservations.MARK]:
                held = held_here(lease.token) if lease.own else None
                if held is not None and held.mine:
                    fix = Fix("commit it first, or ask with {fresh}.", fresh=True)
                    raise LedgerError("This thread is answering the same question already.", fix=fix)
                return number
        return 0

    def _busy(self, flight: int, question: str) -> bool:
        """Whether somebody is still answering this question."""
        held: Leases = reservations.from_text(self._store.get("leases"))
        lease = held.get(flight)
        return (
            lease is not None
            and lease.question == question[: reservations.MARK]
            and self._alive(lease, reservations.milliseconds(self._clock()))
        )

    def _alive(self, lease: Lease, now: int) -> bool:
        """Whether its holder may still answer; one of this process must still be held by somebody here."""
        return lease.alive(now, self._lease) and not (lease.own and held_here(lease.token) is None)

    def _pending(self) -> list[Reservation]:
        with self._guard:
            return [held for held in self._held if held.charged and not held.settled]

    def _renew(self) -> None:
        numbers = [held.number for held in self._pending()]
        with self._writing() as (inside, _):
            held, now = reservations.from_text(inside.get("leases")), self._clock()
            longer = {number: held[number].renewed(now, self._lease) for number in numbers if number in held}
            if longer:
                inside.put("leases", reservations.to_text(held | longer))

    # --- steps --------------------------------------------------------------------------------------------------

    @contextmanager
    def _writing(self, *keys: str, question: str = "") -> Iterator[tuple[Sealed, Head]]:
        """A transaction on sums that the key's holder sealed, and sealed again at its end."""
        key = self._signing()
        with self._store.transaction(*BOOKS, *keys, question=question) as inside:
            head = self._head(inside)
            sealed = Sealed(inside, key, self._identity.ledger)
            if not self._seen.number:  # once: what this process writes it knows
                ends_at(inside, head, self.name)
            if self._witness is not None:
                self._witness.compare(self._identity.ledger, inside.entry, self.name)
            yield sealed, head
            sealed.close()

    def _own(self, reservation: Reservation) -> Reservation:
        with self._guard:
            if reservation in self._held:
                return reservation
        raise LedgerError("This reservation is of another ledger, or was made up.", fix="settle it where it was made.")

    def _add(
        self,
        inside: Sealed,
        head: Head,
        time: str,
        record: Record,
        sign: Callable[[Entry, str], str] | None = None,
    ) -> tuple[Head, Entry]:
        """The next entry, in the chain. The seal signs its hash, and so all before it; what is shown alone is signed too."""
        entry = Entry(head.number + 1, head.hash, secrets.token_hex(16), time, record)
        body = entry.body
        hash = hash_of(body)
        signature = sign(entry, hash) if sign else ""
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
                fix=Fix(
                    "put the newest one back; `{verify}` tells which one has an answer.",
                    verify=Shell("dither verify --receipt"),
                ),
            )
        return head

    def _saw(self, head: Head) -> None:
        with self._guard:
            if head.number > self._seen.number:
                self._seen = head

    def _time(self, head: Head) -> str:
        """Now, but never earlier than the entry before: the order of entries comes from their numbers, not from clocks."""
        now = self._clock().astimezone(UTC)
        text = now.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
        if text >= head.time:
            return text
        if datetime.fromisoformat(head.time) - now > BACKWARDS and not self._warned:
            self._warned = True
            warnings.warn(
                f"The last entry of {self.name} is dated {head.time}, ahead of this machine's clock. New entries get that "
                "time until the clock has caught up.",
                DitherWarning,
                stacklevel=2,
            )
        return head.time

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise LedgerError("A ledger cannot be copied: two copies could each be spent in full.", fix="open it again.")


def _ending(inside: Sealed, reservation: Reservation) -> Ending:
    """What the entry that settled the reservation says; it stands somewhere after it."""
    number = reservation.number
    while (row := inside.entry(number := number + 1)) is not None:
        record = parse(row).record
        if isinstance(record, Cancelled | Committed | Failed | Lapsed) and record.reserved == reservation.number:
            return {Cancelled: Ending.UNCHARGED, Committed: Ending.ANSWERED}.get(type(record), Ending.CHARGED)
    return Ending.CHARGED
