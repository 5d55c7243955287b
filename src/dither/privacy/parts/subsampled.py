"""Gaussian noise after Poisson subsampling: each unit takes part with probability q.

In units of the sensitivity, Q = N(0, s^2) and P = (1 - q) Q + q N(1, s^2) (a unit added; removing one exchanges P and Q):

    L(x) = ln B(x),   B(x) = 1 - q + q e^u,   u = (x - 1/2) / s^2
    phi(z) = I(z + 1) when a unit is added, I(-z) when one is removed,   I(a) = integral of Q(x) B(x)^a dx.

The integral is taken by the trapezoid rule, whose error for a function analytic in a strip of half-width b is at most
2 M / (e^{2 pi b / step} - 1) with M the largest integral of |integrand| along a line of the strip (Trefethen and Weideman,
SIAM Review 2014, theorem 5.1). In the strip b <= pi s^2 / 2 the phase of B is at most b/s^2, and |B| lies between
B(Re x)/sqrt 2 and B(Re x), so M <= e^{b^2/2s^2 + |Im a| b/s^2} 2^{max(0, -Re a)/2} I(Re a).
By convexity I(a) <= 1 + e^{a(a-1)/2s^2} for real a >= 1 or a <= 0, and Q B^a <= Q + e^{a(a-1)/2s^2} N(a, s^2) bounds the tails.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import acb, arb
from numpy.typing import NDArray

from dither.exact.balls import ball
from dither.exact.numbers import Number, between, positive
from dither.privacy.parts.base import Complexes, Part

_BITS = 72  # the quadrature's relative accuracy; its error is added to the ball
_CHUNK = 64


@dataclass(frozen=True)
class SubsampledGaussian(Part):
    """Poisson-subsampled Gaussian noise of `sigma` (in units of the sensitivity), add/remove neighbours."""

    q: Fraction
    sigma: Fraction
    removed: bool = False

    def __init__(self, q: Number, sigma: Number, removed: bool = False) -> None:
        object.__setattr__(self, "q", between(q, "q", 0, 1, open_low=True))
        object.__setattr__(self, "sigma", positive(sigma, "sigma"))
        object.__setattr__(self, "removed", bool(removed))

    @property
    def top(self) -> Fraction | None:
        return None

    @property
    def spread(self) -> float:
        s = float(self.sigma)
        return (0.5 + 9 * s) / s**2

    def reverse(self) -> Part:
        return SubsampledGaussian(self.q, self.sigma, not self.removed)

    def _strip(self, t: float, c: float, bits: int) -> tuple[float, float]:
        """(half-width b, step) that make the trapezoid rule accurate to `bits` bits."""
        s = float(self.sigma)
        b = min(math.pi * s * s / 2, s * math.sqrt(1.4 * bits))
        need = b * b / (2 * s * s) + abs(t) * b / (s * s) + 0.35 * c + 0.7 * (bits + 4)
        return b, 2 * math.pi * b / need

    def phi(self, z: acb) -> acb:
        a = -z if self.removed else z + 1
        s, q, c, t = ball(self.sigma), ball(self.q), float(z.real.mid()), float(z.imag.mid())
        b, step = self._strip(t, c, _BITS)
        real_a, reach = float(a.real.mid()), float(self.sigma) * math.sqrt(1.4 * _BITS)
        low, high = math.floor((min(0.0, real_a) - reach) / step), math.ceil((max(0.0, real_a) + reach) / step)
        h, spread = arb(step), 2 * s * s
        total = acb(0)
        for k in range(low, high + 1):
            x = h * k
            base = (1 - q + q * ((2 * x - 1) / spread).exp()).log()
            total += (a * base - x * x / spread).exp()
        bulk = 1 + (a.real * (a.real - 1) / spread).exp()
        strip = arb(b)
        growth = (strip * strip / spread + 2 * abs(a.imag) * strip / spread).exp() * arb(2) ** (abs(a.real) / 2)
        wrong = 2 * growth * bulk / ((2 * arb.pi() * strip / h).exp() - 1)
        wrong += 2 * bulk * (1 + h / s) * (-(arb(reach) ** 2) / spread).exp()
        error = arb(0, wrong.upper())
        return total * h / ((2 * arb.pi()).sqrt() * s) + acb(error, error)

    def log_phi(self, z: Complexes) -> Complexes:
        a = -z if self.removed else z + 1
        found = np.empty(len(a), dtype=complex)
        for first in range(0, len(a), _CHUNK):
            found[first : first + _CHUNK] = self._log_integral(a[first : first + _CHUNK])
        return found

    def _log_integral(self, a: Complexes) -> Complexes:
        """ln I(a) in floats; orders beyond 500 take the normal part alone, which is all that is left of I there."""
        s, q = float(self.sigma), float(self.q)
        near = np.clip(a.real, -500, 500) + 1j * a.imag
        _, step = self._strip(float(np.abs(a.imag).max()), 0.0, 46)
        low, high = min(0.0, float(near.real.min())) - 9 * s, max(0.0, float(near.real.max())) + 9 * s
        x = np.arange(math.floor(low / step), math.ceil(high / step) + 1) * step
        u = (x - 0.5) / s**2
        base = np.logaddexp(math.log1p(-q) if q < 1 else -math.inf, math.log(q) + u)
        powers: Complexes = np.multiply.outer(near, base) - x * x / (2 * s * s)
        top = powers.real.max(axis=1)
        sums = np.exp(powers - top[:, None]).sum(axis=1)
        logs: Complexes = top + np.log(sums) + math.log(step / (s * math.sqrt(2 * math.pi)))
        far = np.abs(a.real) > 500
        logs[far] = np.maximum(0, math.log(q) * np.maximum(a.real[far], 1) + (a.real * (a.real - 1))[far] / (2 * s * s))
        return logs

    def damping(self, c: float, t: float, periodic: bool) -> float:
        # By parts, |phi(c + it)| <= TV(G)/t with G = Q e^{aL}/L'. Its slope vanishes where x = (a + 1) w(x) - 1 for a
        # logistic w, so at most three times, all between -1 and a: TV(G) <= 4 max G.
        s, q, a = float(self.sigma), float(self.q), -c if self.removed else c + 1
        x: NDArray[np.float64] = np.linspace(min(-1.0, a), max(-1.0, a), 2001)
        u = (x - 0.5) / s**2
        base = np.logaddexp(math.log1p(-q) if q < 1 else -math.inf, math.log(q) + u)
        # Q = e^{-x^2/2s^2} / (s sqrt(2 pi)) and 1/L' = s^2 B / (q e^u).
        log_g = -x * x / (2 * s * s) + (a + 1) * base - math.log(q) - u + math.log(s / math.sqrt(2 * math.pi))
        slack = float(x[1] - x[0]) / 2 * 2 * (abs(a) + 2) / s**2
        size = float(self.log_phi(np.array([complex(c)]))[0].real)
        return min(0.0, math.log(4 / t) + float(log_g.max()) + slack - size + 1e-9)

    def zcdp(self) -> tuple[Fraction, Fraction]:
        # Renyi divergence is quasi-convex, so mixing in the neighbour's own law cannot raise it.
        return 1 / (2 * self.sigma**2), Fraction(0)

    @classmethod
    def examples(cls) -> list[Part]:
        return [cls("1/100", 1), cls("1/2", 2)]
