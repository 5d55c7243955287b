"""Which noise each measure gets, which keys are shown, and what all of it costs.

Two ways are tried, and the one with the smaller objective (split.py) is taken:

    pure       geometric noise for sums and counts, each measure with its share of epsilon
    gaussian   (epsilon, delta) questions only: discrete Gaussian noise, all measures together rho-zCDP with the largest rho
               whose certified conversion stays within their share of (epsilon, delta)

Quantiles are chosen by the exponential mechanism in both; discovered keys are shown by the optimal threshold, at the same
weight as one output, with half of delta if Gaussian noise needs the other half, else with all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dither.errors import ArgumentError, QueryError
from dither.exact.numbers import show
from dither.mechanisms import Threshold
from dither.planning.releases.base import Noise, Release
from dither.planning.sensitivity import Bounding
from dither.planning.split import shares
from dither.privacy.conversion import largest_rho
from dither.privacy.losses import ZCDP, Approx, Loss, Pure, total


@dataclass(frozen=True)
class Price:
    """What may be spent: epsilon, and delta where the catalog has one.

    >>> print(Price(Fraction(1, 10)))
    ε = 0.1
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    def __str__(self) -> str:
        return f"ε = {show(self.epsilon)}" + (f", δ = {show(self.delta)}" if self.delta else "")


@dataclass(frozen=True)
class Choice:
    """The noises in the releases' order, the rule for keys if they are discovered, and the loss of everything together."""

    noises: tuple[Noise, ...]
    threshold: Threshold | None
    loss: Loss

    @property
    def uses_delta(self) -> bool:
        """Whether the loss has a delta; what is offered beyond that is not taken."""
        return not isinstance(self.loss, Pure)

    @property
    def error(self) -> float:
        """The objective: weighted variances, each in units of what one row moves."""
        return sum(noise.error for noise in self.noises)


def choose(releases: Sequence[Release], bounding: Bounding, price: Price, discover: bool) -> Choice:
    """The better of the two ways."""
    pure = _pure(releases, bounding, price, discover)
    if not price.delta or not any(release.smooth for release in releases):
        return pure
    try:
        smooth = _gaussian(releases, bounding, price, discover)
    except (ArgumentError, QueryError):  # no Gaussian within range at this (epsilon, delta): the other way stands
        return pure
    return min(pure, smooth, key=lambda way: way.error)


def _pure(releases: Sequence[Release], bounding: Bounding, price: Price, discover: bool) -> Choice:
    if not releases and not discover:
        return Choice((), None, Pure(0))
    weights = [release.weight for release in releases]
    parts = shares(price.epsilon, [1.0, *weights] if discover else weights)
    threshold = _threshold(parts[0], price.delta, bounding) if discover else None
    noises = tuple(
        release.pure(epsilon, bounding) for release, epsilon in zip(releases, parts[1:] if discover else parts, strict=True)
    )
    losses: list[Loss] = [noise.loss for noise in noises]
    return Choice(noises, threshold, total([*losses, threshold.loss()] if threshold else losses))


def _gaussian(releases: Sequence[Release], bounding: Bounding, price: Price, discover: bool) -> Choice:
    """Shares of epsilon for the keys, each quantile, and all Gaussian noise together; within that, shares of rho."""
    smooth = [release for release in releases if release.smooth]
    picks = [release for release in releases if not release.smooth]
    weights = [sum(release.weight for release in smooth), *(release.weight for release in picks)]
    parts = shares(price.epsilon, [*weights, 1.0] if discover else weights)
    delta = price.delta / 2 if discover else price.delta
    rho = largest_rho(parts[0], delta)
    slices = shares(rho, [release.weight for release in smooth], squared=True)
    found: dict[int, Noise] = {id(d): d.gaussian(part, bounding) for d, part in zip(smooth, slices, strict=True)}
    found |= {id(d): d.pure(part, bounding) for d, part in zip(picks, parts[1:], strict=False)}
    threshold = _threshold(parts[-1], delta, bounding) if discover else None
    together = Approx(parts[0], delta)
    if ZCDP(sum(slices, Fraction(0))).delta(parts[0]) > delta:
        raise ArithmeticError("the certified rho does not cover its own shares")
    losses: list[Loss] = [together, *(found[id(d)].loss for d in picks), *([threshold.loss()] if threshold else [])]
    return Choice(tuple(found[id(d)] for d in releases), threshold, total(losses))


def _threshold(epsilon: Fraction, delta: Fraction, bounding: Bounding) -> Threshold:
    keys = bounding.max_groups * bounding.neighbours.changes
    return Threshold(epsilon=epsilon, delta=delta, keys_per_unit=keys)
