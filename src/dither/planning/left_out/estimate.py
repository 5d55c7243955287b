"""Estimates, from a noisy histogram, the share of rows or of a sum that bounds left out. Post-processing: free.

A histogram has classes of people (or rows), from light to heavy. Let S be what was left out and T what there is, both weighted
sums of noisy cells up to class b. Every share s in the interval of b passes |S - s T| <= r(s), where r(s) is how far the noise
of S - s T reaches (Fieller); the intervals of all classes hold together (union bound).

    low    the largest lower end of all classes. People beyond class b can only add to the share, if each of them has lost at
           least that share; `floors` says what they have lost at least.
    high   the upper end for the last class that has people in it beyond doubt. It leaves out people beyond that class: noise
           hides a few of them, and a few may have any number of rows.

So the true share is at least `low`, and at most `high` as far as people up to `level` go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dither.planning import margins

Floats = NDArray[np.float64]
_ROUNDS = 12  # to the fourth digit
_FAR = 1e30
_EXACT, _REST = 5, 0.1
_SMALL = 0.1  # a share that is worth stating as the most
_DOUBT = 0.02  # of the doubt: for a class that is taken to have people in it, because that moves the estimate far
_POINTS = np.arange(1, 64) / 64


@dataclass(frozen=True)
class Cells:
    """Noisy cells: value, scale of the noise and class (-1: used with every class) of each, and their weights in what was
    left out, in what there is, and in the number of people."""

    values: Floats
    scales: Floats
    levels: NDArray[np.int64]
    lost: Floats
    total: Floats
    people: Floats

    def up_to(self, level: int) -> Cells:
        return self._where(self.levels <= level)

    def at(self, level: int) -> Cells:
        return self._where(self.levels == level)

    def with_cells(self, other: Cells) -> Cells:
        """Returns the cells of both."""
        pairs = zip(self._parts(), other._parts(), strict=True)
        return Cells(*(np.concatenate(pair) for pair in pairs))

    def _parts(self) -> tuple[NDArray[Any], ...]:
        return self.values, self.scales, self.levels, self.lost, self.total, self.people

    def _where(self, kept: NDArray[np.bool_]) -> Cells:
        return Cells(*(part[kept] for part in self._parts()))

    def sums(self) -> tuple[float, float]:
        """Returns S and T."""
        return float(self.lost @ self.values), float(self.total @ self.values)

    def reach(self, weights: Floats, confidence: float) -> float:
        """Returns how far the noise of a weighted sum reaches. Geometric noise is within a step of Laplace noise."""
        size = np.abs(weights)
        return _reach(size * self.scales, 1 - confidence) + float(size[self.scales > 0].sum())


def _reach(scales: Floats, allowed: float) -> float:
    """Returns how far a sum of Laplace variables reaches: the largest by their exact law, the others, which have a small part
    of the doubt, by the moment bound 2 exp(-a t) / product of (1 - a^2 b^2)."""
    largest = np.sort(scales[scales > 0])
    exact, others = tuple(largest[-_EXACT:].tolist()), largest[:-_EXACT]
    if not len(others):
        return margins.laplace(exact, 1 - allowed)
    units = others / others[-1]
    rest = (math.log(2 / (allowed * _REST)) - np.log1p(-((_POINTS[:, None] * units) ** 2)).sum(axis=1)) / _POINTS
    return margins.laplace(exact, 1 - allowed * (1 - _REST)) + float(rest.min() * others[-1]) * (1 + 1e-9)


class Share(NamedTuple):
    """A share with its interval, and the class up to which `high` holds."""

    estimate: float
    low: float
    high: float
    level: int


def share(
    cells: Cells,
    floors: Sequence[float],
    start: int,
    confidence: Fraction,
    most: float = 1.0,
    ends: tuple[Cells, Cells] | None = None,
) -> Share:
    """Estimates the share. `start`: the first class whose people may have lost something; `most`: no share is larger.

    `ends`: the same cells with weights that make the share too small and too large, if the true weights are not known. Each
    gives one end of the interval, and noise leaves an interval on one side for half of the doubt, so the two hold together.
    """
    levels = range(start, len(floors))
    each = float(1 - (1 - confidence) / len(levels))
    least, largest = ends or (cells, cells)
    low, best = max((min(_low(least.up_to(level), each, most), floors[level]), level) for level in levels)
    sure = 1 - (1 - each) * _DOUBT
    level = max([best if low > 0 else start, *(level for level in levels if _has_people(cells.at(level), sure))])
    if low <= 0:  # say it of as many people as can be said
        said = (one for one in reversed(levels) if one <= level or _high(largest.up_to(one), each, most) <= _SMALL)
        level = next(said)
    high = max(_high(largest.up_to(level), each, most), low)
    return Share(max(min(_middle(cells.up_to(level), most), high), low), low, high, level)


def _middle(cells: Cells, most: float) -> float:
    """Returns S / T."""
    lost, total = cells.sums()
    return min(max(lost / total, 0.0), most) if total > 0 else 0.0


def _low(cells: Cells, confidence: float, most: float) -> float:
    """Returns the lower end of the interval of S / T.

    What is beyond the noise at an end is concave in the share, because the reach is convex, so it changes its sign once between
    the middle and each end.
    """
    inside = _inside(cells, confidence)
    return 0.0 if cells.sums()[1] <= 0 or inside(0.0) else _end(inside, _middle(cells, most), 0.0)


def _high(cells: Cells, confidence: float, most: float) -> float:
    """Returns the upper end of the interval of S / T."""
    if cells.sums()[1] <= 0:
        return most
    inside, middle = _inside(cells, confidence), _middle(cells, most)
    far = most if most < math.inf else _beyond(inside, middle)
    return far if far == math.inf or inside(far) else _end(inside, middle, far)


def _inside(cells: Cells, confidence: float) -> Callable[[float], bool]:
    """Returns whether a share is in the interval."""
    lost, total = cells.sums()

    def inside(end: float) -> bool:
        return abs(lost - end * total) <= cells.reach(cells.lost - end * cells.total, confidence)

    return inside


def _beyond(inside: Callable[[float], bool], middle: float) -> float:
    """Returns a number outside the interval; an infinite one if there is none."""
    far = max(2 * middle, 1e-9)
    while far < _FAR and inside(far):
        far *= 4
    return far if far < _FAR else math.inf


def _end(inside: Callable[[float], bool], within: float, beyond: float) -> float:
    """Returns the end of the interval, on the side of `beyond`."""
    for _ in range(_ROUNDS):
        half = (within + beyond) / 2
        within, beyond = (half, beyond) if inside(half) else (within, half)
    return beyond


def _has_people(cells: Cells, confidence: float) -> bool:
    return float(cells.people @ cells.values) > cells.reach(cells.people, confidence)
