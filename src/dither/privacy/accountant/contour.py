"""Bounds delta(epsilon) of a sum of independent losses from above, by one line integral.

With phi(z) = E[e^{zL}] and any c > 0,

    delta(epsilon) = E[(1 - e^{epsilon - L})_+] = 1/(2 pi i) * integral over Re z = c of phi(z) e^{-z epsilon} / (z (z + 1)) dz.

Why every step errs upward:
1. The trapezoid rule of step h gives sum over m of delta(epsilon + 2 pi m/h) e^{2 pi c m/h} by Poisson summation. All
   terms are >= 0 and m = 0 is delta(epsilon).
2. Smoothing multiplies the integrand by e^{tau^2 (z^2 + z)/2}: one more independent Gaussian loss N with E[e^{-N}] = 1.
   (1 - e^{epsilon - L - N})_+ is convex in e^{-N}, so its mean is at least (1 - e^{epsilon - L})_+, for any positive measure.
3. Nodes left out are added at an upper bound of their size: |phi(c + it)| <= phi(c), damped as each part proves.
4. The other nodes are computed in balls, and the ball's upper end is used.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from flint import acb, arb

from dither.exact.balls import ball
from dither.privacy.accountant.product import Guide, Product
from dither.privacy.parts.base import Floats, unchecked
from dither.privacy.parts.gaussian import Gaussian

MOST_NODES = 1 << 17
MOST_BALLS = 1500
_TAIL = 21.0
_DROPPED = 5e-8  # the share of nodes that are bounded instead of computed
_SMOOTHING = 1.5e-7  # the relative rise of epsilon that smoothing may cause


class Contour:
    """An upper bound of the delta of `whole` (minus the sub-measure `minus`, if given), as a function of epsilon."""

    def __init__(
        self, whole: Product, minus: Product | None, guide: Guide, epsilon: float, log_delta: float, smooth: bool
    ) -> None:
        c = guide.order(epsilon)
        self.h = 2 * math.pi / guide.period(c, epsilon, log_delta)
        self.c = c
        head = float(np.interp(c, guide.orders, guide.logs)) - c * epsilon - log_delta
        if smooth:
            most = MOST_NODES * self.h / 1.3
            tau2 = max(2 * _SMOOTHING * max(epsilon, 1e-3 / c) / (c + 1), 2 * (head + _TAIL) / most**2)
            extra = (unchecked(Gaussian, mu2=Fraction(tau2), slack=Fraction(0)), 1)
            whole = Product((*whole.factors, extra))
            minus = Product((*minus.factors, extra)) if minus is not None else None
        self.whole, self.minus = whole, minus
        # A difference is positive, so its size is largest at t = 0, but only the smoothing is known to damp it.
        self.damping = whole.damping if minus is None else Product((extra,)).damping
        self.nodes = self._enough(head)

    def _enough(self, head: float) -> int:
        """Returns how many nodes leave a negligible tail, or 0 if that is too many."""
        nodes = 16
        while nodes <= MOST_NODES:
            t = nodes * self.h
            if head + self.damping(self.c, t) - math.log(math.pi * t) < -_TAIL:
                return nodes
            nodes = nodes * 5 // 4
        return 0

    def prepare(self) -> None:
        """Evaluates the nodes that count in balls, and bounds the others."""
        t: Floats = self.h * np.arange(1, self.nodes + 1, dtype=np.float64)
        self.first = self._value(acb(self.c))
        rest = self._sizes(t)
        order = np.argsort(rest)
        cumulated = np.cumsum(rest[order])
        small = int(np.searchsorted(cumulated, _DROPPED * (1 + float(rest.sum()))))
        small = max(small, self.nodes - MOST_BALLS)
        self.nodes_in_balls = [
            (arb(self.h) * int(j + 1), self._value(acb(self.c, arb(self.h) * int(j + 1)))) for j in np.sort(order[small:])
        ]
        dropped = float(cumulated[small - 1]) if small else 0.0
        # Beyond the last node: sum of h/t^2 <= 1/T, and z(z + 1) is at least t^2 in size.
        last = self.nodes * self.h
        tail = math.exp(self.damping(self.c, last)) * self.c * (self.c + 1) / (last * self.h)
        self.bound = self.first.real * arb((dropped + tail) * (1 + 1e-6))

    def _value(self, z: acb) -> acb:
        value = self.whole.value(z)
        if self.minus is not None:
            value -= self.minus.value(z)
        return value / (z * (z + 1))

    def _sizes(self, t: Floats) -> Floats:
        """Returns upper bounds of |integrand(c + it)| / integrand(c)."""
        c = self.c
        kernel = c * (c + 1) / (np.hypot(c, t) * np.hypot(c + 1, t))
        sizes = np.exp(self.whole.sizes(c, t))
        if self.minus is not None:
            z = np.concatenate([[c + 0j], c + 1j * t])
            whole, minus = self.whole.log(z), self.minus.log(z)
            wrong = math.expm1(min(self.whole.count * 2e-12, 1.0))
            # A lower bound of the remaining share; if rounding makes it useless, 1 bounds every size.
            left = -math.expm1(min(float((minus[0] - whole[0]).real) + wrong, -1e-300))
            other = np.exp(self.minus.sizes(c, t) + (minus[0] - whole[0]).real)
            spread = np.abs(np.exp(whole[1:] - whole[0]) - np.exp(minus[1:] - whole[0])) + wrong * (sizes + other)
            sizes = np.minimum(spread / left, 1.0)
        weighted: Floats = sizes * kernel
        return weighted

    def __call__(self, epsilon: Fraction) -> arb:
        e = ball(epsilon)
        total = self.first.real / 2
        for t, value in self.nodes_in_balls:
            total += (value * acb(0, -t * e).exp()).real
        return (total + self.bound) * (-ball(Fraction(self.c)) * e).exp() * arb(self.h) / arb.pi()
