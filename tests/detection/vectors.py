"""Noisy max, permute-and-flip and the sparse vector over many runs at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

from detection.case import Floats, lap, values


def noisy_max(data: Any, noise: Floats) -> Floats:
    """Returns the place of the largest noisy value."""
    return np.asarray((values(data) + noise).argmax(axis=1), dtype=np.float64)


def exponential(rng: Generator, data: Any, n: int, rate: float) -> Floats:
    """Returns a place with probability proportional to exp(rate * value)."""
    weights = np.exp(rate * values(data))
    return np.asarray(
        np.searchsorted(np.cumsum(weights / weights.sum()), rng.random(n)).clip(0, len(data) - 1), dtype=np.float64
    )


def flip(rng: Generator, data: Any, n: int, rate: float) -> Floats:
    """Permute-and-flip: the first place, in random order, whose coin with bias exp(rate * (value - largest)) shows heads."""
    order = rng.random((n, len(data))).argsort(axis=1)
    heads = rng.random((n, len(data))) < np.exp(rate * (values(data) - max(data)))
    tried = np.take_along_axis(heads, order, axis=1).argmax(axis=1)
    return np.asarray(order[np.arange(n), tried], dtype=np.float64)


def above(rng: Generator, data: Any, n: int, threshold: float, query: float, c: int, mode: str = "") -> Floats:
    """Runs the sparse vector with threshold 1/2: 1 above, 0 below, missing after the c-th answer above.

    `mode` "fresh" redraws the threshold after an answer above; "value" returns the noisy value instead of 1.
    """
    rho, hits = lap(rng, threshold, n), np.zeros(n)
    answers = np.full((n, len(data)), np.nan)
    for place, exact in enumerate(data):
        noisy = exact + (lap(rng, query, n) if query else 0.0)
        live = hits < c
        hit = live & (noisy >= 0.5 + rho)
        answers[live, place] = 0.0
        answers[hit, place] = np.broadcast_to(noisy, n)[hit] if mode == "value" else 1.0
        hits += hit
        if mode == "fresh":
            rho = np.where(hit, lap(rng, threshold, n), rho)
    return answers
