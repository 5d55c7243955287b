"""Charges for a question: its price is on disk before any row is read, its answer before it is shown.

    attempt ─▶ unchanged? ─▶ catalog in force ─▶ reserve ─▶ compute ─▶ commit ─▶ show

`Session.charged` is that path, for every kind of question. If anything stops it, the ledger's lock is freed, the question is
settled as far as it got, and the error says what was charged.
"""

from __future__ import annotations

import threading
import traceback
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import TypeVar

from dither.diagnosis import Diagnosis
from dither.errors import ArgumentError, ClosedError, DitherError, EngineError, Fix, Interrupted, LedgerError
from dither.ledger.earlier import Answered
from dither.ledger.ledger import Ending, Ledger
from dither.ledger.receipts import Receipt
from dither.ledger.records import ENGINE, INTERRUPT, LEDGER, Declaration, Request, StreamStep, analyst_name
from dither.ledger.reservations import Reservation
from dither.ledger.rules import Preview, SharePreview, StoredAnswer
from dither.planning.free.index import StoredIndex
from dither.planning.free.stored import Rows, parts_of
from dither.planning.outputs import Noisy
from dither.planning.price import Price
from dither.planning.program import Program
from dither.planning.records import encode_noisy
from dither.privacy.filters import Caps, Sums
from dither.standing import Standing

Shown = TypeVar("Shown")
Commit = Callable[[Reservation, str], Receipt]
ANYONE = "anyone"  # the analyst if none is named: all of them share one quota
_REPLAYED = "nothing, it was given again; it counts in the quota of an analyst who had not seen it"
_STAYS = "and it stays charged"
_KEPT = "and the answer is kept: asking the same again shows it"


@dataclass(frozen=True)
class Paid:
    """A noisy answer that is paid for: computed now, or a stored answer from the ledger."""

    noisy: Sequence[Noisy]
    receipt: Receipt
    stored: StoredAnswer | None
    request: Request
    standing: tuple[Caps, Sums] | None  # the budget after the transaction that charged for it
    counted: bool = False  # a stored answer that counts in a quota

    @property
    def charged(self) -> str:
        """Shows what was charged for it now."""
        if self.stored is None:
            return _words(self.request)
        return f"nothing, given again from entry {self.receipt.body['entry']['number']}"

    def left(self) -> str:
        """Shows what is left of the budget. A stored answer counts in the quota of an analyst who has not seen it before."""
        if self.standing is None:
            return ""
        counts = f"; its price, {_words(self.request)}, counts in the quota of {self.request.analyst}" if self.counted else ""
        return Standing(*self.standing).remaining + counts


@dataclass(frozen=True)
class Shared:
    """Noisy numbers of stored answers, put together, with their receipt. `counted`: the questions that now count in a quota."""

    noisy: Noisy
    receipt: Receipt
    standing: tuple[Caps, Sums]
    counted: tuple[Request, ...] = ()

    def left(self) -> str:
        """Shows what is left of the budget, and what was counted in the quota of an analyst who had not seen the answers."""
        prices = " and ".join(_words(each) for each in self.counted)
        counts = (
            f"; the price of what it is made of, {prices}, counts in the quota of {self.counted[0].analyst}" if prices else ""
        )
        return Standing(*self.standing).remaining + counts


class CloseGuard:
    """Refuses to close a session while a question is running, in any thread.

    with guard.question_lock():    one question
        guard.wait_for_closing()
    with guard.closing:            closing the session
        guard.check()

    A Ctrl-C can come between any two steps of a context manager written in Python, and then its exit never runs. The
    interpreter takes and releases a lock in one step. So a running question is a held lock, not a counter.
    """

    def __init__(self) -> None:
        self.closing = threading.Lock()
        self._questions: list[weakref.ref[threading.Lock]] = []  # no callbacks: a Ctrl-C in one would be lost

    def question_lock(self) -> threading.Lock:
        """Returns a lock to hold while a question runs."""
        question = threading.Lock()
        with self.closing:
            self._questions = [*(each for each in self._questions if each() is not None), weakref.ref(question)]
        return question

    def wait_for_closing(self) -> None:
        """Waits while the session is being closed. Call it with the question's lock held, before anything is charged: a later
        close then finds the lock held."""
        with self.closing:
            pass

    def check(self) -> None:
        """Refuses to close while a question runs. Call it with `closing` held."""
        if any(question.locked() for each in self._questions if (question := each()) is not None):
            raise DitherError("A question is still being answered.", fix="close the session when the answer is there.")


class Session:
    """An open catalog and its ledger.

    `files` and `current` return whether the sources and the catalog file are unchanged, if they can change; `before` is the
    catalog that was in force on opening. `mark` marks the data that a new answer is about (ledger/marks.py). `snapshot` shows
    the data of one moment to all parts of a question. `clock` is around the reading of rows, and ends when it may be told that
    they were read: nothing is written between (server/clock.py).
    """

    def __init__(
        self,
        ledger: Ledger,
        declaration: Declaration,
        before: str | None,
        *,
        files: Callable[[], bool] | None = None,
        current: Callable[[], bool] | None = None,
        analyst: str | None = None,
        diagnosis: Diagnosis | None = None,
        close_guard: CloseGuard | None = None,
        mark: Callable[[], None] | None = None,
        snapshot: Callable[[], AbstractContextManager[None]] = nullcontext,
        clock: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.ledger = ledger
        self.declaration = declaration
        self.caps = declaration.caps
        self.analyst = None if analyst is None else analyst_name(analyst)
        self.diagnosis = diagnosis or Diagnosis()
        self.close_guard = close_guard or CloseGuard()
        self._before = before
        self.files = files
        self.current = current
        self._mark = mark
        self._snapshot = snapshot
        self.clock = clock
        self._declared = False
        self._earlier, self._stored = ledger.earlier(declaration), StoredIndex()
        self._looking = threading.Lock()  # guards both
        self._unsettled: list[tuple[Reservation, str]] = []  # stopped questions that could not be settled yet, and why

    def request(
        self,
        program: Program,
        question: str,
        analyst: str | None = None,
        fresh: bool = False,
        stream: StreamStep | None = None,
    ) -> Request:
        """Returns the ledger's request for a program: the question, the catalog and the price, no rows."""
        declared, who = self.declaration, self.who(analyst)
        return Request(
            question=question,
            plan=program.identity,
            tables=program.tables,
            unit=program.unit,
            mechanisms=program.mechanisms,
            charge=program.charge.with_least_rho(self.caps.least_rho),
            catalog_hash=declared.catalog_hash,
            snapshot=declared.snapshot,
            neighbours=declared.neighbours,
            analyst=who,
            fresh=fresh,
            stream=stream,
        )

    def who(self, analyst: str | None) -> str:
        """Returns who asks. Refuses to ask for nobody if the catalog lists who may."""
        who = self.analyst if analyst is None else analyst
        if who is None and self.declaration.analysts is not None and ANYONE not in self.declaration.analysts:
            # The fix offers no name: names are not verified, and using another analyst's would spend that quota.
            fix = Fix("name yourself as the curator declared you: {analyst}.", analyst="YOUR-NAME")
            raise ArgumentError("No analyst is named, and this catalog lists who may ask.", fix=fix)
        return ANYONE if who is None else who

    def earlier(self, rows: Rows, unit: str | None, after: int = 0) -> tuple[list[Answered], int]:
        """Returns the stored answers that may serve a question about these rows, under the catalog and snapshot of this
        session; only those after an entry. Also returns the last entry that was looked at."""
        with self._looking:
            for each in self._earlier.read_on():
                self._stored.add(parts_of(each.entry, each.question.plan))
            found = [self._earlier.answer(entry) for entry in self._stored.find(rows, unit, after)]
            return [each for each in found if each is not None], self._earlier.last

    def preview_share(self, answered: Answered, analyst: str | None) -> SharePreview:
        """Returns what showing a stored answer to this analyst would do now. Writes nothing."""
        again = self._again(answered, self.who(analyst))
        return self.ledger.preview_share(answered.entry, again, self.declaration, (self._before,))

    def shared(
        self,
        question: str,
        unit: str,
        made_of: Sequence[Answered],
        numbers: Callable[[Mapping[int, str]], Noisy],
        analyst: str | None,
    ) -> Shared:
        """Returns an answer made of stored ones, by `numbers`, from their texts. Charges nothing and calls no engine.

        The stored answers count in the quota of an analyst who had not seen them. The catalog must be the one in force, and the
        sources must be unchanged, as for stored answers.
        """
        with self.close_guard.question_lock():
            self.close_guard.wait_for_closing()
            self.check_unchanged()
            self.declare()
            again = {each.entry: self._again(each, self.who(analyst)) for each in made_of}
            who = next(iter(again.values())).analyst
            try:
                kept = self.ledger.share(again)
                noisy = numbers({entry: one.payload for entry, one in kept.items()})
                facts = {"question": question, "catalog": self.declaration.catalog_hash, "snapshot": self.declaration.snapshot}
                facts |= {"unit": unit, "neighbours": self.declaration.neighbours, "analyst": who}
                receipt = self.ledger.sign_derived(facts, [kept[entry] for entry in sorted(kept)], encode_noisy([noisy]))
            except KeyboardInterrupt as stopped:
                traceback.clear_frames(stopped.__traceback__)
                raise Interrupted(_REPLAYED) from None
            last = kept[max(kept)]
            counted = [again[entry] for entry, one in kept.items() if one.charged]
            shown = counted if self.declaration.per_analyst is not None else []
            return Shared(noisy, receipt, (last.caps, last.total), tuple(shown))

    def _again(self, answered: Answered, who: str) -> Request:
        """Returns the question of a stored answer, asked again by this analyst."""
        asked, declared = answered.question, self.declaration
        return Request(
            question=asked.question,
            plan=asked.plan,
            tables=asked.tables,
            unit=asked.unit,
            mechanisms=asked.mechanisms,
            charge=asked.loss,
            catalog_hash=declared.catalog_hash,
            snapshot=declared.snapshot,
            neighbours=declared.neighbours,
            analyst=who,
        )

    def preview(self, request: Request) -> Preview:
        """Returns what charging for this would do now. Writes nothing."""
        return self.ledger.preview(request, self.declaration, (self._before,))

    def charged(
        self,
        program: Program,
        request: Request,
        compute: Callable[[], Sequence[Noisy]],
        show: Callable[[Paid], Shown],
        commit: Commit | None = None,
        *,
        stored: bool = False,
    ) -> Shown:
        """Reserves, computes, commits and shows; or shows the stored answer.

        `stored`: only shows a stored answer, and never charges.
        `show` makes the result. It is called in here, so that an interrupt during it can say that the answer is stored.
        `commit` stores what was computed, if that is more than an answer: steps of a stream, with their state.
        """
        with self.close_guard.question_lock():
            attempt = self.ledger.attempt(request)
            paid: Paid | None = None
            try:
                paid = self._paid(program, attempt, compute, commit, stored)
                return show(paid)
            except BaseException as stopped:
                error = self._settle(attempt, paid, stopped)
            raise error

    def reopen(self) -> int:
        """Opens the catalog to new questions again. Returns the entry that had closed it, or 0."""
        fuse = self.ledger.reopen()
        self.diagnosis.clear()
        return fuse.closed

    # --- the path -----------------------------------------------------------------------------------------------

    def _paid(
        self,
        program: Program,
        attempt: Reservation,
        compute: Callable[[], Sequence[Noisy]],
        commit: Commit | None,
        stored_only: bool,
    ) -> Paid:
        self.close_guard.wait_for_closing()
        self.check_unchanged()
        self.declare()
        if self._unsettled:
            self._settle_rest()
        stored = self.ledger.reserve(attempt, stored=stored_only)
        if isinstance(stored, StoredAnswer):
            counted = self.declaration.per_analyst is not None and stored.charged
            standing = (stored.caps, stored.total)
            return Paid(program.read(stored.payload), stored.receipt, stored, attempt.request, standing, counted)
        if self._mark is not None:
            self._mark()
        self.check_unchanged()  # again, because reserving takes time
        attempt.touch()
        with self.clock(), self._snapshot():
            noisy = compute()
            payload = program.write(noisy)
        receipt = self.ledger.commit(attempt, payload) if commit is None else commit(attempt, payload)
        admitted = attempt.admitted
        return Paid(noisy, receipt, None, attempt.request, None if admitted is None else (admitted.caps, admitted.total))

    def check_unchanged(self) -> None:
        """Refuses changed files: two versions of the data must not share a snapshot, nor two declarations a catalog."""
        if self.current and not self.current():
            raise LedgerError(
                "The catalog file was changed while this session was open.",
                fix="the curator opens the catalog again; what was spent stays spent.",
            )
        if self.files and not self.files():
            raise DitherError(
                "The files of this catalog are no longer those that were opened.",
                fix="the curator opens the catalog again, with a new `snapshot` label if the data is a new version.",
            )

    def declare(self) -> None:
        """Puts the catalog in force, and with it the budget, permanently. Only the first question does; quotes do not."""
        if not self._declared:
            self.ledger.register(self.declaration, expected=(self._before,))
            self._before = self.ledger.store.get("catalog")
            self._declared = True  # not an Event: a Ctrl-C inside one would leave it locked

    # --- what stops it ------------------------------------------------------------------------------------------

    def _settle_rest(self) -> None:
        """Settles stopped questions that could not be settled before. Refuses new ones after an engine's failure."""
        for left in list(self._unsettled):
            try:
                self.ledger.give_up(*left)
            except LedgerError:
                if left[1] == ENGINE:
                    raise ClosedError from None
            else:
                self._unsettled.remove(left)

    def _give_up(self, attempt: Reservation, why: str) -> Ending:
        try:
            return self.ledger.give_up(attempt, why)
        except LedgerError:
            self._unsettled.append((attempt, why))
            raise

    def _settle(self, attempt: Reservation, paid: Paid | None, stopped: BaseException) -> BaseException:
        """Settles a stopped question, and returns the error to raise, which says what was charged."""
        if isinstance(stopped, Exception):
            return self._failure(attempt, paid, stopped)
        traceback.clear_frames(stopped.__traceback__)  # frees what an interrupted `with` still holds, such as a lock
        charged = self._charged(attempt, paid)
        return Interrupted(charged) if isinstance(stopped, KeyboardInterrupt) else stopped

    def _charged(self, attempt: Reservation, paid: Paid | None) -> str:
        """Shows what stays charged after an interrupt."""
        if paid is not None and paid.stored is not None:
            return _REPLAYED
        price = _words(attempt.request)
        try:
            ending = self._give_up(attempt, INTERRUPT)
        except LedgerError:
            return f"{price}, unless `dither history` shows that it was given back"
        return {Ending.UNCHARGED: "nothing", Ending.CHARGED: f"{price}, {_STAYS}", Ending.ANSWERED: f"{price}, {_KEPT}"}[ending]

    def _failure(self, attempt: Reservation, paid: Paid | None, error: Exception) -> Exception:
        if paid is not None or not attempt.charged:
            return error
        price = _words(attempt.request)
        if not attempt.touched:
            return self._give_back(attempt, error)
        if isinstance(error, LedgerError):  # the answer could not be stored, so it is not shown
            with suppress(LedgerError):
                self._give_up(attempt, LEDGER)
            return LedgerError(error.what, where=error.where, fix=error.fix, charged=price)
        self.diagnosis.add(attempt.request.question, error)
        with suppress(LedgerError):
            self._give_up(attempt, ENGINE)
        return EngineError(price)

    def _give_back(self, attempt: Reservation, error: Exception) -> Exception:
        """Gives back the price of a question that never reached the engine. Returns the error to raise."""
        try:
            self._give_up(attempt, LEDGER)
        except LedgerError as refused:
            unsure = isinstance(error, LedgerError) and error.charged != "nothing"
            return error if unsure else refused  # both state the charge truthfully
        if isinstance(error, LedgerError) and error.charged != "nothing":  # the charge was unknown, and now it is nothing
            return LedgerError(error.what, where=error.where, fix=error.fix)
        return error


def _words(request: Request) -> str:
    """Shows the price of a request. The steps of a stream are paid for when it is opened."""
    if request.stream is not None and request.stream.at is not None:
        return "nothing more: the price of the stream"
    return str(Price(request.charge.epsilon, request.charge.delta))
