"""Fixtures of the wire's tests: real servers with real twins, and real clients. Nothing is mocked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from server.wire.talking import Wire, wired


@pytest.fixture(scope="session")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """A server with a large budget, for tests that leave no trace that others could see."""
    with wired(tmp_path_factory.mktemp("wire"), epsilon="100000") as found:
        yield found
