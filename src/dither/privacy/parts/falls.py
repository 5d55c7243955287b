"""How soon the transform of a density dies out: bounds of |r(u)|, r(u) = phi(c + iu) / phi(c), for all u from some t on.

Let L and L' be drawn independently from the tilted law, of density e^{cL} times the measure over phi(c), and D = L - L'. Then

    f(u) = 1 - |r(u)|^2 = E[1 - cos(uD)],

and each of these bounds it from below:

    far      |r(u)| <= V/u (SampledPart.decay), so f >= 1/2 from T = sqrt(2) V on.
    near     |sin kx| <= k |sin x| for whole k, so f(u) >= f(ku) / k^2 >= 1 / (2 k^2) if ku >= T.
    spread   1 - cos x >= 2 x^2 / pi^2 for |x| <= pi. With S the double integral of D^2/2 over an interval of losses of length
             at most pi/u, f(u) >= 4 u^2 S / pi^2. S is taken from below: cells of x with less than their masses m, and with
             the losses y at one of their ends, which are off by at most the cells' lengths w. By Minkowski's inequality
             sqrt(S) >= sqrt(M sum m y^2 - (sum m y)^2) - sqrt(M sum m w^2), with M the sum of m.

The interval starts at the end of the losses where units are not sampled, near which nearly all of them lie.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dither.privacy.parts.base import Floats
from dither.privacy.parts.clouds import Field, log_mixed

_CELLS = 2000
_PER_OCTAVE = 4
_OCTAVES = 40
_SURE = 1 - 1e-6  # far more than the rounding of sums


@dataclass(frozen=True)
class Fall:
    """Bounds ln |r(u)| for u >= t. `shares`: lower bounds of f from T on, from T / 2^(1/4) on, ..."""

    log_v: float
    shares: Floats

    def log(self, t: float) -> float:
        far = self.log_v + math.log(2) / 2 - math.log(t)  # ln (T / t)
        if far <= 0:
            return min(-math.log(2) / 2, self.log_v - math.log(t))
        place = math.ceil(far / math.log(2) * _PER_OCTAVE + 1e-9) if far < math.inf else len(self.shares)
        return math.log1p(-float(self.shares[place])) / 2 if place < len(self.shares) else 0.0


def fall_of(field: Field | None, q: float, order: float, log_size: float, log_v: float) -> Fall:
    """Returns the fall of the measure Q B^order on a field, ln phi(c) being `log_size` and ln V `log_v`."""
    log_v = log_v - log_size + 1e-6
    if field is None or not log_v < 600:
        return Fall(math.inf, np.zeros(0))
    steps = 2.0 ** (np.arange(_PER_OCTAVE * _OCTAVES + 1) / _PER_OCTAVE)
    starts: Floats = math.sqrt(2) * math.exp(log_v) / steps
    near = 0.5 / np.ceil(steps * (1 + 1e-9)) ** 2
    best = np.maximum(near, np.minimum(_spread(field, q, order, log_size, starts), 0.5)) * _SURE
    return Fall(log_v, np.minimum.accumulate(best))


def _spread(field: Field, q: float, order: float, log_size: float, starts: Floats) -> Floats:
    """Returns the third bound of f between each start and the one before."""
    x = np.linspace(field.low, field.high, _CELLS + 1)
    losses, heights = log_mixed(q, field.slope * x + field.shift), field.height(x)
    powers = order * losses
    # A unimodal density is smallest at an end of a cell, and so is a power of B.
    least = np.minimum(powers[1:], powers[:-1]) - np.maximum(heights[1:], heights[:-1]) - log_size
    masses = np.exp(np.minimum(least, 1.0)) * (x[1] - x[0])
    y = losses - losses[0]
    m, first, second, wide = (
        np.concatenate([[0.0], np.cumsum(masses * each)]) for each in (1.0, y[:-1], y[:-1] ** 2, np.diff(y) ** 2)
    )
    root = np.sqrt(np.maximum(m * second - first**2, 0.0)) - np.sqrt(m * wide)
    whole = np.searchsorted(y, math.pi / (starts * 2 ** (1 / _PER_OCTAVE)) * _SURE, side="right") - 1
    found: Floats = 4 * starts**2 / math.pi**2 * np.maximum(root[whole], 0.0) ** 2
    return found
