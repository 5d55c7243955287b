"""The ledger: registers a catalog, reserves a price, commits an answer.

Each step is one transaction of the store, so nothing can happen between a check and the entry it allows. The sums are stored
beside the entries (state.py), so a question costs the same time after a million others.

If several people ask the same question at once, it is charged once: the first holds a lease (reservations.py), the others wait
for its answer. A failure after a charge closes the catalog to new questions (state.Fuse) until the curator reopens it.
"""

from __future__ import annotations

import secrets
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from dither.errors import ApprovalError, ArgumentError, BudgetError, DitherWarning, Fix, LedgerError, Shell
from dither.ledger import reservations, rules, state
from dither.ledger.approvals import Approvals
from dither.ledger.earlier import EarlierAnswers
from dither.ledger.marks import Contents, Marks
from dither.ledger.receipts import (
    Key,
    Keys,
    Receipt,
    entry_message,
    issue,
    issue_derived,
    rotation_message,
    secrets_digest,
)
from dither.ledger.records import (
    ENGINE,
    INTERRUPT,
    Advanced,
    Approved,
    Cancelled,
    CancelledApproved,
    Closed,
    Committed,
    Declaration,
    Declared,
    Denied,
    Entry,
    Failed,
    Lapsed,
    Opened,
    Policy,
    Record,
    Reopened,
    Replayed,
    Request,
    Requested,
    Restored,
    Rotated,
    Settled,
    analyst_name,
    canonical,
    hash_of,
    lookup_key,
    parse,
    replay_key,
)
from dither.ledger.reservations import (
    SHARED,
    SPENT,
    UNSURE,
    Lease,
    Renewal,
    Reservation,
    find_reservation,
    stating_charge,
    with_charge,
)
from dither.ledger.rules import Preview, SharePreview, StoredAnswer, preview, preview_share, read_steps, replay
from dither.ledger.state import STATE_KEYS, Fuse, Head, History, Identity, Sealed, Terms, ends_at, keys_of
from dither.ledger.stores.base import Row, Store, Transaction
from dither.ledger.streams import Position, check_step, decode_streams, encode_streams, state_digest, state_key
from dither.ledger.witness import Witness
from dither.privacy.filters import Caps, Sums
from dither.text import folded

__all__ = [
    "Balance",
    "Declaration",
    "Ending",
    "Entry",
    "Head",
    "Ledger",
    "Preview",
    "Receipt",
    "Request",
    "Reservation",
    "StoredAnswer",
]

BACKWARDS = timedelta(minutes=5)  # warn if the clock is behind the ledger by more than this
POLLS = (0.01, 0.2)  # seconds between two checks of another holder's lease: first and longest


class Balance(NamedTuple):
    """The caps and what was spent of them by everyone together."""

    caps: Caps
    sums: Sums
    rule: str | None
    entries: int
    head: Head


class Ending(Enum):
    """What happened to the price of a question that was interrupted."""

    UNCHARGED = "its price was not charged, or was given back"
    CHARGED = "its price stays charged"
    ANSWERED = "its price stays charged, and its answer is kept"


def utc() -> datetime:
    return datetime.now(UTC)


class Ledger:
    """Records what was spent; the only way to spend. Without a key it is read-only."""

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
        texts = store.several("ledger", "keys", "secrets")
        self._identity = Identity.parse(texts.get("ledger"), store.name)
        self._checked_keys: tuple[str | None, Keys] = None, Keys.parse(None, *self._identity)
        self._seen = Head()
        self._warned = False
        self._lock = threading.Lock()
        self._reservations: weakref.WeakSet[Reservation] = weakref.WeakSet()  # those this object made
        self._renewal = Renewal(lambda: bool(self._pending()), self._renew, lease)
        if key is not None:
            _check_in_force(key, Keys.parse(texts.get("keys"), *self._identity), store.name)
        if key is not None and "secrets" in texts:
            self._key = key.with_handed(texts["secrets"], self._identity.ledger)

    @property
    def name(self) -> str:
        return self._store.name

    @property
    def public_key(self) -> str:
        """The public key that is in force."""
        return self.keys().in_force

    def keys(self) -> Keys:
        """Returns the public keys of this ledger. Refuses rotations that are not signed by both keys."""
        return self._keys(self._store.get("keys"))

    @property
    def ident(self) -> str:
        """The ledger's own name: 128 random bits, in every receipt."""
        return self._identity.ledger

    @property
    def store(self) -> Store:
        return self._store

    def marks(self, path: Path, catalog: str, tables: Mapping[str, Contents]) -> Marks:
        """Returns the marks, in this file, of the data under the catalog with this hash."""
        return Marks(path, self._require_key(), self._identity.ledger, catalog, tables)

    # --- writing ------------------------------------------------------------------------------------------------

    def register(self, declaration: Declaration, expected: tuple[str | None, ...] | None = None) -> None:
        """Puts a catalog in force. The first one fixes the caps permanently; a later one that changes them is refused.

        `expected` lists the stored texts of the catalogs that this one may follow (None: no catalog yet).
        """
        text = Terms.of(declaration).text()
        if self._store.get("catalog") == text:
            return
        with stating_charge("nothing"), self._transaction() as (inside, last):
            head, caps = last, inside.get("caps")
            if inside.get("catalog") == text:
                return
            rules.check_in_force(inside.get("catalog"), expected)
            time = self._time(head)
            if caps is None:
                inside.put("caps", state.encode_caps(declaration.caps))
                head, _ = self._add(inside, head, time, Opened(*self._identity, declaration.caps))
            else:
                rules.check_unchanged(state.decode_caps(caps), History.parse(inside.get("history")), declaration)
            terms = Terms.of(declaration)._asdict() | {"text": declaration.text}
            head, _ = self._add(inside, head, time, Declared(**terms))
            inside.put("catalog", text)
        self._note_head(head)

    def attempt(self, request: Request) -> Reservation:
        """Returns a question about to be reserved. Keep it: after an interruption, `give_up` says what was charged for it."""
        reservation = Reservation(self._identity.ledger, request)
        reservation.record.encoded  # noqa: B018 - encode it now, before the store is locked
        with self._lock:
            self._reservations.add(reservation)
        return reservation

    def reserve(self, asked: Request | Reservation, *, stored: bool = False) -> Reservation | StoredAnswer:
        """Charges for the question, or returns its stored answer. A refusal charges nothing.

        If the same question is being answered now, waits for that answer, uncharged; a `fresh` question does not wait.
        `stored`: only returns a stored answer, and never charges or counts anything.
        """
        reservation = asked if isinstance(asked, Reservation) else self.attempt(asked)
        pause = POLLS[0]
        while True:
            outcome = self._reserve(reservation, stored)
            if isinstance(outcome, Reservation):
                self._add_to_witness(outcome)
            if not isinstance(outcome, int):
                return outcome
            while self._is_being_answered(outcome, reservation.request.digest):
                time.sleep(pause)
                pause = min(2 * pause, POLLS[1])

    def commit(self, reservation: Reservation, payload: str) -> Receipt:
        """Stores the answer, once, and returns its receipt. If the store fails, the price stays spent and nothing is released.

        The entry gets the time of the one before it, because the engine's running time depends on rows.
        """
        secret = self._settle(reservation, payload)
        return self._commit(
            reservation, Committed(reservation.number, reservation.hash, reservation.request.digest, secret, payload)
        )

    def advance(self, reservation: Reservation, payload: str, step: int, state: str) -> Receipt:
        """Stores steps of a stream and the state after them, which the caller has encrypted, as `commit` stores an answer.

        Refuses if the stream is no longer at the step that the reservation continues from: then nothing is stored.
        """
        asked = reservation.request.stream
        if asked is None or (step != 0 if asked.at is None else step <= asked.at):
            raise ArgumentError("This reservation is of no stream, or of other steps.", fix="reserve the steps of a stream.")
        secret, digest = self._settle(reservation, payload), reservation.request.digest
        found = decode_streams(self._store.get("streams")).get(asked.key)
        before = 0 if found is None else found.entry
        steps = (asked.key, step, before, state_digest(state))
        record = Advanced(reservation.number, reservation.hash, digest, secret, payload, *steps)

        def move(inside: Sealed, number: int) -> None:
            streams = check_step(inside.get("streams"), asked)
            opened = reservation.number if asked.at is None else streams[asked.key].opened
            streams[asked.key] = Position(opened, step, reservation.number, number)
            inside.put("streams", encode_streams(streams))
            inside.put_aside(state_key(asked.key), state)

        return self._commit(reservation, record, move)

    def _settle(self, reservation: Reservation, payload: str) -> str:
        if not isinstance(payload, str):
            raise ArgumentError("payload must be a text.", fix="write the answer as text first.")
        return self._check_own(reservation).settle(self._identity.ledger, cancel=False)

    def _commit(
        self,
        reservation: Reservation,
        record: Committed | Advanced,
        also: Callable[[Sealed, int], None] = lambda inside, number: None,
    ) -> Receipt:
        record.encoded  # noqa: B018 - encode it now, before the store is locked
        receipts: list[Receipt] = []

        def sign(entry: Entry, hash: str) -> str:
            place = (entry.number, hash)
            receipts.append(issue(self._require_key(), self._identity.ledger, reservation.entry, reservation.hash, *place))
            return receipts[-1].signature

        with stating_charge(SPENT), self._transaction() as (inside, last):
            self._end_lease(inside, reservation)
            also(inside, last.number + 1)
            head, _ = self._add(inside, last, max(last.time, reservation.entry.time), record, sign)
        self._note_head(head)
        return receipts[-1]

    def share(self, asked: Mapping[int, Request]) -> dict[int, StoredAnswer]:
        """Returns stored answers by their entries, to make another answer of them; charges nothing.

        Each counts once in the quota of an analyst who has not seen it, as if its question were asked again. If one of them is
        refused, none is returned or counted. `asked`: the question of each entry, asked again by one analyst.
        """
        analyst = next(iter(asked.values())).analyst
        kept: dict[int, StoredAnswer] = {}
        with stating_charge("nothing", SHARED), self._transaction(*keys_of(analyst)) as (inside, last):
            head = last
            for number, request in sorted(asked.items()):
                row = inside.entry(number)
                if row is None or request.analyst != analyst:
                    raise LedgerError(f"There is no entry {number} to make an answer of.", fix="run `dither verify`.")
                kept[number], head = self._replay(inside, head, request, row)
        self._note_head(head)
        return kept

    def sign_derived(self, facts: Mapping[str, str], made_of: Sequence[StoredAnswer], numbers: str) -> Receipt:
        """Signs the receipt of an answer made of stored ones (receipts.issue_derived). Writes nothing."""
        receipts = [each.receipt for each in made_of]
        return issue_derived(self._require_key(), self._identity.ledger, facts, receipts, numbers, self._time(self.head()))

    def cancel(self, reservation: Reservation) -> None:
        """Gives the price back. Refused once the engine was called, and for a reservation of another ledger object."""
        secret = self._check_own(reservation).settle(self._identity.ledger, cancel=True)
        with stating_charge(SPENT, UNSURE), self._transaction(*keys_of(reservation.request.analyst)) as (inside, last):
            self._end_lease(inside, reservation)
            head = self._cancel(inside, last, reservation, secret)
        self._note_head(head)

    def give_up(self, reservation: Reservation, why: str) -> Ending:
        """Ends an interrupted question, whatever its state, and returns what happened to its price.

        Before the engine is called the price is given back. After that it stays charged, and `why` is recorded: ENGINE
        closes the catalog to new questions. A settled question stays as it is.
        """
        self._check_own(reservation)
        if not reservation.charged:
            return Ending.UNCHARGED
        with stating_charge(SPENT, UNSURE), self._transaction(*keys_of(reservation.request.analyst)) as (inside, last):
            row = inside.entry(reservation.number)
            if row is None or row.hash != reservation.hash:
                return Ending.UNCHARGED  # its transaction was taken back
            if reservation.number not in reservations.decode_leases(inside.get("leases")):
                return _ending(inside, reservation)
            self._end_lease(inside, reservation)
            secret = reservation.withdraw()
            if not reservation.touched:
                head = self._cancel(inside, last, reservation, secret)
            else:
                record = Failed(reservation.number, reservation.hash, secret, why)
                head, entry = self._add(inside, last, max(last.time, reservation.entry.time), record)
                if why == ENGINE:
                    inside.put("fuse", Fuse.parse(inside.get("fuse")).failed(entry.number).text())
        self._note_head(head)
        return Ending.CHARGED if reservation.touched else Ending.UNCHARGED

    def abandon(self) -> None:
        """Ends every question that this object is still answering, before its process ends: what was charged stays charged."""
        for reservation in self._pending():
            with suppress(LedgerError):
                self.give_up(reservation, INTERRUPT)

    def reopen(self) -> Fuse:
        """Opens the catalog to new questions. Returns the fuse as it was before."""
        with stating_charge("nothing"), self._transaction() as (inside, last):
            head = self._end_dead(inside, last)
            fuse = Fuse.parse(inside.get("fuse"))
            if fuse != Fuse():
                head, _ = self._add(inside, head, self._time(head), Reopened(fuse.closed))
                inside.put("fuse", Fuse().text())
        self._note_head(head)
        return fuse

    def close_questions(self, by: str, words: str = "") -> Head:
        """Closes the catalog to new questions until it is reopened. Stored answers are still given."""
        record = Closed(analyst_name(by), words)
        with stating_charge("nothing"), self._transaction() as (inside, last):
            self._check_begun(last)
            head, entry = self._add(inside, last, self._time(last), record)
            inside.put("fuse", Fuse.parse(inside.get("fuse")).failed(entry.number).text())
        self._note_head(head)
        return head

    # --- the key ------------------------------------------------------------------------------------------------

    def rotate(self, new: Key, by: str, words: str = "") -> Head:
        """Has another key sign from here on. Both keys sign the entry. Refused while a question is being answered.

        What was signed before stays as it is. Processes with the old key can write nothing any more.
        """
        old, by = self._require_key(), analyst_name(by)
        if new.public in (key for _, key in self.keys().terms):
            raise ArgumentError("This key has signed this ledger already.", fix="make a new one.")
        handed = old.hand_over(new, self._identity.ledger)

        def sign(_: Entry, hash: str) -> str:
            message = rotation_message(hash)
            return f"{old.sign(message)} {new.sign(message)}"

        with stating_charge("nothing"), self._transaction() as (inside, last):
            self._check_begun(last)
            head = self._end_dead(inside, last)
            if reservations.decode_leases(inside.get("leases")):
                raise LedgerError(
                    "A question is being answered, and its answer will be signed with the present key.",
                    fix="wait until it is done, or stop the servers first.",
                )
            keys = Keys.parse(inside.get("keys"), *self._identity)
            record = Rotated(self._identity.ledger, old.public, new.public, secrets_digest(handed), by, words)
            head, entry = self._add(inside, head, self._time(head), record, sign)
            inside.put("keys", keys.rotated(entry.number, new.public).text())
            inside.put_aside("secrets", handed)
            inside.reseal_with(new)
        self._key = new.with_handed(handed, self._identity.ledger)
        self._note_head(head)
        if self._witness is not None:
            self._witness.add(self._identity.ledger, head)
        return head

    def check_key(self) -> None:
        """Refuses if another key is in force by now than the one that this ledger was opened with."""
        _check_in_force(self._require_key(), Keys.parse(self._store.get("keys"), *self._identity), self.name)

    def rotations(self) -> list[tuple[str, str]]:
        """Returns the body and the signatures of each rotation's entry, in order, for whoever has pinned an earlier key."""
        return self._rotations(self._store.get("keys"), self._store.entry)

    def _rotations(self, text: str | None, entry: Callable[[int], Row | None]) -> list[tuple[str, str]]:
        rows = [entry(number) for number, _ in Keys.parse(text, *self._identity).terms[1:]]
        return [("", "") if row is None else (row.body, row.signature) for row in rows]

    def _keys(self, text: str | None, entry: Callable[[int], Row | None] | None = None) -> Keys:
        """Returns the keys in this stored text, after checking each rotation by its entry, once."""
        known, keys = self._checked_keys
        if text == known:
            return keys
        keys = Keys.follow(*self._identity, self._rotations(text, entry or self._store.entry))
        if keys.text() != text:
            raise LedgerError("The ledger's keys are not those of its rotations.", fix="run `dither verify`.")
        self._checked_keys = text, keys
        return keys

    # --- approvals ----------------------------------------------------------------------------------------------

    def approvals(self) -> Approvals:
        """Returns the policy, what waits and what is approved."""
        return Approvals.parse(self._store.get("approvals"))

    def set_policy(self, above: Fraction | None, tables: Sequence[str] = ()) -> None:
        """Puts a policy in force: which questions need an approval. Writes nothing if it is in force already."""
        names = tuple(sorted(map(folded, tables)))
        now = self.approvals()
        if (now.above, now.tables) == (above, names):
            return
        with stating_charge("nothing"), self._transaction() as (inside, last):
            self._check_begun(last)
            head, _ = self._add(inside, last, self._time(last), Policy(above, names))
            changed = replace(Approvals.parse(inside.get("approvals")), above=above, tables=names)
            inside.put("approvals", changed.text())
        self._note_head(head)

    def decide(self, number: int, by: str, *, approve: bool, words: str = "", seconds: float = 0.0) -> Head:
        """Approves or denies the request in this entry. An approval may be used once, within `seconds`."""
        by = analyst_name(by)
        with stating_charge("nothing"), self._transaction() as (inside, last):
            approvals = Approvals.parse(inside.get("approvals"))
            approvals.check_decision(number, by, words)
            row, time = inside.entry(number), self._time(last)
            place = (number, row.hash if row else "")
            until = _text(self._clock().astimezone(UTC) + timedelta(seconds=seconds)) if approve else None
            record = Denied(*place, by, words) if until is None else Approved(*place, by, words, max(until, time))
            head, _ = self._add(inside, last, time, record)
            inside.put("approvals", approvals.decided(number, None if until is None else max(until, time), time).text())
        self._note_head(head)
        return head

    def _file_request(self, inside: Sealed, last: Head, request: Request) -> tuple[Head, int]:
        """Files a request for an approval, unless it waits already. Returns its entry."""
        approvals = Approvals.parse(inside.get("approvals"))
        waiting = approvals.request_of(request)
        if waiting is not None:
            return last, waiting
        same = {name: getattr(request, name) for name in ("question", "digest", "snapshot", "analyst", "tables")}
        record = Requested(**same, catalog=request.catalog_hash, loss=request.charge)
        head, entry = self._add(inside, last, self._time(last), record)
        inside.put("approvals", approvals.requested(entry.number, request).text())
        return head, entry.number

    def _check_begun(self, head: Head) -> None:
        if not head.number:
            raise LedgerError(f"The ledger {self.name} has no catalog yet.", fix="open the catalog with it.")

    def record_restore(self, checked: str) -> Head:
        """Records that the ledger continues from a backup that ends here. `checked` is the newest head it was compared with."""
        with stating_charge("nothing"), self._transaction() as (inside, last):
            head, _ = self._add(inside, last, self._time(last), Restored(last.number, checked))
        self._note_head(head)
        return head

    # --- reading ------------------------------------------------------------------------------------------------

    def preview(self, request: Request, declaration: Declaration, expected: tuple[str | None, ...]) -> Preview:
        """Returns what reserving this would do now if this declaration were registered first. Writes nothing."""
        return preview(self._store, self._keys, request, declaration, expected, _text(self._clock().astimezone(UTC)))

    def preview_share(
        self, entry: int, request: Request, declaration: Declaration, expected: tuple[str | None, ...]
    ) -> SharePreview:
        """Returns what sharing this stored answer would do now if this declaration were registered first. Writes nothing."""
        return preview_share(self._store, self._keys, entry, request, declaration, expected)

    def earlier(self, declaration: Declaration) -> EarlierAnswers:
        """Returns the stored answers under a catalog and its snapshot."""
        return EarlierAnswers(self._store, declaration.catalog_hash, declaration.snapshot)

    def stream(self, key: str) -> tuple[Position, str] | None:
        """Returns where a stream is, and its encrypted state; None if this ledger has no such stream."""
        texts = self._store.several("streams", state_key(key))
        position = decode_streams(texts.get("streams")).get(key)
        return None if position is None else (position, texts.get(state_key(key), ""))

    def stream_entries(self, key: str) -> list[tuple[Advanced, Receipt]]:
        """Returns the steps that a stream has released, in order, with their receipts. Refuses an entry that was changed."""
        position = decode_streams(self._store.get("streams")).get(key)
        return [] if position is None else read_steps(self._store.entry, self.keys(), key, position)

    def context(self, key: str, reserved: int) -> bytes:
        """Returns what the state of a stream is bound to: this ledger, the stream and the reservation of its last steps."""
        return canonical([self._identity.ledger, key, reserved]).encode("ascii")

    def secret(self, use: str) -> bytes:
        """Returns a secret derived from the curator's key, for one use."""
        return self._require_key().derive(use)

    def receipt(self, number: int, analyst: str) -> tuple[Receipt, bool]:
        """Returns the receipt of the answer in this entry, and whether this analyst got that answer."""
        row = self._store.entry(number)
        record = None if row is None else parse(row).record
        if row is None or not isinstance(record, Committed):
            raise LedgerError(f"Entry {number} is no answer.", fix="name the entry of an answer.")
        _, question, _, receipt = rules.read_answer(self._store.entry, self.keys(), row, record.digest)
        seen = question.analyst == analyst or self._store.latest(replay_key(number, analyst)) is not None
        return receipt, seen

    def balance(self) -> Balance:
        texts = self._store.several("caps", "total", "head")
        if "caps" not in texts:
            raise LedgerError(f"The ledger {self.name} has no catalog yet.", fix="open the catalog with it.")
        caps, sums, head = (
            state.decode_caps(texts["caps"]),
            state.decode_sums(texts.get("total")),
            Head.parse(texts.get("head")),
        )
        return Balance(caps, sums, caps.rule(sums), head.number, head)

    def quota(self, analyst: str) -> Sums:
        """Returns the sums of one analyst, replayed answers included."""
        return state.decode_sums(self._store.get(keys_of(analyst_name(analyst))[0]))

    def history(self) -> Iterator[Entry]:
        return map(parse, self._store.rows())

    def head(self) -> Head:
        """Returns the end of the chain. Keep its text elsewhere to detect a rollback."""
        return Head.parse(self._store.get("head"))

    def fuse(self) -> Fuse:
        """Returns whether the catalog is closed to new questions, and how many processes died with a charged question."""
        return Fuse.parse(self._store.get("fuse"))

    def close(self) -> None:
        self._renewal.stop()
        self._store.close()

    # --- steps --------------------------------------------------------------------------------------------------

    def _reserve(self, reservation: Reservation, stored: bool) -> Reservation | StoredAnswer | int:
        """Tries once, in one transaction. Returns a number if another reservation is answering the same question now."""
        request = reservation.request
        question = "" if request.fresh else request.digest
        refusal: BudgetError | ApprovalError | ArgumentError | LedgerError | None = None
        kept: StoredAnswer | None = None
        flight = 0
        try:
            with self._transaction(*keys_of(request.analyst), question=question) as (inside, last):
                head = self._end_dead(inside, last)
                before = inside.writes
                row = inside.latest(question) if question else None
                flight = 0 if row or not question else self._in_flight(inside, question)
                try:
                    if row is not None:
                        kept, head = self._replay(inside, head, request, row, uncounted=stored)
                    elif not flight:
                        if stored:
                            raise rules.not_stored()
                        head = self._charge(inside, head, reservation)
                except ApprovalError as error:
                    head, number = self._file_request(inside, head, request)
                    refusal = ApprovalError(error.why, request=number)
                except (BudgetError, ArgumentError, LedgerError) as error:
                    if inside.writes != before:
                        raise
                    refusal = error  # raised below, so that what _end_dead wrote stays
        except LedgerError as error:
            raise with_charge(error, "nothing", SHARED) if kept else error from None
        self._note_head(head)
        if refusal is not None:
            raise refusal
        if flight:
            return flight
        if kept is None:
            self._renewal.start()
        return kept or reservation

    def _add_to_witness(self, reservation: Reservation) -> None:
        """Adds the head with this charge to the witness before any row is read. Cancels the charge if that fails."""
        if self._witness is None:
            return
        try:
            self._witness.add(self._identity.ledger, Head(reservation.number, reservation.hash))
            # Compare again: if a copy of this ledger was charged meanwhile, only one of the two is first in the file.
            self._witness.compare(self._identity.ledger, self._store.entry, self.name)
        except LedgerError:
            self.cancel(reservation)
            raise

    def _charge(self, inside: Sealed, last: Head, reservation: Reservation) -> Head:
        """Checks every rule, adds the price to the sums, and starts the lease."""
        request = reservation.request
        if request.stream is not None:
            check_step(inside.get("streams"), request.stream)
        time = self._time(last)
        admitted = rules.admit(inside, request, time)
        before = History.parse(inside.get("history"))
        after = rules.add_tables(before, admitted.terms, request)
        now = self._clock()
        leases = reservations.decode_leases(inside.get("leases"))
        head, entry = self._add(inside, last, time, reservation.record.with_rule(admitted.rule))
        if admitted.approval is not None:
            inside.put("approvals", Approvals.parse(inside.get("approvals")).used(admitted.approval).text())
        reservation.admitted = admitted
        reservation.place(entry, head.hash)
        lease = Lease.new("" if request.fresh else request.digest, reservation.record.token, now, self._lease)
        inside.put("leases", reservations.encode_leases(leases | {entry.number: lease}))
        inside.put("total", state.encode_sums(admitted.total))
        inside.use(request.analyst, admitted.used)
        if after != before:
            inside.put("history", after.text())
        return head

    def _replay(
        self, inside: Sealed, last: Head, request: Request, row: Row, *, uncounted: bool = False
    ) -> tuple[StoredAnswer, Head]:
        """Returns the stored answer of this row. Counts it once in the quota of an analyst who has not seen it.

        `uncounted`: refuses instead of counting it in a quota.
        """
        shown = replay(inside, self._keys(inside.get("keys"), inside.entry), request, row)
        if shown.used is None:
            return shown.kept, last
        if uncounted and Terms.parse(inside.get("catalog") or "").per_analyst is not None:
            raise rules.not_seen(request.analyst)
        inside.use(request.analyst, shown.used)
        record = Replayed(row.number, row.hash, request.digest, request.analyst, shown.loss)
        head, _ = self._add(
            inside, last, self._time(last), record, lambda _, hash: self._require_key().sign(entry_message(hash))
        )
        return shown.kept, head

    def _cancel(self, inside: Sealed, last: Head, reservation: Reservation, secret: str) -> Head:
        place, admitted = (reservation.number, reservation.hash, secret), reservation.admitted
        approval = None if admitted is None else admitted.approval
        record = Cancelled(*place) if approval is None else CancelledApproved(*place, approval.request)
        if approval is not None:
            approvals = Approvals.parse(inside.get("approvals")).returned(approval, reservation.request)
            inside.put("approvals", approvals.text())
        analyst, charge = reservation.request.analyst, reservation.request.charge
        head, _ = self._add(inside, last, max(last.time, reservation.entry.time), record)
        inside.put("total", state.encode_sums(state.decode_sums(inside.get("total")).minus(charge)))
        inside.use(analyst, inside.used(analyst).minus(charge))
        return head

    # --- leases -------------------------------------------------------------------------------------------------

    def _end_dead(self, inside: Sealed, head: Head) -> Head:
        """Ends questions whose process died. They stay charged; the third one closes the catalog."""
        leases, now = reservations.decode_leases(inside.get("leases")), reservations.milliseconds(self._clock())
        dead = [number for number, lease in sorted(leases.items()) if not self._is_alive(lease, now)]
        if not dead:
            return head
        fuse = Fuse.parse(inside.get("fuse"))
        for number in dead:
            row = inside.entry(number)
            head, entry = self._add(inside, head, self._time(head), Lapsed(number, row.hash if row else ""))
            fuse = fuse.died(entry.number)
            del leases[number]
        inside.put("leases", reservations.encode_leases(leases))
        inside.put("fuse", fuse.text())
        return head

    def _end_lease(self, inside: Sealed, reservation: Reservation) -> None:
        """Removes the lease. Refuses if it is gone: another process took this one for dead and ended the question."""
        leases = reservations.decode_leases(inside.get("leases"))
        if leases.pop(reservation.number, None) is None:
            raise LedgerError(
                "This question took long without a sign of life, and was given up: its answer is not shown.",
                fix="ask again; if it happens again, look why the process stood still.",
            )
        inside.put("leases", reservations.encode_leases(leases))

    def _in_flight(self, inside: Sealed, question: str) -> int:
        """Returns the number of the reservation that is answering this question, or 0."""
        for number, lease in reservations.decode_leases(inside.get("leases")).items():
            if lease.question == question[: reservations.MARK]:
                reservation = find_reservation(lease.token) if lease.own else None
                if reservation is not None and reservation.in_this_thread:
                    fix = Fix("commit it first, or ask with {fresh}.", fresh=True)
                    raise LedgerError("This thread is answering the same question already.", fix=fix)
                return number
        return 0

    def _is_being_answered(self, flight: int, question: str) -> bool:
        """Returns whether this question is still being answered."""
        leases = reservations.decode_leases(self._store.get("leases"))
        lease = leases.get(flight)
        return (
            lease is not None
            and lease.question == question[: reservations.MARK]
            and self._is_alive(lease, reservations.milliseconds(self._clock()))
        )

    def _is_alive(self, lease: Lease, now: int) -> bool:
        """Returns whether the holder may still answer. A lease of this process needs its Reservation object to exist."""
        return lease.alive(now, self._lease) and not (lease.own and find_reservation(lease.token) is None)

    def _pending(self) -> list[Reservation]:
        with self._lock:
            return [each for each in self._reservations if each.charged and not each.settled]

    def _renew(self) -> None:
        numbers = [reservation.number for reservation in self._pending()]
        with self._transaction() as (inside, _):
            leases, now = reservations.decode_leases(inside.get("leases")), self._clock()
            renewed = {number: leases[number].renewed(now, self._lease) for number in numbers if number in leases}
            if renewed:
                inside.put("leases", reservations.encode_leases(leases | renewed))

    # --- steps --------------------------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, *keys: str, question: str = "") -> Iterator[tuple[Sealed, Head]]:
        """Opens a transaction, checks the seal of the stored sums, and seals them again at its end."""
        key = self._require_key()
        with self._store.transaction(*STATE_KEYS, *keys, question=question) as inside:
            head = self._head(inside)
            _check_in_force(key, Keys.parse(inside.get("keys"), *self._identity), self.name)
            sealed = Sealed(inside, key, self._identity.ledger)
            if not self._seen.number:  # once: later entries are this process's own
                ends_at(inside, head, self.name)
            if self._witness is not None:
                self._witness.compare(self._identity.ledger, inside.entry, self.name)
            yield sealed, head
            sealed.close()

    def _check_own(self, reservation: Reservation) -> Reservation:
        with self._lock:
            if reservation in self._reservations:
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
        """Appends the next entry. The seal signs the head, so all entries. Pass `sign` for those shown without the ledger."""
        entry = Entry(head.number + 1, head.hash, secrets.token_hex(16), time, record)
        body = entry.body
        hash = hash_of(body)
        signature = sign(entry, hash) if sign else ""
        inside.append(Row(entry.number, entry.kind, lookup_key(record), body, hash, signature))
        after = Head(entry.number, hash, time)
        inside.put("head", after.text())
        return after, entry

    def _require_key(self) -> Key:
        if self._key is None:
            raise LedgerError(f"The ledger {self.name} was opened to be read only.", fix="open it with its key.")
        return self._key

    def _head(self, inside: Transaction) -> Head:
        """Returns the head. Refuses one that is older than what this process has seen: an older copy was put in place."""
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

    def _note_head(self, head: Head) -> None:
        with self._lock:
            if head.number > self._seen.number:
                self._seen = head

    def _time(self, head: Head) -> str:
        """Returns the time now, or the previous entry's if the clock is behind: numbers, not clocks, order the entries."""
        now = self._clock().astimezone(UTC)
        text = _text(now)
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


def _check_in_force(key: Key, keys: Keys, name: str) -> None:
    """Refuses a key that does not sign this ledger now."""
    if key.public == keys.in_force:
        return
    for (_, old), (number, _) in zip(keys.terms, keys.terms[1:], strict=False):
        if key.public == old:
            raise LedgerError(
                f"The key of {name} was rotated by entry {number}, and this is an earlier one: it signs nothing any more.",
                fix="name the new key file, and restart what was started with the old one.",
            )
    raise LedgerError(f"This key is not the one {name} was made with.", fix="name the key file that was made with the ledger.")


def time_now() -> str:
    """Returns the time as entries write it."""
    return _text(utc())


def _text(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _ending(inside: Sealed, reservation: Reservation) -> Ending:
    """Returns how the reservation was settled, from the entry after it that did so."""
    number = reservation.number
    while (row := inside.entry(number := number + 1)) is not None:
        record = parse(row).record
        if isinstance(record, Settled) and record.reserved == reservation.number:
            if isinstance(record, Cancelled | CancelledApproved):
                return Ending.UNCHARGED
            return Ending.ANSWERED if isinstance(record, Committed | Advanced) else Ending.CHARGED
    return Ending.CHARGED
