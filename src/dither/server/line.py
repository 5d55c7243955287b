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
from dataclasses import dataclass
from typing import Any, TypeVar

from dither.errors import BusyError

T = TypeVar("T")
Still = Callable[[], Awaitable[bool]]


class GoneError(Exception):
    """The client went away while its question was waiting."""


@dataclass(eq=False)
class Place:
    """A call in the line, and what it will return."""

    person: str
    call: Callable[[], Any]
    still: Still | None
    done: asyncio.Future[Any]


class Line:
    """Runs calls on a few threads, in turn. `threads`: calls at once; `most`: waiting in all; `each`: waiting per person."""

    def __init__(self, threads: int, most: int, each: int, name: str = "desk") -> None:
        self._threads = threads
        self._most = most
        self._each = each
        self._places: queue.SimpleQueue[Place | None] = queue.SimpleQueue()
        self._waiting: dict[str, deque[Place]] = {}
        self._checking: set[asyncio.Task[None]] = set()
        self._closed = False
        self.waiting = 0
        self.running = 0
        for number in range(threads):
            threading.Thread(target=self._work, name=f"{name} {number}", daemon=True).start()

    async def run(self, person: str, call: Callable[[], T], still: Still | None = None) -> T:
        """Waits for a turn and returns what the call returns."""
        return await self.enter(person, call, still)

    def enter(self, person: str, call: Callable[[], T], still: Still | None = None) -> asyncio.Future[T]:
        """Takes a place in the line, or refuses. Returns what the call will return; cancelling that leaves the line.

        `still`: asks, after a time in the line, whether somebody still waits for it. Once the call has begun it ends, even if
        it is cancelled: what is charged is committed.
        """
        if self._closed:
            raise _stopping()
        place = Place(person, call, still, asyncio.get_running_loop().create_future())
        if self.running < self._threads and not self.waiting:
            self.running += 1
            self._places.put(place)
            return place.done
        if self.waiting >= self._most or len(self._waiting.get(person, ())) >= self._each:
            raise BusyError
        self._waiting.setdefault(person, deque()).append(place)
        self.waiting += 1
        place.done.add_done_callback(lambda _: self._leave(place))
        return place.done

    def _leave(self, place: Place) -> None:
        own = self._waiting.get(place.person)
        if own is not None and place in own:
            own.remove(place)
            self.waiting -= 1
            if not own:
                del self._waiting[place.person]

    def _next(self) -> None:
        """Passes a free thread on to the next person who waits."""
        if not self._waiting or self._closed:
            self.running -= 1
            return
        person, own = next(iter(self._waiting.items()))
        place = own.popleft()
        self.waiting -= 1
        del self._waiting[person]
        if own:
            self._waiting[person] = own  # last in the round
        if place.done.done():  # it was cancelled a moment ago
            self._next()
        elif place.still is None:
            self._places.put(place)
        else:
            task = asyncio.create_task(self._check(place, place.still))
            self._checking.add(task)
            task.add_done_callback(self._checking.discard)

    async def _check(self, place: Place, still: Still) -> None:
        """Begins a call, unless nobody waits for it any more."""
        there = False
        try:
            there = await still() and not place.done.done()
        finally:
            if there and not self._closed:  # after closing no thread would take it
                self._places.put(place)
            else:
                _settle(place.done, None, _stopping() if self._closed else GoneError())
                self._next()

    def close(self) -> None:
        """Refuses everybody who waits, uncharged. Calls that run go on."""
        self._closed = True
        waiting = [place for own in self._waiting.values() for place in own]
        self._waiting.clear()
        self.waiting = 0
        for place in waiting:
            _settle(place.done, None, _stopping())
        for _ in range(self._threads):
            self._places.put(None)

    async def drained(self, seconds: float) -> bool:
        """Waits until nothing runs. Returns False if that takes longer."""
        end = asyncio.get_running_loop().time() + seconds
        while self.running > 0 and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.01)
        return self.running <= 0

    def _work(self) -> None:
        while (place := self._places.get()) is not None:
            try:
                result, error = place.call(), None
            except BaseException as raised:
                result, error = None, raised
            try:
                place.done.get_loop().call_soon_threadsafe(self._ended, place.done, result, error)
            except RuntimeError:
                return  # the loop has ended, and with it whoever waited

    def _ended(self, done: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
        self._next()
        _settle(done, result, error)


def _stopping() -> BusyError:
    return BusyError("The server is stopping.")


def _settle(done: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(error)
        done.exception()  # so that asyncio does not report it, if nobody waits any more
