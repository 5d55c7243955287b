"""Defines a law: a distribution on whole numbers whose probabilities are known to any precision.

    pmf(k)        Pr[X = k]
    at_most(k)    Pr[X <= k]
    more_than(k)  Pr[X > k]        accurate in the tail, where 1 - at_most(k) would lose all digits

Each returns a ball at the working precision (`balls.working`). `pieces()` lists the ranges on which log pmf
is a polynomial in k. They turn "the ratio is bounded at all outputs" into a finite check (privacy/proof.py).

`draw` follows the law exactly. `value_at` is the specification: it inverts the distribution function at
one uniform real. It is slow; every fast sampler is tested against it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import overload

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dither.exact import balls, numbers
from dither.exact.samplers.uniform import Uniform

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Piece:
    """A range on which log pmf(k) = constant() + slope * k + bend * k^2, for first <= k <= last (None: no end).

    Balls cannot show that two reals are equal. So a law that knows its constant symbolically also states
    constant() = r(base) + offset, where the real r(base) depends on `base` alone. Pieces of equal base then
    differ by an exact rational: a law and the same law moved share their normaliser. None: nothing is known.
    """

    first: int | None
    last: int | None
    constant: balls.Real
    slope: Fraction = Fraction(0)
    bend: Fraction = Fraction(0)
    base: Hashable = None
    offset: Fraction = Fraction(0)

    def at(self, k: int) -> arb:
        return self.constant() + balls.ball(self.slope * k + self.bend * k * k)


class Law(ABC):
    """A distribution on whole numbers."""

    @abstractmethod
    def span(self) -> tuple[int | None, int | None]:
        """Returns the smallest and the largest value (None: no end)."""

    @abstractmethod
    def pmf(self, k: int) -> arb: ...

    @abstractmethod
    def at_most(self, k: int) -> arb: ...

    @abstractmethod
    def more_than(self, k: int) -> arb: ...

    @abstractmethod
    def pieces(self) -> tuple[Piece, ...]: ...

    def tail(self, k: int, *, above: bool) -> tuple[Hashable, Fraction]:
        """Returns (base, offset) of log Pr[X >= k] if `above`, else of log Pr[X <= k], as in `Piece`."""
        return None, Fraction(0)

    def probability(self, k: int, bits: int = 128) -> arb:
        """Returns Pr[X = k] as a ball with about `bits` correct bits; `float()` of it prints well."""
        with balls.working(bits):
            return self.pmf(k)

    @overload
    def draw(self, size: None = None) -> int: ...
    @overload
    def draw(self, size: int) -> Integers: ...
    def draw(self, size: int | None = None) -> int | Integers:
        """Draws one value, or an array of `size` independent values."""
        if size is None:
            return self._one()
        return self._many(numbers.whole(size, "size", least=0))

    def _one(self) -> int:
        return self.value_at(Uniform())

    def _many(self, size: int) -> Integers:
        return np.array([self._one() for _ in range(size)], dtype=np.int64)

    def add_to(self, numbers: Integers) -> None:
        """Adds an independent draw to each of these numbers, which lie within +-2^62. Sums saturate at the ends of int64."""
        add(numbers, self._many(len(numbers)), out=numbers)

    def value_at(self, u: Uniform) -> int:
        """Returns the smallest k with u < Pr[X <= k]: the law's value at the uniform real u."""
        return search(lambda k: u.below(lambda: self.at_most(k)), *self.span())

    def radius(self, confidence: numbers.Number) -> int:
        """Returns the smallest m with Pr[|X| > m] <= 1 - confidence, certified. An undecidable tie gives the next m."""
        return _radius(self, 1 - numbers.between(confidence, "confidence", 0, 1, open_low=True, open_high=True))

    def upper_tail(self, probability: numbers.Number) -> int:
        """Returns the smallest t with Pr[X >= t] <= probability, certified. An undecidable tie gives the next t."""
        bound = numbers.between(probability, "probability", 0, 1, open_low=True, open_high=True)
        first, last = self.span()
        end = None if last is None else last + 1
        return search(lambda t: balls.certainly_at_most(lambda: self.more_than(t - 1), bound), first, end)


@lru_cache(maxsize=512)  # questions at the same price have the same margins
def _radius(law: Law, bound: Fraction) -> int:
    return search(lambda m: balls.certainly_at_most(lambda: law.more_than(m) + law.at_most(-m - 1), bound), 0, None)


_ENDS = np.iinfo(np.int64)
_WIDE = 1 << 62


def add(numbers: Integers, noise: Integers, out: Integers | None = None) -> Integers:
    """Returns the sum of numbers within +-2^62 and noise, saturating at the ends of int64: the exact sum, clamped.

    >>> add(np.array([2**62, -5]), np.array([2**62, 1])).tolist() == [2**63 - 1, -4]
    True
    """
    # Only noise beyond 2^62 can overflow. This looks at the noise alone: the numbers are private.
    if not noise.size or (int(noise.min()) >= -_WIDE and int(noise.max()) < _WIDE):
        return np.add(numbers, noise, out=out)
    total = numbers + noise
    total[(numbers > 0) & (noise > 0) & (total < 0)] = _ENDS.max
    total[(numbers < 0) & (noise < 0) & (total >= 0)] = _ENDS.min
    if out is None:
        return total
    out[:] = total
    return out


def search(holds: Callable[[int], bool], first: int | None, last: int | None) -> int:
    """Returns the smallest k from first to last for which `holds`. It must be monotone, and true at last.

    Without an end, steps double until the answer is bracketed: 10^12 takes forty steps.

    >>> search(lambda k: k * k >= 50, 0, None), search(lambda k: k >= -7, None, None)
    (8, -7)
    """
    low, high = first, last
    if high is None:
        high, step = (0 if first is None else first), 1
        while not holds(high):
            low, high, step = high + 1, high + step, step * 2
    if low is None:
        low, step = high - 1, 1
        while holds(low):
            low, high, step = low - step, low, step * 2
        low += 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


class SamplerLaw(Law):
    """A law inside a sampler, given by `span` and `at_most` alone: for a table's third look and for tests."""

    def pmf(self, k: int) -> arb:
        return self.at_most(k) - self.at_most(k - 1)

    def more_than(self, k: int) -> arb:
        return 1 - self.at_most(k)

    def pieces(self) -> tuple[Piece, ...]:
        raise NotImplementedError
