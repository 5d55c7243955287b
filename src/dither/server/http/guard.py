"""Around every request: who asks, the size and time of its body, the headers of its response, and one line in the log.

A log line has the time, the person, the route, the status and the entry; never a token, a cookie, a query string or data. A
question is in it only if `log_questions` is set.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dither.errors import AccessError, DitherError, RequestError
from dither.server.accounts import Who
from dither.server.desk import Desk
from dither.server.http import metrics
from dither.server.http.problems import problem, unexpected
from dither.server.line import GoneError

Handler = Callable[[Request], Awaitable[Response]]
F = TypeVar("F", bound=msgspec.Struct)

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
SAFE = ("GET", "HEAD", "OPTIONS")


def desk_of(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


# --- who asks ---------------------------------------------------------------------------------------------------


def who_asks(request: Request) -> Who:
    """Returns who asks, proved by the Authorization header or the session cookie. Refuses anybody else.

    A cookie is sent by browsers unasked, so a request that changes something also needs the console's own Origin.
    """
    desk, given = desk_of(request), request.headers.getlist("authorization")
    if len(given) > 1:
        raise RequestError("There is more than one Authorization header.", status=400, fix="send one.")
    who: Who | None = None
    if given:
        kind, _, secret = given[0].partition(" ")
        who = desk.accounts.by_token(secret.strip()) if kind.lower() == "bearer" else None
    elif (secret := request.cookies.get(desk.settings.cookie, "")) and len(secret) <= 200:
        who = desk.accounts.by_session(secret)
        if who is not None and request.method not in SAFE:
            check_origin(request)
    if who is None:
        raise AccessError(
            "Nobody is logged in with this request.", status=401, fix="send a header Authorization: Bearer and your token."
        )
    request.state.who = who
    return who


def check_origin(request: Request) -> None:
    """Refuses a request that another site may have made: its Origin must be this server's."""
    origin, host = request.headers.get("origin"), request.headers.get("host", "")
    site = request.headers.get("sec-fetch-site")
    found = urlsplit(origin or "")
    right = (
        bool(host)
        and found.netloc == host
        and found.scheme in (("https",) if desk_of(request).settings.secure else ("http", "https"))
    )
    if not right or site not in (None, "same-origin"):
        raise AccessError("This request came from another site.", status=403, fix="use the console itself, or a token.")


def address_of(request: Request) -> str:
    return request.client.host if request.client else ""


# --- bodies -----------------------------------------------------------------------------------------------------


async def body_of(request: Request) -> bytes:
    """Returns the body. Refuses one that is too large, or takes too long to arrive."""
    settings = desk_of(request).settings
    length = request.headers.get("content-length", "")
    if length and (not length.isascii() or not length.isdecimal() or int(length[:18]) > settings.body):
        raise _too_large(settings.body)
    parts, size = [], 0
    try:
        async with asyncio.timeout(settings.read_time):
            async for part in request.stream():
                size += len(part)
                if size > settings.body:
                    raise _too_large(settings.body)
                parts.append(part)
    except TimeoutError:
        raise RequestError("The request took too long to arrive.", status=408, fix="send it again.") from None
    return b"".join(parts)


def _too_large(most: int) -> RequestError:
    return RequestError(f"A request has at most {most:,} bytes.", status=413, fix="ask in several requests.")


async def form_of(request: Request, form: type[F]) -> tuple[F, bytes]:
    """Returns the body as a form, and its bytes. Refuses what is not JSON by its type: a browser's form cannot send that."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RequestError("The body must be JSON.", status=415, fix="send Content-Type: application/json.")
    body = await body_of(request)
    try:
        return msgspec.json.decode(body, type=form), body
    except msgspec.ValidationError as error:
        raise RequestError(
            f"The request has a wrong field: {_words(error)}.", status=422, fix="see /v1/openapi.json."
        ) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, OverflowError):
        raise RequestError("The body is not JSON.", status=400, fix="send one JSON object in UTF-8.") from None


def _words(error: Exception) -> str:
    text = str(error).rstrip(".")
    return "".join(c if c.isprintable() else " " for c in text)[:300]


class OneReading:
    """Refuses a request whose end can be read in two ways, by a proxy and by this server, and closes its connection."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        names = [name for name, _ in scope.get("headers", ())]
        if names.count(b"content-length") + names.count(b"transfer-encoding") > 1:
            what = "The request has both a Content-Length and a Transfer-Encoding."
            response = problem(RequestError(what, status=400, fix="send one of them."))
            response.headers["Connection"] = "close"
            await response(scope, receive, send)
            return
        await self._app(scope, receive, send)


# --- around a request -------------------------------------------------------------------------------------------


def guarded(route: str, handler: Handler) -> Handler:
    """Returns the handler with its errors as problems, headers on its responses, and its log line."""

    async def around(request: Request) -> Response:
        request.state.log = {}
        try:
            response = await handler(request)
        except GoneError:
            response = Response(status_code=499)
        except ClientDisconnect:
            response = Response(status_code=499)
        except DitherError as error:
            request.state.log["code"] = error.code
            response = problem(error)
        except asyncio.CancelledError:
            raise
        except Exception:
            request.state.log["code"] = "server"
            response = unexpected()
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        if desk_of(request).settings.secure:
            response.headers.setdefault("Strict-Transport-Security", "max-age=31536000")
        response.headers.setdefault("Cache-Control", "no-store")
        metrics.count_request(route, response.status_code)
        log(request, route, response.status_code)
        return response

    return around


def log(request: Request, route: str, status: int) -> None:
    """Writes one line of JSON to stderr. In the demo only of faults: its terminal shows the links to log in with."""
    if desk_of(request).settings.demo and status < 500:
        return
    who: Who | None = getattr(request.state, "who", None)
    line: MutableMapping[str, Any] = {"time": round(time.time(), 3), "method": request.method, "route": route, "status": status}
    line.update({"who": None if who is None else who.name, "token": None if who is None else who.token})
    line.update(request.state.log)
    sys.stderr.write(json.dumps(line, ensure_ascii=True) + "\n")


def note(request: Request, **facts: Any) -> None:
    """Adds facts to the request's log line. They must not hold data; a question is dropped unless the settings allow it."""
    if "question" in facts and not desk_of(request).settings.log_questions:
        del facts["question"]
    request.state.log |= facts


def still_there(request: Request) -> Callable[[], Awaitable[bool]]:
    """Returns a function that tells whether the client still waits."""

    async def still() -> bool:
        return not await request.is_disconnected()

    return still
