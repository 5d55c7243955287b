"""The three geometric laws: probabilities that fall by the factor a = exp(-1/s) from one whole number to the next.

    TwoSided(s)   Pr[k] = (1 - a) / (1 + a) a^|k|                 all whole k
    OneSided(s)   Pr[k] = (1 - a) a^k                             k >= 0
    Cut(s, n)     Pr[k] = (1 - a) / (1 - a^(n+1)) a^k             0 <= k <= n

All formulas use expm1, so that scale 10^12, where a is 1 - 10^-12, loses no digits. `samplers/digits.py` draws from the laws.
Reference: Ghosh, Roughgarden and Sundararajan, STOC 2009.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

from flint import arb

from dither.exact import balls, numbers
from dither.exact.balls import exp, one_minus_exp
from dither.exact.laws.base import Integers, Law, Piece
from dither.exact.samplers.digits import Digits
from dither.exact.samplers.table import TOP, Table

SMALLEST_SCALE = Fraction(1, 1000)
LARGEST_SCALE = Fraction(10**12)
_SMALL = 512  # a cut law with fewer values has its own table


def checked_scale(scale: numbers.Number) -> Fraction:
    return numbers.between(scale, "scale", SMALLEST_SCALE, LARGEST_SCALE)


@lru_cache(maxsize=64)
def _digits(scale: Fraction, two_sided: bool) -> Digits:
    return Digits(scale, two_sided)


@lru_cache(maxsize=64)
def _cut_table(law: Cut) -> Table:
    return Table(
        [min(balls.floor_near(partial(law.at_most, k), 64), TOP) for k in range(law.n)], range(law.n + 1), law.value_at
    )


@dataclass(frozen=True)
class TwoSided(Law):
    """Two-sided geometric (discrete Laplace): Pr[k] = (1 - a) / (1 + a) a^|k|.

    >>> TwoSided(1).radius("0.95")
    3
    """

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checked_scale(self.scale))

    def span(self) -> tuple[None, None]:
        return None, None

    def _peak(self) -> arb:
        rate = 1 / self.scale
        return one_minus_exp(rate) / (1 + exp(-rate))

    def pmf(self, k: int) -> arb:
        return self._peak() * exp(-abs(k) / self.scale)

    def at_most(self, k: int) -> arb:
        if k < 0:
            return exp(k / self.scale) / (1 + exp(-1 / self.scale))
        return 1 - self.more_than(k)

    def more_than(self, k: int) -> arb:
        return self.at_most(-k - 1) if k >= 0 else 1 - self.at_most(k)

    def pieces(self) -> tuple[Piece, ...]:
        def height() -> arb:
            return self._peak().log()

        rate = 1 / self.scale
        return Piece(None, -1, height, rate, base=self), Piece(0, None, height, -rate, base=self)

    def tail(self, k: int, *, above: bool) -> tuple[Hashable, Fraction]:
        distance = k if above else -k  # Pr[X >= k] = a^k / (1 + a) for k >= 0, and the mirror image
        return (("tail", self), -distance / self.scale) if distance >= 0 else (None, Fraction(0))

    def _one(self) -> int:
        return _digits(self.scale, True).one()

    def _many(self, size: int) -> Integers:
        return _digits(self.scale, True).many(size)

    def add_to(self, numbers: Integers) -> None:
        _digits(self.scale, True).add_to(numbers)


@dataclass(frozen=True)
class OneSided(Law):
    """One-sided geometric: Pr[k] = (1 - a) a^k for k >= 0.

    >>> OneSided(1).upper_tail("1/1000")
    7
    """

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checked_scale(self.scale))

    def span(self) -> tuple[int, None]:
        return 0, None

    def pmf(self, k: int) -> arb:
        return one_minus_exp(1 / self.scale) * exp(-k / self.scale) if k >= 0 else arb(0)

    def at_most(self, k: int) -> arb:
        return one_minus_exp((k + 1) / self.scale) if k >= 0 else arb(0)

    def more_than(self, k: int) -> arb:
        return exp(-(k + 1) / self.scale) if k >= 0 else arb(1)

    def pieces(self) -> tuple[Piece, ...]:
        return (Piece(0, None, lambda: one_minus_exp(1 / self.scale).log(), -1 / self.scale, base=self),)

    def _one(self) -> int:
        return _digits(self.scale, False).one()

    def _many(self, size: int) -> Integers:
        return _digits(self.scale, False).many(size)

    def add_to(self, numbers: Integers) -> None:
        _digits(self.scale, False).add_to(numbers)


@dataclass(frozen=True)
class Cut(Law):
    """Geometric given that it is at most n: Pr[k] proportional to a^k for 0 <= k <= n.

    >>> float(round(float(Cut(1, 1).probability(0)), 6))
    0.731059
    """

    scale: Fraction
    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checked_scale(self.scale))
        object.__setattr__(self, "n", numbers.whole(self.n, "n", least=0))

    def span(self) -> tuple[int, int]:
        return 0, self.n

    def _whole(self) -> arb:
        return one_minus_exp((self.n + 1) / self.scale)

    def pmf(self, k: int) -> arb:
        if not 0 <= k <= self.n:
            return arb(0)
        return one_minus_exp(1 / self.scale) * exp(-k / self.scale) / self._whole()

    def at_most(self, k: int) -> arb:
        if not 0 <= k < self.n:
            return arb(0 if k < 0 else 1)
        return one_minus_exp((k + 1) / self.scale) / self._whole()

    def more_than(self, k: int) -> arb:
        if not 0 <= k < self.n:
            return arb(1 if k < 0 else 0)
        return exp(-(k + 1) / self.scale) * one_minus_exp((self.n - k) / self.scale) / self._whole()

    def pieces(self) -> tuple[Piece, ...]:
        def height() -> arb:
            return (one_minus_exp(1 / self.scale) / self._whole()).log()

        return (Piece(0, self.n, height, -1 / self.scale, base=self),)

    # The remainder of an unlimited geometric variable has this law: a^(j (n+1) + k) is a^k times a factor of j alone.
    def _one(self) -> int:
        return _cut_table(self).one() if self.n < _SMALL else _digits(self.scale, False).one() % (self.n + 1)

    def _many(self, size: int) -> Integers:
        if self.n < _SMALL:
            return _cut_table(self).many(size)
        # An array's draws stay below 2^15 times 2^36 (`table.py`), so a divisor of 2^62 or more changes none of them.
        return _digits(self.scale, False).many(size) % min(self.n + 1, 1 << 62)
