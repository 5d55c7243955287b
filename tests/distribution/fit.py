"""Tests whether a sample fits a law, with a false-alarm probability that is proved, not asymptotic.

For an event of probability p, seen a share s of n times, Chernoff's bound says Pr[share this far off] <= exp(-n KL(s, p)) on
each side. Events are the half-lines at the given cuts; the allowance is divided among both sides of each.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dither.exact import balls
from dither.exact.laws.base import Integers, Law, search


def divergence(s: float, p: float) -> float:
    """KL between coins of chance s and p."""
    if p <= 0.0 or p >= 1.0:
        return 0.0 if s == p else math.inf
    left = s * math.log(s / p) if s > 0 else 0.0
    right = (1 - s) * math.log((1 - s) / (1 - p)) if s < 1 else 0.0
    return left + right


def events_fit(shares: list[float], chances: list[float], n: int, allowance: float) -> bool:
    limit = math.log(2 * len(chances) / allowance)
    return all(n * divergence(s, p) <= limit + 1e-6 for s, p in zip(shares, chances, strict=True))


def fits(sample: Integers, law: Law, allowance: float, cuts: int = 24) -> bool:
    """Compares Pr[X <= c] with the sample at cuts spread over the quantiles of `law`."""
    points = sorted({quantile(law, (i + 0.5) / cuts) for i in range(cuts)} | {quantile(law, 1e-4), quantile(law, 1 - 1e-4)})
    with balls.working(128):
        chances = [float(law.at_most(c)) for c in points]
    shares = [float(np.count_nonzero(sample <= c) / len(sample)) for c in points]
    return events_fit(shares, chances, len(sample), allowance)


def quantile(law: Law, level: float) -> int:
    """Returns the smallest k with Pr[X <= k] >= level (or the next one at a tie)."""
    first, last = law.span()
    wanted = 1 - Fraction(level)
    return search(lambda k: balls.certainly_at_most(lambda: law.more_than(k), wanted), first, last)
