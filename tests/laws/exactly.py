"""Exact statements about laws, by enumeration: written without the package's own verifier, to check it too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb

from dither.exact.balls import ball, exp, working
from dither.exact.laws.base import Law
from dither.privacy.losses import Loss, Pure

BITS = 320
HALF_WINDOW = 400


@dataclass(frozen=True)
class Claim:
    """A planted mechanism: this law, sold at this price. Not a Mechanism, so it stays out of the registry."""

    epsilon: Fraction | int | str
    law: Callable[[Any], Law]

    def loss(self) -> Loss:
        return Pure(self.epsilon)


def window(*laws: Law) -> range:
    """All values of finite laws, and a wide stretch around zero of endless ones."""
    firsts, lasts = zip(*(law.span() for law in laws), strict=True)
    low = min(-HALF_WINDOW if first is None else first for first in firsts)
    high = max(HALF_WINDOW if last is None else last for last in lasts)
    return range(low, high + 1)


def total(law: Law) -> arb:
    """All probabilities together."""
    ks = window(law)
    with working(BITS):
        inside = sum((law.pmf(k) for k in ks), arb(0))
        return law.at_most(ks[0] - 1) + inside + law.more_than(ks[-1])


def worst_ratio(x: Law, y: Law) -> arb:
    """The largest |log Pr[x = k] - log Pr[y = k]| in the window."""
    worst = arb(0)
    with working(BITS):
        for k in window(x, y):
            p, q = x.pmf(k), y.pmf(k)
            if p.is_zero() and q.is_zero():
                continue
            if p.is_zero() or q.is_zero():
                return arb("inf")
            worst = worst.max(abs(p.log() - q.log()))
    return worst


def spill(x: Law, y: Law, epsilon: Fraction) -> arb:
    """delta: how far x's probabilities exceed e^epsilon times y's, summed; beyond the window all of x's counts."""
    ks = window(x, y)
    with working(BITS):
        factor = exp(epsilon)
        over = sum(((x.pmf(k) - factor * y.pmf(k)).max(arb(0)) for k in ks), arb(0))
        return over + x.at_most(ks[0] - 1) + x.more_than(ks[-1])


def renyi(x: Law, y: Law, order: Fraction) -> arb:
    """The Renyi divergence of x from y, summed over the window: a lower bound that misses next to nothing."""
    with working(BITS):
        a = ball(order)
        terms = (x.pmf(k) ** a * y.pmf(k) ** (1 - a) for k in window(x, y))
        return sum(terms, arb(0)).log() / (a - 1)
