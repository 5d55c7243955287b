"""One measure with its noise: the mechanism, what it costs over all groups, and the release of its integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.mechanisms import Exponential, Gaussian, Geometric
from dither.planning.grids import NARROW, fits
from dither.privacy.losses import ZCDP, Loss
from dither.query.work import SCALE, Bins, Distinct, Measure, Sums

Noisy = NDArray[np.float64]


@dataclass(frozen=True)
class Draft:
    """A measure before it has a price.

    `row`: the most one row moves all cells together; `signed`: whether a cell can fall when a unit is added; `weight`: how
    much the outputs depend on it (split.py); `p`: the quantile asked of a histogram.
    """

    measure: Measure
    row: int
    signed: bool
    weight: float
    words: str
    p: Fraction | None = None

    @property
    def cells(self) -> int:
        return len(self.measure.cells) if isinstance(self.measure, Sums) else 1

    @property
    def worth(self) -> int:
        """How many rows' worth the engine lets one unit give to this measure in one group."""
        return self.measure.max_values if isinstance(self.measure, Distinct) else self.measure.max_rows


@dataclass(frozen=True)
class Noise:
    """A measure and the noise it gets.

    Where noise is drawn per group, as for quantiles, one unit pays in `groups` of them, and moves each by up to `steps`
    sensitivities: by two where it is replaced, because one may leave the group that the other enters. That is dearer than two
    groups moved by one each: the same epsilon, twice the rho.
    """

    draft: Draft
    mechanism: Geometric | Gaussian | Exponential
    groups: int = 1
    steps: int = 1

    @property
    def times(self) -> int:
        """In how many groups one unit may be seen: under replacement those it leaves and those it enters."""
        return self.groups * self.steps

    @property
    def loss(self) -> Loss:
        return self.mechanism.loss().group(self.steps).repeat(self.groups)

    @property
    def zcdp(self) -> ZCDP:
        """The loss stated a second way."""
        return self.mechanism.zcdp().group(self.steps).repeat(self.groups)

    @property
    def gaussian(self) -> bool:
        return self.mechanism.gaussian

    @property
    def scale(self) -> float:
        """The scale of one cell's noise: the Laplace scale, or the standard deviation."""
        return self.mechanism.noise_scale

    @property
    def variance(self) -> float:
        """Of one cell's noise, near enough for weighing."""
        return self.mechanism.noise_variance

    def release(self, exact: Sequence[Any]) -> NDArray[Any]:
        """The noisy integers, one row per group. The only place of a plan where noise is drawn.

        >>> from dither.query.work import Cell
        >>> draft = Draft(Sums((Cell(constant=1),), 1), row=1, signed=False, weight=1, words="rows")
        >>> Noise(draft, Geometric(epsilon=1000, sensitivity=1)).release([(3,), (0,)]).tolist()
        [[3], [0]]
        """
        if isinstance(self.draft.measure, Bins):
            return np.array([[self._choose(histogram)] for histogram in exact], dtype=np.int64).reshape(-1, 1)
        cells = [value for group in exact for value in (group if isinstance(group, tuple) else (group,))]
        if fits(self.draft.row):
            held = np.array([min(max(value, -NARROW), NARROW) for value in cells], dtype=np.int64)
            noisy: NDArray[Any] = np.asarray(self.mechanism.release(held))
        else:
            noisy = np.array([self.mechanism.release(value) for value in cells], dtype=object)
        return noisy.reshape(-1, self.draft.cells)

    def _choose(self, histogram: dict[int, int]) -> int:
        """The bin that the exponential mechanism chooses: its score is minus the distance of its rank from p."""
        measure, p, mechanism = self.draft.measure, self.draft.p, self.mechanism
        if not isinstance(measure, Bins) or p is None or not isinstance(mechanism, Exponential):
            raise TypeError("only a histogram with a quantile has bins to choose from")
        return int(mechanism.release(rank_scores(histogram, measure.argument.steps + 1, p)))


def rank_scores(histogram: dict[int, int], bins: int, p: Fraction) -> NDArray[np.int64]:
    """score(b) = -max(0, W(<b) - p W, p W - W(<=b)) times p's denominator: 0 where b is a p-quantile, else minus how far
    its rank is off. With p = a/d, W(<b) d - a W = (d - a) W(<b) - a W(>=b): a row of weight w moves it by at most
    w max(a, d - a), and under replacement by at most w d. Scores are cut at -2^62, which moves no two of them apart.

    >>> rank_scores({0: 1, 2: 3}, 4, Fraction(1, 2)).tolist()
    [-2, -2, 0, -4]
    """
    a, d = p.numerator, p.denominator
    # 2^40 rows of weight 2^16 each, times d, stay within 64 bits if d is small; the choice depends on p alone.
    kind = np.int64 if fits(SCALE * d) else object
    weights = np.zeros(bins, dtype=kind)
    for b, weight in histogram.items():
        weights[b] = min(weight, NARROW // d) if kind is np.int64 else weight
    upto = np.cumsum(weights)
    target = a * upto[-1]
    off = np.maximum(np.maximum(d * (upto - weights) - target, target - d * upto), 0)
    scores: NDArray[np.int64] = -np.minimum(off, NARROW).astype(np.int64)
    return scores


def rank_sensitivity(p: Fraction, max_rows: int) -> int:
    """How far one unit moves any score of `rank_scores`."""
    return max_rows * SCALE * max(p.numerator, p.denominator - p.numerator)
