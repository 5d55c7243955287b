"""Sums of exp(-j^2 / 2v) over whole numbers, as rigorous balls: the discrete Gaussian's normaliser and tails.

The whole sum has two forms, Z = sum_j exp(-j^2 / 2v) = sqrt(2 pi v) sum_j exp(-2 pi^2 v j^2) (Poisson summation), and one
of them converges in a few terms at any v. Tails sum directly where that is short. Otherwise they follow the
Euler-Maclaurin formula, whose error after M corrections is at most 2 zeta(2M) / (2 pi)^2M times the integral of
|f^(2M)|; by Cramer's inequality |He_n(t)| exp(-t^2 / 4) <= 1.0865 sqrt(n!) that integral is at most
1.0865 sqrt(n! 4 pi v) / v^(n/2), n = 2M. Reference: Abramowitz and Stegun, 22.14.17 and 23.1.30.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from flint import arb, fmpq

from dither.exact import balls
from dither.exact.balls import ball, exp

_SHORT = 200  # terms that are summed one by one without a second thought


def total(variance: Fraction) -> arb:
    """Z, the sum of exp(-j^2 / 2v) over all whole j."""
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
    """Sum of exp(-half (first + i)^2) over i >= 0, first >= 0, term by term, the rest bounded by a geometric series."""
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
    """Sum of exp(-j^2 / 2v) over j >= first, for first >= 0, to about the working precision."""
    bits = balls.precision()
    v, a = float(variance), float(first)
    # These floats choose the cheaper way; nothing rests on them.
    reach = 2 * v * 0.7 * (bits + 16)
    terms = reach / (a + math.sqrt(a * a + reach))  # how many until they have fallen by 2^-bits
    needed = bits + 32 + 0.73 * a * a / v  # the remainder is absolute, the tail itself as small as exp(-a^2 / 2v)
    if terms < _SHORT or needed > 25 * v:  # the remainder can be brought down to about exp(-2 pi^2 v)
        with balls.working(bits + 32):
            return direct(1 / (2 * variance), first, bits)
    with balls.working(int(needed)):
        return _smooth(variance, first, int(needed))


def _smooth(variance: Fraction, first: int, bits: int) -> arb:
    """The same sum by Euler-Maclaurin, with a rigorous remainder."""
    v, a = ball(variance), arb(first)
    height = exp(-Fraction(first * first) / (2 * variance))
    integral = (arb.pi() * v / 2).sqrt() * (a / (2 * v).sqrt()).erfc()
    # slope(n) = f^(n)(a) / f(a): slope(n+1) = -(a slope(n) + n slope(n-1)) / v.
    before, slope, n = arb(1), -a / v, 1
    result = arb(fmpq(1, 2))
    bound = arb(1.0865) * (4 * arb.pi() * v).sqrt() * arb(4)  # 2 zeta(2M) < 4
    wanted = arb(2) ** -bits
    factorial = arb(1)
    step = 4 * arb.pi() ** 2 * v
    while True:
        # n = 2M - 1 is odd here
        factorial = factorial * n * (n + 1)
        result -= arb.bernoulli(n + 1) / factorial * slope
        bound = bound * (arb(n) * (n + 1)).sqrt() / step
        if bound < wanted or n > 40 + 2 * bits:
            return integral + height * result + bound * arb(0, 1)
        for _ in range(2):
            before, slope, n = slope, -(a * slope + n * before) / v, n + 1
