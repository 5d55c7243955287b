"""Small programs, and what is checked about them by listing every data set, every neighbour and every output."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from flint import arb

import dither as dt
from dither.mechanisms.gaussian import Gaussian
from dither.mechanisms.geometric import Geometric
from dither.tracing.run import Trace

Program = Callable[..., Any]
ONE = dt.Geometric(epsilon=1, sensitivity=1)


def partial_sums(x: Any) -> Any:
    """The first program of the lectures: noise on each partial sum."""
    total, sums = 0, []
    for value in x:
        total = total + value
        sums.append(total.release(ONE))
    return sums


def noisy_elements(x: Any) -> Any:
    """The second: noise on each element, added up afterwards."""
    total, sums = 0, []
    for value in x:
        total = total + value.release(ONE)
        sums.append(total)
    return sums


def neighbours(low: int, high: int, n: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All pairs of data sets in which one record differs."""
    for data in itertools.product(range(low, high + 1), repeat=n):
        for place, value in itertools.product(range(n), range(low, high + 1)):
            if value != data[place]:
                yield data, (*data[:place], value, *data[place + 1 :])


class Scripted:
    """Replaces noise: releases return the outputs of a script, and their exact probability is noted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.script: list[int] = []
        self.chance = arb(1)
        self.centres: list[tuple[Any, int]] = []
        scripted = self

        def release(mechanism: Any, exact: Any) -> Any:
            return scripted._release(mechanism, exact)

        for kind in (Geometric, Gaussian):
            monkeypatch.setattr(kind, "release", release)

    def _release(self, mechanism: Any, exact: Any) -> Any:
        outputs = []
        for each in np.asarray(exact):
            output = self.script.pop(0) if self.script else 0
            law = mechanism.law(int(each))
            self.centres.append((law, int(each)))
            self.chance *= law.pmf(output)
            outputs.append(output)
        return np.array(outputs, dtype=np.int64)

    def run(self, program: Program, data: Sequence[int], script: Sequence[int], bounds: tuple[int, int]) -> tuple[arb, Trace]:
        """Returns the probability of this script, and the trace."""
        self.script, self.chance, self.centres = list(script), arb(1), []
        trace = dt.trace(program, dt.records(list(data), *bounds))
        return self.chance, trace


def worst_excess(
    scripted: Scripted, program: Program, n: int, outputs: int, bounds: tuple[int, int] = (0, 1), reach: int = 1
) -> float:
    """Returns by how much log Pr[o | x] - log Pr[o | x'] exceeds the price, at most, over all neighbours and outputs.

    With geometric noise the ratio of two neighbours is largest beyond both of their values, so a few outputs are enough.
    """
    scripts = list(itertools.product(range(bounds[0] - reach, n * bounds[1] + reach + 1), repeat=outputs))
    chances: dict[tuple[int, ...], list[tuple[arb, Any]]] = {}
    for data in itertools.product(range(bounds[0], bounds[1] + 1), repeat=n):
        chances[data] = [scripted.run(program, data, script, bounds) for script in scripts]
    worst = -float("inf")
    for one, other in neighbours(*bounds, n):
        for (p, trace), (q, _) in zip(chances[one], chances[other], strict=True):
            worst = max(worst, float((p / q).log() - arb(str(float(trace.loss().epsilon(0))))))
    return worst
