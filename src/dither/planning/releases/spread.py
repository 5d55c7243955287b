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
from dither.planning.releases.base import (
    SPREADS,
    Bounds,
    Cells,
    Collection,
    Kind,
    Noise,
    Number,
    Reading,
    Release,
    Term,
    noise_reach,
)
from dither.planning.releases.sums import Ratio, joint, ratio
from dither.query.nodes import Aggregate, Expression
from dither.query.show import show_expression
from dither.query.work import Cell, Quantised, Sums

_PARTS = 64  # a side condition gets this part of 1 - confidence
_HALVINGS = 40


@dataclass(frozen=True)
class Squares(Release):
    """D of a column: 2 z^2 - 1 with z = 2q/R - 1, times R^2 to be whole: 8 q^2 - 8 R q + R^2, from -R^2 to R^2."""

    x: Expression
    grid: Quantised
    max_rows: int
    rows: Expression | None  # the rows by whose number a unit is cut; None: all
    signed = True
    empty_value = (0,)

    @cached_property
    def measure(self) -> Sums:
        r = self.grid.steps
        cell = Cell(self.grid, constant=r * r, linear=-8 * r, square=8)
        return Sums((cell,), self.max_rows, self.rows)

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
    grid = sensitivity.square_grid(x, facts, aggregate, collection.may_be_cut)
    second = collection.add(Squares(x, grid, collection.max_rows, first.rows))
    root, sample = aggregate.function.startswith("stddev"), aggregate.function.endswith("samp")
    return Spread(
        aggregate, ratio(aggregate, x, collection), second, grid, root, sample, sensitivity.rounding_error(grid, facts) > 0
    )


@dataclass(frozen=True)
class Spread(Reading):
    """Variance or standard deviation: E[z^2] - E[z]^2 with z = (x - mid) / (range / 2), from the mean's two sums and from
    D = sum of 2 z^2 - 1, whose size is at most 1 per row.

    Margin: for the true mean m, n times the variance v is the sum of (z - m)^2 = z^2 - 2 m z + m^2, a weighted sum N(m) of the
    same cells that n is one of. So N(m) - v n is noise alone, with a known reach, as for a quotient (margins.py). The mean is
    not known, but N(m) hardly depends on it: its interval, and for the sample variance that of n, get a small part of
    1 - confidence (union bound). Over an interval of m each cell's weight is largest at an end, and N(m) at an end or in its
    middle. What is left of [0, 1] holds v. It is always bounded, so a margin is always stated, as for a mean. Where N(m) came
    out below 0 it is held at 0, which only widens.
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
        doubt = (1 - confidence) / _PARTS
        slack = float(self.mean.slack) / self._half
        low, high = (self._deviation(r) for r in self.mean.interval(noises, noisy, 1 - doubt))
        sure = confidence + doubt * (2 if self.sample else 1)
        least, most = self._variance(noises, noisy, (low - slack, high + slack), float(sure))
        moved = 2 * slack + (2 / self.grid.steps if self.rounded else 0.0)  # z moves by at most 1/R, so z^2 by at most 2/R
        rows = tuple(Term(self.mean.noise, cell, Fraction(1, self.mean.grid.steps)) for cell in (0, 1))
        size, off = self._size(noisy), noise_reach(rows, noises, 1 - doubt)
        return self._finish(least - moved, np.maximum(size + off, 2)), self._finish(most + moved, np.maximum(size - off, 2))

    def _variance(self, noises: Sequence[Noise], noisy: Cells, means: Bounds, confidence: float) -> Bounds:
        """Returns the ends of the variances of z that are possible with a mean of z between `means`."""
        first, second = noises[self.mean.noise], noises[self.second]
        steps = np.array([[1 / self.grid.steps**2], [1 / self.mean.grid.steps], [1 / self.mean.grid.steps]])
        parts = np.array([noisy[self.second][:, 0], *self.mean.parts(noisy)], dtype=np.float64) * steps
        scales = steps * np.array([[second.scale], [first.scale], [first.scale]])
        n, places = parts[1] + parts[2], self._places()
        vertex = np.clip((places[0] * parts[1] + places[1] * parts[2]) / np.where(n != 0, n, 1.0), *means)
        weights = [self._weights(m, places) for m in (*means, vertex)]
        sums = [(weight * parts).sum(axis=0) for weight in weights]
        top, bottom = np.maximum(np.max(sums, axis=0), 0.0), np.minimum(np.min(sums, axis=0), np.maximum(n, 0.0))
        n_weights = np.array([[0.0], [1.0], [1.0]])

        def impossible(v: NDArray[np.float64], above: bool) -> NDArray[np.bool_]:
            sizes = np.maximum(*(np.abs(weight - v * n_weights) for weight in weights[:2]))
            off = (v * n - top if above else bottom - v * n) - (sizes * steps).sum(axis=0)
            return margins.beyond(sizes * scales, off, 1 - confidence, first.gaussian)

        ends = [np.zeros_like(n), np.ones_like(n)]
        for above in (False, True):
            near, far = (ends[1], ends[0]) if above else (ends[0], ends[1])
            sure = impossible(near, above)
            for _ in range(_HALVINGS):
                middle = (near + far) / 2
                out = impossible(middle, above) & sure
                near, far = np.where(out, middle, near), np.where(out, far, middle)
            ends[above] = near
        return ends[0], ends[1]

    def _places(self) -> tuple[float, float]:
        """Returns z at the upper and at the lower end of the mean's grid."""
        low, width = float(self.mean.grid.low), float(self.mean.grid.step * self.mean.grid.steps)
        upper, lower = ((end - float(self.grid.low)) / self._half - 1 for end in (low + width, low))
        return upper, lower

    @staticmethod
    def _weights(m: NDArray[np.float64], places: tuple[float, float]) -> NDArray[np.float64]:
        """Returns the weights of D, A and B in the sum of z^2 - 2 m z + m^2, where z^2 is (D + A + B) / 2."""
        return np.array([np.full_like(m, 0.5), *(0.5 - 2 * m * place + m * m for place in places)])

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        """Returns the margin for a mean at a quarter of the range and a standard deviation of a tenth of it, as ages or hours
        have: a typical margin, not a bound. It is smaller for values that are spread more evenly."""
        if rows is None:
            return None
        steps, mean, deviation = self.mean.grid.steps, 0.25, 0.1
        square = (2 * mean - 1) ** 2 + (2 * deviation) ** 2
        cells = [np.zeros((1, 1)) for _ in noises]
        cells[self.mean.noise] = np.array([[mean, 1 - mean]]) * rows * steps
        cells[self.second] = np.array([[(2 * square - 1) * rows * self.grid.steps**2]])
        return float(self._half_widths(noises, cells, confidence)[0])


KIND = Kind(dict.fromkeys(SPREADS, read))
