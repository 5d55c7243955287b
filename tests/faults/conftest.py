"""A survey in a folder, for whole asks."""

from __future__ import annotations

from journey.conftest import folder  # noqa: F401
