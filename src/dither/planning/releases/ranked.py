"""MEDIAN, QUANTILE, MIN and MAX: how quantiles of a question share a release, and how they are read from it.

Three or more quantiles of one column, under one FILTER, are one release (quantiles.py), whether they stand in one list or
apart; one or two are released one by one (quantile.py), which is as good. MIN and MAX are the 1 % and the 99 % quantile.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dither.errors import QueryError
from dither.exact.numbers import show_decimal, show_percent, show_rounded
from dither.planning.releases.base import Bounds, Cells, Collection, Kind, Noise, Number, Reading, is_whole, title_of
from dither.planning.releases.quantile import COVERED, Choice, choices, usable_share
from dither.planning.releases.quantiles import Several
from dither.planning.sensitivity import fine_grid, rounding_error
from dither.query.nodes import Aggregate, Expression
from dither.query.work import SCALE, Quantised

EXTREME = {"min": Fraction(1, 100), "max": Fraction(99, 100), "median": Fraction(1, 2)}
FEWEST = 3  # quantiles that are released together
FINEST = 1000  # the largest common denominator of their shares
_FUNCTIONS = ("median", "quantile", "min", "max")


def share(collection: Collection) -> None:
    """Finds the columns of which a question asks for so many quantiles that they are released together."""
    asked: dict[Expression, set[Fraction]] = {}
    for aggregate in collection.aggregates:
        if aggregate.function in _FUNCTIONS:
            own = (_share_of(aggregate), *aggregate.among)
            asked.setdefault(collection.argument(aggregate), set()).update(p for p in own if p is not None and 0 < p < 1)
    for x, shares in asked.items():
        used = fit_together(shares)
        if len(set(used.values())) >= FEWEST:
            collection.quantiles[x] = used


def fit_together(shares: Iterable[Fraction]) -> dict[Fraction, Fraction]:
    """Returns the share that is used for each in one release: in thousandths if their common denominator would be larger.

    >>> [str(p) for p in fit_together([Fraction(1, 4), Fraction("0.33333333")]).values()]
    ['1/4', '1/3']
    >>> [str(p) for p in fit_together([Fraction(1, 3), Fraction(1, 7), Fraction(4, 999)]).values()]
    ['333/1000', '143/1000', '1/250']
    """
    found = {p: usable_share(p) for p in shares}
    if math.lcm(*(p.denominator for p in found.values())) <= FINEST:
        return found
    return {p: Fraction(round(used * FINEST), FINEST) for p, used in found.items()}


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
    together = collection.quantiles.get(x)
    collection.note_bounds(x)
    if together is not None:
        used, shares = together[p], tuple(sorted(set(together.values())))
        place = collection.add(Several(x, q, shares, collection.max_rows))
        return Quantile(aggregate, place, q, used, is_whole(q, facts), rounding_error(q, facts), member=shares.index(used))
    place = collection.add(Choice(x, q, usable_share(p), collection.max_rows))
    pair = dict.fromkeys(map(usable_share, aggregate.among))
    listed = tuple(collection.add(Choice(x, q, each, collection.max_rows)) for each in pair)
    return Quantile(aggregate, place, q, usable_share(p), is_whole(q, facts), rounding_error(q, facts), listed)


def _share_of(aggregate: Aggregate) -> Fraction | None:
    return aggregate.parameter if aggregate.function == "quantile" else EXTREME[aggregate.function]


@dataclass(frozen=True)
class Quantile(Reading):
    """The chosen value, with the chosen margin; `slack`: how far the grid may have moved the quantile. Its rank may be off too:
    `rank` is by how many rows' worth. `member`: its place among the quantiles of its release.

    `listed` are the places of a list of two quantiles, by their shares: their values are shown in rising order. The margin
    still reaches from the shown value over the interval that was chosen for this quantile, so it holds as often. If all ranks
    of the list are within R, so are they in rising order: at most i values are below the i-th, so it is at most the largest of
    the first i chosen ones, and at least the smallest of the others.
    """

    aggregate: Aggregate
    noise: int
    grid: Quantised
    p: Fraction
    whole: bool = False
    slack: Fraction = Fraction(0)
    listed: tuple[int, ...] = ()
    member: int = 0

    def _shown(self, noisy: Cells) -> list[int]:
        """Returns the step of the shown value in each group."""
        if not self.listed:
            return [int(value) for value in noisy[self.noise][:, 2 * self.member]]
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
        together = noises[self.noise]
        if isinstance(together.of, Several):
            return together.of.rank(together, self.member, confidence)
        places = self.listed or (self.noise,)
        sure = 1 - (1 - confidence) / len(places)
        reaches = []
        for noise in (noises[place] for place in places):
            if isinstance(noise.of, Choice):
                reach = choices(noise).mechanism.margin(sure, candidates=self.grid.steps + 1)
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
        own = noisy[self.noise][:, 2 * self.member : 2 * self.member + 2].tolist()
        wide = [(value, width if confidence <= COVERED else steps) for value, width in own]
        return [(max(value - width, 0), min(value + width, steps)) for value, width in wide]

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        return None

    def expected(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> str:
        return f"rank ± {show_rounded(self.rank(noises, confidence))} rows; the margin of its value comes with the answer"


KIND = Kind(dict.fromkeys(_FUNCTIONS, read), share)
