"""The line: bounded, fair, and refusing before anything is asked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from dither.errors import BusyError
from dither.server.line import GoneError, Line


def run(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, 30))


class Gate:
    """Calls that wait until they are let go, and note who was served."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.served: list[str] = []

    def call(self, name: str) -> Any:
        def wait() -> str:
            self.open.wait()
            self.served.append(name)
            return name

        return wait


async def until_waiting(line: Line, number: int) -> None:
    while line.waiting < number:
        await asyncio.sleep(0.001)


def test_a_full_line_refuses_at_once() -> None:
    async def scene() -> None:
        line, gate = Line(1, most=2, each=2), Gate()
        tasks = [asyncio.create_task(line.run(who, gate.call(who))) for who in ("ada", "ben", "eve")]
        await until_waiting(line, 2)
        with pytest.raises(BusyError):
            await line.run("zoe", gate.call("zoe"))
        gate.open.set()
        assert await asyncio.gather(*tasks) == ["ada", "ben", "eve"]
        assert "zoe" not in gate.served
        assert await line.run("zoe", lambda: 7) == 7  # and is normal again
        line.close()

    run(scene())


def test_one_person_cannot_fill_it() -> None:
    async def scene() -> None:
        line, gate = Line(1, most=10, each=2), Gate()
        tasks = [asyncio.create_task(line.run("ada", gate.call("ada"))) for _ in range(3)]
        await until_waiting(line, 2)
        with pytest.raises(BusyError):
            await line.run("ada", gate.call("ada"))
        other = asyncio.create_task(line.run("ben", gate.call("ben")))
        await until_waiting(line, 3)
        gate.open.set()
        await asyncio.gather(*tasks, other)
        assert gate.served.index("ben") <= 2  # after one that ran and one in turn, not after all of ada's
        line.close()

    run(scene())


def test_who_leaves_the_line_is_not_asked_for() -> None:
    async def scene() -> None:
        line, gate = Line(1, most=10, each=10), Gate()
        first = asyncio.create_task(line.run("ada", gate.call("first")))
        await asyncio.sleep(0)
        gone = asyncio.create_task(line.run("ben", gate.call("gone")))
        await until_waiting(line, 1)
        gone.cancel()

        async def left() -> bool:
            return False

        closed = asyncio.create_task(line.run("eve", gate.call("closed"), left))
        await asyncio.sleep(0.01)
        gate.open.set()
        await first
        with pytest.raises(GoneError):
            await closed
        assert gate.served == ["first"]
        assert line.running == 0
        line.close()

    run(scene())


def test_a_cancelled_caller_does_not_stop_what_began() -> None:
    async def scene() -> None:
        line, gate = Line(1, most=10, each=10), Gate()
        task = asyncio.create_task(line.run("ada", gate.call("ada")))
        await asyncio.sleep(0.01)
        task.cancel()
        gate.open.set()
        assert await line.drained(10)
        assert gate.served == ["ada"]
        line.close()

    run(scene())


def test_closing_refuses_who_waits_and_lets_what_runs_end() -> None:
    async def scene() -> None:
        line, gate = Line(1, most=10, each=10), Gate()
        runs = asyncio.create_task(line.run("ada", gate.call("ada")))
        waits = asyncio.create_task(line.run("ben", gate.call("ben")))
        await until_waiting(line, 1)
        line.close()
        with pytest.raises(BusyError, match="stopping"):
            await waits
        with pytest.raises(BusyError, match="stopping"):
            await line.run("eve", gate.call("eve"))
        assert not await line.drained(0.01)
        gate.open.set()
        assert await runs == "ada"
        assert await line.drained(10)

    run(scene())


def test_an_error_reaches_the_caller_and_frees_the_thread() -> None:
    async def scene() -> None:
        line = Line(1, most=1, each=1)
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await line.run("ada", lambda: 1 // 0)
        assert await line.run("ada", lambda: 1) == 1
        line.close()

    run(scene())


def test_who_leaves_at_once_takes_no_thread_along() -> None:
    async def scene() -> None:
        line, gate = Line(1, most=10, each=10), Gate()
        first = asyncio.create_task(line.run("ada", gate.call("first")))
        await asyncio.sleep(0)

        async def there() -> bool:
            return True

        for still in (None, there):
            gone = line.enter("ben", gate.call("gone"), still)
            gone.cancel()
        kept = line.enter("eve", gate.call("kept"), there)
        await asyncio.sleep(0)
        assert line.waiting == 1
        gate.open.set()
        assert [await first, await kept] == ["first", "kept"]
        assert gate.served == ["first", "kept"]
        assert await line.drained(10)
        line.close()

    run(scene())


def test_a_call_that_was_cancelled_keeps_its_thread_until_it_ends() -> None:
    async def scene() -> None:
        line, gate = Line(1, most=10, each=10), Gate()
        line.enter("ada", gate.call("ada")).cancel()
        await asyncio.sleep(0.01)
        other = line.enter("ben", gate.call("ben"))
        await asyncio.sleep(0.01)
        assert (line.running, line.waiting) == (1, 1)
        gate.open.set()
        assert await other == "ben"
        assert gate.served == ["ada", "ben"]
        line.close()

    run(scene())


def test_closing_while_somebody_is_asked_whether_they_still_wait() -> None:
    async def scene() -> None:
        line, gate = Line(1, most=10, each=10), Gate()
        asked, reply = asyncio.Event(), asyncio.Event()

        async def slowly() -> bool:
            asked.set()
            await reply.wait()
            return True

        first = line.enter("ada", gate.call("first"))
        waits = line.enter("ben", gate.call("ben"), slowly)
        gate.open.set()
        await first
        await asked.wait()
        line.close()
        reply.set()
        with pytest.raises(BusyError, match="stopping"):
            await waits
        assert await line.drained(10)
        assert gate.served == ["first"]

    run(scene())


def test_who_leaves_as_their_turn_comes_is_not_asked_for() -> None:
    async def scene() -> None:
        line, gate = Line(1, most=10, each=10), Gate()
        line.enter("ada", gate.call("first"))
        gone, kept = line.enter("ben", gate.call("gone")), line.enter("eve", gate.call("kept"))
        ended = line._ended

        def at_once(*given: Any) -> None:
            gone.cancel()  # in the same round of the loop in which the thread becomes free
            ended(*given)

        line._ended = at_once  # type: ignore[method-assign]
        gate.open.set()
        assert await kept == "kept"
        assert gate.served == ["first", "kept"]
        line.close()

    run(scene())
