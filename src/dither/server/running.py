"""Runs the server: one process, or several on one ledger; TLS, limits, signals.

A worker that dies is started again. SIGTERM and Ctrl-C stop the server within `stop` seconds: no new request is taken, requests
that are being answered end, and a question that does not end in time keeps its price and gives no answer. Being stopped so is
no failure: `run` returns.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

import uvicorn
from uvicorn.supervisors import multiprocess

from dither.errors import ArgumentError, Fix, Shell
from dither.server.settings import ENVIRONMENT, Settings

HEADERS = 16 * 1024  # bytes of a request's head
PATIENCE = 120  # seconds: a worker that is silent for longer is killed, with whatever it was answering
NOT_STARTED = 3  # the exit code, as uvicorn has it


class _Server(uvicorn.Server):
    """A server that says when it can be asked."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and not self.should_exit:
            self._ready()


class SharedLoop(asyncio.SelectorEventLoop):
    """The event loop of one of several workers: it takes one connection at a time.

    Workers listen on one socket. By default asyncio takes everybody who waits there, so one of two workers got up to
    seven of ten connections. In this way the one that has time takes the next.
    """

    async def create_server(self, *given: Any, sock: Any = None, backlog: int = 100, **more: Any) -> Any:
        if sock is None:
            return await super().create_server(*given, backlog=backlog, **more)
        made = await super().create_server(*given, sock=sock, backlog=1, **more)
        sock.listen(backlog)  # asyncio also makes the line of those who wait that short
        return made


class Worker(multiprocess.Process):
    """A worker as its parent sees it. The parent never waits for it: it also has to hear signals."""

    _asked: float | None = None  # when it was asked for a sign of life that it has not given yet

    def start(self) -> None:
        """Starts it. Ctrl-C is for the parent, which ends its workers: in the start of one it would be a traceback."""
        heard = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            super().start()
        finally:
            signal.signal(signal.SIGINT, heard)
        self.child_conn.close()  # so that the pipe ends with the worker

    def is_alive(self, timeout: float = PATIENCE) -> bool:
        """Whether it runs, and was not silent for longer than `timeout` seconds."""
        try:
            if self._asked is not None and self.parent_conn.poll():
                self.parent_conn.recv()
                self._asked = None
            if self._asked is None:
                self.parent_conn.send(b"ping")
                self._asked = time.monotonic()
        except (OSError, EOFError):
            return False
        return self.process.is_alive() and time.monotonic() - self._asked < timeout


def is_free(host: str, port: int) -> bool:
    """Returns whether nobody listens on a port."""
    with suppress(OSError):
        socket.create_server((host, port), family=_family(host)).close()
        return True
    return False


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def check_ports(settings: Settings) -> None:
    """Refuses if a port cannot be listened on."""
    for option, port in (("--port", settings.port), ("--wire", settings.wire)):
        if port is None:
            continue
        try:
            socket.create_server((settings.host, port), family=_family(settings.host)).close()
        except OSError as error:
            why = "another program listens there" if error.errno == errno.EADDRINUSE else str(error.strerror or error)
            raise ArgumentError(
                f"Port {port} of {settings.host} cannot be listened on: {why}.",
                fix=Fix("stop that program, or take another port: {it}.", it=Shell(f"{option} {min(port + 1, 65535)}")),
            ) from None


def run(settings: Settings, ready: Callable[[], None] = lambda: None) -> None:
    """Serves until a signal ends it. `ready` is called when it can be asked; with several workers, before they start."""
    with ExitStack() as stack:
        os.environ[ENVIRONMENT] = settings.text()
        if settings.workers > 1:  # the counts of all workers are added up from files
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = stack.enter_context(tempfile.TemporaryDirectory(prefix="dither-counts-"))
        if settings.workers > 1:
            ready()
            multiprocess.Process = Worker  # type: ignore[misc]  # uvicorn takes no other class
            uvicorn.run(**_options(settings))
            return
        server = _Server(uvicorn.Config(**_options(settings)), ready)
        with suppress(KeyboardInterrupt):  # the signal that ended it, raised once more
            server.run()
        if not server.started:
            sys.exit(NOT_STARTED)


def _options(settings: Settings) -> dict[str, Any]:
    """Returns the settings as uvicorn names them."""
    return {
        "app": "dither.server.http.app:make",
        "factory": True,
        "host": settings.host,
        "port": settings.port,
        "workers": settings.workers,
        "http": "dither.server.http.heads:TimedHeads",
        "ws": "none",
        "loop": SharedLoop if settings.workers > 1 and os.name == "posix" else "asyncio",
        "lifespan": "on",
        "interface": "asgi3",
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "date_header": True,
        "proxy_headers": bool(settings.behind_proxy),
        "forwarded_allow_ips": list(settings.behind_proxy),
        "limit_concurrency": settings.connections,
        "backlog": 2048,
        "timeout_keep_alive": int(settings.keep_alive),
        "timeout_worker_healthcheck": PATIENCE,
        "timeout_graceful_shutdown": max(1, int(settings.stop / 2)),
        "h11_max_incomplete_event_size": HEADERS,
        "ssl_certfile": None if settings.tls is None else settings.tls[0],
        "ssl_keyfile": None if settings.tls is None else settings.tls[1],
    }
