"""A few subsampled Gaussian releases: the law of L moved upward onto a grid, then convolved.

With few releases the transform dies out too slowly for the contour. In each cell of the grid of losses both the mass
under P and the mass under Q are kept by splitting the cell between its two ends; delta as a function of e^epsilon is
convex and becomes its chord, so it only rises ("connect the dots", Doroshenko et al., PETS 2022). A bit more than
rounding could change is moved from the lower to the upper end; mass above the grid counts as lost.

The convolution is a Fourier transform of the law tilted by e^{cL}, so its rounding error (below 1e-12 per cell, added to
every cell) is small against delta itself; wrapping around adds nonnegative terms, as in contour.py.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from flint import arb
from numpy.fft import irfft, rfft
from scipy.special import ndtr  # type: ignore[import-untyped]

from dither.exact.balls import ball
from dither.privacy.accountant.product import Guide
from dither.privacy.parts import SubsampledGaussian
from dither.privacy.parts.base import Floats

MOST = 300
_CELLS = 1 << 18
_ROUNDING = 1e-12
_MOVED = 1e-7


class Grid:
    """An upper bound of delta for `count` releases of one part."""

    def __init__(self, part: SubsampledGaussian, count: int, guide: Guide, epsilon: float, log_delta: float) -> None:
        self.c = guide.order(epsilon)
        log_tail = log_delta - math.log(count) - 30
        low, high = _range(part, log_tail)
        self.step = max(guide.period(self.c, epsilon, log_delta), (high - low) / 4) / _CELLS
        first, masses, lost = _cells(part, self.step, low, high)
        places = np.arange(first, first + len(masses))
        logs = np.log(np.maximum(masses, 1e-300)) + self.c * self.step * places
        top = float(logs.max())
        size = float(np.exp(logs - top).sum())
        tilted = np.bincount(places % _CELLS, weights=np.exp(logs - top) / size, minlength=_CELLS)
        self.law: Floats = irfft(rfft(tilted) ** count, _CELLS) + _ROUNDING
        self.log_size = count * (top + math.log(size)) * (1 + 1e-13) + count * 1e-12
        self.lost = lost * count

    def __call__(self, epsilon: Fraction) -> arb:
        e = float(epsilon)
        start = math.ceil(e / self.step - 1e-6)
        above = np.arange(_CELLS) * self.step + (start * self.step - e)
        law = np.roll(self.law, -(start % _CELLS))
        total = float((law * np.exp(-self.c * above) * -np.expm1(-np.maximum(above, 0))).sum())
        # Float sums of positive terms: a relative margin of 1e-9 is far above their error.
        log_total = self.log_size - self.c * e + math.log(total) + 1e-9
        return ball(Fraction(log_total)).exp() + ball(Fraction(self.lost))


def _range(part: SubsampledGaussian, log_tail: float) -> tuple[float, float]:
    """Losses outside have a probability of about e^log_tail."""
    reach = float(part.sigma) * math.sqrt(-2 * log_tail)
    ends = [_loss(part, x) for x in (-reach, 1 + reach)]
    return min(ends), max(ends)


def _cells(part: SubsampledGaussian, step: float, bottom: float, ceiling: float) -> tuple[int, Floats, float]:
    """(first place, masses at the places from there on, mass counted as lost): a law on step * integers above that of L."""
    s, q = float(part.sigma), float(part.q)
    low, high = math.floor(bottom / step) - 1, math.ceil(ceiling / step) + 1
    places = np.arange(low, high + 1)
    # The places' points x; losses that no x attains lie at -infinity.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        edge = np.expm1((-places if part.removed else places) * step) + q
        x = np.where(edge > 0, s * s * np.log(np.maximum(edge, 0) / q) + 0.5, -np.inf)
    near, far = _between(x / s), _between((x - 1) / s)
    mixed = (1 - q) * near + q * far
    p, other = (near, mixed) if part.removed else (mixed, near)
    with np.errstate(divide="ignore", over="ignore"):
        raised = np.exp(np.log(other) + places[:-1] * step)
    lower = np.clip((raised - p * math.exp(-step)) / -math.expm1(-step) - _MOVED * p, 0, p)
    masses = np.zeros(len(places))
    masses[:-1] += lower
    masses[1:] += p - lower
    x_low, x_high = float(x.min()), float(x.max())
    below, above = _outside(x_low, x_high, s, q, part.removed)
    if part.removed:
        # Large x means small losses: their mass is lifted to the lowest place.
        masses[0] += above
        return low, masses * (1 + 1e-11), below
    masses[0] += below
    return low, masses * (1 + 1e-11), above


def _loss(part: SubsampledGaussian, x: float) -> float:
    q, s = float(part.q), float(part.sigma)
    value = float(np.logaddexp(math.log1p(-q) if q < 1 else -math.inf, math.log(q) + (x - 0.5) / s**2))
    return -value if part.removed else value


def _between(x: Floats) -> Floats:
    """The normal mass between successive points (either order), accurate in both tails."""
    a, b = np.minimum(x[:-1], x[1:]), np.maximum(x[:-1], x[1:])
    found: Floats = np.where(a > 0, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))
    return found


def _outside(low: float, high: float, s: float, q: float, removed: bool) -> tuple[float, float]:
    """P's mass below the lowest and above the highest point."""
    share = 0.0 if removed else q
    below = (1 - share) * ndtr(low / s) + share * ndtr((low - 1) / s)
    above = (1 - share) * ndtr(-high / s) + share * ndtr(-(high - 1) / s)
    return float(below), float(above)
