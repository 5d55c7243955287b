"""The discrete Gaussian: probabilities proportional to exp(-k^2 / 2v) on all whole numbers.

    Pr[k] = exp(-k^2 / 2v) / Z        Z = sum over all whole j of exp(-j^2 / 2v)

`samplers/buckets.py` sums Z and the tails with certified error bounds, and draws from the law.
Reference: Canonne, Kamath and Steinke, NeurIPS 2020 (the law and its use).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb

from dither.exact import numbers
from dither.exact.balls import exp
from dither.exact.laws.base import Integers, Law, Piece
from dither.exact.samplers.buckets import WHOLE_UP_TO, Buckets, tail, total, whole
from dither.exact.samplers.table import Table

SMALLEST_VARIANCE = Fraction(1, 10**6)
LARGEST_VARIANCE = Fraction(10**24)


@dataclass(frozen=True)
class Gaussian(Law):
    """Discrete Gaussian of parameter v: Pr[k] proportional to exp(-k^2 / 2v).

    >>> Gaussian(100).radius("0.95")
    20
    """

    variance: Fraction

    def __post_init__(self) -> None:
        variance = numbers.between(self.variance, "variance", SMALLEST_VARIANCE, LARGEST_VARIANCE)
        object.__setattr__(self, "variance", variance)

    def span(self) -> tuple[None, None]:
        return None, None

    def pmf(self, k: int) -> arb:
        return exp(-k * k / (2 * self.variance)) / total(self.variance)

    def at_most(self, k: int) -> arb:
        return self.more_than(-k - 1) if k < 0 else 1 - self.more_than(k)

    def more_than(self, k: int) -> arb:
        if k < 0:
            return 1 - self.more_than(-k - 1)
        return tail(self.variance, k + 1) / total(self.variance)

    def pieces(self) -> tuple[Piece, ...]:
        return (Piece(None, None, lambda: -total(self.variance).log(), bend=-1 / (2 * self.variance), base=self),)

    def _one(self) -> int:
        return _sampler(self).one()

    def _many(self, size: int) -> Integers:
        return _sampler(self).many(size)

    def add_to(self, numbers: Integers) -> None:
        _sampler(self).add_to(numbers)


@lru_cache(maxsize=64)
def _sampler(law: Gaussian) -> Table | Buckets:
    return whole(law.variance, law.value_at) if law.variance < WHOLE_UP_TO else Buckets(law.variance)
