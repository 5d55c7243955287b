"""The real server of the ledger's tests, for whole asks."""

from __future__ import annotations

from journey.conftest import folder  # noqa: F401
from ledger.postgres_server import postgres, postgres_url  # noqa: F401
