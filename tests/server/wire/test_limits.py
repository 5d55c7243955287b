"""What one connection can take from others: memory is bounded, and nobody waits for more than one message of it."""

from __future__ import annotations

import asyncio
import struct
import threading
from pathlib import Path

import pytest

from dither.server.wire import session
from dither.server.wire.backend import Backend
from dither.server.wire.lexing import Statement, statements
from dither.server.wire.protocol import Body, message
from dither.server.wire.session import MOST_CURSORS, MOST_TEXT
from server.serving import BY_WARD, COUNT
from server.wire.talking import Raw, Wire, fields, wired

pytestmark = pytest.mark.slow
LONG = COUNT + " WHERE age IN (" + ", ".join(["1"] * 15_000) + ")"


def logged_in(wire: Wire) -> Raw:
    raw = Raw(wire.port)
    raw.log_in("ada", wire.service.tokens["ada"], options="-c dither.epsilon=0.1")
    return raw


def parse(name: str, text: str) -> bytes:
    return message(b"P", f"{name}\0{text}\0".encode() + b"\0\0")


def bind(name: str, statement: str, value: bytes = b"") -> bytes:
    cells = struct.pack("!hi", 1, len(value)) + value if value else b"\0\0"
    return message(b"B", f"{name}\0{statement}\0".encode() + b"\0\0" + cells + b"\0\0")


def code(raw: Raw) -> str | None:
    """The code of the error before the next Sync was answered."""
    return next((fields(body)["C"] for kind, body in raw.until(b"Z") if kind == b"E"), None)


def test_what_is_remembered_of_a_statement_is_its_text() -> None:
    """The words of a long text take two hundred times as much memory."""
    (whole,) = statements("SELECT " + "a, " * 20_000 + "$2, $17 FROM people")
    kept = whole.compact()
    assert (kept.text, kept.parameters(), kept.heads) == (whole.text, 17, whole.heads)
    assert len(kept.words) <= 8 < len(whole.words)


def test_a_connection_remembers_no_words(wire: Wire) -> None:
    with logged_in(wire) as raw:
        raw.socket.sendall(parse("a", LONG) + message(b"S"))
        assert code(raw) is None
        raw.send(b"Q", f"DECLARE held CURSOR WITH HOLD FOR {COUNT} WHERE age IN ({', '.join(['1'] * 300)})\0".encode())
        assert code(raw) is None
        backends = [each for name, each in wire.listening._backends.values() if name == "ada" and "a" in each._prepared]
        (backend,) = backends
        assert len(backend._prepared["a"].route.statement.words) <= 8
        assert len(backend.session.cursors["held"].statement.words) <= 8


def test_prepared_statements_and_portals_are_bounded_in_size(wire: Wire) -> None:
    most = MOST_TEXT // len(LONG)
    with logged_in(wire) as raw:
        for number in range(most):
            raw.socket.sendall(parse(f"s{number}", LONG) + message(b"S"))
            assert code(raw) is None
        raw.socket.sendall(parse("more", LONG) + message(b"S"))
        assert code(raw) == "54000"
        raw.socket.sendall(message(b"C", b"Ss0\0") + parse("more", LONG) + message(b"S"))
        assert code(raw) is None
    with logged_in(wire) as raw:
        raw.send(b"Q", b"BEGIN\0")
        raw.until(b"Z")
        raw.socket.sendall(parse("a", f"{COUNT} WHERE ward = $1"))
        found = []
        for number in range(12):
            raw.socket.sendall(bind(f"p{number}", "a", b"x" * 100_000) + message(b"S"))
            found.append(code(raw))
            if found[-1] is not None:
                break
        assert found == [None] * 10 + ["54000"]


def test_rows_that_nobody_fetches_are_bounded(tmp_path: Path) -> None:
    with wired(tmp_path) as wire, logged_in(wire) as raw:
        raw.send(b"Q", b"BEGIN\0")
        raw.until(b"Z")
        raw.socket.sendall(parse("a", BY_WARD))
        for number in range(MOST_CURSORS):
            raw.socket.sendall(bind(f"p{number}", "a") + message(b"E", f"p{number}\0".encode() + struct.pack("!i", 1)))
        raw.send(b"H")
        for _ in range(MOST_CURSORS):
            assert b"E" not in [kind for kind, _ in raw.until(b"s")]
        spent = wire.spent()
        raw.socket.sendall(parse("b", COUNT) + bind("more", "b") + message(b"E", b"more\0\0\0\0\0") + message(b"S"))
        assert code(raw) == "54000"
        assert wire.spent() == spent


def test_a_portal_that_ended_has_no_more_rows(wire: Wire) -> None:
    with logged_in(wire) as raw:
        raw.socket.sendall(parse("", BY_WARD) + bind("", "") + 2 * message(b"E", b"\0\0\0\0\0") + message(b"S"))
        found = [(kind, body) for kind, body in raw.until(b"Z") if kind in (b"D", b"C")]
        assert [kind for kind, _ in found] == [b"D", b"D", b"C", b"C"]
        assert [body for kind, body in found if kind == b"C"] == [b"SELECT 2\0", b"SELECT 0\0"]


# --- waiting for others ---------------------------------------------------------------------------------------------


def test_a_long_text_is_read_while_others_are_answered(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, go_on, own = threading.Event(), threading.Event(), session.statements

    def slow(text: str) -> list[Statement]:
        if len(text) > 10_000:
            reading.set()
            assert go_on.wait(60)
        return own(text)

    monkeypatch.setattr(session, "statements", slow)
    with logged_in(wire) as raw, logged_in(wire) as other:
        raw.socket.sendall(parse("a", LONG) + message(b"S"))
        assert reading.wait(60)
        other.send(b"Q", b"SHOW dither.epsilon\0")
        assert [kind for kind, _ in other.until(b"Z")] == [b"T", b"D", b"C", b"Z"]
        go_on.set()
        assert code(raw) is None


def test_many_messages_at_once_let_others_in(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    handled, seen = 0, list[int]()

    async def note(self: Backend, body: Body) -> None:
        nonlocal handled
        handled += 1
        if handled == 1:
            asyncio.get_running_loop().call_soon(lambda: seen.append(handled))  # somebody else's turn

    monkeypatch.setattr(Backend, "_nothing", note)
    with logged_in(wire) as raw:
        raw.socket.sendall(message(b"d") * 500 + message(b"S"))
        raw.until(b"Z")
    assert handled == 500
    assert seen == [1]
