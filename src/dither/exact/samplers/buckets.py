"""Draws discrete Gaussian noise of any variance, exactly, and sums its normaliser and tails with certified error bounds.

f(x) = exp(-x^2 / 2v). Up to sigma = 128 one table of the distribution function is enough. Beyond, the line is cut into
buckets of w = 2^m whole numbers, 62 to 124 of them per sigma: x = t w + e with e of m fair bits. In bucket t let
near and far be the members with the smallest and the largest |x|. Then for each x in it

    f(x) = f(far) + (f(x) - f(far)):

    "sure"     bucket t with weight f(far), any e                     gives each x the weight f(far) / w
    "unsure"   bucket t with weight f(near) - f(far), e accepted      gives each x the weight (f(x) - f(far)) / w
               with probability (f(x) - f(far)) / (f(near) - f(far)), else start again

together f(x) / w: the Gaussian, exactly. All unsure buckets are one cell of the first table (about 1 draw in 100) and
have their own table. The rejected tries are independent of the returned value.

Acceptance compares a 53-bit uniform number with a float64 value. The floats decide if they differ by more than
`uniform.MARGIN`, which is over a thousand times the error of float64 here; balls decide the rest.

Timing: most draws cost one lookup and m fair bits. About 1 in 50 takes a second look or is unsure, which is likelier
for values at the near end of their bucket; it reveals nothing about the magnitude at the scale of sigma.

Sums: the whole sum has two forms, Z = sum_j exp(-j^2 / 2v) = sqrt(2 pi v) sum_j exp(-2 pi^2 v j^2) (Poisson summation),
and one of them converges in a few terms at any v. Tails are summed directly where that is short. Otherwise they follow the
Euler-Maclaurin formula, whose error after M corrections is at most 2 zeta(2M) / (2 pi)^2M times the integral of
|f^(2M)|; by Cramer's inequality |He_n(t)| exp(-t^2 / 4) <= 1.0865 sqrt(n!) that integral is at most
1.0865 sqrt(n! 4 pi v) / v^(n/2), n = 2M. Reference: Abramowitz and Stegun, 22.14.17 and 23.1.30.
Reference: Canonne, Kamath and Steinke, NeurIPS 2020, for the law; rejection is von Neumann's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb, fmpq
from numpy.typing import NDArray

from dither.exact import balls, entropy
from dither.exact.balls import ball, exp
from dither.exact.laws.base import Integers, SamplerLaw
from dither.exact.samplers import table
from dither.exact.samplers.table import CHUNK, Table
from dither.exact.samplers.uniform import MARGIN, Uniform

_SHORT = 200  # up to this many terms are summed one by one


def total(variance: Fraction) -> arb:
    """Returns Z, the sum of exp(-j^2 / 2v) over all whole j."""
    return _total(variance, balls.precision())


@lru_cache(maxsize=256)
def _total(variance: Fraction, bits: int) -> arb:
    # Balanced at v = 1 / 2 pi, where both series fall by exp(-pi j^2).
    if variance * 6 < 1:
        return 1 + 2 * direct(1 / (2 * variance), 1, bits)
    root = (2 * arb.pi() * ball(variance)).sqrt()
    rate = 2 * arb.pi() ** 2 * ball(variance)
    if (-rate).exp() < arb(2) ** (-2 * bits):
        return root * (1 + arb(0, 4) * (-rate).exp())
    terms = arb(0)
    j = 1
    while True:
        term = (-rate * j * j).exp()
        terms += term
        # The rest falls at least by exp(-3 rate) < 1/2 from term to term.
        if term < arb(2) ** (-bits - 8):
            return root * (1 + 2 * (terms + term * arb(0.5, 0.5)))
        j += 1


def direct(half: Fraction, first: Fraction | int, bits: int) -> arb:
    """Sums exp(-half (first + i)^2) over i >= 0, first >= 0, term by term; a geometric series bounds the rest."""
    term = exp(-half * first * first)
    ratio = exp(-half * (2 * first + 1))
    square = exp(-2 * half)
    if not term > 0:  # beyond the library's range of exponents
        return term.upper() * arb(1, 1)
    result = term
    smallest = abs(term).lower() * arb(2) ** (-bits - 8)
    while True:
        term = term * ratio
        result += term
        ratio = ratio * square
        # From here each term is at most `ratio` times the one before: the rest is at most term ratio / (1 - ratio).
        if ratio < arb(0.5) and term < smallest:
            return result + term * arb(0.5, 0.5)
        if ratio < 1 and term / (1 - ratio) < smallest:
            return result + (term / (1 - ratio)).upper() * arb(0.5, 0.5)


def tail(variance: Fraction, first: int) -> arb:
    """Sums exp(-j^2 / 2v) over j >= first, for first >= 0, to about the working precision."""
    bits = balls.precision()
    v, a = float(variance), float(first)
    # These floats only choose the cheaper method; the result is certified either way.
    reach = 2 * v * 0.7 * (bits + 16)
    terms = reach / (a + math.sqrt(a * a + reach))  # the number of terms until they have fallen by 2^-bits
    needed = bits + 32 + 0.73 * a * a / v  # the remainder is absolute, the tail itself as small as exp(-a^2 / 2v)
    if terms < _SHORT or needed > 25 * v:  # the remainder can be brought down to about exp(-2 pi^2 v)
        with balls.working(bits + 32):
            return direct(1 / (2 * variance), first, bits)
    with balls.working(int(needed)):
        return _smooth(variance, first, int(needed))


def _smooth(variance: Fraction, first: int, bits: int) -> arb:
    """Returns the same sum by Euler-Maclaurin, with a certified remainder."""
    v, a = ball(variance), arb(first)
    height = exp(-Fraction(first * first) / (2 * variance))
    integral = (arb.pi() * v / 2).sqrt() * (a / (2 * v).sqrt()).erfc()
    # slope(n) = f^(n)(a) / f(a): slope(n+1) = -(a slope(n) + n slope(n-1)) / v.
    before, slope, n = arb(1), -a / v, 1
    result = arb(fmpq(1, 2))
    bound = arb(1.0865) * (4 * arb.pi() * v).sqrt() * arb(4)  # 2 zeta(2M) < 4
    tolerance = arb(2) ** -bits
    factorial = arb(1)
    step = 4 * arb.pi() ** 2 * v
    while True:
        # n = 2M - 1 is odd here
        factorial = factorial * n * (n + 1)
        result -= arb.bernoulli(n + 1) / factorial * slope
        bound = bound * (arb(n) * (n + 1)).sqrt() / step
        if bound < tolerance or n > 40 + 2 * bits:
            return integral + height * result + bound * arb(0, 1)
        for _ in range(2):
            before, slope, n = slope, -(a * slope + n * before) / v, n + 1


WHOLE_UP_TO = 128**2
_MOST = 124**2  # buckets per sigma, squared: with 62 to 124 of them fewer than 1 draw in 50 needs more than one look
_UNSURE_CELL = -(1 << 14)


def zigzag(cell: int) -> int:
    """Maps cells 0, 1, 2, 3, ... to buckets 0, -1, 1, -2, ...: the weights fall, and there is one open end."""
    return ~(cell >> 1) if cell & 1 else cell >> 1


@dataclass(frozen=True)
class Sure(SamplerLaw):
    """The law of the first table. Cell 0: unsure. Cell 1 + c: bucket zigzag(c), sure.

    With A(j), B(j), C(j) the sums of f(iw), f(iw + 1), f(iw + w - 1) over i >= j: all weights together are A(0) + B(0),
    the sure ones of buckets p, p + 1, ... are C(p), those of -1 - n, -2 - n, ... are A(1 + n).
    """

    variance: Fraction
    m: int

    def span(self) -> tuple[int, None]:
        return 0, None

    def _half(self) -> Fraction:
        return Fraction(1 << (2 * self.m)) / (2 * self.variance)

    def _offset(self, x: int) -> Fraction:
        return Fraction(x, 1 << self.m)

    def _from(self, x: int, j: int) -> arb:
        return direct(self._half(), self._offset(x) + j, balls.precision())

    def at_most(self, k: int) -> arb:
        if k < 0:
            return arb(0)
        w = 1 << self.m
        return 1 - (self._from(w - 1, (k + 1) // 2) + self._from(0, 1 + k // 2)) / _all(self)

    def lists(self) -> tuple[list[int], list[int], list[int], int]:
        """Returns A, B and C in last places, and the largest error of a sum of two of them."""
        a, short_a = table.bell(self._half(), Fraction(0))
        b, short_b = table.bell(self._half(), self._offset(1))
        c, short_c = table.bell(self._half(), self._offset((1 << self.m) - 1))
        return a, b, c, 2 * max(short_a, short_b, short_c)

    def tails(self, a: list[int], c: list[int]) -> list[int]:
        """Returns the weight of all cells after cell k, for k = 0, 1, ..."""
        count = 2 * min(len(a) - 1, len(c)) - 2
        return [c[(k + 1) // 2] + a[1 + k // 2] for k in range(count)]


@lru_cache(maxsize=64)
def _all_at(law: Sure, bits: int) -> arb:
    return law._from(0, 0) + law._from(1, 0)


def _all(law: Sure) -> arb:
    return _all_at(law, balls.precision())


@dataclass(frozen=True)
class Unsure(SamplerLaw):
    """The law of the second table. Cell c: bucket zigzag(c) given that it is unsure, of weight f(near) - f(far).

    By the sums of `Sure`, buckets p, p + 1, ... weigh A(p) - C(p) together, buckets -1 - n, -2 - n, ... weigh B(n) - A(n + 1).
    """

    sure: Sure

    def span(self) -> tuple[int, None]:
        return 0, None

    def _tail(self, p: int, n: int) -> arb:
        s, w = self.sure, 1 << self.sure.m
        return s._from(0, p) - s._from(w - 1, p) + s._from(1, n) - s._from(0, n + 1)

    def at_most(self, k: int) -> arb:
        return 1 - self._tail((k + 2) // 2, (k + 1) // 2) / self._tail(0, 0) if k >= 0 else arb(0)

    def tails(self, a: list[int], b: list[int], c: list[int]) -> list[int]:
        count = 2 * min(len(a) - 1, len(b), len(c)) - 2
        pairs = [((k + 2) // 2, (k + 1) // 2) for k in range(-1, count)]
        return [a[p] - c[p] + b[n] - a[n + 1] for p, n in pairs]


def _bucket_of(cell: int) -> int:
    return zigzag(cell - 1) if cell else _UNSURE_CELL


def rise(exponent: Fraction) -> arb:
    """Returns e^exponent - 1."""
    return balls.ball(exponent).expm1()


def whole(variance: Fraction, exact: Callable[[Uniform], int]) -> Table:
    """Returns one table for the whole law: Pr[X > k] = A(k + 1) / Z for k >= 0, the same below 0, Z = 2 A(0) - 1."""
    sums, short = table.bell(1 / (2 * variance), Fraction(0))
    total, tails = 2 * sums[0] - table.ONE, [*sums[1:], 0]
    up = table.shares(tails, total, 2 * short)
    down = [((x << 64) // (total + 2 * short)) for x in tails[: len(up)]]
    return Table(down[::-1] + up, range(-len(down), len(up) + 1), exact)


class Buckets:
    """A sampler for Gaussian of one large variance."""

    def __init__(self, variance: Fraction) -> None:
        self.variance = variance
        self.m = 0
        while variance >= _MOST << (2 * self.m):
            self.m += 1
        sure = Sure(variance, self.m)
        a, b, c, short = sure.lists()
        marks = table.shares(sure.tails(a, c), a[0] + b[0], short)
        names = [_UNSURE_CELL, *map(zigzag, range(len(marks)))]
        self.first = Table(marks, names, lambda u: _bucket_of(sure.value_at(u)), always_look=_UNSURE_CELL)
        self._sure = sure
        self._second: Table | None = None

    @property
    def second(self) -> Table:
        """Returns the table of unsure buckets. Makes it at the first unsure draw."""
        if self._second is None:
            self._second = self._unsure_table()
        return self._second

    def _unsure_table(self) -> Table:
        a, b, c, short = self._sure.lists()
        unsure = Unsure(self._sure)
        total, *tails = (x - 2 * short for x in unsure.tails(a, b, c))  # differences: moved so that they are from below
        marks = table.shares(tails, total, 4 * short)
        return Table(marks, [*map(zigzag, range(len(marks) + 1))], lambda u: zigzag(unsure.value_at(u)))

    def one(self) -> int:
        while True:
            t = self.first.one()
            if t != _UNSURE_CELL:
                return (t << self.m) + entropy.bits(self.m)
            t = self.second.one()
            x = (t << self.m) + entropy.bits(self.m)
            if self.accept(t, x, Uniform()):
                return x

    def many(self, size: int) -> Integers:
        result = np.empty(size, dtype=np.int64)
        starts = range(0, size, CHUNK)
        left = [start + self._chunk(result[start : start + CHUNK]) for start in starts]
        open_places = np.concatenate(left) if left else np.empty(0, dtype=np.intp)
        while open_places.size:
            x, accepted = self.unsure(open_places.size)
            result[open_places[accepted]] = x[accepted]
            rejected = open_places[~accepted]
            redrawn = np.empty(rejected.size, dtype=np.int64)
            unsure = self._chunk(redrawn)
            result[rejected] = redrawn
            open_places = rejected[unsure]
        return result

    def add_to(self, numbers: Integers) -> None:
        """Adds a draw to each number within +-2^62. A draw has 16 + m bits and m is at most 33, so that nothing overflows."""
        numbers += self.many(len(numbers))

    def _chunk(self, out: Integers) -> NDArray[np.intp]:
        """Fills `out`, and returns the places of unsure draws, which are still to be drawn."""
        t, looked = self.first.chunk(len(out))
        self._join(out, t.astype(np.int64))
        unsure: NDArray[np.intp] = looked[t[looked] == _UNSURE_CELL]
        return unsure

    def _join(self, out: Integers, t: Integers) -> None:
        np.left_shift(t, self.m, out=out)
        out |= entropy.low_bits(len(out), self.m)

    def unsure(self, size: int) -> tuple[Integers, NDArray[np.bool_]]:
        """Draws values for the unsure cell, and returns which of them are accepted."""
        t = self.second.chunk(size)[0].astype(np.int64)
        x = np.empty(size, dtype=np.int64)
        self._join(x, t)
        u = entropy.words64(size)
        gap = (u >> np.uint64(11)).astype(np.float64) * 2.0**-53 - self.chance(t, x)
        accepted = gap < 0
        for i in np.flatnonzero(np.abs(gap) <= MARGIN):
            accepted[i] = self.accept(int(t[i]), int(x[i]), Uniform(int(u[i]), 64))
        return x, accepted

    def chance(self, t: Integers, x: Integers) -> NDArray[np.float64]:
        """Returns about (f(x) - f(far)) / (f(near) - f(far)), with far^2 - x^2 and far^2 - near^2 factored: no cancelling."""
        w, v, base = 1 << self.m, float(self.variance), (t << self.m).astype(np.float64)
        e, right = x - base, t >= 0
        to_far = np.where(right, w - 1 - e, e)
        sum_far = np.abs(2 * base + e + np.where(right, w - 1, 0))
        sum_near = np.abs(2 * base + (w - 1))
        chance: NDArray[np.float64] = np.expm1(to_far * sum_far / (2 * v)) / np.expm1((w - 1) * sum_near / (2 * v))
        return chance

    def exact_chance(self, t: int, x: int) -> arb:
        w = 1 << self.m
        ends = (t * w, t * w + w - 1)
        near, far = ends if t >= 0 else ends[::-1]
        two = 2 * self.variance
        return rise((far * far - x * x) / two) / rise((far * far - near * near) / two)

    def accept(self, t: int, x: int, u: Uniform) -> bool:
        """Returns whether u < (f(x) - f(far)) / (f(near) - f(far)), decided by balls."""
        return u.below(lambda: self.exact_chance(t, x))
