"""Runs the server: one process, or several on one ledger; TLS, limits, signals.

A worker that dies is started again. SIGTERM and Ctrl-C stop the server within `stop` seconds: no new request is taken, requests
that are being answered end, and a question that does not end in time keeps its price and gives no answer.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack

from dither.server.settings import ENVIRONMENT, Settings

HEADERS = 16 * 1024  # bytes of a request's head
PATIENCE = 120  # seconds: a worker that is silent for longer is killed, with whatever it was answering


def run(settings: Settings) -> None:
    """Serves until a signal ends it."""
    import uvicorn

    with ExitStack() as stack:
        os.environ[ENVIRONMENT] = settings.text()
        if settings.workers > 1:  # the counts of all workers are added up from files
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = stack.enter_context(tempfile.TemporaryDirectory(prefix="dither-counts-"))
        uvicorn.run(
            "dither.server.http.app:make",
            factory=True,
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            http="h11",
            ws="none",
            loop="asyncio",
            lifespan="on",
            interface="asgi3",
            log_level="warning",
            access_log=False,
            server_header=False,
            date_header=True,
            proxy_headers=bool(settings.behind_proxy),
            forwarded_allow_ips=list(settings.behind_proxy),
            limit_concurrency=settings.connections,
            backlog=2048,
            timeout_keep_alive=int(settings.keep_alive),
            timeout_worker_healthcheck=PATIENCE,
            timeout_graceful_shutdown=max(1, int(settings.stop / 2)),
            h11_max_incomplete_event_size=HEADERS,
            ssl_certfile=None if settings.tls is None else settings.tls[0],
            ssl_keyfile=None if settings.tls is None else settings.tls[1],
        )
