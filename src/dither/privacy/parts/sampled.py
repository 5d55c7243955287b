"""Poisson subsampling: each unit takes part with probability q, and the mechanism runs on those that do.

Let (P1, Q) be the worst pair of the mechanism itself, with and without the unit, u = ln(P1/Q) and B = 1 - q + q e^u. With the
unit in the data the output is a mixture, so the worst pair is ((1 - q) Q + q P1, Q), called *added* here: the first table has
the unit. *Removed* is the reverse.

    added:    L = ln B under Q B        phi(z) = E_Q[B^{z + 1}]        L <= ln(1 - q + q e^{top})
    removed:  L = -ln B under Q         phi(z) = E_Q[B^{-z}]           L <= -ln(1 - q + q e^{-top}) <= -ln(1 - q)

One release: delta of the pair added is q times the delta of (P1, Q) at x, e^x = 1 + (e^epsilon - 1)/q; removed, it is 1 - s
times the delta of (Q, P1) at x, s = e^epsilon (1 - q) < 1, e^x = e^epsilon q / (1 - s). Added is the larger for one release.
For several that is not known, so prices take the larger of the two totals. This is about adding or removing one unit, for
samples in which units fall independently; replacing one, or samples of a fixed size, have other worst pairs. References:
Balle, Barthe and Gaboardi, NeurIPS 2018; Zhu, Dong and Wang, AISTATS 2022, theorem 11; Lebeda, Regehr, Kamath and Steinke,
SaTML 2025 (why both directions are needed).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Self

import numpy as np
from flint import acb, arb

from dither.errors import ArgumentError
from dither.exact.balls import ball, exp, upper, working
from dither.exact.numbers import Number, between, flag
from dither.privacy.parts.base import Complexes, Floats, Part, unchecked
from dither.privacy.parts.clouds import Cloud, Field, log_mixed
from dither.privacy.parts.falls import Fall, fall_of
from dither.privacy.parts.gaussian import DiscreteGaussian
from dither.privacy.parts.laplace import DiscreteLaplace, Laplace
from dither.privacy.parts.response import Response

_MOST_VARIANCE = 10**8
_MOST_STEPS = 1 << 16
_LISTED = 512  # outcomes that are listed in balls
_ROUGH = 256
_UP = 96  # bits after the point of losses that are rounded up


@dataclass(frozen=True)
class Law:
    """Q as atoms (u, ln of their weight) and a density; `lost` is what it leaves out of Q and of P1."""

    u: Floats
    logs: Floats
    field: Field | None
    lost: tuple[float, float]

    def within(self, low: float, high: float) -> Law:
        """Returns the part of it with low < u <= high."""
        inside = (self.u > low) & (self.u <= high)
        return Law(self.u[inside], self.logs[inside], self.field and self.field.within(low, high), self.lost)


class SampledPart(Part, abstract=True):
    """A release after Poisson subsampling, in one direction. A curve states it as added; its price covers both."""

    q: Fraction
    removed: bool

    @abstractmethod
    def law(self, share: float) -> Law:
        """Returns Q but for a probability of about e^share under Q and under P1."""

    @abstractmethod
    def turned(self, removed: bool) -> Self:
        """Returns the release in this direction."""

    def reverse(self) -> Part:
        return self.turned(not self.removed)

    def stated(self) -> Part:
        return self.turned(False)

    def decay(self, c: float, law: Law) -> float:
        """Returns ln V with |phi(c + it)| <= V/t, for a part of Q that is an interval; infinity if nothing is known."""
        return math.inf

    def fall_of(self, law: Law, c: float, log_size: float) -> Fall:
        """Returns how soon the transform of a part of Q dies out on Re z = c."""
        return fall_of(law.field, float(self.q), -c if self.removed else c + 1, log_size, self.decay(c, law))

    def cloud(self, c: float, t: float, share: float) -> Cloud:
        """Returns points that stand for this release at c + iu, |u| <= t."""
        return self.cloud_of(self.law(share), c, t)

    def cloud_of(self, law: Law, c: float, t: float) -> Cloud:
        """Returns points that stand for a part of Q at c + iu, |u| <= t."""
        q = float(self.q)
        u, logs, log_wrong = law.u, law.logs, -math.inf
        if law.field is not None:
            more, heights, log_wrong = law.field.points(q, -c if self.removed else c + 1, t)
            u, logs = np.concatenate([u, more]), np.concatenate([logs, heights])
        made = self._cloud(u, logs, law)
        return Cloud(made.losses, made.logs, made.offs, 2 * math.exp(min(log_wrong - made.tilted(c)[0], 0.0)), made.lost)

    def rough(self, share: float) -> Cloud:
        """Returns a few points, for a guide."""
        return self.rough_of(self.law(share))

    def rough_of(self, law: Law) -> Cloud:
        """Returns a few points of a part of Q, for a guide."""
        if law.field is None:
            # Groups of neighbours, with the same weight under Q and under P1.
            starts = np.arange(0, len(law.u), len(law.u) // _ROUGH + 1)
            weights, ratio = np.add.reduceat(np.exp(np.maximum(law.logs, -700.0)), starts), np.exp(law.logs + law.u)
            return self._cloud(np.log(np.maximum(np.add.reduceat(ratio, starts), 1e-300) / weights), np.log(weights), law)
        more, heights = law.field.rough()
        return self._cloud(np.concatenate([law.u, more]), np.concatenate([law.logs, heights]), law)

    def _cloud(self, u: Floats, logs: Floats, law: Law) -> Cloud:
        q = float(self.q)
        mixed = log_mixed(q, u)
        offs = np.abs(u) * np.exp(math.log(q) + u - mixed)
        without, with_unit = law.lost
        if self.removed:
            return Cloud(-mixed, logs, offs, 0.0, without)
        return Cloud(mixed, logs + mixed, offs, 0.0, (1 - q) * without + q * with_unit)

    def log_phi(self, z: Complexes) -> Complexes:
        found = np.empty(len(z), dtype=complex)
        for k, at in enumerate(z):
            found[k] = self.cloud(float(at.real), abs(float(at.imag)), -80.0).log(z[k : k + 1])[0]
        return found


@dataclass(frozen=True)
class Subsampled(SampledPart):
    """A release of `part` on a Poisson sample: each unit takes part with probability q. Add/remove neighbours.

    `part` is Laplace, DiscreteLaplace, DiscreteGaussian or Response without a delta (any pure release).

    >>> round(float(Subsampled(Response(1), "1/2").pure), 6)
    0.620115
    """

    q: Fraction
    part: Part
    removed: bool = False

    def __init__(self, part: Part, q: Number, removed: bool = False) -> None:
        object.__setattr__(self, "q", between(q, "q", 0, 1, open_low=True))
        object.__setattr__(self, "part", _check(part))
        object.__setattr__(self, "removed", flag(removed, "removed"))

    def turned(self, removed: bool) -> Subsampled:
        return unchecked(Subsampled, q=self.q, part=self.part, removed=removed)

    def order(self) -> tuple[object, ...]:
        return (type(self).__name__, self.q, self.removed, self.part.order())

    @property
    def top(self) -> Fraction | None:
        most = self.part.top
        if most is None and (not self.removed or self.q == 1):
            return None
        return self._up(-most if self.removed else most) if most is not None else self._up(None)

    @property
    def spread(self) -> float:
        return self.part.spread

    def zcdp(self) -> tuple[Fraction, Fraction]:
        # Renyi divergence is quasi-convex, so mixing in the neighbour's own law cannot raise it.
        return self.part.zcdp()

    def law(self, share: float) -> Law:
        return _law(self.part, round(share, 3))

    def _up(self, u: Fraction | None) -> Fraction:
        """Returns L at u, rounded up to a short rational; None is -infinity."""
        with working(192):
            mixed = (1 - ball(self.q) + (0 if u is None else ball(self.q) * exp(u))).log()
            return Fraction(math.ceil(upper(-mixed if self.removed else mixed) * 2**_UP), 1 << _UP)

    @property
    def _listed(self) -> list[tuple[Fraction, arb]] | None:
        """Returns u with its probability under Q, or None if there are too many."""
        law = self.part.atoms()
        return None if law is None or len(law) > _LISTED else [(-loss, weight) for loss, weight in law]

    def atoms(self) -> list[tuple[Fraction, arb]] | None:
        listed = self._listed
        if listed is None:
            return None
        q = ball(self.q)
        return [(self._up(u), weight if self.removed else weight * (1 - q + q * exp(u))) for u, weight in listed]

    def beyond(self) -> arb:
        # Q and P1 leave out the same: one is the other, mirrored, except that P1 is cut off `shift` closer to its middle.
        if not isinstance(self.part, DiscreteGaussian):
            return arb(0)
        return self.part.beyond() if self.removed else _cut_off(self.part)

    @property
    def lattice(self) -> tuple[Fraction, Fraction] | None:
        # Two values always lie on a lattice.
        if not _binary(self.part):
            return None
        low, high = sorted(value for value, _ in self.atoms() or [])
        return (low, high - low) if high > low else None

    def phi(self, z: acb) -> acb:
        a, q = (-z if self.removed else z + 1), ball(self.q)
        if _binary(self.part):
            return sum((weight * (z * ball(value)).exp() for value, weight in self.atoms() or []), acb(0))
        if isinstance(self.part, Laplace):
            return _laplace(self.part.epsilon, q, a)
        if isinstance(self.part, DiscreteGaussian):
            return _gaussian(self.part, q, a)
        listed = self.part.ends.atoms() + self.part.inner() if isinstance(self.part, DiscreteLaplace) else []
        return sum((weight * (a * (1 - q + q * exp(-loss)).log()).exp() for loss, weight in listed), acb(0))

    def log_phi(self, z: Complexes) -> Complexes:
        if not _binary(self.part):
            return super().log_phi(z)
        pairs = [(float(value), float(weight.log())) for value, weight in self.atoms() or []]
        (one, heavy), (other, light) = sorted(pairs, reverse=True)
        logs: Complexes = z * one + heavy + np.log(1 + np.exp(z * (other - one) + light - heavy))
        return logs

    def damping(self, c: float, t: float, periodic: bool) -> float:
        if not periodic or not _binary(self.part):
            return 0.0
        pair = self.log_phi(np.array([c, complex(c, t)])).real
        return min(0.0, float(pair[1] - pair[0]) + 1e-12)

    @classmethod
    def examples(cls) -> list[Part]:
        return [
            cls(Laplace(1), "1/10"),
            cls(DiscreteLaplace(1, 1), "1/4"),
            cls(DiscreteLaplace("1/2", 4), "1/10"),
            cls(DiscreteGaussian(1, 4), "1/10"),
        ]


def _binary(part: Part) -> bool:
    return isinstance(part, Response) or (isinstance(part, DiscreteLaplace) and part.steps == 1)


def _check(part: Part) -> Part:
    """Returns the part. Refuses those that have no subsampled form here."""
    if isinstance(part, Laplace) or (isinstance(part, Response) and not part.delta and part.epsilon):
        return part
    if isinstance(part, DiscreteLaplace) and part.steps <= _MOST_STEPS:
        return part
    if isinstance(part, DiscreteGaussian) and Fraction(1, 16) * part.shift**2 <= part.variance <= _MOST_VARIANCE:
        return part
    raise ArgumentError(
        f"{type(part).__name__} has no subsampled form here.",
        fix="pass Laplace, DiscreteLaplace of up to 65536 steps, DiscreteGaussian of a variance between shift^2/16 and 10^8 or "
        "Response without a delta; use SubsampledGaussian(q, sigma) for continuous Gaussian noise.",
    )


@lru_cache(maxsize=32)
def _law(part: Part, share: float) -> Law:
    if isinstance(part, Laplace):
        e = float(part.epsilon)
        ends = np.array([-e, e]), np.array([-math.log(2), -e - math.log(2)])

        def height(x: Floats) -> Floats:
            return (x + e) / 2 + math.log(4)

        # Around a panel the density goes on analytically, and is larger to the left.
        field = Field(height, lambda a, b: height(a), 0.0, 1.0, 0.0, -e, e)
        return Law(*ends, field, (0.0, 0.0))
    if isinstance(part, Response):
        part = DiscreteLaplace(part.epsilon, 1)
    if isinstance(part, DiscreteLaplace):
        return _geometric(float(part.epsilon), part.steps)
    if isinstance(part, DiscreteGaussian):
        return _integers(part, share)
    raise NotImplementedError(type(part).__name__)


def _geometric(e: float, k: int) -> Law:
    x: Floats = np.arange(k + 1, dtype=np.float64)
    logs: Floats = -e / k * x - math.log1p(math.exp(-e / k))
    logs[1:-1] += math.log(-math.expm1(-e / k))
    return Law(e * (2 * x - k) / k, logs, None, (0.0, 0.0))


def _integers(part: DiscreteGaussian, share: float) -> Law:
    v, d = float(part.variance), part.shift
    reach = math.ceil(math.sqrt(-2 * share * v)) + 2
    k: Floats = np.arange(-reach, reach + d + 1, dtype=np.float64)
    heights: Floats = -(k**2) / (2 * v)
    kept = float(np.exp(heights).sum())
    # Beyond n the weights fall faster than a geometric series.
    tail = 2.01 * math.exp(-((reach + 1) ** 2) / (2 * v)) / -math.expm1(-(reach + 1) / v) / kept
    return Law((d * k - d * d / 2) / v, heights - math.log(kept) + 1e-14, None, (tail, tail))


def _cut_off(part: DiscreteGaussian) -> arb:
    """Bounds what the atoms of `part`, those of Q from -reach to reach, leave out of P1, which stands `shift` further up."""
    reach, v = part.reach, ball(part.variance)
    first = reach - part.shift + 1
    if first < 1:
        return arb(1)
    return 2 * (-arb(first * first) / (2 * v)).exp() / -(-arb(first) / v).expm1()


def _laplace(epsilon: Fraction, q: arb, a: acb) -> acb:
    """Returns E_Q[B^a] for Laplace noise in balls."""
    e = ball(epsilon)

    def mixed(u: acb, analytic: bool = False) -> acb:
        return (a * (1 - q + q * u.exp()).log(analytic=analytic)).exp()

    inner = acb.integral(lambda u, analytic: mixed(u, analytic) * (-(u + e) / 2).exp() / 4, acb(-e), acb(e))
    return mixed(acb(-e)) / 2 + mixed(acb(e)) * (-e).exp() / 2 + inner


def _gaussian(part: DiscreteGaussian, q: arb, a: acb) -> acb:
    """Returns E_Q[B^a] for Gaussian noise on the integers in balls, Re a >= 1 or Re a <= 0.

    There B^a <= 1 - q + q e^{au} by convexity, so Q B^a is at most 1 - q times Q plus q e^{a (a - 1) d^2 / 2v} times a Gaussian
    around a d: what is cut off on both sides of both is negligible.
    """
    v, d, real = ball(part.variance), part.shift, a.real
    reach, centre = part.reach, math.ceil(abs(float(real)) * d) * (1 if real > 0 else -1)
    low, high = min(0, centre) - reach, max(0, centre) + reach + d
    total, every = acb(0), arb(0)
    for k in range(low, high + 1):
        weight = (-arb(k * k) / (2 * v)).exp()
        every += weight
        total += weight * (a * (1 - q + q * ((arb(2 * k * d - d * d)) / (2 * v)).exp()).log()).exp()
    tail = 2 * (-arb(reach * reach) / (2 * v)).exp() / -(-arb(reach) / v).expm1()
    grown = (real * (real - 1) * d * d / (2 * v)).exp()
    error = arb(0, (tail * (1 - q + q * grown)).upper())
    return (total + acb(error, error)) / every.union(every * (1 + tail))
