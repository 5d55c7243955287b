"""Turns outputs of any kind into columns of numbers, so that one search for events serves all of them.

Every output becomes a *kind* ("a number", "2 values", "raises ValueError", "keys a, b") and a row of numbers (NaN for a missing
value). All other columns are computed from these on request, so that a large fresh sample costs only the columns of the
events under test. A column is named by a tuple such as ("value", 0) or ("grain", 0).
"""

from __future__ import annotations

import hashlib
import math
import numbers
import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Key = tuple[Any, ...]
_WIDEST = 48  # values of each output that get a column; the rest is not read
_PAIRED = 4  # values with a column for every pairwise difference


@dataclass(frozen=True)
class Raised:
    """An error in place of an output. Only its type counts, not its text."""

    error: str


def collect(raw: Any) -> Outputs:
    """Turns raw outputs into rows and kinds; takes an array of numbers as it is."""
    if isinstance(raw, np.ndarray) and raw.dtype != object and raw.ndim in (1, 2) and raw.dtype.kind in "bif":
        rows = raw.reshape(len(raw), -1).astype(np.float64)
        kind = "a number" if raw.ndim == 1 else f"{rows.shape[1]} values"
        return Outputs(rows[:, :_WIDEST], np.zeros(len(rows), dtype=np.int64), (kind,))
    read = [_read(output) for output in raw]
    kinds = sorted({kind for kind, _ in read})
    codes = {kind: code for code, kind in enumerate(kinds)}
    width = min(max((len(row) for _, row in read), default=0), _WIDEST)
    rows = np.full((len(read), width), np.nan)
    for place, (_, row) in enumerate(read):
        rows[place, : len(row)] = row[:width]
    return Outputs(rows, np.array([codes[kind] for kind, _ in read], dtype=np.int64), tuple(kinds))


def join(parts: Sequence[Outputs]) -> Outputs:
    """Joins several samples into one, whatever their kinds and widths."""
    kinds = tuple(sorted({kind for part in parts for kind in part.kinds}))
    width = max(part.width for part in parts)
    rows = [np.pad(part.rows, ((0, 0), (0, width - part.width)), constant_values=np.nan) for part in parts]
    codes = [np.array([kinds.index(kind) for kind in part.kinds], dtype=np.int64)[part.codes] for part in parts]
    return Outputs(np.concatenate(rows), np.concatenate(codes), kinds)


def _read(output: Any) -> tuple[str, list[float]]:
    if isinstance(output, Raised):
        return f"raises {output.error}", []
    if isinstance(output, Mapping):
        keys = sorted(output, key=show)
        names = ", ".join(_text(key) for key in keys[:8]) + (f" and {len(keys) - 8} more" if len(keys) > 8 else "")
        return f"keys {names or 'none'}", [_number(output[key]) for key in keys]
    if isinstance(output, AbstractSet):
        return f"{len(output)} values", sorted(_number(value) for value in output)
    if isinstance(output, np.ndarray):
        output = output.tolist()
    if isinstance(output, (list, tuple)):
        return f"{len(output)} values", [_number(value) for value in _flat(output)]
    if output is None:
        return "None", []
    return ("a number" if _is_number(output) else f"a {type(output).__name__}"), [_number(output)]


def _flat(values: Sequence[Any]) -> list[Any]:
    flat: list[Any] = []
    for value in values:
        flat += _flat(value) if isinstance(value, (list, tuple)) else [value]
    return flat


def _is_number(value: Any) -> bool:
    return isinstance(value, (numbers.Number, np.number, np.bool_)) and not isinstance(value, complex)


def _number(value: Any) -> float:
    """Returns a number as it is and hashes other values, so that equal values stay equal."""
    if value is None:
        return math.nan
    if _is_number(value):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    name = hashlib.blake2b(show(value).encode(), digest_size=6).digest()
    return float(int.from_bytes(name, "big"))


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def without_addresses(text: str) -> str:
    """Removes memory addresses, which do not depend on data, and escapes what UTF-8 cannot encode."""
    return _ADDRESS.sub("", text).encode("utf-8", "backslashreplace").decode("utf-8")


def show(value: Any) -> str:
    """Returns the repr without a memory address, or the type if there is no repr.

    >>> show(object())
    '<object object>'
    """
    try:
        return without_addresses(repr(value))
    except Exception:
        return f"a {type(value).__name__}"


def _text(key: Any) -> str:
    return show(key)[1:-1] if isinstance(key, str) else show(key)


class Outputs:
    """A sample of outputs. `column(key)` returns one number for each."""

    def __init__(self, rows: Floats, codes: NDArray[np.int64], kinds: tuple[str, ...]) -> None:
        self.rows, self.codes, self.kinds = rows, codes, kinds
        self._columns: dict[Key, Floats] = {}

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def width(self) -> int:
        return int(self.rows.shape[1])

    def part(self, chosen: slice) -> Outputs:
        return Outputs(self.rows[chosen], self.codes[chosen], self.kinds)

    def kind(self, name: str) -> NDArray[np.bool_]:
        """Returns which outputs are of that kind. Takes the name, because codes differ between samples."""
        if name not in self.kinds:
            return np.zeros(len(self), dtype=bool)
        return np.asarray(self.codes == self.kinds.index(name))

    def column(self, key: Key) -> Floats:
        if key not in self._columns:
            self._columns[key] = np.asarray(self._compute(key), dtype=np.float64)
        return self._columns[key]

    def _compute(self, key: Key) -> Any:
        name, *places = key
        if name in ("value", "grain"):
            one = self._value(places[0])
            return one if name == "value" else grain(one)
        if name == "apart":
            # Rounded, so that noise used twice gives one value and not a hundred close ones.
            return np.round(self._value(places[0]) - self._value(places[1]), 9)
        return _OVER_ROWS[name](self.rows) if self.width else np.full(len(self), np.nan)

    def _value(self, place: int) -> Floats:
        return self.rows[:, place] if place < self.width else np.full(len(self), np.nan)

    def marks(self) -> NDArray[np.uint64]:
        """Returns a hash of each whole output; it distinguishes the sign of zero.

        Skips missing values, so that the hash does not depend on the width of the sample.
        """
        clean = np.where(np.isnan(self.rows), 0.0, self.rows)
        odd = _multipliers(self.width)
        bits = np.ascontiguousarray(clean).view(np.uint64) * odd[None, :]
        there = np.where(np.isnan(self.rows), np.uint64(0), odd[None, :] >> np.uint64(7))
        mixed = (bits ^ (bits >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + there
        named = np.array([_name(kind) for kind in self.kinds], dtype=np.uint64)
        return np.asarray(mixed.sum(axis=1, dtype=np.uint64) + named[self.codes])


def _multipliers(width: int) -> NDArray[np.uint64]:
    steps = np.arange(1, width + 1, dtype=np.uint64)
    return (steps * np.uint64(0x9E3779B97F4A7C15)) | np.uint64(1)


def _name(kind: str) -> int:
    return int.from_bytes(hashlib.blake2b(kind.encode(), digest_size=8).digest(), "big")


def grain(values: Floats) -> Floats:
    """Returns the largest e for which the value is a multiple of 2^e: the low bits of a float reveal its summands.

    >>> grain(np.array([1.0, 0.75, 2.0**-60, 12.0]))
    array([  0.,  -2., -60.,   2.])
    """
    fine = np.isfinite(values) & (values != 0)
    mantissa, exponent = np.frexp(np.where(fine, values, 1.0))
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = np.log2((whole & -whole).astype(np.float64))
    return np.where(fine, exponent - 53 + lowest, np.where(values == 0, 1024.0, np.nan))


def _first(rows: Floats) -> Floats:
    yes = rows > 0
    return np.where(yes.any(axis=1), yes.argmax(axis=1), _WIDEST).astype(np.float64)


def _sorted_gap(rows: Floats) -> Floats:
    if rows.shape[1] < 2:
        return np.full(len(rows), np.nan)
    ordered = np.sort(np.where(np.isnan(rows), -np.inf, rows), axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray(ordered[:, -1] - ordered[:, -2])


_OVER_ROWS: dict[str, Callable[[Floats], Any]] = {
    "present": lambda rows: (~np.isnan(rows)).sum(axis=1),  # not the missing ones, which include padding
    "above zero": lambda rows: (rows > 0).sum(axis=1),
    "first above zero": _first,
    "sum": lambda rows: np.nansum(np.where(np.isinf(rows), 0.0, rows), axis=1),
    "largest": lambda rows: np.where(np.isnan(rows), -np.inf, rows).max(axis=1),
    "smallest": lambda rows: np.where(np.isnan(rows), np.inf, rows).min(axis=1),
    "place of the largest": lambda rows: np.where(np.isnan(rows), -np.inf, rows).argmax(axis=1),
    "lead of the largest": _sorted_gap,
    "signs": lambda rows: sum((rows[:, place] > 0) * 2.0**place for place in range(min(rows.shape[1], 30))),
    "sum of sizes": lambda rows: np.nansum(np.abs(np.where(np.isinf(rows), 0.0, rows)), axis=1),
}


def keys_for(width: int) -> list[Key]:
    """Returns the columns to search for outputs of that width, cheap and useful ones first."""
    keys: list[Key] = [("value", place) for place in range(width)]
    keys += [("grain", place) for place in range(min(width, 3))]
    if width > 1:
        keys += [(name,) for name in _OVER_ROWS]
        keys += [("apart", place, place - 1) for place in range(1, min(width, 12))]
        keys += [("apart", j, i) for i, j in combinations(range(min(width, _PAIRED)), 2) if j > i + 1]
    return keys


def phrase(key: Key, width: int) -> str:
    """Describes a column.

    >>> phrase(("value", 2), 4), phrase(("apart", 2, 1), 4), phrase(("sum",), 4)
    ('output[2]', 'output[2] − output[1]', 'sum of output')
    """
    name, *places = key
    at = [f"output[{place}]" if width > 1 else "output" for place in places]
    if name in ("value", "grain"):
        return at[0]
    if name == "apart":
        return f"{at[0]} − {at[1]}"
    return {"above zero": "number of values above 0", "present": "number of values present"}.get(name, f"{name} of output")
