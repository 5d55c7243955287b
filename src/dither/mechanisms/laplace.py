"""Laplace noise on a grid: real-valued answers under pure differential privacy.

    release = g * (round(exact / g) + k)        Pr[k] = (1 - a) / (1 + a) * a^|k|        a = exp(-epsilon / s)

with g the grid and s the most steps of it that one unit can move the rounded answer: ceil(sensitivity / g) for
one number; norms.py has the vectors and the proof. The answer is always rounded, never refused, and the price
includes the extra steps from rounding. As the grid gets finer this becomes continuous Laplace noise of scale
sensitivity / epsilon, Pr[|noise| > t * scale] = e^-t, without the low bits by which float noise leaks the answer.

Why it is private: the rounded answers of neighbours are at most s steps apart, and the rest is geometric.py.
Halves must be rounded upwards, not to even: half-even sends 1/2 and 3/2 to 0 and 2, further apart than they were.
Reference: Dwork, McSherry, Nissim and Smith, TCC 2006; on the grid: Mironov, CCS 2012 (why floats fail).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dither.exact.laws.base import Law
from dither.exact.laws.derived import Moved
from dither.exact.laws.geometric import TwoSided
from dither.exact.numbers import Number, positive, show_rounded
from dither.mechanisms import base
from dither.mechanisms.base import Example, Mechanism, change_words, epsilon_words
from dither.mechanisms.geometric import separate_curve, separate_loss
from dither.mechanisms.norms import L1, L2, Norm, PerCoordinate, Sensitivity, as_l1
from dither.privacy.losses import Curve, Pure


@dataclass(frozen=True)
class Laplace(Mechanism):
    """Hides one unit's share of a mean, a sum of reals, or a vector of them.

    Guarantee: epsilon-DP between exact answers at most `sensitivity` apart, whatever their low bits are.
    Relies on: the planner having bounded the answer. The margin is around the answer rounded to the grid,
    which is at most half a step from the answer itself.

    >>> Laplace(epsilon=1, sensitivity=10, grid="1/100").margin("0.95")
    Fraction(749, 25)
    """

    tag: ClassVar[str] = "Laplace"
    epsilon: Fraction
    sensitivity: Norm
    grid: Fraction
    noise: TwoSided = field(init=False, repr=False, compare=False)

    def __init__(self, *, epsilon: Number, sensitivity: Sensitivity, grid: Number) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "sensitivity", as_l1(sensitivity))
        object.__setattr__(self, "grid", positive(grid, "grid"))
        steps = self.sensitivity.total(self.grid)
        object.__setattr__(self, "noise", TwoSided(steps / self.epsilon))  # refuses a scale out of range

    @classmethod
    def with_scale(cls, scale: Number, *, sensitivity: Sensitivity, grid: Number) -> Laplace:
        """Builds it from the noise: scale in the answer's own unit, at the resulting price."""
        norm, step = as_l1(sensitivity), positive(grid, "grid")
        return cls(epsilon=norm.total(step) * step / positive(scale, "scale"), sensitivity=norm, grid=step)

    @property
    def scale(self) -> Fraction:
        """Returns the noise scale in the answer's own unit."""
        return self.grid * self.noise.scale

    def release(self, exact: base.Answer) -> Fraction | NDArray[Any]:
        """Returns one noisy number, or an array of them for an array, a list or a tuple."""
        read = base.listed(exact)
        if isinstance(read, np.ndarray):
            return base.add_noise(read, self.noise, self.grid, self.sensitivity)
        return self.outcome(int(base.steps(read, self.grid)) + self.noise.draw())

    def outcome(self, k: int) -> Fraction:
        return base.value(k, self.grid)

    def loss(self) -> Pure:
        return separate_loss(self.epsilon, self.sensitivity, self.grid)

    def curve(self) -> Curve:
        return separate_curve(self.epsilon, self.sensitivity, self.grid)

    def law(self, exact: base.Answer) -> Law:
        """Returns the law in steps: the release is `grid` times a value of this law."""
        return Moved(self.noise, base.single_step(exact, self.grid))

    def margin(self, confidence: Number) -> Fraction:
        """Returns the smallest multiple of the grid that bounds the noise of each coordinate with this confidence."""
        return self.grid * self.noise.radius(confidence)

    def parameters(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "sensitivity": self.sensitivity, "grid": self.grid}

    def words(self, on: str = "the answer", who: str = "person") -> str:
        moved, scale = self.grid * self.sensitivity.total(self.grid), show_rounded(float(self.scale))
        return f"Laplace, scale {scale}, on {on}: {change_words(who, moved)}, {epsilon_words(self.epsilon)}"

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            Example(cls(epsilon=1, sensitivity=1, grid="1/4"), 0.3, (1.3, -0.7, Fraction(4, 5))),
            Example(cls(epsilon="1/2", sensitivity="0.3", grid="1/4"), Fraction(1, 8), (Fraction(17, 40),)),
            Example(cls(epsilon=2, sensitivity=L1(1, dimension=3), grid="1/2"), 5, (6, 4.5)),
            Example(cls(epsilon=1, sensitivity=PerCoordinate(2, "0.7"), grid="0.1"), 0, (Fraction(7, 10),)),
            Example(cls(epsilon=1, sensitivity=L2(1, dimension=2), grid=1), 0.49, (1.49,)),
        )
