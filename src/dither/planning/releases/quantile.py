"""MEDIAN, QUANTILE, MIN and MAX: the exponential mechanism chooses a bin of a histogram, by its rank.

MIN and MAX are the 1 % and the 99 % quantile. A share closer to 0 or 1 than 1/1000 is moved to that; plans and answers say so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import QueryError
from dither.exact.numbers import show_decimal, show_percent, show_rounded
from dither.mechanisms import Exponential, Gaussian, Geometric
from dither.planning.releases.base import Bounds, Cells, Collection, Kind, Noise, Number, Reading, Release, is_whole, title_of
from dither.planning.sensitivity import BINS, NARROW, Bounding, coarse_grid, fits
from dither.query.nodes import Aggregate, Expression
from dither.query.show import show_expression
from dither.query.work import SCALE, Bins, Quantised

EXTREME = {"min": Fraction(1, 100), "max": Fraction(99, 100), "median": Fraction(1, 2)}
OUTERMOST = Fraction(1, 1000)


@dataclass(frozen=True)
class Choice(Release):
    """The bin in which the quantile lies."""

    x: Expression
    grid: Quantised
    p: Fraction
    max_rows: int
    allows_gaussian = False
    row = 0

    @property
    def empty_value(self) -> dict[int, int]:
        return {}

    @property
    def weight(self) -> float:
        """The square of its rank margin over a count's margin at the same price and 95 %: 2 max(p, 1-p) (ln bins + 3) / 3."""
        return (2 * float(max(self.p, 1 - self.p)) * (math.log(self.grid.steps + 1) + 3) / 3) ** 2

    @cached_property
    def measure(self) -> Bins:
        return Bins(self.grid, self.max_rows)

    @property
    def parameters(self) -> dict[str, Fraction]:
        return {"p": self.p}

    @property
    def rows_per_unit(self) -> int:
        return self.max_rows

    @property
    def words(self) -> str:
        return f"the {show_percent(self.p)} quantile of {show_expression(self.x)}"

    def pure(self, epsilon: Fraction, bounding: Bounding) -> Noise:
        steps = bounding.neighbours.changes
        sensitivity = rank_sensitivity(self.p, self.max_rows)
        each = Exponential(epsilon=epsilon / (bounding.max_groups * steps), sensitivity=sensitivity)
        return Noise(self, each, bounding.max_groups, steps)

    def gaussian(self, rho: Fraction, bounding: Bounding) -> Noise:
        raise TypeError("no noise is added to a choice")

    def draw(self, mechanism: Geometric | Gaussian | Exponential, exact: Sequence[Any]) -> NDArray[Any]:
        """Chooses a bin by the exponential mechanism. A bin's score is minus the distance of its rank from p."""
        bins = self.grid.steps + 1
        chosen = [[int(mechanism.release(rank_scores(histogram, bins, self.p)))] for histogram in exact]
        return np.array(chosen, dtype=np.int64).reshape(-1, 1)

    def relative(self, noise: Noise) -> float:
        return 2 / float(_chooser(noise).epsilon) ** 2

    @property
    def about(self) -> str:
        return f"{self.grid.steps + 1} candidates for {self.words}, in steps of {show_decimal(self.grid.step)}"


def _chooser(noise: Noise) -> Exponential:
    if not isinstance(noise.mechanism, Exponential):
        raise TypeError("quantiles are chosen by the exponential mechanism")
    return noise.mechanism


def read(aggregate: Aggregate, collection: Collection) -> Quantile:
    x, p = collection.argument(aggregate), _share_of(aggregate)
    if p is None or not 0 < p < 1:
        raise QueryError(
            "The share of a quantile lies between 0 and 1, and is neither.",
            span=aggregate.span,
            fix="write a share such as 0.01, or MIN(x) and MAX(x) for the 1 % and the 99 % quantile.",
        )
    facts = collection.facts(x)
    q = coarse_grid(x, facts, aggregate, BINS)
    place = collection.add(Choice(x, q, usable_share(p), collection.max_rows))
    collection.note_bounds(x)
    return Quantile(aggregate, place, q, usable_share(p), is_whole(q, facts))


def _share_of(aggregate: Aggregate) -> Fraction | None:
    return aggregate.parameter if aggregate.function == "quantile" else EXTREME[aggregate.function]


@dataclass(frozen=True)
class Quantile(Reading):
    """The value of the chosen bin. Its margin is a rank: by how many rows' worth the chosen value may be off."""

    aggregate: Aggregate
    noise: int
    grid: Quantised
    p: Fraction
    whole: bool

    @property
    def title(self) -> str:
        if self.aggregate.function == "quantile":
            p = self.aggregate.parameter or Fraction(1, 2)
            nearly = f", as the {show_percent(self.p)} quantile," if self.p != p else ""
            return title_of(self.aggregate, f"QUANTILE({{}}, {float(p):g})") + nearly
        if self.aggregate.function in ("min", "max"):
            return f"{title_of(self.aggregate)}, as the {show_percent(self.p)} quantile,"
        return title_of(self.aggregate)

    @property
    def notes(self) -> tuple[str, ...]:
        """Which quantile is chosen and the step of its grid, where the question does not say so."""
        requested = self.aggregate.parameter if self.aggregate.function == "quantile" else EXTREME["median"]
        which = "" if self.p == requested else f"the {show_percent(self.p)} quantile"
        fine = "" if self.whole and self.grid.step == 1 else f"in steps of {show_decimal(self.grid.step)}"
        return tuple(note for note in (which, fine) if note)

    def values(self, noises: Sequence[Noise], noisy: Cells) -> list[Number]:
        values = [self.grid.low + self.grid.step * int(b) for b in noisy[self.noise][:, 0]]
        return [int(v) if self.whole else float(v) for v in values]

    def largest(self, noises: Sequence[Noise], rows: int) -> Fraction:
        return max(abs(self.grid.low), abs(self.grid.low + self.grid.step * self.grid.steps))

    def rank(self, noises: Sequence[Noise], confidence: Fraction) -> float:
        reach = _chooser(noises[self.noise]).margin(confidence, candidates=self.grid.steps + 1)
        return float(reach / (SCALE * self.p.denominator))

    def margins(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> list[float | None]:
        return [None] * len(noisy[self.noise])

    def bounds(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> Bounds:
        """Returns no bounds: a rank does not bound a value."""
        groups = len(noisy[self.noise])
        return np.full(groups, -math.inf), np.full(groups, math.inf)

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        return None

    def expected(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> str:
        return f"rank ± {show_rounded(self.rank(noises, confidence))} rows"


def usable_share(p: Fraction) -> Fraction:
    """Returns the share that is used for p: at least OUTERMOST away from 0 and 1, with a denominator of at most 1000.

    Scores and their sensitivity grow with the denominator: with a share of sixteen digits, all scores of `rank_scores` would
    reach the end of 64 bits, where they are cut and all equal.

    >>> usable_share(Fraction("0.3333333333333333")), usable_share(Fraction("0.995")), usable_share(Fraction(1, 10**9))
    (Fraction(1, 3), Fraction(199, 200), Fraction(1, 1000))
    """
    return min(max(p, OUTERMOST), 1 - OUTERMOST).limit_denominator(1000)


def rank_scores(histogram: dict[int, int], bins: int, p: Fraction) -> NDArray[np.int64]:
    """Returns score(b) = -max(0, W(<b) - p W, p W - W(<=b)) times p's denominator: 0 where b is a p-quantile, else minus how
    far its rank is off. With p = a/d, W(<b) d - a W = (d - a) W(<b) - a W(>=b): a row of weight w moves it by at most
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
    """Returns how far one unit moves any score of `rank_scores`."""
    return max_rows * SCALE * max(p.numerator, p.denominator - p.numerator)


KIND = Kind(dict.fromkeys(("median", "quantile", "min", "max"), read))
