"""Makes Arrow columns that DuckDB reads without an error, whatever is stored in them. A value that does not fit is NULL.

DuckDB converts Arrow values while it scans, before any expression of a question can guard them. Some of those conversions
raise (zoned timestamps out of range), some return whatever was in memory before (decimals beyond their precision). So what
DuckDB would convert is converted or checked here:

    zoned timestamps        the same instant in UTC, without a zone; the unit stays, so that different instants stay different
    dates in milliseconds   days; NULL unless it is a whole day that a date holds
    decimals                NULL beyond their precision
    text                    NULL where it is not UTF-8
    dictionaries, nulls     plain columns
    half floats             floats
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from dither.query.check import UNSUPPORTED

_DAY = 86_400_000  # milliseconds
_BYTES = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
_MOST_DAYS = 2**31 - 2  # the next one is DuckDB's infinity


def arrow_kind(kind: pa.DataType) -> str:
    """The kind of an Arrow type."""
    types = pa.types
    if types.is_dictionary(kind):
        return arrow_kind(kind.value_type)
    if types.is_integer(kind):
        return "int"
    if types.is_floating(kind) or (types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision):
        return "real"
    if _is_text(kind) or types.is_null(kind):
        return "text"
    if types.is_boolean(kind):
        return "bool"
    if types.is_date(kind):
        return "date"
    return "timestamp" if types.is_timestamp(kind) else UNSUPPORTED


def readable(table: pa.Table) -> pa.Table:
    """The columns that questions can use, in types and with values that DuckDB reads. A torn buffer raises ArrowException."""
    columns = {field.name: field.type for field in table.schema if arrow_kind(field.type) != UNSUPPORTED}
    return pa.table({name: _column(table.column(name), kind) for name, kind in columns.items()})


def _column(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    column.validate()  # the layout only; values follow
    chunks = [_array(chunk) for chunk in column.chunks] or [_array(pa.array([], kind))]
    return pa.chunked_array(chunks)


def _array(array: pa.Array) -> pa.Array:
    kind, types = array.type, pa.types
    if types.is_dictionary(kind):
        return _decoded(array.indices, _array(array.dictionary))
    if types.is_null(kind):
        return array.cast(pa.string())
    if types.is_float16(kind):
        return array.cast(pa.float32())
    if types.is_timestamp(kind) and kind.tz is not None:
        return array.view(pa.timestamp(kind.unit))
    if types.is_date64(kind):
        return _days(array)
    if types.is_decimal128(kind):
        low, high = (_decimal(sign * (10**kind.precision - 1), kind) for sign in (-1, 1))
        return _only(array, pc.and_(pc.greater_equal(array, low), pc.less_equal(array, high)))
    return _text(array) if _is_text(kind) else array


def _decoded(indices: pa.Array, entries: pa.Array) -> pa.Array:
    """A plain column. Raises ArrowException where an index has no entry."""
    if pa.types.is_string_view(entries.type):
        entries = entries.cast(pa.large_string())  # Arrow has no look-up in views
    return pa.DictionaryArray.from_arrays(indices, entries).dictionary_decode()


def _text(array: pa.Array) -> pa.Array:
    """Text, NULL where its bytes are not UTF-8. Arrow has no function that says where, and for views none that chooses."""
    wrong = list(_invalid(array, 0))
    if not wrong:
        return array
    values = array.view(_BYTES[array.type]).to_pylist()
    for place in wrong:
        values[place] = None
    return pa.array(values, _BYTES[array.type]).view(array.type)


def _invalid(array: pa.Array, start: int) -> Iterator[int]:
    """Where an array has values that do not validate, by halves: there are few, or the column is no text at all."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        if len(array) == 1:
            yield start
            return
        half = len(array) // 2
        yield from _invalid(array.slice(0, half), start)
        yield from _invalid(array.slice(half), start + half)


def _days(array: pa.Array) -> pa.Array:
    stored = array.view(pa.int64())
    days = pc.divide(stored, _DAY)  # towards zero, so the product is the value only where nothing is left over
    within = pc.and_(pc.less_equal(days, _MOST_DAYS), pc.greater_equal(days, -_MOST_DAYS))
    days = _only(days, within)
    whole = pc.equal(pc.multiply(days, _DAY), stored)
    return _only(days, whole).cast(pa.int32()).view(pa.date32())


def _only(array: pa.Array, fits: Any) -> pa.Array:
    return pc.if_else(fits, array, pa.scalar(None, array.type))


def _decimal(digits: int, kind: pa.DataType) -> pa.Scalar:
    """A decimal by its digits without the point, as Arrow stores it."""
    stored = digits.to_bytes(16, sys.byteorder, signed=True)
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(stored)])[0]


def _is_text(kind: pa.DataType) -> bool:
    return kind in _BYTES
