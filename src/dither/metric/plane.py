"""A place in the plane, or any answer of two numbers, with noise whose density falls with distance.

    Pr[release = o] = e^(-epsilon * |o - x|) / Z        for all points o of the lattice step * (whole, whole)

Why it is private: by the triangle inequality |o - y| - |o - x| <= |x - y|, so the log ratio at any output is at most
epsilon * |x - y|. All points of the lattice are possible outputs for every x, so Z is the same number for all of them: nothing
else moves. On a finite region Z would depend on x; there use `MetricExponential`, which has half the weight for the same price.
Clamping the output to a region is post-processing, and free.

Snapping: a place is first moved to the nearest point of the lattice, by at most step / sqrt(2). The guarantee is for snapped
places, so between true places at distance d it is epsilon * (d + sqrt(2) * step).

In the limit of small steps the noise has the density epsilon^2 / (2 pi) * e^(-epsilon r): its length has mean 2 / epsilon and
exceeds r with probability (1 + epsilon r) e^(-epsilon r).
Reference: Andres, Bordenabe, Chatzikokolakis and Palamidessi, CCS 2013.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.exact import balls
from dither.exact.laws.base import Integers, add
from dither.exact.numbers import Number, between, positive, show_percent, whole
from dither.mechanisms import base
from dither.metric import price
from dither.metric.lattice import Lattice
from dither.metric.price import PerDistance, Ratio, coordinates, floats
from dither.plots import plane_picture
from dither.privacy.proof import Verified

Corner = tuple[Number, Number]
Floats = NDArray[np.float64]
_FARTHEST = 2.0**52  # steps, in an array of floats
_RATES = Fraction(1, 10**9), Fraction(1000)


@dataclass(frozen=True)
class PlanarLaplace:
    """Hides a place among the places near it.

    Guarantee: epsilon times the distance, between any two places of the lattice (see the price of snapping above).
    Relies on: one release per person, or prices added up. `region`: two corners, to which places and outputs are clamped.

    >>> places = PlanarLaplace(epsilon="1/100", step=10, unit="metre")
    >>> print(places.loss(), "|", round(places.margin("0.95")), "metres")
    ε = 0.01 per metre | 481 metres
    """

    epsilon: Fraction
    step: Fraction
    unit: str
    region: tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]] | None
    noise: Lattice = field(repr=False, compare=False)

    def __init__(
        self, *, epsilon: Number, step: Number = 1, unit: str = "step", region: tuple[Corner, Corner] | None = None
    ) -> None:
        stated = PerDistance(epsilon, unit)
        length = positive(step, "step")
        rate = stated.epsilon * length
        if not _RATES[0] <= rate <= _RATES[1]:
            raise ArgumentError(
                "epsilon * step must be between 10^-9 and 1000, and it is not.",
                fix="choose a step of about 1 / (10 * epsilon): finer ones cost time, coarser ones accuracy.",
            )
        object.__setattr__(self, "epsilon", stated.epsilon)
        object.__setattr__(self, "step", length)
        object.__setattr__(self, "unit", stated.unit)
        object.__setattr__(self, "region", None if region is None else _region(region, length))
        object.__setattr__(self, "noise", Lattice(rate))

    @classmethod
    def for_answer(cls, *, epsilon: Number, sensitivity: Number, step: Number) -> PlanarLaplace:
        """Returns noise for an answer of two numbers that one unit moves by at most `sensitivity`, at epsilon in all.

        Rounding the answer to steps may add sqrt(2) * step to the move, which is counted.
        """
        moved = positive(sensitivity, "sensitivity")
        length = positive(step, "step")
        farthest = balls.above(lambda: balls.ball(moved) + balls.ball(2).sqrt() * balls.ball(length))
        return cls(epsilon=positive(epsilon, "epsilon") / farthest, step=length, unit="unit of the answer")

    def release(self, exact: Any) -> Any:
        """Returns a noisy place for a pair of numbers, or an array of them (one row each) for an array of places.

        A number that is not finite counts as base.steps says: NaN as 0, an infinity as the end of the region, or very far.
        """
        if not isinstance(exact, np.ndarray):
            x, y = coordinates(exact, "exact")
            noisy = self._noisy(np.array([[self._steps(x), self._steps(y)]], dtype=np.int64))[0]
            return base.value(int(noisy[0]), self.step), base.value(int(noisy[1]), self.step)
        base.refuse_masked(exact, "exact")
        if exact.ndim != 2 or exact.shape[1] != 2:
            raise ArgumentError(
                "exact must have one row of two coordinates for each place.", fix="give an array of shape (n, 2)."
            )
        snapped = np.stack([self._column(exact[:, axis]) for axis in (0, 1)], axis=1)
        return self._values(self._noisy(snapped))

    def _values(self, steps: Integers) -> NDArray[Any]:
        if self.step.denominator == 1 and self.step < 1 << 20:  # whole numbers, in a type that the step alone decides
            most = (1 << 62) // int(self.step)
            return np.clip(steps, -most, most) * np.int64(int(self.step))
        return np.stack([base.values(steps[:, axis], self.step) for axis in (0, 1)], axis=1)

    def _steps(self, number: Any) -> int:
        steps = base.steps(number, self.step)
        if not isinstance(steps, int):
            raise ArgumentError("exact must be a pair of numbers.", fix="give two numbers, such as (3, 4).")
        return steps

    def _column(self, numbers: NDArray[Any]) -> Integers:
        if numbers.dtype.kind != "f" or numbers.dtype.itemsize > 8:
            return np.asarray(base.steps(numbers, self.step), dtype=np.int64)
        # In floats: each place is snapped by itself, and the guarantee is for snapped places.
        with np.errstate(over="ignore", invalid="ignore"):
            nearest = np.floor(numbers.astype(np.float64) / float(self.step) + 0.5)
        steps: Integers = np.clip(np.nan_to_num(nearest, nan=0.0), -_FARTHEST, _FARTHEST).astype(np.int64)
        return steps

    def _noisy(self, snapped: Integers) -> Integers:
        offsets = self.noise.draw(len(snapped))
        return self._clamp(add(self._clamp(snapped).ravel(), offsets.ravel()).reshape(-1, 2))

    def _clamp(self, places: Integers) -> Integers:
        if self.region is None:
            return places
        low, high = ([int(end / self.step) for end in corner] for corner in self.region)
        return np.clip(places, low, high)

    def snapped(self, place: Any) -> tuple[int, int]:
        """Returns the point of the lattice that stands for a place, in steps."""
        x, y = coordinates(place, "place")
        clamped = self._clamp(np.array([[self._steps(x), self._steps(y)]], dtype=np.int64))[0]
        return int(clamped[0]), int(clamped[1])

    def loss(self) -> PerDistance:
        """Returns the price: epsilon per unit of distance."""
        return PerDistance(self.epsilon, self.unit)

    @property
    def snapping(self) -> Fraction:
        """Returns what snapping adds to the distance of two true places, at most: sqrt(2) * step, rounded up."""
        return balls.above(lambda: balls.ball(2).sqrt() * balls.ball(self.step))

    def between(self, x: Any, y: Any) -> Fraction:
        """Returns the epsilon between two places, as they are snapped; rounded up."""
        return balls.above(self.claim(x, y))

    def claim(self, x: Any, y: Any) -> balls.Real:
        """Returns epsilon times the distance of two places, as they are snapped."""
        (a, b), (c, d) = self.snapped(x), self.snapped(y)
        return lambda: balls.ball(self.noise.rate) * arb((a - c) ** 2 + (b - d) ** 2).sqrt()

    def ratio(self, x: Any, y: Any) -> Ratio:
        """Returns the largest log ratio over all outputs. It is reached at x itself: no output is nearer to x than y is."""
        near, far = self.snapped(x), self.snapped(y)
        return Ratio(self.log_ratio(near, near, far), near)

    def log_ratio(self, output: tuple[int, int], near: tuple[int, int], far: tuple[int, int]) -> arb:
        """Returns log Pr[output | near] - log Pr[output | far], all in steps: the normaliser is common to both."""
        lengths = [arb((output[0] - each[0]) ** 2 + (output[1] - each[1]) ** 2).sqrt() for each in (far, near)]
        return balls.ball(self.noise.rate) * (lengths[0] - lengths[1])

    def verify_pairs(self, pairs: Iterable[tuple[Any, Any]]) -> Verified:
        """Checks the price on pairs of places, certified. `dt.verify` calls this."""
        return price.verify(self, pairs)

    def probability(self, exact: Any, output: Any) -> arb:
        """Returns Pr[release = output], as a ball. Without a region: clamped outputs add up those beyond."""
        if self.region is not None:
            raise ArgumentError("Probabilities are those of the lattice, before clamping.", fix="leave region out.")
        (a, b), (c, d) = self.snapped(exact), self.snapped(output)
        with balls.working(128):
            return self.noise.weight(a - c, b - d) / self.noise.normaliser()

    def plot(self, path: str | PathLike[str], draws: int = 2000) -> Path:
        """Draws the density, and released places around one true place. Needs the extra `plots`."""
        found = self.release(np.zeros((whole(draws, "draws", least=1), 2), dtype=np.int64)).astype(np.float64)
        radii = [(show_percent(Fraction(each)), self.margin(each)) for each in ("0.5", "0.95")]
        return plane_picture(found, radii, self.density, f"{self.loss()}", self.unit, path)

    def density(self, distance: float) -> float:
        """Returns the density of the noise at this distance, in the limit of small steps."""
        rate = float(self.epsilon)
        return rate**2 / (2 * math.pi) * math.exp(-rate * distance)

    def margin(self, confidence: Number) -> float:
        """Returns how far the released place may be from the true one, snapping included."""
        sure = between(confidence, "confidence", 0, 1, open_low=True, open_high=True)
        return (self.noise.radius(sure) + math.sqrt(0.5)) * float(self.step)

    def remap(self, output: Any, places: NDArray[Any] | Sequence[Any], prior: Sequence[Number] | Floats) -> int:
        """Returns the index of the place with the smallest expected distance, given the output and a public prior.

        Post-processing, in floats: it uses the released place and public numbers only.
        """
        points = floats(places, "places", fix="give an array of shape (n, 2).")
        weights = floats(prior, "prior", fix="give one weight for each place.")
        if points.ndim != 2 or points.shape[1] != 2 or weights.shape != points.shape[:1] or not len(points):
            raise ArgumentError(
                "places and prior must have one row and one weight for each place.", fix="give as many weights as places."
            )
        if not (np.isfinite(points).all() and np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
            raise ArgumentError(
                "prior must hold weights of at least 0, not all 0, and places finite numbers.", fix="check both."
            )
        x, y = floats(coordinates(output, "output"), "output", fix="give a released place.")
        far = np.hypot(points[:, 0] - x, points[:, 1] - y)
        posterior = weights * np.exp(-float(self.epsilon) * (far - far.min()))
        apart = np.hypot(points[:, None, 0] - points[None, :, 0], points[:, None, 1] - points[None, :, 1])
        return int(np.argmin(apart @ posterior))


def _region(region: tuple[Corner, Corner], step: Fraction) -> tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]:
    """Returns the corners of a region, moved inwards to the lattice."""
    low, high = (coordinates(corner, "region") for corner in coordinates(region, "region"))
    ends = [[base.single_step(number, step) * step for number in corner] for corner in (low, high)]
    if not (ends[0][0] <= ends[1][0] and ends[0][1] <= ends[1][1]):
        raise ArgumentError("region must be its lower and its upper corner.", fix="give ((x, y) of one, (x, y) of the other).")
    return (ends[0][0], ends[0][1]), (ends[1][0], ends[1][1])
