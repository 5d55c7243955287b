"""Code under audit that does not come back: it is interrupted when its time is over.

Works where Python hears signals: in the main thread of Unix systems. Elsewhere, and inside compiled code that never
returns, a run that hangs hangs the audit.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_AGAIN = 0.5  # seconds after which code that swallowed the interruption is interrupted once more


class OverdueError(BaseException):
    """Time is over. Not an Exception, because audited code catches those."""


def grace(seconds: float) -> float:
    """How long work planned for `seconds` may take: plans are kept between runs, and the last run may be a long one."""
    return seconds + max(1.0, seconds / 4)


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raises OverdueError inside the block after that time."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise OverdueError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
