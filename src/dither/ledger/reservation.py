"""A paid question on its way. Whoever holds this object, and nobody else, may commit or cancel it, once."""

from __future__ import annotations

import os
import threading
from typing import Any, NoReturn

from dither.errors import LedgerError
from dither.ledger.asked import Request
from dither.ledger.entries import Entry, Reserved


class Reservation:
    """Made by Ledger.reserve. The secret is in this process's memory only, so that a copy of the ledger cannot settle it."""

    def __init__(self, ledger: str, entry: Entry, hash: str, request: Request, secret: str) -> None:
        self.entry = entry
        self.hash = hash
        self.request = request
        self._ledger = ledger
        self._secret = secret
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._touched = False
        self._settled = False

    @property
    def number(self) -> int:
        return self.entry.number

    @property
    def rule(self) -> str:
        """Which of the two sums admitted the question: "sum" or "zcdp"."""
        return self.entry.record.rule if isinstance(self.entry.record, Reserved) else ""

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

    def _open(self) -> None:
        if self._settled:
            raise LedgerError("This reservation was committed or cancelled already.", fix="ask again.")

    def _same_process(self) -> None:
        if os.getpid() != self._process:
            raise LedgerError("This reservation belongs to another process.", fix="settle it in the process that made it.")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise LedgerError("A reservation cannot be copied: it can be settled only once.", fix="share the one object.")

    def __repr__(self) -> str:
        return f"Reservation(entry {self.number}, rule {self.rule!r})"
