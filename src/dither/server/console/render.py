"""Renders pages: templates, the headers that keep a page to itself, and the files that pages load.

A page may load scripts, styles and fonts of this server only. Inline are the editor's style element, which carries the nonce of
its response, and style attributes: Chromium itself writes them while somebody types. Files are read once, named by their
content, and kept by browsers for a year.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import mimetypes
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import jinja2
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from dither import __version__
from dither.errors import AccessError, DitherError
from dither.exact.numbers import show, show_about
from dither.server.accounts import Who
from dither.server.http.guard import Handler, desk_of, who_asks
from dither.server.http.problems import status_of

PageHandler = Callable[[Request, Who], Awaitable[Response]]
FOREVER = "public, max-age=31536000, immutable"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; style-src-attr 'unsafe-inline'; "
    "font-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True)
class File:
    """A file that pages load: its bytes, plain and compressed, and the digest that names its version."""

    content: bytes
    packed: bytes
    kind: str
    digest: str


@cache
def static_files() -> Mapping[str, File]:
    """Returns every file under static/, by its path there. No other path is ever opened."""
    return {path: _file(path, found) for path, found in _walk(files(__package__).joinpath("static"), "")}


def _walk(folder: Traversable, before: str) -> list[tuple[str, Traversable]]:
    found = []
    for each in sorted(folder.iterdir(), key=lambda one: one.name):
        path = before + each.name
        found += _walk(each, path + "/") if each.is_dir() else [(path, each)]
    return found


def _file(path: str, found: Traversable) -> File:
    content = found.read_bytes()
    kinds = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".woff2": "font/woff2"}
    kind = next((kind for end, kind in kinds.items() if path.endswith(end)), mimetypes.guess_type(path)[0] or "text/plain")
    packed = content if path.endswith(".woff2") else gzip.compress(content, 9, mtime=0)
    return File(content, packed, kind, hashlib.sha256(content).hexdigest()[:12])


async def static(request: Request) -> Response:
    """GET /static/…: a file that pages load."""
    file = static_files().get(request.path_params["path"])
    if file is None:
        raise AccessError("There is no such file.", status=404, fix="open / instead.")
    headers = {"Cache-Control": FOREVER, "Vary": "Accept-Encoding"}
    if file.packed is not file.content and "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.packed, headers=headers | {"Content-Encoding": "gzip"}, media_type=file.kind)
    return Response(file.content, headers=headers, media_type=file.kind)


def address(path: str) -> str:
    """Returns the address of a file, which changes with its content."""
    return f"/static/{path}?v={static_files()[path].digest}"


# --- templates --------------------------------------------------------------------------------------------------


@cache
def environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__ or ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"address": address, "version": __version__}
    made.filters |= {
        "price": price,
        "when": when,
        "data": as_data,
        "fix": fix,
        "amount": amount,
        "charged": charged,
        "number": number,
        "float_of": float_of,
        "moved": moved,
        "own_terms": own_terms,
    }
    return made


def price(value: Mapping[str, str] | str) -> str:
    """Shows a price, rounded up."""
    parts = {"epsilon": value} if isinstance(value, str) else value
    signs = (("epsilon", "ε"), ("delta", "δ"))
    found = [f"{sign} = {show_about(Fraction(parts[name]), up=True)}" for name, sign in signs if Fraction(parts.get(name, "0"))]
    return ", ".join(found) or "nothing"


def amount(value: str) -> str:
    """Shows an exact number briefly, rounded down: for what is left."""
    return show_about(Fraction(value), up=False, digits=4)


def charged(value: str) -> str:
    """Shows an exact number briefly, rounded up: for what is spent."""
    return show_about(Fraction(value), up=True, digits=4)


def float_of(value: str) -> float:
    """Returns a rational as a float, for the length of a bar."""
    return float(Fraction(value))


def number(value: float | None) -> str:
    """Shows a margin with about three digits; ? if it cannot be stated."""
    if value is None:
        return "?"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def when(text: str) -> str:
    """Shows a time of the ledger to the minute."""
    return text[:16].replace("T", " ")


def as_data(value: Any) -> Markup:
    """Returns JSON for an attribute of an element."""
    return Markup(escape(json.dumps(value, ensure_ascii=False)))


def moved(mechanism: Mapping[str, Any]) -> str:
    """Shows how far one person moves the numbers of a mechanism, as its record in a receipt says."""
    found = mechanism.get("sensitivity")
    if isinstance(found, Mapping):
        return ", ".join(f"{name} {value}" for name, value in found.items())
    return "" if found is None else str(found)


def own_terms(terms: Mapping[str, Any]) -> str:
    """Shows the terms of a question that are not the catalog's: its own bounds of each person, and its sample."""
    names = (("sample", "a secret sample of"), ("max_rows", "most rows per person:"), ("max_groups", "most groups per person:"))
    return "; ".join(f"{words} {terms[name]}" for name, words in names if terms.get(name) is not None)


def fix(problem: Mapping[str, Any]) -> str:
    """Shows how to fix a problem. An argument is named as the form names it."""
    given = problem.get("fix")
    if not given:
        return ""
    return "".join(_filled(given["words"], given["parts"]))


def _filled(words: str, parts: Mapping[str, Any]) -> list[str]:
    from string import Formatter

    return [text + (_part(parts[place]) if place else "") for text, place, _, _ in Formatter().parse(words)]


def _part(part: Mapping[str, Any]) -> str:
    if "argument" in part:
        value = part.get("value")
        return f"{part['argument']} = {value}" if value not in (None, "") else str(part["argument"])
    return str(part.get("python") or part.get("shell") or part.get("text") or "")


def fragment(template: str, **values: Any) -> str:
    """Returns a part of a page as HTML."""
    return environment().get_template(template).render(**values, show=show)


def respond(request: Request, template: str, *, status: int = 200, who: Who | None = None, **values: Any) -> HTMLResponse:
    """Returns a whole page, with the headers that keep it to itself."""
    nonce = secrets.token_urlsafe(18)
    settings = desk_of(request).settings
    text = fragment(template, who=who, nonce=nonce, path=request.url.path, demo=settings.demo, status=status, **values)
    policy = _POLICY.format(nonce=nonce)
    return HTMLResponse(text, status, {"Content-Security-Policy": policy, "X-Frame-Options": "DENY"})


def page(handler: PageHandler) -> Handler:
    """Returns a handler of a page for people: whoever is not logged in is sent to the login, and errors are pages too."""

    async def handle(request: Request) -> Response:
        try:
            who = who_asks(request)
        except AccessError as error:
            if error.status != 401:
                raise
            return RedirectResponse("/login", 303)
        try:
            return await handler(request, who)
        except DitherError as error:
            return respond(request, "error.html", status=status_of(error), who=who, problem=error.as_data())

    return handle
