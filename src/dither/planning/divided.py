"""Divides the price of grouping sets among their tables, so that they are best once they are put together.

Every grouping set counts the same: the objective is the sum over sets of the variance of a cell, after least squares
(workloads/combined.py). Two ways are tried, and the better is taken:

    pure       a share of epsilon for each table. A set may get almost nothing, if its table is as good when added up from a
               finer one
    gaussian   (epsilon, delta) questions only: all tables are one vector, each with a share of rho. k tables have the noise of
               sqrt(k) prices, not of k. The price is that of the whole; it stands in the first plan, and 0 in the others
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dither.errors import ArgumentError, QueryError
from dither.planning.plan import Plan
from dither.planning.price import Price, choose, gaussian_together, shares
from dither.planning.releases.base import Noise
from dither.planning.sensitivity import Bounding
from dither.privacy.losses import Approx, Loss, Pure
from dither.query.show import show_expression
from dither.workloads.combined import COARSE, best_shares, variance, versions
from dither.workloads.residuals import in_shares

Axes = tuple[int, ...]


@dataclass(frozen=True)
class Level:
    """The noise of one grouping set, and its price."""

    bounding: Bounding
    noises: tuple[Noise, ...]
    price: Price
    loss: Loss


def alone(fine: Plan, kept: Axes, price: Price, gaussian: bool | None) -> Level:
    """Returns the noise of one grouping set at its own price. `fine`: the plan by all keys; `kept`: the keys of the set."""
    bounding = _bounding(fine, kept)
    choice = choose([noise.of for noise in fine.noises], bounding, price, False, gaussian)
    return Level(bounding, choice.noises, price if choice.uses_delta else Price(price.epsilon), choice.loss)


def divided(fine: Plan, sets: Sequence[Axes], price: Price, gaussian: bool | None) -> list[Level]:
    """Returns the noise of each grouping set, at the shares of the price that are best. `gaussian` decides the way if given."""
    pure = [] if gaussian else _pure(fine, sets, price)
    if gaussian is False or not price.delta:
        return pure
    try:
        smooth = _gaussian(fine, sets, price)
    except (ArgumentError, QueryError):  # no Gaussian within range at this (epsilon, delta)
        if gaussian:
            raise
        return pure
    return min((each for each in (pure, smooth) if each), key=lambda each: _error(fine, sets, each))


def _pure(fine: Plan, sets: Sequence[Axes], price: Price) -> list[Level]:
    costs = [2.0 * _bounding(fine, each).total(1, 1, False) ** 2 for each in sets]
    parts = _best(fine, sets, costs, gaussian=False)
    return [alone(fine, each, Price(price.epsilon * part), False) for each, part in zip(sets, parts, strict=True)]


def _gaussian(fine: Plan, sets: Sequence[Axes], price: Price) -> list[Level]:
    boundings = [_bounding(fine, each) for each in sets]
    parts = _best(fine, sets, [0.5 * each.squares(1, 1, False) for each in boundings], gaussian=True)
    releases = [noise.of for noise in fine.noises]
    slices = shares(Fraction(1), [each.weight for each in releases], squared=True)
    every = [
        (release, bounding, part * own)
        for part, bounding in zip(parts, boundings, strict=True)
        for release, own in zip(releases, slices, strict=True)
    ]
    noises = iter(gaussian_together(every, price.epsilon, price.delta))
    found = []
    for place, bounding in enumerate(boundings):
        loss: Loss = Pure(0) if place else Approx(price.epsilon, price.delta)
        found.append(Level(bounding, tuple(next(noises) for _ in releases), Price(Fraction(0)) if place else price, loss))
    return found


def _best(fine: Plan, sets: Sequence[Axes], costs: Sequence[float], *, gaussian: bool) -> tuple[Fraction, ...]:
    """Returns the best shares. `costs`: the variance of each table at a price of 1.

    They are computed in one order of keys and sets, so that they do not depend on how the question orders them.
    """
    shown = [show_expression(key.expression) for key in fine.work.keys]
    keys = sorted(range(len(shown)), key=lambda key: shown[key])
    sizes = tuple(fine.sizes[key] for key in keys)
    own = [tuple(sorted(keys.index(key) for key in each)) for each in sets]
    places = sorted(range(len(own)), key=lambda place: own[place])
    weights = {each: 1 / math.prod(sizes[axis] for axis in each) for each in own}  # every set counts the same
    found = best_shares(sizes, [own[i] for i in places], [costs[i] for i in places], weights, gaussian)
    parts = in_shares(found, COARSE)
    return tuple(parts[places.index(place)] for place in range(len(places)))


def _error(fine: Plan, sets: Sequence[Axes], levels: Sequence[Level]) -> float:
    """Returns the sum over grouping sets and releases of the variance of fitted cells, in units of what one row moves."""
    found = 0.0
    for place, noise in enumerate(fine.noises):
        parts = versions(fine.sizes, sets, [each.noises[place].variance for each in levels])
        found += noise.of.weight / noise.of.row**2 * sum(variance(fine.sizes, parts, each) for each in sets)
    return found


def _bounding(fine: Plan, kept: Axes) -> Bounding:
    """Returns how far one unit moves the groups of one grouping set."""
    groups = math.prod(fine.sizes[axis] for axis in kept)
    return fine.bounding.coarser(groups, math.prod(fine.sizes) // groups)


# --- for quotes ------------------------------------------------------------------------------------------------------


def gain(plans: Sequence[Plan]) -> float:
    """Returns the root mean square error of fitted tables over that of tables with even shares that are not fitted.

    The noise of a table with another share of the price is scaled.
    """
    sizes, sets = plans[0].sizes, [plan.level or () for plan in plans]
    now = even = 0.0
    for place, noise in enumerate(plans[0].noises):
        own = [plan.noises[place] for plan in plans]
        parts = versions(sizes, sets, [each.variance for each in own])
        paid = [float(_paid(each)) for each in own]
        mean, power = math.fsum(paid) / len(paid), 1 if noise.gaussian else 2
        weight = noise.of.weight / noise.of.row**2
        now += weight * math.fsum(variance(sizes, parts, axes) for axes in sets)
        even += weight * math.fsum(each.variance * (part / mean) ** power for each, part in zip(own, paid, strict=True))
    return math.sqrt(now / even)


def portions(plans: Sequence[Plan]) -> list[Fraction]:
    """Returns the part of the price that each table gets: of epsilon, or of rho."""
    each = [sum((_paid(noise) for noise in plan.noises), Fraction(0)) for plan in plans]
    return [one / sum(each) for one in each]


def _paid(noise: Noise) -> Fraction:
    return noise.zcdp.rho if noise.gaussian else noise.loss.epsilon()
