"""Recorded noise for code that is not ours: the same on D and on D′, and anything we like when we want to know what it does.

A tape is used for one run. Every draw has a place (its number in the run) and a stream of its own, so that a draw that needs
more dice on one side does not shift those after it. Modes, beside "random":

    zero, high, low     no noise; 60 scales up; 60 scales down
    wild                each value on its own between 60 scales down and 60 up: whatever depends on noise will show it

A draw `at` a location is a mechanism's whole release (location + noise). A tape that is `like` another run's draws gives the
values that were released there: frozen mechanisms, so that only what goes past them can still differ.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

LAPLACE, GEOMETRIC, GAUSSIAN, CHOICE = "laplace", "geometric", "gaussian", "choice"
UNIFORM, RAW, UNSEEN = "uniform", "raw", "unseen"
ADDITIVE = (LAPLACE, GEOMETRIC, GAUSSIAN)
FAR = 60.0
TOO_MANY = 3_000  # draws of one run; more is a loop that waits for a kind of noise it never gets
_WILD = (-FAR, -7.0, -1.0, 0.0, 1.0, 7.0, FAR)


class TooManyDrawsError(Exception):
    """A run that does not end: never shown to the audited code's caller."""


@dataclass(frozen=True)
class Draw:
    """One call for randomness. `noise` and `scales` are flat; `at` is None where the code adds the noise itself."""

    kind: str
    name: str
    scales: tuple[float, ...] = ()
    noise: tuple[float, ...] = ()
    at: tuple[Any, ...] | None = None
    given: Any = None
    chances: tuple[float, ...] = ()  # of a choice: natural logarithms, -inf for what cannot be chosen
    chosen: int = -1


@dataclass
class Tape:
    """Noise for one run; `moved` sets single values, `chosen` single choices, `redraw` gives raw draws new dice."""

    seed: int = 0
    mode: str = "random"
    moved: Mapping[tuple[int, int], float] = field(default_factory=dict)
    chosen: Mapping[int, int] = field(default_factory=dict)
    redraw: frozenset[int] = frozenset()
    like: Sequence[Draw] | None = None
    draws: list[Draw] = field(default_factory=list)

    def additive(self, kind: str, scale: Any, at: Any = None, size: Any = None, name: str = "") -> Any:
        """Noise of that scale, or location + noise; an array where scale, location or size say so."""
        shape, scales, where = _laid_out(scale, at, size)
        if any(value < 0 for value in scales):
            raise ValueError("scale < 0")
        place, dice = self._place()
        noise = [self._noise(kind, value, place, i, dice) for i, value in enumerate(scales)]
        frozen = self._frozen(kind, place, where)
        if where is None:
            values: list[Any] = list(noise)
        elif frozen is not None:
            values = list(frozen)
            noise = [_minus(value, here) for value, here in zip(values, where, strict=True)]
        else:
            values = [here + value for here, value in zip(where, noise, strict=True)]
        draw = Draw(kind, name or kind, tuple(scales), tuple(float(value) for value in noise), where, tuple(values))
        self.draws.append(draw)
        return values[0] if shape == () and size is None else np.array(values).reshape(shape)

    def choice(self, weights: Sequence[float], name: str = CHOICE) -> int:
        """A place among candidates whose chances are proportional to exp(weight)."""
        place, dice = self._place()
        chances = _chances(weights)
        picked = self._picked(place, chances, dice)
        self.draws.append(Draw(CHOICE, name, chances=chances, chosen=picked))
        return picked

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Any = None, name: str = "uniform") -> Any:
        """Between low and high. Code that makes its own noise of it is compared in all but the noise's scale."""
        _, dice = self._place()
        shape = () if size is None else tuple(np.atleast_1d(size))
        values = [low + (high - low) * self._unit(dice) for _ in range(math.prod(shape))]
        self.draws.append(Draw(UNIFORM, name))
        return values[0] if size is None else np.array(values).reshape(shape)

    def raw(self, make: Callable[[int], Any], name: str) -> Any:
        """Any other draw, made from a number to seed a generator with; nothing is known about its law."""
        _, dice = self._place()
        given = make(dice.getrandbits(60))
        self.draws.append(Draw(RAW, name))
        return given

    def unseen(self, name: str) -> None:
        """Notes a mechanism whose dice cannot be set: nothing can be concluded from the run."""
        self.draws.append(Draw(UNSEEN, name))

    # --- one draw ------------------------------------------------------------------------------------------------

    def _place(self) -> tuple[int, random.Random]:
        place = len(self.draws)
        if place >= TOO_MANY:
            raise TooManyDrawsError(f"more than {TOO_MANY} draws in one run")
        spin = self.seed * 2 + (place in self.redraw)
        return place, random.Random(spin * 1_000_003 + place)

    def _noise(self, kind: str, scale: float, place: int, index: int, dice: random.Random) -> float:
        unit = _UNIT[kind](dice, scale) if self.mode == "random" else self._times(dice) * scale
        value = self.moved.get((place, index), unit)
        if kind == GEOMETRIC:
            return round(value) if math.isfinite(value) else 0
        return value

    def _times(self, dice: random.Random) -> float:
        fixed = {"zero": 0.0, "high": FAR, "low": -FAR}
        return fixed[self.mode] if self.mode in fixed else dice.choice(_WILD) * (0.5 + dice.random() / 2)

    def _unit(self, dice: random.Random) -> float:
        fixed = {"zero": 0.5, "high": 1 - 2.0**-40, "low": 2.0**-40}
        if self.mode == "wild":
            return dice.choice((2.0**-40, dice.random(), 1 - 2.0**-40))
        return fixed.get(self.mode, dice.random())

    def _picked(self, place: int, chances: tuple[float, ...], dice: random.Random) -> int:
        possible = [i for i, value in enumerate(chances) if value > -math.inf]
        if place in self.chosen:
            return min(self.chosen[place], len(chances) - 1)
        if self.mode in ("high", "low"):
            return possible[-1 if self.mode == "high" else 0]
        if self.mode == "zero":
            return max(possible, key=lambda i: chances[i])
        if self.mode == "wild":
            return dice.choice(possible)
        return dice.choices(possible, [math.exp(chances[i]) for i in possible])[0]

    def _frozen(self, kind: str, place: int, where: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        if self.like is None or place >= len(self.like) or where is None:
            return None
        old = self.like[place]
        same = old.kind == kind and old.at is not None and len(old.at) == len(where)
        return tuple(old.given) if same else None


def _laid_out(scale: Any, at: Any, size: Any) -> tuple[tuple[int, ...], list[float], tuple[Any, ...] | None]:
    """Shape, scales and locations, by numpy's rules."""
    if size is None and isinstance(scale, int | float | Fraction) and (at is None or isinstance(at, int | float)):
        return (), [float(scale)], None if at is None else (at,)  # the usual case, and much faster
    shape = np.broadcast_shapes(np.shape(scale), np.shape(at), () if size is None else tuple(np.atleast_1d(size)))
    scales = [float(value) for value in np.broadcast_to(np.asarray(scale, dtype=np.float64), shape).ravel().tolist()]
    return shape, scales, None if at is None else tuple(np.broadcast_to(np.asarray(at), shape).ravel().tolist())


def _minus(value: Any, here: Any) -> float:
    try:
        return float(value - here)
    except OverflowError:
        return math.inf


def _chances(weights: Sequence[float]) -> tuple[float, ...]:
    values = [float(weight) for weight in weights]
    if not values or any(math.isnan(value) or value == math.inf for value in values) or max(values) == -math.inf:
        raise ValueError("a choice needs candidates whose weights are numbers")
    top = max(values)
    total = top + math.log(math.fsum(math.exp(value - top) for value in values))
    return tuple(value - total for value in values)


def _two_sided(dice: random.Random, scale: float) -> float:
    if not math.isfinite(scale):
        return scale
    return math.floor(dice.expovariate(1.0) * scale) - math.floor(dice.expovariate(1.0) * scale)


_UNIT: dict[str, Callable[[random.Random, float], float]] = {
    LAPLACE: lambda dice, scale: (dice.expovariate(1.0) - dice.expovariate(1.0)) * scale,
    GAUSSIAN: lambda dice, scale: dice.gauss(0.0, 1.0) * scale,
    GEOMETRIC: _two_sided,
}


@contextmanager
def patched(changes: Sequence[tuple[Any, str, Any]]) -> Iterator[None]:
    """Each `owner.name` is the value beside it inside the block. For one thread at a time."""
    old = [(owner, name, vars(owner)[name]) for owner, name, _ in changes]
    try:
        for owner, name, value in changes:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in old:
            setattr(owner, name, value)
