"""Laplace noise, continuous and on a grid.

Continuous, scale sensitivity/epsilon: L has an atom 1/2 at +epsilon, an atom e^{-epsilon}/2 at -epsilon and the density
e^{(l - epsilon)/2}/4 between, so

    phi(z) = ((z + 1) e^{z epsilon} + z e^{-(z + 1) epsilon}) / (2z + 1).

On a grid, where one unit moves the answer by k steps and a = e^{-epsilon/k}: L = epsilon(1 - 2x/k) for x = 0..k with
weights 1, (1 - a) a^x (0 < x < k), a^k, all divided by 1 + a; with w = e^{-(2z + 1) epsilon/k}

    phi(z) = e^{z epsilon} (1 + w^k + (1 - a)(w - w^k)/(1 - w)) / (1 + a).

k = 1 is randomized response; k to infinity is the continuous law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import SupportsIndex

import numpy as np
from flint import acb, arb

from dither.exact.balls import ball, exp
from dither.exact.numbers import Number, whole
from dither.privacy.parts.base import Complexes, Part, bounded, unchecked
from dither.privacy.parts.response import TwoEnds


@dataclass(frozen=True)
class Laplace(Part):
    """Continuous Laplace noise of scale sensitivity / epsilon."""

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", bounded(epsilon, "epsilon"))

    @property
    def top(self) -> Fraction | None:
        return self.epsilon

    @property
    def ends(self) -> TwoEnds:
        return TwoEnds(self.epsilon, Fraction(0))

    @property
    def spread(self) -> float:
        return float(self.epsilon)

    def phi(self, z: acb) -> acb:
        e = ball(self.epsilon)
        return ((z + 1) * (z * e).exp() + z * (-(z + 1) * e).exp()) / (2 * z + 1)

    def log_phi(self, z: Complexes) -> Complexes:
        e = float(self.epsilon)
        logs: Complexes = z * e + np.log((z + 1 + z * np.exp(-(2 * z + 1) * e)) / (2 * z + 1))
        return logs

    def damping(self, c: float, t: float, periodic: bool) -> float:
        # The atoms keep their size; the density's share is at most (e^{c eps} + e^{-(c+1) eps}) / (4t).
        left = math.exp(-(2 * c + 1) * float(self.epsilon))
        share = (1 + left) * (0.5 + 0.25 / t) / ((c + 1 + c * left) / (2 * c + 1))
        return min(0.0, math.log(share) + 1e-12)

    def zcdp(self) -> tuple[Fraction, Fraction]:
        return self.epsilon**2 / 2, Fraction(0)

    def group(self, size: int) -> Part:
        return unchecked(Laplace, epsilon=self.epsilon * size)

    @classmethod
    def examples(cls) -> list[Part]:
        return [cls("1/10"), cls(1)]


@dataclass(frozen=True)
class DiscreteLaplace(Part):
    """Two-sided geometric noise on a grid, where one unit moves the answer by `steps` grid steps, at price epsilon."""

    epsilon: Fraction
    steps: int

    def __init__(self, epsilon: Number, steps: SupportsIndex = 1) -> None:
        object.__setattr__(self, "epsilon", bounded(epsilon, "epsilon"))
        object.__setattr__(self, "steps", whole(steps, "steps", least=1))

    @property
    def top(self) -> Fraction | None:
        return self.epsilon

    @property
    def lattice(self) -> tuple[Fraction, Fraction] | None:
        return self.epsilon, 2 * self.epsilon / self.steps

    @property
    def ends(self) -> TwoEnds:
        return TwoEnds(self.epsilon, self.epsilon / self.steps)

    @property
    def spread(self) -> float:
        return float(self.epsilon)

    def atoms(self) -> list[tuple[Fraction, arb]] | None:
        return None if self.steps > 64 else [*self.ends.atoms(), *self.inner()]

    def inner(self) -> list[tuple[Fraction, arb]]:
        """Returns the atoms between the ends."""
        k, a = self.steps, exp(-self.epsilon / self.steps)
        return [(self.epsilon * (k - 2 * x) / k, (1 - a) / (1 + a) * a**x) for x in range(1, k)]

    def phi(self, z: acb) -> acb:
        if self.steps == 1:
            return self.ends.phi(z)
        step = self.epsilon / self.steps
        a, rate = exp(-step), -(2 * z + 1)
        w, last = (rate * ball(step)).exp(), (rate * ball(self.epsilon)).exp()
        inner = -ball(-step).expm1() * (w - last) / -(rate * ball(step)).expm1()
        return (z * ball(self.epsilon)).exp() * (1 + last + inner) / (1 + a)

    def log_phi(self, z: Complexes) -> Complexes:
        if self.steps == 1:
            return self.ends.log_phi(z)
        e, step = float(self.epsilon), float(self.epsilon / self.steps)
        rate = -(2 * z + 1)
        w, last = np.exp(rate * step), np.exp(rate * e)
        inner = math.expm1(-step) * (w - last) / np.expm1(rate * step)
        logs: Complexes = z * e + np.log((1 + last + inner) / (1 + math.exp(-step)))
        return logs

    def damping(self, c: float, t: float, periodic: bool) -> float:
        return self.ends.damping(c, t, periodic) if self.steps == 1 else 0.0

    def zcdp(self) -> tuple[Fraction, Fraction]:
        return self.epsilon**2 / 2, Fraction(0)

    def group(self, size: int) -> Part:
        return unchecked(DiscreteLaplace, epsilon=self.epsilon * size, steps=self.steps * size)

    @classmethod
    def examples(cls) -> list[Part]:
        return [cls("1/10", 1), cls("1/2", 3), cls(1, 10)]
