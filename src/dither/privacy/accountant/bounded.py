"""Prices n equal bounded-range releases fixed in advance: the exact optimum of Dong, Durfee and Rogers (ICML 2020).

The worst case is n copies of one pair: L = t or t - epsilon, Pr[L = t] = p = (e^epsilon - e^t)/(e^epsilon - 1), for the
worst common t in [0, epsilon]. With I the number of releases with L = t - epsilon,

    delta_t(g) = sum over i of Pr[I = i] (1 - e^{g - nt + i epsilon})_+ = max over l of F_l(t)
    F_l(t) = P_t(I <= l) - e^g Q_t(I <= l).

The derivative of a binomial distribution function in its parameter is one term, and it gives F_l'(t) the sign of
g + (l + 1) epsilon - (n + 1) t. So F_l rises up to t_l = (g + (l + 1) epsilon)/(n + 1) and falls after it, and

    max over t of delta_t(g) = max over l < n of delta_{t_l}(g),    t_l < epsilon   (at t = epsilon delta is 0).

All candidates are compared in floats with a margin of 1e-6. Those within the margin of the largest, and those for which
floats fail, are evaluated in balls. The floats are good to about 1e-9: at t = t_l the exponents are exactly

    g - n t_l + i epsilon = (g/epsilon + i (n + 1) - n (l + 1)) epsilon / (n + 1),

a whole number plus the distance of g/epsilon from one, taken exactly before floats, so no term loses its leading digits;
the terms are positive; and logarithms of size up to n * 700 are good to n * 1e-13.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from flint import arb

from dither.exact.balls import ball, exp
from dither.privacy.parts import BoundedRange, Part
from dither.privacy.parts.base import Floats

MOST = 1024  # the table of candidates has n^2 entries; larger compositions are priced by zCDP, which is tight there
_MARGIN = 1e-6


def delta(parts: tuple[tuple[Part, int], ...]) -> Callable[[Fraction], arb] | None:
    """Returns delta as a function of epsilon in balls, or None unless this is at most MOST equal bounded-range releases."""
    if len(parts) != 1 or not isinstance(parts[0][0], BoundedRange) or parts[0][1] > MOST:
        return None
    each, n = parts[0][0].epsilon, parts[0][1]
    return lambda epsilon: _worst(each, n, epsilon)


def _worst(each: Fraction, n: int, at: Fraction) -> arb:
    if at >= n * each:
        return arb(0)
    points = [(k, t) for k in range(n) if (t := (at + (k + 1) * each) / (n + 1)) < each]
    rough = _logs(each, n, at, points)
    known = rough[~np.isnan(rough)].max(initial=-math.inf)
    near = np.flatnonzero(~(rough < known - _MARGIN))
    worst = arb(0)
    for k in near:
        worst = worst.max(_exact(each, n, at, points[int(k)][1]))
    return worst


def _logs(each: Fraction, n: int, at: Fraction, points: list[tuple[int, Fraction]]) -> Floats:
    """Returns ln delta_t(at) in floats for every candidate; nan where floats fail."""
    i = np.arange(n + 1)
    factorial = np.array([math.lgamma(k + 1) for k in range(n + 1)])
    choose = factorial[n] - factorial - factorial[::-1]
    e, t = float(each), np.array([float(t) for _, t in points])
    left = np.array([float(each - t) for _, t in points])
    whole = round(at / each)
    shift = np.array([whole - n * (k + 1) for k, _ in points])
    with np.errstate(all="ignore"):
        # ln expm1(x) = x + ln(1 - e^-x) for x = t, epsilon - t and epsilon.
        scale = np.log(-np.expm1(-e))
        low, high = np.log(-np.expm1(-t)) - left - scale, np.log(-np.expm1(-left)) - scale
        gap = (shift[:, None] + i * (n + 1) + float(at / each - whole)) * (e / (n + 1))
        logs = choose + np.multiply.outer(high, n - i) + np.multiply.outer(low, i) + np.log(-np.expm1(np.minimum(gap, 0)))
        top = logs.max(axis=1)
        return np.asarray(top + np.log(np.exp(logs - top[:, None]).sum(axis=1)))


def _exact(each: Fraction, n: int, at: Fraction, t: Fraction) -> arb:
    """Returns delta_t(at) in balls."""
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
