"""Chooses among weighted candidates, exactly, for many candidates and any gaps between their weights.

For one draw: `draw_run`. Run j has count_j candidates of weight exp(-gap_j) each, gap_j >= 0 below the best. A proposal takes
run j with probability s_j / (sum of s), for whole numbers s_j >= count_j exp(-gap_j) 2^k, and keeps it with probability
count_j exp(-gap_j) 2^k / s_j; otherwise a new proposal is made. So runs are kept in proportion to their exact weights, whatever
the s_j are. They come from floats: with gap_j <= 1000 an exponent is off by less than 2^-41 and its weight by a factor within
2^-39, so s_j = floor(estimate (1 + 2^-38)) + 1 is large enough, and a proposal is rarely refused. Beyond 745 the estimate is 0
and s_j = 1, still enough. One exact comparison decides, and balls are needed once in 2^29 draws.

For many draws from one law: `Classes`. Candidates of equal weight form a class. The class j, of weight count_j exp(-gap_j)
with gap_j >= 0 below the best, is drawn by inverting the distribution function over classes, best first; then one member is
drawn fairly.

The running sums are float64. With |gap| <= 745 an exponent is off by at most 2^-42 and its weight by a factor within
2^-40; beyond, the weight is below 10^-323 and counts as zero; adding J terms is off by at most J 2^-53 of the total. So

    margin = total (2^-38 + J 2^-50)

covers all of these errors. Floats decide a uniform real that is further than the margin from every running sum. Balls
decide the others (about J 2^-37 of all draws), with as many further bits as needed. No weight is too small: a class at
gap 10^9 is chosen with probability exp(-10^9), not 0.
Timing: O(candidates) for the preparation; the rare ball comparison depends on u lying near an edge of a class.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import groupby
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.exact import balls, entropy, numbers
from dither.exact.laws.base import Integers, SamplerLaw
from dither.exact.samplers import uniform
from dither.exact.samplers.uniform import Uniform

Floats = NDArray[np.float64]
FARTHEST = 1000  # exp(-745) is the smallest float; a gap beyond this counts as this in floats


class Classes(SamplerLaw):
    """The law of the class. `gaps` are float64 values within 2^-51 (relative) of `gap(j)`, cut at FARTHEST; the first is 0."""

    def __init__(self, gaps: Floats, counts: Integers, gap: Callable[[int], Fraction]) -> None:
        self.counts = counts
        self._gap = gap
        self.sums = np.cumsum(counts * np.exp(-gaps))
        self._list = self.sums.tolist()
        self._total = self._list[-1]
        self.margin = self._total * (2.0**-38 + counts.size * 2.0**-50)

    def span(self) -> tuple[int, int]:
        return 0, self.counts.size - 1

    def at_most(self, k: int) -> arb:
        terms = [balls.exp(-self._gap(j)) * int(count) for j, count in enumerate(self.counts)]
        return sum(terms[: k + 1], arb(0)) / sum(terms, arb(0)) if k < len(terms) - 1 else arb(1)

    def _many(self, size: int) -> Integers:
        u = entropy.words64(size)
        x = (u >> np.uint64(11)).astype(np.float64) * (2.0**-53 * self._total)
        classes: Integers = np.searchsorted(self.sums, x, side="right").astype(np.int64)
        np.minimum(classes, self.counts.size - 1, out=classes)
        above = np.where(classes < self.counts.size - 1, self.sums[classes] - x, np.inf)
        below = np.where(classes > 0, x - self.sums[classes - 1], np.inf)
        for i in np.flatnonzero((above <= self.margin) | (below <= self.margin)):
            classes[i] = self.value_at(Uniform(int(u[i]), 64))
        return classes

    def _one(self) -> int:
        u = entropy.word()
        x = (u >> 11) * (2.0**-53 * self._total)
        last = len(self._list) - 1
        j = min(bisect_right(self._list, x), last)
        clear_above = j == last or self._list[j] - x > self.margin
        clear_below = j == 0 or x - self._list[j - 1] > self.margin
        return j if clear_above and clear_below else self.value_at(Uniform(u, 64))


def draw_run(scores: NDArray[np.integer[Any]], counts: Integers, rate: Fraction) -> tuple[int, int]:
    """Draws one of counts[0] + counts[1] + ... candidates, each of run j with probability proportional to
    exp(rate * scores[j]). Returns its run and its place there. All counts are positive.

    >>> draw_run(np.array([-(10**9), 0]), np.array([10**12, 1]), Fraction(1))
    (1, 0)
    """
    gaps = np.uint64(int(scores.max()) % 2**64) - scores.astype(np.uint64)
    exponents = gaps.astype(np.float64) * float(min(rate, Fraction(10**6)))
    near = np.flatnonzero(exponents < FARTHEST)
    own, power = proposals(counts[near].astype(np.float64) * np.exp(-exponents[near]))
    shares = np.ones(len(counts), dtype=np.int64)
    shares[near] = own
    edges = np.cumsum(shares)
    while True:
        j = int(np.searchsorted(edges, uniform.below(int(edges[-1])), side="right"))
        count, gap, share = int(counts[j]), int(gaps[j]), int(shares[j])
        estimate = math.ldexp(count * math.exp(-float(exponents[j])), power) / share
        if Uniform().below_about(estimate, _weight(count, rate * gap, power, share)):
            return j, uniform.below(count)


def proposals(estimates: Floats) -> tuple[Integers, int]:
    """Returns whole numbers s and k with s_j at least the true weight times 2^k, and a sum below 2^62."""
    power = 60 - math.frexp(float(estimates.sum()))[1]
    shares: Integers = np.floor(np.ldexp(estimates, power) * (1 + 2.0**-38)).astype(np.int64) + 1
    return shares, power


def _weight(count: int, gap: Fraction, power: int, share: int) -> balls.Real:
    return lambda: balls.exp(-gap) * count * arb(2) ** power / share


def draw_index(scores: NDArray[np.int64], rate: Fraction) -> int:
    """Draws an index i with probability proportional to exp(rate * scores[i]), for a rate >= 0.

    >>> draw_index(np.array([0, 10**9, 5]), Fraction(1))
    1
    """
    scores = np.asarray(scores)
    if scores.ndim != 1 or scores.size == 0 or scores.dtype.kind not in "iu":
        raise ArgumentError(
            "scores must be a non-empty one-dimensional array of integers.", fix="give one integer per candidate."
        )
    return draw_run(scores, np.ones(scores.size, dtype=np.int64), numbers.not_negative(rate, "rate"))[0]


def draw_among(scores: Sequence[int | Fraction], rate: Fraction) -> int:
    """Draws as `draw_index` does, for scores of any size, whole or not.

    >>> draw_among([0, 10**500, Fraction(1, 3)], Fraction(1))
    1
    """
    # Sorts to group equal scores: a dictionary would be slow for scores chosen to share one hash.
    classes = [(score, sum(1 for _ in same)) for score, same in groupby(sorted(scores, reverse=True))]
    top = classes[0][0]
    floats = np.array([_rounded(top - score, rate) for score, _ in classes])
    counts = np.array([count for _, count in classes], dtype=np.int64)
    chosen = classes[Classes(floats, counts, lambda j: rate * (top - classes[j][0])).draw()][0]
    members = [i for i, score in enumerate(scores) if score == chosen]
    return members[uniform.below(len(members))]


def _rounded(gap: int | Fraction, rate: Fraction) -> float:
    """Returns rate * gap as the nearest float, cut at FARTHEST: Python rounds a division of whole numbers correctly."""
    above, below = rate.numerator * gap.numerator, rate.denominator * gap.denominator
    return float(FARTHEST) if above >= FARTHEST * below else above / below
