"""Fixtures for the tests of single mechanisms."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dither.exact import replay


class Empty:
    """A source without randomness."""

    def fill(self, target: memoryview) -> None:
        raise AssertionError("randomness was drawn")


@pytest.fixture
def no_dice() -> Iterator[None]:
    """Any use of randomness fails the test."""
    with replay.source(Empty()):
        yield
