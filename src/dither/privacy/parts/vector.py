"""Discrete Gaussian noise on a vector of whole numbers, where only the sum of squared moves is known.

One unit moves at most m coordinates, by whole numbers whose squares add up to at most S. Each coordinate has independent
noise X with Pr[X = k] proportional to exp(-k^2 / 2v). For any t with 0 < t < v,

    delta(epsilon) <= e^l delta_c(epsilon - l, mu^2 = S / (v - t))        l = 2 m artanh(h)
    h = 2 (q + q^4 + q^9 + ...)    q = e^{-2 pi^2 t}

where delta_c belongs to continuous Gaussian noise (accountant/closed.py). At t = 1 h is 6e-9, at t = 2 it is 2e-17: noise on
the integers is continuous noise with t less variance, rounded at random, up to a factor that nobody notices.

Proof. Rounding takes a real y to the whole number j with probability e^{-(j - y)^2 / 2t} / T(y), where T(y) is the sum of
all these weights. By Poisson summation T(y) = sqrt(2 pi t) (1 + 2 sum of q^{n^2} cos(2 pi n y)), so it lies within
(1 +- h) sqrt(2 pi t).
1. Let Y be normal with variance v - t around a whole number x. Without the wobble of T, Pr[Y is rounded to j] would be the
   density g of a normal law of variance v (a sum of two) at j - x. So it is g(j - x) times a number from 1/(1 + h) to
   1/(1 - h).
2. Pr[x + X = j] = g(j - x) / (1 + h_v) by the same formula with v for t, and 0 < h_v <= h.
3. So with P the law of x + X, R that of Y rounded, and P', R' those of a neighbour x': P <= a R and R' <= b P' for every set
   of outputs, with a = (1 + h)/(1 + h_v) and b = (1 + h_v)/(1 - h) for each coordinate that moves. The other coordinates have
   one law on both sides and tell nothing. Over m coordinates a b = e^l, and a <= e^l.
4. Y rounded is a function of Y and of coins. So R <= e^s R' + delta_c(s), where delta_c grows with mu and the distance of x and
   x' is at most sqrt(S). Together P <= e^{s + l} P' + e^l delta_c(s), and s = epsilon - l gives the claim.

Neither the largest move nor how S is spread matters. Releases beside it that are fixed in advance multiply both sides of 3 by
their own laws, so mu^2 and l of several vectors add up, and the measure with phi(z) = e^{(z + 1) l + mu^2 (z^2 + z) / 2} stands
for them in any composition. The continuous formula alone (t = l = 0) is too small: tests have vectors that exceed it.

Any t is valid. Close to the best is the one where both costs of t, about 4 m q in epsilon and mu t / v times 2.5, fall alike;
it is found by counting bits, so that it is the same on every machine.
Reference: Peikert, CRYPTO 2010 (a continuous Gaussian rounded at random); Micciancio and Regev, SICOMP 2007.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, SupportsIndex

from flint import acb, arb

from dither.exact.balls import ball, upper, working
from dither.exact.numbers import Number, between, positive, whole
from dither.privacy.parts.base import MOST, Complexes, Part, unchecked
from dither.privacy.parts.gaussian import Gaussian

LEAST_VARIANCE = Fraction(1, 2)  # below it rounding costs more than the lemma gains
_BITS = 128
_SHORT = 96  # bits that are kept of each mu^2


class Moves(NamedTuple):
    """`moving` numbers with noise of this variance move, by squares that add up to at most `squares`."""

    squares: int
    moving: int
    variance: Fraction


def smooth(moves: Iterable[Moves]) -> Gaussian:
    """Returns continuous Gaussian noise that bounds the loss of all these together. Variances must be at least LEAST_VARIANCE.

    >>> bound = smooth([Moves(5, 5, Fraction(90))])
    >>> round(float(bound.mu2) * 18, 4), round(float(bound.slack), 6)
    (1.0063, 0.000301)
    """
    listed = tuple(moves)
    common = rounding(listed)
    mu2, slack = Fraction(0), Fraction(0)
    for squares, moving, variance in listed:
        t = min(common, variance / 4)
        mu2 += _up(squares / (variance - t))
        slack += moving * _slack(t)
    return unchecked(Gaussian, mu2=mu2, slack=slack)


def rounding(moves: Iterable[Moves]) -> Fraction:
    """Returns t: 4 m q + 2.5 Q t / mu is smallest at q = Q / (3.2 pi^2 m mu), Q the sum of S / v^2; x below is 1 / q^2."""
    numbers, mu2, slope = 0, Fraction(0), Fraction(0)
    for squares, moving, variance in moves:
        numbers += moving
        mu2 += _up(squares / variance)
        slope += _up(squares / variance**2)
    x = 1000 * numbers**2 * mu2 / slope**2
    return Fraction(18 * max(int(x).bit_length(), 8), 1024)  # ln 2 / 4 pi^2 is 18 / 1025


@lru_cache(maxsize=256)
def _slack(t: Fraction) -> Fraction:
    """Returns l of one coordinate, rounded up."""
    with working(_BITS):
        q = (-2 * arb.pi() ** 2 * ball(t)).exp()
        wobble = 2 * q / (1 - q**3)  # q^4 + q^9 + ... <= q (q^3 + q^6 + ...)
        return _up(upper(2 * wobble.atanh()))


def _up(value: Fraction) -> Fraction:
    """Rounds up to a short dyadic number, so that sums of many stay short."""
    shift = _SHORT - value.numerator.bit_length() + value.denominator.bit_length()
    if shift <= 0:
        return Fraction(-(-value.numerator // value.denominator))
    return Fraction(-(-(value.numerator << shift) // value.denominator), 1 << shift)


@dataclass(frozen=True)
class GaussianVector(Part):
    """Gaussian weights on the integers, on every number of a vector. One unit moves at most `moving` of them, by squares
    that add up to at most `squares`; without `moving`, as many as move by 1."""

    squares: int
    variance: Fraction
    moving: int

    def __init__(self, squares: SupportsIndex, variance: Number, moving: SupportsIndex | None = None) -> None:
        total = whole(squares, "squares", least=1)
        object.__setattr__(self, "squares", total)
        object.__setattr__(self, "variance", positive(variance, "variance"))
        object.__setattr__(self, "moving", total if moving is None else min(whole(moving, "moving", least=1), total))
        between(self.squares / self.variance, "squares / variance", 0, MOST)

    @property
    def moves(self) -> Moves:
        return Moves(self.squares, self.moving, self.variance)

    @property
    def smooth(self) -> Gaussian:
        """The continuous noise that bounds its loss."""
        return _alone(self.moves)

    @property
    def top(self) -> Fraction | None:
        return None

    @property
    def spread(self) -> float:
        return self.smooth.spread

    def phi(self, z: acb) -> acb:
        return self.smooth.phi(z)

    def log_phi(self, z: Complexes) -> Complexes:
        return self.smooth.log_phi(z)

    def damping(self, c: float, t: float, periodic: bool) -> float:
        return self.smooth.damping(c, t, periodic)

    def zcdp(self) -> tuple[Fraction, Fraction]:
        return self.squares / (2 * self.variance), Fraction(0)

    def group(self, size: int) -> Part:
        squares = self.squares * size * size
        return unchecked(GaussianVector, squares=squares, variance=self.variance, moving=min(self.moving * size, squares))

    @classmethod
    def examples(cls) -> list[Part]:
        return [cls(5, 90), cls(100, "1000/3", moving=4)]


@lru_cache(maxsize=256)
def _alone(moves: Moves) -> Gaussian:
    return smooth([moves])
