"""Losses: the privacy price of a release, in four kinds that compose and convert downward, always rounding up.

    Pure(epsilon)           every output's probability moves by at most a factor e^epsilon between neighbours
    Approx(epsilon, delta)  the same, except with probability delta
    ZCDP(rho, delta)        Renyi divergence of every order a at most a * rho (except with probability delta)
    Curve                   the exact law of the log ratio, kept as a multiset of known releases fixed in advance

Sums: Pure + Pure is Pure, Pure + Approx is Approx, Curve + Pure or Approx is Curve, anything + ZCDP is ZCDP.
The first three also hold if each release is chosen after seeing earlier answers. A Curve is for one plan whose
releases are all fixed in advance; `Curve.zcdp()` makes it a loss for an adaptive filter.
References: Dwork and Roth 2014; Bun and Steinke, TCC 2016; Kairouz, Oh and Viswanath, ICML 2015.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import SupportsIndex

from dither.errors import ArgumentError, PriceError
from dither.exact.numbers import Number, between, items, not_negative, show, whole
from dither.privacy import accountant, conversion
from dither.privacy.parts import Part, Response
from dither.privacy.parts.base import MOST, unchecked


class Loss(ABC):
    """The privacy price of a release. Frozen, hashable, exact; every conversion rounds up."""

    @abstractmethod
    def epsilon(self, delta: Number = 0) -> Fraction:
        """Returns the smallest epsilon known at this delta, certified and rounded up."""

    @abstractmethod
    def delta(self, epsilon: Number) -> Fraction:
        """Returns the smallest delta known at this epsilon, certified and rounded up, at most 1.

        delta(epsilon(d)) may exceed d by rounding: both are upper bounds, and neither is the other's inverse.
        """

    @abstractmethod
    def zcdp(self) -> ZCDP:
        """Returns the same release stated as zero-concentrated DP, which composes adaptively."""

    @abstractmethod
    def curve(self) -> Curve:
        """Returns the same release as a loss curve, for tight composition fixed in advance."""

    @abstractmethod
    def repeat(self, n: SupportsIndex) -> Loss:
        """Returns the loss of n such releases."""

    @abstractmethod
    def group(self, k: SupportsIndex) -> Loss:
        """Returns the loss for a group of k units."""

    @abstractmethod
    def __add__(self, other: object) -> Loss:
        """Returns the loss of both releases together."""


def check_up_to(value: Number, name: str, most: int | Fraction) -> Fraction:
    """Returns a number from 0 to `most`. Takes a Fraction in range as it is, without parsing it again."""
    if type(value) is Fraction and 0 <= value <= most:
        return value
    return between(value, name, 0, most)


def check_loss(loss: object) -> Loss:
    """Returns the loss. Refuses anything else."""
    if not isinstance(loss, Loss):
        what = f"loss must be a loss such as Pure(0.1), and it is a {type(loss).__name__}."
        raise ArgumentError(what, fix="pass mechanism.loss().")
    return loss


__all__ = ["ZCDP", "Approx", "Curve", "Loss", "Pure", "total"]

_NONE = Fraction(0)
# The orders that libraries try unless told otherwise, thinned out.
_ORDERS: tuple[Number, ...] = (
    "1.25",
    "1.5",
    "1.75",
    2,
    "2.5",
    3,
    "3.5",
    4,
    5,
    6,
    7,
    8,
    10,
    12,
    14,
    16,
    20,
    24,
    28,
    32,
    48,
    64,
    128,
    256,
)
_MOST_RHO = MOST**2  # the rho of every accepted epsilon is accepted


def _add(one: Loss, other: object) -> Loss:
    return total([one, other]) if isinstance(other, Loss) else NotImplemented


@dataclass(frozen=True)
class Pure(Loss):
    """epsilon-DP. `rho` may state a better bound than rho = epsilon^2 / 2; conversions use it.

    Bounded range (the exponential mechanism) gives rho = epsilon^2 / 8, and a sum keeps the sum of its parts' rho.
    Pure losses of equal epsilon compare as equal: ten releases of 0.1 equal one of 1, although their prices at a
    delta above 0 differ. Code that stores or merges losses must also compare `rho`; the text of a loss shows it.

    >>> Pure("1/2") + Pure("1/2")
    Pure(epsilon=Fraction(1, 1), rho=Fraction(1, 4))
    >>> Pure("1/2") + Pure("1/2") == Pure(1)
    True
    >>> Pure(1).repeat(10).zcdp()
    ZCDP(rho=Fraction(5, 1))
    """

    _epsilon: Fraction
    rho: Fraction = field(compare=False)
    __add__ = _add

    def __init__(self, epsilon: Number, rho: Number | None = None) -> None:
        value = check_up_to(epsilon, "epsilon", MOST)
        worst = value * value / 2
        object.__setattr__(self, "_epsilon", value)
        object.__setattr__(self, "rho", worst if rho is None else min(check_up_to(rho, "rho", _MOST_RHO), worst))

    def __repr__(self) -> str:
        known = "" if self.rho == self._epsilon**2 / 2 else f", rho={self.rho!r}"
        return f"Pure(epsilon={self._epsilon!r}{known})"

    def epsilon(self, delta: Number = 0) -> Fraction:
        allowed = between(delta, "delta", 0, 1)
        if allowed == 0:
            return self._epsilon
        once = conversion.epsilon_of_response(self._epsilon, Fraction(0), allowed)
        return min(once, conversion.epsilon_of_zcdp(self.rho, allowed))

    def delta(self, epsilon: Number) -> Fraction:
        at = not_negative(epsilon, "epsilon")
        if at >= self._epsilon:
            return Fraction(0)
        once = conversion.delta_of_response(self._epsilon, Fraction(0), at)
        return min(once, conversion.delta_of_zcdp(self.rho, at))

    def zcdp(self) -> ZCDP:
        return _zcdp(self.rho, Fraction(0))

    def curve(self) -> Curve:
        return _response(self._epsilon, Fraction(0))

    def pair(self) -> tuple[Fraction, Fraction]:
        """(epsilon, 0)."""
        return self._epsilon, Fraction(0)

    def repeat(self, n: SupportsIndex) -> Pure:
        times = _count(n, "n", 0)
        return _pure(self._epsilon * times, self.rho * times)

    def group(self, k: SupportsIndex) -> Pure:
        size = _count(k, "k", 1)
        return _pure(self._epsilon * size, self.rho * size * size)


@dataclass(frozen=True)
class Approx(Loss):
    """(epsilon, delta)-DP. Sums add both, also for adaptively chosen releases.

    >>> Approx(1, "1e-6").group(2)
    Approx(epsilon=2, delta=3.71828182846e-6)
    """

    _epsilon: Fraction
    _delta: Fraction
    __add__ = _add

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "_epsilon", between(epsilon, "epsilon", 0, MOST))
        object.__setattr__(self, "_delta", between(delta, "delta", 0, 1))

    def __repr__(self) -> str:
        return f"Approx(epsilon={show(self._epsilon)}, delta={show(self._delta)})"

    def pair(self) -> tuple[Fraction, Fraction]:
        """(epsilon, delta) as stated."""
        return self._epsilon, self._delta

    def epsilon(self, delta: Number = 0) -> Fraction:
        allowed = between(delta, "delta", 0, 1)
        if allowed < self._delta:
            raise PriceError(
                f"A loss with delta {show(self._delta)} has no epsilon at delta {show(allowed)}.",
                fix=f"ask at a delta of {show(self._delta)} or more.",
            )
        return conversion.epsilon_of_response(self._epsilon, self._delta, allowed)

    def delta(self, epsilon: Number) -> Fraction:
        return conversion.delta_of_response(self._epsilon, self._delta, not_negative(epsilon, "epsilon"))

    def zcdp(self) -> ZCDP:
        return _zcdp(self._epsilon**2 / 2, self._delta)

    def curve(self) -> Curve:
        return _response(self._epsilon, self._delta)

    def repeat(self, n: SupportsIndex) -> Approx:
        times = whole(n, "n", least=0)
        return _approx(self._epsilon * times, self._delta * times)

    def group(self, k: SupportsIndex) -> Approx:
        size = whole(k, "k", least=1)
        return _approx(self._epsilon * size, conversion.group_delta(self._epsilon, self._delta, size))


@dataclass(frozen=True)
class ZCDP(Loss):
    """rho-zCDP, or delta-approximate rho-zCDP. Sums add, also for adaptively chosen releases.

    >>> round(float(ZCDP("1/2").epsilon("1e-6")), 6)
    5.221534
    """

    rho: Fraction
    slack: Fraction
    __add__ = _add

    def __init__(self, rho: Number, delta: Number = 0) -> None:
        object.__setattr__(self, "rho", between(rho, "rho", 0, _MOST_RHO))
        object.__setattr__(self, "slack", between(delta, "delta", 0, 1))

    def __repr__(self) -> str:
        return f"ZCDP(rho={self.rho!r})" if not self.slack else f"ZCDP(rho={self.rho!r}, delta={self.slack!r})"

    def epsilon(self, delta: Number = 0) -> Fraction:
        allowed = between(delta, "delta", 0, 1)
        if allowed < self.slack or (allowed == self.slack and self.rho > 0 and allowed < 1):
            raise PriceError(
                f"A zCDP loss has no epsilon at delta {show(allowed)}: it needs a delta above {show(self.slack)}.",
                fix="ask at a larger delta, such as 1e-6.",
            )
        if self.slack == 1 or self.rho == 0:
            return Fraction(0)
        return conversion.epsilon_of_zcdp(self.rho, (allowed - self.slack) / (1 - self.slack))

    def delta(self, epsilon: Number) -> Fraction:
        converted = conversion.delta_of_zcdp(self.rho, not_negative(epsilon, "epsilon"))
        return conversion.round_up(self.slack + (1 - self.slack) * converted)

    def zcdp(self) -> ZCDP:
        return self

    def curve(self) -> Curve:
        raise PriceError("A zCDP loss does not say which curve it has.", fix="take the mechanism's own curve().")

    def repeat(self, n: SupportsIndex) -> ZCDP:
        times = _count(n, "n", 0)
        return _zcdp(self.rho * times, self.slack * times)

    def group(self, k: SupportsIndex) -> ZCDP:
        size = _count(k, "k", 1)
        if self.slack and size > 1:
            raise PriceError("zCDP with a delta has no group statement.", fix="use the (epsilon, delta) loss: Approx.group.")
        return _zcdp(self.rho * size * size, self.slack)


@dataclass(frozen=True)
class Curve(Loss):
    """The exact law of the log ratio of releases fixed in advance: a sorted multiset of parts.

    Prices are certified upper bounds; the time does not grow with the counts. They are within 1e-6 of the exact optimum
    for compositions of Response, KaryResponse, Laplace, DiscreteLaplace, Gaussian and DiscreteGaussian that are all on one
    lattice, few enough to be listed, or without heavy atoms near epsilon; for up to 1024 equal BoundedRange releases; and for
    Subsampled and SubsampledGaussian releases. For rare samples (q of 1e-4 and less) this was checked for two and three
    steps, and by estimates for up to 10,000; beyond, only the bound is proved. A GaussianVector is priced by an upper bound.
    docs/decisions/0001-accountant.md lists what is looser. epsilon(d) and delta(e) are searched separately, so
    delta(epsilon(d)) may exceed d slightly; each is an upper bound on its own.

    >>> from dither.privacy import parts
    >>> a = Curve.of(parts.Gaussian(1))
    >>> a + a == a.repeat(2) == total([a, a])
    True
    """

    parts: tuple[tuple[Part, int], ...]
    __add__ = _add

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", accountant.canonical(self.parts))

    @classmethod
    def of(cls, part: Part, count: SupportsIndex = 1) -> Curve:
        """Returns the curve of `count` releases of one part."""
        return cls(((part, whole(count, "count", least=0)),))

    def epsilon(self, delta: Number = 0) -> Fraction:
        return accountant.epsilon(self.parts, between(delta, "delta", 0, 1))

    def delta(self, epsilon: Number) -> Fraction:
        return accountant.delta(self.parts, not_negative(epsilon, "epsilon"))

    def renyi(self, order: Number) -> Fraction:
        """Returns the Renyi divergence of an order above 1, the larger of the two directions, certified and rounded up.

        For comparison with papers and libraries that account this way: a price by orders is never below `epsilon(delta)`.

        >>> from dither.privacy import parts
        >>> float(Curve.of(parts.Gaussian("1/4"), 2).renyi(8))
        2.0
        """
        return accountant.renyi(self.parts, between(order, "order", 1, MOST, open_low=True))

    def renyi_epsilon(self, delta: Number, orders: Iterable[Number] | None = None) -> Fraction:
        """Returns the epsilon that Renyi accounting states at this delta: the least over orders. Above `epsilon(delta)`."""
        allowed = between(delta, "delta", 0, 1, open_low=True, open_high=True)
        listed = _ORDERS if orders is None else items(orders, "orders", fix="pass orders above 1, such as [2, 4, 8].")
        if not listed:
            raise ArgumentError("orders must hold at least one order.", fix="pass orders above 1, such as [2, 4, 8].")
        known = [between(order, "order", 1, MOST, open_low=True) for order in listed]
        return min(conversion.epsilon_of_renyi(a, accountant.renyi(self.parts, a), allowed) for a in known)

    def zcdp(self) -> ZCDP:
        return total([_zcdp(*part.zcdp()).repeat(count) for part, count in self.parts]).zcdp()

    def curve(self) -> Curve:
        return self

    def repeat(self, n: SupportsIndex) -> Curve:
        times = whole(n, "n", least=0)
        return Curve(tuple((part, count * times) for part, count in self.parts))

    def group(self, k: SupportsIndex) -> Curve:
        size = whole(k, "k", least=1)
        return Curve(tuple((part.group(size), count) for part, count in self.parts))


def _count(value: SupportsIndex, name: str, least: int) -> int:
    """Returns the count, checked unless it is an int in range already."""
    return value if type(value) is int and value >= least else whole(value, name, least=least)


def _pure(epsilon: Fraction, rho: Fraction) -> Pure:
    return unchecked(Pure, _epsilon=epsilon, rho=min(rho, epsilon * epsilon / 2))


def _approx(epsilon: Fraction, delta: Fraction) -> Approx:
    return unchecked(Approx, _epsilon=epsilon, _delta=min(delta, Fraction(1)))


def _zcdp(rho: Fraction, slack: Fraction) -> ZCDP:
    return unchecked(ZCDP, rho=rho, slack=min(slack, Fraction(1)))


def _response(epsilon: Fraction, delta: Fraction) -> Curve:
    return Curve.of(unchecked(Response, epsilon=epsilon, delta=delta)) if epsilon or delta else Curve(())


def total(losses: Iterable[Loss]) -> Loss:
    """Returns the loss of all of them together, in a kind that can state all of them. The order does not matter.

    >>> total([Pure("0.1")] * 10) == Pure(1)
    True
    """
    listed = losses if type(losses) is list else items(losses, "losses", fix="pass [mechanism.loss(), ...].")
    for loss in listed:
        check_loss(loss)
    if any(isinstance(loss, ZCDP) for loss in listed):
        stated = [loss.zcdp() for loss in listed]
        return _zcdp(sum((z.rho for z in stated), _NONE), sum((z.slack for z in stated), _NONE))
    if any(isinstance(loss, Curve) for loss in listed):
        return Curve(tuple(pair for loss in listed for pair in loss.curve().parts))
    if any(isinstance(loss, Approx) for loss in listed):
        pairs = [loss.pair() for loss in listed if isinstance(loss, (Pure, Approx))]
        return _approx(sum((e for e, _ in pairs), _NONE), sum((d for _, d in pairs), _NONE))
    pairs = [(loss.pair()[0], loss.rho) if isinstance(loss, Pure) else (loss.epsilon(), loss.zcdp().rho) for loss in listed]
    return _pure(sum((epsilon for epsilon, _ in pairs), _NONE), sum((rho for _, rho in pairs), _NONE))
