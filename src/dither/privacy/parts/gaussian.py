"""Gaussian noise: continuous, on the integers, and after Poisson subsampling."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import SupportsIndex

from dither.exact.numbers import Number, between, positive, whole
from dither.privacy.parts.base import Part


@dataclass(frozen=True)
class Gaussian(Part):
    """Continuous Gaussian noise; mu2 = (sensitivity / sigma)^2. L is normal with mean mu2/2 and variance mu2."""

    mu2: Fraction

    def __init__(self, mu2: Number) -> None:
        object.__setattr__(self, "mu2", positive(mu2, "mu2"))

    @property
    def pure(self) -> Fraction | None:
        return None

    def zcdp(self) -> tuple[Fraction, Fraction]:
        return self.mu2 / 2, Fraction(0)

    def group(self, size: int) -> Part:
        return Gaussian(self.mu2 * size * size)

    @classmethod
    def examples(cls) -> list[Part]:
        return [cls("1/100"), cls(1)]


@dataclass(frozen=True)
class DiscreteGaussian(Part):
    """Pr[noise = k] proportional to exp(-k^2 / (2 variance)) on the integers; one unit moves the answer by `shift`."""

    shift: int
    variance: Fraction

    def __init__(self, shift: SupportsIndex, variance: Number) -> None:
        object.__setattr__(self, "shift", whole(shift, "shift", least=1))
        object.__setattr__(self, "variance", positive(variance, "variance"))

    @property
    def pure(self) -> Fraction | None:
        return None

    def zcdp(self) -> tuple[Fraction, Fraction]:
        return self.shift * self.shift / (2 * self.variance), Fraction(0)

    def group(self, size: int) -> Part:
        return DiscreteGaussian(self.shift * size, self.variance)

    @classmethod
    def examples(cls) -> list[Part]:
        return [cls(1, 100), cls(2, "1/2")]


@dataclass(frozen=True)
class SubsampledGaussian(Part):
    """Each unit takes part with probability q, then Gaussian noise of `sigma` (in units of the sensitivity); add/remove."""

    q: Fraction
    sigma: Fraction

    def __init__(self, q: Number, sigma: Number) -> None:
        object.__setattr__(self, "q", between(q, "q", 0, 1, open_low=True))
        object.__setattr__(self, "sigma", positive(sigma, "sigma"))

    @property
    def pure(self) -> Fraction | None:
        return None

    def zcdp(self) -> tuple[Fraction, Fraction]:
        # Renyi divergence is quasi-convex, so mixing in the neighbour's own law cannot raise it.
        return 1 / (2 * self.sigma**2), Fraction(0)

    @classmethod
    def examples(cls) -> list[Part]:
        return [cls("1/100", 1), cls("1/2", 2)]
