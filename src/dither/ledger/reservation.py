"""A question on its way through the ledger. Whoever holds this object, and nobody else, may commit or cancel it, once.

It is made before anything is written, so that whoever is interrupted at any point still holds what tells whether the price
was charged.
"""

from __future__ import annotations

import secrets
import threading
import weakref
from typing import Any, NoReturn

from dither.errors import LedgerError
from dither.ledger.admission import Admitted
from dither.ledger.asked import Request
from dither.ledger.entries import Entry, Reserved
from dither.ledger.leases import MARK
from dither.process import Origin

_LIVE: weakref.WeakValueDictionary[str, Reservation] = weakref.WeakValueDictionary()  # all of this process, by their mark


def held_here(token: str) -> Reservation | None:
    """The reservation of this process whose token begins so. None: whoever made it let go of it without settling it."""
    return _LIVE.get(token)


class Reservation:
    """Made by Ledger.attempt. The secret is in this process's memory only, so that a copy of the ledger cannot settle it."""

    def __init__(self, ledger: str, request: Request) -> None:
        self.request = request
        self.record = request.reserved(secret := secrets.token_hex(32))
        self.admitted: Admitted | None = None  # the sums with its price in them, once it is charged
        self._ledger = ledger
        self._secret = secret
        self._origin = Origin()
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._written: tuple[Entry, str] | None = None
        self._touched = False
        self._settled = False
        _LIVE[self.record.token[:MARK]] = self

    @property
    def charged(self) -> bool:
        """Whether an entry was made for it. Until its transaction is over it may still be taken back."""
        return self._written is not None

    @property
    def entry(self) -> Entry:
        return self._place()[0]

    @property
    def hash(self) -> str:
        return self._place()[1]

    @property
    def number(self) -> int:
        return self.entry.number

    @property
    def rule(self) -> str:
        """Which of the two sums admitted the question: "sum" or "zcdp"."""
        return self.entry.record.rule if isinstance(self.entry.record, Reserved) else ""

    @property
    def touched(self) -> bool:
        """Whether the engine was called, or may have been."""
        return self._touched

    @property
    def settled(self) -> bool:
        """Whether somebody has begun to commit, cancel or fail it."""
        return self._settled

    @property
    def mine(self) -> bool:
        """Whether this very thread holds it: it would wait for itself."""
        return self._thread == threading.get_ident()

    def place(self, entry: Entry, hash: str) -> None:
        """The entry that charges for it, about to be written."""
        self._written = entry, hash

    def touch(self) -> None:
        """The engine is about to be called: from here on the price is spent, whatever happens."""
        self._same_process()
        with self._lock:
            self._open()
            self._touched = True

    def settle(self, ledger: str, *, cancel: bool) -> str:
        """The secret, once: to a commit, or to a cancel if the engine was not called. A failed attempt is not repeated,
        because nobody can tell whether the store wrote it."""
        self._same_process()
        with self._lock:
            self._open()
            if ledger != self._ledger:
                raise LedgerError("This reservation is of another ledger.", fix="settle it where it was made.")
            if cancel and self._touched:
                raise LedgerError(
                    "This question reached the data, so its price is spent.",
                    fix="nothing: only a question that never reached the engine can be cancelled.",
                    charged="the price of the question",
                )
            self._settled = True
            return self._secret

    def withdraw(self) -> str:
        """The secret, to whoever ends the question without an answer: even if a commit or cancel was begun and broke off."""
        self._same_process()
        with self._lock:
            self._settled = True
            return self._secret

    def _place(self) -> tuple[Entry, str]:
        if self._written is None:
            raise LedgerError("Nothing was reserved for this question.", fix="reserve it first.")
        return self._written

    def _open(self) -> None:
        self._place()
        if self._settled:
            raise LedgerError("This reservation was committed or cancelled already.", fix="ask again.")

    def _same_process(self) -> None:
        self._origin.check(
            "This reservation belongs to another process.", "settle it in the process that made it.", LedgerError
        )

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise LedgerError("A reservation cannot be copied: it can be settled only once.", fix="share the one object.")

    def __repr__(self) -> str:
        where = f"entry {self.number}, rule {self.rule!r}" if self.charged else "not charged"
        return f"Reservation({where})"
