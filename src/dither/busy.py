"""Refuses to close a session while a question is running.

A Ctrl-C can come between any two steps of a context manager written in Python, and then its exit is never run. Locks are
taken and released by the interpreter itself, in one step each: so a running question is a lock that is held, not a number.
"""

from __future__ import annotations

import threading
import weakref

from dither.errors import DitherError


class Busy:
    """Knows which questions are running, in any thread.

    with busy.working():         one question
        busy.wait_for_closing()
    with busy.closing:           whoever closes the session
        busy.check()
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
