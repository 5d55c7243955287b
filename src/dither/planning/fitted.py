"""Puts the noisy tables of grouping sets together by least squares.

    noisy tables, each with noise of its own ─▶ fitted tables, which agree with each other and have less noise

A table by fewer keys is the sum of one by more. Each has noise of its own, so every part of a table is known several times;
least squares takes the mean of these by inverse variance (workloads/combined.py). That is post-processing: what is drawn,
charged and stored are the tables themselves, with the shares of the price that divided.py chooses. A fitted number is rounded
to a whole one, like the noisy ones, so sums may differ by a few. Groups that cannot exist count as exactly 0.

Margins of fitted numbers. With Gaussian noise a fitted number has about normal noise of a known variance. With geometric noise
it is a sum of many: its margin is the wider of a normal and of a Laplace variable of that variance. Numbers of different groups
have noise in common: what a SELECT around the question combines of them gets intervals, not a joint law (symbols.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from dither.catalog.values import Key
from dither.exact.numbers import Number, between, show_rounded
from dither.planning.outputs import Noisy
from dither.planning.plan import Plan
from dither.planning.releases.base import Noise
from dither.workloads.combined import combine, variance, versions
from dither.workloads.factors import Floats

Axes = tuple[int, ...]


@dataclass(frozen=True)
class Fitted(Noise):
    """The noise of a number once it is fitted: what was drawn and its price, and how far the number may be off."""

    deviation: float = 0.0

    @property
    def fitted(self) -> bool:
        return True

    @property
    def scale(self) -> float:
        return self.deviation if self.gaussian else self.deviation / math.sqrt(2)

    @property
    def variance(self) -> float:
        return self.deviation**2

    def margin(self, confidence: Number) -> int:
        """Returns how far the number, rounded to a whole one, is from the truth with this confidence."""
        doubt = float(1 - between(confidence, "confidence", 0, 1, open_low=True, open_high=True))
        reach = NormalDist().inv_cdf(1 - doubt / 2)
        if not self.gaussian:
            reach = max(reach, -math.log(doubt) / math.sqrt(2))
        return math.floor(reach * self.deviation + 0.5)

    def explain(self, who: str) -> str:
        alone = math.sqrt(self.mechanism.noise_variance)
        better = f"standard deviation {show_rounded(self.deviation)}, and {show_rounded(alone)} alone"
        return f"{super().explain(who)}; put together with the other tables by least squares: {better}"


def fitted_plans(plans: Sequence[Plan]) -> tuple[Plan, ...]:
    """Returns the plans of grouping sets with the noise that their numbers have once they are fitted."""
    found = []
    for plan in plans:
        noises = []
        for place, noise in enumerate(plan.noises):
            parts = versions(plan.sizes, _sets(plans), _variances(plans, place))
            noises.append(_fitted(noise, variance(plan.sizes, parts, plan.level or ())))
        found.append(replace(plan, noises=tuple(noises)))
    return tuple(found)


def _fitted(noise: Noise, spread: float) -> Noise:
    return Fitted(noise.of, noise.mechanism, noise.groups, noise.steps, math.sqrt(spread))


def fit(plans: Sequence[Plan], released: Sequence[Noisy]) -> tuple[Noisy, ...]:
    """Returns the numbers of all grouping sets, by least squares from all of them."""
    sizes, sets = plans[0].sizes, _sets(plans)
    cells: list[list[list[Floats]]] = [[] for _ in plans]
    for place, noise in enumerate(plans[0].noises):
        variances = _variances(plans, place)
        columns: list[list[Floats]] = [[] for _ in plans]
        for cell in range(noise.of.cells):
            tables = [_table(plan, noisy, place, cell) for plan, noisy in zip(plans, released, strict=True)]
            for own, table in zip(columns, combine(sizes, sets, tables, variances, sets), strict=True):
                own.append(table)
        for every, column in zip(cells, columns, strict=True):
            every.append(column)
    return tuple(_noisy(plan, noisy, own) for plan, noisy, own in zip(plans, released, cells, strict=True))


def _table(plan: Plan, noisy: Noisy, place: int, cell: int) -> Floats:
    """Returns the numbers of one cell as an array with an axis for each key."""
    table = np.zeros(tuple(len(values) for values in plan.known or ()))
    for index, value in zip(_indices(plan, noisy.keys), noisy.cells[place][:, cell].tolist(), strict=True):
        table[index] = value
    return table


def _noisy(plan: Plan, noisy: Noisy, cells: Sequence[Sequence[Floats]]) -> Noisy:
    """Returns the fitted arrays as the numbers of groups, rounded to whole ones."""
    rows, found = _indices(plan, noisy.keys), []
    for each, before in zip(cells, noisy.cells, strict=True):
        whole = [[round(float(table[row])) for table in each] for row in rows]
        found.append(np.array(whole, dtype=before.dtype).reshape(len(rows), len(each)))
    return Noisy(noisy.keys, tuple(found))


def _indices(plan: Plan, keys: Sequence[tuple[Key, ...]]) -> list[tuple[int, ...]]:
    """Returns the place of each group in the array. TRUE is not 1."""
    places = [{(type(value), value): i for i, value in enumerate(values)} for values in plan.known or ()]
    return [tuple(own[type(part), part] for own, part in zip(places, key, strict=True)) for key in keys]


def _sets(plans: Sequence[Plan]) -> list[Axes]:
    return [plan.level or () for plan in plans]


def _variances(plans: Sequence[Plan], place: int) -> list[float]:
    return [plan.noises[place].variance for plan in plans]
