"""What a draw's law says about two runs that gave the same output: log densities, and lower bounds on delta.

For pure claims the log ratio of the two densities at one output is a lower bound on the true epsilon. With delta > 0 one
output proves nothing, so the probability of many is counted: of Laplace draws the far half of each (probability 1/2, loss
|shift| / scale), of Gaussian ones all, by the analytic formula (Balle and Wang, ICML 2018), and of a single draw whose scale
depends on data the tails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dither.audit.adapters.tape import GAUSSIAN, GEOMETRIC

_STEPS = (0.0, 0.5, *(float(k) for k in range(1, 11)), 14.0, 20.0, 30.0, 45.0, 60.0)


def log_density(kind: str, noise: float, scale: float) -> float:
    """Natural logarithm; of the probability for whole-number noise."""
    if kind == GAUSSIAN:
        return -0.5 * (noise / scale) ** 2 - math.log(scale) - 0.5 * math.log(2 * math.pi)
    if kind == GEOMETRIC:
        return -abs(noise) / scale + math.log(math.tanh(0.5 / scale))
    return -abs(noise) / scale - math.log(2 * scale)


def above(kind: str, noise: float, scale: float) -> float:
    """Pr[draw >= noise]."""
    if kind == GAUSSIAN:
        return 0.5 * math.erfc(noise / scale / math.sqrt(2))
    if kind == GEOMETRIC:
        # math.ceil would turn 2.9999999999 into 3 and 3.0000000001 into 4: whole numbers are meant.
        whole, ratio = round(noise), math.exp(-1 / scale)
        tail = ratio ** abs(whole if whole > 0 else 1 - whole) / (1 + ratio)
        return tail if whole > 0 else 1 - tail
    half = 0.5 * math.exp(-abs(noise) / scale)
    return half if noise >= 0 else 1 - half


@dataclass(frozen=True)
class Move:
    """How far one draw's noise must move to give the same output on D′; `stretch` is the scale's ratio, 1 if it stays."""

    kind: str
    scale: float
    shift: float
    stretch: float = 1.0

    @property
    def size(self) -> float:
        return abs(self.shift) / self.scale


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Of two normal laws mu standard deviations apart.

    >>> round(gaussian_delta(4.3771780957, 1.0), 8)
    1e-05
    """
    if mu <= 0:
        return max(0.0, -math.expm1(epsilon)) if epsilon < 0 else 0.0
    first = 0.5 * math.erfc((epsilon / mu - mu / 2) / math.sqrt(2))
    other = 0.5 * math.erfc((epsilon / mu + mu / 2) / math.sqrt(2))
    return max(0.0, first - (math.exp(min(epsilon, 700.0)) * other if other else 0.0))


def delta_at(moves: Sequence[Move], epsilon: float) -> float:
    """A lower bound on the true delta at that epsilon, given all outputs are seen."""
    same = [move for move in moves if abs(move.stretch - 1) < 1e-9]
    mu = math.sqrt(math.fsum(move.size**2 for move in same if move.kind == GAUSSIAN))
    sizes = sorted((move.size for move in same if move.kind != GAUSSIAN), reverse=True)
    best, loss = gaussian_delta(epsilon, mu), 0.0
    for count, size in enumerate(sizes, 1):
        loss += size
        best = max(best, 0.5**count * gaussian_delta(epsilon - loss, mu))
    real = max((move.size for move in same if move.kind not in (GAUSSIAN, GEOMETRIC)), default=0.0)
    best = max(best, -math.expm1((epsilon - real) / 2))  # a single Laplace draw, exactly
    return max([best, *(_tails(move, epsilon) for move in moves if abs(move.stretch - 1) >= 1e-9)])


def _tails(move: Move, epsilon: float) -> float:
    """The best tail for one draw: beyond t scales, on either side, for either dataset."""
    if move.kind == GEOMETRIC:
        return 0.0  # its tails lie on a grid that a stretched law does not share
    best = 0.0
    for sign in (1, -1):
        for step in (*_STEPS, *(-step for step in _STEPS)):
            here = step * move.scale
            there = here / move.stretch + sign * move.shift
            first, other = above(move.kind, here, move.scale), above(move.kind, there, move.scale)
            grown = math.exp(min(epsilon, 700.0))
            best = max(best, first - grown * other, other - grown * first)
    return best


def largest(holds: Callable[[float], bool], top: float = 60.0) -> float:
    """The largest epsilon up to `top` for which `holds`, given that it stops holding once and for all; 0 if none.

    >>> round(largest(lambda x: x < 1.25), 6)
    1.25
    """
    if not holds(0.0):
        return 0.0
    low, high = 0.0, top
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
