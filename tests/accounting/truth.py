"""Independent answers for the accountant's tests: laws listed outcome by outcome, without transforms.

`outputs` gives the two output laws of a release, and `stick` compares products of them, output by output: nothing is a
log ratio there. `by_counts` does it for many equal releases with few outputs, `by_integral` by a plain integral in floats on a
line and a grid of its own choice.
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


Outputs = tuple[np.ndarray, np.ndarray]


def outputs(part: Part, reach: int = 12) -> Outputs:
    """The probabilities of all outputs with and without the unit (or with one value and another), in floats."""
    if isinstance(part, parts.Subsampled):
        with_unit, without = outputs(part.part, reach)
        mixed = float(1 - part.q) * without + float(part.q) * with_unit
        return (without, mixed) if part.removed else (mixed, without)
    if isinstance(part, parts.KaryResponse):
        k, high = part.categories, math.exp(float(part.epsilon) * (1 if part.truthful else -1))
        one, other = np.ones(k), np.ones(k)
        one[0] = other[1] = high
        return one / one.sum(), other / other.sum()
    if isinstance(part, parts.Response):
        high = 1 / (1 + math.exp(-float(part.epsilon)))
        return np.array([high, 1 - high]), np.array([1 - high, high])
    if isinstance(part, parts.DiscreteLaplace):
        a, k = math.exp(-float(part.epsilon) / part.steps), part.steps
        without = np.array([1.0, *((1 - a) * a**x for x in range(1, k)), a**k]) / (1 + a)
        return without[::-1], without
    if isinstance(part, parts.DiscreteGaussian):
        reach = reach * math.isqrt(math.ceil(part.variance)) + reach
        x = np.arange(-reach, reach + part.shift + 1)
        weights = [np.exp(-((x - at) ** 2) / (2 * float(part.variance))) for at in (part.shift, 0)]
        return weights[0] / weights[0].sum(), weights[1] / weights[1].sum()
    raise NotImplementedError(type(part).__name__)


def cells(q: float, sigma: float, count: int) -> Outputs:
    """Subsampled Gaussian noise, a unit added, after merging its outputs into cells: a lower bound."""
    x = np.concatenate([[-np.inf], np.linspace(-7 * sigma, 1 + 7 * sigma, count + 1), [np.inf]])

    def masses(at: np.ndarray) -> np.ndarray:
        low, high = at[:-1], at[1:]
        return np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))

    near, far = masses(x / sigma), masses((x - 1) / sigma)
    return (1 - q) * near + q * far, near


def two_steps(q: str, sigma: float, epsilon: float) -> float:
    """delta of two subsampled Gaussian steps, a unit added: the mean of one step's delta over the other, to 60 digits."""
    with working(400):
        share, s, e = arb(q), arb(sigma), arb(epsilon)

        def above(x: arb) -> arb:
            return (x / (s * arb(2).sqrt())).erfc() / 2

        def alone(at: arb) -> arb:
            """delta of one step: P(L > at) - e^at Q(L > at)."""
            x = s * s * ((at.exp() - 1 + share) / share).log() + arb(1) / 2
            return (1 - share - at.exp()) * above(x) + share * above(x - 1)

        def weighted(x: arb) -> arb:
            mixed = 1 - share + share * ((x - arb(1) / 2) / (s * s)).exp()
            return (-x * x / (2 * s * s)).exp() * mixed * alone(e - mixed.log())

        # Beyond `last` the loss is above epsilon - ln(1 - q). No loss of the other is below ln(1 - q), so there is no kink.
        last = s * s * (((e - (1 - share).log()).exp() - 1 + share) / share).log() + arb(1) / 2
        half, nodes = (last + 30 * s) / 200, [arb.legendre_p_root(24, k, weight=True) for k in range(24)]
        middles = [half * (2 * k + 1) - 30 * s for k in range(100)]
        bulk = sum((w * weighted(middle + half * x) for middle in middles for x, w in nodes), arb(0))
        tail = (1 - share) * above(last) + share * above(last - 1) - e.exp() * above(last)
        return float((bulk * half / (s * (2 * arb.pi()).sqrt()) + tail).mid())


def stick(releases: Sequence[Outputs], epsilon: float) -> float:
    """The sum over all outputs of (p - e^epsilon q)_+ for a product of releases."""
    p, q = np.ones(1), np.ones(1)
    for one, other in releases:
        p, q = np.multiply.outer(p, one).ravel(), np.multiply.outer(q, other).ravel()
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def by_counts(part: Part, n: int, epsilon: float) -> float:
    """The same for n equal releases: outputs that are equal but for their order have equal probabilities."""
    one, other = outputs(part)
    chosen = np.array(list(itertools.combinations(range(n + len(one) - 1), len(one) - 1)))
    each = np.diff(chosen, prepend=-1, append=n + len(one) - 1, axis=1) - 1
    factorial = np.array([math.lgamma(k + 1) for k in range(n + 1)])
    ways = factorial[n] - factorial[each].sum(axis=1)
    return float(np.maximum(np.exp(ways + each @ np.log(one)) - np.exp(ways + epsilon + each @ np.log(other)), 0).sum())


def by_integral(part: Part, n: int, epsilon: float, order: float, period: float) -> float:
    """delta of n releases in floats, by the integral on Re z = order with nodes 2 pi / period apart."""
    if isinstance(part, parts.SubsampledGaussian):
        s = float(part.sigma)
        x = np.linspace(-11 * s, 1 + 11 * s, 6001)
        u, q = (x - 0.5) / s**2, np.exp(-x * x / (2 * s * s)) / (s * math.sqrt(2 * math.pi)) * (x[1] - x[0])
    elif isinstance(part, parts.Subsampled) and isinstance(part.part, parts.Laplace):
        e = float(part.part.epsilon)
        nodes, weights = np.polynomial.legendre.leggauss(200)
        u = np.concatenate([[-e, e], e * nodes])
        q = np.concatenate([[0.5, 0.5 * math.exp(-e)], e * weights * np.exp(-e * (nodes + 1) / 2) / 4])
    else:
        raise NotImplementedError(type(part).__name__)
    loss = np.log(float(1 - part.q) + float(part.q) * np.exp(u))
    loss, p = (-loss, q) if part.removed else (loss, q * np.exp(loss))
    t, total = 0.0, 0.0
    while True:
        z = order + 1j * t
        term = np.exp(n * np.log((p * np.exp(z * loss)).sum()) - z * epsilon) / (z * (z + 1))
        if not abs(term) < math.inf:
            raise ArithmeticError("this order is too large")
        total += float(term.real) / (2 if t == 0 else 1)
        if abs(term) < 1e-16 * abs(total):
            return total * 2 / period
        t += 2 * math.pi / period


def rare_delta(q: Fraction, sigma: Fraction, n: int, epsilon: float) -> float:
    """delta of n rare Gaussian samples, by convolutions of positive numbers on two grids, extrapolated to no width.

    An estimate, not a bound. Nothing is subtracted, so even 1e-30 keeps its digits; what the grids add goes with their width.
    """
    coarse, fine = (_on_grid(q, sigma, n, epsilon, cells) for cells in (200, 400))
    return 2 * fine - coarse


def _on_grid(q: Fraction, sigma: Fraction, n: int, epsilon: float, cells: int) -> float:
    width, most = epsilon / cells, 9 * cells
    low, one, beyond = _rare_law(q, sigma, width, most)
    result, least, lost, power = np.ones(1), 0, 0.0, n
    while power:
        if power & 1:
            result, least, lost = _convolved(result, one, least + low, lost + beyond, most)
        one, low, beyond = _convolved(one, one, 2 * low, 2 * beyond, most)
        power >>= 1
    losses = (np.arange(len(result)) + least) * width
    return float((result * -np.expm1(np.minimum(epsilon - losses, 0))).sum() + lost)


def _convolved(one: np.ndarray, other: np.ndarray, low: int, lost: float, most: int) -> tuple[np.ndarray, int, float]:
    grown = np.convolve(one, other)
    end = most - low + 1
    return grown[:end], low, lost + float(grown[end:].sum())


def _rare_law(q: Fraction, sigma: Fraction, width: float, most: int) -> tuple[int, np.ndarray, float]:
    """The smallest loss in widths, the law of the loss of a sampled Gaussian, and the mass beyond `most` widths.

    The mass of a cell goes to its two ends so that both laws keep theirs: delta is right at the ends and too high between.
    """
    low = math.floor(math.log1p(-float(q)) / width) - 1
    with working(300):
        share, s, step = (arb(x.numerator) / arb(x.denominator) for x in (q, sigma, Fraction(width)))
        tails = []
        for place in range(low, most + 1):
            ratio = ((step * place).exp() - (1 - share)) / share
            if not ratio > 0:
                tails.append((arb(1), arb(1)))
                continue
            x = ratio.log() * s * s + arb(1) / 2
            without, with_unit = ((y / s / arb(2).sqrt()).erfc() / 2 for y in (x, x - 1))
            tails.append(((1 - share) * without + share * with_unit, without))
        law = [arb(0)] * len(tails)
        for i, ((p, r), (p_next, r_next)) in enumerate(itertools.pairwise(tails)):
            left, right = (-step * (low + i)).exp(), (-step * (low + i + 1)).exp()
            above = ((p - p_next) * left - (r - r_next)) / (left - right)
            law[i + 1] += above
            law[i] += p - p_next - above
    return low, np.array([float(mass) for mass in law]), float(tails[-1][0])
