"""Several workers on one socket: each takes one connection at a time, and their parent sees how they are."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from multiprocessing import Pipe, get_context
from pathlib import Path

import pytest

from dither.server.http import app
from dither.server.running import SharedLoop, Worker
from server.serving import COUNT, make, process, wait_until_ready
from server.test_faults import children

WAITING = 10


@pytest.fixture
def waiting() -> Iterator[socket.socket]:
    """A socket at which ten clients wait."""
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=100))
        listening.setblocking(False)
        for _ in range(WAITING):
            stack.enter_context(socket.create_connection(listening.getsockname()))
        yield listening


def taken_at_once(loop: asyncio.AbstractEventLoop, listening: socket.socket) -> int:
    """Returns how many of those who wait a loop takes when it looks at its sockets a few times."""

    class Closing(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            transport.close()

    async def serve() -> asyncio.Server:
        return await loop.create_server(Closing, sock=listening, backlog=100)

    server = loop.run_until_complete(serve())
    loop.call_soon(loop.stop)
    loop.run_forever()
    left = 0
    with suppress(BlockingIOError):
        while True:
            listening.accept()[0].close()
            left += 1
    loop.run_until_complete(asyncio.sleep(0.05))
    server.close()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    return WAITING - left


def test_a_worker_takes_one_connection_at_a_time(waiting: socket.socket) -> None:
    assert taken_at_once(SharedLoop(), waiting) <= 4


def test_that_check_can_fail(waiting: socket.socket) -> None:
    assert taken_at_once(asyncio.SelectorEventLoop(), waiting) == WAITING


def test_the_line_of_those_who_wait_stays_long() -> None:
    """asyncio makes it as short as the number that it takes at once."""
    loop = SharedLoop()
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        server = loop.run_until_complete(loop.create_server(asyncio.Protocol, sock=listening, backlog=100))
        for _ in range(WAITING):  # nobody takes them meanwhile
            stack.enter_context(socket.create_connection(listening.getsockname(), timeout=0.9))
        server.close()
        loop.run_until_complete(asyncio.sleep(0))
    loop.close()


def test_garbage_is_looked_for_rarely_and_freed_at_the_end() -> None:
    code = f"import gc; from {app.__name__} import _collect_rarely as f; f(); print(gc.get_freeze_count() > 10_000)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("True\n", "")


@pytest.mark.slow
def test_workers_end_without_a_word(tmp_path: Path) -> None:
    """DuckDB's binding lists what was not freed when a process ends."""
    service, log = make(tmp_path, epsilon="10"), tmp_path / "log"
    with process(service, log, workers=2) as running:
        assert running.ask("ada", COUNT, "0.1").status == 200
        running.end(signal.SIGTERM)
    assert b"leaked" not in log.read_bytes()


class Silent(Worker):
    """A worker that was started, and gives no sign of life."""

    def __init__(self) -> None:
        self.parent_conn, self.child_conn = Pipe()
        self.process = get_context("spawn").Process(target=time.sleep, args=(60,))


@pytest.fixture
def silent() -> Iterator[Silent]:
    worker = Silent()
    worker.process.start()
    yield worker
    worker.process.kill()
    worker.process.join()
    worker.parent_conn.close()
    worker.child_conn.close()


def test_the_parent_does_not_wait_for_a_silent_worker(silent: Silent) -> None:
    """It used to wait for two minutes, and heard no signal meanwhile."""
    began = time.monotonic()
    assert all(silent.is_alive(1000.0) for _ in range(100))
    assert not silent.is_alive(0.0)
    assert time.monotonic() - began < 100
    silent.child_conn.send(True)  # the sign of life
    assert silent.is_alive(0.5)


def test_the_parent_sees_that_a_worker_is_dead(silent: Silent) -> None:
    assert silent.is_alive(1000.0)
    silent.process.kill()
    silent.process.join()
    assert not silent.is_alive(1000.0)


def test_a_pipe_that_has_ended_is_a_dead_worker(silent: Silent) -> None:
    assert silent.is_alive(1000.0)
    silent.child_conn.close()
    assert not silent.is_alive(1000.0)


@pytest.mark.slow
def test_workers_killed_while_they_start_are_started_again(tmp_path: Path) -> None:
    service, log = make(tmp_path, epsilon="10"), tmp_path / "log"
    with process(service, log, workers=2) as running:
        for pause in (0.0, 0.3, 0.6, 0.9):
            for pid in children(running.running.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(pause)
        wait_until_ready(running, running.running)
        assert running.ask("ada", COUNT, "0.1").status == 200
        assert running.end(signal.SIGTERM) == 0
    assert b"Traceback" not in log.read_bytes()
