"""The pytest plugin: a fixture `assert_private`. Loads the auditor only in tests that ask for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(name="assert_private")
def _assert_private() -> Callable[..., Any]:
    """Checks a privacy claim: `assert_private(function, epsilon=1)`. See `dither.audit.testing.assert_private`."""
    from dither.audit.testing import assert_private

    return assert_private
