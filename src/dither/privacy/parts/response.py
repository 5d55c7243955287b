"""Randomized response and bounded range: the worst cases behind pure and (epsilon, delta) guarantees.

Response(epsilon, delta): given that L is finite, Pr[L = +epsilon] = e^epsilon / (1 + e^epsilon), else L = -epsilon;
L is infinite with probability delta. Every (epsilon, delta)-DP release is a function of this one.
Reference: Kairouz, Oh and Viswanath, ICML 2015.

BoundedRange(epsilon): the log ratio stays in some interval [t - epsilon, t] (the exponential mechanism). Its worst case
for one t is Pr[L = t] = (e^epsilon - e^t) / (e^epsilon - 1), else L = t - epsilon.
Reference: Dong, Durfee and Rogers, ICML 2020 (n releases fixed in advance; an adaptive sequence can be worse).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import acb, arb

from dither.exact.balls import ball, exp
from dither.exact.numbers import Number, between
from dither.privacy.parts.base import MOST, Complexes, Part, Transform, bounded, unchecked


@dataclass(frozen=True)
class TwoEnds(Transform):
    """Mass 1/(1 + e^{-inner}) at +epsilon and e^{-epsilon} times it at -epsilon.

    inner = epsilon: randomized response. inner = epsilon / steps: the ends of grid Laplace noise; 0: of continuous noise.
    """

    epsilon: Fraction
    inner: Fraction

    @property
    def lattice(self) -> tuple[Fraction, Fraction] | None:
        return self.epsilon, 2 * self.epsilon

    @property
    def spread(self) -> float:
        return float(self.epsilon)

    def atoms(self) -> list[tuple[Fraction, arb]]:
        upper = 1 / (1 + exp(-self.inner))
        return [(self.epsilon, upper), (-self.epsilon, upper * exp(-self.epsilon))]

    def phi(self, z: acb) -> acb:
        e = ball(self.epsilon)
        return ((z * e).exp() + (-(z + 1) * e).exp()) / (1 + exp(-self.inner))

    def log_phi(self, z: Complexes) -> Complexes:
        e = float(self.epsilon)
        logs: Complexes = z * e + np.log(1 + np.exp(-(2 * z + 1) * e)) - math.log1p(math.exp(-float(self.inner)))
        return logs

    def damping(self, c: float, t: float, periodic: bool) -> float:
        if not periodic:
            return 0.0
        # Two atoms: |phi| falls all the way to half its period.
        pair = self.log_phi(np.array([c, complex(c, t)])).real
        return min(0.0, float(pair[1] - pair[0]) + 1e-12)


@dataclass(frozen=True)
class Response(Part):
    """Any (epsilon, delta)-DP release.

    >>> Response("1/2").pure
    Fraction(1, 2)
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    def __init__(self, epsilon: Number, delta: Number = 0) -> None:
        object.__setattr__(self, "epsilon", between(epsilon, "epsilon", 0, MOST))
        object.__setattr__(self, "delta", between(delta, "delta", 0, 1))

    @property
    def top(self) -> Fraction | None:
        return self.epsilon

    @property
    def lost(self) -> Fraction:
        return self.delta

    @property
    def lattice(self) -> tuple[Fraction, Fraction] | None:
        return self.ends.lattice

    @property
    def ends(self) -> TwoEnds:
        return TwoEnds(self.epsilon, self.epsilon)

    @property
    def spread(self) -> float:
        return float(self.epsilon)

    def atoms(self) -> list[tuple[Fraction, arb]]:
        return self.ends.atoms()

    def phi(self, z: acb) -> acb:
        return self.ends.phi(z)

    def log_phi(self, z: Complexes) -> Complexes:
        return self.ends.log_phi(z)

    def damping(self, c: float, t: float, periodic: bool) -> float:
        return self.ends.damping(c, t, periodic)

    def zcdp(self) -> tuple[Fraction, Fraction]:
        return self.epsilon**2 / 2, self.delta

    def group(self, size: int) -> Part:
        if self.delta:
            return super().group(size)
        return unchecked(Response, epsilon=self.epsilon * size, delta=self.delta)

    @classmethod
    def examples(cls) -> list[Part]:
        return [cls("1/10"), cls("1/3", "1e-9"), cls(2)]


@dataclass(frozen=True)
class BoundedRange(Part):
    """A release whose log ratio has range at most epsilon, such as the exponential mechanism. Fixed in advance only.

    Its transform here is that of Response(epsilon), a valid bound; bounded.py has a tighter one for equal releases.
    """

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", bounded(epsilon, "epsilon"))

    @property
    def top(self) -> Fraction | None:
        return self.epsilon

    @property
    def lattice(self) -> tuple[Fraction, Fraction] | None:
        return self.ends.lattice

    @property
    def ends(self) -> TwoEnds:
        return TwoEnds(self.epsilon, self.epsilon)

    @property
    def spread(self) -> float:
        return float(self.epsilon)

    def atoms(self) -> list[tuple[Fraction, arb]]:
        return self.ends.atoms()

    def phi(self, z: acb) -> acb:
        return self.ends.phi(z)

    def log_phi(self, z: Complexes) -> Complexes:
        return self.ends.log_phi(z)

    def damping(self, c: float, t: float, periodic: bool) -> float:
        return self.ends.damping(c, t, periodic)

    def zcdp(self) -> tuple[Fraction, Fraction]:
        return self.epsilon**2 / 8, Fraction(0)

    @classmethod
    def examples(cls) -> list[Part]:
        return [cls("1/10"), cls(1)]
