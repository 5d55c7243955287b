"""Defines a part of a loss curve: the only interface that the accountant reads.

A part is the law of L = ln(P/Q) under P for its worst pair (P, Q) of output laws on neighbours. The accountant works with

    phi(z) = E[e^{zL}; L finite] / Pr[L finite]

in balls where the value decides a price, and in floats where it only guides a search.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from flint import acb, arb
from numpy.typing import NDArray

from dither.errors import PriceError
from dither.exact.numbers import Number, between

Complexes = NDArray[np.complex128]
Floats = NDArray[np.float64]

# The largest epsilon or squared mu that is accepted: e^(10^6) protects nobody, and floats that guide searches stay far
# from overflow. Sums, repetitions and groups may exceed it; they are then priced by their largest loss or by zCDP.
MOST = 10**6

Made = TypeVar("Made")

_registry: list[type[Part]] = []


def bounded(value: Number, name: str) -> Fraction:
    """Returns the exact rational. Refuses values outside (0, MOST]."""
    return between(value, name, 0, MOST, open_low=True)


def unchecked(kind: type[Made], **fields: object) -> Made:
    """Builds a frozen value from exact fields without checks. Sums and groups use it, for values of any size."""
    made = object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


class Transform(ABC):
    """The transform of a positive measure, and known facts about its support."""

    @property
    def lattice(self) -> tuple[Fraction, Fraction] | None:
        """Returns (offset, step) with L always in offset + step * integers, or None if there is no such step."""
        return None

    def atoms(self) -> list[tuple[Fraction, arb]] | None:
        """Returns the values of L with their probabilities as balls, all but `beyond`; None if there are too many."""
        return None

    def beyond(self) -> arb:
        """Returns a bound of the probability of values that `atoms` leaves out."""
        return arb(0)

    @abstractmethod
    def phi(self, z: acb) -> acb:
        """Returns phi in balls, for Re z > 0."""

    @abstractmethod
    def log_phi(self, z: Complexes) -> Complexes:
        """Returns ln phi in floats, on any branch, Re z > 0. Good to 1e-12 of phi(Re z) while |Im z| * spread < 1000."""

    @property
    @abstractmethod
    def spread(self) -> float:
        """Returns how far L typically reaches: float phases are off by about |Im z| * spread * 1e-16."""

    def ratios(self, c: float, t: Floats, count: int) -> Floats:
        """Returns |phi(c + it)| / phi(c) in floats, or an upper bound of it whose power `count` is negligible."""
        logs = self.log_phi(np.concatenate([[c + 0j], c + 1j * t])).real
        sizes: Floats = np.exp(np.minimum(0, logs[1:] - logs[0]))
        return sizes

    def damping(self, c: float, t: float, periodic: bool) -> float:
        """Bounds ln(|phi(c + iu)| / phi(c)) from above for all u >= t (up to half this part's period if periodic)."""
        return 0.0


class Part(Transform):
    """One release on a worst pair of neighbours. Frozen and hashable; its fields are exact rationals."""

    def __init_subclass__(cls, abstract: bool = False, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not abstract:
            _registry.append(cls)

    @property
    @abstractmethod
    def top(self) -> Fraction | None:
        """Returns the largest finite log ratio in this direction, or None if there is none."""

    @property
    def lost(self) -> Fraction:
        """Returns Pr[log ratio is infinite]."""
        return Fraction(0)

    @property
    def pure(self) -> Fraction | None:
        """Returns the pure epsilon, which holds in both directions, or None if there is none."""
        there, back = self.top, self.reverse().top
        return None if self.lost or there is None or back is None else max(there, back)

    @property
    def ends(self) -> Transform | None:
        """Returns only the atoms at the two ends of L, or None if L has no heavy atoms."""
        return None

    def reverse(self) -> Part:
        """Returns the same release with the neighbours exchanged."""
        return self

    def stated(self) -> Part:
        """Returns the same release in the direction that a curve stores. Prices always cover both directions."""
        return self

    def simpler(self) -> Part:
        """Returns a part that dominates this one in both directions and is cheap to compose (by default itself)."""
        return self

    @abstractmethod
    def zcdp(self) -> tuple[Fraction, Fraction]:
        """Returns (rho, delta) of a zCDP statement."""

    def group(self, size: int) -> Part:
        """Returns the same release for a group of `size` units."""
        if size == 1:
            return self
        raise PriceError(
            f"{type(self).__name__} has no group statement on the curve.",
            fix="state the loss as Pure, Approx or ZCDP first and take its group(k).",
        )

    @classmethod
    @abstractmethod
    def examples(cls) -> list[Part]:
        """Returns a few small instances, for laws that run over every part."""

    def order(self) -> tuple[object, ...]:
        """Returns the sort key in the canonical order of a curve."""
        return (type(self).__name__, *vars(self).values())


def registry() -> list[type[Part]]:
    """Returns every kind of part, in the order of definition."""
    return list(_registry)
