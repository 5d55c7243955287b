"""Joint laws: several independent laws at once, and a law that decides which one follows.

    Product((A, B, ...))       Pr[(a, b, ...)] = Pr_A[a] Pr_B[b] ...
    Branching(A, (B_0, ...))   Pr[(a, b)] = Pr_A[a] Pr_{B_a}[b]          one branch for each value of A, which has ends

A law is on whole numbers, so tuples are numbered: each element is folded (0, -1, 1, -2, ... become 0, 1, 2, 3, ...), and the
binary digits of the folded elements take turns. So the number of a tuple depends on the tuple alone, never on a law, every
tuple has a number, and some numbers belong to no tuple of a law: their probability is 0.

`privacy/proof.py` reads the factors and branches themselves: the log ratio of a tuple is the sum of those of its elements, so
its extremes are sums of extremes, with or without ends.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product

from flint import arb

from dither.errors import ArgumentError
from dither.exact.laws.base import Law, Piece

MOST_OUTCOMES = 1 << 16  # tuples that are listed one by one


def number(values: Sequence[int]) -> int:
    """Returns the number of a tuple.

    >>> [number(values) for values in ((0, 0), (0, -1), (-1, 0), (-1, -1), (1, 0))]
    [0, 1, 2, 3, 8]
    """
    folded = [2 * value if value >= 0 else -2 * value - 1 for value in values]
    width = max(value.bit_length() for value in folded)
    digits = "".join(f"{value:0{width}b}"[place] for place in range(width) for value in folded)
    return int(digits or "0", 2)


def values(k: int, count: int) -> tuple[int, ...]:
    """Returns the tuple of this many elements that has the number k.

    >>> values(number((3, -5, 0)), 3)
    (3, -5, 0)
    """
    digits = f"{k:b}"
    digits = digits.zfill(-(-len(digits) // count) * count)
    folded = [int(digits[place::count], 2) for place in range(count)]
    return tuple(value // 2 if value % 2 == 0 else -(value + 1) // 2 for value in folded)


class Joint(Law):
    """A law on the numbers of tuples."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Returns how many elements a tuple has."""

    @abstractmethod
    def chance(self, elements: tuple[int, ...]) -> arb:
        """Returns the probability of a tuple."""

    @abstractmethod
    def _size(self) -> int | None:
        """Returns how many tuples there are, or None if a law has no end."""

    @abstractmethod
    def _tuples(self) -> Iterator[tuple[Piece, ...]]:
        """Yields every possible tuple, as pieces of single values."""

    @cached_property
    def _pieces(self) -> tuple[Piece, ...] | None:
        """Returns the pieces in order of their numbers, or None if the tuples are too many to list."""
        size = self._size()
        if size is None or size > MOST_OUTCOMES:
            return None
        found = [_joined(chosen) for chosen in self._tuples()]
        return tuple(sorted(found, key=lambda piece: piece.first or 0))

    @cached_property
    def _numbers(self) -> list[int]:
        return [piece.first or 0 for piece in self._pieces or ()]

    def span(self) -> tuple[int, int | None]:
        return 0, None if self._pieces is None else self._numbers[-1]

    def pmf(self, k: int) -> arb:
        return arb(0) if k < 0 else self.chance(values(k, self.count))

    def at_most(self, k: int) -> arb:
        if self._pieces is None:
            return sum((self.pmf(j) for j in range(k + 1)), arb(0))
        here = bisect_right(self._numbers, k)
        return arb(1) if here == len(self._numbers) else sum((self.pmf(j) for j in self._numbers[:here]), arb(0))

    def more_than(self, k: int) -> arb:
        if self._pieces is None:
            return 1 - self.at_most(k)
        here = bisect_right(self._numbers, k)
        return arb(1) if not here else sum((self.pmf(j) for j in self._numbers[here:]), arb(0))

    def pieces(self) -> tuple[Piece, ...]:
        if self._pieces is None:
            raise ArgumentError(
                f"The outcomes of these releases are not listed: some have no end, or there are more than {MOST_OUTCOMES}.",
                fix="use parts with few outcomes, such as TruncatedGeometric; a pure price is verified without a list.",
            )
        return self._pieces


@dataclass(frozen=True)
class Product(Joint):
    """Independent draws from each factor.

    >>> from dither.exact.laws.coins import Coin, Flat
    >>> both = Product((Coin("1/4"), Flat(3)))
    >>> float(both.probability(number((1, 2)))), both.pieces()[-1].first == number((1, 2))
    (0.08333333333333333, True)
    """

    factors: tuple[Law, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "factors", tuple(self.factors))
        if not self.factors:
            raise ArgumentError("factors must hold at least one law, and it is empty.", fix="give a law.")

    @property
    def count(self) -> int:
        return len(self.factors)

    def chance(self, elements: tuple[int, ...]) -> arb:
        result = arb(1)
        for law, element in zip(self.factors, elements, strict=True):
            result *= law.pmf(element)
        return result

    def _size(self) -> int | None:
        sizes = [_size_of(law) for law in self.factors]
        return None if None in sizes else math.prod(size or 0 for size in sizes)

    def _tuples(self) -> Iterator[tuple[Piece, ...]]:
        return product(*(_points(law) for law in self.factors))

    def _one(self) -> int:
        return number([law.draw() for law in self.factors])

    def __getstate__(self) -> dict[str, object]:
        return {"factors": self.factors}


@dataclass(frozen=True)
class Branching(Joint):
    """A draw from `first`, then one from the branch of its value. `branches` has one law for each value from end to end.

    >>> from dither.exact.laws.coins import Coin, Flat
    >>> tree = Branching(Coin("1/4"), (Flat(2), Flat(3)))
    >>> float(tree.probability(number((1, 2)))), float(tree.probability(number((0, 2))))
    (0.08333333333333333, 0.0)
    """

    first: Law
    branches: tuple[Law, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "branches", tuple(self.branches))
        if _size_of(self.first) != len(self.branches):
            raise ArgumentError("branches must hold one law for each value of the first.", fix="give a first law with ends.")

    @property
    def count(self) -> int:
        return 2

    def branch(self, value: int) -> Law:
        """Returns the law that follows this value of the first."""
        return self.branches[value - (self.first.span()[0] or 0)]

    def chance(self, elements: tuple[int, ...]) -> arb:
        value, then = elements
        low, high = self.first.span()
        if low is None or high is None or not low <= value <= high:
            return arb(0)
        return self.first.pmf(value) * self.branch(value).pmf(then)

    def _size(self) -> int | None:
        sizes = [_size_of(law) for law in self.branches]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def _tuples(self) -> Iterator[tuple[Piece, ...]]:
        for one in _points(self.first):
            yield from ((one, then) for then in _points(self.branch(one.first or 0)))

    def _one(self) -> int:
        value = self.first.draw()
        return number((value, self.branch(value).draw()))

    def __getstate__(self) -> dict[str, object]:
        return {"first": self.first, "branches": self.branches}


def _size_of(law: Law) -> int | None:
    """Returns how many whole numbers lie between the ends of a law, or None if it has no end."""
    first, last = law.span()
    return None if first is None or last is None else last - first + 1


def _points(law: Law) -> list[Piece]:
    """Returns the pieces of a law with ends cut into single values, of slope 0."""
    found: list[Piece] = []
    for p in law.pieces():
        found += [_point(p, k) for k in range(p.first or 0, (p.last or 0) + 1)]
    return found


def _point(p: Piece, k: int) -> Piece:
    return Piece(k, k, lambda: p.at(k), base=p.base, offset=p.offset + p.slope * k + p.bend * k * k)


def _joined(chosen: Sequence[Piece]) -> Piece:
    """Returns the piece of one tuple: constants add up, and so do offsets if every base is known."""
    k = number([p.first or 0 for p in chosen])
    bases: Hashable = None if any(p.base is None for p in chosen) else tuple(p.base for p in chosen)
    offset = sum((p.offset for p in chosen), Fraction(0))
    return Piece(k, k, lambda: sum((p.constant() for p in chosen), arb(0)), base=bases, offset=offset)
