"""The categorical law, a choice among weighted candidates: probabilities proportional to exp(w_i).

    Pr[i] = exp(w_i - top) / Z        top = max w        Z = sum of exp(w_i - top)

Nothing overflows: the largest term is 1, and balls hold arbitrarily small terms.
Candidates of equal weight form a *class*; a draw picks the class, then one of its members fairly.
Reference: McSherry and Talwar, FOCS 2007 (the exponential mechanism draws from this law).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.exact import balls, numbers
from dither.exact.balls import ball, exp
from dither.exact.laws.base import Integers, Law, Piece
from dither.exact.samplers import uniform
from dither.exact.samplers.choice import FARTHEST, Classes


@dataclass(frozen=True)
class Categorical(Law):
    """Pr[i] proportional to exp(log_weights[i]).

    >>> float(round(float(Categorical((0, 0, "1/2")).probability(2)), 6))
    0.451863
    """

    log_weights: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        weights = tuple(w if type(w) is Fraction else numbers.rational(w, "log_weights") for w in self.log_weights)
        if not weights:
            raise ArgumentError("log_weights must name at least one candidate, and it is empty.", fix="give a candidate.")
        object.__setattr__(self, "log_weights", weights)

    @cached_property
    def top(self) -> Fraction:
        return max(self.log_weights)

    @cached_property
    def _counts(self) -> list[tuple[Fraction, int]]:
        """Returns (distance below the top, number of candidates) for each class, nearest first."""
        counted = Counter(self.log_weights)
        return [(w - self.top, counted[w]) for w in sorted(counted, reverse=True)]

    @cached_property
    def _totals(self) -> dict[int, arb]:
        return {}

    def _total(self) -> arb:
        bits = balls.precision()
        if bits not in self._totals:
            self._totals[bits] = _sum(self._counts)
        return self._totals[bits]

    def _part(self, indices: range) -> arb:
        counted = Counter(self.log_weights[indices.start : indices.stop])
        return _sum([(w - self.top, count) for w, count in counted.items()]) / self._total()

    def span(self) -> tuple[int, int]:
        return 0, len(self.log_weights) - 1

    def pmf(self, k: int) -> arb:
        if not 0 <= k < len(self.log_weights):
            return arb(0)
        return exp(self.log_weights[k] - self.top) / self._total()

    def at_most(self, k: int) -> arb:
        n = len(self.log_weights)
        return arb(1) if k >= n - 1 else self._part(range(max(k + 1, 0)))

    def more_than(self, k: int) -> arb:
        n = len(self.log_weights)
        return arb(1) if k < 0 else self._part(range(min(k + 1, n), n))

    @cached_property
    def _classes(self) -> tuple[Classes, list[NDArray[np.intp]]]:
        """Returns the law of the class, best first, and the candidates in each class."""
        gaps = [-below for below, _ in self._counts]
        place = {self.top - gap: j for j, gap in enumerate(gaps)}
        where = np.array([place[w] for w in self.log_weights])
        counts = np.bincount(where)
        floats = np.array([float(min(gap, Fraction(FARTHEST))) for gap in gaps])
        return Classes(floats, counts.astype(np.int64), gaps.__getitem__), np.split(
            np.argsort(where, kind="stable"), np.cumsum(counts)[:-1]
        )

    def _one(self) -> int:
        classes, members = self._classes
        chosen = members[classes.draw()]
        return int(chosen[uniform.below(chosen.size)])

    def _many(self, size: int) -> Integers:
        classes, members = self._classes
        j = classes.draw(size)
        starts = np.cumsum(classes.counts) - classes.counts
        place = starts[j] + uniform.below_each(classes.counts[j].astype(np.uint64))
        draws: Integers = np.concatenate(members)[place].astype(np.int64)
        return draws

    def __getstate__(self) -> dict[str, object]:
        return {"log_weights": self.log_weights}

    def pieces(self) -> tuple[Piece, ...]:
        normaliser = ("categorical", *self._counts)

        def piece(k: int, w: Fraction) -> Piece:
            return Piece(k, k, lambda: ball(w - self.top) - self._total().log(), base=normaliser, offset=w - self.top)

        return tuple(piece(k, w) for k, w in enumerate(self.log_weights))


def _sum(counts: list[tuple[Fraction, int]]) -> arb:
    result = arb(0)
    for below, count in counts:
        result += exp(below) * count
    return result
