"""Randomized response and bounded range: the worst cases behind pure and (epsilon, delta) guarantees.

Response(epsilon, delta): Pr[L = +epsilon] = (1 - delta) e^epsilon / (1 + e^epsilon), Pr[L = -epsilon] the rest of
1 - delta, and L = infinity with probability delta. Every (epsilon, delta)-DP release is a function of this one.
Reference: Kairouz, Oh and Viswanath, ICML 2015.

BoundedRange(epsilon): the log ratio stays in some interval [t - epsilon, t] (the exponential mechanism). Its worst case
for one t is Pr[L = t] = (e^epsilon - e^{epsilon - t}) / (e^epsilon - 1), else L = t - epsilon.
Reference: Dong, Durfee and Rogers, ICML 2020 (n releases fixed in advance; an adaptive sequence can be worse).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dither.exact.numbers import Number, between, positive
from dither.privacy.parts.base import Part


@dataclass(frozen=True)
class Response(Part):
    """Any (epsilon, delta)-DP release.

    >>> Response("1/2").pure
    Fraction(1, 2)
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    def __init__(self, epsilon: Number, delta: Number = 0) -> None:
        object.__setattr__(self, "epsilon", between(epsilon, "epsilon", 0, 10**100))
        object.__setattr__(self, "delta", between(delta, "delta", 0, 1))

    @property
    def pure(self) -> Fraction | None:
        return None if self.delta else self.epsilon

    @property
    def lost(self) -> Fraction:
        return self.delta

    def zcdp(self) -> tuple[Fraction, Fraction]:
        return self.epsilon**2 / 2, self.delta

    def group(self, size: int) -> Part:
        return super().group(size) if self.delta else Response(self.epsilon * size)

    @classmethod
    def examples(cls) -> list[Part]:
        return [cls("1/10"), cls("1/3", "1e-9"), cls(2)]


@dataclass(frozen=True)
class BoundedRange(Part):
    """A release whose log ratio has range at most epsilon, such as the exponential mechanism. Fixed in advance only."""

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))

    @property
    def pure(self) -> Fraction | None:
        return self.epsilon

    def zcdp(self) -> tuple[Fraction, Fraction]:
        return self.epsilon**2 / 8, Fraction(0)

    @classmethod
    def examples(cls) -> list[Part]:
        return [cls("1/10"), cls(1)]
