"""Neighbours that are not lists of records: an exact count, one person's value, and answers to several questions.

`standard` yields the patterns of the literature first (all below against all above, one against the rest, half against half),
on and beside the constants of the audited code; `pair` draws further ones.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

Vector = tuple[int, ...]


@dataclass(frozen=True)
class Counts:
    """An exact count; neighbours differ by 1."""

    places: tuple[int, ...] = ()  # numbers in the code, where its behaviour may change
    name: str = "count"

    def standard(self) -> Iterator[tuple[int, int]]:
        near = (place + off for place in self.places if abs(place) <= 10**6 for off in (-1, 0))
        for low in dict.fromkeys((0, 4, 1, 9, 99, *(one for one in near if one >= 0))):
            yield low, low + 1

    def pair(self, rng: random.Random) -> tuple[int, int]:
        low = rng.choice((rng.randint(0, 3), rng.randint(0, 20), rng.randint(0, 1000)))
        return (low, low + 1) if rng.random() < 0.5 else (low + 1, low)

    def built(self, pair: tuple[int, int]) -> tuple[Any, Any]:
        return pair

    def smaller(self, pair: tuple[int, int]) -> Iterator[tuple[int, int]]:
        low = min(pair)
        for new in dict.fromkeys((0, 1, low // 2, low - 1)):
            if 0 <= new < low:
                yield pair[0] - low + new, pair[1] - low + new


@dataclass(frozen=True)
class Items:
    """One person's own value, as in the local model; any two values are neighbours."""

    values: tuple[Any, ...]
    name: str = "item"

    def standard(self) -> Iterator[tuple[Any, Any]]:
        yield from list(combinations(self.values, 2))[:28]

    def pair(self, rng: random.Random) -> tuple[Any, Any]:
        one, two = rng.sample(self.values, 2)
        return one, two

    def built(self, pair: tuple[Any, Any]) -> tuple[Any, Any]:
        return pair

    def smaller(self, pair: tuple[Any, Any]) -> Iterator[tuple[Any, Any]]:
        return iter(())


def bit_rows(width: int) -> tuple[Vector, ...]:
    """Returns all rows of so many bits, at most 64."""
    return tuple(tuple(number >> place & 1 for place in range(width)) for number in range(min(64, 1 << width)))


@dataclass(frozen=True)
class Answers:
    """Answers to several questions; one unit moves each by at most 1. The input of noisy max and sparse vector."""

    name: str = "answers"
    most: int = 6
    places: tuple[int, ...] = ()

    def standard(self) -> Iterator[tuple[Vector, Vector]]:
        bases = dict.fromkeys((0, *(place for place in self.places if 0 < abs(place) <= 1000)))
        for base in list(bases)[:4]:
            for size in (5, 10, 2, 1):
                for one, two in patterns(size):
                    yield tuple(base + value for value in one), tuple(base + value for value in two)

    def pair(self, rng: random.Random) -> tuple[Vector, Vector]:
        one = tuple(rng.randint(0, 4) for _ in range(rng.randint(1, self.most)))
        steps = rng.choice(((0, 1), (-1, 0), (-1, 0, 1), (-1, 1)))
        return one, tuple(value + rng.choice(steps) for value in one)

    def built(self, pair: tuple[Vector, Vector]) -> tuple[Any, Any]:
        return list(pair[0]), list(pair[1])

    def smaller(self, pair: tuple[Vector, Vector]) -> Iterator[Any]:
        one, two = pair
        for i in range(len(one)):
            if len(one) > 1:
                yield one[:i] + one[i + 1 :], two[:i] + two[i + 1 :]
            if one[i] != two[i]:
                yield one, (*two[:i], one[i], *two[i + 1 :])
            low = min(one[i], two[i])
            if low:
                yield (*one[:i], one[i] - low, *one[i + 1 :]), (*two[:i], two[i] - low, *two[i + 1 :])


def patterns(size: int) -> tuple[tuple[Vector, Vector], ...]:
    """Returns answers to `size` questions, each off by at most one: the standard patterns.

    >>> patterns(2)[0]
    ((0, 0), (1, 1))
    """
    half, rest = size // 2, size - 1
    every = (
        ((0,) * size, (1,) * size),
        ((0,) * half + (1,) * (size - half), (1,) * half + (0,) * (size - half)),
        ((1,) + (0,) * rest, (0,) + (1,) * rest),
        ((0,) * rest + (1,), (1,) * rest + (0,)),
        ((0,) * size, (1,) + (0,) * rest),
    )
    return tuple(dict.fromkeys(every))
