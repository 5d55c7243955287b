"""The console: pages for people, rendered on the server. They use the API of /v1 with the session cookie.

May import: the other parts of `server`. Law: a page shows what the API would return to the same person, and nothing else; it
loads nothing from elsewhere, and every text in it is escaped by its template.

pages      what the routes return          actions   what open pages call: quote, ask, verify
words      the catalog in words            render    templates, headers, files
oidc       login through a provider        static/   styles, scripts, and the editor that scripts/console/ builds
"""

from __future__ import annotations

from starlette.routing import BaseRoute, Route

from dither.server.console import actions, oidc, pages, render
from dither.server.http.guard import guarded
from dither.server.oidc import CALLBACK
from dither.server.settings import Settings

_PAGES = (
    ("/", pages.ask),
    ("/catalog", pages.catalog),
    ("/suggest", pages.suggest),
    ("/history", pages.history),
    ("/answers/{id}", pages.answer),
    ("/answers/{id}/csv", pages.answer_csv),
    ("/answers/{id}/json", pages.answer_json),
    ("/receipts/{id}", pages.receipt),
    ("/receipts/{id}/json", pages.receipt_json),
    ("/approvals", pages.approvals),
    ("/audit", pages.audit),
)
_ACTIONS = (
    ("POST", "/console/quote", actions.quote),
    ("POST", "/console/ask", actions.ask),
    ("POST", "/console/suggest/quote", actions.quote_suggestion),
    ("POST", "/console/suggest", actions.suggest),
    ("GET", "/console/answers/{id}", actions.look),
    ("GET", "/console/verify", actions.verify),
)


def routes(settings: Settings) -> list[BaseRoute]:
    """Returns the routes of the console."""
    found: list[BaseRoute] = [Route("/login", guarded("/login", pages.login), methods=["GET"])]
    if settings.oidc_issuer is not None:
        found.append(Route("/login/oidc", guarded("/login/oidc", oidc.begin), methods=["GET"]))
        found.append(Route(CALLBACK, guarded(CALLBACK, oidc.finish), methods=["GET"]))
    found.append(Route("/static/{path:path}", guarded("/static", render.static), methods=["GET"]))
    found += [Route(path, guarded(path, render.page(handler)), methods=["GET"]) for path, handler in _PAGES]
    found += [Route(path, guarded(path, handler), methods=[method]) for method, path, handler in _ACTIONS]
    return found
