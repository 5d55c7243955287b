"""Choosing: noisy max, the exponential mechanism, permute-and-flip and the sparse vector. Right ones first."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.random import Generator

from detection.case import Case, Floats, expo, lap, patterns, values
from detection.vectors import above, exponential, flip, noisy_max

ONE = Fraction(1)


def with_gap(scale: float) -> Any:
    """Returns the place of the largest noisy value, and its lead over the next."""

    def law(rng: Generator, data: Any, n: int) -> Floats:
        noisy = values(data) + lap(rng, scale, (n, len(data)))
        ordered = np.sort(noisy, axis=1)
        return np.column_stack([noisy.argmax(axis=1), ordered[:, -1] - ordered[:, -2]])

    return law


def by_exponential(scale: float) -> Any:
    return lambda rng, data, n: noisy_max(data, expo(rng, scale, (n, len(data))))


def sparse(threshold: float, query: float, c: int, mode: str = "") -> Any:
    return lambda rng, data, n: above(rng, data, n, threshold, query, c, mode)


def halved(rng: Generator, data: Any, n: int) -> Floats:
    return noisy_max(data, lap(rng, 1.0, (n, len(data))))


RIGHT = (
    Case(
        "exponential mechanism",
        lambda rng, d, n: exponential(rng, d, n, 0.5),
        ONE,
        patterns(4),
        0.74615409,
        "McSherry and Talwar 2007",
    ),
    Case("noisy max, exponential noise", by_exponential(2.0), ONE, patterns(4), 0.97573943, "Ding et al. 2021"),
    Case("noisy max with gap", with_gap(2.0), ONE, patterns(4), 1.0, "Ding et al. 2019"),
    Case("sparse vector, three answers", sparse(2.0, 12.0, 3), ONE, patterns(6), 0.44749935, "Lyu et al., Alg. 1"),
    Case("sparse vector, fresh threshold", sparse(4.0, 8.0, 2, "fresh"), ONE, patterns(6), 0.44002767, "Lyu et al., Alg. 2"),
)
WRONG = (
    Case(
        "exponential mechanism, factor 2",
        lambda rng, d, n: exponential(rng, d, n, 1.0),
        ONE,
        patterns(4),
        1.4706149,
        "released systems",
    ),
    Case(
        "permute-and-flip, factor 2",
        lambda rng, d, n: flip(rng, d, n, 1.0),
        ONE,
        patterns(4),
        1.8260497,
        "McKenna and Sheldon 2020",
    ),
    Case("noisy max, half the noise", halved, ONE, patterns(5), 1.7589531, "Dwork and Roth 2014"),
    Case("noisy max, exponential, half", by_exponential(1.0), ONE, patterns(4), 1.8260497, "Ding et al. 2021"),
    Case("noisy max with gap, half", with_gap(1.0), ONE, patterns(4), 2.0, "Ding et al. 2019"),
    Case("sparse vector, noisy values", sparse(2.0, 2.0, 1, "value"), ONE, patterns(10), 5.0, "Lyu et al., Alg. 3"),
    Case("sparse vector, three for one", sparse(2.0, 4.0, 3), ONE, patterns(10), 1.5845824, "wrong accounting"),
    Case("sparse vector, bare threshold", sparse(0.0, 4.0, 1), ONE, patterns(10), 2.3609682, "Lyu et al. 2017"),
)
CHOOSING = RIGHT + WRONG
