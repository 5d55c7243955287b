"""How each aggregate is read from noisy integers: its value, and its margin at a confidence. Post-processing, free.

`noises` are the plan's noises and `noisy` their released integers: noisy[i][g, c] is cell c of noise i in group g.
A margin is wrong about its own number no more often than the confidence leaves, against the bounded truth: what the same
question would give without noise, after clipping and bounding. None is a margin that is not stated, and is not wrong. Among
the margins of means and spreads that are stated for groups of fewer than about ten rows, more are wrong (Ratio).
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
Bounds = tuple[NDArray[np.float64], NDArray[np.float64]]  # between which the truth lies, group by group


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
    `slack` is what the grid may have moved the value by. Where that grows by `each` with every row, the rows are read from the
    terms `counted`: a small part of the doubt is kept for them (union bound).
    """

    name: str
    terms: tuple[Term, ...]
    constant: Fraction = Fraction(0)
    whole: bool = False
    slack: Fraction = Fraction(0)
    each: Fraction = Fraction(0)
    counted: tuple[Term, ...] = ()

    def values(self, noises: Sequence[Noise], noisy: Cells) -> list[Number]:
        if len(self.terms) == 1 and self.terms[0].weight.denominator == 1 and self.constant.denominator == 1:
            term = self.terms[0]
            return [int(v) * int(term.weight) + int(self.constant) for v in noisy[term.noise][:, term.cell]]
        total = _weighed(self.terms, noisy) + float(self.constant)
        return [round(v) for v in total.tolist()] if self.whole else total.tolist()

    def half(self, noises: Sequence[Noise], confidence: Fraction) -> float:
        """The margin without the grid's part, the same in every group."""
        reach = _reached(self.terms, noises, confidence)
        return float(math.floor(reach + 0.5)) if self.whole else reach

    def margins(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> list[float | None]:
        groups = len(noisy[0]) if noisy else 1
        if not self.counted:
            return [self.half(noises, confidence) + float(self.slack)] * groups
        doubt = (1 - confidence) / _KEPT
        rows = _weighed(self.counted, noisy) + _reached(self.counted, noises, 1 - doubt)
        wide = self.half(noises, confidence + doubt) + float(self.slack) + float(self.each) * np.maximum(rows, 0.0)
        return [float(m) for m in wide]

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        """Without rows, leaving out what grows with them."""
        return self.half(noises, confidence) + float(self.slack) + float(self.each) * (rows or 0)

    def bounds(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> Bounds:
        value, wide = np.array(self.values(noises, noisy), float), np.array(self.margins(noises, noisy, confidence), float)
        return value - wide, value + wide


_KEPT = 64  # the part of the doubt that is kept for a number of rows


def _weighed(terms: tuple[Term, ...], noisy: Cells) -> NDArray[np.float64]:
    total = np.zeros(len(noisy[0]) if noisy else 1)
    for term in terms:
        total += noisy[term.noise][:, term.cell].astype(np.float64) * float(term.weight)
    return total


def _reached(terms: tuple[Term, ...], noises: Sequence[Noise], confidence: Fraction) -> float:
    """How far the noise of a weighted sum of cells reaches."""
    if not terms:
        return 0.0
    if len(terms) == 1:
        return float(noises[terms[0].noise].mechanism.margin(confidence) * abs(terms[0].weight))
    scales = tuple(sorted(abs(float(t.weight)) * noises[t.noise].scale for t in terms))
    law = margins.normal if noises[terms[0].noise].gaussian else margins.laplace
    return law(scales, float(confidence)) + sum(abs(float(t.weight)) for t in terms)


@dataclass(frozen=True)
class Ratio:
    """A mean as low + range A / (A + B), where A sums u = (x - low)/range on the grid and B sums 1 - u.

    Value: the centred form mid + range/2 (A - B) / max(A + B, floor), which no group can make undefined, brought into the
    bounds. `least` is a public minimum of rows (1 without one).
    Margin (Fieller): for the true share r the noise of (1 - r) A - r B is known exactly, and its exact value is 0, so
    {r : |A - r (A + B)| <= m(r)} holds r with the confidence, m(r) being the reach of (1 - r) X - r Y for the two noises.
    m falls up to r = 1/2 and rises after it (Proschan 1965), so over an interval it is largest at an end: from the whole of
    [0, 1] the interval is narrowed step by step and always holds the set. `slack`: what the grid may have moved the mean by.
    No margin where the noisy number of rows is within its own margin of zero (`unsure`): a mean of nothing is undefined. That
    is read from the released numbers alone. A margin is stated and wrong no more often than the confidence leaves; but a tiny
    group has one only where its noise is large, so of those that are stated more are wrong: at epsilon 1 and 95 %, three in ten
    with one row, one in ten with three, and no more than one in twenty from about ten on.
    """

    name: str
    noise: int
    grid: Quantised
    least: int = 1
    slack: Fraction = Fraction(0)

    def parts(self, noisy: Cells) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        cells = noisy[self.noise]
        return cells[:, 0].astype(np.float64), cells[:, 1].astype(np.float64)

    def share(self, noisy: Cells) -> NDArray[np.float64]:
        a, b = self.parts(noisy)
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
        a, b = self.parts(noisy)
        total = a + b
        low, high = np.zeros_like(a), np.ones_like(a)
        for _ in range(3):
            reach = np.maximum(self._reach(noise, low, confidence), self._reach(noise, high, confidence))
            low, high = fieller(a, total, reach, low, high)
        return low, high

    @staticmethod
    def _reach(noise: Noise, r: NDArray[np.float64], confidence: Fraction) -> NDArray[np.float64]:
        return margins.two((1 - r) * noise.scale, r * noise.scale, float(confidence), noise.gaussian) + 1

    def unsure(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction, rows: int = 0) -> NDArray[np.bool_]:
        """Where the noisy numbers leave open that there are no more than `rows` rows; nowhere with a public minimum."""
        a, b = self.parts(noisy)
        if self.least > 1:
            return np.zeros(len(a), dtype=bool)
        each = tuple(Term(self.noise, cell, Fraction(1)) for cell in (0, 1))
        few: NDArray[np.bool_] = a + b - _reached(each, noises, confidence) <= float(rows * self.grid.steps)
        return few

    def margins(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> list[float | None]:
        low, high = self.interval(noises, noisy, confidence)
        share = self.share(noisy)
        width = float(self.grid.step * self.grid.steps)
        wide = width * np.maximum(np.abs(high - share), np.abs(share - low)) + float(self.slack)
        return stated(wide, self.unsure(noises, noisy, confidence))

    def bounds(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> Bounds:
        low, high = self.interval(noises, noisy, confidence)
        start, width, slack = float(self.grid.low), float(self.grid.step * self.grid.steps), float(self.slack)
        few = self.unsure(noises, noisy, confidence)
        return np.where(few, -math.inf, start + width * low - slack), np.where(few, math.inf, start + width * high + slack)

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        """At `rows` rows in the group, wherever between the bounds the mean lies."""
        if rows is None:
            return None
        reach = float(self._reach(noises[self.noise], np.zeros(1), confidence)[0])
        return float(self.grid.step * self.grid.steps) * min(1.0, reach / (self.grid.steps * rows)) + float(self.slack)


def stated(wide: NDArray[np.float64], unsure: NDArray[np.bool_]) -> list[float | None]:
    """The margins, None where it is unsure that there is anything to have one."""
    return [None if few else float(margin) for margin, few in zip(wide, unsure, strict=True)]


def fieller(
    a: NDArray[np.float64], total: NDArray[np.float64], reach: NDArray[np.float64], low: Any, high: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where |a - r total| <= reach within [low, high]; the whole interval where the total is too small to say, or nothing
    is left (noise beyond its margin: any statement is then wrong, and the widest is the safest)."""
    safe = np.where(total > 0, total, 1.0)
    down, up = np.maximum((a - reach) / safe, low), np.minimum((a + reach) / safe, high)
    keep = (total > 0) & (down <= up)
    return np.where(keep, down, low), np.where(keep, up, high)


@dataclass(frozen=True)
class Quantile:
    """The value of the chosen bin. Its margin is a rank: how many rows' worth the chosen value may be off."""

    name: str
    noise: int
    grid: Quantised
    whole: bool
    note: str = ""  # which quantile it is, where the question did not say so itself

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

    def bounds(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> Bounds:
        """A rank says nothing about a distance."""
        groups = len(noisy[self.noise])
        return np.full(groups, -math.inf), np.full(groups, math.inf)

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        return None
