"""One quantile: the exponential mechanism chooses a value by its rank, and then a margin around it.

Every step of the grid is a candidate (ranks.py). Half of the price chooses the margin: the width of an interval around
the value that holds the true quantile with a confidence of 99 %, whatever the data. At a higher confidence, the margin is what
the bounds allow. The second choice depends on the outcome of the first, which pure and concentrated losses allow.

A share closer to 0 or 1 than 1/1000 is moved to that; plans and answers say so. Three or more quantiles of one column are
released together (quantiles.py). How they are read: ranked.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.exact.numbers import show_decimal, show_percent
from dither.mechanisms import Exponential
from dither.mechanisms.base import epsilon_words
from dither.planning.releases.base import Noise, Release
from dither.planning.releases.ranks import RATIO, rank_runs, rank_sensitivity, width_runs, widths
from dither.planning.sensitivity import NARROW, Bounding
from dither.privacy.losses import ZCDP, Loss, total
from dither.query.nodes import Expression
from dither.query.show import show_expression
from dither.query.work import SCALE, Bins, Quantised

OUTERMOST = Fraction(1, 1000)
FOR_MARGIN = Fraction(1, 2)  # the share of the price that chooses the margin
COVERED = Fraction(99, 100)  # the confidence of the margin


@dataclass(frozen=True)
class Choice(Release):
    """The value of the quantile, and the width of an interval around it, in steps."""

    x: Expression
    grid: Quantised
    p: Fraction
    max_rows: int
    allows_gaussian = False
    row = 0

    @property
    def cells(self) -> int:
        return 2

    @property
    def empty_value(self) -> dict[int, int]:
        return {}

    @property
    def weight(self) -> float:
        """The square of its margin in ranks over a count's margin, each at the same price and 95 %: 2 max(p, 1-p) (ln 8 + 3)/3.
        The number of steps does not matter: finer steps do not move the value."""
        return (2 * float(max(self.p, 1 - self.p)) * (math.log(RATIO) + 3) / 3) ** 2

    @cached_property
    def measure(self) -> Bins:
        return Bins(self.grid, self.max_rows)

    @property
    def parameters(self) -> dict[str, Fraction]:
        return {"p": self.p, "covered": COVERED}

    @property
    def rows_per_unit(self) -> int:
        return self.max_rows

    @property
    def words(self) -> str:
        return f"the {show_percent(self.p)} quantile of {show_expression(self.x)}"

    def pure(self, epsilon: Fraction, bounding: Bounding) -> Noise:
        changes = bounding.neighbours.changes
        sensitivity, each = rank_sensitivity(self.p, self.max_rows), epsilon / (bounding.max_groups * changes)
        value = Exponential(epsilon=each * (1 - FOR_MARGIN), sensitivity=sensitivity)
        width = Exponential(epsilon=each * FOR_MARGIN, sensitivity=sensitivity)
        return Choices(self, value, bounding.max_groups, changes, width=width)

    def gaussian(self, rho: Fraction, bounding: Bounding) -> Noise:
        raise TypeError("no noise is added to a choice")

    def slack(self, width: Exponential) -> int:
        """Returns how far the ranks of the interval's ends lie beyond the quantile's, in points of score (t in ranks.py)."""
        reach = width.margin(COVERED, candidates=RATIO)
        return math.ceil(reach) + SCALE * self.p.denominator

    def draw(self, noise: Noise, exact: Sequence[Any]) -> NDArray[Any]:
        """Chooses a value in each group, and the width of an interval around it."""
        value, width, steps = choices(noise).mechanism, choices(noise).width, self.grid.steps
        slack, cells = self.slack(width), []
        for histogram in exact:
            chosen = int(value.release(rank_runs(histogram, self.p, steps)))
            cells.append((chosen, self.draw_width(width, histogram, chosen, slack)))
        return np.array(cells, dtype=np.int64).reshape(-1, 2)

    def draw_width(self, mechanism: Exponential, histogram: Any, chosen: int, slack: int) -> int:
        """Chooses the width. At so small a price that no number of rows has ranks that far apart, it covers all steps."""
        steps = self.grid.steps
        if slack > NARROW:
            return steps
        runs = width_runs(histogram, self.p, chosen, steps, slack)
        place = np.searchsorted(np.cumsum(runs.counts), int(mechanism.release(runs)), side="right")
        return widths(max(chosen, steps - chosen))[place]

    def relative(self, noise: Noise) -> float:
        return 2 / float(choices(noise).mechanism.epsilon) ** 2

    @property
    def about(self) -> str:
        return f"{self.grid.steps + 1} candidates for {self.words}, in steps of {show_decimal(self.grid.step)}"


@dataclass(frozen=True)
class Choices(Noise):
    """The choice of the value and then, around it, of the width. Their losses add up."""

    mechanism: Exponential
    width: Exponential = field(kw_only=True)

    @cached_property
    def loss(self) -> Loss:
        return total([self.mechanism.loss(), self.width.loss()]).group(self.steps).repeat(self.groups)

    @cached_property
    def zcdp(self) -> ZCDP:
        return total([self.mechanism.zcdp(), self.width.zcdp()]).zcdp().group(self.steps).repeat(self.groups)

    @cached_property
    def record(self) -> dict[str, Any]:
        return {**self.mechanism.record(), "width": self.width.record()}

    def explain(self, who: str) -> str:
        return f"{self.mechanism.words(self.of.about, who)}, and {epsilon_words(self.width.epsilon)} for its margin"


def choices(noise: Noise) -> Choices:
    if not isinstance(noise, Choices):
        raise TypeError("quantiles are chosen by the exponential mechanism")
    return noise


def usable_share(p: Fraction) -> Fraction:
    """Returns the share that is used for p: at least OUTERMOST away from 0 and 1, with a denominator of at most 1000.

    Scores and their sensitivity grow with the denominator: with a share of sixteen digits, all scores would reach
    the end of 64 bits, where they are cut and all equal.

    >>> usable_share(Fraction("0.3333333333333333")), usable_share(Fraction("0.995")), usable_share(Fraction(1, 10**9))
    (Fraction(1, 3), Fraction(199, 200), Fraction(1, 1000))
    """
    return min(max(p, OUTERMOST), 1 - OUTERMOST).limit_denominator(1000)
