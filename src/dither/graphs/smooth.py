"""Triangles and stars under edge privacy: noise in proportion to what one edge changes near this graph.

In a graph of n nodes one edge can change n - 2 triangles, but in most graphs far fewer. What is released is

    f + (S / alpha) Z, rounded to a whole number        Z of density h(z) proportional to 1 / (1 + z^4)

with f the exact count and S a *smooth* bound: for every neighbour, S >= |f - f'| and S <= e^beta S'.

Why it is epsilon-DP if 57/25 alpha + 3 beta <= epsilon. The log density at x is ln(alpha / S) + ln h(z), z = (x - f) alpha / S.
  1. From f to f': z moves by at most alpha |f - f'| / S <= alpha. |(ln h)'| = 4 |z|^3 / (1 + z^4) is largest at z^4 = 3, where
     it is 27^(1/4) < 57/25 (as 27 * 25^4 < 57^4). So this costs at most 57/25 alpha.
  2. From S to S': with t = ln(S / S'), |t| <= beta, the log density changes by the integral of 1 - 4 y^4 / (1 + y^4) over an
     interval of length |t|; the integrand lies between -3 and 1. So this costs at most 3 beta.
Rounding is post-processing. Here both steps get half: alpha = 25 epsilon / 114, beta = epsilon / 6.

Why S is smooth. Let U_s, s = 0, 1, …, be whole numbers of a graph with U_0 >= |f - f'| and U_s(G) <= U_(s+1)(G'), and let c be
a rational with e^-beta (1 + eta) <= c < 1. For R = max_s c^s U_s: c^s U_s(G) <= c^-1 c^(s+1) U_(s+1)(G'), so R <= R' / c.
S is R rounded up by a factor of at most 1 + eta, so S <= (1 + eta) R <= (1 + eta) / c R' <= e^beta S'.

    triangles   U_s = min(a + s, floor((t + s) / 2), n - 2)       a: most neighbours that two nodes share
    k-stars     U_s = C(x, k-1) + C(y, k-1)                      d: largest degree
                with x = min(d + s, n - 2, t + s), y = min(x, t + s - x)
    t: largest sum of two degrees, without the edge between these two

One edge changes each of a, d and t by at most 1 (t: the edge between i and j is not counted, another one touches only one of
them), and U_s grows with a + s, d + s and t + s: so U_s(G) <= U_(s+1)(G'). The edge {i, j} completes at most a triangles, and
at most half as many as i and j have other edges; it changes C(x, k-1) + C(y, k-1) stars, with x and y the other edges of i and
j: at most d and n - 2 each, t together. By convexity the sum is largest where x is, so U_0 >= |f - f'|.

S depends on private edges. It is in no answer, record, margin or error. A margin needs a bound on S that is private itself:
ln S moves by at most beta, so floor(ln S / beta) moves by at most 1 and is released with geometric noise, at a share of the
price.
Reference: Nissim, Raskhodnikova and Smith, STOC 2007; stars: Karwa, Raskhodnikova, Smith and Yaroslavtsev, VLDB 2011.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dither.exact import balls
from dither.exact.laws.base import Integers
from dither.exact.numbers import Number, between
from dither.exact.samplers.quartic import Quartic
from dither.graphs import shape
from dither.graphs.reading import Content
from dither.mechanisms.geometric import Geometric
from dither.privacy.losses import Pure

SLIDE = Fraction(57, 25)  # above 27^(1/4)
STRETCH = 3
ROUNDING = Fraction(1, 1 << 40)  # eta
LEAST, MOST = Fraction(1, 10**6), 1000  # prices
_PART = 1 << 20


class Levels(Protocol):
    """U_s of one graph. Private."""

    @property
    def last(self) -> int:
        """Returns the first s from which on U_s does not grow."""
        ...

    def at(self, s: int) -> int: ...
    def logarithms(self, s: Integers) -> NDArray[np.float64]:
        """Returns about ln U_s, for each s."""
        ...


@dataclass(frozen=True, repr=False)
class Triangles:
    """U_s for triangles; `shared`, `total` and `cap` are a, t and n - 2 of the header."""

    shared: int
    total: int
    cap: int

    @classmethod
    def of(cls, graph: Content) -> Triangles:
        return cls(shape.most_common(graph), shape.largest_total(graph), graph.size - 2)

    @property
    def last(self) -> int:
        return max(self.cap - self.shared, 2 * self.cap - self.total, 0)

    def at(self, s: int) -> int:
        return min(self.shared + s, (self.total + s) // 2, self.cap)

    def logarithms(self, s: Integers) -> NDArray[np.float64]:
        least = np.minimum(np.minimum(self.shared + s, (self.total + s) // 2), self.cap)
        with np.errstate(divide="ignore"):
            return np.log(least.astype(np.float64))


@dataclass(frozen=True, repr=False)
class Stars:
    """U_s for k-stars; `degree`, `total` and `cap` are d, t and n - 2 of the header."""

    k: int
    degree: int
    total: int
    cap: int

    @classmethod
    def of(cls, graph: Content, k: int) -> Stars:
        return cls(k, int(graph.degrees().max(initial=0)), shape.largest_total(graph), graph.size - 2)

    @property
    def last(self) -> int:
        return max(self.cap - self.degree, 2 * self.cap - self.total, 0)

    def at(self, s: int) -> int:
        x = min(self.degree + s, self.cap, self.total + s)
        return math.comb(x, self.k - 1) + math.comb(min(x, self.total + s - x), self.k - 1)

    def logarithms(self, s: Integers) -> NDArray[np.float64]:
        x = np.minimum(np.minimum(self.degree + s, self.cap), self.total + s)
        y = np.minimum(x, self.total + s - x)
        with np.errstate(divide="ignore"):
            return np.log(self._choose(x) + self._choose(y))

    def _choose(self, x: Integers) -> NDArray[np.float64]:
        product = np.ones(len(x))
        for i in range(self.k - 1):
            product = product * np.maximum(x - i, 0) / (i + 1)
        return product


@dataclass(frozen=True)
class SmoothNoise:
    """The noise of one price: public, and the same for every graph.

    >>> noise = SmoothNoise.of(1)
    >>> noise.alpha, noise.beta, SLIDE * noise.alpha + STRETCH * noise.beta
    (Fraction(25, 114), Fraction(1, 6), Fraction(1, 1))
    """

    epsilon: Fraction
    alpha: Fraction
    beta: Fraction
    fall: Fraction  # c of the header

    @classmethod
    def of(cls, epsilon: Number) -> SmoothNoise:
        price = between(epsilon, "epsilon", LEAST, MOST)
        beta = price / (2 * STRETCH)
        return cls(price, price / (2 * SLIDE), beta, _fall(beta))

    def bound(self, levels: Levels) -> Fraction:
        """Returns S. Private. Floats find the few s that may have the largest c^s U_s, and balls compute these."""
        with balls.working(192):
            c = balls.ball(self.fall)
            return max(balls.upper(c**s * levels.at(s)) for s in _candidates(levels, self.fall))

    def release(self, exact: int, bound: Fraction) -> int:
        """Returns the noisy count. `bound` is S."""
        return exact + Quartic(bound / self.alpha).draw()

    def loss(self) -> Pure:
        """Returns the price."""
        return Pure(self.epsilon)

    def record(self) -> dict[str, str]:
        """Returns the parameters, which are public. S is not among them."""
        return {"mechanism": "SmoothNoise", "epsilon": str(self.epsilon), "alpha": str(self.alpha), "beta": str(self.beta)}

    def level(self, bound: Fraction) -> int:
        """Returns floor(ln S / beta): private, and one edge moves it by at most 1."""
        if bound == 1:
            return 0
        # No rational but 1 has a rational logarithm, so the floor is decided at some precision.
        return balls.floor_scaled(lambda: balls.ball(bound).log() / balls.ball(self.beta), 0)


@lru_cache(maxsize=64)
def _fall(beta: Fraction) -> Fraction:
    return balls.above(lambda: balls.exp(-beta) * balls.ball(1 + ROUNDING), 64)


def _candidates(levels: Levels, fall: Fraction) -> list[int]:
    """Returns every s at which c^s U_s is largest, and few others.

    The estimate of ln(c^s U_s) is off by less than its slack: each term by a few units in the last place (2^-52) of its size.
    """
    rate = math.log1p(-float(1 - fall)) if fall > Fraction(1, 2) else math.log(fall)
    top = float(levels.logarithms(np.array([levels.last]))[0])
    floor, found = -math.inf, list[tuple[float, int]]()
    for first in range(0, levels.last + 1, _PART):
        if top + first * rate + 1 + 1e-12 * abs(first * rate) < floor:
            break  # no later s can reach what is found
        s = np.arange(first, min(first + _PART, levels.last + 1))
        guess = levels.logarithms(s) + s * rate
        slack = 1e-12 * (1 + np.abs(s * rate) + top)
        floor = max(floor, float((guess - slack).max()))
        found += [(float(guess[i] + slack[i]), int(s[i])) for i in np.flatnonzero(guess + slack >= floor)]
    return [s for most, s in found if most >= floor]


@dataclass(frozen=True)
class SmoothMargins:
    """Margins from the noisy level of S: with half of the doubt S <= e^(beta (level + its margin + 1)), with the other |Z|."""

    noise: SmoothNoise
    noisy: int
    levels: Geometric

    def margin(self, confidence: Fraction) -> int:
        sure = 1 - (1 - confidence) / 2
        highest = (self.noisy + self.levels.margin(sure) + 1) * self.noise.beta
        scale = balls.above(lambda: balls.exp(highest) / balls.ball(self.noise.alpha), 32)
        return Quartic(scale).radius(sure)
