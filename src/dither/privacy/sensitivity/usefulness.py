"""For which statistics noise is useful: sensitivity against range and sampling error.

n rows are themselves a sample, and another sample would give another answer. Noise below that sampling error costs next to
nothing; noise beyond the statistic's whole range says nothing at all.

    statistic        sampling error of n rows      range       sensitivity (statistics.py)
    sum of bits      sqrt(n) / 2                   n           1
    sum              sqrt(n) R / sqrt(12)          n R         max(|low|, |high|), replaced R
    mean             R / sqrt(12 n)                R           about R / n
    median           R / (2 sqrt(n))               R           R, for any n
    variance         R^2 / sqrt(180 n)             R^2 / 4     about R^2 / n

The sampling errors are standard deviations for values spread evenly over [low, high], R = high - low, and fair bits (the
median's and the variance's for large n). Real data are often narrower, and then noise weighs more. They describe and price
nothing, so they are floats. The noise is that of a Laplace release: sqrt(2) sensitivity / epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dither.errors import ArgumentError
from dither.exact.numbers import Number, between, show, show_rounded, whole
from dither.privacy.neighbours import AddRemove, Neighbours, Replace, check_neighbours
from dither.privacy.sensitivity import statistics
from dither.privacy.sensitivity.statistics import Sensitivity, Unbounded

_DEFAULT = AddRemove()
_MOST = 10**60  # a float holds the square of any number up to this
Verdict = Literal["useful", "costly", "useless", "impossible"]


@dataclass(frozen=True)
class Statistic:
    """One line: what one unit can move, what there is to see, and whether noise leaves anything of it."""

    name: str
    sensitivity: Sensitivity
    spread: float  # from the least to the largest value
    sampling: float  # the standard deviation that n rows have anyway
    noise: float  # the standard deviation of the noise

    @property
    def verdict(self) -> Verdict:
        """Compares the noise with the sampling error, and with the range.

        useful: below the sampling error. costly: above it, but below a quarter of the range. useless: more.
        impossible: one unit moves it without bound.
        """
        if isinstance(self.sensitivity, Unbounded):
            return "impossible"
        if self.noise <= self.sampling:
            return "useful"
        return "costly" if self.noise < self.spread / 4 else "useless"


@dataclass(frozen=True)
class Usefulness:
    """Statistics of n rows at one epsilon, side by side. It prints as a table."""

    n: int
    epsilon: Fraction
    statistics: tuple[Statistic, ...]

    def __getitem__(self, name: str) -> Statistic:
        found = next((each for each in self.statistics if isinstance(name, str) and each.name == name), None)
        if found is None:
            known = ", ".join(each.name for each in self.statistics)
            raise ArgumentError(f"There is no statistic of this name. There are: {known}.", fix="name one of them.")
        return found

    def __str__(self) -> str:
        rows = [("", "sensitivity", "range", "sampling error", "noise", "noise is")]
        for each in self.statistics:
            moved = "unbounded" if isinstance(each.sensitivity, Unbounded) else show_rounded(float(each.sensitivity))
            shown = [_shown(value) for value in (each.spread, each.sampling, each.noise)]
            rows.append((each.name, moved, shown[0], shown[1], shown[2], each.verdict))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(text.ljust(wide) for text, wide in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([f"{self.n} rows, ε = {show(self.epsilon)}", "", *lines])

    __repr__ = __str__


def compare(low: Number, high: Number, n: int, *, epsilon: Number = 1, neighbours: Neighbours = _DEFAULT) -> Usefulness:
    """Sets each statistic's sensitivity against its range and its sampling error, for n rows with values in [low, high].

    >>> found = compare(0, 100, n=1000)
    >>> [(each.name, each.verdict) for each in found.statistics if each.name in ("mean", "median")]
    [('mean', 'useful'), ('median', 'useless')]
    """
    bottom, top = (between(end, name, -_MOST, _MOST) for end, name in ((low, "low"), (high, "high")))
    rows, relation = int(between(whole(n, "n", least=2), "n", 2, _MOST)), check_neighbours(neighbours)
    price = between(epsilon, "epsilon", Fraction(1, _MOST), _MOST)
    if isinstance(relation, Replace) and relation.n is None:
        relation = Replace(rows)
    moved = statistics
    wide = float(moved.maximum(bottom, top))  # type: ignore[arg-type]
    root = math.sqrt(rows)
    lines: list[tuple[str, Sensitivity, float, float]] = [
        ("sum of bits", moved.count(relation), float(rows), root / 2),
        ("sum without bounds", moved.sum(neighbours=relation), math.inf, math.inf),
        ("sum", moved.sum(bottom, top, relation), rows * wide, root * wide / math.sqrt(12)),
        ("mean", moved.mean(bottom, top, relation, at_least=rows), wide, wide / math.sqrt(12) / root),
        ("median", moved.median(bottom, top, relation, at_least=rows), wide, wide / (2 * root)),
        (
            "variance",
            moved.variance(bottom, top, relation, at_least=rows),
            wide * wide / 4,
            wide * wide / math.sqrt(180) / root,
        ),
    ]
    return Usefulness(rows, price, tuple(Statistic(*line, _noise(line[1], price)) for line in lines))


def _noise(moved: Sensitivity, epsilon: Fraction) -> float:
    return math.inf if isinstance(moved, Unbounded) else math.sqrt(2) * float(moved / epsilon)


def _shown(value: float) -> str:
    return "no limit" if math.isinf(value) else show_rounded(value)
