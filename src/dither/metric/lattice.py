"""Laplace noise on the square lattice, drawn exactly.

    Pr[(i, j)] = e^(-rate * sqrt(i^2 + j^2)) / Z        for all whole i, j

How it is drawn: propose i and j, each with two-sided geometric noise of weight e^(-c * rate * |i|), c = 7/10. Since
sqrt(i^2 + j^2) >= (|i| + |j|) / sqrt(2) > c (|i| + |j|), the proposal is kept with probability
e^(-rate * (sqrt(i^2 + j^2) - c (|i| + |j|))), which is at most 1. About three of four are kept. Floats decide a proposal unless
its coin lies within 2^-30 of the threshold; balls decide the others. Whether a proposal is kept is independent of those that
are returned, so time tells nothing about the noise.

The normaliser: Z = sum over all whole k, l of 2 pi rate / (rate^2 + 4 pi^2 (k^2 + l^2))^(3/2) by Poisson summation. All terms
are positive, so the first one, 2 pi / rate^2, is a lower bound.
Reference: Andres, Bordenabe, Chatzikokolakis and Palamidessi, CCS 2013, for the continuous law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dither.exact import balls, entropy
from dither.exact.laws.base import Integers
from dither.exact.laws.geometric import TwoSided
from dither.exact.samplers.uniform import MARGIN, Uniform

_SLOPE = Fraction(7, 10)  # below 1 / sqrt(2) = 0.7071
_COARSE = 1 / 20  # from this rate on, cells are added up one by one
_PART = 1 << 16  # proposals that stay in the caches of a processor
_SUMMED = 200  # terms of Poisson's sum in each direction


@dataclass(frozen=True)
class Lattice:
    """The law of the noise at one rate: epsilon for each step of the lattice."""

    rate: Fraction

    def __post_init__(self) -> None:
        self._proposal()  # refuses scales that cannot be drawn

    def _proposal(self) -> TwoSided:
        return TwoSided(1 / (_SLOPE * self.rate))

    def draw(self, size: int) -> Integers:
        """Draws an array of `size` rows: independent steps in both directions."""
        drawn: Integers = np.empty((size, 2), dtype=np.int64)
        done = 0
        while done < size:
            found = self._kept(min(int((size - done) * 1.35) + 16, _PART))[: size - done]
            drawn[done : done + len(found)] = found
            done += len(found)
        return drawn

    def _kept(self, size: int) -> Integers:
        proposal = self._proposal()
        offsets = np.stack((proposal.draw(size), proposal.draw(size)), axis=1)
        far = np.abs(offsets.astype(np.float64))
        estimates = np.exp(-float(self.rate) * (np.hypot(far[:, 0], far[:, 1]) - float(_SLOPE) * far.sum(axis=1)))
        coins = entropy.words64(size)
        gaps = (coins >> np.uint64(11)).astype(np.float64) * 2.0**-53 - estimates
        keep = gaps < 0
        for n in np.flatnonzero(np.abs(gaps) <= MARGIN):
            keep[n] = Uniform(int(coins[n]), 64).below(self._chance(int(offsets[n, 0]), int(offsets[n, 1])))
        kept: Integers = offsets[keep]
        return kept

    def _chance(self, i: int, j: int) -> balls.Real:
        def chance() -> arb:
            nearer = balls.ball(_SLOPE * (abs(i) + abs(j)))
            return (-balls.ball(self.rate) * (_length(i, j) - nearer)).exp()

        return chance

    def weight(self, i: int, j: int) -> arb:
        """Returns e^(-rate * length) of one offset."""
        return (-balls.ball(self.rate) * _length(i, j)).exp()

    def normaliser(self) -> arb:
        """Returns a ball around Z."""
        rate, pi = balls.ball(self.rate), arb.pi()
        total = 2 * pi / rate**2
        for norm, count in _norms():
            total += int(count) * 2 * pi * rate / (rate**2 + 4 * pi**2 * int(norm)) ** arb("1.5")
        # The rest: a term is at most rate / (4 pi^2 |k|^3), and the sum of |k|^-3 beyond radius n at most 2 pi / (n - 2):
        # compare each point with its cell, whose points are at most sqrt(1/2) further out.
        rest = (rate / (2 * pi * (_SUMMED - 2))).upper()
        return total + arb(rest / 2, rest / 2)

    def beyond(self, radius: float) -> float:
        """Returns an upper bound of Pr[length > radius], in floats: for margins.

        A point's cell lies within sqrt(1/2) of it, so the sum over points beyond r is at most the integral beyond
        r - sqrt(1/2), times e^(rate * sqrt(1/2)). Where steps are coarse, points are added up instead.
        """
        rate = float(self.rate)
        if rate >= _COARSE:
            lengths, weights = _shells(rate)
            return float(weights[lengths > radius].sum() / weights.sum()) * (1 + 1e-9) + 1e-15
        inner = rate * max(radius - math.sqrt(0.5), 0.0)
        return min(1.0, math.exp(rate * math.sqrt(0.5)) * (1 + inner) * math.exp(-inner))

    def radius(self, confidence: Fraction) -> float:
        """Returns a length that the noise exceeds with probability at most 1 - confidence."""
        low, high = 0.0, 2 / float(self.rate)
        while self.beyond(high) > 1 - confidence:
            low, high = high, high * 2
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if self.beyond(middle) <= 1 - confidence else (middle, high)
        return high


def _length(i: int, j: int) -> arb:
    return arb(i * i + j * j).sqrt()


@lru_cache(maxsize=1)
def _norms() -> tuple[tuple[int, int], ...]:
    """Returns (k^2 + l^2, how often) for the points other than 0 within Poisson's sum."""
    line = np.arange(-_SUMMED, _SUMMED + 1) ** 2
    squares = (line[:, None] + line[None, :]).ravel()
    norms, counts = np.unique(squares[(squares > 0) & (squares <= _SUMMED**2)], return_counts=True)
    return tuple(zip(norms.tolist(), counts.tolist(), strict=True))


@lru_cache(maxsize=8)
def _shells(rate: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Returns the lengths of lattice points and their weights, as far as they matter in floats."""
    reach = np.arange(0, math.ceil(45 / rate) + 2)
    squares = (reach[:, None] ** 2 + reach[None, :] ** 2).ravel()
    times = np.where(reach > 0, 2, 1)
    lengths = np.sqrt(squares)
    return lengths, (times[:, None] * times[None, :]).ravel() * np.exp(-rate * lengths)
