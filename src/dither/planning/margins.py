"""Bounds how far weighted sums of noise reach at a confidence. Never understates it.

Geometric noise of scale s is a rounded Laplace variable: with E1, E2 exponential of mean s, floor(E1) - floor(E2) has the
two-sided geometric law, and it differs from the Laplace variable E1 - E2 by less than 1. So w_1 X_1 + ... + w_k X_k lies within
|w_1| + ... + |w_k| of a sum of independent Laplace variables of scales b_i = |w_i| s_i, and for those

    Pr[|L_1 + ... + L_k| > t] = sum of p_i exp(-t / b_i)        p_i = product over j != i of b_i^2 / (b_i^2 - b_j^2)

(partial fractions of the characteristic function). Equal scales are moved *up* a little to make them different: that only
widens the sum, because symmetric unimodal variables get less peaked when one of them is scaled up (Birnbaum 1948).
Above six terms the moment bound 2 exp(-a t) / product of (1 - a^2 b_i^2) takes over, at its best a; or, where it is smaller,

    Pr[|sum| <= t] = 2 h / pi  times the sum over k of  sin(w_k t) / w_k / product of (1 + b_i^2 w_k^2)        w_k = (k + 1/2) h

up to Pr[|sum| > 2 pi / h - t], because sin and cos add up to a square wave there, and up to what the sum leaves out.
Discrete Gaussian noise of variance v reaches at most one step further than the normal one (Canonne et al. 2020, Prop. 25).

Quotients. N and D are weighted sums of exact cells c_i, with weights n_i and d_i, and r = N / D is the truth. Then the noisy
N^ - r D^ is the weighted sum of noise alone, with weights n_i - r d_i, and m(r) is its reach. So the set

    S = {x : |N^ - x D^| <= m(x)}        contains r with at least the confidence (Fieller 1954)

whatever N and D are, as long as D is not 0: small groups too. m is convex, because the reach of a weighted sum of symmetric
log-concave variables is a norm of the weights (Meyer and Reisner 1991, Bobkov 2010), and so are the steps that are added to
it. So {x : N^ - x D^ > m(x)} and {x : x D^ - N^ > m(x)} are intervals, and S is what they leave over. `quotient` intersects S
with public limits of r and returns the hull: from an end that is not in S it cuts off that end's interval, by bisection.

Stated margins. Coverage *given that a margin is stated* is the confidence only if stating it does not depend on the noise: a
mean of three rows whose margin is stated only where noise makes the group look larger is wrong three times in ten at 95 %.
So a margin is always stated. That needs public limits of r, because S may be the whole line (and any bounded interval for a
quotient that may be anything has confidence 0: Gleser and Hwang 1987). There are always some:

    cells never negative, no d_i negative     N/D lies between the least and the largest n_i / d_i (mediants)
    otherwise                                 D is a multiple of a public unit g, so |r| <= |N| / g where D is not 0

Where noise is so far off that S and the limits have nothing in common, any interval is wrong at this confidence, and adding
one can only raise the coverage. Then, and wherever a cell that is never negative came out negative, the interval is widened
by that of the same cells held at 0: a rare share is 0 ± 0.03 and neither 0 ± 1 nor 0 ± 0.0001.

This is the only file of planning that computes in floats: they describe margins, and neither draw nor charge. Results are
rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_POINTS = 1024
_HALVINGS = 80
_FINE = 1 << 20
_RATES = (*(1 / 2**k for k in range(12, 6, -1)), *(i / 64 for i in range(1, 64)))  # where moment bounds are tried
_AT_ONCE = 1_000_000  # numbers in one array of moments
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
    if len(units) > 6:
        return float(reach(np.array(units)[:, None], confidence, False)[0]) * top
    return top * _smallest(_mixture(units), allowed) * _UP


def normal(scales: tuple[float, ...], confidence: float) -> float:
    """Returns the same for normal variables."""
    return math.sqrt(sum(b * b for b in scales)) * NormalDist().inv_cdf((1 + confidence) / 2) * _UP


def exponentials(scales: tuple[float, ...], confidence: float) -> float:
    """Returns a t with Pr[sum of exponential variables of these means > t] <= 1 - confidence: nearly the smallest.

    >>> round(exponentials((1.0,), 0.95), 3), round(exponentials((1.0, 1.0), 0.95), 2), round(exponentials((2.0, 0.1), 0.95), 2)
    (2.996, 4.75, 6.1)
    """
    top = max(scales, default=0.0)
    units = sorted(
        math.ceil(b / top * _FINE) / _FINE for b in scales if b > 0
    )  # rounded up, so that equal shapes are found again
    return top * _exponentials(tuple(units), confidence) if units else 0.0


@lru_cache(maxsize=4096)
def _exponentials(scales: tuple[float, ...], confidence: float) -> float:
    """Moves each variable up to the next of 4096 points, before they are added. The last point is the union bound."""
    allowed, points = 1 - confidence, 4 * _POINTS
    farthest = sum(scales) * math.log(len(scales) / allowed) * _UP
    if len(scales) == 1:
        return farthest
    places, size = np.arange(points + 1) * farthest / points, 3 * points  # beyond 2 points nothing wraps around
    sums = np.eye(1, points + 1)[0]
    for scale in scales:
        up = np.concatenate(([0.0], -np.diff(np.exp(-places / scale))))
        sums = np.fft.irfft(np.fft.rfft(sums, size) * np.fft.rfft(up, size), size)[: points + 1]
    reached = np.cumsum(sums) - 1e-12  # covers the rounding
    return float(places[min(int(np.searchsorted(reached, confidence)), points)])


def many(weights: Floats, scales: Floats, confidence: float, gaussian: bool) -> float:
    """Returns the reach of a weighted sum of many whole-number variables, by their own moments.

    With two-sided geometric noise of scale s and q = exp(-1/s), E exp(aX) = (1 - q)^2 / ((1 - q e^a) (1 - q e^-a)), and
    Pr[|sum| >= t] <= 2 exp(-at) times the product of these at a w_i (Chernoff). Discrete Gaussian noise is sub-Gaussian with
    its own variance (Canonne et al. 2020). Neither pays a step for each variable, as bounds by continuous variables do.

    >>> round(many(np.ones(100), np.ones(100), 0.95, False), 1)
    37.3
    """
    spread, tail = np.abs(weights) * scales, math.log(2 / (1 - confidence))
    if gaussian:
        return float(np.sqrt(2 * tail * (spread * spread).sum())) * _UP
    rates, best = 1 / scales, math.inf  # q = exp(-rates): with little noise it is 0 and e^a is infinite, their product neither
    for a in (rate / float(spread.max()) for rate in _RATES):
        w = a * np.abs(weights)
        moments = 2 * np.log1p(-np.exp(-rates)) - np.log1p(-np.exp(w - rates)) - np.log1p(-np.exp(-w - rates))
        best = min(best, (tail + float(moments.sum())) / a)
    return best * _UP


_NEGLIGIBLE = 1e-12  # probability that is given away to alias
_FLAT = 1e-18  # of a characteristic function: smaller values are left out
_CLOSE = 1e-9  # of a reach: as exactly as it is looked for


_MOST_NODES = 1 << 21
_MOST_VALUES = 1 << 20  # of characteristic functions, for sums of whole numbers: about 50 ms


def whole_sum(times: Floats, scales: Floats, counts: Floats, confidence: float, gaussian: bool) -> float | None:
    """Returns the smallest whole t with Pr[|sum| <= t] >= confidence, for sums of whole-number variables: `counts` of each
    scale, each counted `times` times (a whole number). None if it would take too long. It is exact up to 1e-11 of probability,
    where `many` is an upper bound.

    With M nodes the inversion of the characteristic function f is the law of the sum modulo M,

        Pr[sum mod M in -t..t] = 1/M times the sum over k of f(w_k) sin((2t + 1) w_k / 2) / sin(w_k / 2)       w_k = 2 pi k / M

    and M is so large that the sum is beyond M - t with less than 1e-12. For geometric noise of scale s and q = exp(-1/s),
    f(w) = 1 / (1 + 4 q sin(w/2)^2 / (1 - q)^2); for discrete Gaussian noise of variance v, f(w) is the sum over j of
    exp(-v (w + 2 pi j)^2 / 2), divided by its value at 0 (Poisson). Nodes where f is flat are left out, which are most if there
    are many variables. If all `times` are 1, f falls, and they need not be computed.

    >>> one = np.ones(1)
    >>> whole_sum(one, one, 100 * one, 0.95, False), whole_sum(one, 2 * one, 9 * one, 0.95, True)
    (27.0, 12.0)
    """
    far = math.ceil(_chernoff(times, scales, counts, 1 - _NEGLIGIBLE, gaussian))
    nodes = 2 * far + 1
    found = _characteristic(times, scales, counts, nodes, gaussian)
    if found is None:
        return None
    halves, f = found[0] / 2, found[1]
    weights = f / np.sin(halves)

    def inside(t: int) -> float:
        return (2 * t + 1 + 2 * float((weights * np.sin((2 * t + 1) * halves)).sum())) / nodes - 10 * _NEGLIGIBLE

    low, high = -1, far
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if inside(middle) >= confidence else (middle, high)
    return float(high)


def _characteristic(times: Floats, scales: Floats, counts: Floats, nodes: int, gaussian: bool) -> tuple[Floats, Floats] | None:
    """Returns the nodes above 0 where the characteristic function is not flat, and its values; None if they are too many."""
    falls, half, most = bool(np.all(times == 1)), (nodes - 1) // 2, _MOST_VALUES // len(times)
    size = 1024 if falls else half
    while size <= most or size > half:
        count = min(size, half)
        if count > most:
            return None
        waves: Floats = np.arange(1, count + 1, dtype=np.float64) * (2 * math.pi / nodes)
        one_each = zip(times, scales, counts, strict=True)
        with np.errstate(under="ignore"):
            f: Floats = np.exp(np.sum([n * _log_wave(m * waves, s, gaussian) for m, s, n in one_each], axis=0))
        if count == half or f[-1] < _FLAT:
            kept = f >= _FLAT
            return waves[kept], f[kept]
        size *= 2
    return None


def laplace_sum(scales: Floats, counts: Floats, confidence: float) -> float:
    """Returns the smallest t with Pr[|sum| <= t] >= confidence for many Laplace variables, `counts` of each scale: by waves as
    in the header, with nodes so close and so many that what is left out is below 1e-11.

    >>> round(laplace_sum(np.ones(1), 3 * np.ones(1), 0.95), 2), round(laplace_sum(np.ones(1), 100 * np.ones(1), 0.95), 2)
    (4.97, 27.75)
    """
    tail, far = math.log(2 / _NEGLIGIBLE), math.inf
    for a in (rate / float(scales.max()) for rate in _RATES):
        far = min(far, (tail - float((counts * np.log1p(-((a * scales) ** 2))).sum())) / a)
    h, size = math.pi / far, 1024  # the waves are square up to 2 pi / h - t, beyond `far`
    while True:
        w = (np.arange(size) + 0.5) * h
        f = np.exp(-np.sum([n * np.log1p((b * w) ** 2) for b, n in zip(scales, counts, strict=True)], axis=0))
        if f[-1] < _FLAT or size >= _MOST_NODES:
            break
        size *= 2

    weights = f / w

    def over(t: float) -> float:
        """Returns how much too likely it is, on a logarithmic scale, that the sum is beyond t: nearly a straight line."""
        beyond = 1 - 2 * h / math.pi * float((np.sin(w * t) * weights).sum()) + 10 * _NEGLIGIBLE
        return math.log(max(beyond, _NEGLIGIBLE) / (1 - confidence))

    low, high, above, below = 0.0, far, over(0.0), over(far)
    while high - low > _CLOSE * high:
        line = low + (high - low) * above / (above - below)
        for middle in (line + _CLOSE * high / 4, line - _CLOSE * high / 4, (low + high) / 2):
            if low < middle < high:
                value = over(middle)
                low, above, high, below = (middle, value, high, below) if value > 0 else (low, above, middle, value)
    return high * _UP


def _log_wave(waves: Floats, scale: float, gaussian: bool) -> Floats:
    """Returns the logarithm of the characteristic function of one variable."""
    if not gaussian:
        wide: Floats = -np.log1p(4 * math.exp(-1 / scale) * np.sin(waves / 2) ** 2 / math.expm1(-1 / scale) ** 2)
        return wide
    around = 2 * math.pi * np.arange(-3, 4)[:, None]
    near = np.remainder(waves + math.pi, 2 * math.pi) - math.pi
    top = float(np.exp(-((scale * around) ** 2) / 2).sum())
    value: Floats = np.log(np.maximum(np.exp(-((scale * (near + around)) ** 2) / 2).sum(axis=0), 1e-300) / top)
    return value


def _chernoff(times: Floats, scales: Floats, counts: Floats, confidence: float, gaussian: bool) -> float:
    """Returns a bound on the reach of such a sum, by moments, as `many` does."""
    spread, tail, best = times * scales, math.log(2 / (1 - confidence)), math.inf
    if gaussian:
        return float(np.sqrt(2 * tail * (counts * spread * spread).sum())) * _UP
    rates = 1 / scales
    for a in (rate / float(spread.max()) for rate in _RATES):
        w = a * times
        moments = 2 * np.log1p(-np.exp(-rates)) - np.log1p(-np.exp(w - rates)) - np.log1p(-np.exp(-w - rates))
        best = min(best, (tail + float((counts * moments).sum())) / a)
    return best * _UP


def reach(scales: Floats, confidence: float, gaussian: bool) -> Floats:
    """Returns the reach of many sums at once. `scales` has a row for each variable.

    >>> reach(np.array([[1.0, 2.0], [1.0, 0.0]]), 0.95, False).round(2).tolist()
    [4.12, 5.99]
    """
    if gaussian:
        wide: Floats = np.sqrt((scales * scales).sum(axis=0)) * (NormalDist().inv_cdf((1 + confidence) / 2) * _UP)
        return wide
    low, high = np.zeros(scales.shape[1]), scales.sum(axis=0) * math.log(len(scales) / (1 - confidence))  # union bound
    for _ in range(50):
        middle = (low + high) / 2
        enough = beyond(scales, middle, 1 - confidence, gaussian)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    reached: Floats = high * _UP
    return reached


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


def beyond(scales: Floats, t: Floats, allowed: float, gaussian: bool, counts: Floats | None = None) -> NDArray[np.bool_]:
    """Returns where Pr[|sum| > t] is certainly below `allowed`, for many sums. `scales` has a row for each variable; `counts`
    says how many variables each row stands for.

    >>> beyond(np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 1.0]]), np.array([2.99, 3.0, 4.13]), 0.05, False).tolist()
    [False, True, True]
    """
    times = np.ones((len(scales), 1)) if counts is None else counts[:, None]
    if gaussian:
        reach = np.sqrt((times * scales * scales).sum(axis=0)) * (NormalDist().inv_cdf(1 - allowed / 2) * _UP)
        return np.asarray(t > reach)
    top = scales.max(axis=0)
    whole = np.where(top > 0, top, 1.0)
    far = np.maximum(t, 0.0) / whole
    if counts is not None:
        chance = _moment_bounds(scales / whole, far, times)
    elif len(scales) <= 6:
        chance = _mixtures(np.sort(scales, axis=0) / whole, far)
    else:
        chance = _bounds(np.sort(scales, axis=0) / whole, far, allowed)
    return np.asarray((t > 0) & ((chance * _UP < allowed) | (top <= 0)))


def _mixtures(units: Floats, t: Floats) -> Floats:
    """Does for many sums what `_mixture` does for one. `units` grow along each column, up to 1."""
    apart = 1.001 if len(units) <= 3 else 1.003
    scales = np.empty_like(units)
    for i, row in enumerate(units):
        scales[i] = np.maximum(row, scales[i - 1] * apart) if i else np.maximum(row, 1e-6)
    total = np.zeros_like(t)
    with np.errstate(under="ignore"):
        for i, b in enumerate(scales):
            weight = np.ones_like(t)
            for j, c in enumerate(scales):
                weight *= b * b / (b * b - c * c) if i != j else 1.0
            total += weight * np.exp(-t / b)
    return total


def _moment_bounds(units: Floats, t: Floats, times: Floats) -> Floats:
    """Does for many sums what `_moments` does for one."""
    # logarithms: a product over many variables is too small for a double
    rates = np.array(_RATES)[:, None]
    if len(rates) * units.size <= _AT_ONCE:
        sums = (times * np.log1p(-((rates[:, :, None] * units) ** 2))).sum(axis=1)
        best = np.minimum(0.0, (math.log(2) - rates * t - sums).min(axis=0))
    else:
        best = np.zeros_like(t)
        for a in _RATES:
            best = np.minimum(best, math.log(2) - a * t - (times * np.log1p(-((a * units) ** 2))).sum(axis=0))
    with np.errstate(under="ignore"):
        chance: Floats = np.exp(best)
    return chance


_NODES = 256
_BEYOND = 60.0  # largest scales; for up to 40 terms the sum exceeds so many with less than 1e-7


def _bounds(units: Floats, t: Floats, allowed: float) -> Floats:
    """Returns bounds on the tails of many sums: waves where moments do not decide. The largest term alone exceeds t with
    exp(-t), and a sum of symmetric unimodal variables exceeds it more often."""
    best = _moment_bounds(units, t, np.ones((len(units), 1)))
    open_ = (best * _UP >= allowed) & (np.exp(-np.minimum(t, 700.0)) < allowed)
    if len(units) <= 40 and open_.any():
        best[open_] = np.minimum(best[open_], _waves(units[:, open_], t[open_]))
    return best


def _waves(units: Floats, t: Floats) -> Floats:
    """Returns a bound on the tail of many sums by adding up waves. `units` grow along each column, up to 1."""
    h = 2 * math.pi / (t + _BEYOND)
    w = (np.arange(_NODES)[:, None] + 0.5) * h
    waves, squares, power = np.sin(w * t) / w, units * units, w * w
    for square in squares:
        waves /= 1 + square * power
    last, top = _NODES * h, np.prod(np.maximum(squares[-3:], 1e-60), axis=0)
    left_out = 2 / math.pi * (1 / (6 * top * last**6) + h / (top * last**7))  # the integral, and the first of its steps
    bound: Floats = np.minimum(1 - 2 / math.pi * h * waves.sum(axis=0) + left_out + 1e-7, 1.0)
    return bound


@dataclass(frozen=True)
class Cells:
    """Weighted sums N and D of the same noisy cells: the weights of both, and the scale of each cell's noise. `moved`: how
    far their grids may have moved N and D in each group. `counts`: how many cells each stands for, if there are many."""

    above: Floats
    below: Floats
    scales: Floats
    gaussian: bool
    moved: tuple[Floats, Floats]
    counts: Floats | None = None

    @classmethod
    def of(cls, above: Floats, below: Floats, scales: Floats, gaussian: bool, moved: tuple[Floats, Floats]) -> Cells:
        """Puts cells together that have the same weights and the same noise, if there are many."""
        if len(scales) <= 6:
            return cls(above, below, scales, gaussian, moved)
        same, counts = np.unique(np.stack([above, below, scales]), axis=1, return_counts=True)
        return cls(same[0], same[1], same[2], gaussian, moved, counts.astype(np.float64))

    def outside(self, n: Floats, d: Floats, r: Floats, allowed: float) -> Floats:
        """Returns 1 where N - r D is above its reach, -1 where it is below minus its reach, and 0 where r is possible."""
        weights = np.abs(self.above[:, None] - r * self.below[:, None])
        off = n - r * d
        times = 1.0 if self.counts is None else self.counts[:, None]
        steps = (times * weights).sum(axis=0) + self.moved[0] + np.abs(r) * self.moved[1]  # of the noise, and of the grid
        steps += (np.abs(n) + np.abs(r * d)) * 1e-12  # and of doubles
        far = beyond(weights * self.scales[:, None], np.abs(off) - steps, allowed, self.gaussian, self.counts)
        return np.where(far, np.sign(off), 0.0)


def quotient(cells: Cells, n: Floats, d: Floats, low: Floats, high: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Returns the ends of the r in [low, high] that N and D allow; (nan, nan) where there is none."""
    allowed = 1 - confidence
    first, last = cells.outside(n, d, low, allowed), cells.outside(n, d, high, allowed)
    none = (first != 0) & (first == last)
    least = _edge(cells, n, d, low, high, first, allowed)
    most = _edge(cells, n, d, high, low, last, allowed)
    return np.where(none, np.nan, least), np.where(none, np.nan, most)


def _edge(cells: Cells, n: Floats, d: Floats, start: Floats, end: Floats, side: Floats, allowed: float) -> Floats:
    """Returns how far the impossible r reach from `start` towards `end`: `start` itself where it is possible."""
    near, far = start.copy(), end.copy()
    estimate = np.where(d != 0, n / np.where(d != 0, d, 1.0), 0.0)
    for _ in range(_HALVINGS):
        middle = near + (far - near) / 2
        if np.all((side == 0) | (np.abs(far - near) <= 1e-5 * np.abs(near - estimate))):
            break  # close enough to `near`, which is the safe side
        inside = (cells.outside(n, d, middle, allowed) == side) & (side != 0)
        near, far = np.where(inside, middle, near), np.where(inside, far, middle)
    return near


def _mixture(units: list[float]) -> Callable[[float], float]:
    """Returns the exact tail of the sum, with equal scales moved apart upwards."""
    apart = 1.001 if len(units) <= 3 else 1.003
    scales: list[float] = []
    for b in sorted(units):
        scales.append(max(b, scales[-1] * apart) if scales else max(b, 1e-6))
    weights = [math.prod(b * b / (b * b - c * c) for j, c in enumerate(scales) if j != i) for i, b in enumerate(scales)]
    return lambda t: math.fsum(p * math.exp(-t / b) for p, b in zip(weights, scales, strict=True))


def _smallest(tail: Callable[[float], float], allowed: float) -> float:
    low, high = 0.0, 1.0
    while tail(high) > allowed:
        low, high = high, high * 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle) > allowed else (low, middle)
    return high
