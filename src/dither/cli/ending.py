"""How a run of the command line ends if not by itself: by a signal, or because nobody reads what it writes.

Only `main` uses this: the library installs no signal handlers.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from dither.cli.screen import complain

INTERRUPTED, UNREAD, TERMINATED = 130, 141, 143

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

UNKNOWN = "nothing, unless `dither history` shows a new entry"  # from where nobody can tell whether a price was written

_received: list[int] = []
_told: list[str] = []


class Stopped(KeyboardInterrupt):
    """A signal. It has a class of its own because Python, once it has seen the plain one leave code that C runs (an import,
    say), ends by SIGINT whatever became of it."""


@contextmanager
def handled() -> Iterator[None]:
    """Inside, the first of SIGNALS is a KeyboardInterrupt, so that the charge is told; a second one ends the process.

    The exit code tells which signal it was, and that a pipe was broken, whoever turned that into another one.
    """
    _received.clear()
    _told.clear()
    before = {each: signal.getsignal(each) or signal.SIG_DFL for each in SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # nohup and background jobs are not to be stopped
            signal.signal(number, _stop)
    try:
        yield
    except KeyboardInterrupt:
        raise SystemExit(tell(UNKNOWN)) from None
    except SystemExit as end:
        if _received and not _told:  # the parser of options was stopped, and leaves without a word
            raise SystemExit(tell(UNKNOWN)) from None
        if isinstance(end.__context__, BrokenPipeError):  # as Rich and Click leave
            raise SystemExit(UNREAD) from None
        raise
    except Exception:
        if _received:  # a library that was being loaded made another error of it
            raise SystemExit(tell(UNKNOWN)) from None
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def code() -> int:
    """The exit code of what was stopped."""
    return 128 + (_received[0] if _received else signal.SIGINT)


def tell(charged: str) -> int:
    """Says on stderr what stopped the command and what was charged, and returns the exit code."""
    _told.append(charged)
    complain(f"{'Terminated' if code() == TERMINATED else 'Interrupted'}.\n  Charged: {charged}.")
    return code()


def _stop(number: int, frame: FrameType | None) -> None:
    for each in SIGNALS:
        if signal.getsignal(each) is _stop:
            signal.signal(each, signal.SIG_DFL)
    _received.append(number)
    raise Stopped
