"""Discrete Gaussian noise: many answers at once, under (epsilon, delta) or zero-concentrated DP.

    release = g * (round(exact / g) + k)        Pr[k] proportional to exp(-k^2 / 2v) on all whole k

with g the grid (whole-number answers are their own grid) and v the variance in steps squared.

Why it is private: between answers s steps apart the Renyi divergence of order a is a s^2 / 2v at every a, so a release
is rho-zCDP with rho = s^2 / 2v; coordinates add, so for a vector s^2 is the largest sum of squared steps (norms.py).
Calibrated to (epsilon, delta), one moving coordinate is priced on the discrete law itself (below), vectors
in which several may move by a bound that covers them all (calibration.py). It is not epsilon-DP for any epsilon: the log ratio
(s^2 - 2 s k) / 2v grows without end.

Calibration finds the smallest variance for a given (epsilon, delta). For noise X and a shift of s > 0 steps,

    delta(epsilon, s) = Pr[X <= t] - e^epsilon Pr[X <= t - s]        t = floor(s/2 - epsilon v / s)

Proof. The log ratio of X against X + s at output k is (s^2 - 2 s k) / 2v: it falls in k and exceeds epsilon exactly
when k < s/2 - epsilon v / s. So the best set to tell them apart by is the half-line {k <= t}, and t may include the
one k where the ratio equals e^epsilon, which adds nothing. For any half-line, Pr[X <= t - s] falls as s grows,
so delta(epsilon, s) = max over t grows with s: shifts below s are covered by s. X is symmetric, so shifts to the left
are covered too.

The continuous formula is not used: at its sigma for (1, 1e-5) the discrete law's delta is 3.5 % too large.
The textbook's sqrt(2 ln(1.25 / delta)) / epsilon is not used either: it is wrong above epsilon = 1.

X has the tails of a Gaussian of variance v, Pr[X <= -t] <= exp(-t^2 / 2v), which decides the easy cases. Variances for
one coordinate have seven significant digits. The result is certified; the next smaller one of that grid fails.
Reference: Balle and Wang, ICML 2018 (the continuous law); Canonne, Kamath and Steinke, NeurIPS 2020 (the discrete one).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.exact.balls import Real, above, ball, certainly_at_most, exp
from dither.exact.laws.base import Law, search
from dither.exact.laws.derived import Moved
from dither.exact.laws.gaussian import Gaussian as GaussianLaw
from dither.exact.numbers import Number, between, positive, show_rounded
from dither.mechanisms import base
from dither.mechanisms.base import Example, Mechanism
from dither.mechanisms.calibration import HIGHEST, LOWEST, SEVEN, for_alike, for_squares, too_wide
from dither.mechanisms.norms import L1, L2, Norm, PerCoordinate, Sensitivity, as_l2
from dither.privacy.losses import ZCDP, Approx, Curve, Loss
from dither.privacy.parts import DiscreteGaussian, GaussianVector

_FAR = 400  # (20 sigma)^2: beyond it a sum would need too many digits, and at 10^7 sigma too much memory


def delta(epsilon: Fraction, shift: int, variance: Fraction) -> Real:
    """Returns the exact delta of discrete Gaussian noise between answers at most `shift` steps apart.

    >>> from dither.exact.balls import evaluate
    >>> round(float(evaluate(delta(Fraction(1), 1, Fraction("3.7306316348") ** 2), 128)), 9)
    1.0346e-05
    """
    law = GaussianLaw(variance)
    t = _edge(epsilon, shift, variance)

    def real() -> arb:
        return law.at_most(t) - exp(epsilon) * law.at_most(t - shift)

    return real


def _edge(epsilon: Fraction, shift: int, variance: Fraction) -> int:
    """Returns t, the last output whose ratio is e^epsilon or more."""
    return math.floor(Fraction(shift, 2) - epsilon * variance / shift)


@lru_cache(maxsize=256)
def for_shift(epsilon: Fraction, target: Fraction, shift: int) -> Fraction:
    """Returns the smallest variance (in steps squared) whose delta at `shift` steps is at most the target."""
    return _smallest(lambda v: hides(epsilon, target, shift, v), epsilon, target)


def hides(epsilon: Fraction, target: Fraction, shift: int, variance: Fraction) -> bool:
    """Returns whether noise of this variance certainly has a delta of at most the target at `shift` steps.

    >>> hides(Fraction(1), Fraction("1e-6"), 1, Fraction(18)), hides(Fraction(1), Fraction("1e-6"), 1, Fraction("17.8"))
    (True, False)
    """
    t = _edge(epsilon, shift, variance)
    if t > 0 and t * t >= _FAR * variance:
        return False  # both tails together are below 2 exp(-t^2 / 2v): delta is 1 to 87 digits
    # Far out, Pr[X <= t] <= exp(-t^2 / 2v) decides, and a sum would need too many digits.
    if t < 0 and t * t >= 2 * variance * _digits(target):
        return True
    return certainly_at_most(delta(epsilon, shift, variance), target)


@lru_cache(maxsize=64)
def _digits(target: Fraction) -> Fraction:
    """Returns -ln(target), rounded up."""
    return above(lambda: -ball(target).log())


def _smallest(holds: Callable[[Fraction], bool], epsilon: Fraction, target: Fraction) -> Fraction:
    # Searches the decade first, then the digits: few evaluations, each certified.
    if not holds(SEVEN.value(SEVEN.last)):
        raise too_wide(epsilon, target)
    decade = search(lambda d: holds(SEVEN.value(d * SEVEN.decade)), 0, HIGHEST - LOWEST)
    return SEVEN.value(search(lambda i: holds(SEVEN.value(i)), max(decade - 1, 0) * SEVEN.decade, decade * SEVEN.decade))


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
    noise: GaussianLaw = field(init=False, repr=False, compare=False)

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
        object.__setattr__(self, "noise", GaussianLaw(self.variance))  # refuses a scale out of range

    @classmethod
    def with_scale(cls, scale: Number, *, sensitivity: Sensitivity, grid: Number | None = None) -> Gaussian:
        """Builds it from the noise: scale is sigma in the answer's own unit, at the resulting rho."""
        return cls(sensitivity=sensitivity, grid=grid, scale=scale)

    def _variance(self) -> Fraction:
        """Returns the noise's parameter v, in steps squared."""
        if self.scale is not None:
            return (self.scale / (self.grid or 1)) ** 2
        squares = self.sensitivity.squares(self.grid)
        if self.rho is not None:
            return squares / (2 * self.rho)
        if self.epsilon is None or self.delta is None:
            raise ArgumentError("Gaussian needs epsilon with delta, or rho, or scale.", fix="give one of the three.")
        alike = self.sensitivity.separate(self.grid)
        if alike is None:
            return for_squares(self.epsilon, self.delta, squares, self.sensitivity.moving(self.grid))
        count, each = alike
        return for_shift(self.epsilon, self.delta, each) if count == 1 else for_alike(self.epsilon, self.delta, count, each)

    def release(self, exact: base.Answer) -> int | Fraction | NDArray[Any]:
        if not isinstance(exact, np.ndarray):
            return self.outcome(self._start(exact) + self.noise.draw())
        if self.grid is None:
            return base.add_noise(base.whole_array(exact, self.sensitivity), self.noise)
        return base.add_noise(exact, self.noise, self.grid, self.sensitivity)

    def _start(self, exact: Any) -> Any:
        return base.whole(exact) if self.grid is None else base.steps(exact, self.grid)

    def outcome(self, k: int) -> int | Fraction:
        return k if self.grid is None else base.value(k, self.grid)

    def loss(self) -> Loss:
        """Returns Approx if calibrated to epsilon and delta, else ZCDP."""
        if self.epsilon is not None and self.delta is not None:
            return Approx(self.epsilon, self.delta)
        return self.zcdp()

    def zcdp(self) -> ZCDP:
        """Returns rho by the variance itself, however it was calibrated: sigma for (epsilon, delta) also has a rho."""
        return ZCDP(self.sensitivity.squares(self.grid) / (2 * self.variance))

    def curve(self) -> Curve:
        """Returns the exact curve if the worst case is coordinates that move alike, else one that covers all vectors."""
        moves = self.sensitivity.separate(self.grid)
        return self.vector() if moves is None else Curve.of(DiscreteGaussian(moves[1], self.variance), moves[0])

    def vector(self) -> Curve:
        """Returns a curve that covers all vectors whose squared moves add up to as much; several have a closed form."""
        squares, moving = self.sensitivity.squares(self.grid), self.sensitivity.moving(self.grid)
        return Curve.of(GaussianVector(squares, self.variance, moving))

    def law(self, exact: base.Answer) -> Law:
        """Returns the law in steps: the release is `grid` times a value of this law."""
        by = base.single(exact) if self.grid is None else base.single_step(exact, self.grid)  # type: ignore[arg-type]
        return Moved(self.noise, by)

    def margin(self, confidence: Number) -> int | Fraction:
        """Returns the smallest multiple of the grid that bounds the noise of each coordinate with this confidence."""
        return self.outcome(self.noise.radius(confidence))

    @property
    def noise_scale(self) -> float:
        """Returns about the standard deviation of one coordinate's noise, for margins."""
        return math.sqrt(self.variance) * float(self.grid or 1)

    @property
    def noise_variance(self) -> float:
        """Returns about the variance of one coordinate's noise, for weights."""
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
        moved = show_rounded(math.sqrt(self.sensitivity.squares(self.grid)) * float(self.grid or 1))
        price = f"ρ = {show_rounded(float(self.zcdp().rho))}"
        price += ", calibrated on its own curve" if self.epsilon is not None else ""
        return (
            f"Gaussian, standard deviation {show_rounded(self.noise_scale)}, on {on}: one {who} changes them by "
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
