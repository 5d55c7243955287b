"""Prices a few equal subsampled Gaussian releases: moves the law of L upward onto a grid, then convolves it.

With few releases the transform dies out too slowly for the contour. In each cell of the grid of losses both the mass
under P and the mass under Q are kept by splitting the cell between its two ends; delta as a function of e^epsilon is
convex and becomes its chord, so it only rises ("connect the dots", Doroshenko et al., PETS 2022). Mass above the grid
counts as lost, mass below it is lifted to the lowest place.

Float errors are bounded cell by cell and added on the safe side. The one assumption: `math`'s and numpy's
exp, expm1, log, log1p and erfc are good to 1e-15 relative (they are good to a few 1e-16).
1. Places. The point x of a loss l is off by so little that its true loss is within d <= `_off` of l. Every place is
   moved up by d, so no loss lies above its upper place; one up to 2d below its lower place is lifted to it, which takes
   at most 2d of Q's mass there, so the split may be wrong by 2d / (1 - e^-step) of the cell.
2. Masses. A difference of two tails is off by 1e-15 of their sum (`_between`); P's mass gets that on top, and the split
   moves by the error of its numerator over 1 - e^-step.
3. The convolution is a Fourier transform F of the law tilted by e^{cL}, whose masses sum to 1. A fast transform of 2^18
   cells errs by at most 1e-14 of the sum of sizes in each coefficient (18 stages of a few 1e-16), there and back, and the
   power n by n times that: a cell is off by 1e-14 times the mean of n |F|^{n-1} + |F|^n, which is added to every cell.
   Wrapping around adds nonnegative terms, as in contour.py.

The tail of L beyond the grid would make large orders of its transform useless, so the guide uses the law on the grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb
from numpy.fft import irfft, rfft

from dither.exact.balls import ball
from dither.privacy.accountant.product import Guide
from dither.privacy.parts import SubsampledGaussian
from dither.privacy.parts.base import Complexes, Floats

MOST = 300
_CELLS = 1 << 18
_FLOAT = 1e-15
_STAGES = 1e-14
_COARSE = 400
_SAFE = 1e-9  # the share of every cell that is moved up as an extra margin


class Grid:
    """Evaluates an upper bound of delta for `count` releases of one part."""

    def __init__(self, part: SubsampledGaussian, count: int, epsilon: float, log_delta: float) -> None:
        guide = guide_of(part, count, log_delta)
        self.c = guide.order(epsilon)
        low, high = _range(part, count, log_delta)
        self.step = max(guide.period(self.c, epsilon, log_delta), (high - low) / 4) / _CELLS
        first, masses, lost, off = _cells(part, self.step, low, high)
        places = np.arange(first, first + len(masses))
        logs = np.log(np.maximum(masses, 1e-300)) + self.c * self.step * places
        top = float(logs.max())
        size = float(np.exp(logs - top).sum())
        tilted = np.bincount(places % _CELLS, weights=np.exp(logs - top) / size, minlength=_CELLS)
        transform = rfft(tilted)
        sizes = np.minimum(np.abs(transform) + _STAGES, 1.0)
        wrong = _STAGES * float((count * sizes ** (count - 1) + sizes**count).mean()) * 1.01
        self.law: Floats = np.maximum(irfft(transform**count, _CELLS), 0) + wrong
        self.log_size = count * (top + math.log(size)) * (1 + 1e-13) + count * 1e-12
        self.lost = lost * count
        self.off = off * count

    def __call__(self, epsilon: Fraction) -> arb:
        # Places stand `off` higher than step * integers; asking at a slightly smaller epsilon covers that and rounding.
        e = float(epsilon) * (1 - 1e-14) - self.off
        start = math.ceil(e / self.step - 1e-6)
        above = np.arange(_CELLS) * self.step + (start * self.step - e)
        law = np.roll(self.law, -(start % _CELLS))
        total = float((law * np.exp(-self.c * above) * -np.expm1(-np.maximum(above, 0))).sum())
        # Float sums of positive terms: a relative margin of 1e-9 is far above their error.
        log_total = self.log_size - self.c * e + math.log(max(total, 1e-290)) + 1e-9
        return ball(Fraction(log_total)).exp() + ball(Fraction(self.lost))


@dataclass(frozen=True)
class _Coarse:
    """The law of one release on a few places, for the guide."""

    losses: Floats
    logs: Floats
    count: int

    def log(self, z: Complexes) -> Complexes:
        powers = np.multiply.outer(z.real, self.losses) + self.logs
        top = powers.max(axis=1)
        logs: Complexes = (self.count * (top + np.log(np.exp(powers - top[:, None]).sum(axis=1)))).astype(np.complex128)
        return logs


def guide_of(part: SubsampledGaussian, count: int, log_delta: float) -> Guide:
    """Returns the guide for the search. It decides no price."""
    low, high = _range(part, count, log_delta)
    step = (high - low) / _COARSE
    first, masses, _, _ = _cells(part, step, low, high)
    losses: Floats = np.asarray((first + np.arange(len(masses))) * step, dtype=np.float64)
    masses = masses / masses.sum()
    mean = float(masses @ losses)
    deviation = math.sqrt(float(masses @ (losses - mean) ** 2) * count)
    return Guide(_Coarse(losses, np.log(np.maximum(masses, 1e-300)), count), None, deviation)


def _range(part: SubsampledGaussian, count: int, log_delta: float) -> tuple[float, float]:
    """Returns a range of losses; those outside are negligible even in `count` releases."""
    reach = float(part.sigma) * math.sqrt(-2 * (max(log_delta, -1e4) - math.log(count) - 20))
    ends = [_loss(part, x) for x in (-reach, 1 + reach)]
    return min(ends), max(ends)


def _loss(part: SubsampledGaussian, x: float) -> float:
    q, s = float(part.q), float(part.sigma)
    value = float(np.logaddexp(math.log1p(-q) if q < 1 else -math.inf, math.log(q) + (x - 0.5) / s**2))
    return -value if part.removed else value


def _cells(part: SubsampledGaussian, step: float, bottom: float, ceiling: float) -> tuple[int, Floats, float, float]:
    """Returns (first place, masses from there on, mass lost, how far to move places up): a law above that of L."""
    s, q, rest = float(part.sigma), float(part.q), float(1 - part.q)
    low, high = math.floor(bottom / step) - 1, math.ceil(ceiling / step) + 1
    places = np.arange(low, high + 1)
    x, off = _points(part, np.asarray(places * (-step if part.removed else step), dtype=np.float64))
    (near, near_off), (far, far_off) = _between(x / s), _between((x - 1) / s)
    mixed, mixed_off = rest * near + q * far, rest * near_off + q * far_off
    p, p_off = (near, near_off) if part.removed else (mixed, mixed_off)
    at, width = places[:-1] * step, -math.expm1(-step)
    # Q's mass times e^l, minus p e^-step, as a sum of near and far times factors that do not cancel.
    if part.removed:
        near_times, far_times = np.expm1(at) - q * np.exp(at) + width, q * np.exp(at)
    else:
        near_times, far_times = np.expm1(at) + q + rest * width, np.full(len(at), q * (width - 1))
    wrong = np.abs(near_times) * near_off + np.abs(far_times) * far_off
    wrong += 4 * _FLOAT * ((np.abs(np.expm1(at)) + q * np.exp(np.maximum(at, 0)) + width) * near + np.abs(far_times) * far)
    lower = (near_times * near + far_times * far - wrong) / width - p * (2 * off / width + _SAFE)
    lower = np.clip(np.nan_to_num(lower, nan=0.0, posinf=0.0, neginf=0.0), 0, p)
    masses = np.zeros(len(places))
    masses[:-1] += lower
    masses[1:] += p - lower + p_off
    below, above = _outside(float(x.min()), float(x.max()), s, q, part.removed)
    # Where a unit is removed, large x means small losses.
    lifted, lost = (above, below) if part.removed else (below, above)
    masses[0] += lifted
    return low, masses * (1 + 1e-13), lost, off


def _points(part: SubsampledGaussian, losses: Floats) -> tuple[Floats, float]:
    """Returns (the points x with ln B(x) = loss, the error of their true losses); -infinity where there is no point.

    B = 1 - q + q odds, and an error r in ln odds moves ln B by r q odds / B. Near 0 the odds are 1 + expm1(l)/q, whose
    error is |expm1(l)|/q; elsewhere (e^l - (1 - q))/q, whose error is (e^l + 1 - q)/q; the smaller is taken.
    """
    s, q, rest = float(part.sigma), float(part.q), float(1 - part.q)
    with np.errstate(all="ignore"):
        more, grown = np.expm1(losses), np.exp(losses)
        close = np.abs(more) < grown + rest
        edge = np.where(close, q + more, grown - rest)
        log_odds = np.where(close & (more > -q), np.log1p(more / q), np.log(edge / q))
        x = np.where(edge > 0, s * s * log_odds + 0.5, -np.inf)
        error = np.minimum(np.abs(more), grown + rest) + np.abs(log_odds) * np.maximum(edge, 0)
        # The half added to x and the squares of s round too: 1e-15 of |x - 1/2| + 1 in x.
        error += np.maximum(edge, 0) * (np.abs(log_odds) + 1 / s**2)
        off = 4 * _FLOAT * np.where(np.isfinite(x), error / grown, 0.0)
    return x, float(off.max())


def _tail(x: Floats) -> Floats:
    """Returns the normal mass above |x|."""
    return np.fromiter(map(math.erfc, (np.abs(x) / math.sqrt(2)).tolist()), np.float64, len(x)) / 2


def _between(x: Floats) -> tuple[Floats, Floats]:
    """Returns (the normal mass between successive points, in either order; its error), accurate in both tails."""
    tail = _tail(x)
    a, b, side = tail[:-1], tail[1:], np.sign(x)
    mass: Floats = np.where(side[:-1] * side[1:] < 0, 1 - a - b, np.abs(a - b))
    # A tail at x is off by 1e-15 of itself and, x being a rounded number, by up to x^2 + 1 times that.
    scale = np.where(np.isfinite(x), x * x + 2, 0.0)
    wrong: Floats = 2 * _FLOAT * (a * scale[:-1] + b * scale[1:] + mass)
    return mass, wrong


def _outside(low: float, high: float, s: float, q: float, removed: bool) -> tuple[float, float]:
    """Returns upper bounds of P's mass below the lowest and above the highest point."""
    share = 0.0 if removed else q
    root = s * math.sqrt(2)
    below = (1 - share) * math.erfc(-low / root) + share * math.erfc(-(low - 1) / root)
    above = (1 - share) * math.erfc(high / root) + share * math.erfc((high - 1) / root)
    return below / 2 * (1 + 1e-9), above / 2 * (1 + 1e-9)
