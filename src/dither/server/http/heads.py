"""Closes connections whose request does not arrive in time: open ones are counted, and a few bytes must not hold one.

uvicorn limits the time between two requests and the size of a head; this adds the time of a head, and that of a body which goes
on after its response. A body that is read has a time of its own (guard.body_of).
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from functools import cache
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from dither.server.settings import Settings


@cache
def _seconds() -> float:
    return Settings.passed().read_time


class Connection(H11Protocol):
    """A connection that sends at once. A response is written in two parts, and without this the second one waits for the
    client's delayed ACK: 40 ms. asyncio sets it only for sockets that name their protocol, and uvicorn's do not."""

    def connection_made(self, transport: Any) -> None:
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)

    def send_400_response(self, msg: str) -> None:
        """Refuses what is no HTTP, and closes the connection. Its head may have been right, and its handler may run: for that
        one the client is gone, as after a cut connection. uvicorn would let both answer, and write tracebacks."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        with suppress(h11.LocalProtocolError):  # a response was begun, or may have no body
            super().send_400_response(msg)
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Says nothing: an upgrade that is asked for and not offered is no fault."""


class TimedHeads(Connection):
    """HTTP with a time limit from the first byte of a request, or from the connection, to the end of its head; and from a
    response to the end of its request."""

    _head_task: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:  # the head is not complete
            self._wait_for_head()
        elif not self._is_answered():
            self._stop_waiting()

    def _is_answered(self) -> bool:
        """Returns whether the response is sent, and its request goes on."""
        return self.conn.their_state is h11.SEND_BODY and self.conn.our_state is h11.DONE

    def on_response_complete(self) -> None:
        super().on_response_complete()
        begun = self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]  # the next one, which came with the last
        if begun or self._is_answered():
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        if self._head_task is None:
            self._head_task = self.loop.call_later(_seconds(), self._give_up)

    def _stop_waiting(self) -> None:
        if self._head_task is not None:
            self._head_task.cancel()
            self._head_task = None

    def _give_up(self) -> None:
        self._head_task = None
        if (self.conn.their_state is h11.IDLE or self._is_answered()) and not self.transport.is_closing():
            self.transport.close()
