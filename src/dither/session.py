"""Charging for a question: its price is on the disk before any row is read, its answer before anyone sees it.

    attempt ─▶ unchanged? ─▶ catalog in force ─▶ reserve ─▶ compute ─▶ commit ─▶ show

`Session.charged` is that path, for every kind of question. Whatever stops it, the ledger's lock is free afterwards, the
question is settled as far as it got, and whoever asked is told what was charged.
"""

from __future__ import annotations

import threading
import traceback
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from dither.diagnosis import Diagnosis
from dither.errors import ArgumentError, ClosedError, DitherError, EngineError, Fix, Interrupted, LedgerError
from dither.ledger.ledger import Ending, Ledger
from dither.ledger.receipts import Receipt
from dither.ledger.records import ENGINE, INTERRUPT, LEDGER, Declaration, Request, analyst_name
from dither.ledger.reservations import Reservation
from dither.ledger.rules import Kept, Preview
from dither.planning.outputs import Noisy
from dither.planning.price import Price
from dither.planning.program import Program
from dither.privacy.filters import Caps, Sums
from dither.standing import Standing

Shown = TypeVar("Shown")
ANYONE = "anyone"  # who asks where nobody says so: all of them share one quota
AGAIN = "nothing, it was given again; in the quota of who had not seen it, it counts"
STAYS = "and it stays charged"
KEPT = "and the answer is kept: asking the same again shows it"


@dataclass(frozen=True)
class Paid:
    """A noisy answer that is paid for: computed now, or given again from the ledger."""

    noisy: Sequence[Noisy]
    receipt: Receipt
    stored: Kept | None
    request: Request
    standing: tuple[Caps, Sums] | None  # of the budget, as the transaction that charged for it left it
    counted: bool = False  # an answer that is given again, in a quota

    @property
    def charged(self) -> str:
        """What was charged for it now, in words."""
        if self.stored is None:
            return _words(self.request)
        return f"nothing, given again from entry {self.receipt.body['entry']['number']}"

    def left(self) -> str:
        """What is left of the budget, in words. A replay counts in the quota of whoever sees the answer first."""
        if self.standing is None:
            return ""
        counts = f"; its price, {_words(self.request)}, counts in the quota of {self.request.analyst}" if self.counted else ""
        return Standing(*self.standing).remaining + counts


class Busy:
    """Refuses to close a session while a question is running, in any thread.

    with busy.working():         one question
        busy.wait_for_closing()
    with busy.closing:           whoever closes the session
        busy.check()

    A Ctrl-C can come between any two steps of a context manager written in Python, and then its exit is never run. Locks are
    taken and released by the interpreter itself, in one step each: so a running question is a lock that is held, not a number.
    """

    def __init__(self) -> None:
        self.closing = threading.Lock()
        self._questions: list[weakref.ref[threading.Lock]] = []  # without callbacks: a Ctrl-C in one would be lost

    def working(self) -> threading.Lock:
        """A lock to hold while a question runs."""
        question = threading.Lock()
        with self.closing:
            self._questions = [*(each for each in self._questions if each() is not None), weakref.ref(question)]
        return question

    def wait_for_closing(self) -> None:
        """Waits until nobody is closing the session. Call it when the lock is held, before anything is charged: whoever
        closes the session from now on finds the lock held."""
        with self.closing:
            pass

    def check(self) -> None:
        """Refuses to close while a question runs. Call it with `closing` held."""
        if any(question.locked() for each in self._questions if (question := each()) is not None):
            raise DitherError("A question is still being answered.", fix="close the session when the answer is there.")


class Session:
    """An open catalog and its ledger.

    `files` and `current` tell whether the sources and the catalog file are those that were opened, if they can change;
    `before` is the catalog that was in force then.
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
        busy: Busy | None = None,
    ) -> None:
        self.ledger = ledger
        self.declaration = declaration
        self.caps = declaration.caps
        self.analyst = None if analyst is None else analyst_name(analyst)
        self.diagnosis = diagnosis or Diagnosis()
        self.busy = busy or Busy()
        self._before = before
        self.files = files
        self.current = current
        self._declared = False
        self._unsettled: list[tuple[Reservation, str]] = []  # what the ledger could not be told when it broke off, and why

    def request(self, program: Program, question: str, analyst: str | None = None, fresh: bool = False) -> Request:
        """What the ledger is told of a program. It sees the question, the catalog and the price: no rows."""
        declared, who = self.declaration, self.analyst if analyst is None else analyst
        if who is None and declared.analysts is not None and ANYONE not in declared.analysts:
            # No name is offered: names are not proved, and another's would spend another's quota.
            fix = Fix("name yourself as the curator declared you: {analyst}.", analyst="YOUR-NAME")
            raise ArgumentError("It is not said who asks, and this catalog names who may.", fix=fix)
        return Request(
            question=question,
            plan=program.identity,
            tables=program.tables,
            unit=program.unit,
            mechanisms=program.mechanisms,
            charge=program.charge.rounded_up(self.caps.least_rho),
            catalog_hash=declared.catalog_hash,
            snapshot=declared.snapshot,
            neighbours=declared.neighbours,
            analyst=ANYONE if who is None else who,
            fresh=fresh,
        )

    def preview(self, request: Request) -> Preview:
        """What charging for this would come to now. Writes nothing."""
        return self.ledger.preview(request, self.declaration, (self._before,))

    def charged(
        self, program: Program, request: Request, compute: Callable[[], Sequence[Noisy]], show: Callable[[Paid], Shown]
    ) -> Shown:
        """Reserve, compute, commit, show; or show what was answered before.

        `show` makes of it what is returned. It is called in here so that whoever interrupts it is told that the answer is kept.
        """
        with self.busy.working():
            attempt = self.ledger.attempt(request)
            paid: Paid | None = None
            try:
                paid = self._paid(program, attempt, compute)
                return show(paid)
            except BaseException as stopped:
                told = self._settled(attempt, paid, stopped)
            raise told

    def reopen(self) -> int:
        """Lets new questions in again. The entry that had closed the catalog, or 0."""
        forgiven = self.ledger.reopen()
        self.diagnosis.clear()
        return forgiven.closed

    # --- the path -----------------------------------------------------------------------------------------------

    def _paid(self, program: Program, attempt: Reservation, compute: Callable[[], Sequence[Noisy]]) -> Paid:
        self.busy.wait_for_closing()
        self._unchanged()
        self._declare()
        if self._unsettled:
            self._settle_rest()
        found = self.ledger.reserve(attempt)
        if isinstance(found, Kept):
            counted = self.declaration.per_analyst is not None and found.charged
            standing = (found.caps, found.total)
            return Paid(program.read(found.payload), found.receipt, found, attempt.request, standing, counted)
        self._unchanged()  # again, because paying takes time
        attempt.touch()
        noisy = compute()
        receipt = self.ledger.commit(attempt, program.write(noisy))
        admitted = attempt.admitted
        return Paid(noisy, receipt, None, attempt.request, None if admitted is None else (admitted.caps, admitted.total))

    def _unchanged(self) -> None:
        """Two versions of the data must not pass for one snapshot, nor two declarations for one catalog."""
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

    def _declare(self) -> None:
        """The first question puts the catalog in force, and with it the budget, for ever; opening and quoting do not."""
        if not self._declared:
            self.ledger.register(self.declaration, expected=(self._before,))
            self._before = self.ledger.store.get("catalog")
            self._declared = True  # no Event: a Ctrl-C inside one would leave it locked

    # --- what stops it ------------------------------------------------------------------------------------------

    def _settle_rest(self) -> None:
        """Tells the ledger what it could not be told before. An engine's failure closes the catalog even untold."""
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

    def _settled(self, attempt: Reservation, paid: Paid | None, stopped: BaseException) -> BaseException:
        """What to raise, with what was charged, after everything that was begun is ended."""
        if isinstance(stopped, Exception):
            return self._failure(attempt, paid, stopped)
        traceback.clear_frames(stopped.__traceback__)  # ends what a half-left `with` still holds, a lock say
        charged = self._charged(attempt, paid)
        return Interrupted(charged) if isinstance(stopped, KeyboardInterrupt) else stopped

    def _charged(self, attempt: Reservation, paid: Paid | None) -> str:
        """What an interrupt leaves charged, in words."""
        if paid is not None and paid.stored is not None:
            return AGAIN
        price = _words(attempt.request)
        try:
            ending = self._give_up(attempt, INTERRUPT)
        except LedgerError:
            return f"{price}, unless `dither history` shows that it was given back"
        return {Ending.UNCHARGED: "nothing", Ending.CHARGED: f"{price}, {STAYS}", Ending.ANSWERED: f"{price}, {KEPT}"}[ending]

    def _failure(self, attempt: Reservation, paid: Paid | None, error: Exception) -> Exception:
        if paid is not None or not attempt.charged:
            return error
        price = _words(attempt.request)
        if not attempt.touched:
            return self._given_back(attempt, error)
        if isinstance(error, LedgerError):  # the answer could not be kept, so it is not given
            with suppress(LedgerError):
                self._give_up(attempt, LEDGER)
            return LedgerError(error.what, where=error.where, fix=error.fix, charged=price)
        self.diagnosis.add(attempt.request.question, error)
        with suppress(LedgerError):
            self._give_up(attempt, ENGINE)
        return EngineError(price)

    def _given_back(self, attempt: Reservation, error: Exception) -> Exception:
        """The error, after the price of a question that never reached the engine is given back; or why it was not."""
        try:
            self._give_up(attempt, LEDGER)
        except LedgerError as kept:
            unsure = isinstance(error, LedgerError) and error.charged != "nothing"
            return error if unsure else kept  # what either says of the charge is true
        if isinstance(error, LedgerError) and error.charged != "nothing":  # it could not tell, and now it is known
            return LedgerError(error.what, where=error.where, fix=error.fix)
        return error


def _words(request: Request) -> str:
    """The price in words."""
    return str(Price(request.charge.epsilon, request.charge.delta))
