"""Discrete Gaussian noise: many answers at once, under (epsilon, delta) or zero-concentrated DP.

    release = g * (round(exact / g) + k)        Pr[k] proportional to exp(-k^2 / 2v) on all whole k

with g the grid (whole-number answers are their own grid) and v the variance in steps squared.

Why it is private: between answers s steps apart the Renyi divergence of order a is a s^2 / 2v at every a, so a release
is rho-zCDP with rho = s^2 / 2v; coordinates add, so for a vector s^2 is the largest sum of squared steps (norms.py).
Calibrated to (epsilon, delta), one moving coordinate is priced on the discrete law itself (calibration.py), vectors
in which several may move by rho and its certified conversion. It is not epsilon-DP for any epsilon: the log ratio
(s^2 - 2 s k) / 2v grows without end.
Reference: Canonne, Kamath and Steinke, NeurIPS 2020.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.exact import laws
from dither.exact.law import Law
from dither.exact.numbers import Number, between, positive, rounded
from dither.mechanisms import answers, calibration
from dither.mechanisms.base import Example, Mechanism
from dither.mechanisms.norms import L1, L2, Norm, PerCoordinate, Sensitivity, as_l2
from dither.privacy.losses import ZCDP, Approx, Curve, Loss
from dither.privacy.parts import DiscreteGaussian


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """Hides one unit's share of many counts or sums at once. Give epsilon and delta, or rho, or scale.

    Guarantee: (epsilon, delta)-DP, or rho-zCDP, between exact answers at most `sensitivity` apart (L2 for a number).
    Relies on: the planner having bounded the answer. With epsilon and delta a plain number above 1 is one coordinate;
    for vectors say L2(value, dimension=d) or PerCoordinate(count, each). Without a grid, answers are whole numbers.

    >>> Gaussian(epsilon=1, delta="1e-5", sensitivity=1).margin("0.95")
    7
    >>> Gaussian(rho="1/8", sensitivity=1).variance
    Fraction(4, 1)
    """

    tag: ClassVar[str] = "Gaussian"
    gaussian: ClassVar[bool] = True
    sensitivity: Norm
    grid: Fraction | None
    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None
    scale: Fraction | None
    variance: Fraction = field(init=False, repr=False, compare=False)
    noise: laws.Gaussian = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        *,
        sensitivity: Sensitivity,
        grid: Number | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        scale: Number | None = None,
    ) -> None:
        given = tuple(x is not None for x in (epsilon, delta, rho, scale))
        if given not in ((True, True, False, False), (False, False, True, False), (False, False, False, True)):
            raise ArgumentError(
                "Gaussian needs epsilon with delta, or rho, or scale, and nothing more.", fix="give one of the three."
            )
        norm, step = as_l2(sensitivity), None if grid is None else positive(grid, "grid")
        if epsilon is not None and not isinstance(sensitivity, (L1, L2, PerCoordinate)) and norm.separate(step) is None:
            norm = L2(sensitivity, dimension=1)
        object.__setattr__(self, "sensitivity", norm)
        object.__setattr__(self, "grid", step)
        object.__setattr__(self, "epsilon", None if epsilon is None else positive(epsilon, "epsilon"))
        object.__setattr__(
            self, "delta", None if delta is None else between(delta, "delta", 0, 1, open_low=True, open_high=True)
        )
        object.__setattr__(self, "rho", None if rho is None else positive(rho, "rho"))
        object.__setattr__(self, "scale", None if scale is None else positive(scale, "scale"))
        object.__setattr__(self, "variance", self._variance())
        object.__setattr__(self, "noise", laws.Gaussian(self.variance))  # refuses a scale out of range

    @classmethod
    def with_scale(cls, scale: Number, *, sensitivity: Sensitivity, grid: Number | None = None) -> Gaussian:
        """From the noise: scale is sigma in the answer's own unit, at the rho that follows."""
        return cls(sensitivity=sensitivity, grid=grid, scale=scale)

    def _variance(self) -> Fraction:
        """The noise's parameter v, in steps squared."""
        if self.scale is not None:
            return (self.scale / (self.grid or 1)) ** 2
        squares = self.sensitivity.squares(self.grid)
        if self.rho is not None:
            return squares / (2 * self.rho)
        if self.epsilon is None or self.delta is None:
            raise ArgumentError("Gaussian needs epsilon with delta, or rho, or scale.", fix="give one of the three.")
        shift = self._alone()
        if shift is not None:
            return calibration.for_shift(self.epsilon, self.delta, shift)
        return calibration.for_squares(self.epsilon, self.delta, squares)

    def _alone(self) -> int | None:
        """How many steps the one moving coordinate moves, if one moves and (epsilon, delta) is asked for."""
        moves = self.sensitivity.separate(self.grid) if self.epsilon is not None else None
        return moves[1] if moves is not None and moves[0] == 1 else None

    def release(self, exact: answers.Answer) -> int | Fraction | NDArray[Any]:
        start = self._start(exact)
        if isinstance(start, int):
            return self.outcome(start + self.noise.draw())
        return answers.values(answers.add(start, self.noise.draw(len(start))), self.grid or Fraction(1))

    def _start(self, exact: Any) -> Any:
        if self.grid is None:
            return answers.whole(exact, self.sensitivity)
        return answers.steps(exact, self.grid, self.sensitivity)

    def outcome(self, k: int) -> int | Fraction:
        return k if self.grid is None else answers.value(k, self.grid)

    def loss(self) -> Loss:
        """Approx if calibrated to epsilon and delta, else ZCDP."""
        if self.epsilon is not None and self.delta is not None:
            return Approx(self.epsilon, self.delta)
        return self.zcdp()

    def zcdp(self) -> ZCDP:
        """By the variance itself, however it was calibrated: sigma for (epsilon, delta) has a rho of its own."""
        return ZCDP(self.sensitivity.squares(self.grid) / (2 * self.variance))

    def curve(self) -> Curve:
        """Exact where the worst case is coordinates that move alike; else what the loss itself says."""
        moves = self.sensitivity.separate(self.grid)
        if moves is None:
            return self.loss().curve()
        count, each = moves
        return Curve.of(DiscreteGaussian(each, self.variance), count)

    def law(self, exact: answers.Answer) -> Law:
        """In steps: the release is `grid` times a value of this law."""
        by = answers.single(exact) if self.grid is None else answers.single_step(exact, self.grid)  # type: ignore[arg-type]
        return laws.Moved(self.noise, by)

    def margin(self, confidence: Number) -> int | Fraction:
        """The smallest multiple of the grid that holds the noise of each coordinate with this confidence."""
        return self.outcome(self.noise.radius(confidence))

    @property
    def noise_scale(self) -> float:
        """The standard deviation of one coordinate's noise, near enough for margins."""
        return math.sqrt(self.variance) * float(self.grid or 1)

    @property
    def noise_variance(self) -> float:
        """The variance of one coordinate's noise, near enough for weighing."""
        return self.noise_scale**2

    def parameters(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rho": self.zcdp().rho,
            "variance": self.variance,
            "grid": self.grid,
            "sensitivity": self.sensitivity,
        }

    def words(self, on: str = "the answer", who: str = "person") -> str:
        moved = rounded(math.sqrt(self.sensitivity.squares(self.grid)) * float(self.grid or 1))
        price = f"ρ = {rounded(float(self.zcdp().rho))}"
        price += ", calibrated on its own curve" if self._alone() is not None else ""
        return (
            f"Gaussian, standard deviation {rounded(self.noise_scale)}, on {on}: one {who} changes them by "
            f"at most {moved} (root of the sum of squares), {price}"
        )

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            Example(cls(epsilon=1, delta="1e-5", sensitivity=1), 0, (1, -1)),
            Example(cls(epsilon=3, delta="1e-3", sensitivity=2, grid="1/2"), 0.25, (2.25, -1.75)),
            Example(cls(epsilon=1, delta="1e-4", sensitivity=L2(2, dimension=4)), 3, (4, 5)),
            Example(cls(rho="1/8", sensitivity=PerCoordinate(2, 3)), 10, (13, 7)),
            Example(cls(scale=2, sensitivity=1), 5, (4, 6)),
        )
