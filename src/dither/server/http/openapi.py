"""The description of the API (OpenAPI 3.1), from the forms that decode requests and the docstrings of handlers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from dither import __version__
from dither.server.http.forms import AskForm, DecisionForm, EmptyForm, LoginForm, QuoteForm, SuggestForm, TokenForm
from dither.server.http.guard import Handler

FORMS: dict[str, type[msgspec.Struct]] = {
    "/v1/quote": QuoteForm,
    "/v1/ask": AskForm,
    "/v1/suggest": SuggestForm,
    "/v1/login": LoginForm,
    "/v1/approvals/{id}": DecisionForm,
    "/v1/tokens": TokenForm,
    "/v1/tokens/revoke": EmptyForm,
}
OPEN = ("/healthz", "/readyz", "/v1/login", "/v1/tokens", "/v1/openapi.json")
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "code", "what", "where", "fix", "charged"],
    "properties": {
        **{name: {"type": "string"} for name in ("type", "title", "code", "what", "where", "charged")},
        "status": {"type": "integer"},
        "fix": {"type": ["object", "null"]},
        "span": {"type": ["array", "null"], "items": {"type": "integer"}},
    },
}


def description(routes: Sequence[tuple[str, str, Handler]]) -> dict[str, Any]:
    """Returns the description of these routes."""
    schemas, components = msgspec.json.schema_components(FORMS.values(), ref_template="#/components/schemas/{name}")
    bodies = dict(zip(FORMS, schemas, strict=True))
    paths: dict[str, Any] = {}
    for method, path, handler in routes:
        paths.setdefault(path, {})[method.lower()] = _operation(method, path, handler, bodies)
    return {
        "openapi": "3.1.0",
        "info": {"title": "dither", "version": __version__, "description": "Differentially private answers to SQL questions."},
        "paths": paths,
        "components": {
            "schemas": components | {"Problem": _PROBLEM},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(method: str, path: str, handler: Handler, bodies: dict[str, Any]) -> dict[str, Any]:
    words = " ".join((handler.__doc__ or "").split()).partition(": ")[2]
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    made: dict[str, Any] = {
        "operationId": f"{method.lower()}_{handler.__name__}",
        "summary": words,
        "responses": {"200": {"description": "done"}, "default": {"description": "a problem", "content": problem}},
    }
    names = re.findall(r"\{(\w+)\}", path)
    if names:
        made["parameters"] = [{"name": each, "in": "path", "required": True, "schema": {"type": "string"}} for each in names]
    if path in ("/v1/ask", "/v1/suggest"):
        made["responses"]["202"] = {"description": "still being answered, or waiting for a curator"}
        made["parameters"] = [{"name": "Idempotency-Key", "in": "header", "required": False, "schema": {"type": "string"}}]
    if method == "POST" and path in bodies:
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": bodies[path]}}}
    if path in OPEN:
        made["security"] = []
    return made
