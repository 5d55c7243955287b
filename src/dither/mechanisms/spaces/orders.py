"""Orders: the top k by peeling, and all orders of at most 20 items exactly.

TopK draws the best item, removes it, and draws again: k choices, each at epsilon / k. Its law is not proportional to
e^(rate score) of a whole order, so `sensitivity` is that of one item's score.

Orders draws a whole order. A private number m[i][j] counts for every pair in which i comes before j, and an order scores the
sum. With f(S) the sum over all ways to go on once the items of S are placed,

    f(all) = 1        f(S) = sum over j not in S of e^(rate (sum over i in S of m[i][j])) f(S + j)

which has 2^n sets. Up to 10 items they are balls. Beyond, log f is computed in floats, whose error is bounded by

    err <= n (A 2^-50 + 2^-46)        A = the largest size of any exponent or log f

(each of n levels rounds an exponent and a sum of at most n positive terms a few times); if 4 err < 2^-31, floats decide a
choice unless a uniform real is within 2^-30 of an edge. Otherwise balls decide, at any size,
which takes about two minutes for 20 items.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import Any, ClassVar

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.exact import balls, numbers
from dither.exact.samplers.choice import draw_among
from dither.mechanisms.selection import Scores, read_scores
from dither.mechanisms.spaces.base import Chooser, Output, Space
from dither.mechanisms.spaces.chains import Values

_MOST_ITEMS = 20
_FEW_ITEMS = 10
_MOST_PEELED = 1_000_000
_HALF = 10  # bits of a set that one table covers


@dataclass(frozen=True)
class TopK(Space):
    """The best `k` of `items` items, best first: each is chosen among those that are left.

    >>> TopK(items=100, k=3).size
    970200
    """

    tag: ClassVar[str] = "top k"
    items: int
    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", numbers.whole(self.items, "items", least=1))
        object.__setattr__(self, "k", numbers.whole(self.k, "k", least=1))
        if self.k > self.items:
            raise ArgumentError(f"k must be at most {self.items}, the number of items.", fix="choose fewer.")
        if self.items > _MOST_PEELED:
            raise ArgumentError(f"There may be at most {_MOST_PEELED} items.", fix="choose among fewer items.")

    @property
    def rounds(self) -> int:  # type: ignore[override]
        return self.k

    @property
    def size(self) -> int:
        return math.perm(self.items, self.k)

    def read(self, exact: Scores) -> Values:
        values = read_scores(exact, None)
        if len(values) != self.items:
            raise ArgumentError(
                f"scores must be one for each item: {self.items}, and there are {len(values)}.", fix="match the items."
            )
        return values

    def score(self, values: Values, output: Output) -> int | Fraction:
        return sum((values[item] for item in output), start=Fraction(0))

    def listed(self) -> Iterator[Output]:
        return permutations(range(self.items), self.k)

    def walk(self, values: Values, rate: Fraction, choose: Chooser) -> Output:
        left, chosen = list(range(self.items)), []
        for _ in range(self.k):
            chosen.append(left.pop(choose(lambda: [balls.exp(rate * values[item]) for item in left])))
        return tuple(chosen)

    def draw(self, values: Values, rate: Fraction) -> Output:
        """Draws from the law of `walk`, with the sampler of the exponential mechanism for each choice."""
        left, chosen = list(range(self.items)), []
        for _ in range(self.k):
            chosen.append(left.pop(draw_among([values[item] for item in left], rate)))
        return tuple(chosen)

    def probability(self, values: Values, rate: Fraction, output: Output) -> arb:
        """Returns the probability of one output at the working precision."""
        powers, chance = [balls.exp(rate * value) for value in values], arb(1)
        left = set(range(self.items))
        for item in output:
            chance = chance * powers[item] / sum((powers[each] for each in sorted(left)), arb(0))
            left.remove(item)
        return chance

    def record(self) -> dict[str, Any]:
        return {"space": self.tag, "items": self.items, "k": self.k}


@dataclass(frozen=True)
class Orders(Space):
    """All orders of `items` items, at most 20. `m[i][j]` counts if i comes before j: give a square of whole numbers.

    >>> Orders(items=20).size
    2432902008176640000
    """

    tag: ClassVar[str] = "orders"
    items: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", numbers.whole(self.items, "items", least=1))
        if self.items > _MOST_ITEMS:
            raise ArgumentError(f"Whole orders have at most {_MOST_ITEMS} items.", fix="ask for the top k.")

    @property
    def size(self) -> int:
        return math.factorial(self.items)

    def read(self, exact: Any) -> list[list[int]]:
        rows = list(exact) if isinstance(exact, np.ndarray) and exact.ndim == 2 else exact
        found = numbers.items(rows, "scores", fix="give a list of rows.")
        square = [[int(value) for value in read_scores(row, None, fractions=False)] for row in found]
        if len(square) != self.items or any(len(row) != self.items for row in square):
            raise ArgumentError(f"scores must be {self.items} rows of {self.items} whole numbers.", fix="match the items.")
        return square

    def score(self, square: list[list[int]], output: Output) -> int:
        return sum(square[first][later] for place, first in enumerate(output) for later in output[place + 1 :])

    def listed(self) -> Iterator[Output]:
        return permutations(range(self.items))

    def walk(self, square: list[list[int]], rate: Fraction, choose: Chooser) -> Output:
        logs = _log_sums(square, rate) if self.items > _FEW_ITEMS else None
        sums = _Sums(square, rate)
        placed, order = 0, []
        for _ in range(self.items - 1):
            left = [j for j in range(self.items) if not placed >> j & 1]
            estimates = None if logs is None else _estimates(square, rate, logs, placed, left)
            chosen = left[choose(sums.ways(placed, left), estimates)]
            order.append(chosen)
            placed |= 1 << chosen
        order += [j for j in range(self.items) if not placed >> j & 1]
        return tuple(order)

    def record(self) -> dict[str, Any]:
        return {"space": self.tag, "items": self.items}


def _gain(square: list[list[int]], placed: int, j: int) -> int:
    """Returns what item j adds after the items that are placed."""
    return sum(row[j] for i, row in enumerate(square) if placed >> i & 1)


class _Sums:
    """f of the sets, in balls: computed only if a choice needs it, and once at each precision."""

    def __init__(self, square: list[list[int]], rate: Fraction) -> None:
        self._square, self._rate = square, rate
        self._known: dict[int, list[arb]] = {}

    def ways(self, placed: int, left: list[int]) -> Callable[[], list[arb]]:
        return lambda: [self._factor(placed, j) * self._all()[placed | 1 << j] for j in left]

    def _factor(self, placed: int, j: int) -> arb:
        return balls.exp(self._rate * _gain(self._square, placed, j))

    def _all(self) -> list[arb]:
        bits, n = balls.precision(), len(self._square)
        if bits not in self._known:
            sums = [arb(1)] * (1 << n)
            for placed in range((1 << n) - 2, -1, -1):
                ways = (self._factor(placed, j) * sums[placed | 1 << j] for j in range(n) if not placed >> j & 1)
                sums[placed] = sum(ways, arb(0))
            self._known[bits] = sums
        return self._known[bits]


Logs = NDArray[np.float64]


def _log_sums(square: list[list[int]], rate: Fraction) -> Logs | None:
    """Returns log f of every set in floats, or None if their error is not small enough to decide by."""
    n = len(square)
    largest = sum(abs(value) for row in square for value in row)
    if largest >= 1 << 52 or float(rate) * largest + n * math.log(n) > 2**12:
        return None  # A is too large: see the header
    sets = np.arange(1 << n, dtype=np.int64)
    counts = np.bitwise_count(sets.astype(np.uint64))
    logs = np.zeros(1 << n)
    tables = _tables(square)
    for level in range(n - 1, -1, -1):
        placed = sets[counts == level]
        terms = np.full((n, len(placed)), -np.inf)
        for j in range(n):
            free = (placed >> j) & 1 == 0
            here = placed[free]
            gains = tables[0][j][here & ((1 << _HALF) - 1)] + tables[1][j][here >> _HALF]
            terms[j, free] = gains * float(rate) + logs[here | (1 << j)]
        top = terms.max(axis=0)
        logs[placed] = top + np.log(np.exp(terms - top).sum(axis=0))
    return logs


def _tables(square: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns what every item adds after any of the first ten items, and after any of the rest."""
    n, halves = len(square), []
    matrix = np.array(square, dtype=np.int64)
    for rows in (matrix[:_HALF], matrix[_HALF:]):
        table = np.zeros((n, 1 << len(rows)), dtype=np.int64)
        for i, row in enumerate(rows):
            table[:, 1 << i : 2 << i] = table[:, : 1 << i] + row[:, None]
        halves.append(table)
    return halves[0], halves[1]


def _estimates(square: list[list[int]], rate: Fraction, logs: Logs, placed: int, left: list[int]) -> list[float]:
    terms = np.array([_gain(square, placed, j) * float(rate) + logs[placed | 1 << j] for j in left])
    weights = np.exp(terms - terms.max())
    shares: list[float] = (weights / weights.sum()).tolist()
    return shares
