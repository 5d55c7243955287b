"""Leases: who is answering which question, and whether that process is still alive.

A reserved question has a lease until it is committed, cancelled or failed. Whoever asks the same question meanwhile waits
for its answer instead of paying again. The holder renews the lease; one that ran out, or whose process is gone, is removed
by the next who asks: the charge stays, and the holder can no longer commit.

    leases    {"12": ["<mark of the question, empty for a fresh one>", "<token>", "<machine>", "<process>", <until, in ms>]}
"""

from __future__ import annotations

import _thread
import hashlib
import os
import re
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from dither.errors import DitherError, LedgerError

SECONDS = 60.0  # how long a lease lasts unless it is renewed
YOUNG = 1000  # milliseconds in which nobody looks whether its process is still there: that would cost more than most questions
MARK = 16  # digits of a question's digest, and of a reservation's token, that a lease is known by: 64 bits of each
BEATS = 4  # how often it is renewed in that time


_LEASE = re.compile(
    rf'"([1-9][0-9]{{0,17}})":\["((?:[0-9a-f]{{{MARK}}})?)","([0-9a-f]{{{MARK}}})","([0-9a-f]{{16}})",'
    r'"([0-9]{1,18}\.[0-9a-z]{1,32})",([0-9]{1,18})\]',
    re.ASCII,
)


class Lease(NamedTuple):
    question: str
    token: str  # the reservation's, which no other one has
    machine: str
    process: str
    until: int

    @classmethod
    def new(cls, question: str, token: str, now: datetime, seconds: float) -> Lease:
        return cls(question[:MARK], token[:MARK], machine(), _own(os.getpid()), milliseconds(now) + round(1000 * seconds))

    def renewed(self, now: datetime, seconds: float) -> Lease:
        return self._replace(until=milliseconds(now) + round(1000 * seconds))

    @property
    def own(self) -> bool:
        """Whether this process holds it."""
        return (self.machine, self.process) == (machine(), _own(os.getpid()))

    def alive(self, now: int, seconds: float) -> bool:
        """Whether the holder may still answer. A lease that ends too far ahead is from a clock that was set back since."""
        left = self.until - now
        if 1000 * seconds - left < YOUNG:
            return left <= 2000 * seconds
        if not self.own and self.machine == machine() and self.process != process(int(self.process.partition(".")[0])):
            return False  # its number is free, or another process has it now
        return left >= 0


Leases = dict[int, Lease]


def to_text(leases: Mapping[int, Lease]) -> str:
    """Canonical JSON, written by hand: it is done while others wait."""
    parts = [f'"{number}":["{q}","{t}","{m}","{p}",{until}]' for number, (q, t, m, p, until) in leases.items()]
    return "{" + ",".join(sorted(parts)) + "}"


def from_text(text: str | None) -> Leases:
    if text is None or text == "{}":
        return {}
    try:
        found = _LEASE.findall(text)
        leases = {int(number): Lease(q, t, m, p, int(until)) for number, q, t, m, p, until in found}
        if to_text(leases) == text:
            return leases
    except (ValueError, TypeError):
        pass
    raise LedgerError("The ledger's leases cannot be read.", fix="run `dither verify`.")


def milliseconds(moment: datetime) -> int:
    return round(1000 * moment.timestamp())


@cache
def machine() -> str:
    """Where process numbers mean the same: one boot of one machine, and there one namespace of processes."""
    parts = [os.uname().nodename if hasattr(os, "uname") else ""]
    with suppress(OSError):
        parts += [Path("/proc/sys/kernel/random/boot_id").read_text(), os.readlink("/proc/self/ns/pid")]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@lru_cache(maxsize=1)
def _own(pid: int) -> str:
    return process(pid)


def process(pid: int) -> str:
    """A process by its number and its start, since numbers are used again; "N.gone" if there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        return f"{pid}.gone" if fields[0] in "ZX" else f"{pid}.{fields[19]}"
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return f"{pid}.gone"
    except OSError:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return f"{pid}.gone"
    except OSError:
        pass
    return f"{pid}.there"


class Renewal:
    """Renews leases a few times in their life, on a thread that ends by itself when none is `pending`."""

    def __init__(self, pending: Callable[[], bool], renew: Callable[[], None], seconds: float) -> None:
        self._pending = pending
        self._renew = renew
        self._pause = seconds / BEATS
        self._guard = threading.Lock()
        self._running: tuple[int, threading.Event] | None = None

    def start(self) -> None:
        """Called once something is pending."""
        with self._guard:
            if self._running is not None and self._running[0] == os.getpid() and not self._running[1].is_set():
                return
            stop = threading.Event()
            self._running = os.getpid(), stop
        self._begin(stop)

    def _begin(self, stop: threading.Event) -> None:
        """A thread that takes no signals: one that came to it would not wake the main thread from its wait.

        Not Thread.start, which waits for the thread: a Ctrl-C in that wait is lost in an error of its own."""
        if not hasattr(signal, "pthread_sigmask"):
            _thread.start_new_thread(self._run, (stop,))
            return
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # which the new thread inherits
            _thread.start_new_thread(self._run, (stop,))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def stop(self) -> None:
        if self._running is not None:
            self._running[1].set()

    def _run(self, stop: threading.Event) -> None:
        while not stop.wait(self._pause):
            with self._guard:
                if not self._pending():
                    stop.set()
                    return
            with suppress(DitherError):  # the store is away: if it stays away the lease runs out, and the commit says so
                self._renew()
