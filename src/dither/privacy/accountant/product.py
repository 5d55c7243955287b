"""Products of transforms, and the float guide that chooses where to integrate.

Nothing here decides a price: any line Re z = c and any period give a valid bound (see contour.py); the guide only makes
it tight. Sizes of nodes are floats with a margin far above their rounding errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from flint import acb

from dither.privacy.parts.base import Complexes, Floats, Transform

_LEAST, _MOST, _PER_DECADE = 1e-3, 1e9, 55
_ORDERS = np.exp(np.linspace(math.log(_LEAST), math.log(_MOST), 12 * _PER_DECADE))
_RARE = 1e-2  # a smallest order for measures whose rare losses are far larger than their standard deviation
_ALIAS = 21.0  # what the trapezoid rule adds stays below e^-21 = 1e-9 of delta


@dataclass(frozen=True)
class Product:
    """The transform of a sum of independent losses."""

    factors: tuple[tuple[Transform, int], ...]

    @property
    def count(self) -> int:
        return sum(count for _, count in self.factors)

    def value(self, z: acb) -> acb:
        """Returns the product in balls."""
        product = acb(1)
        for factor, count in self.factors:
            product *= factor.phi(z) ** count
        return product

    def log(self, z: Complexes) -> Complexes:
        """Returns the product's logarithm in floats."""
        total: Complexes = np.zeros(len(z), dtype=complex)
        for factor, count in self.factors:
            total += count * factor.log_phi(z)
        return total

    def sizes(self, c: float, t: Floats) -> Floats:
        """Returns upper bounds of ln(|value(c + it)| / value(c)), rounding included."""
        total: Floats = np.zeros(len(t))
        for factor, count in self.factors:
            margin = 1e-12 + 4e-16 * t * factor.spread
            total += count * np.log(np.minimum(1.0, factor.ratios(c, t, count) + margin))
        return total

    def damping(self, c: float, t: float, step: Fraction | None = None) -> float:
        """Bounds ln(|value(c + iu)| / value(c)) from above for u >= t, up to half the period of a common lattice `step`."""
        return sum(
            count * factor.damping(c, t, periodic=step is not None and factor.lattice is not None and factor.lattice[1] == step)
            for factor, count in self.factors
        )

    def lattice(self) -> tuple[Fraction, Fraction] | None:
        """Returns (offset, step) of the sum, or None unless every factor has a lattice."""
        offset, step = Fraction(0), Fraction(0)
        for factor, count in self.factors:
            own = factor.lattice
            if own is None:
                return None
            offset += own[0] * count
            step = _common(step, own[1])
        return (offset, step) if step else None


def _common(a: Fraction, b: Fraction) -> Fraction:
    """Returns the largest step that both are multiples of."""
    return Fraction(math.gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator)


class Logged(Protocol):
    """A measure whose transform has a logarithm in floats."""

    def log(self, z: Complexes) -> Complexes: ...


class Guide:
    """ln of a positive measure's transform on a grid of real orders: where to integrate, and how finely."""

    def __init__(self, whole: Logged, minus: Logged | None, scale: float, rare: bool = False) -> None:
        orders: Floats = _ORDERS / scale
        if rare and orders[0] > _RARE:
            decades = math.log10(orders[0] / _RARE)
            orders = np.concatenate([np.geomspace(_RARE, orders[0], math.ceil(_PER_DECADE * decades), endpoint=False), orders])
        line: Complexes = orders.astype(np.complex128)
        with np.errstate(all="ignore"):
            logs = whole.log(line).real
            if minus is not None:
                logs = logs + np.log(-np.expm1(np.minimum(minus.log(line).real - logs, -1e-300)))
        finite = np.isfinite(logs)
        self.orders: Floats = orders[finite]
        self.logs: Floats = logs[finite]
        # (1 - e^{-x})_+ <= e^{cx} c^c / (c + 1)^{c + 1}
        self.chernoff: Floats = -self.orders * np.log1p(1 / self.orders) - np.log1p(self.orders)

    def order(self, epsilon: float) -> float:
        """Returns the order c for which the integrand on Re z = c is most concentrated."""
        cost = self.logs - self.orders * epsilon - np.log(self.orders) - np.log1p(self.orders)
        return float(self.orders[np.argmin(cost)])

    def epsilon(self, log_delta: float) -> float:
        """Returns a rough epsilon: the Chernoff bound corrected by the saddle's width."""
        bounds = (self.logs - log_delta + self.chernoff) / self.orders
        best = int(np.argmin(bounds))
        c = float(self.orders[best])
        near = slice(max(best - 3, 0), best + 4)
        fit = np.polyfit(self.orders[near] - c, self.logs[near], 2) if len(self.orders[near]) > 3 else [0.0]
        width = max(
            0.0, math.log(max(2 * math.pi * 2 * fit[0], 1e-300)) / 2 + math.log(c) + math.log1p(c) + float(self.chernoff[best])
        )
        return max(0.0, float(bounds[best]) - width / c)

    def log_delta(self, epsilon: float) -> float:
        """Returns the Chernoff bound of ln delta."""
        return min(0.0, float(np.min(self.logs - self.orders * epsilon + self.chernoff)))

    def period(self, c: float, epsilon: float, log_delta: float) -> float:
        """Returns a period P for which the copies delta(epsilon + mP) e^{cmP}, m != 0, are negligible."""
        at = self.logs - self.orders * epsilon + self.chernoff
        period = 1 / c
        while True:
            # The copies above are bounded with orders above c, those below with orders below c or by delta <= 1.
            bounds = at - np.abs(self.orders - c) * period
            above = bounds[self.orders > c].min(initial=math.inf)
            below = bounds[self.orders < c].min(initial=-c * period)
            if max(above, below) < log_delta - _ALIAS or period * c > 1e6:
                return period
            period *= 1.2
