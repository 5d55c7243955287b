"""Two-sided geometric noise: whole-number answers under pure differential privacy.

    Pr[noise = k] = (1 - a) / (1 + a) * a^|k|        a = exp(-epsilon / sensitivity)

Why it is private: when the exact answer moves by d, |k| moves by at most d, so the log ratio of the two
output probabilities is at most d * epsilon / sensitivity. Both tails reach it. A vector gets independent
noise per coordinate; the log ratios add up, so `sensitivity` bounds the sum of all moves (norms.py).
Reference: Ghosh, Roughgarden and Sundararajan, STOC 2009.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dither.exact.laws.base import Integers, Law
from dither.exact.laws.derived import Moved
from dither.exact.laws.geometric import TwoSided
from dither.exact.numbers import Number, positive, show_rounded
from dither.mechanisms import base
from dither.mechanisms.base import Example, Mechanism, change_words, epsilon_words
from dither.mechanisms.norms import L1, L2, Norm, PerCoordinate, Sensitivity, as_l1
from dither.privacy.losses import Curve, Pure
from dither.privacy.parts import DiscreteLaplace, Response


@dataclass(frozen=True)
class Geometric(Mechanism):
    """Hides one unit's share of a count, a whole-number sum, or a vector of them.

    Guarantee: epsilon-DP between exact answers at most `sensitivity` apart.
    Relies on: the planner having bounded the answer; this file never sees a row.

    >>> Geometric(epsilon=1, sensitivity=1).margin(0.95)
    3
    >>> Geometric(epsilon="1/2", sensitivity=1).loss()
    Pure(epsilon=Fraction(1, 2))
    """

    tag: ClassVar[str] = "Geometric"
    epsilon: Fraction
    sensitivity: Norm
    noise: TwoSided = field(init=False, repr=False, compare=False)

    def __init__(self, *, epsilon: Number, sensitivity: Sensitivity) -> None:
        norm = as_l1(sensitivity)
        moved, price = norm.total(None), positive(epsilon, "epsilon")
        object.__setattr__(self, "epsilon", price)
        object.__setattr__(self, "sensitivity", norm)
        object.__setattr__(self, "noise", TwoSided(moved / price))  # refuses a scale out of range

    @classmethod
    def with_scale(cls, scale: Number, *, sensitivity: Sensitivity) -> Geometric:
        """Builds it from the noise: a = exp(-1 / scale), at the resulting price."""
        norm = as_l1(sensitivity)
        return cls(epsilon=norm.total(None) / positive(scale, "scale"), sensitivity=norm)

    @property
    def scale(self) -> Fraction:
        """Returns the scale: log Pr[noise = k] falls by 1 / scale per step."""
        return self.sensitivity.total(None) / self.epsilon

    def release(self, exact: base.Whole) -> int | Integers:
        if isinstance(exact, np.ndarray):
            return base.add_noise(base.whole_array(exact, self.sensitivity), self.noise)
        return int(base.whole(exact)) + self.noise.draw()

    def loss(self) -> Pure:
        return separate_loss(self.epsilon, self.sensitivity, None)

    def curve(self) -> Curve:
        return separate_curve(self.epsilon, self.sensitivity, None)

    def law(self, exact: int) -> Law:
        return Moved(self.noise, base.single(exact))

    def margin(self, confidence: Number) -> int:
        """Returns the smallest m with Pr[|noise| <= m] >= confidence, for each coordinate."""
        return self.noise.radius(confidence)

    @property
    def noise_scale(self) -> float:
        """Returns the scale of one coordinate's noise, for margins."""
        return float(self.scale)

    @property
    def noise_variance(self) -> float:
        """Returns about the variance of one coordinate's noise, for weights."""
        return 2 * self.noise_scale**2

    def parameters(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "sensitivity": self.sensitivity}

    def words(self, on: str = "the answer", who: str = "person") -> str:
        moved, scale = self.sensitivity.total(None), show_rounded(self.noise_scale)
        return f"geometric, scale {scale}, on {on}: {change_words(who, moved)}, {epsilon_words(self.epsilon)}"

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            Example(cls(epsilon=1, sensitivity=1), 7, (6, 8)),
            Example(cls(epsilon="1/3", sensitivity=5), -2, (-7, -4, 3)),
            Example(cls(epsilon=4, sensitivity=PerCoordinate(2, 1)), 0, (-1, 1)),
            Example(cls(epsilon="0.1", sensitivity=L2(2, dimension=3)), 0, (2,)),
            Example(cls(epsilon="0.25", sensitivity=L1("5/2", dimension=2)), 10**9, (10**9 - 2,)),
        )


def separate_loss(epsilon: Fraction, norm: Norm, grid: Fraction | None) -> Pure:
    """Returns the loss in all. If c coordinates share epsilon equally, rho is c (epsilon / c)^2 / 2, not epsilon^2 / 2."""
    moves = norm.separate(grid)
    return Pure(epsilon, rho=epsilon**2 / (2 * moves[0])) if moves else Pure(epsilon)


def separate_curve(epsilon: Fraction, norm: Norm, grid: Fraction | None) -> Curve:
    """Returns the curve of independent two-sided geometric noise per coordinate, epsilon in all.

    Moving a coordinate by fewer steps gives away less: the likelihood ratio is monotone in the output, so the
    best test is a half-line {k <= t}, and Pr[X <= t] - e^x Pr[X <= t - s] grows with the shift s. Where the worst
    case is c coordinates of s steps each, the curve is therefore c such parts; elsewhere the general one is used.
    """
    moves = norm.separate(grid)
    if moves is None:
        return Curve.of(Response(epsilon))
    count, each = moves
    return Curve.of(DiscreteLaplace(epsilon / count, each), count)
