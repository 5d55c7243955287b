"""Reads the columns of a dict as Arrow arrays, without importing pandas.

`pa.array` imports pandas if it is installed, to look for its types: a third of the time of a first answer. Lists of one plain
type, and arrays of numbers, are stored directly. Everything else is left to `pa.array`, which would store these alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_NUMBERS = {np.dtype(name): kind for name, kind in (("int64", pa.int64()), ("int32", pa.int32()), ("float64", pa.float64()))}
_OF_TYPE: dict[type, np.dtype[Any]] = {int: np.dtype("int64"), float: np.dtype("float64")}


def array(values: Any) -> Any:
    """Returns a column of a dict as an Arrow array, or as it is if `pa.array` must read it."""
    if type(values) is np.ndarray and values.ndim == 1 and values.dtype in _NUMBERS and values.flags.c_contiguous:
        return pa.Array.from_buffers(_NUMBERS[values.dtype], len(values), [None, pa.py_buffer(values)])
    if type(values) in (list, tuple):
        kinds = set(map(type, values))
        missing = type(None) in kinds
        kinds.discard(type(None))
        if len(kinds) == 1:
            return _stored(values, kinds.pop(), missing)
    return values


def _stored(values: Sequence[Any], kind: type, missing: bool) -> Any:
    """Stores values of one type, and None."""
    valid = np.array([value is not None for value in values]) if missing else None
    present = _bits(valid) if valid is not None else None
    if kind is str:
        return _texts(values, present)
    if kind is bool:
        return pa.Array.from_buffers(pa.bool_(), len(values), [present, _bits(np.array([value is True for value in values]))])
    if kind in _OF_TYPE:
        numbers = [0 if value is None else value for value in values] if missing else values
        try:
            stored = np.array(numbers, dtype=_OF_TYPE[kind])
        except OverflowError:
            return values
        return pa.Array.from_buffers(_NUMBERS[stored.dtype], len(values), [present, pa.py_buffer(stored)])
    return values


def _texts(values: Sequence[str | None], present: pa.Buffer | None) -> Any:
    try:
        parts = [b"" if value is None else value.encode() for value in values]
    except UnicodeEncodeError:
        return values
    ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    if ends[-1] >= 1 << 31:
        return values
    offsets = pa.py_buffer(ends.astype(np.int32))
    return pa.Array.from_buffers(pa.string(), len(values), [present, offsets, pa.py_buffer(b"".join(parts))])


def _bits(flags: NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))
