"""The rule of a shared budget: a question is admitted while the plain sum holds, or else while the sum of rho holds.

    sum     sum of epsilon_i <= epsilon      and  sum of delta_i <= delta_sums
    zcdp    sum of rho_i     <= rho_max      and  sum of slack_i <= delta_keys
            where rho_max-zCDP is (epsilon, delta_conversion)-DP by the certified conversion

Every release states its price both ways. Why the two together are (epsilon, delta_sums + delta_keys + delta_conversion)-DP,
for questions chosen one after the other and running side by side: docs/decisions/0004-either-or.md. In one line: split the
transcripts by which line held at the last admission, and stop the process where that line would first be broken.

Sums are whole numbers of 1/GRID. A charge is rounded up to it; those that people write (decimals of up to 36 places, and
fractions with denominators up to 32) are on it, so ten charges of 0.1 are exactly 1. This keeps a sum as short after a
million questions as after one.
References: Rogers, Roth, Ullman and Vadhan, NIPS 2016; Feldman and Zrnic, NeurIPS 2021; Whitehouse et al., ICML 2023.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

from dither.errors import ArgumentError
from dither.exact.numbers import Number, between, positive
from dither.privacy.conversion import delta_of_zcdp
from dither.privacy.losses import ZCDP, Approx, Pure
from dither.privacy.parts.base import MOST

GRID = 10**36 * math.lcm(*range(1, 33))
_NONE = Fraction(0)
_STEPS = 40  # of the search for rho_max
MOST_QUESTIONS = 10_000  # that the sum of rho admits, however little noise they ask for
_HALVINGS = 256  # a smaller rho_max would be below 1/GRID and admit nothing: it is 0


@dataclass(frozen=True)
class Charge:
    """What one release may cost, stated both ways: (epsilon, delta), and rho except with probability `slack`.

    >>> Charge.of(Pure("1/10"), Pure("1/10").zcdp())
    Charge(epsilon=Fraction(1, 10), delta=Fraction(0, 1), rho=Fraction(1, 200), slack=Fraction(0, 1))
    """

    epsilon: Fraction
    delta: Fraction
    rho: Fraction | None = None
    slack: Fraction = _NONE

    def __post_init__(self) -> None:
        stated = {"epsilon": (self.epsilon, MOST), "delta": (self.delta, 1), "slack": (self.slack, 1)}
        for name, (value, most) in stated.items():
            object.__setattr__(self, name, between(value, name, 0, most))
        if self.delta == 1 or self.slack == 1:
            raise ArgumentError("delta must be below 1, and it is 1.", fix="state a delta below 1.")
        if self.rho is not None:
            object.__setattr__(self, "rho", between(self.rho, "rho", 0, MOST * MOST))

    @cached_property
    def parts(self) -> tuple[int, int, int, int, int]:
        """What it adds to each of the sums, rounded up."""
        rho, unstated = (_NONE, 1) if self.rho is None else (self.rho, 0)
        return up(self.epsilon), up(self.delta), up(rho), up(self.slack), unstated

    @classmethod
    def of(cls, stated: Pure | Approx, concentrated: ZCDP | None) -> Charge:
        """The charge of a release whose loss is known both ways; both must be losses of the same draws."""
        epsilon, delta = stated.pair()
        return cls(epsilon, delta) if concentrated is None else cls(epsilon, delta, concentrated.rho, concentrated.slack)

    def rounded_up(self, least_rho: Fraction) -> Charge:
        """The charge with a rho of at least this much: more than the release costs, and so a price of it too. What is free
        stays free.

        >>> Charge(Fraction(1, 100), Fraction(0), Fraction(1, 20000)).rounded_up(Fraction(1, 1000)).rho
        Fraction(1, 1000)
        """
        if not self.epsilon or self.rho is None or self.rho >= least_rho:
            return self
        return replace(self, rho=least_rho)


@dataclass(frozen=True)
class Sums:
    """What was charged so far, each part in whole numbers of 1/GRID; `unstated` counts charges without a rho.

    >>> used = Sums()
    >>> for _ in range(10):
    ...     used = used.plus(Charge(Fraction("0.1"), Fraction(0)))
    >>> used.epsilon == GRID, Caps.of(1, 0).rule(used), Caps.of(1, 0).rule(used.plus(Charge(Fraction("1e-30"), Fraction(0))))
    (True, 'sum', None)
    """

    epsilon: int = 0
    delta: int = 0
    rho: int = 0
    slack: int = 0
    unstated: int = 0

    def plus(self, charge: Charge) -> Sums:
        """With one more charge, each part rounded up."""
        return self._moved(charge, 1)

    def minus(self, charge: Charge) -> Sums:
        """Without a charge that was added before and released nothing."""
        return self._moved(charge, -1)

    def _moved(self, charge: Charge, sign: int) -> Sums:
        now = (self.epsilon, self.delta, self.rho, self.slack, self.unstated)
        return Sums(*(have + sign * more for have, more in zip(now, charge.parts, strict=True)))


@dataclass(frozen=True)
class Caps:
    """The budget and how it is laid out: fixed once, before the first question."""

    epsilon: Fraction
    delta_sums: Fraction = _NONE
    delta_keys: Fraction = _NONE
    delta_conversion: Fraction = _NONE
    rho_max: Fraction = _NONE

    @classmethod
    def of(cls, epsilon: Number, delta: Number) -> Caps:
        """Half of delta for plain sums; a quarter for keys and a quarter for the conversion where rho is added up."""
        most, allowed = positive(epsilon, "epsilon"), between(delta, "delta", 0, 1, open_high=True)
        if not allowed:
            return cls(most)
        return cls(most, allowed / 2, allowed / 4, allowed / 4, largest_rho(most, allowed / 4))

    @property
    def delta(self) -> Fraction:
        """What the layout costs in all."""
        return self.delta_sums + self.delta_keys + self.delta_conversion

    @property
    def least_rho(self) -> Fraction:
        """The least rho that a question is charged: so the sum of rho admits no more than 10,000. 0 in pure catalogs."""
        return self.rho_max / MOST_QUESTIONS

    def rule(self, sums: Sums) -> str | None:
        """Which line these sums keep: "sum", else "zcdp", else None."""
        if _within(sums.epsilon, self.epsilon) and _within(sums.delta, self.delta_sums):
            return "sum"
        if self.rho_max and not sums.unstated and _within(sums.rho, self.rho_max) and _within(sums.slack, self.delta_keys):
            return "zcdp"
        return None


def up(value: Fraction) -> int:
    """The smallest whole number of 1/GRID that is not below the value."""
    return -(-value.numerator * GRID // value.denominator)


def _within(used: int, cap: Fraction) -> bool:
    return used * cap.denominator <= cap.numerator * GRID


@lru_cache(maxsize=64)
def largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A rho of few digits, near the largest, that is (epsilon, delta)-DP by the certified conversion.

    >>> delta_of_zcdp(largest_rho(Fraction(1), Fraction("1e-6")), Fraction(1)) <= Fraction("1e-6")
    True
    """
    low, high = _NONE, max(epsilon, Fraction(1))
    while delta_of_zcdp(high, epsilon) <= delta:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        if low:
            break
        low, high = (high / 2, high) if delta_of_zcdp(high / 2, epsilon) <= delta else (_NONE, high / 2)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of_zcdp(middle, epsilon) <= delta else (low, middle)
    return _shortened(low)


def _shortened(value: Fraction) -> Fraction:
    """Rounded down to seven decimal digits, so that a four-hundredth of it is on the grid."""
    digits = 7
    while value and value * 10**digits < 10**6:
        digits += 1
    return Fraction(math.floor(value * 10**digits), 10**digits)
