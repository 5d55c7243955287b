"""A bounded, fair line of questions, with threads behind it.

Entering happens on the event loop, before anything is planned or charged: if the line is full, or one person has too many in
it, the question is refused with BusyError and has cost nothing. Who is served next goes round the people who wait, so one
person with many questions delays others by one question at most.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from dither.errors import BusyError

T = TypeVar("T")


class GoneError(Exception):
    """The client went away while its question was waiting."""


class Line:
    """Runs calls on a few threads, in turn. `threads`: calls at once; `most`: waiting in all; `each`: waiting per person."""

    def __init__(self, threads: int, most: int, each: int, name: str = "desk") -> None:
        self._threads = threads
        self._most = most
        self._each = each
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], asyncio.AbstractEventLoop, asyncio.Future[Any]] | None]
        self._calls = queue.SimpleQueue()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._closed = False
        self.waiting = 0
        self.running = 0
        for number in range(threads):
            threading.Thread(target=self._work, name=f"{name} {number}", daemon=True).start()

    async def run(self, person: str, call: Callable[[], T], still: Callable[[], Awaitable[bool]] | None = None) -> T:
        """Waits for a turn and returns what the call returns. `still`: asks whether somebody still waits for it.

        Once the call has begun it ends, even if the caller is cancelled: what is charged is committed.
        """
        await self._turn(person)
        try:
            if still is not None and not await still():
                raise GoneError
            loop = asyncio.get_running_loop()
            done: asyncio.Future[T] = loop.create_future()
            self._calls.put((call, loop, done))
        except BaseException:
            self._next()
            raise
        done.add_done_callback(self._ended)
        return await asyncio.shield(done)

    def _ended(self, done: asyncio.Future[Any]) -> None:
        self._next()
        if not done.cancelled():
            done.exception()  # so that asyncio does not report it, if nobody waits any more

    async def _turn(self, person: str) -> None:
        if self._closed:
            raise BusyError("The server is stopping.")
        if self.running < self._threads and not self.waiting:
            self.running += 1
            return
        own = self._waiting.setdefault(person, deque())
        if self.waiting >= self._most or len(own) >= self._each:
            if not own:
                del self._waiting[person]
            raise BusyError
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        own.append(turn)
        self.waiting += 1
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._next()  # the turn came at the same moment, and passes on
            else:
                self._leave(person, turn)
            raise

    def _leave(self, person: str, turn: asyncio.Future[None]) -> None:
        own = self._waiting.get(person)
        if own is not None and turn in own:
            own.remove(turn)
            self.waiting -= 1
            if not own:
                del self._waiting[person]

    def _next(self) -> None:
        """Passes a free thread on to the next person who waits."""
        while self._waiting and not self._closed:
            person, own = next(iter(self._waiting.items()))
            turn = own.popleft()
            self.waiting -= 1
            del self._waiting[person]
            if own:
                self._waiting[person] = own  # last in the round
            if not turn.done():
                turn.set_result(None)
                return
        self.running -= 1

    def close(self) -> None:
        """Refuses everybody who waits, uncharged. Calls that run go on."""
        self._closed = True
        for own in self._waiting.values():
            for turn in own:
                if not turn.done():
                    turn.set_exception(BusyError("The server is stopping."))
        self._waiting.clear()
        self.waiting = 0
        for _ in range(self._threads):
            self._calls.put(None)

    async def drained(self, seconds: float) -> bool:
        """Waits until nothing runs. Returns False if that takes longer."""
        end = asyncio.get_running_loop().time() + seconds
        while self.running > 0 and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.01)
        return self.running <= 0

    def _work(self) -> None:
        while (item := self._calls.get()) is not None:
            call, loop, done = item
            try:
                result, error = call(), None
            except BaseException as raised:
                result, error = None, raised
            try:
                loop.call_soon_threadsafe(_finish, done, result, error)
            except RuntimeError:
                return  # the loop has ended, and with it whoever waited


def _finish(done: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if done.cancelled():
        return
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(error)
