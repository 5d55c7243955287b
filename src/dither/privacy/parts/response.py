"""Randomized response, of two and of more values, and bounded range: the worst cases behind many guarantees.

Response(epsilon, delta): given that L is finite, Pr[L = +epsilon] = e^epsilon / (1 + e^epsilon), else L = -epsilon;
L is infinite with probability delta. Every (epsilon, delta)-DP release is a function of this one.
Reference: Kairouz, Oh and Viswanath, ICML 2015.

KaryResponse(epsilon, k): each of k values is reported with one probability if it is the truth and with another if not, a
factor e^epsilon apart. Replacing the truth x by x' exchanges the probabilities of two reports and leaves the other k - 2 as
they are, so with w = k - 2 if the truth is the likelier report, and (k - 2) e^epsilon if it is the less likely one,

    Pr[L = +epsilon] : Pr[L = 0] : Pr[L = -epsilon] = e^epsilon : w : 1.

All pairs x, x' have this law. A smaller epsilon is the same response, followed by reporting anything at all now and then.

BoundedRange(epsilon): the log ratio stays in some interval [t - epsilon, t] (the exponential mechanism). Its worst case
for one t is Pr[L = t] = (e^epsilon - e^t) / (e^epsilon - 1), else L = t - epsilon.
Reference: Dong, Durfee and Rogers, ICML 2020 (n releases fixed in advance; an adaptive sequence can be worse).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import SupportsIndex

import numpy as np
from flint import acb, arb

from dither.exact.balls import ball, exp
from dither.exact.numbers import Number, between, flag, whole
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
class KaryResponse(Part):
    """Randomized response over `categories` values, for a replaced value. `truthful`: the truth is the likelier report.

    >>> KaryResponse("1/2", 2).atoms()[1] == KaryResponse("1/2", 3).atoms()[1]
    False
    """

    epsilon: Fraction
    categories: int
    truthful: bool = True

    def __init__(self, epsilon: Number, categories: SupportsIndex, truthful: bool = True) -> None:
        object.__setattr__(self, "epsilon", bounded(epsilon, "epsilon"))
        object.__setattr__(self, "categories", whole(categories, "categories", least=2))
        object.__setattr__(self, "truthful", flag(truthful, "truthful"))

    @property
    def top(self) -> Fraction | None:
        return self.epsilon

    @property
    def lattice(self) -> tuple[Fraction, Fraction] | None:
        return self.epsilon, self.epsilon if self.categories > 2 else 2 * self.epsilon

    @property
    def ends(self) -> Transform:
        return self

    @property
    def spread(self) -> float:
        return float(self.epsilon)

    def _same(self) -> arb:
        """Returns w / e^epsilon of the header."""
        same = arb(self.categories - 2)
        return same * exp(-self.epsilon) if self.truthful else same

    def atoms(self) -> list[tuple[Fraction, arb]]:
        same, last = self._same(), exp(-self.epsilon)
        total = 1 + same + last
        listed = [(self.epsilon, 1 / total), (-self.epsilon, last / total)]
        return listed if self.categories == 2 else [*listed, (Fraction(0), same / total)]

    def phi(self, z: acb) -> acb:
        e, same = ball(self.epsilon), self._same()
        return ((z * e).exp() + same + (-(z + 1) * e).exp()) / (1 + same + (-e).exp())

    def log_phi(self, z: Complexes) -> Complexes:
        e, same = float(self.epsilon), float(self._same())
        logs: Complexes = z * e + np.log(1 + same * np.exp(-z * e) + np.exp(-(2 * z + 1) * e))
        logs -= math.log(1 + same + math.exp(-e))
        return logs

    def damping(self, c: float, t: float, periodic: bool) -> float:
        if not periodic:
            return 0.0
        # |phi|^2 is a quadratic function of cos(t epsilon) with a positive leading term: its largest value is at an end.
        half = math.pi / float(self.lattice[1]) if self.lattice else math.inf
        sizes = self.log_phi(np.array([c, complex(c, t), complex(c, half)])).real
        return min(0.0, float(sizes[1:].max() - sizes[0]) + 1e-12)

    def zcdp(self) -> tuple[Fraction, Fraction]:
        return self.epsilon**2 / 2, Fraction(0)

    def group(self, size: int) -> Part:
        return self if size == 1 else unchecked(Response, epsilon=self.epsilon * size, delta=Fraction(0))

    @classmethod
    def examples(cls) -> list[Part]:
        return [cls("1/10", 2), cls("1/2", 5), cls(2, 100), cls(1, 3, truthful=False)]


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
