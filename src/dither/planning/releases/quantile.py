"""MEDIAN, QUANTILE, MIN and MAX: the exponential mechanism chooses a value by its rank, and then a margin around it.

Every step of the grid is a candidate (ranks.py). Half of the price chooses the margin: the width of an interval around
the value that holds the true quantile with a confidence of 99 %, whatever the data. At a higher confidence, the margin is what
the bounds allow. The second choice depends on the outcome of the first, which pure and concentrated losses allow.

MIN and MAX are the 1 % and the 99 % quantile. A share closer to 0 or 1 than 1/1000 is moved to that; plans and answers say so.
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

from dither.errors import QueryError
from dither.exact.numbers import show_decimal, show_percent, show_rounded
from dither.mechanisms import Exponential
from dither.mechanisms.base import epsilon_words
from dither.planning.releases.base import Bounds, Cells, Collection, Kind, Noise, Number, Reading, Release, is_whole, title_of
from dither.planning.releases.ranks import RATIO, rank_runs, rank_sensitivity, width_runs, widths
from dither.planning.sensitivity import NARROW, Bounding, fine_grid, rounding_error
from dither.privacy.losses import ZCDP, Loss, total
from dither.query.nodes import Aggregate, Expression
from dither.query.show import show_expression
from dither.query.work import SCALE, Bins, Quantised

EXTREME = {"min": Fraction(1, 100), "max": Fraction(99, 100), "median": Fraction(1, 2)}
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
        value, width, steps = _choices(noise).mechanism, _choices(noise).width, self.grid.steps
        slack, cells = self.slack(width), []
        for histogram in exact:
            chosen = int(value.release(rank_runs(histogram, self.p, steps)))
            cells.append((chosen, self._width(width, histogram, chosen, slack)))
        return np.array(cells, dtype=np.int64).reshape(-1, 2)

    def _width(self, mechanism: Exponential, histogram: Any, chosen: int, slack: int) -> int:
        """Chooses the width. At so small a price that no number of rows has ranks that far apart, it covers all steps."""
        steps = self.grid.steps
        if slack > NARROW:
            return steps
        runs = width_runs(histogram, self.p, chosen, steps, slack)
        place = np.searchsorted(np.cumsum(runs.counts), int(mechanism.release(runs)), side="right")
        return widths(max(chosen, steps - chosen))[place]

    def relative(self, noise: Noise) -> float:
        return 2 / float(_choices(noise).mechanism.epsilon) ** 2

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


def _choices(noise: Noise) -> Choices:
    if not isinstance(noise, Choices):
        raise TypeError("quantiles are chosen by the exponential mechanism")
    return noise


def read(aggregate: Aggregate, collection: Collection) -> Quantile:
    x, p = collection.argument(aggregate), _share_of(aggregate)
    if p is None or not 0 < p < 1:
        raise QueryError(
            "The share of a quantile lies between 0 and 1, and is neither.",
            span=aggregate.span,
            fix="write a share such as 0.01, or MIN(x) and MAX(x) for the 1 % and the 99 % quantile.",
        )
    facts = collection.facts(x)
    q = fine_grid(x, facts, aggregate)
    place = collection.add(Choice(x, q, usable_share(p), collection.max_rows))
    collection.note_bounds(x)
    listed = dict.fromkeys(map(usable_share, aggregate.among))
    places = tuple(collection.add(Choice(x, q, share, collection.max_rows)) for share in listed)
    return Quantile(aggregate, place, q, usable_share(p), is_whole(q, facts), rounding_error(q, facts), places)


def _share_of(aggregate: Aggregate) -> Fraction | None:
    return aggregate.parameter if aggregate.function == "quantile" else EXTREME[aggregate.function]


@dataclass(frozen=True)
class Quantile(Reading):
    """The chosen value, with the chosen margin; `slack`: how far the grid may have moved the quantile. Its rank may be off too:
    `rank` is by how many rows' worth.

    `listed` are the places of a list of quantiles, by their shares: their values are shown in rising order. The margin still
    reaches from the shown value over the interval that was chosen for this quantile, so it holds as often. If all ranks of the
    list are within R, so are they in rising order: at most i values are below the i-th, so it is at most the largest of the
    first i chosen ones, and at least the smallest of the others.
    """

    aggregate: Aggregate
    noise: int
    grid: Quantised
    p: Fraction
    whole: bool = False
    slack: Fraction = Fraction(0)
    listed: tuple[int, ...] = ()

    def _shown(self, noisy: Cells) -> list[int]:
        """Returns the step of the shown value in each group."""
        if not self.listed:
            return [int(value) for value in noisy[self.noise][:, 0]]
        rising = np.sort(np.stack([noisy[place][:, 0] for place in self.listed]), axis=0)
        return [int(value) for value in rising[self.listed.index(self.noise)]]

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
        values = [self.grid.low + self.grid.step * step for step in self._shown(noisy)]
        return [int(v) if self.whole else float(v) for v in values]

    def largest(self, noises: Sequence[Noise], rows: int) -> Fraction:
        return max(abs(self.grid.low), abs(self.grid.low + self.grid.step * self.grid.steps))

    def rank(self, noises: Sequence[Noise], confidence: Fraction) -> float:
        places = self.listed or (self.noise,)
        sure = 1 - (1 - confidence) / len(places)
        reaches = []
        for noise in (noises[place] for place in places):
            if isinstance(noise.of, Choice):
                reach = _choices(noise).mechanism.margin(sure, candidates=self.grid.steps + 1)
                reaches.append(float(reach / (SCALE * noise.of.p.denominator)))
        return max(reaches)

    def margins(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> list[float | None]:
        ends = self._ends(noisy, confidence)
        chosen = self._shown(noisy)
        farthest = [max(value - low, high - value) for value, (low, high) in zip(chosen, ends, strict=True)]
        return [float(self.grid.step * far + self.slack) for far in farthest]

    def bounds(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> Bounds:
        ends = [
            (
                float(self.grid.low + self.grid.step * low - self.slack),
                float(self.grid.low + self.grid.step * high + self.slack),
            )
            for low, high in self._ends(noisy, confidence)
        ]
        both = np.array(ends, dtype=np.float64).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    def _ends(self, noisy: Cells, confidence: Fraction) -> list[tuple[int, int]]:
        """Returns the first and last step of the interval in each group, within the bounds."""
        steps = self.grid.steps
        wide = [(value, width if confidence <= COVERED else steps) for value, width in noisy[self.noise].tolist()]
        return [(max(value - width, 0), min(value + width, steps)) for value, width in wide]

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        return None

    def expected(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> str:
        return f"rank ± {show_rounded(self.rank(noises, confidence))} rows; the margin of its value comes with the answer"


def usable_share(p: Fraction) -> Fraction:
    """Returns the share that is used for p: at least OUTERMOST away from 0 and 1, with a denominator of at most 1000.

    Scores and their sensitivity grow with the denominator: with a share of sixteen digits, all scores would reach
    the end of 64 bits, where they are cut and all equal.

    >>> usable_share(Fraction("0.3333333333333333")), usable_share(Fraction("0.995")), usable_share(Fraction(1, 10**9))
    (Fraction(1, 3), Fraction(199, 200), Fraction(1, 1000))
    """
    return min(max(p, OUTERMOST), 1 - OUTERMOST).limit_denominator(1000)


KIND = Kind(dict.fromkeys(("median", "quantile", "min", "max"), read))
