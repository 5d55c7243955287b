"""A question between reserve and commit: its Reservation, its lease, and what an error there charged.

A Reservation is created before anything is written, so that after any interruption its holder can tell whether the price was
charged. Only its holder can commit or cancel it, once.

A reserved question has a lease until it is committed, cancelled or failed. Others who ask the same question wait for its answer
instead of paying again. The holder renews the lease. The next question removes a lease that ran out or whose process is gone:
the charge stays, and the holder can no longer commit.

    leases    {"12": ["<start of the question's digest, empty if fresh>", "<token>", "<machine>", "<process>", <until, in ms>]}
"""

from __future__ import annotations

import _thread
import hashlib
import os
import re
import secrets
import signal
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from dither.errors import DitherError, LedgerError
from dither.ledger.records import Entry, Request, Reserved
from dither.ledger.rules import Admitted
from dither.process import Origin

SPENT = "the price of the question"
SHARED = "nothing, except perhaps in the quota of an analyst who had not seen this answer"
UNSURE = "the price of the question, unless it was still given back: see `dither history`"


@contextmanager
def stating_charge(charged: str, unsure: str = "") -> Iterator[None]:
    """Makes errors of the store say what was charged."""
    try:
        yield
    except LedgerError as error:
        raise with_charge(error, charged, unsure) from None


def with_charge(error: LedgerError, charged: str, unsure: str) -> LedgerError:
    """Returns the error with what was charged: `unsure` if the store does not know whether it wrote."""
    says = unsure if unsure and error.charged != "nothing" else charged
    return LedgerError(error.what, where=error.where, fix=error.fix, charged=says)


SECONDS = 60.0  # how long a lease lasts without renewal
YOUNG = 1000  # milliseconds in which the process is taken to be alive: looking costs more than most questions
MARK = 16  # digits of a question's digest and of a reservation's token in a lease: 64 bits of each
BEATS = 4  # renewals in that time


_LEASE = re.compile(
    rf'"([1-9][0-9]{{0,17}})":\["((?:[0-9a-f]{{{MARK}}})?)","([0-9a-f]{{{MARK}}})","([0-9a-f]{{16}})",'
    r'"([0-9]{1,18}\.[0-9a-z]{1,32})",([0-9]{1,18})\]',
    re.ASCII,
)


class Lease(NamedTuple):
    question: str
    token: str  # the start of the reservation's token, unique
    machine: str
    process: str
    until: int

    @classmethod
    def new(cls, question: str, token: str, now: datetime, seconds: float) -> Lease:
        return cls(
            question[:MARK], token[:MARK], machine(), _process_now(os.getpid()), milliseconds(now) + round(1000 * seconds)
        )

    def renewed(self, now: datetime, seconds: float) -> Lease:
        return self._replace(until=milliseconds(now) + round(1000 * seconds))

    @property
    def own(self) -> bool:
        """Whether this process holds the lease."""
        return (self.machine, self.process) == (machine(), _process_now(os.getpid()))

    def alive(self, now: int, seconds: float) -> bool:
        """Returns whether the holder may still answer. A lease that ends too far ahead comes from a clock that was set back."""
        left = self.until - now
        if 1000 * seconds - left < YOUNG:
            return left <= 2000 * seconds
        if not self.own and self.machine == machine() and self.process != process(int(self.process.partition(".")[0])):
            return False  # the process is gone, or another one has its number
        return left >= 0


Leases = dict[int, Lease]


def encode_leases(leases: Mapping[int, Lease]) -> str:
    """Encodes leases as canonical JSON, by hand: others wait for the store's lock meanwhile."""
    parts = [f'"{number}":["{q}","{t}","{m}","{p}",{until}]' for number, (q, t, m, p, until) in leases.items()]
    return "{" + ",".join(sorted(parts)) + "}"


def decode_leases(text: str | None) -> Leases:
    if text is None or text == "{}":
        return {}
    try:
        matches = _LEASE.findall(text)
        leases = {int(number): Lease(q, t, m, p, int(until)) for number, q, t, m, p, until in matches}
        if encode_leases(leases) == text:
            return leases
    except (ValueError, TypeError):
        pass
    raise LedgerError("The ledger's leases cannot be read.", fix="run `dither verify`.")


def milliseconds(moment: datetime) -> int:
    return round(1000 * moment.timestamp())


@cache
def machine() -> str:
    """Returns the scope in which process numbers are unique: one boot of one machine, and its process namespace."""
    parts = [os.uname().nodename if hasattr(os, "uname") else ""]
    with suppress(OSError):
        parts += [Path("/proc/sys/kernel/random/boot_id").read_text(), os.readlink("/proc/self/ns/pid")]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@lru_cache(maxsize=1)
def _process_now(pid: int) -> str:
    return process(pid)


def process(pid: int) -> str:
    """Returns a process's number and start time, since numbers are reused; "N.gone" if there is none."""
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
    """Renews leases on a thread, which ends when none is `pending`."""

    def __init__(self, pending: Callable[[], bool], renew: Callable[[], None], seconds: float) -> None:
        self._pending = pending
        self._renew = renew
        self._pause = seconds / BEATS
        self._lock = threading.Lock()
        self._running: tuple[int, threading.Event] | None = None

    def start(self) -> None:
        """Starts the thread if it is not running. Call it when a lease is pending."""
        with self._lock:
            if self._running is not None and self._running[0] == os.getpid() and not self._running[1].is_set():
                return
            stop = threading.Event()
            self._running = os.getpid(), stop
        self._begin(stop)

    def _begin(self, stop: threading.Event) -> None:
        """Starts a thread that takes no signals: a signal delivered to it would not wake the main thread.

        Does not use Thread.start, which waits for the thread: a Ctrl-C during that wait would be lost."""
        if not hasattr(signal, "pthread_sigmask"):
            _thread.start_new_thread(self._run, (stop,))
            return
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # the new thread inherits this mask
            _thread.start_new_thread(self._run, (stop,))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def stop(self) -> None:
        if self._running is not None:
            self._running[1].set()

    def _run(self, stop: threading.Event) -> None:
        while not stop.wait(self._pause):
            with self._lock:
                if not self._pending():
                    stop.set()
                    return
            with suppress(DitherError):  # if the store stays away, the lease runs out and the commit is refused
                self._renew()


_LIVE: weakref.WeakValueDictionary[str, Reservation] = (
    weakref.WeakValueDictionary()
)  # of this process, by the start of their token


def find_reservation(token: str) -> Reservation | None:
    """Returns the reservation of this process whose token starts like this; None if it was dropped without being settled."""
    return _LIVE.get(token)


class Reservation:
    """A question being answered. Its secret is only in this process's memory, so a copy of the ledger cannot settle it."""

    def __init__(self, ledger: str, request: Request) -> None:
        self.request = request
        self.record = request.reserved(secret := secrets.token_hex(32))
        self.admitted: Admitted | None = None  # the sums including its price, once it is charged
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
        """Whether an entry was made for it. The entry may still be rolled back until its transaction ends."""
        return self._written is not None

    @property
    def entry(self) -> Entry:
        return self._written_entry()[0]

    @property
    def hash(self) -> str:
        return self._written_entry()[1]

    @property
    def number(self) -> int:
        return self.entry.number

    @property
    def rule(self) -> str:
        """The rule that admitted the question: "sum" or "zcdp"."""
        return self.entry.record.rule if isinstance(self.entry.record, Reserved) else ""

    @property
    def touched(self) -> bool:
        """Whether the engine was called, or may have been."""
        return self._touched

    @property
    def settled(self) -> bool:
        """Whether a commit, cancel or failure was started."""
        return self._settled

    @property
    def in_this_thread(self) -> bool:
        """Whether this thread holds it, and so would wait for itself."""
        return self._thread == threading.get_ident()

    def place(self, entry: Entry, hash: str) -> None:
        """Notes the entry that charges for it, before it is written."""
        self._written = entry, hash

    def touch(self) -> None:
        """Marks the price as spent. Call it just before the engine is called."""
        self._check_process()
        with self._lock:
            self._check_open()
            self._touched = True

    def settle(self, ledger: str, *, cancel: bool) -> str:
        """Returns the secret for a commit, or for a cancel if the engine was not called. Works once.

        A failed attempt cannot be repeated, because the store may have written it."""
        self._check_process()
        with self._lock:
            self._check_open()
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
        """Returns the secret for ending the question without an answer, even after an interrupted commit or cancel."""
        self._check_process()
        with self._lock:
            self._settled = True
            return self._secret

    def _written_entry(self) -> tuple[Entry, str]:
        if self._written is None:
            raise LedgerError("Nothing was reserved for this question.", fix="reserve it first.")
        return self._written

    def _check_open(self) -> None:
        self._written_entry()
        if self._settled:
            raise LedgerError("This reservation was committed or cancelled already.", fix="ask again.")

    def _check_process(self) -> None:
        self._origin.check(
            "This reservation belongs to another process.", "settle it in the process that made it.", LedgerError
        )

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise LedgerError("A reservation cannot be copied: it can be settled only once.", fix="share the one object.")

    def __repr__(self) -> str:
        where = f"entry {self.number}, rule {self.rule!r}" if self.charged else "not charged"
        return f"Reservation({where})"
