"""Independent answers for the accountant's tests: laws listed outcome by outcome, without transforms.

`listed` gives every value of the log ratio with its exact probability, as a ball; `delta` sums over all outcomes of a
composition. `merged` turns a density into cells and compares their masses, which data processing can only lower, so
composing cells bounds delta from below.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import arb

from dither.exact.balls import exp, working
from dither.privacy import parts
from dither.privacy.parts import Part

Law = dict[Fraction, arb]


def ndtr(x: np.ndarray) -> np.ndarray:
    """The standard normal distribution function."""
    return np.vectorize(lambda at: math.erfc(-at / math.sqrt(2)) / 2, otypes=[float])(x)


def listed(part: Part) -> Law:
    """The law of the log ratio of a part with finitely many outcomes, from its two output laws."""
    if isinstance(part, parts.Response):
        yes = exp(part.epsilon) / (1 + exp(part.epsilon))
        return {part.epsilon: yes, -part.epsilon: 1 - yes}
    if isinstance(part, parts.DiscreteLaplace):
        a, k = exp(-part.epsilon / part.steps), part.steps
        law: Law = {part.epsilon: 1 / (1 + a), -part.epsilon: a**k / (1 + a)}
        for x in range(1, k):
            loss = part.epsilon * (k - 2 * x) / k
            law[loss] = law.get(loss, arb(0)) + (1 - a) / (1 + a) * a**x
        return law
    if isinstance(part, parts.DiscreteGaussian):
        reach = 12 * math.isqrt(math.ceil(part.variance)) + 12
        weights = {k: exp(-Fraction(k * k) / (2 * part.variance)) for k in range(-reach, reach + 1)}
        total = sum(weights.values(), arb(0))
        step, mean = part.shift / part.variance, Fraction(part.shift**2) / (2 * part.variance)
        return {step * k + mean: w / total for k, w in weights.items()}
    raise NotImplementedError(type(part).__name__)


def composed(pairs: Sequence[tuple[Part, int]]) -> Law:
    """The law of the sum, one outcome at a time."""
    law: Law = {Fraction(0): arb(1)}
    for part, count in pairs:
        one = listed(part)
        for _ in range(count):
            grown: Law = {}
            for (x, p), (y, q) in itertools.product(law.items(), one.items()):
                grown[x + y] = grown.get(x + y, arb(0)) + p * q
            law = grown
    return law


def delta(law: Law, epsilon: Fraction) -> arb:
    """E[(1 - e^{epsilon - L})_+] as a sum over outcomes."""
    with working(200):
        return sum((p * (1 - exp(epsilon - x)) for x, p in law.items() if x > epsilon), arb(0))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The textbook formula in floats."""
    return float(ndtr(np.array(mu / 2 - epsilon / mu)) - math.exp(epsilon) * ndtr(np.array(-mu / 2 - epsilon / mu)))


def merged(part: Part, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """(log ratios, probabilities) of a continuous part after merging its outputs into cells: a lower bound."""
    if isinstance(part, parts.Laplace):
        e = float(part.epsilon)
        x = np.linspace(0, e, cells + 1)
        p = np.concatenate([[0.5], 0.5 * -np.diff(np.exp(-x)), [0.5 * math.exp(-e)]])
        q = p[::-1]
        return np.log(p) - np.log(q), p
    if isinstance(part, parts.Gaussian):
        mu = math.sqrt(part.mu2)
        x = np.concatenate([[-np.inf], np.linspace(-7, 7 + mu, cells + 1), [np.inf]])
        p = np.diff(np.where(x - mu > 0, 1 - ndtr(-(x - mu)), ndtr(x - mu)))
        p = np.where(x[:-1] > mu, ndtr(mu - x[:-1]) - ndtr(mu - x[1:]), p)
        q = np.where(x[:-1] > 0, ndtr(-x[:-1]) - ndtr(-x[1:]), ndtr(x[1:]) - ndtr(x[:-1]))
        return np.log(p) - np.log(q), p
    law = listed(part)
    return np.array([float(x) for x in law]), np.array([float(w) for w in law.values()])


def merged_delta(pairs: Sequence[tuple[Part, int]], cells: int, epsilon: float) -> float:
    """A lower bound of delta for a few releases, continuous ones merged into cells."""
    x, p = np.zeros(1), np.ones(1)
    for part, count in pairs:
        one = merged(part, cells)
        for _ in range(count):
            x, p = np.add.outer(x, one[0]).ravel(), np.multiply.outer(p, one[1]).ravel()
    above = x > epsilon
    return float((p[above] * -np.expm1(epsilon - x[above])).sum())
