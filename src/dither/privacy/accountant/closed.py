"""Prices compositions whose delta(epsilon) has a closed form.

Gaussian releases of mu_1, mu_2, ... are together one of mu^2 = sum mu_i^2 (the optimal pair is a rotation away):

    delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu).        Balle and Wang, ICML 2018.

Where they carry slacks l_1, l_2, ... (parts/vector.py), delta is at most e^l times this at epsilon - l, l the sum of them.

One subsampled Gaussian release: L exceeds epsilon on one side of a point x, where the two laws' tails are compared.

One Laplace release on a sample: parts/sampled.py has the formula for any pair.

One continuous Laplace release: delta(epsilon) = 1 - e^{(epsilon - epsilon_0)/2} for epsilon <= epsilon_0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from flint import arb

from dither.exact.balls import ball, exp
from dither.privacy.parts import Gaussian, Laplace, Part, Response, Subsampled, SubsampledGaussian


def delta(parts: tuple[tuple[Part, int], ...]) -> Callable[[Fraction], arb] | None:
    """Returns delta as a function of epsilon in balls, or None if the composition has no closed form."""
    normal = _together(parts)
    if normal is not None:
        return lambda epsilon: _gaussian(*normal, epsilon)
    if len(parts) != 1 or parts[0][1] != 1:
        return None
    part = parts[0][0]
    if isinstance(part, Laplace):
        return lambda epsilon: 1 - exp((epsilon - part.epsilon) / 2) if epsilon < part.epsilon else arb(0)
    if isinstance(part, Response):
        return lambda epsilon: (1 - exp(epsilon - part.epsilon)) * _yes(part) if epsilon < part.epsilon else arb(0)
    if isinstance(part, SubsampledGaussian):
        return lambda epsilon: _subsampled(part, epsilon)
    if isinstance(part, Subsampled) and isinstance(part.part, Laplace):
        return lambda epsilon: _sampled_laplace(part, epsilon)
    return None


def _yes(part: Response) -> arb:
    return 1 / (1 + exp(-part.epsilon))


def start(parts: tuple[tuple[Part, int], ...], log_delta: float) -> float:
    """Returns an epsilon to start the search at."""
    normal = _together(parts)
    if normal is None:
        top = parts[0][0].top
        normal = 2 * parts[0][0].zcdp()[0], Fraction(0)
        if top is not None:
            return float(top)
    mu2, slack = map(float, normal)
    return mu2 / 2 + math.sqrt(max(0.0, -2 * log_delta * mu2)) + slack


def _together(parts: tuple[tuple[Part, int], ...]) -> tuple[Fraction, Fraction] | None:
    """Returns (mu^2, slack) of all Gaussian releases together, or None if there are others."""
    mu2, slack = Fraction(0), Fraction(0)
    for part, count in parts:
        if not isinstance(part, Gaussian):
            return None
        mu2 += part.mu2 * count
        slack += part.slack * count
    return mu2, slack


def _gaussian(mu2: Fraction, slack: Fraction, epsilon: Fraction) -> arb:
    mu, e = ball(mu2).sqrt(), ball(epsilon - slack)
    root = arb(2).sqrt()
    delta = ((e / mu - mu / 2) / root).erfc() / 2 - e.exp() * ((e / mu + mu / 2) / root).erfc() / 2
    return delta * exp(slack) if slack else delta


def _subsampled(part: SubsampledGaussian, epsilon: Fraction) -> arb:
    q, s, e = ball(part.q), ball(part.sigma), exp(epsilon)
    edge = 1 / e if part.removed else e
    odds = (edge - 1 + q) / q
    if not odds > 0:
        # Removing a unit never shows more than -ln(1 - q).
        return arb(0) if odds < 0 else arb(0).union(q)
    x = s * s * odds.log() + arb(1) / 2
    side = -1 if part.removed else 1
    root = arb(2).sqrt() * s
    near, far = (side * x / root).erfc() / 2, (side * (x - 1) / root).erfc() / 2
    mixed = (1 - q) * near + q * far
    return near - e * mixed if part.removed else mixed - e * near


def _sampled_laplace(part: Subsampled, epsilon: Fraction) -> arb:
    most, q, e = part.part.top, ball(part.q), exp(epsilon)
    left = 1 - e * (1 - q)
    odds, share = (e * q / left, left) if part.removed else (1 + (e - 1) / q, q)
    if most is None or not share > 0:
        return arb(0) if share < 0 else arb(0).union(share)
    gap = ((odds.log() - ball(most)) / 2).exp()
    return share * (1 - gap).max(arb(0))
