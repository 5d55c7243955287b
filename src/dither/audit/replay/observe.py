"""Everything an analyst could see of one run: how it ended, what it warned of, and the output in parts.

Real numbers are kept apart by the path that leads to them, because noise moves them; all the rest is facts, as text: error,
message, warnings, shape (types, lengths, keys), holes (NaN, infinite, None) and words (texts, truth values).

What no noise covers: facts and numbers that are the same whatever the noise, and differ between D and D′.

Such a thing tells D from D′ with certainty, so no epsilon holds. It is looked for with ordinary noise, none, much upwards,
much downwards, and confirmed with wild noise of up to 60 scales, each value on its own: what depends on noise at all, and
be it with a probability that no sampling would see, gives itself away. Draws of unknown law cannot be made wild; where a run
has such, the runs are counted and the figure is the Clopper-Pearson bound.
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dither.audit.blackbox.outputs import placeless
from dither.audit.replay.adapters import Adapter
from dither.audit.replay.tape import RAW, UNSEEN, Draw, Tape, TooManyDrawsError

_MOST = 400  # values of an output that are looked at one by one
_TEXT = 400
NO_END = "no end"


@dataclass(frozen=True)
class Seen:
    """One run. `facts` and `numbers` are what is compared; `draws` are what the run asked for."""

    facts: Mapping[str, str]
    numbers: Mapping[str, Fraction]
    draws: tuple[Draw, ...]

    @property
    def all(self) -> dict[str, str]:
        """Facts and numbers as one mapping, for what must not depend on data."""
        return {**self.facts, **{f"output{path}": str(float(value)) for path, value in self.numbers.items()}}


@dataclass(frozen=True)
class Side:
    """A function on one dataset. The dataset is made anew for every run: the function may write into it."""

    function: Callable[..., Any]
    adapter: Adapter
    data: Callable[[], Any]

    def run(self, tape: Tape) -> Seen:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                facts, found = read(self.adapter.run(self.function, self.data(), tape))
            except TooManyDrawsError as error:
                facts, found = {"outcome": NO_END, "message": str(error)}, {}
            except (Exception, SystemExit) as error:
                facts, found = {"outcome": f"raises {type(error).__name__}", "message": placeless(str(error))[:_TEXT]}, {}
        facts["warnings"] = "; ".join(sorted({f"{one.category.__name__}: {one.message}"[:_TEXT] for one in heard}))
        return Seen(facts, found, tuple(tape.draws))


def read(output: Any) -> tuple[dict[str, str], dict[str, Fraction]]:
    """Facts and numbers of an output.

    >>> read({"a": 1.5, "b": float("nan")})[0]["holes"]
    "['b'] is nan"
    """
    found: dict[str, Fraction] = {}
    holes: list[str] = []
    words: list[str] = []
    shape = _walk(output, "", found, holes, words)
    facts = {"outcome": "an output", "message": "", "shape": shape, "holes": ", ".join(holes), "words": ", ".join(words)}
    return facts, found


def _walk(value: Any, path: str, found: dict[str, Fraction], holes: list[str], words: list[str]) -> str:
    """Notes the leaves below `value` and gives its shape as text."""
    name = type(value).__name__
    parts = _parts(value)
    if parts is not None:
        inside = [f"{key}: {_walk(part, f'{path}[{key}]', found, holes, words)}" for key, part in parts[:_MOST]]
        size = f" of {len(parts)}" if len(parts) > _MOST else ""
        kind = f"{name} {value.dtype}{value.shape}" if isinstance(value, np.ndarray) else name
        return f"{kind}{size}({', '.join(inside)})"
    if isinstance(value, bool | np.bool_) or not _is_real(value):
        if value is None:
            holes.append(f"{path or 'output'} is None")
        else:
            words.append(f"{path or 'output'} = {placeless(str(value))[:_TEXT]}")
        return name
    number = _exactly(value)
    if number is None:
        holes.append(f"{path or 'output'} is {float(value)}")
    else:
        found[path] = number
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
    if isinstance(value, np.ndarray):  # an array without dimensions
        return bool(value.dtype.kind in "iuf")
    return isinstance(value, numbers.Real | Decimal | np.number) and not isinstance(value, complex | np.complexfloating)


def _exactly(value: Any) -> Fraction | None:
    """The number as it is, without rounding; None for NaN and the infinities."""
    if isinstance(value, int | Fraction | np.integer):
        return Fraction(int(value)) if not isinstance(value, Fraction) else value
    if isinstance(value, Decimal):
        return Fraction(value) if value.is_finite() else None
    real = float(value)
    return Fraction(real) if math.isfinite(real) else None


MODES = ("random", "zero", "high", "low")
WILD = 40
COUNTED = 300  # runs where a law is unknown; more for a larger epsilon, up to MOST_COUNTED
MOST_COUNTED = 20_000
ALPHA = 1e-9  # error of a counted figure
_FIRST = ("outcome", "message", "shape", "holes", "words", "warnings")


@dataclass(frozen=True)
class Found:
    """A difference: its kind (kept while it is made smaller), what it is, and the epsilon it shows at least."""

    kind: str
    event: str
    epsilon: float
    confidence: float = 1.0


@dataclass(frozen=True)
class Runs:
    """The four first runs on each side, under the same noise."""

    one: tuple[Seen, ...]
    two: tuple[Seen, ...]

    def draws(self, *kinds: str) -> bool:
        return any(draw.kind in kinds for seen in (*self.one, *self.two) for draw in seen.draws)


def first_runs(one: Side, two: Side, seed: int) -> Runs:
    return Runs(*(tuple(side.run(Tape(seed + place, mode)) for place, mode in enumerate(MODES)) for side in (one, two)))


def uncovered(one: Side, two: Side, runs: Runs, seed: int, claim: tuple[float, float]) -> Found | None:
    """The first steady difference, if there is one."""
    if runs.draws(UNSEEN) or not list(_steady(runs)):
        return None
    unknown = runs.draws(RAW)
    wild = [Tape(seed + len(MODES) + turn, "wild") for turn in range(WILD)]
    # Where a law is unknown, honest runs are counted too: as many as could tell at the claimed epsilon.
    count = counted(claim[0]) if unknown else 0
    tapes = wild + [Tape(seed + len(MODES) + WILD + turn) for turn in range(count)]
    again = [tuple(side.run(Tape(tape.seed, tape.mode)) for tape in tapes) for side in (one, two)]
    runs = Runs((*runs.one, *again[0]), (*runs.two, *again[1]))
    found = next(_steady(runs), None)
    if found is None or runs.draws(UNSEEN) or (runs.draws(RAW) and not unknown):
        return None
    if not unknown:
        return found
    least = ALPHA ** (1 / count)  # Clopper-Pearson: all of them on one side, none on the other
    if least <= claim[1]:
        return None
    return Found(found.kind, found.event, math.log((least - claim[1]) / (1 - least)), 1 - 2 * ALPHA)


def confirmed(one: Side, two: Side, found: Found, seed: int, epsilon: float) -> bool:
    """Whether a difference stays in many honest runs. Noise that the adapter does not see cannot be made wild: an answer
    that is true all but once in a thousand times looks steady in a few dozen runs, and keeps epsilon = 7.
    """
    if found.kind not in _FIRST and not found.kind.startswith("output"):
        return True  # it does not rest on being steady
    first = seed + len(MODES) + WILD + MOST_COUNTED
    tapes = range(first, first + counted(epsilon))
    left, right = ({side.run(Tape(tape)).all.get(found.kind) for tape in tapes} for side in (one, two))
    return left.isdisjoint(right) and 1 in (len(left), len(right))


def counted(epsilon: float) -> int:
    """As many runs as could tell at that epsilon."""
    return max(COUNTED, min(MOST_COUNTED, int(25 * math.exp(min(epsilon, 9.0)))))


def _steady(runs: Runs) -> Iterator[Found]:
    """Items that are constant on one side and never have that value on the other."""
    one, two = [seen.all for seen in runs.one], [seen.all for seen in runs.two]
    names = dict.fromkeys((*_FIRST, *(name for seen in (one[0], two[0]) for name in seen)))
    for name in names:
        left, right = {seen.get(name) for seen in one}, {seen.get(name) for seen in two}
        if left.isdisjoint(right) and 1 in (len(left), len(right)):
            if None in left | right and name not in _FIRST:
                continue  # a path that is missing: the shape or the holes tell it better
            yield Found(name, f"{name}: {_told(left)} on D, {_told(right)} on D′, whatever the noise", math.inf)


def _told(values: set[str | None]) -> str:
    if len(values) > 1:
        return "other values"
    text = str(next(iter(values)))
    return repr(text if len(text) <= 160 else f"{text[:150]}… ({len(text)} characters)")
