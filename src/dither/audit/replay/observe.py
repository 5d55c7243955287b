"""Observes one run as an analyst could, and finds what differs between D and D′ whatever the noise.

Numbers are kept by the path that leads to them, because noise moves them. All the rest is facts, as text: error, message,
warnings, shape (types, lengths, keys), holes (NaN, infinite, None) and words (texts, truth values).

A fact or number that never varies with the noise and differs between D and D′ tells them apart with certainty, so no epsilon
holds. Four first runs look for one: ordinary noise, none, much upwards, much downwards. Runs with wild noise, up to 60 scales
for each value on its own, confirm it: they show any dependence on noise, even one too unlikely for sampling. Draws of unknown
law cannot be made wild. Where a run has such draws, ordinary runs are counted and epsilon is the Clopper-Pearson bound.
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dither.audit.blackbox.outputs import without_addresses
from dither.audit.replay.adapters import Adapter
from dither.audit.replay.tape import RAW, UNSEEN, Draw, Tape, TooManyDrawsError

_MOST = 400  # values of an output that are read one by one
_TEXT = 400
NO_END = "no end"


@dataclass(frozen=True)
class Observation:
    """One run: its facts, its numbers, and the draws it asked for."""

    facts: Mapping[str, str]
    numbers: Mapping[str, Fraction]
    draws: tuple[Draw, ...]

    @property
    def all(self) -> dict[str, str]:
        """Facts and numbers in one mapping, as text."""
        return {**self.facts, **{f"output{path}": str(float(value)) for path, value in self.numbers.items()}}


@dataclass(frozen=True)
class Side:
    """A function on one dataset. Every run gets a new copy of the dataset, because the function may write into it."""

    function: Callable[..., Any]
    adapter: Adapter
    data: Callable[[], Any]

    def run(self, tape: Tape) -> Observation:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                facts, values = read(self.adapter.run(self.function, self.data(), tape))
            except TooManyDrawsError as error:
                facts, values = {"outcome": NO_END, "message": str(error)}, {}
            except (Exception, SystemExit) as error:
                message = without_addresses(str(error))[:_TEXT]
                facts, values = {"outcome": f"raises {type(error).__name__}", "message": message}, {}
        facts["warnings"] = "; ".join(sorted({f"{one.category.__name__}: {one.message}"[:_TEXT] for one in caught}))
        return Observation(facts, values, tuple(tape.draws))


def read(output: Any) -> tuple[dict[str, str], dict[str, Fraction]]:
    """Splits an output into facts and numbers.

    >>> read({"a": 1.5, "b": float("nan")})[0]["holes"]
    "['b'] is nan"
    """
    values: dict[str, Fraction] = {}
    holes: list[str] = []
    words: list[str] = []
    shape = _walk(output, "", values, holes, words)
    facts = {"outcome": "an output", "message": "", "shape": shape, "holes": ", ".join(holes), "words": ", ".join(words)}
    return facts, values


def _walk(value: Any, path: str, values: dict[str, Fraction], holes: list[str], words: list[str]) -> str:
    """Adds the leaves below `value` to the three collections and returns its shape as text."""
    name = type(value).__name__
    parts = _parts(value)
    if parts is not None:
        inside = [f"{key}: {_walk(part, f'{path}[{key}]', values, holes, words)}" for key, part in parts[:_MOST]]
        size = f" of {len(parts)}" if len(parts) > _MOST else ""
        kind = f"{name} {value.dtype}{value.shape}" if isinstance(value, np.ndarray) else name
        return f"{kind}{size}({', '.join(inside)})"
    if isinstance(value, bool | np.bool_) or not _is_real(value):
        if value is None:
            holes.append(f"{path or 'output'} is None")
        else:
            words.append(f"{path or 'output'} = {without_addresses(str(value))[:_TEXT]}")
        return name
    number = _as_fraction(value)
    if number is None:
        holes.append(f"{path or 'output'} is {float(value)}")
    else:
        values[path] = number
    return name


def _parts(value: Any) -> list[tuple[str, Any]] | None:
    if isinstance(value, Mapping):
        return [(repr(key), value[key]) for key in value]
    if isinstance(value, AbstractSet):
        return [(repr(key), key) for key in sorted(value, key=repr)]
    if isinstance(value, np.ndarray) and value.ndim:
        return [(str(place), part) for place, part in enumerate(value)]
    if isinstance(value, list | tuple):
        return [(str(place), part) for place, part in enumerate(value)]
    if hasattr(value, "to_pydict") or hasattr(value, "to_dict"):
        return _parts(value.to_pydict() if hasattr(value, "to_pydict") else value.to_dict())
    return None


def _is_real(value: Any) -> bool:
    if isinstance(value, np.ndarray):  # without dimensions
        return bool(value.dtype.kind in "iuf")
    return isinstance(value, numbers.Real | Decimal | np.number) and not isinstance(value, complex | np.complexfloating)


def _as_fraction(value: Any) -> Fraction | None:
    """Converts a number without rounding; None for NaN and the infinities."""
    if isinstance(value, int | Fraction | np.integer):
        return Fraction(int(value)) if not isinstance(value, Fraction) else value
    if isinstance(value, Decimal):
        return Fraction(value) if value.is_finite() else None
    real = float(value)
    return Fraction(real) if math.isfinite(real) else None


MODES = ("random", "zero", "high", "low")
WILD = 40
COUNTED = 300  # runs if a law is unknown; more for a larger epsilon, up to MOST_COUNTED
MOST_COUNTED = 20_000
ALPHA = 1e-9  # error of an epsilon from counted runs
_FIRST = ("outcome", "message", "shape", "holes", "words", "warnings")


@dataclass(frozen=True)
class Difference:
    """What tells D from D′: its kind, a description, and a lower bound on epsilon. Shrinking keeps the kind."""

    kind: str
    event: str
    epsilon: float
    confidence: float = 1.0


@dataclass(frozen=True)
class FirstRuns:
    """FirstRuns on each side under the same noise, the first with ordinary noise."""

    one: tuple[Observation, ...]
    two: tuple[Observation, ...]

    def have(self, kind: str) -> bool:
        return any(draw.kind == kind for run in (*self.one, *self.two) for draw in run.draws)


def first_runs(one: Side, two: Side, seed: int) -> FirstRuns:
    return FirstRuns(*(tuple(side.run(Tape(seed + place, mode)) for place, mode in enumerate(MODES)) for side in (one, two)))


def find_difference(one: Side, two: Side, runs: FirstRuns, seed: int, claim: tuple[float, float]) -> Difference | None:
    """Returns the first difference that no noise covers, if there is one."""
    if runs.have(UNSEEN) or not list(_differences(runs)):
        return None
    unknown = runs.have(RAW)
    modes = ["wild"] * WILD + ["random"] * (runs_needed(claim[0]) if unknown else 0)
    more = [tuple(side.run(Tape(seed + len(MODES) + turn, mode)) for turn, mode in enumerate(modes)) for side in (one, two)]
    runs = FirstRuns((*runs.one, *more[0]), (*runs.two, *more[1]))
    difference = next(_differences(runs), None)
    if difference is None or runs.have(UNSEEN) or (runs.have(RAW) and not unknown):
        return None
    if not unknown:
        return difference
    least = ALPHA ** (1 / (len(modes) - WILD))  # Clopper-Pearson: all of them on one side, none on the other
    if least <= claim[1]:
        return None
    return replace(difference, epsilon=math.log((least - claim[1]) / (1 - least)), confidence=1 - 2 * ALPHA)


def is_confirmed(one: Side, two: Side, difference: Difference, seed: int, epsilon: float) -> bool:
    """Tells whether a difference stays in many ordinary runs.

    Noise that the adapter does not see cannot be made wild. An answer that is true all but once in a thousand runs looks
    constant in a few dozen, and is private at epsilon = 7.
    """
    if difference.kind not in _FIRST and not difference.kind.startswith("output"):
        return True  # it does not rest on a constant value
    first = seed + len(MODES) + WILD + MOST_COUNTED
    seeds = range(first, first + runs_needed(epsilon))
    left, right = ({side.run(Tape(each)).all.get(difference.kind) for each in seeds} for side in (one, two))
    return _tells_apart(left, right)


def runs_needed(epsilon: float) -> int:
    """Returns how many runs can refute that epsilon."""
    return max(COUNTED, min(MOST_COUNTED, int(25 * math.exp(min(epsilon, 9.0)))))


def _tells_apart(left: set[str | None], right: set[str | None]) -> bool:
    """Tells whether a value is constant on one side and never occurs on the other."""
    return left.isdisjoint(right) and 1 in (len(left), len(right))


def _differences(runs: FirstRuns) -> Iterator[Difference]:
    """Yields the facts and numbers that tell the two sides apart in all runs."""
    one, two = [run.all for run in runs.one], [run.all for run in runs.two]
    for name in dict.fromkeys((*_FIRST, *one[0], *two[0])):
        left, right = {items.get(name) for items in one}, {items.get(name) for items in two}
        missing = None in left | right and name not in _FIRST  # shape or holes describe a missing path better
        if _tells_apart(left, right) and not missing:
            event = f"{name}: {_show_values(left)} on D, {_show_values(right)} on D′, whatever the noise"
            yield Difference(name, event, math.inf)


def _show_values(values: set[str | None]) -> str:
    if len(values) > 1:
        return "other values"
    text = str(next(iter(values)))
    return repr(text if len(text) <= 160 else f"{text[:150]}… ({len(text)} characters)")
