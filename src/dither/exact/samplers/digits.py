"""Draws geometric noise of any scale, exactly and in constant time, by its binary digits.

A geometric variable's digits are independent: a^(t 2^m + d) = (a^(2^m))^t a^d. A two-sided one is
G with probability 1 / (1 + a), else -1 - G, and -1 - G is G with all bits flipped, sign included. So

    X = t 2^m + (d xor s)     s = 2^m - 1 if t < 0, else 0
    Pr[t] = (1 - b) / (1 + a) b^t for t >= 0, a (1 - b) / (1 + a) b^(-1-t) for t < 0     b = a^(2^m)
    Pr[d] proportional to a^d for 0 <= d < 2^m

and d = h 2^l + e in turn, with Pr[h] proportional to a^(h 2^l) and Pr[e] proportional to a^e, e of l bits.
t and h come from tables. e is nearly uniform: it is drawn uniform and accepted with probability a^e, which
is at least q = a^(2^l - 1). "Accepted at once", of probability q for every e, shares one table with h:

    cell h      has probability q Pr[h]
    last cell   has probability 1 - q < 2^-13 and means: accept e with (a^e - q) / (1 - q), else draw a new e

If e is accepted at once, e is uniform; then e xor s is uniform too, and no flip is needed.

Timing: each draw costs two lookups and l fair bits. About 1 in 70 takes a second look (`table.py`). About 1 in 8192 takes
the last cell, which costs microseconds more and is slightly likelier for small e (the low bits) than for large e.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from flint import arb

from dither.exact import entropy
from dither.exact.balls import exp, one_minus_exp
from dither.exact.laws.base import Integers, SamplerLaw
from dither.exact.samplers.table import CHUNK, Small, Table, falling, partial_sums, powers, rising
from dither.exact.samplers.uniform import Uniform

MIDDLE_BITS = 9
_LAST_CELL = 1 << MIDDLE_BITS
_TOP_SCALE = 32
_WHOLE_UP_TO = 40  # up to this scale one table holds the whole law


@dataclass(frozen=True)
class Top(SamplerLaw):
    """The law of t: X = t 2^m + (...), for X two-sided or one-sided of the given scale."""

    scale: Fraction
    m: int
    two_sided: bool

    def span(self) -> tuple[int | None, None]:
        return (None if self.two_sided else 0), None

    def _rate(self) -> Fraction:
        return (1 << self.m) / self.scale

    def _share(self) -> arb:
        """Returns Pr[t >= 0]."""
        return 1 / (1 + exp(-1 / self.scale)) if self.two_sided else arb(1)

    def at_most(self, k: int) -> arb:
        if k >= 0:
            return 1 - self._share() * exp(-(k + 1) * self._rate())
        return self._share() * exp((k + 1) * self._rate() - 1 / self.scale) if self.two_sided else arb(0)

    def table(self) -> Table:
        up = powers(lambda: self._share() * exp(-self._rate()), lambda: exp(-self._rate()))
        thresholds = falling(up, 3 * len(up))
        down: list[int] = []
        if self.two_sided:
            # Pr[t <= -1] = a / (1 + a), which for m = 0 is also Pr[t >= 1].
            down = powers(lambda: exp(-1 / self.scale) * self._share(), lambda: exp(-self._rate())) if self.m else up
            thresholds = rising(down[::-1]) + thresholds
        return Table(thresholds, range(-len(down), len(up) + 1), self.value_at)


@dataclass(frozen=True)
class Middle(SamplerLaw):
    """The law of h together with "accepted at once": cell h with probability q Pr[h], the last cell with 1 - q."""

    scale: Fraction
    bits: int
    low: int

    def span(self) -> tuple[int, int]:
        return 0, 1 << self.bits

    def sure(self) -> arb:
        """Returns q, the smallest acceptance probability."""
        return exp(-((1 << self.low) - 1) / self.scale)

    def at_most(self, k: int) -> arb:
        if not 0 <= k < 1 << self.bits:
            return arb(0 if k < 0 else 1)
        return self._factor() * one_minus_exp((k + 1) * self._rate())

    def _rate(self) -> Fraction:
        return (1 << self.low) / self.scale

    def _factor(self) -> arb:
        return self.sure() / one_minus_exp(self._rate() * (1 << self.bits))

    def table(self) -> Table:
        last = 1 << self.bits if self.low else (1 << self.bits) - 1  # without low bits q = 1 and the last cell is empty
        thresholds = partial_sums(lambda: exp(-self._rate()), self._factor, last)
        return Table(thresholds, range(last + 1), self.value_at, always_look=_LAST_CELL)


def split(scale: Fraction) -> tuple[int, int]:
    """Returns (m, l): the number of bits below t, and how many of them are low bits (e)."""
    m = 0
    if scale > _WHOLE_UP_TO:
        while scale >= _TOP_SCALE << m:
            m += 1
    return m, max(m - MIDDLE_BITS, 0)


class Digits:
    """A sampler for TwoSided and OneSided of one scale."""

    def __init__(self, scale: Fraction, two_sided: bool) -> None:
        self.scale, self._float = scale, float(scale)
        self.m, self.low = split(scale)
        self.top = Top(scale, self.m, two_sided).table()
        if self.m:
            self.middle = Middle(scale, self.m - self.low, self.low).table()

    def one(self) -> int:
        t = self.top.one()
        if not self.m:
            return t
        h = self.middle.one()
        if h == _LAST_CELL:
            return self.rare(t)
        d = (h << self.low) | (entropy.bits(self.low) if self.low else 0)
        return (t << self.m) + (d ^ ((1 << self.m) - 1) if t < 0 else d)

    def many(self, size: int) -> Integers:
        if not self.m:
            return self.top.many(size)
        result = np.empty(size, dtype=np.int64)
        for start in range(0, size, CHUNK):
            self._chunk(result[start : start + CHUNK])
        return result

    def add_to(self, numbers: Integers) -> None:
        """Adds a draw to each number within +-2^62. A draw has 16 + m bits and m is at most 35, so that nothing overflows."""
        if not self.m:
            self.top.add_to(numbers)
            return
        noise = np.empty(min(len(numbers), CHUNK), dtype=np.int64)
        for start in range(0, len(numbers), CHUNK):
            part = numbers[start : start + CHUNK]
            self._chunk(noise[: len(part)])
            part += noise[: len(part)]

    def _chunk(self, out: Integers) -> None:
        t, _ = self.top.chunk(len(out))
        h, looked = self.middle.chunk(len(out))
        last_cell = looked[h[looked] == _LAST_CELL]
        self.join(out, t, h)
        for i in last_cell:
            out[i] = self.rare(int(t[i]))

    def join(self, out: Integers, t: Small, h: Small) -> None:
        bits = self.m - self.low
        flip = t >> 15
        flip &= (1 << bits) - 1
        h ^= flip
        joined = t.astype(np.int32)
        joined <<= bits
        joined |= h
        if not self.low:
            out[:] = joined
            return
        np.left_shift(joined, self.low, out=out, dtype=np.int64)
        out |= entropy.low_bits(len(out), self.low)

    def rare(self, t: int) -> int:
        """Draws X given t and the last cell: h and e separately."""
        h = _LAST_CELL
        while h == _LAST_CELL:  # given that it is not the last cell, h has its own law
            h = self.middle.one()
        d = (h << self.low) | self._low_bits_after_rejection()
        return (t << self.m) + (d ^ ((1 << self.m) - 1) if t < 0 else d)

    def _low_bits_after_rejection(self) -> int:
        """Draws e given that it was not accepted at once."""
        e, last = entropy.bits(self.low), (1 << self.low) - 1
        # (a^e - q) / (1 - q), with both divided by q = a^last
        estimate = math.expm1((last - e) / self._float) / math.expm1(last / self._float)
        if Uniform().below_about(estimate, lambda: one_minus_exp((e - last) / self.scale) / one_minus_exp(-last / self.scale)):
            return e
        while True:
            e = entropy.bits(self.low)
            if Uniform().below_about(math.exp(-e / self._float), partial(self._power, e)):
                return e

    def _power(self, e: int) -> arb:
        """Returns a^e."""
        return exp(-e / self.scale)
