"""Coins and dice: the uniform law and the laws on 0 and 1.

Flat(n)      Pr[k] = 1/n            0 <= k < n
Coin(p)      Pr[1] = p              p rational, from 0 to 1
ExpCoin(x)   Pr[1] = exp(-x)        x >= 0 rational
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb

from dither.errors import ArgumentError
from dither.exact import balls, entropy, numbers
from dither.exact.balls import ball, exp, one_minus_exp
from dither.exact.laws.base import Integers, Law, Piece
from dither.exact.numbers import show
from dither.exact.samplers import uniform
from dither.exact.samplers.table import TOP, Table
from dither.exact.samplers.uniform import Uniform

_SMALL = 512  # up to this n a table of cells is faster than division


@lru_cache(maxsize=32)
def _flat_table(n: int) -> Table:
    return Table([((k + 1) << 64) // n for k in range(n - 1)], range(n), lambda u: Flat(n).value_at(u))


@dataclass(frozen=True)
class Flat(Law):
    """The uniform law on 0, 1, ..., n - 1.

    >>> Flat(6).radius("1/2")
    2
    """

    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", numbers.whole(self.n, "n", least=1))

    def span(self) -> tuple[int, int]:
        return 0, self.n - 1

    def pmf(self, k: int) -> arb:
        return ball(Fraction(1, self.n)) if 0 <= k < self.n else arb(0)

    def at_most(self, k: int) -> arb:
        return ball(Fraction(min(max(k + 1, 0), self.n), self.n))

    def more_than(self, k: int) -> arb:
        return ball(Fraction(min(max(self.n - 1 - k, 0), self.n), self.n))

    def pieces(self) -> tuple[Piece, ...]:
        return (Piece(0, self.n - 1, lambda: -arb(self.n).log(), base=self),)

    def radius(self, confidence: numbers.Number) -> int:
        values = numbers.between(confidence, "confidence", 0, 1, open_low=True, open_high=True) * self.n
        return -(-values.numerator // values.denominator) - 1  # smallest m with m + 1 >= confidence n

    def upper_tail(self, probability: numbers.Number) -> int:
        allowed = numbers.between(probability, "probability", 0, 1, open_low=True, open_high=True) * self.n
        return self.n - allowed.numerator // allowed.denominator  # smallest t with n - t <= probability n

    def _one(self) -> int:
        return uniform.below(self.n)

    def _many(self, size: int) -> Integers:
        if self.n > 1 << 63:
            raise ArgumentError(
                f"n must be at most 2^63 for an array of draws, and it is {show(Fraction(self.n))}.", fix="draw one at a time."
            )
        if self.n > _SMALL:
            return uniform.below_each(np.full(size, self.n, dtype=np.uint64))
        return _flat_table(self.n).many(size)


class _TwoValued(Law):
    """A law on 0 and 1, given by its two probabilities."""

    # No table is cached: a coin's chance may come from private numbers, and the time of a cache hit would show it.
    def _one(self) -> int:
        return self._at(entropy.word(), self._threshold())

    def _many(self, size: int) -> Integers:
        u, t = entropy.words64(size), self._threshold()
        draws = (u >= np.uint64(t)).astype(np.int64)
        for i in np.flatnonzero(u - np.uint64(t) < 2):
            draws[i] = self._at(int(u[i]), t)
        return draws

    def _threshold(self) -> int:
        """Returns t with t <= Pr[0] 2^64 < t + 2."""
        return min(balls.floor_near(self._zero, 64), TOP)

    def _at(self, u: int, t: int) -> int:
        return self.value_at(Uniform(u, 64)) if t <= u < t + 2 else int(u >= t)

    def _zero(self) -> arb:
        raise NotImplementedError

    def _unit(self) -> arb:
        raise NotImplementedError

    def span(self) -> tuple[int, int]:
        with_zero, with_one = not self._zero().is_zero(), not self._unit().is_zero()
        return (0 if with_zero else 1), (1 if with_one else 0)

    def pmf(self, k: int) -> arb:
        return self._zero() if k == 0 else self._unit() if k == 1 else arb(0)

    def at_most(self, k: int) -> arb:
        return arb(0) if k < 0 else arb(1) if k > 0 else self._zero()

    def more_than(self, k: int) -> arb:
        return arb(1) if k < 0 else arb(0) if k > 0 else self._unit()

    def pieces(self) -> tuple[Piece, ...]:
        first, last = self.span()
        both = (Piece(0, 0, lambda: self._zero().log()), Piece(1, 1, lambda: self._unit().log()))
        return both[first : last + 1]


@dataclass(frozen=True)
class Coin(_TwoValued):
    """1 with rational probability p, else 0."""

    p: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", numbers.between(self.p, "p", 0, 1))

    def _threshold(self) -> int:
        return min((1 - self.p).numerator * 2**64 // self.p.denominator, TOP)

    def _zero(self) -> arb:
        return ball(1 - self.p)

    def _unit(self) -> arb:
        return ball(self.p)

    def radius(self, confidence: numbers.Number) -> int:
        chance = numbers.between(confidence, "confidence", 0, 1, open_low=True, open_high=True)
        return 0 if self.p <= 1 - chance else 1

    def upper_tail(self, probability: numbers.Number) -> int:
        allowed = numbers.between(probability, "probability", 0, 1, open_low=True, open_high=True)
        return 1 if self.p <= allowed else 2


@dataclass(frozen=True)
class ExpCoin(_TwoValued):
    """1 with probability exp(-x) for a rational x >= 0, else 0. Accepts a Fraction of any size, as private scores give."""

    x: Fraction

    def __post_init__(self) -> None:
        if type(self.x) is not Fraction or self.x < 0:
            object.__setattr__(self, "x", numbers.not_negative(self.x, "x"))

    def _one(self) -> int:
        return int(not Uniform().below_about(-math.expm1(-float(min(self.x, Fraction(1000)))), self._zero))

    def _zero(self) -> arb:
        return one_minus_exp(self.x)

    def _unit(self) -> arb:
        return exp(-self.x)

    def pieces(self) -> tuple[Piece, ...]:
        last = Piece(1, 1, lambda: ball(-self.x))
        return (Piece(0, 0, lambda: self._zero().log()), last) if self.x else (last,)
