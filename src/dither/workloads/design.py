"""A workload with a price: the mechanisms of its strategy, what it costs, and answers with margins.

    workload.design(epsilon=1) ─▶ Design ─▶ release(histogram) ─▶ Released: noisy answers of every question

Why it is private: the measurements are whole numbers; one unit moves those of a block by at most what blocks.py says; each
block gets noise for its share of the price, and prices add up. What follows is computed from noisy and public numbers alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import laplace, norm

from dither.errors import ArgumentError
from dither.exact.numbers import Number, between, positive
from dither.mechanisms.gaussian import Gaussian
from dither.mechanisms.geometric import Geometric
from dither.mechanisms.norms import L1, L2
from dither.privacy.conversion import largest_rho
from dither.privacy.losses import ZCDP, Approx, Loss, Pure
from dither.privacy.neighbours import AddRemove, Replace
from dither.workloads.blocks import MOST_ROWS, Record, Unit
from dither.workloads.choose import strategies
from dither.workloads.factors import Floats, Integers
from dither.workloads.strategy import Strategy
from dither.workloads.workload import Workload

Noise = Geometric | Gaussian


@dataclass(frozen=True)
class Price:
    """What may be spent: epsilon alone, epsilon with delta, or rho."""

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None

    @classmethod
    def of(cls, epsilon: Number | None, delta: Number | None, rho: Number | None) -> Price:
        if (epsilon is None) == (rho is None) or (rho is not None and delta is not None):
            raise ArgumentError("A workload needs a price.", fix="give epsilon, or epsilon with delta, or rho.")
        return cls(
            None if epsilon is None else positive(epsilon, "epsilon"),
            None if delta is None else between(delta, "delta", 0, 1, open_low=True, open_high=True),
            None if rho is None else positive(rho, "rho"),
        )

    @property
    def gaussian(self) -> bool:
        return self.epsilon is None or self.delta is not None

    @property
    def as_rho(self) -> Fraction:
        if self.rho is not None:
            return self.rho
        return largest_rho(self.epsilon, self.delta)

    def loss(self) -> Loss:
        if self.rho is not None:
            return ZCDP(self.rho)
        return Pure(self.epsilon) if self.delta is None else Approx(self.epsilon, self.delta)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Design:
    """A strategy with noise for a price, for one unit and one relation of neighbours."""

    strategy: Strategy
    price: Price
    unit: Unit
    neighbours: AddRemove | Replace

    @property
    def workload(self) -> Workload:
        return self.strategy.workload

    @cached_property
    def noises(self) -> tuple[Noise | None, ...]:
        """The noise of each block; None for one that no unit moves."""
        replaced = isinstance(self.neighbours, Replace)
        stretch = self.strategy.factor(self.unit, replaced, self.price.gaussian)
        found: list[Noise | None] = []
        for block, share in zip(self.strategy.blocks, self.strategy.shares, strict=True):
            moves = block.moves(self.unit, replaced)
            if not moves.squares:
                found.append(None)
            elif self.price.gaussian:
                found.append(Gaussian(rho=self.price.as_rho * share / stretch, sensitivity=L2.of_squares(moves.squares)))
            else:
                found.append(Geometric(epsilon=self.price.epsilon * share, sensitivity=L1(moves.total)))  # type: ignore[operator]
        return tuple(found)

    def loss(self) -> Loss:
        """Returns the price of the whole release."""
        return self.price.loss()

    @cached_property
    def variances(self) -> tuple[float, ...]:
        return tuple(0.0 if each is None else each.noise_variance for each in self.noises)

    @cached_property
    def spreads(self) -> tuple[Floats, ...]:
        """The variance of every answer, for each term."""
        return self.strategy.spreads(self.variances)

    @cached_property
    def rmse(self) -> float:
        """The root mean square error over all questions, by their weights."""
        weight = math.fsum(term.weight * term.size for term in self.workload)
        return math.sqrt(self.strategy.squared_error(self.variances) / weight)

    def margins(self, confidence: Number = "0.95") -> tuple[Floats, ...]:
        """Returns, for each term, the margin of every answer, which holds with this confidence for each answer alone."""
        return tuple(np.sqrt(each) * self._quantile(confidence) for each in self.spreads)

    def _quantile(self, confidence: Number) -> float:
        """Returns how many standard deviations a margin is: of a sum of many noises, or of one, whichever is wider."""
        tail = float(1 - between(confidence, "confidence", 0, 1, open_low=True, open_high=True)) / 2
        many = float(norm.isf(tail))
        return many if self.price.gaussian else max(many, float(laplace.isf(tail)) / math.sqrt(2))

    def release(self, histogram: NDArray[Any]) -> Released:
        """Releases noisy answers, from the exact number of records in each cell."""
        cells = self.workload.checked(histogram)
        if cells.dtype.kind not in "iu":
            raise ArgumentError("A histogram must have whole numbers.", fix="count records: use an integer array.")
        if int(np.abs(cells).sum(dtype=float)) > MOST_ROWS:
            raise ArgumentError("A histogram has at most 2^40 records.", fix="count fewer.")
        exact = self.strategy.measure(cells.astype(np.int64))
        return self.released([_noisy(each, noise) for each, noise in zip(exact, self.noises, strict=True)])

    def released(self, measured: list[Any]) -> Released:
        """Returns the answers that follow from noisy measurements."""
        return Released(self, self.strategy.answers(measured, self.variances))


def _noisy(exact: Integers, noise: Noise | None) -> Integers:
    return exact if noise is None else np.asarray(noise.release(exact.reshape(-1))).reshape(exact.shape)


@dataclass(frozen=True)
class Released:
    """Noisy answers of every question, one array per term, and their margins."""

    design: Design
    answers: tuple[Floats, ...]

    def margins(self, confidence: Number = "0.95") -> tuple[Floats, ...]:
        return self.design.margins(confidence)


def design(
    workload: Workload,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    unit: Unit | None = None,
    neighbours: AddRemove | Replace | None = None,
) -> Design:
    """Returns the design with the least error for a price."""
    price, who = Price.of(epsilon, delta, rho), unit or Record()
    found = (Design(each, price, who, neighbours or AddRemove()) for each in strategies(workload, price.gaussian))
    return min(found, key=lambda each: each.rmse)
