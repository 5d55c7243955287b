"""CORR, COVAR, REGR_SLOPE, REGR_INTERCEPT and REGR_R2: the moments of two columns, from one joint release (moments.py).

With z and w the columns centred on the middle of their bounds, in halves of their range, C the sum of (z - m)(w - k) for the
means m and k, V and W the sums of (z - m)^2 and (w - k)^2, and n the rows in which neither is NULL:

    COVAR_POP   C / n                           COVAR_SAMP  C / (n - 1)
    REGR_SLOPE  C / V                           CORR        C / sqrt(V W), REGR_R2 its square
    REGR_INTERCEPT, as in SQL, is the height of the line over x = 0

A covariance needs degree 1 of both columns (4 cells), a slope degree 2 of x (6 cells), a correlation of both (9 cells). All
that a question asks about two columns is read from one release.

Margins (`solve` in moments.py). By the noisy means C moves by n (m - m^)(k - k^) only, and V by n (m - m^)^2: in the second
order. For the correlation let s = sqrt(W / V) be the true ratio of the spreads. Then r = 2 C / (s V + W / s), and with
s = s^ e^h

    s V + W / s = (s^ V + W / s^) cosh h + (s^ V - W / s^) sinh h

where the second bracket is about 0 for the noisy s^: again the second order. A slope has no public limit, except that spread is
at least that of one row in a different step: that is the margin where noise hides the spread of x.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dither.planning.releases.base import Bounds, Cells, Collection, Kind, Noise, Number, Reading
from dither.planning.releases.moments import PARTS, Moments, Range, Sample, Weighted, bernstein, grid_of, note_grid
from dither.query.nodes import Aggregate, Expression
from dither.query.show import show_expression
from dither.query.work import Quantised

# The degree of y and of x that each function needs.
DEGREES = {
    "covar_pop": (1, 1),
    "covar_samp": (1, 1),
    "regr_slope": (1, 2),
    "regr_intercept": (1, 2),
    "regr_r2": (2, 2),
    "corr": (2, 2),
}


def _columns(aggregate: Aggregate, collection: Collection) -> tuple[Expression, Expression]:
    """Returns y and x."""
    lowered = collection.lower(aggregate)
    if lowered.argument is None or lowered.second is None:
        raise TypeError(f"{aggregate.function} has two arguments: legality should have refused it")
    return lowered.argument, lowered.second


def _ordered(y: Expression, x: Expression) -> tuple[Expression, Expression]:
    """Returns two columns in an order that does not depend on the question."""
    return (y, x) if show_expression(y, names=True) <= show_expression(x, names=True) else (x, y)


def _release(aggregate: Aggregate, collection: Collection) -> Moments:
    """Returns the release of a pair, with the degrees that the whole question needs."""
    pair = _ordered(*_columns(aggregate, collection))
    degrees = [1, 1]
    for other in collection.aggregates:
        if other.function in DEGREES and _ordered(*_columns(other, collection)) == pair:
            own = DEGREES[other.function]
            swapped = _columns(other, collection) != pair
            degrees = [max(a, b) for a, b in zip(degrees, own[::-1] if swapped else own, strict=True)]
    grids = tuple(grid_of(each, aggregate, collection) for each in pair)
    nullable = tuple(dict.fromkeys(each for each in pair if collection.facts(each).nullable))
    return Moments(grids, (degrees[0], degrees[1]), collection.max_rows, nullable)


def read(aggregate: Aggregate, collection: Collection) -> Pair:
    release, (y, x) = _release(aggregate, collection), _columns(aggregate, collection)
    place = collection.add(release)
    swapped = _ordered(y, x) != (y, x)
    for column, grid in zip(_ordered(y, x), release.grids, strict=True):
        note_grid(column, grid, collection)
    return Pair(aggregate, place, release.grids[::-1] if swapped else release.grids, swapped, collection.may_be_cut)


@dataclass(frozen=True)
class Pair(Reading):
    """An aggregate of y and x. `grids` are theirs; `swapped`: x is the first column of the release."""

    aggregate: Aggregate
    place: int
    grids: tuple[Quantised, ...]
    swapped: bool
    cut: bool  # units may be cut to a part of a row
    by_rows = True
    sign = "typically ±"  # it depends on where the values lie

    @property
    def title(self) -> str:
        written = [show_expression(each) for each in (self.aggregate.argument, self.aggregate.second) if each is not None]
        where = "" if self.aggregate.where is None else f" FILTER (WHERE {show_expression(self.aggregate.where)})"
        return f"{self.aggregate.function.upper()}({', '.join(written)}){where}"

    @property
    def _halves(self) -> tuple[float, float]:
        """Half the range of y, and of x."""
        first, second = (float(grid.step * grid.steps) / 2 for grid in self.grids)
        return first, second

    @property
    def _middles(self) -> tuple[float, float]:
        first, second = (float(grid.low + grid.step * grid.steps / 2) for grid in self.grids)
        return first, second

    @property
    def _y(self) -> int:
        """The place of y in the release."""
        return int(self.swapped)

    # --- values ---------------------------------------------------------------------------------------------------

    def values(self, noises: Sequence[Noise], noisy: Cells) -> list[Number]:
        values: list[Number] = self._value(Sample(noises[self.place], noisy[self.place])).tolist()
        return values

    def _value(self, found: Sample) -> NDArray[np.float64]:
        function, covariance = self.aggregate.function, found.centred(1, 1).value.low / found.size
        if function in ("covar_pop", "covar_samp"):
            sample = function == "covar_samp"
            factor = found.size / np.maximum(found.size - 1, 0.5) if sample else 1.0
            return np.asarray(np.clip(covariance, -1, 1) * factor * math.prod(self._halves))
        spread = self._spread(found, 1 - self._y)
        if function in ("corr", "regr_r2"):
            share = np.clip(covariance / np.sqrt(spread * self._spread(found, self._y)), -1, 1)
            return np.asarray(share if function == "corr" else share**2)
        limit = 1 / np.sqrt(spread)  # |C / V| <= sqrt(W / V), and W <= 1
        return np.asarray(
            self._line(np.clip(covariance / spread, -limit, limit), found.means[self._y], found.means[1 - self._y])
        )

    def _line(self, slope: NDArray[np.float64], y: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the slope, or the height over x = 0, in units of the columns."""
        (half_y, half_x), (middle_y, middle_x) = self._halves, self._middles
        if self.aggregate.function == "regr_slope":
            return np.asarray(slope * half_y / half_x)
        return np.asarray(middle_y + half_y * (y + slope * (-middle_x / half_x - x)))

    @staticmethod
    def _spread(found: Sample, column: int) -> NDArray[np.float64]:
        """Returns the variance of a column. Where noise hides it, what noise alone would show."""
        squares = found.centred(*((2, 0) if column == 0 else (0, 2)))
        return np.asarray(np.minimum(np.maximum(squares.value.low / found.size, found.floor(squares)), 1.0))

    # --- margins --------------------------------------------------------------------------------------------------

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
        """Returns the groups that may have too few rows: one, or none for the covariance of a population."""
        found = Sample(noises[self.place], noisy[self.place])
        few = 0 if self.aggregate.function == "covar_pop" else 1
        return np.asarray(found.rows - found.reach(float(confidence)) <= few)

    def _between(self, found: Sample, confidence: float) -> Range:
        doubt = (1 - confidence) / PARTS
        off = [found.mean(column, 1 - doubt) for column in (0, 1)]
        covariance = found.centred(1, 1) - found.centred(0, 1) * off[0] - found.centred(1, 0) * off[1]
        covariance = covariance + found.count * (off[0] * off[1])
        function, sure = self.aggregate.function, confidence + 2 * doubt
        if function in ("covar_pop", "covar_samp"):
            return self._covariance(found, found.solve(covariance, found.count, (-1.0, 1.0), sure + doubt), 1 - doubt)
        spreads = [found.variance(column, off[column]) if self._degree(found, column) > 1 else None for column in (0, 1)]
        if function in ("corr", "regr_r2"):
            return self._correlation(found, covariance, [each for each in spreads if each is not None], sure, doubt)
        spread = spreads[1 - self._y]
        if spread is None:
            raise TypeError("a slope needs the squares of x")
        return self._slope(found, covariance, spread, off, confidence)

    @staticmethod
    def _degree(found: Sample, column: int) -> int:
        return found.release.degrees[column]

    def _covariance(self, found: Sample, between: Range, confidence: float) -> Range:
        if self.aggregate.function == "covar_samp":
            off = found.reach(confidence)
            least, most = (np.maximum(found.rows + sign * off, 2) for sign in (-1, 1))
            between = between * Range(most / (most - 1), least / (least - 1))
        return between * math.prod(self._halves)

    def _correlation(
        self, found: Sample, covariance: Weighted, spreads: list[Weighted], confidence: float, doubt: float
    ) -> Range:
        sizes = [found.solve(each, found.count, (0.0, 1.0), 1 - doubt) for each in spreads]
        guess = [self._spread(found, column) for column in (0, 1)]
        ratio = np.sqrt(guess[1] / guess[0])
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            least, most = np.sqrt(sizes[1].low / sizes[0].high) / ratio, np.sqrt(sizes[1].high / sizes[0].low) / ratio
        wide = np.maximum(np.abs(np.log(np.maximum(most, 1e-9))), np.abs(np.log(np.maximum(least, 1e-9))))
        hidden = (sizes[0].low <= 0) | (sizes[1].low <= 0) | ~np.isfinite(wide)
        h = np.where(hidden, 0.0, np.minimum(wide, 20.0))
        first, second = spreads[0] * Range.of(ratio), spreads[1] * Range.of(1 / ratio)
        below = (first + second) * Range(np.ones_like(h), np.cosh(h)) + (first - second) * Range.around(np.sinh(h))
        between = found.solve(covariance * 2.0, below, (-1.0, 1.0), confidence + 2 * doubt)
        between = Range(np.where(hidden, -1.0, between.low), np.where(hidden, 1.0, between.high))
        return between if self.aggregate.function == "corr" else between.power(2)

    def _slope(self, found: Sample, covariance: Weighted, spread: Weighted, off: list[Range], confidence: float) -> Range:
        doubt = (1 - confidence) / PARTS
        most = np.maximum(found.rows + found.reach(1 - doubt), 2.0) * (found.release.scale if self.cut else 1.0)
        limit = self.grids[1].steps * np.sqrt(most)  # 1 / sqrt(V / n) for one row a step away from all others
        if self.aggregate.function == "regr_slope":
            slope = found.solve(covariance, spread, (-limit, limit), confidence + 3 * doubt)
            return slope * (self._halves[0] / self._halves[1])
        slope = found.solve(covariance, spread, (-limit, limit), 1 - doubt)
        squares = found.solve(spread, found.count, (0.0, 1.0), 1 - doubt)
        height = self._height(found, slope, squares, off, confidence + 5 * doubt)
        return height * self._halves[0] + Range.of(np.full_like(found.rows, self._middles[0]))

    def _height(self, found: Sample, slope: Range, squares: Range, off: list[Range], confidence: float) -> Range:
        """Returns the height of the line over x = 0, as the sum of (w - b (z - x)) (1 + c (z - m)) over that of 1 + c (z - m):
        residuals add up to 0 with any c. With c = (x - m) / v the slope b does not matter in the first order."""
        y, x = self._y, 1 - self._y
        n, ahead = found.count, Range.of(-self._middles[1] / self._halves[1] - found.means[x])  # from the noisy mean of x
        w, z, both = (found.centred(*(powers if y else powers[::-1])) for powers in ((0, 1), (1, 0), (1, 1)))
        zz = found.centred(*((2, 0) if y else (0, 2)))
        b = Range.of(np.clip(both.value.low / np.maximum(zz.value.low, 1e-9), slope.low, slope.high))
        c = Range.of(ahead.low * found.size / np.maximum(zz.value.low, 1e-9 * found.size))
        hidden = squares.low <= 0
        shares = Range(1 / squares.high, 1 / np.where(hidden, 1.0, squares.low))
        turned, moved = slope - b, (ahead - off[x]) * shares - c  # how far b and c may be off
        first = both - zz * b + z * (b * ahead)
        above = w + n * (b * ahead) - z * b + first * c + first * moved
        above = above + (n * ahead - z - zz * c + z * (c * ahead)) * turned + (z * ahead - zz) * (turned * moved)
        rough = off[y] + slope * (ahead - off[x])
        height = found.solve(above, n + z * c + z * moved, (rough.low, rough.high), confidence)
        height = Range(np.where(hidden, rough.low, height.low), np.where(hidden, rough.high, height.high))
        return height + Range.of(found.means[y])

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        """Returns the margin for means at a quarter of the range, standard deviations of a tenth of it and a correlation of a
        third: a typical margin, not a bound."""
        if rows is None:
            return None
        release, cells = noises[self.place].of, [np.zeros((1, 1)) for _ in noises]
        if not isinstance(release, Moments):
            raise TypeError("a pair is read from moments")
        total = np.zeros(release.cells)
        for (u, v), chance in (((0.15, 0.15), 1 / 3), ((0.35, 0.35), 1 / 3), ((0.15, 0.35), 1 / 6), ((0.35, 0.15), 1 / 6)):
            total += rows * chance * np.outer(bernstein(u, release.degrees[0]), bernstein(v, release.degrees[1])).ravel()
        cells[self.place] = (total * release.scale)[None, :]
        return float(self._half_widths(noises, cells, confidence)[0])


KIND = Kind(dict.fromkeys(DEGREES, read))
