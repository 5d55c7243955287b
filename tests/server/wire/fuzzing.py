"""Sends fuzzed messages to a server, and looks for what must not happen: faults, tracebacks, lost answers, hangs.

A burst that takes longer than HANG seconds is a hang, unless the machine was busy: what was sent over its connection is sent
again, and only if it is slow every time is it one. What as many plain statements take just then does not count, nor does the
time in which the server's threads could have run and had no processor. A burst in which the server computed for longer than
HANG is a hang in any case.
"""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from dither.server.wire.protocol import message
from server.wire.messages import Burst, burst, opening
from server.wire.talking import Raw

HANG = 1.0  # seconds
TRIES = 3
LONGEST = 60.0  # seconds, after which an answer is lost


@dataclass(frozen=True)
class Used:
    """The seconds that a server's threads have computed so far, and those that they have waited for a processor."""

    computed: float = 0.0
    waited: float = 0.0

    @classmethod
    def by(cls, pid: int) -> Used:
        found = [0.0, 0.0]
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError, ValueError):  # it ended a moment ago
                parts = (thread / "schedstat").read_text().split()
                found = [found[0] + int(parts[0]) / 1e9, found[1] + int(parts[1]) / 1e9]
        return cls(*found)

    def since(self, before: Used) -> Used:
        return Used(self.computed - before.computed, self.waited - before.waited)


@dataclass
class Fuzzing:
    """One run. `used`: returns what the server has used so far."""

    port: int
    token: str
    chance: random.Random
    used: Callable[[], Used] = Used
    user: str = "cora"
    judging: bool = True  # whether slow bursts are sent again
    sent: int = 0
    connections: int = 0
    slowest: float = 0.0
    slow: int = 0  # bursts above HANG, which were sent again
    most: float = 0.0  # seconds that the server computed in a burst
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
        before = self.used()
        seconds, again = begin(self.port, pieces), lambda: self._running(lambda: begin(self.port, pieces))
        self._timed(seconds, before, again, b"".join(pieces), len(pieces))

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
                before = self.used()
                is_open, seconds = exchange(raw, each, len(history))
                self._timed(seconds, before, lambda: self._again(history, priced), each.data, each.number)

    def _connect(self, priced: bool) -> Raw:
        raw = Raw(self.port, LONGEST)
        raw.log_in(self.user, self.token, **({"options": "-c dither.epsilon=0.001"} if priced else {}))
        return raw

    def _timed(self, seconds: float, before: Used, again: Callable[[], float], data: bytes, number: int) -> None:
        """Takes note of a time. If it is long, decides whether that was the server or the machine."""
        spent = self.used().since(before)
        self.slowest, self.most = max(self.slowest, seconds), max(self.most, spent.computed)
        if spent.computed > HANG:
            self.hangs.append(data)
        elif seconds > HANG and self.judging:
            self.slow += 1
            if all(again() - self._plain(number) > HANG for _ in range(TRIES)):
                self.hangs.append(data)

    def _running(self, call: Callable[[], float]) -> float:
        """Returns the seconds of a call, without those in which the server waited for a processor."""
        before = self.used()
        return call() - self.used().since(before).waited

    def _again(self, history: Sequence[Burst], priced: bool) -> float:
        """Sends everything of a connection again, and returns the time of the last burst."""
        with suppress(ConnectionError), self._connect(priced) as raw:
            for place, each in enumerate(history[:-1]):
                exchange(raw, each, place)
            return self._running(lambda: exchange(raw, history[-1], len(history))[1])
        return 0.0

    def _plain(self, number: int) -> float:
        """Returns the time of as many plain statements."""
        with self._connect(False) as raw:
            return exchange(raw, Burst(message(b"Q", b"SELECT 1\0") * number, number, False), 0)[1]

    def words(self) -> str:
        """Says what was found."""
        return (
            f"{self.sent} messages, {self.connections} connections, slowest burst {self.slowest:.2f} s, longest computation "
            f"{self.most:.2f} s; {self.slow} above {HANG} s and sent again, {len(self.hangs)} hangs"
        )


def begin(port: int, pieces: Sequence[bytes]) -> float:
    """Begins a connection with these bytes, and reads until the server closes it. Returns the seconds."""
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=LONGEST) as raw, suppress(ConnectionError):
        for piece in pieces:
            raw.sendall(piece)
        _end(raw)
        while part := raw.recv(65536):
            assert b"could not do this" not in part, part
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
