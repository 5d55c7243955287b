"""Chooses the noise of each release and the rule for keys, and divides the price among them.

The objective is the weighted sum over releases of their variance, in units of what one row can move them by. A weight does not
depend on how many outputs read a release, nor on the order of releases. So the same releases at the same price are the same
question, whatever is computed from them. With w_i the weight of release i, the best shares are

    sum of w_i / epsilon_i^2   under the sum of epsilon_i    smallest at   epsilon_i proportional to w_i^(1/3)
    sum of w_i / rho_i         under the sum of rho_i        smallest at   rho_i     proportional to w_i^(1/2)

A quantile's error is a rank; its weight is the square of its margin over a count's margin at the same price.
Shares are exact rationals and add up to the price exactly.

Two ways are tried, and the one with the smaller objective is taken:

    pure       geometric noise for sums and counts, each measure with its share of epsilon
    gaussian   (epsilon, delta) questions only: discrete Gaussian noise. A single release is calibrated on its own privacy
               curve. Several divide the largest rho for which a bound of their curve together, or the conversion of rho,
               stays within their share of (epsilon, delta) (mechanisms/calibration.py)

Both choose quantiles by the exponential mechanism, and discovered keys by the optimal threshold. The threshold has the weight
of one output, and takes half of delta if Gaussian noise needs the other half, else all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TypeVar

from dither.errors import ArgumentError, QueryError
from dither.exact.numbers import show
from dither.mechanisms import Gaussian, Threshold
from dither.mechanisms.calibration import Share, rho_together
from dither.mechanisms.gaussian import hides
from dither.planning.releases.base import Noise, Release
from dither.planning.sensitivity import Bounding
from dither.privacy.losses import Approx, Curve, Loss, Pure, total
from dither.privacy.parts import DiscreteGaussian

Built = TypeVar("Built")
_LEAST_VARIANCE = Fraction(1, 20)  # geometric noise of less is 0 nearly always, and Gaussian noise is not needed
_FARTHEST = 1_000_000  # squared moves over the variance: beyond, nothing is hidden, and there is no curve
_PARTS = 1000  # shares are whole thousandths of the price, which read well


def shares(price: Fraction, weights: Sequence[float], *, squared: bool = False) -> tuple[Fraction, ...]:
    """Divides the price in proportion to w^(1/3), or to w^(1/2) if `squared` (a price in rho).

    >>> shares(Fraction(1, 10), [1, 1])
    (Fraction(1, 20), Fraction(1, 20))
    >>> sum(shares(Fraction(1, 3), [1, 2, 11.5])) == Fraction(1, 3)
    True
    """
    power = 1 / 2 if squared else 1 / 3
    if len(set(weights)) == 1:
        return (price / len(weights),) * len(weights)
    roots = [max(weight, 1e-9) ** power for weight in weights]
    whole = math.fsum(roots)  # does not depend on the order
    parts = [max(1, int(_PARTS * each / whole)) for each in roots]
    if roots.count(max(roots)) == 1:  # gets what rounding down left over: less than one part for each release
        parts[roots.index(max(roots))] += max(0, _PARTS - sum(parts))
    return tuple(price * Fraction(part, sum(parts)) for part in parts)


@dataclass(frozen=True)
class Price:
    """The price of a plan: epsilon, and delta where the catalog has one.

    >>> print(Price(Fraction(1, 10)))
    ε = 0.1
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    def __str__(self) -> str:
        return f"ε = {show(self.epsilon)}" + (f", δ = {show(self.delta)}" if self.delta else "")


@dataclass(frozen=True)
class Choice:
    """The noises in the order of the releases, the threshold for discovered keys, and the total loss."""

    noises: tuple[Noise, ...]
    threshold: Threshold | None
    loss: Loss

    @property
    def uses_delta(self) -> bool:
        """Whether the loss has a delta. If not, a delta in the price is left unspent."""
        return not isinstance(self.loss, Pure)

    @property
    def error(self) -> float:
        """The objective: weighted variances, each in units of what one row moves."""
        return sum(noise.error for noise in self.noises)


def choose(
    releases: Sequence[Release], bounding: Bounding, price: Price, discover: bool, gaussian: bool | None = None
) -> Choice:
    """Returns the choice with the smaller error: geometric or Gaussian noise. `gaussian` decides it if given."""
    if gaussian:
        return with_gaussian(releases, bounding, price, discover)
    pure = with_geometric(releases, bounding, price, discover)
    if gaussian is False or not price.delta or not any(release.allows_gaussian for release in releases):
        return pure
    if _too_weak(pure, bounding, _smooth_delta(price, discover)):
        return pure
    try:
        smooth = with_gaussian(releases, bounding, price, discover)
    except (ArgumentError, QueryError):  # no Gaussian within range at this (epsilon, delta)
        return pure
    return min(pure, smooth, key=lambda way: way.error)


def _too_weak(pure: Choice, bounding: Bounding, delta: Fraction) -> bool:
    """Whether Gaussian noise for numbers that move alike needs more variance than geometric noise has: saves a search."""
    smooth = [noise for noise in pure.noises if noise.of.allows_gaussian]
    alike = smooth[0].of.l2(bounding).separate(None) if len(smooth) == 1 else None
    if alike is None:
        return False
    epsilon, variance, (count, each) = smooth[0].loss.epsilon(), Fraction(smooth[0].variance), alike
    if count == 1:
        return not hides(epsilon, delta, each, variance)
    if variance < _LEAST_VARIANCE or each * each > _FARTHEST * variance:
        return True
    return Curve.of(DiscreteGaussian(each, variance), count).delta(epsilon) > delta


def with_geometric(releases: Sequence[Release], bounding: Bounding, price: Price, discover: bool) -> Choice:
    """Chooses geometric noise for sums and counts. The keys and each release get a share of epsilon."""
    if not releases and not discover:
        return Choice((), None, Pure(0))
    weights = [release.weight for release in releases]
    parts = shares(price.epsilon, [1.0, *weights] if discover else weights)
    threshold = _threshold(parts[0], price.delta, bounding) if discover else None
    noises = tuple(
        _pure(release, epsilon, bounding) for release, epsilon in zip(releases, parts[1:] if discover else parts, strict=True)
    )
    try:
        losses: list[Loss] = [noise.loss for noise in noises]
        return Choice(noises, threshold, total([*losses, threshold.loss()] if threshold else losses))
    except ArgumentError:  # the whole price has a range too
        raise _out_of_range(releases[0].words, price.epsilon) from None


def with_gaussian(releases: Sequence[Release], bounding: Bounding, price: Price, discover: bool) -> Choice:
    """Chooses Gaussian noise for sums and counts. The keys, each quantile, and all Gaussian noise together get a share."""
    smooth = [release for release in releases if release.allows_gaussian]
    picks = [release for release in releases if not release.allows_gaussian]
    weights = [sum(release.weight for release in smooth), *(release.weight for release in picks)]
    parts = shares(price.epsilon, [*weights, 1.0] if discover else weights)
    delta = _smooth_delta(price, discover)
    noises = {id(noise.of): noise for noise in _smooth(smooth, parts[0], delta, bounding)}
    noises |= {id(d): _pure(d, part, bounding) for d, part in zip(picks, parts[1:], strict=False)}
    threshold = _threshold(parts[-1], delta, bounding) if discover else None
    together = Approx(parts[0], delta)
    losses: list[Loss] = [together, *(noises[id(d)].loss for d in picks), *([threshold.loss()] if threshold else [])]
    return Choice(tuple(noises[id(d)] for d in releases), threshold, total(losses))


def _smooth_delta(price: Price, discover: bool) -> Fraction:
    """Returns the delta for Gaussian noise: half if discovered keys need the other half."""
    return price.delta / 2 if discover else price.delta


def _smooth(releases: Sequence[Release], epsilon: Fraction, delta: Fraction, bounding: Bounding) -> list[Noise]:
    """Returns Gaussian noise for these releases, together (epsilon, delta)-DP."""
    if len(releases) == 1:
        return [releases[0].on_own_curve(epsilon, delta, bounding)]
    parts = shares(Fraction(1), [release.weight for release in releases], squared=True)
    return gaussian_together([(release, bounding, part) for release, part in zip(releases, parts, strict=True)], epsilon, delta)


def gaussian_together(each: Sequence[tuple[Release, Bounding, Fraction]], epsilon: Fraction, delta: Fraction) -> list[Noise]:
    """Returns Gaussian noise for releases with fixed shares of rho, together (epsilon, delta)-DP."""
    norms = [(release.l2(bounding), part) for release, bounding, part in each]
    rho = rho_together(epsilon, delta, tuple(Share(part, norm.squares(None), norm.moving(None)) for norm, part in norms))
    noises = [release.gaussian(part * rho, bounding) for release, bounding, part in each]
    drawn = [noise.mechanism for noise in noises if isinstance(noise.mechanism, Gaussian)]
    if total([each.vector() for each in drawn]).delta(epsilon) > delta:
        raise ArithmeticError("the certified rho does not cover its own shares")
    return noises


def _threshold(epsilon: Fraction, delta: Fraction, bounding: Bounding) -> Threshold:
    keys = bounding.max_groups * bounding.neighbours.changes
    build = partial(Threshold, epsilon=epsilon, delta=delta, keys_per_unit=keys)
    return _in_range(build, lambda: "groups that are found in the data", epsilon / keys)


def _pure(release: Release, epsilon: Fraction, bounding: Bounding) -> Noise:
    return _in_range(lambda: release.pure(epsilon, bounding), lambda: release.words, epsilon / bounding.max_groups)


def _in_range(build: Callable[[], Built], words: Callable[[], str], each: Fraction) -> Built:
    """Builds a mechanism. Refuses a price for which it has no exact noise, in the words of the question."""
    try:
        return build()
    except ArgumentError:
        raise _out_of_range(words(), each) from None


def _out_of_range(words: str, each: Fraction) -> QueryError:
    off, fix = (
        ("small", "spend a smaller epsilon") if each > 1 else ("large", "spend a larger epsilon, or declare smaller bounds")
    )
    return QueryError(f"The noise for the {words} is out of range: it is too {off} to be drawn.", fix=f"{fix}.")
