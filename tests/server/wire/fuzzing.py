"""Sends fuzzed messages to a server, and looks for what must not happen: faults, tracebacks, lost answers, hangs.

A burst that takes longer than HANG seconds is a hang, unless the machine was busy: what was sent over its connection is sent
again, and only if it is slow every time, while plain statements are answered at once, is it one. So is a burst in which the
server computed for that long.
"""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from dither.server.wire.protocol import message
from server.wire.messages import Burst, burst, opening
from server.wire.talking import Raw

HANG = 1.0  # seconds
QUICK = 0.25  # seconds for plain statements: the machine has time
TRIES = 3
LONGEST = 60.0  # seconds, after which an answer is lost


def no_time() -> float:
    """The processor's time of a server that cannot be told apart from the test."""
    return 0.0


@dataclass
class Fuzzing:
    """One run. `computed`: returns the seconds that the server's processes have computed so far."""

    port: int
    token: str
    chance: random.Random
    computed: Callable[[], float] = no_time
    user: str = "cora"
    judging: bool = True  # whether slow bursts are sent again
    sent: int = 0
    connections: int = 0
    slowest: float = 0.0
    slow: int = 0  # bursts above HANG that were sent again
    unclear: int = 0  # of them, those at which the machine was too busy to tell
    hangs: list[bytes] = field(default_factory=list)

    def run(self, messages: int) -> None:
        """Sends so many messages, over as many connections as they take."""
        while self.sent < messages:
            if self.chance.random() < 0.2:
                self._open()
            with suppress(ConnectionError):
                self._talk(messages)

    def _open(self) -> None:
        """Begins a connection as no client does."""
        pieces = opening(self.chance)
        self.sent += len(pieces)
        self.connections += 1
        before = self.computed()
        self._timed(begin(self.port, pieces), before, lambda: begin(self.port, pieces), b"".join(pieces), len(pieces))

    def _talk(self, messages: int) -> None:
        self.connections += 1
        priced = self.chance.random() < 0.5
        history: list[Burst] = []
        with self._connect(priced) as raw:
            is_open = True
            while is_open and self.sent < messages and len(history) < 40:
                each = burst(self.chance)
                history.append(each)
                self.sent += each.number
                before = self.computed()
                is_open, seconds = exchange(raw, each, len(history))
                self._timed(seconds, before, lambda: self._again(history, priced), each.data, each.number)

    def _connect(self, priced: bool) -> Raw:
        raw = Raw(self.port, LONGEST)
        raw.log_in(self.user, self.token, **({"options": "-c dither.epsilon=0.001"} if priced else {}))
        return raw

    def _timed(self, seconds: float, before: float, again: Callable[[], float], data: bytes, number: int) -> None:
        """Takes note of a time. If it is long, decides whether that was the server or the machine."""
        self.slowest = max(self.slowest, seconds)
        if seconds <= HANG or not self.judging:
            return
        self.slow += 1
        if self.computed() - before > HANG:
            self.hangs.append(data)
            return
        found = 0
        for _ in range(10 * TRIES):
            if again() <= HANG:
                return
            found += self._plain(number) <= QUICK
            if found >= TRIES:
                self.hangs.append(data)
                return
        self.unclear += 1

    def _again(self, history: Sequence[Burst], priced: bool) -> float:
        """Sends everything of a connection again, and returns the time of the last burst."""
        seconds = 0.0
        with suppress(ConnectionError), self._connect(priced) as raw:
            for place, each in enumerate(history):
                _, seconds = exchange(raw, each, place)
        return seconds

    def _plain(self, number: int) -> float:
        """Returns the time of as many plain statements."""
        with self._connect(False) as raw:
            return exchange(raw, Burst(message(b"Q", b"SHOW dither.margins\0") * number, number, False), 0)[1]

    def words(self) -> str:
        """Says what was found."""
        return (
            f"{self.sent} messages, {self.connections} connections, slowest burst {self.slowest:.2f} s; {self.slow} above "
            f"{HANG} s, of them {len(self.hangs)} hangs and {self.unclear} unclear"
        )


def begin(port: int, pieces: Sequence[bytes]) -> float:
    """Begins a connection with these bytes, and reads until the server closes it. Returns the seconds."""
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=LONGEST) as raw, suppress(ConnectionError):
        for piece in pieces:
            raw.sendall(piece)
        _end(raw)
        while raw.recv(65536):
            pass
    return time.monotonic() - begun


def _end(raw: socket.socket) -> None:
    with suppress(OSError):  # the server was faster
        raw.shutdown(socket.SHUT_WR)


def exchange(raw: Raw, given: Burst, number: int) -> tuple[bool, float]:
    """Sends a burst, and reads until its end. Returns whether the connection is still open, and the seconds."""
    begun = time.monotonic()
    mark = b"dither.mark%d" % number
    end = message(b"S") + message(b"Q", b"ROLLBACK\0") + message(b"Q", b"SHOW " + mark + b"\0")
    raw.socket.sendall(given.data + (b"" if given.torn else end))
    if given.torn:
        _end(raw.socket)
    is_open = _settled(raw, mark)
    return is_open, time.monotonic() - begun


def _settled(raw: Raw, mark: bytes) -> bool:
    """Reads until the answer to the last statement, or the end. Returns whether the connection is still open."""
    while True:
        kind, data = raw.receive()
        if not kind:
            return False
        if kind == b"E":
            assert b"Traceback" not in data
            assert b"could not do this" not in data, data
            if mark + b"." in data:
                raw.until(b"Z")
                return True
