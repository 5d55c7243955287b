"""Bounds how far weighted sums of noise reach at a confidence. Never understates it.

Geometric noise of scale s is a rounded Laplace variable: with E1, E2 exponential of mean s, floor(E1) - floor(E2) has the
two-sided geometric law, and it differs from the Laplace variable E1 - E2 by less than 1. So w_1 X_1 + ... + w_k X_k lies within
|w_1| + ... + |w_k| of a sum of independent Laplace variables of scales b_i = |w_i| s_i, and for those

    Pr[|L_1 + ... + L_k| > t] = sum of p_i exp(-t / b_i)        p_i = product over j != i of b_i^2 / (b_i^2 - b_j^2)

(partial fractions of the characteristic function). Equal scales are moved *up* a little to make them different: that only
widens the sum, because symmetric unimodal variables get less peaked when one of them is scaled up (Birnbaum 1948).
Above six terms the moment bound 2 exp(-a t) / product of (1 - a^2 b_i^2) takes over, at its best a.
Discrete Gaussian noise of variance v reaches at most one step further than the normal one (Canonne et al. 2020, Prop. 25).

This is the only file of planning that computes in floats: they describe margins, and neither draw nor charge. Results are
rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_POINTS = 1024
_UP = 1 + 1e-9  # covers the rounding of a few dozen float operations


@lru_cache(maxsize=4096)
def laplace(scales: tuple[float, ...], confidence: float) -> float:
    """Returns the smallest t with Pr[|sum of Laplace variables| > t] <= 1 - confidence, rounded up.

    >>> round(laplace((1.0,), 0.95), 3), round(laplace((1.0, 1.0), 0.95), 2), round(laplace((1.0, 1.0, 1.0), 0.95), 2)
    (2.996, 4.12, 4.97)
    """
    positive = sorted((b for b in scales if b > 0), reverse=True)
    if not positive:
        return 0.0
    allowed, top = 1 - confidence, positive[0]
    if len(positive) == 1:
        return top * math.log(1 / allowed) * _UP
    units = [b / top for b in positive]
    tail = _mixture(units) if len(units) <= 6 else _moments(units)
    return top * _smallest(tail, allowed) * _UP


def normal(scales: tuple[float, ...], confidence: float) -> float:
    """Returns the same for normal variables."""
    return math.sqrt(sum(b * b for b in scales)) * NormalDist().inv_cdf((1 + confidence) / 2) * _UP


def two(first: Floats, second: Floats, confidence: float, gaussian: bool) -> Floats:
    """Returns the reach of a sum of two variables, for many pairs of scales at once."""
    if gaussian:
        wide: Floats = np.hypot(first, second) * (NormalDist().inv_cdf((1 + confidence) / 2) * _UP)
        return wide
    top = np.maximum(first, second)
    smaller = np.minimum(first, second) / np.where(top > 0, top, 1.0)
    reach: Floats = top * _pairs(confidence)[np.ceil(smaller * _POINTS).astype(np.int64)]
    return reach


@lru_cache(maxsize=64)
def _pairs(confidence: float) -> Floats:
    """Returns the reach of L_1 + a L_2 for a = 0, 1/1024, ..., 1. It grows with a, so the next point above is safe."""
    a = np.minimum(np.arange(_POINTS + 1) / _POINTS, 1 / 1.001)  # at 1 the larger scale is moved up by 0.1 %
    moved = np.where(np.arange(_POINTS + 1) / _POINTS > a, 1.001, 1.0)
    allowed = 1 - confidence
    low, high = np.full_like(a, -math.log(allowed)), np.full_like(a, 2 - 2 * math.log(allowed))
    with np.errstate(under="ignore"):
        for _ in range(50):
            t = (low + high) / 2
            beyond = (np.exp(-t) - a * a * np.exp(-t / np.maximum(a, 1e-9))) / (1 - a * a) > allowed
            low, high = np.where(beyond, t, low), np.where(beyond, high, t)
    reach: Floats = high * moved * _UP
    return reach


def _mixture(units: list[float]) -> Callable[[float], float]:
    """Returns the exact tail of the sum, with equal scales moved apart upwards."""
    apart = 1.001 if len(units) <= 3 else 1.003
    scales: list[float] = []
    for b in sorted(units):
        scales.append(max(b, scales[-1] * apart) if scales else max(b, 1e-6))
    weights = [math.prod(b * b / (b * b - c * c) for j, c in enumerate(scales) if j != i) for i, b in enumerate(scales)]
    return lambda t: math.fsum(p * math.exp(-t / b) for p, b in zip(weights, scales, strict=True))


def _moments(units: list[float]) -> Callable[[float], float]:
    """Returns the moment bound on the tail of the sum."""
    points = [i / 64 for i in range(1, 64)]
    factors = [(a, 2 / math.prod(1 - (a * b) ** 2 for b in units)) for a in points]
    return lambda t: min(factor * math.exp(-a * t) for a, factor in factors)


def _smallest(tail: Callable[[float], float], allowed: float) -> float:
    low, high = 0.0, 1.0
    while tail(high) > allowed:
        low, high = high, high * 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle) > allowed else (low, middle)
    return high
