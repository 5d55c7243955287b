"""Counts, sums and histograms, and the calibration of their noise. Right ones first."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.random import Generator

from detection.case import INF, Case, gauss, geo, lap, values

ONE, HALF = Fraction(1), Fraction(1, 2)
COUNTS = ((0, 1), (5, 4))
TABLES = (((3, 1, 0), (4, 1, 0)), ((0, 0, 0), (0, 0, 1)))
RATIO = math.exp(-1)
# Pr[noise >= m] = a^m / (1 + a): 0.004926 at m = 5 and 0.01339 at m = 4.
DELTA = Fraction(493, 100_000)
TEXTBOOK = math.sqrt(2 * math.log(1.25 / 0.1)) / 8


def plain(scale: float) -> Any:
    return lambda rng, x, n: x + lap(rng, scale, n)


def table(scale: float) -> Any:
    return lambda rng, data, n: values(data) + lap(rng, scale, (n, len(data)))


def total(scale: float) -> Any:
    return lambda rng, data, n: sum(data) + lap(rng, scale, n)


def clamped(rng: Generator, x: Any, n: int) -> Any:
    return np.clip(x + geo(rng, RATIO, n), 0, 10)


def running(rng: Generator, data: Any, n: int) -> Any:
    return np.cumsum(values(data) + lap(rng, 1.0, (n, len(data))), axis=1)


def smart_sum(block_scale: float) -> Any:
    """Running sums in blocks of three (Chan, Shi and Song 2011): items since the last block, and whole blocks."""

    def law(rng: Generator, data: Any, n: int) -> Any:
        items = values(data) + lap(rng, 2.0, (n, len(data)))
        sums, done = np.zeros((n, len(data))), np.zeros(n)
        for place in range(len(data)):
            start = place - place % 3
            if place % 3 == 2:
                done = done + sum(data[start : place + 1]) + (lap(rng, block_scale, n) if block_scale else 0.0)
                sums[:, place] = done
            else:
                sums[:, place] = done + items[:, start : place + 1].sum(axis=1)
        return sums

    return law


def shown_from(threshold: int) -> Any:
    """Shows a key's noisy count if it reaches the threshold; never shows an absent key."""

    def law(rng: Generator, x: Any, n: int) -> Any:
        noisy = x + geo(rng, RATIO, n)
        return np.where((noisy >= threshold) & (x > 0), noisy, np.nan)

    return law


def subsampled(rng: Generator, x: Any, n: int) -> Any:
    """Counts each of x people with probability 1/10, with Laplace noise for epsilon 3."""
    return np.asarray(rng.binomial(x, 0.1, n) + lap(rng, 1 / 3, n))


def truncated(rng: Generator, x: Any, n: int) -> Any:
    noise = lap(rng, 1.0, 2 * n + 100)
    return np.asarray(x + noise[np.abs(noise) <= 4][:n])


def at_most_rows(rng: Generator, x: Any, n: int) -> Any:
    return np.clip(x + lap(rng, 1.0, n), 0, x)


def uniform(rng: Generator, x: Any, n: int) -> Any:
    return np.asarray(x + np.round(rng.uniform(-8, 8, n) * 2**20) / 2**20)


def poisson(rng: Generator, x: Any, n: int) -> Any:
    return np.asarray(x + rng.poisson(4, n) - 4, dtype=np.float64)


AMPLIFIED = math.log(1 + 0.1 * (math.exp(3) - 1))
SIX = (((0,) * 6, (1, 0, 0, 0, 0, 0)), ((1,) * 6, (1, 1, 1, 1, 1, 0)))
GROUPS = (((1, 1, 1, 0, 0, 0), (-1, -1, -1, 0, 0, 0)), ((1, 0), (-1, 0)))
RIGHT = (
    Case("histogram", table(1.0), ONE, TABLES, 1.0, "Dwork et al. 2006"),
    Case("clamped geometric", clamped, ONE, COUNTS, 1.0, "Ghosh et al. 2009"),
    Case("two queries, half each", lambda rng, x, n: x + lap(rng, 2.0, (n, 2)), ONE, COUNTS, 1.0, "composition"),
    Case("prefix sums, one entry differs", running, ONE, SIX, 1.0, "Ding et al. 2018"),
    Case("smart sum", smart_sum(2.0), ONE, SIX, 1.0, "Chan et al. 2011"),
    Case("threshold", shown_from(6), ONE, ((0, 1), (6, 5)), 0.99323351, "Korolova et al. 2009", DELTA),
    Case("subsampled count", subsampled, Fraction("1.0677"), ((0, 1),), AMPLIFIED, "Balle et al. 2018"),
)
WRONG = (
    Case("geometric, wrong parameter", lambda rng, x, n: x + geo(rng, 0.5, n), HALF, COUNTS, math.log(2), "a = 1 − ε"),
    Case("scale rounded down", plain(math.floor(1 / 0.6)), Fraction(3, 5), COUNTS, 1.0, "calibration"),
    Case("truncated Laplace as pure", truncated, ONE, COUNTS, INF, "Geng et al. 2020"),
    Case("Gaussian as pure", lambda rng, x, n: x + gauss(rng, 1.0, n), ONE, COUNTS, INF, "Dwork and Roth 2014"),
    Case(
        *("Gaussian, textbook σ at ε = 8", lambda rng, x, n: x + gauss(rng, TEXTBOOK, n), Fraction(8), COUNTS, 10.0526694),
        *("Balle and Wang 2018", Fraction(1, 10)),
    ),
    Case("uniform noise", uniform, ONE, COUNTS, INF, "folklore"),
    Case("Poisson noise", poisson, ONE, COUNTS, INF, "folklore"),
    Case("threshold off by one", shown_from(5), ONE, ((0, 1), (6, 5)), INF, "released systems", DELTA),
    Case("smart sum, exact blocks", smart_sum(0.0), ONE, SIX, INF, "Ding et al. 2018"),
    Case("subsampling priced qε", subsampled, Fraction(3, 10), ((0, 1),), AMPLIFIED, "Balle et al. 2018"),
    Case("count clamped to the rows", at_most_rows, ONE, COUNTS, INF, "released systems"),
    Case("group replaced, priced as added", total(3.0), ONE, GROUPS, 2.0, "group bookkeeping"),
    Case("parallel cells, one replaced", table(1.0), ONE, (((3, 1), (2, 2)), ((1, 0), (0, 1))), 2.0, "released systems"),
    Case("fan-out of a join ignored", total(1.0), ONE, (((1,) * 5, ()), ((1, 1), (1,) * 7)), 5.0, "released systems"),
)
COUNTING = RIGHT + WRONG
