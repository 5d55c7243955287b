"""/login/oidc: sends a browser to the provider, and takes it back."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from dither.errors import AccessError, DitherError
from dither.server.console.render import respond
from dither.server.http.guard import address_of, desk_of, note
from dither.server.http.people import set_session
from dither.server.http.problems import status_of
from dither.server.oidc import LOGIN_SECONDS, Provider


def provider_of(request: Request) -> Provider:
    """Returns the provider of this process, which keeps what it has fetched."""
    desk, state = desk_of(request), request.app.state
    if desk.settings.oidc_issuer is None:
        raise AccessError("There is nothing at this path.", status=404, fix="log in at /login.")
    if not hasattr(state, "provider"):
        state.provider = Provider(desk.settings, desk.store, desk.accounts)
    found: Provider = state.provider
    return found


def _cookie(request: Request) -> str:
    return "__Host-dither-oidc" if desk_of(request).settings.secure else "dither-oidc"


async def begin(request: Request) -> Response:
    """GET /login/oidc: to the provider."""
    try:
        where, state = await asyncio.to_thread(provider_of(request).begin)
    except DitherError as error:
        return respond(request, "error.html", status=status_of(error), problem=error.as_data())
    response = RedirectResponse(where, 303)
    secure = desk_of(request).settings.secure
    response.set_cookie(
        _cookie(request), state, max_age=int(LOGIN_SECONDS), httponly=True, secure=secure, samesite="lax", path="/"
    )
    return response


async def finish(request: Request) -> Response:
    """GET /login/oidc/callback: back from the provider. The session's cookie is for requests from this site only, so the
    browser is sent on by a page of this site, not by a redirection, which would still count as the provider's."""
    provider, cookie = provider_of(request), request.cookies.get(_cookie(request), "")
    keys = list(request.query_params.keys())
    try:
        if len(set(keys)) < len(request.query_params.multi_items()):
            raise AccessError("The login failed: its address is not right.", status=400, fix="log in again.")
        secret = await asyncio.to_thread(provider.finish, dict(request.query_params), cookie, address_of(request))
    except DitherError as error:
        note(request, outcome=error.what)
        response = respond(request, "error.html", status=status_of(error), problem=error.as_data())
    else:
        response = respond(request, "welcome.html")
        set_session(response, desk_of(request).settings, secret)
    response.delete_cookie(_cookie(request), path="/", secure=desk_of(request).settings.secure, httponly=True, samesite="lax")
    return response
