"""Everything an analyst could see of one run: how it ended, what it warned of, and the output in parts.

Real numbers are kept apart by the path that leads to them, because noise moves them; all the rest is facts, as text: error,
message, warnings, shape (types, lengths, keys), holes (NaN, infinite, None) and words (texts, truth values).
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dither.audit.adapters import Adapter, Draw, Tape
from dither.audit.adapters.tape import TooManyDrawsError
from dither.audit.outputs import placeless

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
