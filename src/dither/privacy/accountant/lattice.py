"""Computes delta(epsilon) of a loss on a lattice, L = a + s J: the integral of contour.py over one period, exactly.

With x0 the first lattice point not below epsilon and r = x0 - epsilon,

    delta(epsilon) = sum over x >= x0 of Pr[L = x] (1 - e^{epsilon - x})
                   = s/(2 pi) * integral over |t| <= pi/s of phi(z) e^{-z x0} k(z) dt,     z = c + it
    k(z) = 1/(1 - e^{-zs}) - e^{-r}/(1 - e^{-(z+1)s})
         = (e^{-zs}(1 - e^{-s}) + (1 - e^{-r})(1 - e^{-zs})) / ((1 - e^{-zs})(1 - e^{-(z+1)s})).

The trapezoid rule with N nodes adds delta(epsilon + mNs) e^{cmNs} >= 0, m != 0, so it errs upward; nothing is truncated
and nothing is smoothed. A truncated integral would miss the peaks at other periods and come out below the truth.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from flint import acb, arb

from dither.exact.balls import ball
from dither.privacy.accountant.product import Guide, Product
from dither.privacy.parts.base import Floats

MOST_NODES = 1 << 17
MOST_BALLS = 6000
_TAIL = 21.0
_DROPPED = 2e-9  # the share of nodes that are bounded instead of computed


class Lattice:
    """An upper bound of the delta of `whole`, all of whose factors live on one lattice."""

    def __init__(self, whole: Product, guide: Guide, epsilon: float, log_delta: float) -> None:
        self.whole = whole
        self.feasible = False
        lattice = whole.lattice()
        if lattice is None:
            return
        self.offset, self.step = lattice
        self.c = guide.order(epsilon)
        s = float(self.step)
        span = guide.period(self.c, epsilon, log_delta)
        # Steps with next to nothing in common have a common step so fine that its float is 0: no lattice to sum over.
        if not 0 < span < 1e15 * s:
            return
        self.period = 2 * math.ceil(span / s / 2) + 1
        self.t_unit = 2 * math.pi / (self.period * s)
        head = float(np.interp(self.c, guide.orders, guide.logs)) - self.c * epsilon - log_delta
        self.nodes, self.tail = 0, math.inf
        while not self.feasible and self.nodes < min(self.period // 2, MOST_NODES):
            self.nodes = min(2 * self.nodes + 32, self.period // 2, MOST_NODES)
            self.tail = self._tail()
            self.feasible = self.tail == 0 or math.log(self.tail) + head < -_TAIL

    def _tail(self) -> float:
        """Returns a bound of all nodes that are not computed, relative to the first."""
        left = self.period // 2 - self.nodes
        if left == 0:
            return 0.0
        damped = self.whole.damping(self.c, self.nodes * self.t_unit, self.step)
        return math.exp(damped) * left * float(self._kernel(np.array([self.nodes * self.t_unit]))[0])

    def _kernel(self, t: Floats) -> Floats:
        """Returns upper bounds of |k(c + it)| * c, for any r."""
        s, c = float(self.step), self.c
        one = np.abs(np.expm1(-(c + 1j * t) * s))
        two = np.abs(np.expm1(-(c + 1 + 1j * t) * s))
        kernel: Floats = -math.expm1(-s) * (math.exp(-c * s) / one + 1) / two * c
        return kernel

    def choose(self) -> int:
        """Chooses the nodes that count, and returns how many they are."""
        t: Floats = self.t_unit * np.arange(1, self.nodes + 1, dtype=np.float64)
        rest = np.exp(self.whole.sizes(self.c, t)) * self._kernel(t)
        order = np.argsort(rest)
        cumulated = np.cumsum(rest[order])
        small = int(np.searchsorted(cumulated, _DROPPED * float(self._kernel(np.zeros(1))[0] + rest.sum())))
        small = max(small, self.nodes - MOST_BALLS)
        self.chosen = [int(j + 1) for j in np.sort(order[small:])]
        self.dropped = float(cumulated[small - 1]) if small else 0.0
        return self.nodes - small

    def prepare(self) -> None:
        """Evaluates the nodes that count in balls, and bounds the others."""
        self.first = self.whole.value(acb(self.c))
        unit = 2 * arb.pi() / (self.period * ball(self.step))
        places = [acb(self.c, unit * j) for j in self.chosen]
        self.nodes_in_balls = [(acb(self.c), self.first / 2)] + [(z, self.whole.value(z)) for z in places]
        self.bound = self.first.real * arb((self.dropped + self.tail) * (1 + 1e-6)) / arb(self.c)

    def __call__(self, epsilon: Fraction) -> arb:
        s = ball(self.step)
        x0 = self.offset + math.ceil((epsilon - self.offset) / self.step) * self.step
        gap, near = -ball(epsilon - x0).expm1(), -ball(-self.step).expm1()
        total, at = arb(0), ball(x0)
        for z, value in self.nodes_in_balls:
            one = -(-z * s).expm1()
            kernel = ((1 - one) * near + gap * one) / (one * -(-(z + 1) * s).expm1())
            total += (value * (-z * at).exp() * kernel).real
        return 2 * (total + self.bound * (-arb(self.c) * at).exp()) / self.period
