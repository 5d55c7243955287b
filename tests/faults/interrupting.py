"""Ctrl-C at the n-th point of a call where CPython could deliver one: on entering a function, after a call into C returned.

Finalizers and callbacks of weak references are left out: Python itself drops what they raise.
"""

from __future__ import annotations

import contextlib
import gc
import sqlite3
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import Any

import dither as dt
from dither.curator import Curator
from dither.errors import DitherError, Interrupted

_OURS = str(Path(dt.__file__).parent)
_THEIRS = {contextlib.__file__, threading.__file__}
PRICE = Fraction(1, 10)


@dataclass
class Points:
    """Counts the points of a call, and interrupts it at one of them."""

    stop: int = 0  # none
    ours: str = _OURS  # whose files
    seen: int = 0
    place: str = ""
    places: list[str] = field(default_factory=list)
    dropped: bool = False  # by Python, where a generator that was left early is closed: that is a finalizer too

    def run(self, call: Callable[[], Any]) -> Any:
        gc.collect()
        gc.disable()
        hook, sys.unraisablehook = sys.unraisablehook, self._drop
        sys.setprofile(self._event)
        try:
            return call()
        finally:
            sys.setprofile(None)
            sys.unraisablehook = hook
            gc.enable()

    def _drop(self, raised: Any) -> None:
        self.dropped = raised.exc_type is KeyboardInterrupt

    def _event(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event not in ("call", "c_return") or not (
            code.co_filename.startswith((_OURS, self.ours)) or code.co_filename in _THEIRS
        ):
            return
        if argument is sys.setprofile:
            return
        self.seen += 1
        self.places.append(code.co_filename)
        if self.seen == self.stop:
            sys.setprofile(None)
            after = f", after {getattr(argument, '__qualname__', argument)}" if event == "c_return" else ""
            self.place = f"{Path(code.co_filename).name}:{frame.f_lineno} {code.co_qualname}{after}"
            raise KeyboardInterrupt


def broken_laws(open_session: Callable[[], Curator], question: str, stop: int, ledger: Path) -> list[str]:
    """Asks, stops at a point, and returns what does not hold after it. Keeps the exception, as a notebook does."""
    session, points, told = open_session(), Points(stop), []
    before, caught = session.budget.spent.epsilon, None
    try:
        points.run(lambda: session.ask(question, epsilon=PRICE))
    except BaseException as error:
        caught = error
    if points.place and not points.dropped and not isinstance(caught, KeyboardInterrupt):
        told.append(f"it came out as {caught!r}")
    if not _writable(ledger):
        told.append("the ledger stays locked")
        session.ledger.store._connection.rollback()  # type: ignore[attr-defined]  # or every later point is blamed for it
    spent = session.budget.spent.epsilon - before
    if isinstance(caught, Interrupted) and caught.charged.startswith("ε = 0.1") != (spent == PRICE):
        told.append(f"it says {caught.charged}, and {spent} was charged")
    if spent not in (0, PRICE):
        told.append(f"{spent} was charged")
    told += _unusable(session, question)
    return [f"point {stop}, {points.place}: {one}" for one in told]


def _writable(ledger: Path) -> bool:
    other = sqlite3.connect(ledger, timeout=0, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
    except sqlite3.OperationalError:
        return False
    finally:
        other.close()
    return True


def _unusable(session: Curator, question: str) -> list[str]:
    """Returns what another thread cannot do with the session: ask the same question, or close it."""
    told: list[str] = []

    def use() -> None:
        try:
            session.ask(question, epsilon=PRICE)
        except DitherError as error:
            told.append(f"it cannot be asked again: {error.what}")
        try:
            session.close()
        except DitherError as error:
            told.append(f"it cannot be closed: {error.what}")

    thread = threading.Thread(target=use, daemon=True)
    thread.start()
    thread.join(60)
    return [*told, *(["it hangs"] if thread.is_alive() else [])]
