"""The price of metric privacy: epsilon per unit of distance.

    |log Pr[M(x) = o] - log Pr[M(y) = o]| <= epsilon * d(x, y)        for all x, y and every output o

It says nothing of adding or removing a person: it protects *where* a person is, and the less the farther away the alternative.
So it does not add to the price of a question. Releases about the same person add up: epsilon per unit, unit by unit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, SupportsIndex

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.exact import balls
from dither.exact.numbers import Number, items, not_negative, positive, show, whole
from dither.privacy.proof import Verified

_BITS = (128, 512, 2048)


@dataclass(frozen=True)
class PerDistance:
    """Epsilon for each unit of distance.

    >>> price = PerDistance("1/100", "metre")
    >>> print(price + price, "|", price.between(300))
    ε = 0.02 per metre | 3
    """

    epsilon: Fraction
    unit: str = "step"

    def __init__(self, epsilon: Number, unit: str = "step") -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "unit", _unit(unit))

    def between(self, distance: Number) -> Fraction:
        """Returns the epsilon between two places this far apart."""
        return self.epsilon * not_negative(distance, "distance")

    def repeat(self, n: SupportsIndex) -> PerDistance:
        """Returns the price of n such releases about the same person."""
        return PerDistance(self.epsilon * whole(n, "n", least=1), self.unit)

    def __add__(self, other: object) -> PerDistance:
        if not isinstance(other, PerDistance):
            raise ArgumentError(
                f"A price per {self.unit} adds up with prices per {self.unit} only, and the other is a {type(other).__name__}.",
                fix="keep a budget of its own for places: it protects where a person is, not whether the person is there.",
            )
        if other.unit != self.unit:
            raise ArgumentError(
                f"A price per {self.unit} does not add up with one per {other.unit}.", fix="state both in the same unit."
            )
        return PerDistance(self.epsilon + other.epsilon, self.unit)

    def __str__(self) -> str:
        return f"ε = {show(self.epsilon)} per {self.unit}"


def _unit(unit: str) -> str:
    if not isinstance(unit, str) or not unit.strip():
        raise ArgumentError("unit must be the name of a unit of distance.", fix='give a name, such as "metre".')
    return unit


class Ratio(NamedTuple):
    """The largest log ratio between two laws, and the output that reaches it."""

    value: arb
    output: Any


class Metric(Protocol):
    """A mechanism whose price is per unit of distance."""

    def claim(self, x: Any, y: Any) -> balls.Real: ...

    def ratio(self, x: Any, y: Any) -> Ratio: ...


def verify(mechanism: Metric, pairs: Iterable[tuple[Any, Any]]) -> Verified:
    """Checks on each pair that the log ratio is at most epsilon times the distance, in balls.

    A pair that touches its claim to 2048 bits counts as a tie, and `slack` bounds by how much it may exceed the claim.
    """
    fix = "give a list of pairs of places, as in [((0, 0), (3, 4))]."
    listed = items(pairs, "pairs", fix)
    if not listed or not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in listed):
        raise ArgumentError("pairs must hold at least one pair of places, and nothing else.", fix=fix)
    found = [_check(mechanism, *pair) for pair in listed]
    return next((each for each in found if not each.holds), max(found, key=lambda each: each.worst))


def _check(mechanism: Metric, x: Any, y: Any) -> Verified:
    for bits in _BITS:
        with balls.working(bits):
            claim, ratio = mechanism.claim(x, y)(), mechanism.ratio(x, y)
            low, high = balls.lower(claim), balls.upper(ratio.value)
            slack = max(high - low, Fraction(0))
            decided = ratio.value <= claim or ratio.value > claim
            holds = not ratio.value > claim
        if decided or slack == 0:
            break
    output = ratio.output if isinstance(ratio.output, int) else None
    return Verified(high, balls.above(mechanism.claim(x, y)), holds, (x, y), output, slack if holds else Fraction(0))


def floats(values: Any, name: str, fix: str) -> NDArray[np.float64]:
    """Reads numbers as floats. Refuses by type; a whole number beyond all floats counts as infinite."""
    if isinstance(values, int) and not isinstance(values, bool):
        return np.asarray(_float(values))
    try:
        given = np.asarray(values, dtype=object if isinstance(values, (list, tuple)) else None)
        if given.dtype == object:
            given = np.vectorize(_float, otypes=[np.float64])(given) if given.size else given.astype(np.float64)
        if given.dtype.kind not in "iuf":
            raise TypeError
        return given.astype(np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must be a number or an array of numbers.", fix=fix) from None


def _float(value: Any) -> float:
    if isinstance(value, (bool, str, bytes)):
        raise TypeError
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def coordinates(place: Any, name: str) -> tuple[Any, Any]:
    """Reads a pair of coordinates. Refuses by type and length, never by value."""
    if isinstance(place, str) or not isinstance(place, Sequence) or len(place) != 2:
        raise ArgumentError(f"{name} must be a pair of coordinates.", fix="give two numbers, such as (3, 4).")
    return place[0], place[1]
