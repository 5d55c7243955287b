"""Readings that are weighted sums of cells: counts, sums, and means over a public number of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dither.exact.numbers import rounded
from dither.planning import margins
from dither.planning.releases.base import Bounds, Cells, Noise, Number, Reading
from dither.query.nodes import Aggregate

_KEPT = 64  # the part of the doubt that is kept for a number of rows
_FAR = 64  # scales of noise: beyond them there is less than e^-64


class Term(NamedTuple):
    """weight times cell `cell` of noise `noise`."""

    noise: int
    cell: int
    weight: Fraction


@dataclass(frozen=True)
class Linear(Reading):
    """constant + sum of weighted cells.

    Margin: exact law of the one noise if there is just one term, else the law of the weighted sum (margins.py).
    `whole`: the truth is a whole number, so the value is rounded to one, and the margin with it.
    `slack` is what the grid may have moved the value by. Where that grows by `each` with every row, the rows are read from the
    terms `counted`: a small part of the doubt is kept for them (union bound).
    """

    asked: Aggregate
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
        total = weighed(self.terms, noisy) + float(self.constant)
        return [round(v) for v in total.tolist()] if self.whole else total.tolist()

    def half(self, noises: Sequence[Noise], confidence: Fraction) -> float:
        """The margin without the grid's part, the same in every group."""
        reach = reached(self.terms, noises, confidence)
        return float(math.floor(reach + 0.5)) if self.whole else reach

    def margins(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> list[float | None]:
        groups = len(noisy[0]) if noisy else 1
        if not self.counted:
            return [self.half(noises, confidence) + float(self.slack)] * groups
        doubt = (1 - confidence) / _KEPT
        rows = weighed(self.counted, noisy) + reached(self.counted, noises, 1 - doubt)
        wide = self.half(noises, confidence + doubt) + float(self.slack) + float(self.each) * np.maximum(rows, 0.0)
        return [float(m) for m in wide]

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        """Without rows, leaving out what grows with them."""
        return self.half(noises, confidence) + float(self.slack) + float(self.each) * (rows or 0)

    def largest(self, noises: Sequence[Noise], rows: int) -> Fraction:
        cells = ((abs(term.weight), noises[term.noise]) for term in self.terms)
        most = (weight * (noise.of.row * rows + math.ceil(_FAR * noise.scale)) for weight, noise in cells)
        return sum(most, abs(self.constant))

    def expected(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> str:
        each = Fraction(0) if rows else self.each  # the grid's part, unless it is included
        grows = f", and {rounded(float(each))} for each row" if each else ""
        return super().expected(noises, rows, confidence) + grows

    def bounds(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> Bounds:
        value, wide = np.array(self.values(noises, noisy), float), np.array(self.margins(noises, noisy, confidence), float)
        return value - wide, value + wide


def weighed(terms: Sequence[Term], noisy: Cells) -> NDArray[np.float64]:
    """The weighted sum of cells in each group."""
    total = np.zeros(len(noisy[0]) if noisy else 1)
    for term in terms:
        total += noisy[term.noise][:, term.cell].astype(np.float64) * float(term.weight)
    return total


def reached(terms: Sequence[Term], noises: Sequence[Noise], confidence: Fraction) -> float:
    """How far the noise of a weighted sum of cells reaches."""
    if not terms:
        return 0.0
    if len(terms) == 1:
        return float(noises[terms[0].noise].mechanism.margin(confidence) * abs(terms[0].weight))
    scales = tuple(sorted(abs(float(t.weight)) * noises[t.noise].scale for t in terms))
    law = margins.normal if noises[terms[0].noise].gaussian else margins.laplace
    return law(scales, float(confidence)) + sum(abs(float(t.weight)) for t in terms)
