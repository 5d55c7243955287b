"""Composition: the loss of several releases together, and of a function of a release.

**One after the other** (`total`): losses add; see losses.py.

**Side by side** (`parallel`): each unit's data lies in one part, and release i reads part i only. Let every
loss be stated under add/remove *within its part*, the only statement that covers a unit leaving a part.
  - One unit more or less changes one part: the price is the largest loss.
  - One unit replaced is one removal and one addition. In different parts i and j the two releases are independent
    and their losses add; in the same part it is a group of two, which is never less: 2 epsilon against
    epsilon_i + epsilon_j, 4 rho against rho_i + rho_j, delta (1 + e^epsilon) against delta_i + delta_j.
    So the price is the largest loss towards a group of two: for pure losses, the factor 2. (The sum of the two
    largest is too small: a sum over [-b, b] in the part of the largest loss moves by 2b when a unit stays there.)
  - k changes may all fall in one part: a group of k, which covers every way to spread them, since k epsilon, k^2 rho
    and e^{k epsilon} - 1 are at least as large as the sums over any split of k.

**Post-processing** (`postprocess`): Pr[f(M(x)) in S] = Pr[M(x) in f^-1(S)], a bound that M already keeps. Free.
Reference: McSherry, SIGMOD 2009 (parallel); Dwork and Roth 2014, proposition 2.1 (post-processing).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from flint import arb

from dither.errors import ArgumentError, Fix, Python
from dither.exact.balls import Real
from dither.exact.laws.base import Law
from dither.exact.laws.derived import Finite, Moved
from dither.exact.numbers import items, whole
from dither.privacy.losses import ZCDP, Approx, Curve, Loss, Pure, total
from dither.privacy.neighbours import AddRemove, Neighbours, check_neighbours

__all__ = ["Postprocessed", "largest", "parallel", "postprocess", "total"]


def parallel(losses: Iterable[Loss], neighbours: Neighbours = AddRemove()) -> Loss:  # noqa: B008 (frozen value)
    """Returns the loss of releases on disjoint parts of the units, each stated under add/remove within its part.

    >>> from dither.privacy.neighbours import Replace
    >>> parallel([Pure("0.1"), Pure("0.3"), Pure("0.2")])
    Pure(epsilon=Fraction(3, 10))
    >>> parallel([Pure("0.1"), Pure("0.3")], Replace())
    Pure(epsilon=Fraction(3, 5))
    """
    listed = items(losses, "losses", fix="pass [mechanism.loss(), ...].")
    if not listed or not all(isinstance(loss, Loss) for loss in listed):
        raise ArgumentError("losses must hold at least one loss, and nothing else.", fix="pass [mechanism.loss(), ...].")
    dearest = largest(listed)
    changes = check_neighbours(neighbours).changes
    if changes == 1:
        return dearest
    # A curve's own `group` is about one part only; the inequalities in the header are proved for zCDP.
    return (dearest.zcdp() if isinstance(dearest, Curve) else dearest).group(changes)


def largest(losses: list[Loss]) -> Loss:
    """Returns a loss that covers each of them, in a kind that can state all of them."""
    if all(loss == losses[0] for loss in losses) and not isinstance(losses[0], Pure):
        return losses[0]
    if any(isinstance(loss, ZCDP | Curve) for loss in losses):
        stated = [loss.zcdp() for loss in losses]
        return ZCDP(max(z.rho for z in stated), max(z.slack for z in stated))
    if any(isinstance(loss, Approx) for loss in losses):
        pairs = [loss.pair() for loss in losses if isinstance(loss, Pure | Approx)]
        return Approx(max(e for e, _ in pairs), max(d for _, d in pairs))
    return Pure(max(loss.epsilon(0) for loss in losses), max(loss.zcdp().rho for loss in losses))


class Releasing(Protocol):
    """The methods of a mechanism that post-processing needs."""

    def release(self, exact: Any) -> Any: ...

    def loss(self) -> Loss: ...

    def curve(self) -> Curve: ...

    def law(self, exact: Any) -> Law: ...

    def outcome(self, k: int) -> Any: ...


@dataclass(frozen=True)
class Postprocessed:
    """A function of a mechanism's release, at the mechanism's price. The function must not look at the data."""

    mechanism: Releasing
    function: Callable[[Any], Any]

    def release(self, exact: Any) -> Any:
        return self.function(self.mechanism.release(exact))

    def loss(self) -> Loss:
        return self.mechanism.loss()

    def curve(self) -> Curve:
        return self.mechanism.curve()

    def outcome(self, k: int) -> Any:
        return k

    def law(self, exact: Any) -> Law:
        """Returns the exact law of the image. The release must have finitely many values, and the image whole numbers."""
        law = self.mechanism.law(exact)
        first, last = law.span()
        if first is None or last is None:
            raise ArgumentError(
                "The release has no end, so the law of its image is not listed.",
                fix="use the law of the mechanism itself: post-processing cannot raise the loss.",
            )
        merged: dict[int, list[int]] = {}
        for k in range(first, last + 1):
            image = whole(self.function(self.mechanism.outcome(k)), "the function's value")
            merged.setdefault(image, []).append(k)
        low, high = min(merged), max(merged)
        return Moved(Finite(tuple(_chance(law, merged.get(k, [])) for k in range(low, high + 1))), low)


def _chance(law: Law, values: list[int]) -> Real:
    return lambda: sum((law.pmf(k) for k in values), arb(0))


def postprocess(mechanism: Releasing, function: Callable[[Any], Any]) -> Postprocessed:
    """Returns the mechanism followed by a function of its answer, at the same price.

    >>> from dither.mechanisms.truncated import TruncatedGeometric
    >>> even = postprocess(TruncatedGeometric(epsilon=1, sensitivity=1, n=3), lambda k: k % 2)
    >>> even.loss(), even.law(0).span()
    (Pure(epsilon=Fraction(1, 1)), (0, 1))
    """
    if not callable(getattr(mechanism, "release", None)) or isinstance(mechanism, type):
        what = f"mechanism must be a mechanism, and it is a {type(mechanism).__name__}."
        raise ArgumentError(what, fix=Fix("pass one, such as {call}.", call=Python("Geometric(epsilon=1, sensitivity=1)")))
    if not callable(function):
        raise ArgumentError(f"function must be callable, and it is a {type(function).__name__}.", fix="pass a function.")
    return Postprocessed(mechanism, function)
