"""Laplace noise, continuous and on a grid."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import SupportsIndex

from dither.exact.numbers import Number, positive, whole
from dither.privacy.parts.base import Part


@dataclass(frozen=True)
class Laplace(Part):
    """Continuous Laplace noise of scale sensitivity / epsilon."""

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))

    @property
    def pure(self) -> Fraction | None:
        return self.epsilon

    def zcdp(self) -> tuple[Fraction, Fraction]:
        return self.epsilon**2 / 2, Fraction(0)

    def group(self, size: int) -> Part:
        return Laplace(self.epsilon * size)

    @classmethod
    def examples(cls) -> list[Part]:
        return [cls("1/10"), cls(1)]


@dataclass(frozen=True)
class DiscreteLaplace(Part):
    """Two-sided geometric noise on a grid, where one unit moves the answer by `steps` grid steps, at price epsilon."""

    epsilon: Fraction
    steps: int

    def __init__(self, epsilon: Number, steps: SupportsIndex = 1) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "steps", whole(steps, "steps", least=1))

    @property
    def pure(self) -> Fraction | None:
        return self.epsilon

    def zcdp(self) -> tuple[Fraction, Fraction]:
        return self.epsilon**2 / 2, Fraction(0)

    def group(self, size: int) -> Part:
        return DiscreteLaplace(self.epsilon * size, self.steps * size)

    @classmethod
    def examples(cls) -> list[Part]:
        return [cls("1/10", 1), cls("1/2", 3), cls(1, 10)]
