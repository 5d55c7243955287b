"""Readings of a question over numbers that were released earlier.

In a group of the question its earlier groups stand side by side: with c cells each, cell i of the s-th earlier group is cell
s c + i. So each noisy number is a variable of its own, and the laws of margins.py and forms.py apply as they are. Groups that
have fewer earlier groups than others have zeros in their place; `within` leaves those out of margins.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dither.planning import margins
from dither.planning.forms import Quotient, Sum, greatest
from dither.planning.releases.base import Cells, Linear, Noise, Reading, Term, noise_reach, weighted_sum
from dither.planning.releases.sums import GeometricMean, Ratio
from dither.query.functions.base import double

_FEW = 2  # variables whose sum has a closed form
_SURE = Fraction(999_999_999, 10**9)  # beyond it, the exact law is not exact enough


@dataclass(frozen=True)
class MergedRatio(Ratio):
    """A mean over several earlier groups: A and B are sums over their cells. The margin is that of forms.py for quotients."""

    a: tuple[Term, ...] = ()
    b: tuple[Term, ...] = ()

    def parts(self, noisy: Cells) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return weighted_sum(self.a, noisy), weighted_sum(self.b, noisy)

    def interval(
        self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        share = Quotient(Sum(self.a), Sum((*self.a, *self.b)), by_rows=True, written=False)
        return share.interval(noises, True, noisy, confidence)

    def unsure(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction, rows: int = 0) -> NDArray[np.bool_]:
        if self.least > 1:
            return np.zeros(len(noisy[self.noise]), dtype=bool)
        both = (*self.a, *self.b)
        few: NDArray[np.bool_] = weighted_sum(both, noisy) - noise_reach(both, noises, confidence) <= rows * self.grid.steps
        return few

    def quotient(self, noises: Sequence[Noise]) -> tuple[Linear, Linear]:
        steps, low = self.grid.steps, self.grid.low
        high = low + self.grid.step * steps
        rows = _times((*self.a, *self.b), Fraction(1, steps))
        above = (*_times(self.a, high / steps), *_times(self.b, low / steps))
        each = Linear(self.aggregate, above, each=self.slack, counted=rows if self.slack else ())
        return each, Linear(self.aggregate, rows)

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        if rows is None:
            return None
        reach = noise_reach(self.a, noises, confidence)
        return float(self.grid.step * self.grid.steps) * min(1.0, reach / (self.grid.steps * rows)) + float(self.slack)


@dataclass(frozen=True)
class MergedLinear(Linear):
    """A weighted sum over several earlier groups. Where all its weights are alike, as in a total, its law is known exactly."""

    @property
    def title(self) -> str:
        return "COUNT(DISTINCT unit)" if self.aggregate.function == "count_units" else super().title

    def half(self, noises: Sequence[Noise], confidence: Fraction) -> float:
        if len(self.terms) <= _FEW or confidence > _SURE:
            return super().half(noises, confidence)
        reach = self._reach(noises, confidence)
        if self.unit is None:
            return reach
        return double(math.floor(reach / float(self.unit) + (1 if self.parted else 0.5)) * self.unit)

    def _reach(self, noises: Sequence[Noise], confidence: Fraction) -> float:
        """Returns how far the noise reaches: by its law on the grid of its weights, or by bounds if that has too many steps."""
        sizes = [abs(term.weight) for term in self.terms]
        unit, gaussian = greatest(sizes), noises[self.terms[0].noise].gaussian
        alike = Counter((float(size / unit), noises[term.noise].scale) for size, term in zip(sizes, self.terms, strict=True))
        times, scales = (np.array(each, dtype=np.float64) for each in zip(*alike, strict=True))
        found = margins.whole_sum(times, scales, np.array(list(alike.values()), float), float(confidence), gaussian)
        if found is not None:
            return found * float(unit)
        spread, counts = times * scales * float(unit), np.array(list(alike.values()), float)
        steps = float(sum(sizes))  # a whole-number variable reaches at most a step further than a continuous one
        if gaussian:
            return margins.normal(tuple(spread * np.sqrt(counts)), float(confidence)) + steps
        return margins.laplace_sum(spread, counts, float(confidence)) + steps


def _times(terms: Iterable[Term], by: Fraction) -> tuple[Term, ...]:
    return tuple(Term(term.noise, term.cell, term.weight * by) for term in terms if by)


def within(reading: Reading, widths: Sequence[int]) -> Reading:
    """Returns the reading of groups in which only so many cells of each noise are filled."""
    return _with_terms(reading, lambda terms: tuple(term for term in terms if term.cell < widths[term.noise]))


def renumbered(reading: Reading, places: Mapping[int, int]) -> Reading:
    """Returns the reading over noises in other places."""
    moved = _with_terms(reading, lambda terms: tuple(Term(places[noise], cell, weight) for noise, cell, weight in terms))
    if isinstance(moved, GeometricMean):
        return replace(moved, logarithm=renumbered(reading.logarithm, places)) if isinstance(reading, GeometricMean) else moved
    return replace(moved, noise=places[moved.noise]) if isinstance(moved, MergedRatio) else moved


def noises_of(reading: Reading) -> set[int]:
    """Returns the places of the noises that a reading uses."""
    used: set[int] = set()

    def look(terms: tuple[Term, ...]) -> tuple[Term, ...]:
        used.update(term.noise for term in terms)
        return terms

    _with_terms(reading, look)
    return used


def _with_terms(reading: Reading, change: Callable[[tuple[Term, ...]], tuple[Term, ...]]) -> Reading:
    if isinstance(reading, Linear):
        return replace(reading, terms=change(reading.terms), counted=change(reading.counted))
    if isinstance(reading, MergedRatio):
        return replace(reading, a=change(reading.a), b=change(reading.b))
    if isinstance(reading, GeometricMean):
        return replace(reading, logarithm=_with_terms(reading.logarithm, change))
    raise TypeError("no other reading is made of earlier numbers")
