"""The mechanisms of the reference list: RIGHT must not be flagged, WRONG must be.

Sources: Dwork and Roth 2014 (Laplace, noisy max, sparse vector); Balle and Wang 2018 (analytic Gaussian); Ghosh et al.
2009 (geometric); McKenna and Sheldon 2020 (permute-and-flip); Lyu, Su and Li 2017 (sparse-vector variants); Ding et al.
2018 (partial and prefix sums, histogram); Mironov 2012 (low bits); the rest are defects seen in released systems.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.random import Generator

from detection.case import INF, Case, gauss, geo, lap, patterns, values
from detection.vectors import above, flip, noisy_max

ONE, TENTH, HALF = Fraction(1), Fraction(1, 10), Fraction(1, 2)
COUNTS = ((0, 1), (5, 4))
SIGMA = 1.8778756  # analytic Gaussian for (1, 1/100), rounded up: delta is 0.00999999


def shifted(scale: float) -> Any:
    return lambda rng, x, n: x + lap(rng, scale, n)


def response(keep: float) -> Any:
    return lambda rng, bit, n: np.where(rng.random(n) < keep, bit, 1 - bit)


def value_of_max(rng: Generator, data: Any, n: int) -> Any:
    return np.asarray((values(data) + lap(rng, 2.0, (n, len(data)))).max(axis=1))


def each(scale: float) -> Any:
    return lambda rng, data, n: values(data) + lap(rng, scale, (n, len(data)))


def prefix_sums(rng: Generator, data: Any, n: int) -> Any:
    return np.cumsum(values(data) + lap(rng, 1.0, (n, len(data))), axis=1)


def low_bits(rng: Generator, x: Any, n: int) -> Any:
    return np.asarray(x + rng.laplace(0.0, 1.0, n))


def mean_by_exact_count(rng: Generator, data: Any, n: int) -> Any:
    return np.asarray((sum(data) + lap(rng, 1.0, n)) / len(data))


def bounds_from_data(rng: Generator, data: Any, n: int) -> Any:
    low, high = min(data), max(data)
    return np.asarray(sum(data) + lap(rng, max(abs(low), abs(high)), n))


def nan_survives(rng: Generator, data: Any, n: int) -> Any:
    clamped = [1.0 if x > 1 else 0.0 if x < 0 else x for x in data]
    return np.asarray(sum(clamped) + lap(rng, 1.0, n))


def wrapping_sum(rng: Generator, data: Any, n: int) -> Any:
    total = (sum(data) + 128) % 256 - 128
    return np.asarray(total + lap(rng, 1.0, n))


def float_sum_in_order(rng: Generator, data: Any, n: int) -> Any:
    total = 0.0
    for x in data:
        total += x
    return np.asarray((total - 2.0**53) + lap(rng, 1.0, n))


def twenty(rng: Generator, x: Any, n: int) -> Any:
    return np.asarray(x + lap(rng, 200.0, (n, 20)))


BIG = (2.0**53, *[1.0] * 100)
RIGHT = (
    Case("Laplace", shifted(1.0), ONE, COUNTS, 1.0, "Dwork et al. 2006"),
    Case("discrete Laplace", lambda rng, x, n: x + geo(rng, math.exp(-1), n), ONE, COUNTS, 1.0, "Ghosh et al. 2009"),
    Case(
        *("analytic Gaussian", lambda rng, x, n: x + gauss(rng, SIGMA, n), ONE, COUNTS, 1.0, "Balle and Wang 2018"),
        delta=Fraction(1, 100),
    ),
    Case(
        "noisy max, index",
        lambda rng, d, n: noisy_max(d, lap(rng, 2.0, (n, len(d)))),
        ONE,
        patterns(5),
        0.91843954,
        "Dwork and Roth 2014",
    ),
    Case("sparse vector", lambda rng, d, n: above(rng, d, n, 20, 40, 1), TENTH, patterns(10), 0.09828294, "Lyu et al., Alg. 1"),
    Case("randomized response", response(0.75), Fraction("1.0987"), ((0, 1),), math.log(3), "Warner 1965"),
    Case("permute-and-flip", lambda rng, d, n: flip(rng, d, n, 0.5), ONE, patterns(4), 0.97573943, "McKenna and Sheldon 2020"),
    Case("twenty parallel Laplace", twenty, TENTH, COUNTS, 0.1, "composition"),
)
WRONG = (
    Case("noisy max, value", value_of_max, ONE, patterns(10), 5.0, "Ding et al. 2018"),
    Case("histogram, scale ε", each(0.5), HALF, (((3, 1), (4, 1)), ((0, 0), (0, 1))), 2.0, "Ding et al. 2018"),
    Case(
        "sparse vector, c ignored",
        lambda rng, d, n: above(rng, d, n, 4, 4 / 3, 3),
        ONE,
        patterns(6),
        3.4036308,
        "Lyu et al., Alg. 4",
    ),
    Case(
        "sparse vector, no query noise",
        lambda rng, d, n: above(rng, d, n, 2, 0, 99),
        ONE,
        patterns(10),
        INF,
        "Lyu et al., Alg. 5",
    ),
    Case(
        "sparse vector, no cut-off",
        lambda rng, d, n: above(rng, d, n, 2, 2, 99),
        ONE,
        patterns(10),
        4.0611005,
        "Lyu et al., Alg. 6",
    ),
    Case("prefix sums, all entries differ", prefix_sums, ONE, patterns(10), 10.0, "Ding et al. 2018"),
    Case(
        "partial sum, half scale",
        lambda rng, d, n: sum(d) + lap(rng, 0.5, n),
        ONE,
        (((1, 0), (1, 1)),),
        2.0,
        "Ding et al. 2018",
    ),
    Case("float64 plus Laplace", low_bits, ONE, COUNTS, INF, "Mironov 2012"),
    Case("mean by exact count", mean_by_exact_count, ONE, (((1, 0, 1), (1, 0)), ((1,), (1, 1))), INF, "released systems"),
    Case("bounds from the data", bounds_from_data, ONE, (((1, 0, 1), (1, 0, 9)), ((1, 1), (1, 2))), INF, "released systems"),
    Case("NaN survives the clamp", nan_survives, ONE, (((1.0, 0.0), (1.0, 0.0, math.nan)),), INF, "released systems"),
    Case("wrapping sum", wrapping_sum, ONE, (((1,) * 127, (1,) * 128),), 255.0, "Casacuberta et al. 2022"),
    Case("float sum in data order", float_sum_in_order, ONE, ((BIG, BIG[1:] + BIG[:1]),), 100.0, "Casacuberta et al. 2022"),
    Case("two queries, full budget each", lambda rng, x, n: x + lap(rng, 1.0, (n, 2)), ONE, COUNTS, 2.0, "composition"),
)
ANCHORS = RIGHT + WRONG
