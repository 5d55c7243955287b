"""The one-sided exponential law on the real numbers, exactly: what geometric noise is on a grid.

    density(t)   e^(-t/s) / s               t >= 0
    survivor(t)  Pr[X > t] = e^(-t/s)
    quantile(u)  -s ln(1 - u)               the inverse distribution function, 0 <= u < 1

No memory: Pr[X > t + x | X > t] = survivor(x), the same shape moved by t. (`Given` in derived.py states it on whole numbers.)
On a grid g, floor(X / g) is geometric with a = e^(-g/s), exactly: Pr[floor(X / g) = k] = e^(-gk/s) (1 - e^(-g/s)). So a draw
is a draw of `OneSided`, and no real number is ever rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from dither.exact import numbers
from dither.exact.balls import ball, exp
from dither.exact.laws.geometric import OneSided


@dataclass(frozen=True)
class Exponential:
    """Pr[X > t] = e^(-t / scale) for t >= 0. Probabilities are balls at the working precision.

    >>> Exponential(2).on_grid("1/10")
    OneSided(scale=Fraction(20, 1))
    >>> round(float(Exponential(2).survivor(4)), 6), round(float(Exponential(2).quantile("1/2")), 6)
    (0.135335, 1.386294)
    """

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", numbers.positive(self.scale, "scale"))

    def density(self, t: numbers.Number) -> arb:
        at = numbers.rational(t, "t")
        return exp(-at / self.scale) / ball(self.scale) if at >= 0 else arb(0)

    def survivor(self, t: numbers.Number) -> arb:
        """Returns Pr[X > t]."""
        at = numbers.rational(t, "t")
        return exp(-at / self.scale) if at >= 0 else arb(1)

    def survivor_given(self, t: numbers.Number, past: numbers.Number) -> arb:
        """Returns Pr[X > t | X > past], by the definition."""
        at, start = numbers.rational(t, "t"), numbers.rational(past, "past")
        return self.survivor(at) / self.survivor(start) if at > start else arb(1)

    def quantile(self, u: numbers.Number) -> arb:
        """Returns the t with Pr[X <= t] = u."""
        share = numbers.between(u, "u", 0, 1, open_high=True)
        return -ball(self.scale) * ball(1 - share).log()

    def on_grid(self, grid: numbers.Number) -> OneSided:
        """Returns the exact law of floor(X / grid)."""
        return OneSided(self.scale / numbers.positive(grid, "grid"))

    def draw(self, grid: numbers.Number) -> Fraction:
        """Draws X rounded down to a multiple of the grid, exactly."""
        step = numbers.positive(grid, "grid")
        return step * self.on_grid(step).draw()
