"""Gaussian noise, continuous and on the integers.

Continuous, mu = sensitivity / sigma: L is normal with mean mu^2/2 and variance mu^2, so phi(z) = exp(mu^2 (z^2 + z) / 2).
With a slack l, every loss is l larger and every probability e^l times as large: a measure that bounds laws within such factors
of it (vector.py). Then phi(z) = exp(l (z + 1) + mu^2 (z^2 + z) / 2).

On the integers, Pr[X = k] proportional to exp(-k^2 / 2v), answer moved by d: L = (d/v) X + d^2/2v, so

    phi(z) = e^{z d^2/2v} theta(z d/v) / theta(0)
    theta(u) = sum_k exp(uk - k^2/2v) = sqrt(2 pi v) sum_m exp(v (u + 2 pi i m)^2 / 2)      (Poisson summation)

The first sum is short for small v, the second for large v. Reference: Canonne, Kamath and Steinke, NeurIPS 2020.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import SupportsIndex

import numpy as np
from flint import acb, arb

from dither.exact.balls import ball
from dither.exact.numbers import Number, between, positive, whole
from dither.privacy.parts.base import MOST, Complexes, Part, bounded, unchecked

_HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Gaussian(Part):
    """Continuous Gaussian noise; mu2 = (sensitivity / sigma)^2."""

    mu2: Fraction
    slack: Fraction = field(repr=False)

    def __init__(self, mu2: Number) -> None:
        object.__setattr__(self, "mu2", bounded(mu2, "mu2"))
        object.__setattr__(self, "slack", Fraction(0))

    @property
    def top(self) -> Fraction | None:
        return None

    @property
    def spread(self) -> float:
        return float(self.mu2) + 8 * math.sqrt(self.mu2) + float(self.slack)

    def phi(self, z: acb) -> acb:
        return ((z + 1) * (z * ball(self.mu2 / 2) + ball(self.slack))).exp()

    def log_phi(self, z: Complexes) -> Complexes:
        logs: Complexes = (z + 1) * (z * float(self.mu2 / 2) + float(self.slack))
        return logs

    def damping(self, c: float, t: float, periodic: bool) -> float:
        return -float(self.mu2 / 2) * t * t * (1 - 1e-12)

    def zcdp(self) -> tuple[Fraction, Fraction]:
        return self.mu2 / 2, Fraction(0)

    def group(self, size: int) -> Part:
        return unchecked(Gaussian, mu2=self.mu2 * size * size, slack=self.slack * size)

    @classmethod
    def examples(cls) -> list[Part]:
        return [cls("1/100"), cls(1)]


@dataclass(frozen=True)
class DiscreteGaussian(Part):
    """Gaussian weights on the integers; one unit moves the answer by `shift`."""

    shift: int
    variance: Fraction

    def __init__(self, shift: SupportsIndex, variance: Number) -> None:
        object.__setattr__(self, "shift", whole(shift, "shift", least=1))
        object.__setattr__(self, "variance", positive(variance, "variance"))
        between(self.shift**2 / self.variance, "shift^2 / variance", 0, MOST)

    @property
    def top(self) -> Fraction | None:
        return None

    @property
    def lattice(self) -> tuple[Fraction, Fraction] | None:
        return self._mean, self.shift / self.variance

    @property
    def _mean(self) -> Fraction:
        return self.shift * self.shift / (2 * self.variance)

    @property
    def spread(self) -> float:
        return float(self._mean) + float(self.shift / self.variance) * (8 * math.sqrt(self.variance) + 1)

    def phi(self, z: acb) -> acb:
        u = z * ball(self.shift / self.variance)
        # X is an integer, so the phase may be reduced to [-pi, pi].
        turns = round(float(u.imag.mid()) / (2 * math.pi))
        u = acb(u.real, u.imag - 2 * turns * arb.pi())
        theta = _theta_dual if self.variance >= _HALF / 2 else _theta_direct
        return (z * ball(self._mean)).exp() * theta(u, self.variance) / theta(acb(0), self.variance)

    def log_phi(self, z: Complexes) -> Complexes:
        v, step = float(self.variance), float(self.shift / self.variance)
        turns = np.rint(z.imag * step / (2 * math.pi))
        u = z * step - 2j * math.pi * turns
        at = np.concatenate([u, np.zeros(1, dtype=complex)])
        if self.variance >= _HALF:
            m = np.arange(-3, 4)[:, None]
            logs = v * at * at / 2 + np.log(np.exp(v * (2j * math.pi * m * at - 2 * (math.pi * m) ** 2)).sum(axis=0))
        else:
            k = np.rint(v * at.real) + np.arange(-12, 13)[:, None]
            powers = at * k - k * k / (2 * v)
            top = powers.real.max(axis=0)
            logs = top + np.log(np.exp(powers - top).sum(axis=0))
        total: Complexes = z * float(self._mean) + logs[:-1] - logs[-1]
        return total

    def damping(self, c: float, t: float, periodic: bool) -> float:
        if not periodic or self.variance < _HALF:
            return 0.0
        # |theta(a + ib)| <= sum_m of the second form's sizes: a wrapped normal density, falling from b = 0 to pi,
        # while theta(a) is at least 1 - 2 e^{-2 pi^2 v} - ... > 0.9998 of its m = 0 term.
        b, v = t * float(self.shift / self.variance), float(self.variance)
        sizes = sum(math.exp(-v * (b + 2 * math.pi * m) ** 2 / 2) for m in range(-3, 4))
        return min(0.0, math.log(sizes + 1e-300) + 3e-4)

    @property
    def reach(self) -> int:
        """Returns a reach beyond which values of X have a probability of about e^-200."""
        return math.isqrt(math.ceil(400 * self.variance)) + 1

    def atoms(self) -> list[tuple[Fraction, arb]] | None:
        if self.variance > 2500:
            return None
        reach, v = self.reach, ball(2 * self.variance)
        half = [(-arb(k * k) / v).exp() for k in range(reach + 1)]
        total = 2 * sum(half[1:], arb(0)) + half[0]
        # The sum of all weights lies between the listed ones and those plus the bound of the rest.
        total = total.union(total * (1 + self.beyond()))
        step = self.shift / self.variance
        return [(self._mean + step * k, half[abs(k)] / total) for k in range(-reach, reach + 1)]

    def beyond(self) -> arb:
        # The weights beyond fall faster than a geometric series from e^{-k^2/2v}, and all weights sum to at least 1.
        first, v = self.reach + 1, ball(self.variance)
        return 2 * (-arb(first * first) / (2 * v)).exp() / -(-arb(first) / v).expm1()

    def zcdp(self) -> tuple[Fraction, Fraction]:
        return self._mean, Fraction(0)

    def group(self, size: int) -> Part:
        return unchecked(DiscreteGaussian, shift=self.shift * size, variance=self.variance)

    @classmethod
    def examples(cls) -> list[Part]:
        return [cls(1, 100), cls(2, "1/2")]


def _theta_dual(u: acb, variance: Fraction) -> acb:
    """Returns theta(u) / sqrt(2 pi v) for |Im u| <= 3.15 and v >= 1/4, by the second sum."""
    v = ball(variance)
    most = 6 if variance < 8 else 2 if variance < 64 else 1
    turn = acb(0, 2 * arb.pi())
    total = sum(((v / 2) * (u + turn * m) ** 2).exp() for m in range(-most, most + 1))
    # |term m| <= e^{v a^2/2} e^{-v (2 pi |m| - 3.15)^2 / 2}; the sizes beyond `most` fall faster than by halves.
    first = v / 2 * (2 * arb.pi() * (most + 1) - arb("3.15")) ** 2
    return total + _around(4 * (v / 2 * u.real**2 - first).exp())


def _theta_direct(u: acb, variance: Fraction) -> acb:
    """Returns theta(u) for v < 1/4, by the first sum around its largest term."""
    v, reach = ball(variance), 10
    middle = round(float((v * u.real).mid()))
    total = sum((u * k - k * k / (2 * v)).exp() for k in range(middle - reach, middle + reach + 1))
    # Terms left out are at least `reach` from v Re u, and fall faster than by halves.
    return total + _around(4 * (v * u.real**2 / 2 - reach**2 / (2 * v)).exp())


def _around(radius: arb) -> acb:
    """Returns the ball around zero with this radius."""
    bound = arb(0, radius.upper())
    return acb(bound, bound)
