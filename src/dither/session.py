"""Charging for a question: its price is on the disk before any row is read, its answer before anyone sees it.

    attempt ─▶ unchanged? ─▶ catalog in force ─▶ reserve ─▶ compute ─▶ commit ─▶ show

`Session.charged` is that path, for every kind of question. Whatever stops it, the ledger's lock is free afterwards, the
question is settled as far as it got, and whoever asked is told what was charged.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from dither import paying
from dither.diagnosis import Diagnosis
from dither.errors import ClosedError, EngineError, Interrupted, LedgerError
from dither.ledger.entries import ENGINE, INTERRUPT, LEDGER
from dither.ledger.ledger import Declaration, Ending, Kept, Ledger, Receipt, Request, Reservation
from dither.planning.finish import Noisy
from dither.planning.identity import Identity

Shown = TypeVar("Shown")
AGAIN = "nothing, it was given again; in the quota of who had not seen it, it counts"
STAYS = "and it stays charged"
KEPT = "and the answer is kept: asking the same again shows it"


@dataclass(frozen=True)
class Paid:
    """A noisy answer that is paid for: computed now, or given again from the ledger."""

    noisy: Sequence[Noisy]
    receipt: Receipt
    stored: Kept | None = None


class Session:
    """An open catalog and its ledger."""

    def __init__(
        self,
        ledger: Ledger,
        declaration: Declaration,
        before: str | None,
        unchanged: Callable[[], None],
        diagnosis: Diagnosis | None = None,
    ) -> None:
        self.ledger = ledger
        self.declaration = declaration
        self.before = before  # the catalog that was in force when this session began
        self.diagnosis = diagnosis or Diagnosis()
        self._unchanged = unchanged  # raises if the catalog file or the sources are not those that were opened
        self._declared = threading.Event()
        self._unsettled: list[tuple[Reservation, str]] = []  # what the ledger could not be told when it broke off, and why

    def charged(
        self, request: Request, identity: Identity, compute: Callable[[], Sequence[Noisy]], show: Callable[[Paid], Shown]
    ) -> Shown:
        """Reserve, compute, commit, show; or show what was answered before."""
        attempt = self.ledger.attempt(request)
        paid: Paid | None = None
        try:
            paid = self._paid(attempt, identity, compute)
            return show(paid)
        except BaseException as stopped:
            told = self._settled(attempt, paid, stopped)
        raise told

    def reopened(self) -> None:
        """The ledger was reopened: forget what closed it."""
        self.diagnosis.clear()

    def _paid(self, attempt: Reservation, identity: Identity, compute: Callable[[], Sequence[Noisy]]) -> Paid:
        self._unchanged()
        self._declare()
        found = self._reserve(attempt)
        if isinstance(found, Kept):
            return Paid(identity.read(found.payload), found.receipt, found)
        self._unchanged()  # again, because paying takes time
        attempt.touch()
        noisy = compute()
        return Paid(noisy, self.ledger.commit(attempt, identity.write(noisy)))

    def _reserve(self, attempt: Reservation) -> Reservation | Kept:
        self._settle_rest()
        return self.ledger.reserve(attempt)

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

    def _declare(self) -> None:
        """The first question puts the catalog in force, and with it the budget, for ever; opening and quoting do not."""
        if not self._declared.is_set():
            self.ledger.register(self.declaration, expected=(self.before,))
            self.before = self.ledger.store.get("catalog")
            self._declared.set()

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
        price = paying.words(attempt.request.charge)
        try:
            ending = self._give_up(attempt, INTERRUPT)
        except LedgerError:
            return f"{price}, unless `dither history` shows that it was given back"
        return {Ending.UNCHARGED: "nothing", Ending.CHARGED: f"{price}, {STAYS}", Ending.ANSWERED: f"{price}, {KEPT}"}[ending]

    def _failure(self, attempt: Reservation, paid: Paid | None, error: Exception) -> Exception:
        if paid is not None or not attempt.charged:
            return error
        price = paying.words(attempt.request.charge)
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
