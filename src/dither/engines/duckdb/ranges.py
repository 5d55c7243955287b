"""Keeps the dates and decimals of a frame that DuckDB can read: others become NULL."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_DAY = 86_400_000  # milliseconds
_MOST_DAYS = 2**31 - 2  # the next one is DuckDB's infinity


def days(array: pa.Array) -> pa.Array:
    """Returns dates in milliseconds as days. What is no whole day, or far outside the calendar, is NULL."""
    stored = array.view(pa.int64())
    number = pc.divide(stored, _DAY)  # cut towards zero: times _DAY it is the value only for whole days
    within = pc.and_(pc.less_equal(number, _MOST_DAYS), pc.greater_equal(number, -_MOST_DAYS))
    number = _only(number, within)
    whole = pc.equal(pc.multiply(number, _DAY), stored)
    return _only(number, whole).cast(pa.int32()).view(pa.date32())


def _only(array: pa.Array, fits: Any) -> pa.Array:
    return pc.if_else(fits, array, pa.scalar(None, array.type))


def decimals(array: pa.Array) -> pa.Array:
    """Returns the decimals that have no more digits than their type says."""
    low, high = (_decimal(sign * (10**array.type.precision - 1), array.type) for sign in (-1, 1))
    return _only(array, pc.and_(pc.greater_equal(array, low), pc.less_equal(array, high)))


def _decimal(digits: int, kind: pa.DataType) -> pa.Scalar:
    """Returns a decimal from its digits without the point, as Arrow stores it."""
    stored = digits.to_bytes(16, sys.byteorder, signed=True)
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(stored)])[0]
