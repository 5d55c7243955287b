"""What every part of a curve states about itself; the accountant reads nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any

from dither.errors import PriceError

_registry: list[type[Part]] = []


class Part(ABC):
    """One release on a worst pair of neighbours. Frozen and hashable; its fields are exact rationals."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _registry.append(cls)

    @property
    @abstractmethod
    def pure(self) -> Fraction | None:
        """The largest log ratio, or None if it is unbounded."""

    @property
    def lost(self) -> Fraction:
        """Pr[log ratio is infinite]."""
        return Fraction(0)

    @abstractmethod
    def zcdp(self) -> tuple[Fraction, Fraction]:
        """(rho, delta) of a zCDP statement."""

    def group(self, size: int) -> Part:
        """The same release seen by a group of `size` units."""
        if size == 1:
            return self
        raise PriceError(
            f"{type(self).__name__} has no group statement on the curve.",
            fix="state the loss as Pure, Approx or ZCDP first and take its group(k).",
        )

    @classmethod
    @abstractmethod
    def examples(cls) -> list[Part]:
        """A few small instances, for laws that run over every part."""

    def order(self) -> tuple[object, ...]:
        """The place in the canonical order of a curve."""
        return (type(self).__name__, *vars(self).values())


def registry() -> list[type[Part]]:
    """Every kind of part, in the order of definition."""
    return list(_registry)
