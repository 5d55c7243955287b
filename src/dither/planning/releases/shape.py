"""SKEWNESS and KURTOSIS: the moments of one column up to the fourth, from one joint release (moments.py).

With M_k the k-th central moment of a column, n its rows, and the corrections for samples that DuckDB makes:

    SKEWNESS      sqrt(n (n - 1)) / (n - 2) * M_3 / M_2^(3/2)
    KURTOSIS_POP  M_4 / M_2^2 - 3
    KURTOSIS      (n - 1) / ((n - 2)(n - 3)) * ((n + 1) M_4 / M_2^2 - 3 (n - 1))

Margins (`solve` in moments.py). With s the true standard deviation, v its square, d the true mean less the noisy one, and P_k
the sum of the k-th powers about the noisy mean, t = M_3 / s^3 and t = M_4 / v^2 are the solutions of

    P_3 - 3 d (P_2 - v n) + 3 d^2 P_1 - d^3 n - 3 v P_1            =  t (3/2 s V - 1/2 s^3 n)        V = P_2 - 2 d P_1 + d^2 n
    P_4 - 4 d (P_3 - M_3 n) + 6 d^2 P_2 - 4 d^3 P_1 + d^4 n - 4 M_3 P_1  =  t (2 v V - v^2 n)

because V is v n. Everything that is unknown here (d, s, M_3) is multiplied by something that is about 0 by the noisy numbers,
so it widens the interval in the second order only. Where noise hides the spread, the margin is what so many rows allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dither.planning.releases.base import Bounds, Cells, Collection, Kind, Noise, Number, Reading
from dither.planning.releases.moments import PARTS, Moments, Range, Sample, Weighted, bernstein, grid_of, note_grid
from dither.query.nodes import Aggregate

DEGREES = {"skewness": 3, "kurtosis": 4, "kurtosis_pop": 4}


def read(aggregate: Aggregate, collection: Collection) -> Shape:
    x = collection.argument(aggregate)
    same = [one for one in collection.aggregates if one.function in DEGREES and collection.argument(one) == x]
    grid = grid_of(x, aggregate, collection)
    nullable = (x,) if collection.facts(x).nullable else ()
    degree = max(DEGREES[one.function] for one in same)
    place = collection.add(Moments((grid,), (degree,), collection.max_rows, nullable))
    note_grid(x, grid, collection)
    return Shape(aggregate, place, collection.may_be_cut)


@dataclass(frozen=True)
class Shape(Reading):
    """Skewness or kurtosis."""

    aggregate: Aggregate
    place: int
    cut: bool  # units may be cut to a part of a row
    by_rows = True
    sign = "typically ±"  # it depends on where the values lie

    @property
    def _skew(self) -> bool:
        return self.aggregate.function == "skewness"

    @property
    def _fewest(self) -> int:
        """The rows that the aggregate needs."""
        return {"skewness": 3, "kurtosis": 4, "kurtosis_pop": 2}[self.aggregate.function]

    def values(self, noises: Sequence[Noise], noisy: Cells) -> list[Number]:
        values: list[Number] = self._value(Sample(noises[self.place], noisy[self.place])).tolist()
        return values

    def _value(self, found: Sample) -> NDArray[np.float64]:
        spread, limit = _spread(found), self._limit(found.size)
        if self._skew:
            t = np.clip(found.centred(3).value.low / found.size / spread**1.5, -limit, limit)
        else:
            t = np.clip(found.centred(4).value.low / found.size / spread**2, 1.0, limit)
        return self._finish(t, np.maximum(found.size, self._fewest))

    def _limit(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the most that t can be: that of one row far from all others."""
        rows = np.maximum(rows, 2.0)
        return np.asarray(np.sqrt(rows) if self._skew else rows)

    def _finish(self, t: NDArray[np.float64], n: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turns t into the aggregate."""
        if self._skew:
            return np.asarray(t * np.sqrt(n * (n - 1)) / (n - 2))
        if self.aggregate.function == "kurtosis_pop":
            return np.asarray(t - 3)
        return np.asarray((n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * t - 3 * (n - 1)) if self._fewest == 4 else t)

    def margins(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> list[float | None]:
        return [float(each) for each in self._half_widths(noises, noisy, confidence)]

    def bounds(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> Bounds:
        found = self._between(Sample(noises[self.place], noisy[self.place]), float(confidence))
        return found.low, found.high

    def _half_widths(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> NDArray[np.float64]:
        value = np.array(self.values(noises, noisy), dtype=np.float64)
        low, high = self.bounds(noises, noisy, confidence)
        return np.asarray(np.maximum(np.abs(high - value), np.abs(value - low)))

    def unsure(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> NDArray[np.bool_]:
        """Returns the groups that may have too few rows."""
        found = Sample(noises[self.place], noisy[self.place])
        return np.asarray(found.rows - found.reach(float(confidence)) < self._fewest)

    def _between(self, found: Sample, confidence: float) -> Range:
        doubt = (1 - confidence) / PARTS
        off = found.mean(0, 1 - doubt)
        squares = found.variance(0, off)
        spread = found.solve(squares, found.count, (0.0, 1.0), 1 - doubt)
        side = 3  # the mean, the spread and the number of rows
        if self._skew:
            above, below = _third(found, off, spread), _cube(found, squares, spread)
        else:
            third = found.solve(_third(found, off, spread), found.count, (-2.0, 2.0), 1 - doubt)
            above, below, side = _fourth(found, off, third), _fourth_power(found, squares, spread), 4
        reach = found.reach(1 - doubt)
        least, most = (np.maximum(found.rows + sign * reach, self._fewest) for sign in (-1, 1))
        limit = self._limit(most * (found.release.scale if self.cut else 1.0))
        low = -limit if self._skew else np.ones_like(limit)
        between = found.solve(above, below, (low, limit), confidence + side * doubt)
        hidden = spread.low <= 0
        between = Range(np.where(hidden, low, between.low), np.where(hidden, limit, between.high))
        ends = [self._finish(t, n) for t in (between.low, between.high) for n in (least, most)]
        return Range(np.minimum.reduce(ends), np.maximum.reduce(ends))

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        """Returns the margin for values of which most lie about a quarter of the range: a typical margin, not a bound."""
        if rows is None:
            return None
        release, cells = noises[self.place].of, [np.zeros((1, 1)) for _ in noises]
        if not isinstance(release, Moments):
            raise TypeError("a shape is read from moments")
        points = ((0.1, 0.1), (0.2, 0.4), (0.3, 0.3), (0.4, 0.15), (0.6, 0.05))
        total = sum(rows * chance * bernstein(u, release.degrees[0]) for u, chance in points)
        cells[self.place] = np.asarray(total * release.scale)[None, :]
        return float(self._half_widths(noises, cells, confidence)[0])


def _spread(found: Sample) -> NDArray[np.float64]:
    """Returns the variance; where noise hides it, what noise alone would show."""
    squares = found.centred(2)
    return np.asarray(np.minimum(np.maximum(squares.value.low / found.size, found.floor(squares)), 1.0))


def _third(found: Sample, off: Range, spread: Range) -> Weighted:
    """Returns the sum of (z - m)^3 - 3 v (z - m)."""
    first, second, third = (found.centred(power) for power in (1, 2, 3))
    mixed = (second - found.count * spread) * off * -3.0 + first * off.power(2) * 3.0 - found.count * off.power(3)
    return third + mixed - first * spread * 3.0


def _fourth(found: Sample, off: Range, third: Range) -> Weighted:
    """Returns the sum of (z - m)^4 - 4 M_3 (z - m)."""
    first, second, cubes, fourth = (found.centred(power) for power in (1, 2, 3, 4))
    mixed = (cubes - found.count * third) * off * -4.0 + second * off.power(2) * 6.0
    mixed = mixed - first * off.power(3) * 4.0 + found.count * off.power(4)
    return fourth + mixed - first * third * 4.0


def _cube(found: Sample, squares: Weighted, spread: Range) -> Weighted:
    """Returns 3/2 s V - 1/2 s^3 n for the standard deviations s that are possible."""
    root = np.sqrt(_spread(found))
    part = Range(np.sqrt(np.maximum(spread.low, 0.0)) / root - 1.0, np.sqrt(spread.high) / root - 1.0)  # s = root (1 + part)
    first, cube = squares * Range.of(root), found.count * Range.of(root**3)
    rest = part.power(2) * 3.0 + part.power(3)
    return first * 1.5 - cube * 0.5 + (first - cube) * part * 1.5 - cube * rest * 0.5


def _fourth_power(found: Sample, squares: Weighted, spread: Range) -> Weighted:
    """Returns 2 v V - v^2 n for the variances v that are possible."""
    guess = _spread(found)
    part = spread - Range.of(guess)  # v = guess + part
    near = squares * Range.of(guess) * 2.0 - found.count * Range.of(guess**2)
    return near + (squares - found.count * Range.of(guess)) * part * 2.0 - found.count * part.power(2)


KIND = Kind(dict.fromkeys(DEGREES, read))
