"""Fixtures of the server's tests: a real server on loopback. Nothing is mocked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from server.serving import Running, Service, make, serving


@pytest.fixture
def service(tmp_path: Path) -> Service:
    """A service of its own, which is not running."""
    return make(tmp_path)


@pytest.fixture
def running(service: Service) -> Iterator[Running]:
    """A server of its own."""
    with serving(service) as server:
        yield server


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server for tests that leave no trace that others could see. It has a large budget."""
    with serving(make(tmp_path_factory.mktemp("shared"), epsilon="1000")) as server:
        yield server
