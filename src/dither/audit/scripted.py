"""Bits of the auditor's choice in the place of the entropy door: stated words first, then nothing, or a continuation."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

from dither.exact import entropy

Words = tuple[int, ...]
Tail = Callable[[int, int], int]  # (width, place) to a word
TOLD = 6  # words that a continuation may take


class MoreError(Exception):
    """The script is used up, and the sampler wants another word."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(width)


def _zeros(width: int, place: int) -> int:
    return 0


def _ones(width: int, place: int) -> int:
    return (1 << width) - 1


def mixed(width: int, place: int) -> int:
    return int.from_bytes(hashlib.sha256(b"%d %d" % (width, place)).digest()[: -(-width // 8)], "big") >> (-width % 8)


TAILS = (_zeros, _ones, mixed)


class Script:
    """An entropy source that gives stated words, then a continuation for a while, then says what was asked for."""

    def __init__(self) -> None:
        self.play((), None)

    def play(self, words: Words, tail: Tail | None) -> None:
        self.words, self.tail = words, tail
        self.asked: list[int] = []
        self.block = b""

    def start(self, block: bytes) -> None:
        """One block for a whole array, and nothing after it."""
        self.play((), None)
        self.block = block

    def next(self, width: int) -> int:
        place = len(self.asked)
        self.asked.append(width)
        if place < len(self.words):
            return self.words[place]
        if self.tail is None or place >= len(self.words) + TOLD:
            raise MoreError(width)
        return self.tail(width, place)

    def fill(self, target: memoryview) -> None:
        if len(self.block) == len(target):
            target[:], self.block = self.block, b""
            return
        target[:] = self.next(8 * len(target)).to_bytes(len(target), "little")

    def singles(self) -> Iterator[tuple[int]]:
        while True:
            yield (self.next(64),)

    def install(self) -> None:
        """Single draws take their words from here, too, and not from a block that was fetched before."""
        entropy.here().waiting = self.singles()
