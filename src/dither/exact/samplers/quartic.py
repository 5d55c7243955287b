"""Noise with heavy tails: a real number Z of density proportional to 1 / (1 + z^4), scaled and rounded to whole numbers.

    Quartic(s)    the law of s Z, rounded to the nearest whole number
    Pr[Z <= z] = 1/2 + ln((z^2 + r z + 1) / (z^2 - r z + 1)) / (4 pi) + (atan(r z + 1) + atan(r z - 1)) / (2 pi)    r = sqrt(2)

The derivative of the right-hand side is r / (pi (1 + z^4)), and its limits are 0 and 1. Z has mean 0 and variance 1, and no
third moment. A draw inverts this function at a uniform real whose bits are drawn until the whole number is decided.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from dither.exact.balls import ball
from dither.exact.laws.base import SamplerLaw


def at_most(z: Fraction) -> arb:
    """Returns Pr[Z <= z]."""
    x, r = ball(z), arb(2).sqrt()
    square = ball(z * z + 1)
    logarithm = ((square + r * x) / (square - r * x)).log()
    angles = (r * x + 1).atan() + (r * x - 1).atan()
    return arb(1) / 2 + (logarithm / 4 + angles / 2) / arb.pi()


@dataclass(frozen=True)
class Quartic(SamplerLaw):
    """The law of `scale` times Z, rounded to the nearest whole number.

    >>> Quartic(Fraction(10)).radius("0.95")
    18
    """

    scale: Fraction

    def span(self) -> tuple[None, None]:
        return None, None

    def at_most(self, k: int) -> arb:
        return at_most((k + Fraction(1, 2)) / self.scale)

    def more_than(self, k: int) -> arb:
        return self.at_most(-k - 1)
