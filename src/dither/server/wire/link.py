"""One connection to the twin: messages go there and come back unchanged.

libpq opens the connection, so that every way to log in works; then the socket is read and written here. A statement that takes
longer than `seconds` is cancelled, whatever the twin's own limit says.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from dither.server.wire.protocol import Body, counted, message, word

# What ends the answer to each message; an error ends all of them.
_ENDS = {b"P": b"1", b"B": b"2", b"D": b"Tn", b"E": b"CsI", b"C": b"3", b"S": b"Z", b"Q": b"Z"}
_FLUSH = message(b"H")
_LARGEST = 16 * 1024 * 1024  # bytes of one message from the twin
MOST = 64 * 1024 * 1024  # bytes of one answer from the twin
Send = Callable[[bytes], Any]


class LinkError(Exception):
    """The twin cannot be reached, or its answer is too large."""


def _unheard(data: bytes) -> None:
    """Takes a message that nobody needs."""


class Link:
    """A connection to the twin. `status`: that of its transaction (I, T or E)."""

    def __init__(self, connection: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
        self._connection = connection
        self._reader = reader
        self._writer = writer
        self._seconds = seconds
        self.status = b"I"
        self.pending = False  # messages were sent since the last Sync

    @classmethod
    async def open(cls, connect: Callable[[], Any], seconds: float) -> Link:
        """Opens a connection. `connect` returns one of libpq, logged in."""
        connection = await asyncio.to_thread(connect)
        wire = socket.socket(fileno=os.dup(connection.socket))
        wire.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=wire, limit=1 << 20)
        return cls(connection, reader, writer, seconds)

    async def exchange(self, kind: bytes, body: bytes, send: Send) -> bytes:
        """Sends a message and passes everything on that comes back. Returns the kind of the message that ended it.

        What ends a Query or a Sync (Z) is not passed on: the connection says itself that it is ready.
        """
        self._writer.write(message(kind, body) + (b"" if kind in b"SQ" else _FLUSH))
        self.pending = kind not in b"SQ"
        try:
            try:
                async with asyncio.timeout(self._seconds):
                    return await self._passed(kind, send)
            except TimeoutError:
                await self.cancel()
                async with asyncio.timeout(self._seconds):
                    return await self._passed(kind, send)
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            raise LinkError from None

    async def _passed(self, kind: bytes, send: Send) -> bytes:
        size = 0
        while True:
            head = await self._reader.readexactly(5)
            length = struct.unpack("!i", head[1:])[0] - 4
            if not 0 <= length <= _LARGEST:
                raise LinkError
            body = await self._reader.readexactly(length)
            found, size = head[:1], size + length
            if found == b"Z":
                self.status = body
                self.pending = False
                return found
            if size > MOST:
                raise LinkError
            waiting = send(head + body)
            if waiting is not None:
                await waiting
            if kind not in (b"S", b"Q") and (found == b"E" or found in _ENDS[kind]):
                return found

    async def cancel(self) -> None:
        """Asks the twin to end what it runs."""
        with suppress(Exception):
            await asyncio.to_thread(self._connection.get_cancel().cancel)

    async def quietly(self, kind: bytes, body: bytes) -> list[bytes]:
        """Sends a message, and returns what comes back instead of passing it on."""
        found: list[bytes] = []
        await self.exchange(kind, body, found.append)
        return found

    async def synced(self) -> None:
        """Ends what was begun, so that the twin's transaction has a status."""
        if self.pending:
            await self.exchange(b"S", b"", _unheard)

    async def fail(self) -> None:
        """Makes the twin's transaction fail, as a question in it has failed."""
        await self.synced()
        if self.status == b"T":
            await self.quietly(b"Q", b"SELECT 1 / 0\0")

    async def types(self, text: str, oids: Sequence[int]) -> tuple[int, ...]:
        """Returns the types of a statement's parameters, as the twin reads its text; nothing if it cannot. It is not run."""
        await self.synced()
        inside = self.status == b"T"
        if inside:
            await self.quietly(b"Q", b"SAVEPOINT dither_types\0")
        found: list[bytes] = []
        name = b"dither_types\0"
        if await self.exchange(b"P", name + word(text) + counted(oids), _unheard) != b"E":
            found = await self.quietly(b"D", b"S" + name)
            await self.exchange(b"C", b"S" + name, _unheard)
        await self.synced()
        if inside:
            await self.quietly(b"Q", b"ROLLBACK TO SAVEPOINT dither_types\0")
            await self.quietly(b"Q", b"RELEASE SAVEPOINT dither_types\0")
        return next((Body(each[5:]).ints() for each in found if each[:1] == b"t"), ())

    def close(self) -> None:
        self._writer.close()
        self._connection.finish()
