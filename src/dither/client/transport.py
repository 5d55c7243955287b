"""Requests to a server, and their problems as errors.

TLS is verified against the system's certificates, or those of `ca`. Plain HTTP is for loopback only: a token must not travel in
the clear. Nothing is redirected, so a token goes nowhere else. A request whose connection was cut is sent again, with the same
Idempotency-Key, so that nothing is paid twice.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from dither.errors import (
    AccessError,
    Argument,
    ArgumentError,
    Blank,
    DitherError,
    Fix,
    Form,
    Name,
    Part,
    Python,
    QueryError,
    Shell,
    Text,
)

LOOPBACK = ("127.0.0.1", "::1", "localhost")
LARGEST = 1 << 28  # bytes of a response
_TRIES = 3
NOBODY = "none"  # in place of a token, by which somebody logs in
_CUT = (ConnectionError, http.client.RemoteDisconnected, http.client.BadStatusLine, http.client.IncompleteRead)


class RemoteError(DitherError):
    """An error of the server or of the way to it. `code` is the server's, such as "access" or "busy"."""

    code = "remote"
    exit_code = 4

    def __init__(self, what: str, *, code: str = "remote", where: str = "", fix: str = "", charged: str = "nothing") -> None:
        object.__setattr__(self, "code", code)
        super().__init__(what, where=where, fix=fix, charged=charged)


@dataclass(frozen=True)
class Reply:
    """What the server returned: a status, and JSON."""

    status: int
    data: Any


class _Kept:
    """A connection of one thread, closed when nobody needs it any more, also if an error still holds it then."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self.connection = connection
        self.close = weakref.finalize(self, _close, connection)


def _close(connection: http.client.HTTPConnection) -> None:
    with suppress(OSError):
        connection.close()


@dataclass(frozen=True)
class Transport:
    """The way to one server. The token is in no repr and no error."""

    origin: str
    token: str = field(repr=False)
    ca: str | None = None
    timeout: float = 60.0
    _kept: threading.local = field(default_factory=threading.local, repr=False, compare=False)

    def get(self, path: str) -> Any:
        return self._right(self.send("GET", path)).data

    def post(self, path: str, body: Mapping[str, Any], key: str | None = None, question: str = "") -> Reply:
        """Sends JSON. Raises the server's problem as the error that `dt.open` would raise; `question`: its text."""
        return self._right(self.send("POST", path, body, key), question)

    def _right(self, reply: Reply, question: str = "") -> Reply:
        if reply.status == 401 and self.token != NOBODY:
            it = Python(
                'write dt.connect(url, token="dth_…") with a token that is valid,', "set DITHER_TOKEN to a valid token,"
            )
            fix = Fix("{it} or log in: {login}.", it=it, login=Shell(f"dither login {self.origin}"))
            raise AccessError(error_of(reply.data).what, status=401, fix=fix)
        if reply.status >= 400:
            raise error_of(reply.data, question)
        return reply

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None, key: str | None = None) -> Reply:
        """Sends a request, again if its connection was cut."""
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        headers |= {"Content-Type": "application/json"} if body is not None else {}
        headers |= {"Idempotency-Key": key} if key is not None else {}
        encoded = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        for left in reversed(range(_TRIES)):
            try:
                return self._once(method, path, encoded, headers)
            except _CUT as error:
                self.close()
                if isinstance(error, ConnectionRefusedError) and left == _TRIES - 1:  # nothing was sent
                    raise RemoteError(f"{self.origin} cannot be reached: nothing listens there.", fix=_CHECK) from None
                if not left:
                    raise self._unreachable("it closed the connection") from None
            except ssl.SSLCertVerificationError as error:
                self.close()
                trust = Fix(
                    "get the certificate of its authority from the curator, and write {it}.", it=Argument("ca", "ca.pem")
                )
                raise self._unreachable(f"its certificate is not trusted: {error.verify_message}", trust) from None
            except TimeoutError:
                self.close()
                raise self._unreachable("it did not answer in time") from None
            except OSError as error:
                self.close()
                raise self._unreachable(error.strerror or "no connection") from None
        raise AssertionError("every try returns or raises")

    def _once(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Reply:
        connection = self._connection()
        connection.request(method, path, body, dict(headers))
        response = connection.getresponse()
        text = response.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise RemoteError("The server's response is too large.", fix="ask a smaller question.", charged=_PERHAPS)
        try:
            return Reply(response.status, json.loads(text) if text else None)
        except ValueError:
            what = f"{self.origin} sent something that is not JSON."
            raise RemoteError(what, fix="check the address: it must be a server of dither.", charged=_PERHAPS) from None

    def _connection(self) -> http.client.HTTPConnection:
        kept: _Kept | None = getattr(self._kept, "connection", None)
        if kept is None:
            parts = urlsplit(self.origin)
            host = parts.hostname or ""
            if parts.scheme == "https":
                trusted = ssl.create_default_context(cafile=self.ca)
                kept = _Kept(http.client.HTTPSConnection(host, parts.port, timeout=self.timeout, context=trusted))
            else:
                kept = _Kept(http.client.HTTPConnection(host, parts.port, timeout=self.timeout))
            self._kept.connection = kept
        return kept.connection

    def close(self) -> None:
        """Closes the connection of this thread."""
        kept: _Kept | None = getattr(self._kept, "connection", None)
        if kept is not None:
            kept.close()
        self._kept.connection = None

    def _unreachable(self, why: str, fix: str = "") -> RemoteError:
        return RemoteError(
            f"{self.origin} cannot be reached: {why}.",
            fix=fix or f"{_CHECK[:-1]}; the same question is paid once, however often it is asked, unless it is `fresh`.",
            charged=_PERHAPS,
        )


_CHECK = "check the address and whether the server runs."
_PERHAPS = "nothing, unless your history shows a new entry"


def origin_of(url: str) -> str:
    """Returns scheme, host and port of a server's address. Refuses plain HTTP to another machine.

    >>> origin_of("https://survey.example/"), origin_of("http://127.0.0.1:8321")
    ('https://survey.example', 'http://127.0.0.1:8321')
    """
    url_of = Python('dt.connect("https://survey.example", token="dth_…")', "--server https://survey.example")
    fix = Fix("write {url}.", url=url_of)
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    plain = parts.scheme in ("https", "http") and parts.hostname and not (parts.query or parts.fragment or parts.username)
    if not plain or parts.path not in ("", "/"):
        raise ArgumentError("This is not the address of a server.", fix=fix)
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        what = f"{parts.hostname} would be asked without TLS, and the token would travel in the clear."
        raise ArgumentError(what, fix="write https://; plain http is for this machine only.")
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}" + (f":{port}" if port is not None else "")


# --- problems ---------------------------------------------------------------------------------------------------


def error_of(data: Any, question: str = "") -> DitherError:
    """Returns a problem as the error that it was on the server."""
    given = data if isinstance(data, dict) else {}
    texts = {name: str(given.get(name) or "") for name in ("code", "what", "where", "charged")}
    what, charged, fix = (
        texts["what"] or "The server refused the request.",
        texts["charged"] or _PERHAPS,
        fix_of(given.get("fix")),
    )
    if texts["code"] == "query":
        return QueryError(what, text=question, span=_span(given.get("span")), fix=fix, forms=_forms(given.get("forms")))
    for kind in _kinds(DitherError):
        if kind.code == texts["code"] and kind.__module__ == DitherError.__module__:
            error = kind.__new__(kind)
            request = given.get("request") if isinstance(given.get("request"), int) else 0
            vars(error).update(status=given.get("status"), why="", request=request, problems=(), diagnosis="")
            DitherError.__init__(error, what, where=texts["where"], fix=fix, charged=charged)
            return error
    return RemoteError(what, code=texts["code"] or "remote", where=texts["where"], fix=fix, charged=charged)


def _kinds(base: type[DitherError]) -> list[type[DitherError]]:
    return [base, *(each for kind in base.__subclasses__() for each in _kinds(kind))]


def fix_of(data: Any) -> Fix:
    """Returns a fix from its words and parts."""
    try:
        return Fix(data["words"], **{place: _part(part) for place, part in data["parts"].items()})
    except (TypeError, KeyError, ValueError, IndexError, AttributeError):
        return Fix.of("")


def _part(data: Mapping[str, Any]) -> Part:
    if "argument" in data:
        if "value" not in data:
            return Name(str(data["argument"]))
        value = data["value"]
        return Argument(str(data["argument"]), Blank() if value is None else value)
    if "python" in data:
        return Python(str(data["python"]), data.get("shell"))
    return Shell(str(data["shell"])) if "shell" in data else Text(str(data["text"]))


def _span(data: Any) -> tuple[int, int] | None:
    return (int(data[0]), int(data[1])) if isinstance(data, list) and len(data) == 2 else None


def _forms(data: Any) -> tuple[Form, ...]:
    return tuple(Form(str(each["words"]), str(each["question"]), bool(each["complete"])) for each in data or ())
