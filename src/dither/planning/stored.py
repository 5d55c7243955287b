"""Released numbers as text and back, exactly: what a ledger keeps so that the same question is answered the same again.

Only what is public enters: the keys that were shown and the noisy whole numbers. Values of keys carry their kind, because
TRUE, 1 and '1' are three keys; whole numbers of any size survive, and so does the width they were computed in.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import DitherError, Fix
from dither.planning.finish import Noisy
from dither.query.catalog import Key

FORMAT = 1
_PLAIN_DIGITS = 4000  # Python writes and reads whole numbers up to 4300 digits


def digits(value: int) -> str:
    """A whole number of any size as text that int(text, 0) reads back."""
    return str(value) if short(value) else hex(value)


def short(value: int) -> bool:
    """Whether Python writes and reads the number in decimal digits."""
    return value.bit_length() < 3 * _PLAIN_DIGITS


_WIDTHS = {"int64": np.dtype(np.int64), "any": np.dtype(object)}

# How each kind of key is written and read. A timestamp is a date to Python, so it stands first.
_KINDS: dict[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]] = {
    "bool": (bool, lambda value: "true" if value else "false", lambda text: {"true": True, "false": False}[text]),
    "int": (int, digits, lambda text: int(text, 0)),
    "real": (float, float.hex, float.fromhex),
    "text": (str, str, str),
    "timestamp": (datetime.datetime, datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    "date": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
}


def to_text(released: Sequence[Noisy]) -> str:
    """The releases of one charge, in order.

    >>> print(to_text([Noisy((("north",), (None,)), (np.array([[3], [-1]]),))]))
    {"format":1,"released":[{"cells":[{"shape":[2,1],"values":[3,-1],"width":"int64"}],"keys":[[["text","north"]],[null]]}]}
    """
    body = [
        {"keys": [[_key(part) for part in key] for key in one.keys], "cells": [_cells(c) for c in one.cells]}
        for one in released
    ]
    return json.dumps({"format": FORMAT, "released": body}, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def from_text(text: str) -> tuple[Noisy, ...]:
    """The releases again. A text of another format is refused, never guessed at."""
    try:
        read = json.loads(text)
        if read["format"] != FORMAT:
            raise ValueError("another format")
        return tuple(
            Noisy(tuple(tuple(map(_read_key, key)) for key in one["keys"]), tuple(map(_read_cells, one["cells"])))
            for one in read["released"]
        )
    except (KeyError, TypeError, ValueError):
        raise DitherError(
            "The stored answer is not one that this version of dither can read.",
            fix=Fix("ask with {fresh} for a new answer at its full price, or use the version that gave it.", fresh=True),
        ) from None


def _key(value: Key) -> list[str] | None:
    if value is None:
        return None
    if isinstance(value, np.generic):  # whatever library an engine took it from
        value = value.item()
    for kind, (held, write, _) in _KINDS.items():
        if isinstance(value, held):
            return [kind, write(value)]
    raise TypeError(f"a key of type {type(value).__name__} cannot be stored")


def _read_key(part: list[str] | None) -> Any:
    return None if part is None else _KINDS[part[0]][2](part[1])


def _cells(cells: NDArray[Any]) -> dict[str, Any]:
    widths = [
        name for name, dtype in _WIDTHS.items() if cells.dtype == dtype
    ]  # no generator: one that is dropped loses a Ctrl-C
    if not widths or cells.ndim != 2:
        raise TypeError(f"released numbers of type {cells.dtype} cannot be stored")
    return {"width": widths[0], "shape": list(cells.shape), "values": [_whole(value) for value in cells.ravel().tolist()]}


def _whole(value: Any) -> int | str:
    """Numbers beyond 2^53 as text: readers of JSON elsewhere take numbers for doubles."""
    number = int(value)
    return number if abs(number) <= 1 << 53 else digits(number)


def _read_cells(stored: dict[str, Any]) -> NDArray[Any]:
    values = [int(value, 0) if isinstance(value, str) else int(value) for value in stored["values"]]
    found = np.empty(len(values), dtype=_WIDTHS[stored["width"]])
    found[:] = values
    return found.reshape(stored["shape"])
