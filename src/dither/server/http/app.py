"""The application: every route, and the desk for as long as it runs.

`make` is what worker processes call. They get their settings through the environment, and open the catalog themselves.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from dither.errors import RequestError
from dither.server import console
from dither.server.desk import Desk, open_desk
from dither.server.http import api, metrics, people
from dither.server.http.guard import Handler, OneReading, desk_of, guarded, who_asks
from dither.server.http.openapi import description
from dither.server.http.problems import problem
from dither.server.settings import Settings
from dither.server.wire.listening import listen

TURN = 0.0005  # seconds that a thread with a question computes before the one that reads requests gets its turn
# How many objects are made before the new ones are searched for garbage, and how many searches before older ones are.
COLLECTED = (20_000, 20, 20)

ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("POST", "/v1/quote", api.quote),
    ("POST", "/v1/ask", api.ask),
    ("POST", "/v1/suggest", api.suggest),
    ("GET", "/v1/answers/{id}", api.answer),
    ("GET", "/v1/catalog", api.catalog),
    ("GET", "/v1/budget", api.budget),
    ("GET", "/v1/history", api.history),
    ("GET", "/v1/receipts/{id}", api.receipt),
    ("GET", "/v1/verify", api.verify),
    ("GET", "/v1/key", api.key),
    ("GET", "/v1/approvals", api.approvals),
    ("GET", "/v1/approvals/{id}", api.approval),
    ("POST", "/v1/approvals/{id}", api.decide),
    ("POST", "/v1/login", people.login),
    ("POST", "/v1/logout", people.logout),
    ("POST", "/v1/tokens", people.make_token),
    ("POST", "/v1/tokens/revoke", people.revoke_token),
    ("GET", "/v1/me", people.me),
    ("GET", "/healthz", people.health),
    ("GET", "/readyz", people.ready),
)


async def counts(request: Request) -> Response:
    """GET /metrics: counts for Prometheus. Needs the scope `audit`."""
    who_asks(request).require("audit")
    lines = desk_of(request).asking, desk_of(request).paying
    waiting, running = sum(line.waiting for line in lines), sum(line.running for line in lines)
    return Response(metrics.page(waiting, running), media_type=metrics.TYPE)


async def openapi(request: Request) -> Response:
    """GET /v1/openapi.json: this description."""
    return JSONResponse(description(ROUTES))


async def _missing(request: Request, error: Exception) -> Response:
    status = int(getattr(error, "status_code", 404))
    what = "This path takes other methods." if status == 405 else "There is nothing at this path."
    return problem(RequestError(what, status=status, fix="see /v1/openapi.json."))


def application(settings: Settings) -> Starlette:
    """Returns the application. The catalog is opened when it starts and closed when it ends."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        desk: Desk = await asyncio.to_thread(open_desk, settings)
        app.state.desk = desk
        try:
            app.state.wire = wire = await listen(desk, settings)
            try:
                yield
            finally:
                if wire is not None:
                    await wire.stop()
                await desk.stop(settings.stop / 2)
                if wire is not None:
                    await wire.finish(1.0)
        finally:
            await asyncio.to_thread(desk.close)

    own: tuple[tuple[str, str, Handler], ...] = (
        *ROUTES,
        ("GET", "/metrics", counts),
        ("GET", "/v1/openapi.json", openapi),
    )
    routes: list[BaseRoute] = [Route(path, guarded(path, handler), methods=[method]) for method, path, handler in own]
    routes += console.routes(settings)
    handlers: dict[Any, Any] = {404: _missing, 405: _missing}
    return Starlette(routes=routes, middleware=[Middleware(OneReading)], lifespan=lifespan, exception_handlers=handlers)


def make() -> Starlette:
    """Returns the application of a worker process."""
    sys.setswitchinterval(TURN)
    _collect_rarely()
    return application(Settings.passed())


def _collect_rarely() -> None:
    """Leaves what was imported out of the search for garbage, which stops all requests for as long as it takes: up to 0.2 s."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTED)
    atexit.register(gc.unfreeze)  # DuckDB complains at the end of what nobody frees
