"""`login` and `logout`: a token for a server, stored for its owner only, where `dt.connect` finds it."""

from __future__ import annotations

import sys
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dither.cli.app import app
from dither.cli.screen import escape, note
from dither.errors import ArgumentError, DitherError, Fix, Shell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dither.client.transport import Transport

Url = Annotated[str, typer.Argument(help="Address of the server.", show_default=False)]
Ca = Annotated[str | None, typer.Option(help="File of certificates to trust besides the system's.")]


@app.command("login")
def _login(
    url: Url,
    name: Annotated[str | None, typer.Option("--name", "-n", help="Your name. Default: asked for.")] = None,
    token: Annotated[bool, typer.Option("--token", help="Store a token that the curator gave you.")] = False,
    days: Annotated[int, typer.Option(min=1, max=366, help="Days until the login ends.")] = 90,
    ca: Ca = None,
) -> None:
    """Log in to a server: get a token, and store it for dt.connect.

    Reads the password, or the token, from the terminal or the first line of stdin.
    People who log in through OpenID Connect need a token from the curator: dither people token NAME.
    """
    from dither.client.logins import Login, Logins
    from dither.client.transport import NOBODY, origin_of

    if token and name is not None:
        raise ArgumentError("A token has its person.", fix=Fix("leave {name} out.", name=Shell("--name")))
    if token:
        secret = _secret("Token")
        with _reached(url, secret, ca) as there:
            who = there.get("/v1/me")
        login = Login(str(who["name"]), secret)
    else:
        person = name or _line("Name")
        body = {"name": person, "password": _secret("Password"), "days": days, "label": "dither login"}
        with _reached(url, NOBODY, ca) as there:
            made: Any = there.post("/v1/tokens", body).data
        login = Login(str(made["name"]), str(made["token"]), made=True)
    origin, logins = origin_of(url), Logins()
    logins.keep(origin, login)
    note(f'{escape(login.name)} is logged in: dither ask --server {origin} and dt.connect("{origin}") need no token now.')
    note(f"The token is in {escape(str(logins.path))}, for you only. To end it: dither logout {origin}")


@app.command("logout")
def _logout(url: Url, ca: Ca = None) -> None:
    """Forget the token of a server. One that dither login made from a password is revoked there, too."""
    from dither.client.logins import Logins
    from dither.client.transport import origin_of

    logins, origin = Logins(), origin_of(url)
    login = logins.find(origin)
    if login is None:
        raise ArgumentError(f"Nobody is logged in to {origin} here.", fix=_known(logins.path, logins.servers()))
    logins.forget(origin)
    if not login.made:
        note("The token is forgotten here. It still works: the curator revokes it.")
        return
    try:
        with _reached(url, login.token, ca) as there:
            there.post("/v1/tokens/revoke", {})
    except DitherError as error:
        note(f"The token is forgotten here, and could not be revoked there: {escape(error.what)}", style="yellow")
        return
    note(f"{escape(login.name)} is logged out, and the token works no more.")


def _known(path: Path, servers: list[str]) -> str:
    return f"name one of: {', '.join(servers)}." if servers else f"there is no login in {path}."


@contextmanager
def _reached(url: str, token: str, ca: str | None) -> Iterator[Transport]:
    """Reaches a server for one request."""
    from dither.client.remote import reach

    with closing(reach(url, token, ca=ca)[0]) as transport:
        yield transport


def _secret(what: str) -> str:
    if sys.stdin.isatty():
        return str(typer.prompt(what, hide_input=True))
    return _line(what)


def _line(what: str) -> str:
    """Reads a line from the terminal, or the next one of stdin."""
    if sys.stdin.isatty():
        return str(typer.prompt(what))
    found = sys.stdin.readline().rstrip("\n")
    if not found:
        raise ArgumentError(f"{what} is missing on stdin.", fix="write it on a line of its own.")
    return found
