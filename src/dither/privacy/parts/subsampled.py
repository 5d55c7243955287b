"""Gaussian noise after Poisson subsampling: each unit takes part with probability q.

In units of the sensitivity, Q = N(0, s^2) and P = (1 - q) Q + q N(1, s^2) (a unit added; removing one exchanges P and Q):

    L(x) = ln B(x),   B(x) = 1 - q + q e^u,   u = (x - 1/2) / s^2
    phi(z) = I(z + 1) when a unit is added, I(-z) when one is removed,   I(a) = integral of Q(x) B(x)^a dx.

The integral is taken by the trapezoid rule, whose error for a function analytic in a strip of half-width b is at most
2 M / (e^{2 pi b / step} - 1) with M the largest integral of |integrand| along a line of the strip (Trefethen and Weideman,
SIAM Review 2014, theorem 5.1). In the strip b <= pi s^2 / 2 the phase of B is at most b/s^2, and |B| lies between
B(Re x)/sqrt 2 and B(Re x), so M <= e^{b^2/2s^2 + |Im a| b/s^2} 2^{max(0, -Re a)/2} I(Re a).
For real a, Q B^a <= k_0 Q + k_1 N(a, s^2) bounds I(a) <= k_0 + k_1 and the tails, where with g = e^{a(a-1)/2s^2} any of these
pairs (k_0, k_1) will do: (1 - q, q g) by convexity for a >= 1 or a <= 0; 2^{a-1} ((1 - q)^a, q^a g) for a >= 1;
((1 - q)^a, 0) for a <= 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import acb, arb, ctx

from dither.exact.balls import ball, upper, working
from dither.exact.numbers import Number, between, flag, positive
from dither.privacy.parts.base import MOST, Floats, Part, unchecked
from dither.privacy.parts.clouds import Field, log_mixed
from dither.privacy.parts.gaussian import Gaussian
from dither.privacy.parts.sampled import Law, SampledPart

_BITS = 72  # relative accuracy of the quadrature; its error is added to the ball
_LEAST_SIGMA = Fraction(1, 4)


@dataclass(frozen=True)
class SubsampledGaussian(SampledPart):
    """Poisson-subsampled Gaussian noise of `sigma` (in units of the sensitivity), add/remove neighbours.

    `removed` is the direction of this transform. A curve does not store it, because its price covers both.
    """

    q: Fraction
    sigma: Fraction
    removed: bool = False

    def __init__(self, q: Number, sigma: Number, removed: bool = False) -> None:
        object.__setattr__(self, "q", between(q, "q", 0, 1, open_low=True))
        object.__setattr__(self, "sigma", positive(sigma, "sigma"))
        between(1 / self.sigma**2, "1 / sigma^2", 0, MOST)
        object.__setattr__(self, "removed", flag(removed, "removed"))

    @property
    def top(self) -> Fraction | None:
        # Removing a unit never shows more than -ln(1 - q).
        if not self.removed or self.q == 1:
            return None
        with working(128):
            return upper(-ball(1 - self.q).log())

    @property
    def spread(self) -> float:
        s = float(self.sigma)
        return (0.5 + 9 * s) / s**2

    def turned(self, removed: bool) -> SubsampledGaussian:
        return unchecked(SubsampledGaussian, q=self.q, sigma=self.sigma, removed=removed)

    def simpler(self) -> Part:
        # With little noise the quadrature is long and subsampling hides little. Hockey-stick divergence is jointly
        # convex, and P and Q mix the pair (N(1, s^2), Q) or its reverse with a pair of equal laws.
        return self if self.sigma >= _LEAST_SIGMA else Gaussian(1 / self.sigma**2)

    def _strip(self, t: float, c: float, bits: int) -> tuple[float, float]:
        """Returns (half-width b, step) that make the trapezoid rule accurate to `bits` bits."""
        s = float(self.sigma)
        b = min(math.pi * s * s / 2, s * math.sqrt(1.4 * bits))
        need = b * b / (2 * s * s) + abs(t) * b / (s * s) + 0.35 * c + 0.7 * (bits + 4)
        # A few steps per octave, so that nodes share their points.
        return b, 2.0 ** (math.floor(4 * math.log2(2 * math.pi * b / need)) / 4)

    def _bulk(self, a: arb) -> arb:
        """Returns k_0 + k_1 of the header, the smaller of two choices."""
        q, grown = ball(self.q), (a * (a - 1) / (2 * ball(self.sigma) ** 2)).exp()
        one = 1 - q + q * grown
        if self.removed:
            other = (1 - q) ** a if self.q < 1 else one
        else:
            other = arb(2) ** (a - 1) * ((1 - q) ** a + q**a * grown)
        return one if one < other else other

    def _least(self, a: arb) -> arb:
        """Returns a lower bound of I(a): by convexity, or one of the two terms of B."""
        if self.removed or self.q == 1:
            return arb(1)
        q = ball(self.q)
        return ((1 - q) ** a).max(q**a * (a * (a - 1) / (2 * ball(self.sigma) ** 2)).exp())

    def phi(self, z: acb) -> acb:
        a = -z if self.removed else z + 1
        s = ball(self.sigma)
        bulk = self._bulk(a.real)
        bits = _BITS + max(0, int(float((bulk / self._least(a.real)).log()) * 1.45))
        b, step = self._strip(float(z.imag.mid()), float(z.real.mid()), bits)
        real_a, reach = float(a.real.mid()), float(self.sigma) * math.sqrt(1.4 * bits)
        low, high = math.floor((min(0.0, real_a) - reach) / step), math.ceil((max(0.0, real_a) + reach) / step)
        h, spread, strip = arb(step), 2 * s * s, arb(b)
        total = acb(0)
        for base, power in _points(self.q, self.sigma, step, low, high, ctx.prec):
            total += (a * base - power).exp()
        growth = (strip * strip / spread + 2 * abs(a.imag) * strip / spread).exp() * arb(2) ** (abs(a.real) / 2)
        wrong = 2 * growth * bulk / ((2 * arb.pi() * strip / h).exp() - 1)
        wrong += 2 * bulk * (1 + h / s) * (-(arb(reach) ** 2) / spread).exp()
        error = arb(0, wrong.upper())
        return total * h / ((2 * arb.pi()).sqrt() * s) + acb(error, error)

    def law(self, share: float) -> Law:
        s = float(self.sigma)
        reach = s * math.sqrt(-2 * share)
        top = math.log(s * math.sqrt(2 * math.pi))

        def height(x: Floats) -> Floats:
            return x * x / (2 * s * s) + top

        def least(a: Floats, b: Floats) -> Floats:
            return height(np.where(a > 0, a, np.minimum(b, 0.0)))

        field = Field(height, least, 1 / (2 * s * s), 1 / s**2, -1 / (2 * s * s), -reach, 1 + reach)
        outside = math.erfc(reach / (s * math.sqrt(2))) * (1 + 1e-9)
        return Law(np.zeros(0), np.zeros(0), field, (outside, outside))

    def decay(self, c: float, law: Law) -> float:
        """Returns ln V: by parts, V is the total variation of G = Q e^{aL}/L' on the interval, from 0 and back to 0.

        The slope of G vanishes where x = (a + 1) w(x) - 1 for a logistic w, so at most three times, all between -1 and a: G
        has at most two peaks, also on a part of the line, and V <= 4 max G. Elsewhere G is largest at an end.
        """
        if law.field is None:
            return math.inf
        s, q, a = float(self.sigma), float(self.q), -c if self.removed else c + 1
        low, high = law.field.low, law.field.high
        first, last = (min(max(end, low), high) for end in (min(-1.0, a), max(-1.0, a)))
        x: Floats = np.concatenate([np.linspace(first, last, 2001), [low, high]])
        u = (x - 0.5) / s**2
        mixed = log_mixed(q, u)
        # Q = e^{-x^2/2s^2} / (s sqrt(2 pi)) and 1/L' = s^2 B / (q e^u).
        log_g = -x * x / (2 * s * s) + (a + 1) * mixed - math.log(q) - u + math.log(s / math.sqrt(2 * math.pi))
        # Between points ln G rises by at most half a step times its slope, ((a + 1) w - x - 1) / s^2, and w grows with x.
        slopes = (abs(a + 1) * np.exp(math.log(q) + u - mixed) + np.abs(x) + (last - first) / 1000 + 1) / s**2
        most = float((log_g[:2001] + (last - first) / 4000 * np.append(slopes[1:2001], slopes[2000])).max())
        return math.log(4) + max(most, float(log_g[2001:].max())) + 1e-9

    def zcdp(self) -> tuple[Fraction, Fraction]:
        # Renyi divergence is quasi-convex, so mixing in the neighbour's own law cannot raise it.
        return 1 / (2 * self.sigma**2), Fraction(0)

    @classmethod
    def examples(cls) -> list[Part]:
        return [cls("1/100", 1), cls("1/2", 2)]


@lru_cache(maxsize=64)
def _points(q: Fraction, sigma: Fraction, step: float, low: int, high: int, bits: int) -> tuple[tuple[arb, arb], ...]:
    """Returns (ln B(x), x^2 / 2 sigma^2) at the points x = step * k, at a working precision of `bits`."""
    share, spread, h = ball(q), 2 * ball(sigma) ** 2, arb(step)
    points = []
    for k in range(low, high + 1):
        x = h * k
        points.append(((1 - share + share * ((2 * x - 1) / spread).exp()).log(), x * x / spread))
    return tuple(points)
