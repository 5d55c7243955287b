"""Chooses among weighted candidates, exactly, for many candidates and any gaps between their weights.

Candidates of equal weight form a class. The class j, of weight count_j exp(-gap_j) with gap_j >= 0 below the best, is
drawn by inverting the distribution function over classes, best first; then one member is drawn fairly.

The running sums are float64. With |gap| <= 745 an exponent is off by at most 2^-42 and its weight by a factor within
2^-40; beyond, the weight is below 10^-323 and counts as zero; adding J terms is off by at most J 2^-53 of the total. So

    margin = total (2^-38 + J 2^-50)

covers all of these errors. Floats decide a uniform real that is further than the margin from every running sum. Balls
decide the others (about J 2^-37 of all draws), with as many further bits as needed. No weight is too small: a class at
gap 10^9 is chosen with probability exp(-10^9), not 0.
Timing: O(candidates) for the preparation; the rare ball comparison depends on u lying near an edge of a class.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import groupby

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
    rate = numbers.not_negative(rate, "rate")
    top = int(scores.max())
    gaps, counts = _tally(np.uint64(top % 2**64) - scores.astype(np.uint64))
    floats = np.minimum(gaps.astype(np.float64) * float(min(rate, Fraction(10**6))), FARTHEST)
    j = Classes(floats, counts, lambda j: rate * int(gaps[j])).draw()
    members = np.flatnonzero(scores == top - int(gaps[j]))
    return int(members[uniform.below(members.size)])


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


def _tally(gaps: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], Integers]:
    """Returns the distinct gaps in rising order and how often each occurs."""
    if int(gaps.max()) < 4 * gaps.size + 4096:
        occurrences = np.bincount(gaps.astype(np.int64))
        distinct = np.flatnonzero(occurrences)
        return distinct.astype(np.uint64), occurrences[distinct].astype(np.int64)
    return np.unique(gaps, return_counts=True)
