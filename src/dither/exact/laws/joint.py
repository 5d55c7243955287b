"""Joint laws: several independent laws at once, and a law that decides which one follows.

    Product((A, B, ...))       Pr[(a, b, ...)] = Pr_A[a] Pr_B[b] ...
    Branching(A, (B_0, ...))   Pr[(a, b)] = Pr_A[a] Pr_{B_a}[b]          one branch for each value of A, which has ends

A law is on whole numbers, so tuples are numbered. If every law has ends, the numbers follow the order of the tuples (first
element first), from 0. If some law of a product has no end, whole numbers are folded into 0, 1, 2, ... as 0, -1, 1, -2, ...,
and pairs are numbered square by square (Szudzik's pairing), so that every tuple has a number and every number a tuple.

`privacy/proof.py` reads the factors and branches themselves: the log ratio of a tuple is the sum of those of its elements, so
its extremes are sums of extremes, with or without ends.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, product

from flint import arb

from dither.errors import ArgumentError
from dither.exact.laws.base import Law, Piece

MOST_OUTCOMES = 1 << 16  # tuples that are listed one by one


def pair(a: int, b: int) -> int:
    """Numbers a pair of whole numbers of at least 0: 0 for (0, 0), then square by square.

    >>> [pair(a, b) for a, b in ((0, 0), (0, 1), (1, 0), (1, 1), (0, 2))]
    [0, 1, 2, 3, 4]
    """
    return a * a + a + b if a >= b else a + b * b


def unpair(k: int) -> tuple[int, int]:
    """Returns the pair that has this number."""
    root = math.isqrt(k)
    rest = k - root * root
    return (rest, root) if rest < root else (root, rest - root)


def fold(k: int) -> int:
    """Numbers the whole numbers: 0, -1, 1, -2, 2, ... become 0, 1, 2, 3, 4, ..."""
    return 2 * k if k >= 0 else -2 * k - 1


def unfold(k: int) -> int:
    return k // 2 if k % 2 == 0 else -(k + 1) // 2


def ends(law: Law) -> tuple[int, int] | None:
    """Returns the smallest and the largest value, or None if the law has no end."""
    first, last = law.span()
    return None if first is None or last is None else (first, last)


@dataclass(frozen=True)
class Product(Law):
    """Independent draws from each factor.

    >>> from dither.exact.laws.coins import Coin, Flat
    >>> both = Product((Coin("1/4"), Flat(3)))
    >>> both.span(), both.values(5), both.number((1, 2)), float(both.probability(5))
    ((0, 5), (1, 2), 5, 0.08333333333333333)
    """

    factors: tuple[Law, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "factors", tuple(self.factors))
        if not self.factors:
            raise ArgumentError("factors must hold at least one law, and it is empty.", fix="give a law.")

    @cached_property
    def _ends(self) -> tuple[tuple[int, int], ...] | None:
        found = [ends(law) for law in self.factors]
        return None if None in found else tuple(found)  # type: ignore[arg-type]

    def span(self) -> tuple[int, int | None]:
        if self._ends is None:
            return 0, None
        return 0, math.prod(last - first + 1 for first, last in self._ends) - 1

    def number(self, values: Sequence[int]) -> int:
        """Returns the number of a tuple."""
        result = 0
        if self._ends is not None:
            for value, (first, last) in zip(values, self._ends, strict=True):
                result = result * (last - first + 1) + value - first
            return result
        result = fold(values[0])
        for value in values[1:]:
            result = pair(result, fold(value))
        return result

    def values(self, k: int) -> tuple[int, ...]:
        """Returns the tuple of a number."""
        found: list[int] = []
        if self._ends is not None:
            for first, last in reversed(self._ends):
                k, rest = divmod(k, last - first + 1)
                found.append(rest + first)
            return tuple(reversed(found))
        for _ in self.factors[1:]:
            k, last_one = unpair(k)
            found.append(unfold(last_one))
        return (unfold(k), *reversed(found))

    def _inside(self, k: int) -> bool:
        last = self.span()[1]
        return k >= 0 and (last is None or k <= last)

    def pmf(self, k: int) -> arb:
        if not self._inside(k):
            return arb(0)
        result = arb(1)
        for law, value in zip(self.factors, self.values(k), strict=True):
            result *= law.pmf(value)
        return result

    def at_most(self, k: int) -> arb:
        if k < 0 or not self._inside(k):
            return arb(0 if k < 0 else 1)
        if self._ends is None:
            return sum((self.pmf(j) for j in range(k + 1)), arb(0))
        return self._side(k, above=False) + self.pmf(k)

    def more_than(self, k: int) -> arb:
        if k < 0 or not self._inside(k):
            return arb(1 if k < 0 else 0)
        return 1 - self.at_most(k) if self._ends is None else self._side(k, above=True)

    def _side(self, k: int, *, above: bool) -> arb:
        """Returns the probability of the tuples before, or after, that of k: they first differ at some element."""
        result, equal = arb(0), arb(1)
        for law, value in zip(self.factors, self.values(k), strict=True):
            result += equal * (law.more_than(value) if above else law.at_most(value - 1))
            equal *= law.pmf(value)
        return result

    def pieces(self) -> tuple[Piece, ...]:
        last = self.span()[1]
        if last is None or last >= MOST_OUTCOMES:
            raise _not_listed()
        single = [points(law) for law in self.factors]
        return tuple(_joined(self.number([p.first or 0 for p in chosen]), chosen) for chosen in product(*single))

    def _one(self) -> int:
        return self.number([law.draw() for law in self.factors])


@dataclass(frozen=True)
class Branching(Law):
    """A draw from `first`, then one from the branch of its value. `branches` has one law for each value from end to end.

    >>> from dither.exact.laws.coins import Coin, Flat
    >>> tree = Branching(Coin("1/4"), (Flat(2), Flat(3)))
    >>> tree.span(), tree.values(4), tree.number((1, 2)), float(tree.probability(4))
    ((0, 4), (1, 2), 4, 0.08333333333333333)
    """

    first: Law
    branches: tuple[Law, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "branches", tuple(self.branches))
        found = ends(self.first)
        if found is None or found[1] - found[0] + 1 != len(self.branches):
            raise ArgumentError("branches must hold one law for each value of the first.", fix="give a first law with ends.")

    @cached_property
    def _start(self) -> int:
        return (ends(self.first) or (0, 0))[0]

    @cached_property
    def _spans(self) -> tuple[tuple[int, int], ...]:
        found = [ends(law) for law in self.branches]
        if None in found:
            raise _not_listed()
        return tuple(found)  # type: ignore[arg-type]

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(last - first + 1 for first, last in self._spans)]

    def branch(self, value: int) -> Law:
        """Returns the law that follows this value of the first."""
        return self.branches[value - self._start]

    def span(self) -> tuple[int, int]:
        return 0, self._starts[-1] - 1

    def number(self, values: Sequence[int]) -> int:
        """Returns the number of a pair."""
        place = values[0] - self._start
        return self._starts[place] + values[1] - self._spans[place][0]

    def values(self, k: int) -> tuple[int, int]:
        """Returns the pair of a number."""
        place = bisect_right(self._starts, k) - 1
        return place + self._start, k - self._starts[place] + self._spans[place][0]

    def pmf(self, k: int) -> arb:
        if not 0 <= k <= self.span()[1]:
            return arb(0)
        one, other = self.values(k)
        return self.first.pmf(one) * self.branch(one).pmf(other)

    def at_most(self, k: int) -> arb:
        if not 0 <= k < self.span()[1]:
            return arb(0 if k < 0 else 1)
        one, other = self.values(k)
        return self.first.at_most(one - 1) + self.first.pmf(one) * self.branch(one).at_most(other)

    def more_than(self, k: int) -> arb:
        if not 0 <= k < self.span()[1]:
            return arb(1 if k < 0 else 0)
        one, other = self.values(k)
        return self.first.more_than(one) + self.first.pmf(one) * self.branch(one).more_than(other)

    def pieces(self) -> tuple[Piece, ...]:
        if self.span()[1] >= MOST_OUTCOMES:
            raise _not_listed()
        found: list[Piece] = []
        for one in points(self.first):
            value = one.first or 0
            found += [_joined(self.number((value, p.first or 0)), (one, p)) for p in points(self.branch(value))]
        return tuple(found)

    def _one(self) -> int:
        value = self.first.draw()
        return self.number((value, self.branch(value).draw()))


def points(law: Law) -> list[Piece]:
    """Returns the pieces of a law with ends cut into single values, of slope 0."""
    found: list[Piece] = []
    for p in law.pieces():
        if p.first is None or p.last is None:
            raise _not_listed()
        found += [_point(p, k) for k in range(p.first, p.last + 1)]
    return found


def _point(p: Piece, k: int) -> Piece:
    return Piece(k, k, lambda: p.at(k), base=p.base, offset=p.offset + p.slope * k + p.bend * k * k)


def _joined(number: int, chosen: Sequence[Piece]) -> Piece:
    """Returns the piece of one tuple: constants add up, and so do offsets if every base is known."""
    bases: Hashable = None if any(p.base is None for p in chosen) else tuple(p.base for p in chosen)
    offset = sum((p.offset for p in chosen), Fraction(0))
    return Piece(number, number, lambda: sum((p.constant() for p in chosen), arb(0)), base=bases, offset=offset)


def _not_listed() -> ArgumentError:
    return ArgumentError(
        f"The outcomes of these releases are not listed: a part has no end, or there are more than {MOST_OUTCOMES} of them.",
        fix="use parts with few outcomes, such as TruncatedGeometric, or verify a pure price, which needs no list.",
    )
