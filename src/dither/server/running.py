"""Runs the server: one process, or several on one ledger; TLS, limits, signals.

A worker that dies is started again. SIGTERM and Ctrl-C stop the server within `stop` seconds: no new request is taken, requests
that are being answered end, and a question that does not end in time keeps its price and gives no answer. Being stopped so is
no failure: `run` returns.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

import uvicorn

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
        "loop": "dither.server.running:SharedLoop" if settings.workers > 1 and os.name == "posix" else "asyncio",
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
