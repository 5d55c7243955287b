"""The price of a workload: epsilon, epsilon with delta, or rho."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dither.errors import ArgumentError
from dither.exact.numbers import Number, between
from dither.privacy.losses import ZCDP, Approx, Loss, Pure

LEAST, MOST = Fraction(1, 10**12), Fraction(10**12)  # of epsilon and rho: mechanisms draw no noise beyond


@dataclass(frozen=True)
class Price:
    """What may be spent: epsilon alone, epsilon with delta, or rho."""

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None

    @classmethod
    def of(cls, epsilon: Number | None, delta: Number | None, rho: Number | None) -> Price:
        if (epsilon is None) == (rho is None) or (rho is not None and delta is not None):
            raise ArgumentError("A workload needs one price.", fix="give epsilon, or epsilon with delta, or rho.")
        return cls(
            None if epsilon is None else between(epsilon, "epsilon", LEAST, MOST),
            None if delta is None else between(delta, "delta", 0, 1, open_low=True, open_high=True),
            None if rho is None else between(rho, "rho", LEAST, MOST),
        )

    @property
    def gaussian(self) -> bool:
        return self.epsilon is None or self.delta is not None

    def loss(self) -> Loss:
        if self.rho is not None:
            return ZCDP(self.rho)
        return Pure(self.epsilon) if self.delta is None else Approx(self.epsilon, self.delta)  # type: ignore[arg-type]
