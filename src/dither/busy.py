"""Who is at work: what is closed in the middle of somebody's question would take the answer away and leave the price."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dither.errors import DitherError


class Busy:
    """Counts the questions that are being answered, by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    @contextmanager
    def working(self) -> Iterator[None]:
        with self._lock:
            self._count += 1
        try:
            yield
        finally:
            with self._lock:
                self._count -= 1

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody is at work, and nobody begins; or a refusal."""
        with self._lock:
            if self._count:
                raise DitherError("A question is still being answered.", fix="close the session when the answer is there.")
            yield
