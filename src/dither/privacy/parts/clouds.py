"""Clouds: positive measures on finitely many losses, and their transforms in floats with a proved error.

A release after Poisson subsampling has no closed transform. With u = ln(P1/Q) for the pair that is subsampled and
B(u) = 1 - q + q e^u, its transform is the mean of B^{z+1} (a unit added) or B^{-z} (removed) under Q (sampled.py). A cloud
replaces Q by points: its atoms themselves, or Gauss-Legendre points on panels, each so short that its error is negligible.

**Panels.** Let f be analytic in the ellipse whose foci are a panel's ends and whose half-axes sum up to rho times its
half-length r, and |f| <= M there. Then 16 points err by at most 64/15 M r rho^-30 / (1 - rho^-2) (Trefethen, SIAM Review
2008, theorem 4.5). With f = Q(x) B(u)^a, u = slope x + shift, in the box around the ellipse with half-height y, v = slope y <
pi/2:

    |Q| <= Q(Re x) e^{y^2 bend}     B(Re u) cos v <= |B| <= B(Re u)     |arg B| <= atan(q e^u sin v / (1 - q + q e^u cos v)).

The last one grows with u. Panels are halved until the bound is small. Where Q is negligible, 4 r sup |f| bounds the error.

**The transform** at t = 0, h, 2h, ... is a sum over points of weight times e^{itL}. Few of them are added directly. Else each
point is spread over N cells of width 2 pi / (h N) as a Gaussian of variance V = 5/2 cells; a fast Fourier transform of the
cells is divided by the Gaussian's own transform. For t up to an eighth of N this errs, relative to the sum of weights, by at
most
    aliases        2 e^{-V (2 pi)(2 pi - pi/2) / 2} < 2e-16      (the nearest copy; the others are far smaller)
    cutting off    4 e^{-15^2 / 2V} e^{V (pi/4)^2 / 2} < 1e-18   (15 cells to each side are kept)
    rounding       2.2 times (8e-16 per stage of the transform + 2e-16 per term of the longest sum)
    places         t times the error of L, 1e-15 of |L| and of |u| q e^u / B
because every stage of a transform adds products whose sizes sum up to at most the sum of the weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from flint import arb
from numpy.fft import rfft

from dither.exact.balls import working
from dither.privacy.parts.base import Complexes, Floats

_POINTS = 16
_ELLIPSES = (1.25, 1.6, 2.0, 2.6, 3.4, 4.5, 6.0)
_SMALL = -41.0  # ln of a panel's error, relative to the whole
_HALVINGS = 60
_DIRECT = 1 << 19
_VARIANCE = 2.5
_SIDE = 15
_RUN = 32
_FLOAT = 2e-16
_PANELS = 16
_SLIVER = 1e-6


@dataclass(frozen=True)
class Cloud:
    """Losses with the logarithms of their weights; `wrong` bounds its error at the line it was made for, relative to its size
    there, and `lost` the probability that it leaves out."""

    losses: Floats
    logs: Floats
    offs: Floats
    wrong: float
    lost: float

    def log(self, z: Complexes) -> Complexes:
        """Returns the logarithm of the transform in floats, at any points."""
        found = np.empty(len(z), dtype=complex)
        at: Complexes | Floats = z if z.imag.any() else z.real  # real orders, as of a guide, need no complex powers
        for first in range(0, len(z), 64):
            powers = np.multiply.outer(at[first : first + 64], self.losses) + self.logs
            top = powers.real.max(axis=1)
            found[first : first + 64] = top + np.log(np.exp(powers - top[:, None]).sum(axis=1))
        return found

    def tilted(self, c: float) -> tuple[float, Floats]:
        """Returns ln of the transform at the real order c, and the weights e^{cL} times the measure, of sum 1."""
        powers = c * self.losses + self.logs
        top = float(powers.max())
        weights = np.exp(powers - top)
        size = float(weights.sum())
        return top + math.log(size), weights / size

    def deviation(self, c: float) -> float:
        """Returns the standard deviation of the loss under the tilted weights."""
        weights = self.tilted(c)[1]
        return math.sqrt(float(weights @ (self.losses - weights @ self.losses) ** 2)) * (1 + 1e-9)

    def ratios(self, c: float, h: float, nodes: int) -> tuple[Complexes, Floats]:
        """Returns the transform at c + ijh over that at c, j = 0, ..., nodes, and bounds of its errors."""
        weights = self.tilted(c)[1]
        places = 5 * _FLOAT * (float(weights @ np.abs(self.losses)) + float(weights @ self.offs))
        t: Floats = h * np.arange(nodes + 1, dtype=np.float64)
        if nodes * len(weights) <= _DIRECT:
            found, wrong = _direct(self.losses, weights, h, nodes), 60 * _FLOAT
        else:
            found, wrong = _spread(self.losses, weights, h, nodes)
        errors: Floats = wrong + 2 * self.wrong + places * t
        return found, errors


def _direct(losses: Floats, weights: Floats, h: float, nodes: int) -> Complexes:
    """Sums at j = a b + k by products of e^{i a b h L} and e^{ikhL}."""
    short = math.isqrt(nodes) + 1
    near = np.exp(1j * h * np.multiply.outer(np.arange(short), losses))
    far = np.exp(1j * (h * short) * np.multiply.outer(np.arange(nodes // short + 1), losses)) * weights
    # numpy adds in pairs, so a sum errs by far less than one rounding per term.
    found: Complexes = np.concatenate([(near * row).sum(axis=1) for row in far])[: nodes + 1]
    return found


def _spread(losses: Floats, weights: Floats, h: float, nodes: int) -> tuple[Complexes, float]:
    cells = 1 << (8 * nodes - 1).bit_length()
    x = losses * (h * cells / (2 * math.pi))
    order = np.argsort(x)
    x, spread = x[order], weights[order]
    first = np.rint(x)
    cuts = np.diff(first, prepend=-math.inf) != 0
    fullest = int(np.diff(np.flatnonzero(cuts), append=len(x)).max())
    cuts[::_RUN] = True  # sums of sums: no more than _RUN terms in each
    starts = np.flatnonzero(cuts)
    off, base = x - first, first[starts].astype(np.int64)
    # e^{-(k - off)^2 / 2V} for k = 0, 1, ... and -1, -2, ...: a product of three powers.
    spread = spread * np.exp(-(off**2) / (2 * _VARIANCE))
    grid = np.zeros(cells)
    for sign in (1, -1):
        growth, share = np.exp(sign * off / _VARIANCE), spread
        for k in range(1 - (sign > 0), _SIDE + 1):
            share = share * growth if k else share
            np.add.at(grid, (base + sign * k) % cells, np.add.reduceat(share, starts) * math.exp(-k * k / (2 * _VARIANCE)))
    angle = 2 * math.pi / cells * np.arange(nodes + 1)
    window = math.sqrt(2 * math.pi * _VARIANCE) * np.exp(-_VARIANCE * angle**2 / 2)
    # numpy's transform has e^{-i...}: the conjugate, because the grid is real.
    found: Complexes = np.asarray(np.conj(rfft(grid)[: nodes + 1]) / window, dtype=np.complex128)
    terms = min(fullest, _RUN + fullest / _RUN + 2) + 2 * _SIDE + 40
    return found, 2.2 * (4 * _FLOAT * math.log2(cells) + _FLOAT * terms) + 4e-16


@lru_cache(maxsize=1)
def _legendre() -> tuple[Floats, Floats]:
    """Returns the Gauss-Legendre points and weights on [-1, 1], correctly rounded."""
    with working(128):
        roots = [arb.legendre_p_root(_POINTS, k, weight=True) for k in range(_POINTS)]
        return np.array([float(x.mid()) for x, _ in roots]), np.array([float(w.mid()) for _, w in roots])


def log_mixed(q: float, u: Floats) -> Floats:
    """Returns ln B(u), accurate near 0 and for large u."""
    with np.errstate(over="ignore"):
        small: Floats = np.log1p(q * np.expm1(np.minimum(u, 30.0)))
        large: Floats = np.where(u > 30.0, np.logaddexp(math.log1p(-q) if q < 1 else -math.inf, math.log(q) + u), small)
    return large


@dataclass(frozen=True)
class Field:
    """A density Q(x) = e^{-height(x)} between two ends, and u = slope x + shift. `least` gives the smallest height between two
    points; off the real line |Q| grows by e^{bend y^2}."""

    height: Callable[[Floats], Floats]
    least: Callable[[Floats, Floats], Floats]
    bend: float
    slope: float
    shift: float
    low: float
    high: float

    def within(self, low: float, high: float) -> Field | None:
        """Returns the part with low < u <= high. A cut next to an end is moved there: panels need some width."""
        first, last = (self._cut((u - self.shift) / self.slope) for u in (low, high))
        return replace(self, low=first, high=last) if first < last else None

    def _cut(self, x: float) -> float:
        near = _SLIVER * (self.high - self.low)
        return self.low if x < self.low + near else self.high if x > self.high - near else x

    def points(self, q: float, order: float, t: float) -> tuple[Floats, Floats, float]:
        """Returns (u, ln of weight times Q, ln of a bound of the error of the integral of Q B^{order + it})."""
        known = self._size(q, order)
        good: list[tuple[Floats, Floats]] = []
        wrong = 0.0
        edges = np.linspace(self.low, self.high, _PANELS + 1)
        middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        for _ in range(_HALVINGS):
            bound = self._errors(q, order, t, middle, half) - known
            ready = bound < _SMALL
            good.append((middle[ready], half[ready]))
            wrong += float(np.exp(bound[ready]).sum())
            middle, half = middle[~ready], half[~ready] / 2
            if not len(middle):
                break
            middle, half = np.concatenate([middle - half, middle + half]), np.concatenate([half, half])
        else:
            wrong = math.inf
        return *self._placed(*(np.concatenate(each) for each in zip(*good, strict=True))), known + math.log(wrong)

    def _placed(self, middle: Floats, half: Floats) -> tuple[Floats, Floats]:
        """Returns (u, ln of weight times Q) at the points of these panels."""
        nodes, weights = _legendre()
        x = (middle[:, None] + half[:, None] * nodes).ravel()
        logs = (np.log(half)[:, None] + np.log(weights)).ravel() - self.height(x)
        return self.slope * x + self.shift, logs

    def rough(self) -> tuple[Floats, Floats]:
        """Returns a few points, for a guide."""
        edges = np.linspace(self.low, self.high, _PANELS + 1)
        return self._placed((edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2)

    def _size(self, q: float, order: float) -> float:
        """Returns ln of the integral of Q B^order, roughly: how small an error is small."""
        x = np.linspace(self.low, self.high, 801)
        powers = order * log_mixed(q, self.slope * x + self.shift) - self.height(x)
        top = float(powers.max())
        return top + math.log(float(np.exp(powers - top).sum()) * float(x[1] - x[0]))

    def _errors(self, q: float, order: float, t: float, middle: Floats, half: Floats) -> Floats:
        """Returns ln of the error bound of each panel."""
        found = self._sup(q, order, 0.0, middle, half, 0 * half) + np.log(4 * half)
        for rho in _ELLIPSES:
            wide, tall = half * (rho + 1 / rho) / 2, half * (rho - 1 / rho) / 2
            factor = math.log(64 / 15 / (1 - rho**-2)) - (2 * _POINTS - 2) * math.log(rho)
            found = np.minimum(found, self._sup(q, order, t, middle, wide, tall) + np.log(half) + factor)
        return found + 1e-6

    def _sup(self, q: float, order: float, t: float, middle: Floats, wide: Floats, tall: Floats) -> Floats:
        """Returns ln sup |Q B^{order + it}| in a box."""
        v = self.slope * tall
        low, high = (self.slope * (middle + side * wide) + self.shift for side in (-1, 1))
        with np.errstate(all="ignore"):
            turn = np.arctan2(np.sin(v), np.exp(math.log1p(-q) - math.log(q) - high) + np.cos(v)) if q < 1 else v
            size = order * log_mixed(q, high) if order >= 0 else order * (log_mixed(q, low) + np.log(np.cos(v)))
            sup = -self.least(middle - wide, middle + wide) + self.bend * tall**2 + size + t * turn
        return np.where(v < 1.5, sup, np.inf)
