"""/v1: login and logout for the console, who one is, and one's own tokens."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from dither.errors import RequestError
from dither.server.accounts import Who
from dither.server.desk import Desk
from dither.server.http.forms import EmptyForm, LoginForm, TokenForm
from dither.server.http.guard import address_of, check_origin, desk_of, form_of, who_asks
from dither.server.settings import Settings

LONGEST_DAYS = 366


async def login(request: Request) -> Response:
    """POST /v1/login: starts a session for a browser, in a cookie. Programs send their token instead."""
    desk = desk_of(request)
    if request.headers.get("origin") is not None:
        check_origin(request)
    form, _ = await form_of(request, LoginForm)
    address, seconds, accounts = address_of(request), desk.settings.session, desk.accounts
    if form.code is not None:
        secret = await asyncio.to_thread(accounts.log_in_by_code, form.code, address, seconds)
    elif form.token is not None:
        secret = await asyncio.to_thread(accounts.log_in_by_token, form.token, address, seconds)
    elif form.name is not None and form.password is not None:
        secret = await asyncio.to_thread(accounts.log_in, form.name, form.password, address, seconds)
    else:
        raise RequestError("A login needs a name and a password.", status=422, fix="send both, or a token, or a code.")
    who = accounts.by_session(secret)
    response = JSONResponse(_about(who) if who is not None else {})
    set_session(response, desk.settings, secret)
    return response


def set_session(response: Response, settings: Settings, secret: str) -> None:
    """Puts a session into its cookie, which browsers send with requests from this site only."""
    seconds, secure = int(settings.session), settings.secure
    response.set_cookie(settings.cookie, secret, max_age=seconds, httponly=True, secure=secure, samesite="strict", path="/")


async def logout(request: Request) -> Response:
    """POST /v1/logout: ends the session."""
    desk, _ = desk_of(request), who_asks(request)
    desk.accounts.log_out(request.cookies.get(desk.settings.cookie, ""))
    response = Response(status_code=204)
    response.delete_cookie(desk.settings.cookie, path="/", secure=desk.settings.secure, httponly=True, samesite="strict")
    return response


async def make_token(request: Request) -> Response:
    """POST /v1/tokens: a token for whoever has the password, as `dither login` asks for it. It is shown once."""
    desk = desk_of(request)
    if request.headers.get("origin") is not None:
        check_origin(request)
    form, _ = await form_of(request, TokenForm)
    if not 0 < form.days <= LONGEST_DAYS:
        raise RequestError(f"A token works for at most {LONGEST_DAYS} days.", status=422, fix="send fewer days.")
    address = address_of(request)
    name, ident, token = await asyncio.to_thread(
        desk.accounts.exchange, form.name, form.password, address, form.days, form.label
    )
    return JSONResponse({"id": ident, "token": token, "name": name, "days": form.days})


async def revoke_token(request: Request) -> Response:
    """POST /v1/tokens/revoke: ends the token that the request is sent with."""
    desk, who = desk_of(request), who_asks(request)
    await form_of(request, EmptyForm)
    if who.token is None:
        raise RequestError("This is a session, and no token.", status=422, fix="send the token in the header Authorization.")
    await asyncio.to_thread(desk.accounts.revoke, who.token)
    return JSONResponse({"revoked": who.token})


async def me(request: Request) -> Response:
    """GET /v1/me: who you are, and what you may do."""
    who = who_asks(request)
    return JSONResponse(_about(who))


def _about(who: Who) -> dict[str, Any]:
    return {"name": who.name, "role": who.role, "scopes": sorted(who.scopes), "project": who.project}


async def health(request: Request) -> Response:
    """GET /healthz: whether the process runs."""
    return Response("ok\n", media_type="text/plain")


async def ready(request: Request) -> Response:
    """GET /readyz: whether questions can be answered."""
    desk: Desk = desk_of(request)
    right = await asyncio.to_thread(desk.is_ready)
    return Response("ready\n" if right else "not ready\n", 200 if right else 503, media_type="text/plain")
