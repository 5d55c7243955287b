"""Bounds delta(epsilon) of compositions with subsampled releases: the line integral of contour.py with every node in floats.

Transforms of subsampled releases are sums over a cloud of losses (parts/clouds.py) with a proved error. So each factor r of a
node, relative to the transform at t = 0, is known up to some e, and its power n is off by at most (|r| + e)^n - |r|^n. These
errors, the nodes left out and everything that a cloud leaves out are added on the safe side. No node needs balls then: errors
of 1e-13 grow with n, but fewer nodes count, so a million releases are fine.

Smoothing (step 2 of contour.py) makes the integrand die out where a cloud of atoms alone would not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import acb, arb

from dither.exact.balls import ball
from dither.privacy.accountant.product import Guide
from dither.privacy.parts import Part
from dither.privacy.parts.base import Complexes, Floats
from dither.privacy.parts.clouds import Cloud
from dither.privacy.parts.sampled import SampledPart

_MOST_NODES = 1 << 18
_FEW, _SHARP_NODES = 2000, 1 << 17
_TAIL = 21.0
_SMOOTHING = 1.5e-7  # the relative rise of epsilon that smoothing may cause
_LEFT = 17.0  # clouds leave out e^-17 of delta
_SHARES = (0.9, 0.8, 0.7, 0.6, 0.5)  # smaller orders that are tried
_WORTH = 1.5

Parts = tuple[tuple[Part, int], ...]


def sampled(parts: Parts) -> bool:
    """Returns whether a release of these is subsampled."""
    return any(isinstance(part, SampledPart) for part, _ in parts)


def _share(count: int, log_delta: float) -> float:
    return max(log_delta, -1e4) - math.log(count) - _LEFT


@dataclass(frozen=True)
class _Rough:
    """The measure of a composition on a few points, for the guide."""

    clouds: tuple[tuple[Cloud, int], ...]
    others: Parts

    def log(self, z: Complexes) -> Complexes:
        total: Complexes = np.zeros(len(z), dtype=complex)
        for cloud, count in self.clouds:
            total += count * cloud.log(z)
        for part, count in self.others:
            total += count * part.log_phi(z)
        return total


def guide_of(parts: Parts, log_delta: float) -> Guide:
    """Returns the guide for the search. It decides no price."""
    clouds = tuple((part.rough(_share(n, log_delta)), n) for part, n in parts if isinstance(part, SampledPart))
    others = tuple((part, n) for part, n in parts if not isinstance(part, SampledPart))
    spread = sum(cloud.deviation(0.0) ** 2 * n for cloud, n in clouds) + sum(
        2 * float(part.zcdp()[0]) * n for part, n in others
    )
    return Guide(_Rough(clouds, others), None, max(math.sqrt(spread), 1e-150))


def _line(guide: Guide, epsilon: float, log_delta: float) -> tuple[float, float]:
    """Returns (c, period). A rare tail makes orders above c useless and the period long; a smaller c may cost little."""
    best = guide.order(epsilon)
    cost = guide.logs - guide.orders * epsilon - np.log(guide.orders) - np.log1p(guide.orders)
    least, chosen = float(cost.min()), (best, guide.period(best, epsilon, log_delta))
    for share in _SHARES:
        near = int(np.searchsorted(guide.orders, best * share))
        if cost[near] < least + _WORTH:
            c = float(guide.orders[near])
            chosen = min(chosen, (c, guide.period(c, epsilon, log_delta)), key=lambda each: each[1])
    return chosen


class Sampled:
    """An upper bound of delta as a function of epsilon, tight near the given one."""

    def __init__(self, parts: Parts, guide: Guide, epsilon: float, log_delta: float) -> None:
        self.c, period = _line(guide, epsilon, log_delta)
        c, self.h = self.c, 2 * math.pi / period
        head = float(np.interp(c, guide.orders, guide.logs)) - c * epsilon - log_delta
        self.others = [(part, n) for part, n in parts if not isinstance(part, SampledPart)]
        mixed = [(part, n) for part, n in parts if isinstance(part, SampledPart)]
        smooth = 2 * _SMOOTHING * max(epsilon, 1e-3 / c) / (c + 1)
        # At atoms smoothing costs first order in tau. There are heavy ones only while there are few releases.
        if sum(n for _, n in parts) <= _FEW and any(part.decay(c) == math.inf for part, _ in mixed):
            smooth = max(smooth / 400, 2 * (head + _TAIL) / (_SHARP_NODES * self.h / 1.3) ** 2)
        smooth = max(smooth, 2 * (head + _TAIL) / (_MOST_NODES * self.h / 1.3) ** 2)
        starts = [(part.decay(c), part.rough(_share(n, log_delta)).tilted(c)[0], n) for part, n in mixed]
        self.tau2 = smooth
        smoothed = self._enough(head, starts)
        self.tau2 = 0.0
        plain = self._enough(head, starts)
        # Smoothing is left out where the integrand dies out nearly as soon without it.
        if plain > min(1.5 * smoothed, _MOST_NODES - 1):
            self.tau2 = smooth
        self.nodes = smoothed if self.tau2 else plain
        clouds = [(part.cloud(c, self.nodes * self.h, _share(n, log_delta)), n) for part, n in mixed]
        sizes = [cloud.tilted(c)[0] for cloud, _ in clouds]
        self.tail = self._tail([(part.decay(c), size, n) for (part, n), size in zip(mixed, sizes, strict=True)])
        self.log_size = self.tau2 * (c * c + c) / 2
        for (cloud, n), size in zip(clouds, sizes, strict=True):
            self.log_size += n * (size + 3e-14 + 2 * cloud.wrong) + 1e-15 * abs(n * size)
        self.lost = sum(n * cloud.lost for cloud, n in clouds)
        self._multiply([(*cloud.ratios(c, self.h, self.nodes), n) for cloud, n in clouds])

    def _damping(self, t: float, starts: list[tuple[float, float, int]]) -> float:
        """Bounds ln of the integrand's size beyond t, relative to that at 0, without the kernel."""
        total = -self.tau2 * t * t / 2
        total += sum(n * min(0.0, decay - size - math.log(t) + 1e-6) for decay, size, n in starts)
        return total + sum(n * part.damping(self.c, t, periodic=False) for part, n in self.others)

    def _enough(self, head: float, starts: list[tuple[float, float, int]]) -> int:
        """Returns how many nodes leave a negligible tail."""
        nodes = 16
        while (
            nodes < _MOST_NODES and head + self._damping(nodes * self.h, starts) - math.log(math.pi * nodes * self.h) > -_TAIL
        ):
            nodes = nodes * 9 // 8
        return nodes

    def _tail(self, starts: list[tuple[float, float, int]]) -> float:
        """Bounds all nodes beyond the last, relative to the first: sum of h/t^2 <= 1/T, and |z (z + 1)| >= t^2."""
        last = self.nodes * self.h
        return math.exp(self._damping(last, starts)) * self.c * (self.c + 1) / (last * self.h)

    def _multiply(self, rows: list[tuple[Complexes, Floats, int]]) -> None:
        """Multiplies the factors at every node, with their errors; keeps the nodes that count."""
        c = self.c
        t: Floats = self.h * np.arange(self.nodes + 1, dtype=np.float64)
        z: Complexes = np.asarray(c + 1j * t, dtype=np.complex128)
        logs: Complexes = np.zeros(len(t), dtype=complex)
        upper: Floats = np.zeros(len(t))
        with np.errstate(divide="ignore"):
            for part, n in self.others:
                own = part.log_phi(z)
                own -= own[0]
                logs += n * own
                upper += n * np.log(np.exp(own.real) + 1e-12 + 4e-16 * t * part.spread)
                self.log_size += float((part.phi(acb(c)).real.log() * n).upper()) * (1 + 1e-15) + 1e-15
            for found, errors, n in rows:
                logs += n * np.log(found)
                upper += n * np.log(np.abs(found) + errors + 1e-15)
        kernel = c * (c + 1) / (z * (z + 1)) * np.exp(self.tau2 / 2 * (-t * t + 1j * t * (2 * c + 1)))
        sizes, most = np.exp(logs.real), np.exp(upper)
        values = np.where(sizes > 0, sizes * np.exp(1j * np.nan_to_num(logs.imag)), 0) * kernel
        wrong = (most - sizes + 1e-14 * most) * np.abs(kernel)
        keep = np.abs(values) > 1e-18
        keep[0] = False
        self.bound = float(wrong[1:].sum() + np.abs(values[1:][~keep[1:]]).sum() + self.tail) * (1 + 1e-9)
        self.t, self.values = t[keep], values[keep]

    def __call__(self, epsilon: Fraction) -> arb:
        e = float(epsilon)
        turned = self.values * np.exp(-1j * e * self.t)
        # Phases are off by 3e-16 of t * epsilon; the sum of cosines by its own rounding.
        rounding = float((np.abs(self.values) * (3e-16 * abs(e) * self.t + 1e-14)).sum())
        total = max(0.5 + float(turned.real.sum()) + self.bound + rounding, 1e-290)
        log_scale = self.log_size - self.c * e + math.log(self.h / math.pi / (self.c * (self.c + 1)))
        margin = 1e-14 * (abs(self.log_size) + self.c * abs(e) + 10)
        return ball(Fraction(log_scale + math.log(total) + margin)).exp() + ball(Fraction(self.lost))
