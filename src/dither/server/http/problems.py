"""Errors as RFC 9457 problems: what, where, how to fix it, what was charged. Never a traceback or a value of the data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from dither.errors import DitherError
from dither.server.requests import FAULT

STATUS = {
    "usage": 400,
    "argument": 422,
    "price": 422,
    "query": 422,
    "budget": 402,
    "approval": 409,
    "busy": 503,
    "ledger": 503,
    "closed": 503,
    "moved": 409,
    "engine": 500,
}
TYPE = "urn:dither:problem:"


def status_of(error: DitherError) -> int:
    return int(getattr(error, "status", STATUS.get(error.code, 500)))


def as_problem(data: Mapping[str, Any], status: int) -> dict[str, Any]:
    """Returns an error's fields with those of RFC 9457."""
    return {"type": TYPE + str(data["code"]), "title": data["what"], "status": status, **data}


def problem(error: DitherError) -> Response:
    """Returns the response to an error."""
    status = status_of(error)
    headers = {"Retry-After": "1"} if error.code == "busy" else {}
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="dither"'
    return reply(as_problem(error.as_data(), status), status, headers)


def reply(data: Mapping[str, Any], status: int, headers: Mapping[str, str] | None = None) -> Response:
    """Returns a problem that is already data."""
    body = json.dumps(data, ensure_ascii=False)
    return Response(body, status, {"Cache-Control": "no-store", **(headers or {})}, media_type="application/problem+json")


def unexpected() -> Response:
    """Returns the response to a fault of the server itself. Its text is constant."""
    return reply(as_problem(FAULT, 500), 500)
