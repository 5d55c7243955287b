"""VAR and STDDEV: a joint release (sums.py) for the mean, and the centred squares D = sum of 2 z^2 - 1 with z in [-1, 1]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.planning import margins, sensitivity
from dither.planning.releases.base import Bounds, Cells, Collection, Kind, Noise, Number, Reading, Release, not_null
from dither.planning.releases.sums import SPREADS, Ratio, fieller, joint, ratio
from dither.query.nodes import Aggregate, Expression
from dither.query.show import show_expression
from dither.query.work import Cell, Quantised, Sums


@dataclass(frozen=True)
class Squares(Release):
    """D of a column: 2 z^2 - 1 with z = 2q/R - 1, times R^2 to be whole: 8 q^2 - 8 R q + R^2, from -R^2 to R^2."""

    x: Expression
    grid: Quantised
    max_rows: int
    optional: bool  # x may be NULL; such rows are not counted
    signed = True
    empty_value = (0,)

    @cached_property
    def measure(self) -> Sums:
        r = self.grid.steps
        cell = Cell(self.grid, constant=r * r, linear=-8 * r, square=8)
        return Sums((cell,), self.max_rows, not_null(self.x) if self.optional else None)

    @property
    def row(self) -> int:
        return self.grid.steps**2

    @property
    def rows_per_unit(self) -> int:
        return self.max_rows

    @property
    def words(self) -> str:
        return f"centred squares of {show_expression(self.x)}"


def read(aggregate: Aggregate, collection: Collection) -> Spread:
    x = collection.argument(aggregate)
    facts, (_, first) = collection.facts(x), joint(collection, x)
    grid = sensitivity.coarse_grid(x, facts, aggregate, sensitivity.SQUARES)
    second = collection.add(Squares(x, grid, collection.max_rows, facts.nullable and not first.nulls))
    root, sample = aggregate.function.startswith("stddev"), aggregate.function.endswith("samp")
    return Spread(
        aggregate, ratio(aggregate, x, collection), second, grid, root, sample, sensitivity.rounding_error(grid, facts) > 0
    )


@dataclass(frozen=True)
class Spread(Reading):
    """Variance or standard deviation: E[z^2] - E[z]^2 with z = (x - mid) / (range / 2), from the mean's two sums and from
    D = sum of 2 z^2 - 1, whose size is at most 1 per row.

    Margin: from the mean's interval, the interval of D / n = y by Fieller with |y| <= 1, and for the sample variance the
    interval of n, each at a third of 1 - confidence (union bound). The variance lies between the extremes they allow. These
    are always within the bounds of a variance, so a margin is always stated, as for a mean.
    """

    aggregate: Aggregate
    mean: Ratio
    second: int
    grid: Quantised  # of the squares
    root: bool
    sample: bool
    rounded: bool = False  # the grid of the squares moves values
    by_rows = True
    sign = "typically ±"  # it depends on where the values lie

    @property
    def _half(self) -> float:
        return float(self.grid.step * self.grid.steps) / 2

    def _size(self, noisy: Cells) -> NDArray[np.float64]:
        a, b = self.mean.parts(noisy)
        size: NDArray[np.float64] = (a + b) / self.mean.grid.steps
        return size

    def _deviation(self, share: Any) -> Any:
        """Returns the mean's distance from the middle of the squares' grid, in halves of its range."""
        low, width = float(self.mean.grid.low), float(self.mean.grid.step * self.mean.grid.steps)
        return np.clip((low + width * share - float(self.grid.low)) / self._half - 1, -1, 1)

    def _finish(self, spread: Any, size: Any) -> Any:
        """Turns E[z^2] - E[z]^2 into the aggregate. A variance of numbers in [-1, 1] is at most 1, a sample variance 2."""
        result = np.clip(spread, 0, 1)
        if self.sample:
            result = np.minimum(result * size / np.maximum(size - 1, 0.5), 2)
        result = result * self._half**2
        return np.sqrt(result) if self.root else result

    def values(self, noises: Sequence[Noise], noisy: Cells) -> list[Number]:
        size = np.maximum(self._size(noisy), 1.0)
        y = np.clip(noisy[self.second][:, 0].astype(np.float64) / self.grid.steps**2 / size, -1, 1)
        values: list[Number] = self._finish((y + 1) / 2 - self._deviation(self.mean.share(noisy)) ** 2, size).tolist()
        return values

    def unsure(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> NDArray[np.bool_]:
        """Returns the groups that may have too few rows: none, or one for the sample variance."""
        return self.mean.unsure(noises, noisy, confidence, rows=1 if self.sample else 0)

    def margins(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> list[float | None]:
        return [float(each) for each in self._half_widths(noises, noisy, confidence)]

    def bounds(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> Bounds:
        return self._between(noises, noisy, confidence)

    def _half_widths(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> NDArray[np.float64]:
        least, most = self._between(noises, noisy, confidence)
        value = np.array(self.values(noises, noisy))
        wide: NDArray[np.float64] = np.maximum(np.abs(value - least), np.abs(most - value))
        return wide

    def _between(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> Bounds:
        each = 1 - (1 - confidence) / 3
        slack = float(self.mean.slack) / self._half
        low, high = (self._deviation(r) for r in self.mean.interval(noises, noisy, each))
        low, high = low - slack, high + slack
        y_low, y_high, n_low, n_high = self._ranges(noises, noisy, each)
        if self.rounded:  # z moves by at most 1/R, so z^2 by at most 2/R
            y_low, y_high = y_low - 4 / self.grid.steps, y_high + 4 / self.grid.steps
        near = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
        far = np.maximum(np.abs(low), np.abs(high))
        least = self._finish((y_low + 1) / 2 - far**2, np.maximum(n_high, 2))
        most = self._finish((y_high + 1) / 2 - near**2, np.maximum(n_low, 2))
        return least, most

    def _ranges(self, noises: Sequence[Noise], noisy: Cells, each: Fraction) -> tuple[Any, Any, Any, Any]:
        first, second = noises[self.mean.noise], noises[self.second]
        size, d = self._size(noisy), noisy[self.second][:, 0].astype(np.float64) / self.grid.steps**2
        unit = 1 / self.mean.grid.steps
        law = margins.normal if first.gaussian else margins.laplace
        scales = (second.scale / self.grid.steps**2, first.scale * unit, first.scale * unit)
        reach = law(scales, float(each)) + 2 * unit + 1 / self.grid.steps**2
        y_low, y_high = fieller(d, size, np.full_like(d, reach), -np.ones_like(d), np.ones_like(d))
        y_low, y_high = np.nan_to_num(y_low, nan=-1.0), np.nan_to_num(y_high, nan=1.0)  # beyond all reach: any y
        rows = law(scales[1:], float(each)) + 2 * unit
        return y_low, y_high, size - rows, size + rows

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        """Returns the margin for values spread evenly around the middle: a typical margin, not a bound."""
        if rows is None:
            return None
        half, steps = float(rows) / 2, self.mean.grid.steps
        cells = [np.zeros((1, 1)) for _ in noises]
        cells[self.mean.noise] = np.array([[half * steps, half * steps]])
        cells[self.second] = np.array([[-float(rows) / 3 * self.grid.steps**2]])
        return float(self._half_widths(noises, cells, confidence)[0])


KIND = Kind(dict.fromkeys(SPREADS, read))
