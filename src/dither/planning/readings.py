"""How each aggregate is read from noisy integers: its value, and its margin at a confidence. Post-processing, free.

`noises` are the plan's noises and `noisy` their released integers: noisy[i][g, c] is cell c of noise i in group g.
A margin holds for its own number with at least the stated confidence, against the bounded truth: what the same question
would give without noise, after clipping and bounding. None is a margin that is not stated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.planning import margins
from dither.planning.noises import Noise
from dither.query.work import SCALE, Bins, Quantised

Cells = Sequence[NDArray[Any]]
Number = int | float


@dataclass(frozen=True)
class Term:
    """weight times cell `cell` of noise `noise`."""

    noise: int
    cell: int
    weight: Fraction


@dataclass(frozen=True)
class Linear:
    """constant + sum of weighted cells: counts, sums, and means over a public number of rows.

    Margin: exact law of the one noise if there is just one term, else the law of the weighted sum (margins.py).
    `whole`: the truth is a whole number, so the value is rounded to one, and the margin with it.
    """

    name: str
    terms: tuple[Term, ...]
    constant: Fraction = Fraction(0)
    whole: bool = False

    def values(self, noises: Sequence[Noise], noisy: Cells) -> list[Number]:
        groups = len(noisy[0]) if noisy else 1
        if len(self.terms) == 1 and self.terms[0].weight.denominator == 1 and self.constant.denominator == 1:
            term = self.terms[0]
            return [int(v) * int(term.weight) + int(self.constant) for v in noisy[term.noise][:, term.cell]]
        total = np.full(groups, float(self.constant))
        for term in self.terms:
            total += noisy[term.noise][:, term.cell].astype(np.float64) * float(term.weight)
        return [round(v) for v in total.tolist()] if self.whole else total.tolist()

    def half(self, noises: Sequence[Noise], confidence: Fraction) -> float:
        """The margin, the same in every group."""
        if not self.terms:
            return 0.0
        if len(self.terms) == 1:
            term = self.terms[0]
            reach = float(noises[term.noise].mechanism.margin(confidence) * abs(term.weight))
        else:
            scales = tuple(sorted(abs(float(t.weight)) * noises[t.noise].scale for t in self.terms))
            law = margins.normal if noises[self.terms[0].noise].gaussian else margins.laplace
            reach = law(scales, float(confidence)) + sum(abs(float(t.weight)) for t in self.terms)
        return float(math.floor(reach + 0.5)) if self.whole else reach

    def margins(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> list[float | None]:
        return [self.half(noises, confidence)] * (len(noisy[0]) if noisy else 1)

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        return self.half(noises, confidence)


@dataclass(frozen=True)
class Ratio:
    """A mean as low + range A / (A + B), where A sums u = (x - low)/range on the grid and B sums 1 - u.

    Value: the centred form mid + range/2 (A - B) / max(A + B, floor), which no group can make undefined, brought into the
    bounds. `least` is a public minimum of rows (1 without one).
    Margin (Fieller): for the true share r the noise of (1 - r) A - r B is known exactly, and its exact value is 0, so
    {r : |A - r (A + B)| <= m(r)} holds r with the confidence, m(r) being the reach of (1 - r) X - r Y for the two noises.
    m falls up to r = 1/2 and rises after it (Proschan 1965), so over an interval it is largest at an end: from the whole of
    [0, 1] the interval is narrowed step by step and always holds the set.
    """

    name: str
    noise: int
    grid: Quantised
    least: int = 1

    def _parts(self, noisy: Cells) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        cells = noisy[self.noise]
        return cells[:, 0].astype(np.float64), cells[:, 1].astype(np.float64)

    def share(self, noisy: Cells) -> NDArray[np.float64]:
        a, b = self._parts(noisy)
        found: NDArray[np.float64] = np.clip(0.5 + (a - b) / (2 * np.maximum(a + b, float(self.grid.steps * self.least))), 0, 1)
        return found

    def values(self, noises: Sequence[Noise], noisy: Cells) -> list[Number]:
        low, width = float(self.grid.low), float(self.grid.step * self.grid.steps)
        found: list[Number] = (low + width * self.share(noisy)).tolist()
        return found

    def interval(
        self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The lowest and the highest share that the noisy parts leave possible."""
        noise = noises[self.noise]
        a, b = self._parts(noisy)
        total = a + b
        low, high = np.zeros_like(a), np.ones_like(a)
        for _ in range(3):
            reach = np.maximum(self._reach(noise, low, confidence), self._reach(noise, high, confidence))
            low, high = _between(a, total, reach, low, high)
        return low, high

    @staticmethod
    def _reach(noise: Noise, r: NDArray[np.float64], confidence: Fraction) -> NDArray[np.float64]:
        return margins.two((1 - r) * noise.scale, r * noise.scale, float(confidence), noise.gaussian) + 1

    def margins(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> list[float | None]:
        low, high = self.interval(noises, noisy, confidence)
        share = self.share(noisy)
        width = float(self.grid.step * self.grid.steps)
        return [float(m) for m in width * np.maximum(np.abs(high - share), np.abs(share - low))]

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        """At `rows` rows in the group, wherever between the bounds the mean lies."""
        if rows is None:
            return None
        reach = float(self._reach(noises[self.noise], np.zeros(1), confidence)[0])
        return float(self.grid.step * self.grid.steps) * min(1.0, reach / (self.grid.steps * rows))


def _between(
    a: NDArray[np.float64], total: NDArray[np.float64], reach: NDArray[np.float64], low: Any, high: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where |a - r total| <= reach within [low, high]; the whole interval where the total is too small to say, or nothing
    is left (noise beyond its margin: any statement is then wrong, and the widest is the safest)."""
    safe = np.where(total > 0, total, 1.0)
    down, up = np.maximum((a - reach) / safe, low), np.minimum((a + reach) / safe, high)
    keep = (total > 0) & (down <= up)
    return np.where(keep, down, low), np.where(keep, up, high)


@dataclass(frozen=True)
class Spread:
    """Variance or standard deviation: E[z^2] - E[z]^2 with z = (x - mid) / (range / 2), from the mean's two sums and from
    D = sum of 2 z^2 - 1, whose size is at most 1 per row.

    Margin: the mean's interval and the interval of D / n = y, by Fieller with |y| <= 1, and for the sample variance the
    interval of n, each at an equal share of the doubt (union bound); variance lies between what they leave possible.
    """

    name: str
    mean: Ratio
    second: int
    grid: Quantised  # of the squares
    root: bool
    sample: bool

    @property
    def _half(self) -> float:
        return float(self.grid.step * self.grid.steps) / 2

    def _size(self, noisy: Cells) -> NDArray[np.float64]:
        a, b = self.mean._parts(noisy)
        found: NDArray[np.float64] = (a + b) / self.mean.grid.steps
        return found

    def _deviation(self, share: Any) -> Any:
        """The mean's distance from the middle of the squares' grid, in halves of its range."""
        low, width = float(self.mean.grid.low), float(self.mean.grid.step * self.mean.grid.steps)
        return np.clip((low + width * share - float(self.grid.low)) / self._half - 1, -1, 1)

    def _finish(self, spread: Any, size: Any) -> Any:
        """From E[z^2] - E[z]^2 to what was asked. A variance of numbers in [-1, 1] is at most 1, a sample variance 2."""
        kept = np.clip(spread, 0, 1)
        if self.sample:
            kept = np.minimum(kept * size / np.maximum(size - 1, 0.5), 2)
        kept = kept * self._half**2
        return np.sqrt(kept) if self.root else kept

    def values(self, noises: Sequence[Noise], noisy: Cells) -> list[Number]:
        size = np.maximum(self._size(noisy), 1.0)
        y = np.clip(noisy[self.second][:, 0].astype(np.float64) / self.grid.steps**2 / size, -1, 1)
        found: list[Number] = self._finish((y + 1) / 2 - self._deviation(self.mean.share(noisy)) ** 2, size).tolist()
        return found

    def margins(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> list[float | None]:
        each = 1 - (1 - confidence) / 3
        low, high = (self._deviation(r) for r in self.mean.interval(noises, noisy, each))
        y_low, y_high, n_low, n_high = self._ranges(noises, noisy, each)
        near = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
        far = np.maximum(np.abs(low), np.abs(high))
        least = self._finish((y_low + 1) / 2 - far**2, np.maximum(n_high, 2))
        most = self._finish((y_high + 1) / 2 - near**2, np.maximum(n_low, 2))
        value = np.array(self.values(noises, noisy))
        return [float(m) for m in np.maximum(np.abs(value - least), np.abs(most - value))]

    def _ranges(self, noises: Sequence[Noise], noisy: Cells, each: Fraction) -> tuple[Any, Any, Any, Any]:
        first, second = noises[self.mean.noise], noises[self.second]
        size, d = self._size(noisy), noisy[self.second][:, 0].astype(np.float64) / self.grid.steps**2
        unit = 1 / self.mean.grid.steps
        law = margins.normal if first.gaussian else margins.laplace
        scales = (second.scale / self.grid.steps**2, first.scale * unit, first.scale * unit)
        reach = law(scales, float(each)) + 2 * unit + 1 / self.grid.steps**2
        y_low, y_high = _between(d, size, np.full_like(d, reach), -np.ones_like(d), np.ones_like(d))
        rows = law(scales[1:], float(each)) + 2 * unit
        return y_low, y_high, size - rows, size + rows

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        """Where the values spread evenly around the middle: a typical margin, not a bound."""
        if rows is None:
            return None
        third, steps = float(rows) / 2, self.mean.grid.steps
        cells = [np.zeros((1, 1)) for _ in noises]
        cells[self.mean.noise] = np.array([[third * steps, third * steps]])
        cells[self.second] = np.array([[-float(rows) / 3 * self.grid.steps**2]])
        return self.margins(noises, cells, confidence)[0]


@dataclass(frozen=True)
class Quantile:
    """The value of the chosen bin. Its margin is a rank: how many rows' worth the chosen value may be off."""

    name: str
    noise: int
    grid: Quantised
    whole: bool

    def values(self, noises: Sequence[Noise], noisy: Cells) -> list[Number]:
        found = [self.grid.low + self.grid.step * int(b) for b in noisy[self.noise][:, 0]]
        return [int(v) if self.whole else float(v) for v in found]

    def rank(self, noises: Sequence[Noise], confidence: Fraction) -> float:
        noise = noises[self.noise]
        measure, p = noise.draft.measure, noise.draft.p
        if not isinstance(measure, Bins) or p is None:
            raise TypeError("only a histogram with a quantile has ranks")
        reach = noise.mechanism.margin(confidence, candidates=measure.argument.steps + 1)  # type: ignore[call-arg]
        return float(reach / (SCALE * p.denominator))

    def margins(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> list[float | None]:
        return [None] * len(noisy[self.noise])

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        return None


Reading = Linear | Ratio | Spread | Quantile
