"""Closes connections whose request head does not arrive in time: open ones are counted, and a few bytes must not hold one.

uvicorn limits the time between two requests and the size of a head; this adds the time of a head. Its body has a time of its
own (guard.body_of).
"""

from __future__ import annotations

import asyncio
import socket
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


class TimedHeads(Connection):
    """HTTP with a time limit from the first byte of a request, or from the connection, to the end of its head."""

    _head_task: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:  # the head is not complete
            self._wait_for_head()
        else:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:  # the beginning of the next one came with the last
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
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()
