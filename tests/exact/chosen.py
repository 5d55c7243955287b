"""Replaces the random stream by chosen bits, to reach draws that are too rare to sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dither.exact import replay
from dither.exact.laws.base import Law
from dither.exact.samplers.uniform import Uniform

T = TypeVar("T")


class Chosen:
    """A source that gives the stated bytes first and a recorded stream afterwards."""

    def __init__(self, first: bytes, then: bytes = b"then") -> None:
        self._first = first
        self._then = replay.Recorded(then)

    def fill(self, target: memoryview) -> None:
        count = min(len(self._first), len(target))
        target[:count] = self._first[:count]
        self._first = self._first[count:]
        if count < len(target):
            self._then.fill(target[count:])


def with_bits(first: bytes, action: Callable[[], T], then: bytes = b"then") -> T:
    with replay.source(Chosen(first, then)):
        return action()


def specified(law: Law, u: int, then: bytes = b"then") -> int:
    """Returns the specification's value at the real that starts with the 64 bits u and continues with the recorded stream."""
    with replay.stream(then):
        return law.value_at(Uniform(u, 64))
