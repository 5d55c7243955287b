"""Which noise each measure gets, which keys are shown, and what all of it costs.

Two ways are tried, and the one with the smaller objective (split.py) is taken:

    pure       geometric noise for sums and counts, each measure with its share of epsilon
    gaussian   (epsilon, delta) questions only: discrete Gaussian noise. One measure of which a unit moves one number is
               calibrated on its own privacy curve; else all measures together are rho-zCDP with the largest rho whose
               certified conversion stays within their share of (epsilon, delta)

Quantiles are chosen by the exponential mechanism in both; discovered keys are shown by the optimal threshold, at the same
weight as one output, with half of delta if Gaussian noise needs the other half, else with all of it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dither.errors import ArgumentError, QueryError
from dither.exact.numbers import show
from dither.mechanisms import Exponential, Gaussian, Geometric, Threshold
from dither.mechanisms.calibration import hides
from dither.planning.noises import Draft, Noise, rank_sensitivity
from dither.planning.sensitivity import Bounding
from dither.planning.split import shares
from dither.privacy.conversion import largest_rho
from dither.privacy.losses import ZCDP, Approx, Loss, Pure, total
from dither.query.catalog import Key
from dither.query.facts import Facts
from dither.query.nodes import Named
from dither.query.work import Bins, Sums

MOST_GROUPS = 100_000


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
    """The noises in the drafts' order, the rule for keys if they are discovered, and the loss of everything together."""

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
        return sum(noise.draft.weight * _relative(noise) for noise in self.noises)


def _relative(noise: Noise) -> float:
    if noise.draft.p is not None:  # the error of a quantile is a rank
        return 2 / float(noise.mechanism.loss().epsilon()) ** 2
    return noise.variance / noise.draft.row**2


def choose(drafts: Sequence[Draft], bounding: Bounding, price: Price, discover: bool) -> Choice:
    """The better of the two ways."""
    pure = with_geometric(drafts, bounding, price, discover)
    if not price.delta or all(isinstance(draft.measure, Bins) for draft in drafts):
        return pure
    if _too_weak(pure, bounding, _smooth_delta(price, discover)):
        return pure
    try:
        smooth = with_gaussian(drafts, bounding, price, discover)
    except (ArgumentError, QueryError):  # no Gaussian within range at this (epsilon, delta): the other way stands
        return pure
    return min(pure, smooth, key=lambda way: way.error)


def _too_weak(pure: Choice, bounding: Bounding, delta: Fraction) -> bool:
    """Whether Gaussian noise for one moving number needs more variance than geometric noise has: one look instead of a
    search, in nearly all questions. Two such measures or more are not compared here."""
    smooth = [noise for noise in pure.noises if not isinstance(noise.draft.measure, Bins)]
    shift = one_moves(smooth[0].draft, bounding) if len(smooth) == 1 else None
    if shift is None:
        return False
    return not hides(smooth[0].loss.epsilon(), delta, shift, Fraction(smooth[0].variance))


def one_moves(draft: Draft, bounding: Bounding) -> int | None:
    """How far one unit moves the only number it moves of this measure; None if it may move more than one."""
    moves = bounding.worth(draft.worth).l2(draft.row, draft.cells, draft.signed).separate(None)
    return moves[1] if moves is not None and moves[0] == 1 else None


def with_geometric(drafts: Sequence[Draft], bounding: Bounding, price: Price, discover: bool) -> Choice:
    if not drafts and not discover:
        return Choice((), None, Pure(0))
    weights = [draft.weight for draft in drafts]
    parts = shares(price.epsilon, [1.0, *weights] if discover else weights)
    threshold = _threshold(parts[0], price.delta, bounding) if discover else None
    noises = tuple(
        _noise(draft, epsilon, bounding) for draft, epsilon in zip(drafts, parts[1:] if discover else parts, strict=True)
    )
    losses: list[Loss] = [noise.loss for noise in noises]
    return Choice(noises, threshold, total([*losses, threshold.loss()] if threshold else losses))


def with_gaussian(drafts: Sequence[Draft], bounding: Bounding, price: Price, discover: bool) -> Choice:
    """Gaussian noise for sums and counts: shares of epsilon for the keys, each quantile, and all Gaussian noise together."""
    smooth = [draft for draft in drafts if not isinstance(draft.measure, Bins)]
    picks = [draft for draft in drafts if isinstance(draft.measure, Bins)]
    weights = [sum(draft.weight for draft in smooth), *(draft.weight for draft in picks)]
    parts = shares(price.epsilon, [*weights, 1.0] if discover else weights)
    delta = _smooth_delta(price, discover)
    found = {id(noise.draft): noise for noise in _smooth(smooth, parts[0], delta, bounding)}
    found |= {id(d): _noise(d, part, bounding) for d, part in zip(picks, parts[1:], strict=False)}
    threshold = _threshold(parts[-1], delta, bounding) if discover else None
    together = Approx(parts[0], delta)
    losses: list[Loss] = [together, *(found[id(d)].loss for d in picks), *([threshold.loss()] if threshold else [])]
    return Choice(tuple(found[id(d)] for d in drafts), threshold, total(losses))


def _noise(draft: Draft, epsilon: Fraction, bounding: Bounding) -> Noise:
    """Geometric noise for sums, the exponential mechanism for quantiles, at this share of epsilon."""
    if isinstance(draft.measure, Bins) and draft.p is not None:
        steps = bounding.neighbours.changes
        sensitivity = rank_sensitivity(draft.p, draft.worth)
        each = Exponential(epsilon=epsilon / (bounding.max_groups * steps), sensitivity=sensitivity)
        return Noise(draft, each, bounding.max_groups, steps)
    norm = bounding.worth(draft.worth).l1(draft.row, draft.cells, draft.signed)
    wide = norm.total(None) > epsilon
    return _within_range(lambda: Noise(draft, Geometric(epsilon=epsilon, sensitivity=norm)), draft, wide)


def _smooth_delta(price: Price, discover: bool) -> Fraction:
    """Gaussian noise's share of delta: half where keys need the other half."""
    return price.delta / 2 if discover else price.delta


def _smooth(drafts: Sequence[Draft], epsilon: Fraction, delta: Fraction, bounding: Bounding) -> list[Noise]:
    """Gaussian noise for these measures, together (epsilon, delta)-DP."""
    norms = [bounding.worth(draft.worth).l2(draft.row, draft.cells, draft.signed) for draft in drafts]
    if len(drafts) == 1 and one_moves(drafts[0], bounding) is not None:
        return [Noise(drafts[0], Gaussian(epsilon=epsilon, delta=delta, sensitivity=norms[0]))]
    slices = shares(largest_rho(epsilon, delta), [draft.weight for draft in drafts], squared=True)
    if ZCDP(sum(slices, Fraction(0))).delta(epsilon) > delta:
        raise ArithmeticError("the certified rho does not cover its own shares")
    parts = zip(drafts, slices, norms, strict=True)
    return [Noise(draft, Gaussian(rho=rho, sensitivity=norm)) for draft, rho, norm in parts]


def _within_range(build: Callable[[], Noise], draft: Draft, wide: bool) -> Noise:
    try:
        return build()
    except ArgumentError:
        pass
    on_a_grid = isinstance(draft.measure, Sums) and any(cell.argument is not None for cell in draft.measure.cells)
    declared = (
        "a coarser step for the column, or smaller max_rows or max_groups" if on_a_grid else "smaller max_rows or max_groups"
    )
    off = "more than 10^12 steps" if wide else "less than a thousandth of a step"
    raise QueryError(
        f"The noise for the {draft.words} is out of range: {off}.",
        fix=f"spend a larger epsilon, or declare {declared}." if wide else "spend a smaller epsilon.",
    )


def _threshold(epsilon: Fraction, delta: Fraction, bounding: Bounding) -> Threshold:
    keys = bounding.max_groups * bounding.neighbours.changes
    return Threshold(epsilon=epsilon, delta=delta, keys_per_unit=keys)


# --- keys -------------------------------------------------------------------------------------------------------


def public_keys(keys: Sequence[Named], known: Sequence[Facts]) -> tuple[tuple[Key, ...], ...] | None:
    """The public values of each key, or None if one of them has to be discovered."""
    domains = [facts.values for facts in known]
    found = tuple(values for values in domains if values is not None)
    if len(found) < len(domains):
        return None
    count = math.prod(len(values) for values in found)
    if count > MOST_GROUPS:
        raise QueryError(
            f"GROUP BY {names(keys)} has {count} public groups, and at most {MOST_GROUPS} are shown.",
            fix="group by fewer or coarser keys, such as a BUCKET.",
        )
    return found


def combinations(known: tuple[tuple[Key, ...], ...]) -> list[tuple[Key, ...]]:
    """Every public group, in key order."""
    return sorted(itertools.product(*known), key=key_order)


def key_order(key: tuple[Key, ...]) -> tuple[tuple[bool, str, object], ...]:
    """Sorts keys of one shape: NULL last, each kind among itself."""
    return tuple(
        (part is None, "" if isinstance(part, (bool, int)) else type(part).__name__, 0 if part is None else part)
        for part in key
    )


def names(keys: Sequence[Named]) -> str:
    return ", ".join(key.name for key in keys)
