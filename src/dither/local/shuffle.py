"""What reports still reveal when a shuffler forgets who sent which: less, the more honest reports there are.

n people each send a report of one epsilon0-DP randomiser, and a shuffler puts the reports in random order. Replacing one
person's value by another then changes the shuffled reports no more than it changes the pair (A + D, C - A + 1 - D) into
(A + 1 - D, C - A + D), where

    C ~ Binomial(n - 1, e^-epsilon0)    A ~ Binomial(C, 1/2)    D ~ Bernoulli(e^epsilon0 / (e^epsilon0 + 1))

(clones: with probability e^-epsilon0 a report of another person is a fair mixture of what the two values would give). For each
c the likelihood ratio grows with the first number, so the best event is a half-line, and

    delta(epsilon) = sum over c of Pr[C = c] * max over a of ((w - e^eps (1 - w)) T(a - 1, c) + ((1 - w) - e^eps w) T(a, c))

with w = e^epsilon0 / (e^epsilon0 + 1) and T(a, c) = Pr[Binomial(c, 1/2) >= a]. All of it is computed in balls; values of c
outside a window are counted as if all their mass were lost. n is a lower bound on *honest* reports: forged ones hide nobody.
Reference: Feldman, McMillan and Talwar, FOCS 2021.
"""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb

from dither.errors import ArgumentError
from dither.exact import balls
from dither.exact.numbers import Number, between, not_negative, positive, whole

_BITS = 192
_STEPS = 24  # halvings of the interval of epsilon
_LEAST = Fraction(1, 1000)  # a smaller price of a report counts as this
_MOST = 10**6  # reports; more hide no less


def shuffled_delta(epsilon0: Number, reports: int, epsilon: Number) -> Fraction:
    """Returns a delta at this epsilon for shuffled reports of an epsilon0-DP randomiser, certified from above."""
    own, n = _private(epsilon0), min(whole(reports, "reports", least=1), _MOST)
    asked = not_negative(epsilon, "epsilon")
    if asked >= own:  # one report alone keeps this
        return Fraction(0)
    with balls.working(_BITS):
        found = balls.upper(_delta(own, n, asked))
    return min(found, Fraction(1))


def shuffled_epsilon(epsilon0: Number, reports: int, delta: Number) -> Fraction:
    """Returns an epsilon at this delta for shuffled reports of an epsilon0-DP randomiser, certified from above.

    `reports`: a lower bound on honest reports, all by one randomiser. Neighbours: one person's value is replaced.

    >>> float(shuffled_epsilon(1, 10_000, "1e-6")) < 0.06
    True
    """
    own, n = _private(epsilon0), whole(reports, "reports", least=1)
    allowed = between(delta, "delta", 0, 1, open_low=True, open_high=True)
    low, high = Fraction(0), own
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if shuffled_delta(own, n, middle) <= allowed else (middle, high)
    return high


def _private(epsilon0: Number) -> Fraction:
    own = positive(epsilon0, "epsilon0")
    if own > 20:
        raise ArgumentError(
            "epsilon0 must be at most 20: beyond, shuffling hides next to nothing.", fix="give the price of a report."
        )
    return max(own, _LEAST)


def _delta(own: Fraction, n: int, epsilon: Fraction) -> arb:
    clone, factor = balls.exp(-own), balls.exp(epsilon)
    heads = 1 / (1 + clone)
    first, second = heads - factor * (1 - heads), (1 - heads) - factor * heads
    low, high = _window(n - 1, float(clone))
    mass = _binomial(n - 1, low, clone)
    total, seen = arb(0), arb(0)
    tail = _Tail(low)
    for c in range(low, high + 1):
        if c > low:
            mass = mass * (n - c) / c * clone / (1 - clone)
            tail.grow()
        seen += mass
        total += mass * tail.best(first, second)
    return total + abs(1 - seen).upper()


def _window(n: int, clone: float) -> tuple[int, int]:
    """Returns values of C that hold all of its mass but far less than any delta asked for."""
    wide = 14 * math.sqrt(n * clone * (1 - clone)) + 60
    return max(0, math.floor(n * clone - wide)), min(n, math.ceil(n * clone + wide))


def _binomial(n: int, k: int, p: arb) -> arb:
    return arb(n).bin(k) * p**k * (1 - p) ** (n - k) if n else arb(1)


class _Tail:
    """Half-lines of Binomial(c, 1/2), followed from one c to the next: from `a` on, 0 <= a <= c + 1."""

    def __init__(self, c: int) -> None:
        self.c, self.a = c, (c + 1) // 2
        self.point = arb(c).bin(self.a) / arb(2) ** c  # Pr[= a]
        self.above, term = arb(0), self.point  # Pr[>= a]
        for k in range(self.a, c + 1):
            self.above += term
            term = term * (c - k) / (k + 1)

    def _below(self) -> arb:
        """Returns Pr[= a - 1]."""
        if self.a == 0:
            return arb(0)
        return self.point * self.a / (self.c - self.a + 1) if self.a <= self.c else arb(2) ** -self.c

    def grow(self) -> None:
        """Goes on from c to c + 1: a coin more is heads half of the time."""
        below = self._below()
        self.above, self.point = self.above + below / 2, (self.point + below) / 2
        self.c += 1

    def _up(self) -> None:
        self.above -= self.point
        self.point = self.point * (self.c - self.a) / (self.a + 1)
        self.a += 1

    def _down(self) -> None:
        self.point = self._below()
        self.a -= 1
        self.above += self.point

    def best(self, first: arb, second: arb) -> arb:
        """Moves to the best half-line and returns what it adds to delta. What the next number adds grows with the number."""
        while self.a <= self.c and first * self._below() + second * self.point < 0:
            self._up()
        while self.a > 0:
            self._down()
            if not first * self._below() + second * self.point > 0:
                self._up()
                break
        found = first * (self.above + self._below()) + second * self.above
        return found if found > 0 else found.max(arb(0))
