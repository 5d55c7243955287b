"""The console: pages for people. They are mounted here, and use the API of /v1 with the session cookie."""

from __future__ import annotations

from starlette.routing import BaseRoute

from dither.server.settings import Settings


def routes(settings: Settings) -> list[BaseRoute]:
    """Returns the routes of the console."""
    return []
