"""Computes the true epsilon of benchmark cases from formulas, not from the code that samples them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations

import numpy as np

Pair = tuple[Sequence[float], Sequence[float]]


def pieces(kinks: Sequence[float], reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns Gauss–Legendre nodes and weights between the kinks of the integrand."""
    node, weight = np.polynomial.legendre.leggauss(40)
    inner = sorted(set(kinks))
    outer = np.geomspace(1, 1 + reach, 24) - 1
    edges = np.unique(np.concatenate([inner, inner[0] - outer, inner[-1] + outer]))
    width, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    return (middle[:, None] + width[:, None] * node).ravel(), (width[:, None] * weight).ravel()


def density(x: np.ndarray, scale: float) -> np.ndarray:
    return np.exp(-np.abs(x) / scale) / (2 * scale)


def below(x: np.ndarray, scale: float) -> np.ndarray:
    """Pr[Laplace < x], as a step where there is no noise."""
    if scale == 0:
        return (x > 0).astype(float)
    return np.where(x < 0, np.exp(np.minimum(x, 0) / scale) / 2, 1 - np.exp(-np.maximum(x, 0) / scale) / 2)


def patterns_up_to(size: int, c: int) -> Iterator[tuple[int, ...]]:
    """Yields every answer of a sparse vector that stops after c answers above."""

    def grow(done: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(done) == size or sum(done) == c:
            yield done
            return
        for answer in (0, 1):
            yield from grow((*done, answer))

    return grow(())


def sparse(data: Sequence[float], threshold: float, query: float, c: int) -> np.ndarray:
    """Returns the probability of every answer, in the order of `patterns_up_to`."""
    at, weight = pieces([0.0, *(x - 0.5 for x in data)], 45 * max(threshold, query))
    lower = [below(0.5 + at - x, query) for x in data]
    start = density(at, threshold) * weight
    found = []
    for answer in patterns_up_to(len(data), c):
        product = start
        for place, above in enumerate(answer):
            product = product * (1 - lower[place] if above else lower[place])
        found.append(product.sum())
    return np.array(found)


def noisy_max(data: Sequence[float], scale: float) -> np.ndarray:
    at, weight = pieces(list(data), 45 * scale)
    found = []
    for place, x in enumerate(data):
        product = density(at - x, scale) * weight
        for other, y in enumerate(data):
            if other != place:
                product = product * below(at - y, scale)
        found.append(product.sum())
    return np.array(found)


def exponential(data: Sequence[float], rate: float) -> np.ndarray:
    weights = np.exp(rate * np.asarray(data, dtype=float))
    return weights / weights.sum()


def flip(data: Sequence[float], rate: float) -> np.ndarray:
    """Computes permute-and-flip over every order."""
    bias = np.exp(rate * (np.asarray(data, dtype=float) - max(data)))
    found = np.zeros(len(data))
    orders = list(permutations(range(len(data))))
    for order in orders:
        left = 1.0 / len(orders)
        for place in order:
            found[place] += left * bias[place]
            left *= 1 - bias[place]
    return found


def worst(law: Callable[[Sequence[float]], np.ndarray], pairs: Sequence[Pair]) -> float:
    """Returns the largest log ratio of two lists of probabilities over all pairs; infinite if only one is zero."""
    found = 0.0
    for one, other in pairs:
        p, q = law(one), law(other)
        for a, b in zip(p, q, strict=True):
            if max(a, b) > 1e-13:
                found = max(found, math.inf if min(a, b) < 1e-16 else abs(math.log(a / b)))
    return found


def gaussian_delta(epsilon: float, sigma: float) -> float:
    """Balle and Wang 2018, theorem 8, at sensitivity 1."""
    return normal(0.5 / sigma - epsilon * sigma) - math.exp(epsilon) * normal(-0.5 / sigma - epsilon * sigma)


def normal(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def fresh(data: Sequence[float], threshold: float, query: float, c: int) -> np.ndarray:
    """The sparse vector that redraws its threshold after each answer above: the parts between are independent."""
    at, weight = pieces([0.0, *(x - 0.5 for x in data)], 45 * max(threshold, query))
    start, lower = density(at, threshold) * weight, [below(0.5 + at - x, query) for x in data]

    def stretch(begin: int, end: int, stopped: bool) -> float:
        product = start
        for place in range(begin, end):
            product = product * lower[place]
        return float((product * (1 - lower[end]) if stopped else product).sum())

    found = []
    for answer in patterns_up_to(len(data), c):
        chance, begin = 1.0, 0
        for place, above in enumerate(answer):
            if above:
                chance, begin = chance * stretch(begin, place, True), place + 1
        found.append(chance * (stretch(begin, len(answer), False) if begin < len(answer) else 1.0))
    return np.array(found)


def bare(data: Sequence[float], query: float) -> np.ndarray:
    """Where the first noisy answer exceeds a threshold without noise."""
    lower, left, found = [float(below(np.array(0.5 - x), query)) for x in data], 1.0, []
    for chance in lower:
        found.append(left * (1 - chance))
        left *= chance
    return np.array([*found, left])


def gap(data: Sequence[float], scale: float, lead: float) -> np.ndarray:
    """Returns the density of (place of the largest, lead over the next) at one lead, for every place."""
    at, weight = pieces([*data, *(x + lead for x in data)], 45 * scale)
    found = []
    for place, x in enumerate(data):
        first, total = density(at - x, scale) * weight, 0.0
        for second, y in enumerate(data):
            if second != place:
                product = first * density(at - lead - y, scale)
                for other, z in enumerate(data):
                    product = product * (1.0 if other in (place, second) else below(at - lead - z, scale))
                total += product.sum()
        found.append(total)
    return np.array(found)


def sparse_value(data: Sequence[float], threshold: float, query: float, value: float) -> np.ndarray:
    """Returns the density of "first above at this place, with this noisy value", for every place."""
    at, weight = pieces([0.0, value - 0.5, *(x - 0.5 for x in data)], 45 * max(threshold, query))
    product, found = density(at, threshold) * weight * (at <= value - 0.5), []
    for x in data:
        found.append(product.sum() * float(density(np.array(value - x), query)))
        product = product * below(0.5 + at - x, query)
    return np.array(found)


def least_epsilon(p: np.ndarray, q: np.ndarray, delta: float) -> float:
    """Returns the least epsilon at which p(S) <= e^epsilon q(S) + delta for every S, for two lists of probabilities."""

    def excess(epsilon: float) -> float:
        return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())

    if excess(50.0) > delta:
        return math.inf
    low, high = 0.0, 50.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) <= delta else (middle, high)
    return high
