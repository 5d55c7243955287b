"""Tapes: recorded noise for the code under audit, the same on D and on D′, and set at will to see what it does.

A tape serves one run. Every draw has a place (its number in the run) and a random stream of its own, so that a draw that needs
more random numbers on one side does not shift those after it. Modes besides "random":

    zero, high, low     no noise; 60 scales up; 60 scales down
    wild                each value on its own between 60 scales down and 60 up, to show any dependence on noise

A draw `at` a location is the whole release of a mechanism (location + noise). A tape that is `like` another run's draws returns
the values released there. With mechanisms frozen in this way, only what bypasses them can still differ.
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
TOO_MANY = 3_000  # draws of one run; more is a loop that waits for noise of some kind
_WILD = (-FAR, -7.0, -1.0, 0.0, 1.0, 7.0, FAR)


class TooManyDrawsError(Exception):
    """A run that does not end. Observed as an outcome, never raised to the caller of the audit."""


@dataclass(frozen=True)
class Draw:
    """One call for randomness. `noise` and `scales` are flat; `at` is None if the code adds the noise itself."""

    kind: str
    name: str
    scales: tuple[float, ...] = ()
    noise: tuple[float, ...] = ()
    at: tuple[Any, ...] | None = None
    released: Any = None
    chances: tuple[float, ...] = ()  # of a choice: log probabilities, -inf for impossible candidates
    chosen: int = -1


@dataclass
class Tape:
    """Noise for one run. `moved` sets single values, `chosen` sets single choices, `redraw` draws raw values anew."""

    seed: int = 0
    mode: str = "random"
    moved: Mapping[tuple[int, int], float] = field(default_factory=dict)
    chosen: Mapping[int, int] = field(default_factory=dict)
    redraw: frozenset[int] = frozenset()
    like: Sequence[Draw] | None = None
    draws: list[Draw] = field(default_factory=list)

    def additive(self, kind: str, scale: Any, at: Any = None, size: Any = None, name: str = "") -> Any:
        """Returns noise of that scale, or location + noise; an array if scale, location or size is one."""
        shape, scales, where = _broadcast(scale, at, size)
        if any(value < 0 for value in scales):
            raise ValueError("scale < 0")
        place, rng = self._place()
        noise = [self._noise(kind, value, place, i, rng) for i, value in enumerate(scales)]
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
        """Returns the place of a candidate, with probability proportional to exp(weight)."""
        place, rng = self._place()
        chances = _chances(weights)
        picked = self._pick(place, chances, rng)
        self.draws.append(Draw(CHOICE, name, chances=chances, chosen=picked))
        return picked

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Any = None, name: str = "uniform") -> Any:
        """Returns values between low and high. The scale of noise that code makes from them is not compared."""
        _, rng = self._place()
        shape = () if size is None else tuple(np.atleast_1d(size))
        values = [low + (high - low) * self._unit(rng) for _ in range(math.prod(shape))]
        self.draws.append(Draw(UNIFORM, name))
        return values[0] if size is None else np.array(values).reshape(shape)

    def raw(self, make: Callable[[int], Any], name: str) -> Any:
        """Returns any other draw, made by `make(seed)`. Its law is unknown."""
        _, rng = self._place()
        value = make(rng.getrandbits(60))
        self.draws.append(Draw(RAW, name))
        return value

    def unseen(self, name: str) -> None:
        """Records a mechanism whose noise cannot be set: nothing can be concluded from the run."""
        self.draws.append(Draw(UNSEEN, name))

    # --- one draw ------------------------------------------------------------------------------------------------

    def _place(self) -> tuple[int, random.Random]:
        place = len(self.draws)
        if place >= TOO_MANY:
            raise TooManyDrawsError(f"more than {TOO_MANY} draws in one run")
        stream = self.seed * 2 + (place in self.redraw)
        return place, random.Random(stream * 1_000_003 + place)

    def _noise(self, kind: str, scale: float, place: int, index: int, rng: random.Random) -> float:
        drawn = _NOISE[kind](rng, scale) if self.mode == "random" else self._scales(rng) * scale
        value = self.moved.get((place, index), drawn)
        if kind == GEOMETRIC:
            return round(value) if math.isfinite(value) else 0
        return value

    def _scales(self, rng: random.Random) -> float:
        fixed = {"zero": 0.0, "high": FAR, "low": -FAR}
        return fixed[self.mode] if self.mode in fixed else rng.choice(_WILD) * (0.5 + rng.random() / 2)

    def _unit(self, rng: random.Random) -> float:
        fixed = {"zero": 0.5, "high": 1 - 2.0**-40, "low": 2.0**-40}
        if self.mode == "wild":
            return rng.choice((2.0**-40, rng.random(), 1 - 2.0**-40))
        return fixed.get(self.mode, rng.random())

    def _pick(self, place: int, chances: tuple[float, ...], rng: random.Random) -> int:
        possible = [i for i, value in enumerate(chances) if value > -math.inf]
        if place in self.chosen:
            return min(self.chosen[place], len(chances) - 1)
        if self.mode in ("high", "low"):
            return possible[-1 if self.mode == "high" else 0]
        if self.mode == "zero":
            return max(possible, key=lambda i: chances[i])
        if self.mode == "wild":
            return rng.choice(possible)
        return rng.choices(possible, [math.exp(chances[i]) for i in possible])[0]

    def _frozen(self, kind: str, place: int, where: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        if self.like is None or place >= len(self.like) or where is None:
            return None
        old = self.like[place]
        same = old.kind == kind and old.at is not None and len(old.at) == len(where)
        return tuple(old.released) if same else None


def _broadcast(scale: Any, at: Any, size: Any) -> tuple[tuple[int, ...], list[float], tuple[Any, ...] | None]:
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


def _two_sided(rng: random.Random, scale: float) -> float:
    if not math.isfinite(scale):
        return scale
    return math.floor(rng.expovariate(1.0) * scale) - math.floor(rng.expovariate(1.0) * scale)


_NOISE: dict[str, Callable[[random.Random, float], float]] = {
    LAPLACE: lambda rng, scale: (rng.expovariate(1.0) - rng.expovariate(1.0)) * scale,
    GAUSSIAN: lambda rng, scale: rng.gauss(0.0, 1.0) * scale,
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
