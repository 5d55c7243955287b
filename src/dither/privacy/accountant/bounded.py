"""n equal bounded-range releases fixed in advance: the exact optimum of Dong, Durfee and Rogers (ICML 2020).

The worst case is n copies of one pair: L = t or t - epsilon, Pr[L = t] = p = (e^epsilon - e^t)/(e^epsilon - 1), for the
worst common t in [0, epsilon]. With I the number of releases with L = t - epsilon,

    delta_t(g) = sum over i of Pr[I = i] (1 - e^{g - nt + i epsilon})_+ = max over l of F_l(t)
    F_l(t) = P_t(I <= l) - e^g Q_t(I <= l).

The derivative of a binomial distribution function in its parameter is one term, and it gives F_l'(t) the sign of
g + (l + 1) epsilon - (n + 1) t. So F_l rises up to t_l = (g + (l + 1) epsilon)/(n + 1) and falls after it, and

    max over t of delta_t(g) = max over l < n of delta_{t_l}(g),    t_l < epsilon   (at t = epsilon delta is 0).

All candidates are compared in floats with a margin of 1e-6, far above the rounding of a sum of positive terms; those
within the margin of the largest are evaluated in balls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from flint import arb
from scipy.special import gammaln  # type: ignore[import-untyped]

from dither.exact.balls import ball, exp
from dither.privacy.parts import BoundedRange, Part
from dither.privacy.parts.base import Floats

MOST = 1024  # the table of candidates has n^2 entries; larger compositions are priced by zCDP, which is close there
_MARGIN = 1e-6


def delta(parts: tuple[tuple[Part, int], ...]) -> Callable[[Fraction], arb] | None:
    """delta as a function of epsilon in balls, if this is one kind of bounded-range release, not too often."""
    if len(parts) != 1 or not isinstance(parts[0][0], BoundedRange) or parts[0][1] > MOST:
        return None
    each, n = parts[0][0].epsilon, parts[0][1]
    return lambda epsilon: _worst(each, n, epsilon)


def _worst(each: Fraction, n: int, at: Fraction) -> arb:
    points = [(at + (k + 1) * each) / (n + 1) for k in range(n)]
    points = [t for t in points if t < each]
    if not points or at >= n * each:
        return arb(0)
    rough = _logs(float(each), n, float(at), np.array([float(t) for t in points]))
    near = np.flatnonzero(rough >= rough.max() - _MARGIN)
    found = [_exact(each, n, at, points[int(k)]) for k in near]
    worst = found[0]
    for other in found[1:]:
        worst = worst.max(other)
    return worst


def _logs(each: float, n: int, at: float, t: Floats) -> Floats:
    """ln delta_t(at) in floats for every t."""
    i = np.arange(n + 1)
    choose = gammaln(n + 1) - gammaln(i + 1) - gammaln(n - i + 1)
    low = np.log(np.expm1(t)) - math.log(math.expm1(each))
    high = np.log(np.expm1(each - t)) + t - math.log(math.expm1(each))
    gap = at - n * t[:, None] + i * each
    with np.errstate(divide="ignore"):
        logs = choose + np.multiply.outer(high, n - i) + np.multiply.outer(low, i) + np.log(-np.expm1(np.minimum(gap, 0)))
    top = logs.max(axis=1)
    safe = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore"):
        return np.asarray(safe + np.log(np.exp(logs - safe[:, None]).sum(axis=1)))


def _exact(each: Fraction, n: int, at: Fraction, t: Fraction) -> arb:
    """delta_t(at) in balls."""
    scale = ball(each).expm1()
    low, high = ball(t).expm1() / scale, (exp(each) - exp(t)) / scale
    weight, total = high**n, arb(0)
    for i in range(n + 1):
        gap = at - n * t + i * each
        if gap >= 0:
            break
        total -= weight * ball(gap).expm1()
        weight *= low / high * (n - i) / (i + 1)
    return total
