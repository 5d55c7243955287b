"""Messages that no client sends: the server stays up, says nothing of its inside, charges nothing, and answers others."""

from __future__ import annotations

import os
import random
import socket
import struct
import time
from contextlib import suppress

import pytest

from dither.server.wire.protocol import message
from server.serving import BY_WARD
from server.wire.talking import Raw, Wire

pytestmark = pytest.mark.slow
MESSAGES = int(os.environ.get("DITHER_FUZZ", "100000" if os.environ.get("DITHER_SEARCH") else "1500"))
TEXTS = [
    BY_WARD, "SELECT 1", "BEGIN", "COMMIT", "ROLLBACK", "SET dither.epsilon = 0.1", "SHOW dither.budget", "EXPLAIN " + BY_WARD,
    "DECLARE c CURSOR WITH HOLD FOR " + BY_WARD, "FETCH 1 FROM c", "CLOSE c", "SELECT * FROM people", "SELECT '", "/*", "",
    ";;", "SELECT $1", "SELECT COUNT(*) FROM people WHERE ward = $1", "COPY (" + BY_WARD + ") TO STDOUT", "DISCARD ALL",
    "SELECT COUNT(*) FROM people LIMIT 0", "((((", "SELECT ward FROM people GROUP BY ward", "RESET ALL", "SAVEPOINT s",
    "\x01\x02", "é" * 30,
]  # fmt: skip


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Changes, cuts or repeats some bytes."""
    found = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        if not found:
            break
        place = chance.randrange(len(found))
        match chance.randrange(4):
            case 0:
                found[place] = chance.randrange(256)
            case 1:
                del found[place : place + chance.randrange(1, 5)]
            case 2:
                found[place:place] = chance.randbytes(chance.randrange(1, 5))
            case _:
                found[place : place + 2] = struct.pack("!h", chance.choice([-1, 0, 1, 32767, -32768]))
    return bytes(found)


def body(chance: random.Random) -> tuple[bytes, bytes]:
    """A message as clients send them."""
    name, text = chance.choice([b"", b"a", b"b"]), chance.choice(TEXTS).encode()
    match chance.choice(b"QPBDECSHX?pdf"):
        case 81:
            return b"Q", text + b"\0"
        case 80:
            return b"P", name + b"\0" + text + b"\0" + struct.pack("!h", 0)
        case 66:
            cells = chance.choice([b"\0\0", struct.pack("!hi", 1, 5) + b"north", struct.pack("!hi", 1, -1)])
            return b"B", name + b"\0" + chance.choice([b"", b"a"]) + b"\0\0\0" + cells + struct.pack(
                "!hh", 1, chance.randrange(3)
            )
        case 68:
            return b"D", chance.choice([b"S", b"P", b"?"]) + name + b"\0"
        case 69:
            return b"E", name + b"\0" + struct.pack("!i", chance.choice([0, 1, -1, 1000]))
        case 67:
            return b"C", chance.choice([b"S", b"P"]) + name + b"\0"
        case 83:
            return b"S", b""
        case 72:
            return b"H", b""
        case other:
            return bytes([other]), chance.randbytes(chance.randrange(20))


def burst(chance: random.Random) -> tuple[bytes, int, bool]:
    """Returns some messages as bytes, how many they are, and whether lengths may be wrong: then nobody knows where they end."""
    sent, number, torn = b"", chance.randrange(1, 12), chance.random() < 0.05
    for _ in range(number):
        kind, data = body(chance)
        if chance.random() < 0.4:
            data = mutated(data, chance)
        sent += message(kind, data)
    return (mutated(sent, chance) if torn else sent), number, torn


def settled(raw: Raw, torn: bool) -> bool:
    """Reads until the answer of the last question, or the end. Returns whether the connection is still open."""
    while True:
        kind, data = raw.receive()
        if not kind:
            return False
        if kind == b"E":
            assert b"Traceback" not in data
            assert b"could not do this" not in data, data
        last = (kind == b"T" and b"dither.notices" in data) or (kind == b"E" and b"25P02" in data)
        if last and not torn:
            raw.until(b"Z")
            return True


def test_fuzzed_messages_do_no_harm(wire: Wire) -> None:
    """A server that hangs does not answer within the socket's time. How long answers take is printed, for the benchmark."""
    seed = int(os.environ.get("DITHER_FUZZ_SEED", random.SystemRandom().randrange(1 << 30)))
    chance, sent, slowest = random.Random(seed), 0, 0.0
    faults = wire.listening.faults
    while sent < MESSAGES:
        with Raw(wire.port, 30.0) as raw, suppress(ConnectionError):
            raw.log_in("cora", wire.service.tokens["cora"])
            is_open = True
            while is_open and sent < MESSAGES:
                data, number, torn = burst(chance)
                sent += number
                began = time.monotonic()
                raw.socket.sendall(
                    data + message(b"S") + message(b"Q", b"ROLLBACK\0") + message(b"Q", b"SHOW dither.notices\0")
                )
                if torn:
                    raw.socket.shutdown(socket.SHUT_WR)
                is_open = settled(raw, torn)
                slowest = max(slowest, time.monotonic() - began)
    assert wire.listening.faults == faults, f"seed {seed}"
    with wire.connect() as link:
        assert link.execute(BY_WARD).fetchall(), f"seed {seed}"
    print(f"{sent} messages, slowest answer to a burst {slowest:.2f} s, seed {seed}")


def test_fuzzed_startups_do_no_harm(wire: Wire) -> None:
    chance = random.Random(7)
    faults = wire.listening.faults
    whole = b"user\0ada\0database\0survey\0options\0-c dither.epsilon=0.1\0\0"
    for number in range(200):
        code = chance.choice([3 << 16, (3 << 16) + 2, 80877103, 80877104, 80877102, 2 << 16, chance.randrange(1 << 31)])
        data = mutated(struct.pack("!ii", len(whole) + 8, code) + whole, chance)
        with socket.create_connection(("127.0.0.1", wire.port), timeout=10) as raw, suppress(OSError):
            raw.sendall(data)
            if number % 3 == 0:
                raw.sendall(message(b"p", b"SCRAM-SHA-256\0" + chance.randbytes(30)))
            raw.shutdown(socket.SHUT_WR)
            while raw.recv(4096):
                pass
    assert wire.listening.faults == faults


def test_that_check_can_fail(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault in handling a message is counted, so the checks above would see it."""

    def broken(*_: object) -> None:
        raise IndexError

    monkeypatch.setattr("dither.server.wire.session.statements", broken)
    faults = wire.listening.faults
    with Raw(wire.port) as raw:
        raw.log_in("cora", wire.service.tokens["cora"])
        raw.send(b"Q", b"SELECT 1\0")
        raw.until(b"Z")
    assert wire.listening.faults == faults + 1
    monkeypatch.undo()
