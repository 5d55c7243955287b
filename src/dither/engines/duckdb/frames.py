"""Reads frames in memory (pandas, Polars eager or lazy, Arrow) as Arrow tables that DuckDB reads without a copy or an error.

A pandas column of Python objects becomes text, value by value, as in a CSV; its declared kind decides what it means. NaN in
pandas means NULL. A lazy frame is computed once, on opening, so that every question sees the same data.

DuckDB converts Arrow values while it scans, before any expression of a question can guard them. Some conversions raise (zoned
timestamps out of range), others return arbitrary memory (decimals beyond their precision). So these values are converted or
checked here, and those that do not fit become NULL:

    zoned timestamps        the same instant in UTC, without a zone; the unit stays, so that different instants stay different
    dates in milliseconds   days; NULL unless it is a whole day that a date holds
    decimals                NULL beyond their precision
    text                    NULL where it is not UTF-8
    dictionaries, nulls     plain columns
    half floats             floats
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from dither.catalog.check import UNSUPPORTED
from dither.engines.duckdb.cells import BLANKS
from dither.engines.duckdb.dicts import array
from dither.errors import CatalogError

_BYTES = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}


def arrow_kind(kind: pa.DataType) -> str:
    """Returns the kind of an Arrow type."""
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
    """Returns the usable columns, in types and with values that DuckDB can read. A broken buffer raises ArrowException."""
    columns = {field.name: field.type for field in table.schema if arrow_kind(field.type) != UNSUPPORTED}
    return pa.table({name: _column(table.column(name), kind) for name, kind in columns.items()})


def _column(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    column.validate()  # the layout only; values follow
    chunks = [_array(chunk) for chunk in column.chunks] or [_array(pa.array([], kind))]
    return pa.chunked_array(chunks)


def _array(array: pa.Array) -> pa.Array:
    kind, types = array.type, pa.types
    if types.is_dictionary(kind):
        return _decode(array.indices, _array(array.dictionary))
    if types.is_null(kind):
        return array.cast(pa.string())
    if types.is_float16(kind):
        return array.cast(pa.float32())
    if types.is_timestamp(kind) and kind.tz is not None:
        return array.view(pa.timestamp(kind.unit))
    if types.is_date64(kind) or types.is_decimal128(kind):
        from dither.engines.duckdb import ranges  # imports pyarrow.compute, which few frames need

        return ranges.days(array) if types.is_date64(kind) else ranges.decimals(array)
    return _text(array) if _is_text(kind) else array


def _decode(indices: pa.Array, entries: pa.Array) -> pa.Array:
    """Decodes a dictionary into a plain column. Raises ArrowException if an index has no entry."""
    if pa.types.is_string_view(entries.type):
        entries = entries.cast(pa.large_string())  # Arrow cannot index into views
    return pa.DictionaryArray.from_arrays(indices, entries).dictionary_decode()


def _text(array: pa.Array) -> pa.Array:
    """Returns the text, with NULL for bytes that are not UTF-8. Arrow has no function that finds them."""
    wrong = list(_invalid(array, 0))
    if not wrong:
        return array
    values = array.view(_BYTES[array.type]).to_pylist()
    for place in wrong:
        values[place] = None
    return pa.array(values, _BYTES[array.type]).view(array.type)


def _invalid(array: pa.Array, start: int) -> Iterator[int]:
    """Yields the places of values that are not valid, found by halving: usually there are few."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        if len(array) == 1:
            yield start
            return
        half = len(array) // 2
        yield from _invalid(array.slice(0, half), start)
        yield from _invalid(array.slice(half), start + half)


def _is_text(kind: pa.DataType) -> bool:
    return kind in _BYTES


def is_frame(source: Any) -> bool:
    """Whether this is a frame rather than a path."""
    return _of(source, "pandas", "DataFrame") or hasattr(source, "__arrow_c_stream__") or _is_lazy(source) or _is_dict(source)


def frame_schema(source: Any, trim: bool = False) -> pa.Schema:
    """Returns names and Arrow types, from the frame's schema only. `trim`: names without the blanks around them."""
    schema = _frame_schema(source)
    _check_names(schema)
    return _trimmed(schema.empty_table()).schema if trim else schema


def _frame_schema(source: Any) -> pa.Schema:
    if _of(source, "pandas", "DataFrame"):
        return pa.schema([(name, _pandas_type(column)) for name, column in _named(source)])
    if _is_lazy(source):
        empty = source.collect_schema().to_frame(eager=True)
        return _arrow(empty).schema
    if hasattr(source, "schema") and isinstance(source.schema, pa.Schema):
        return source.schema
    return _arrow(source).schema


def frame_table(source: Any, trim: bool = False) -> pa.Table:
    """Returns the rows as an Arrow table."""
    table = _frame_table(source)
    _check_names(table.schema)
    return _trimmed(table) if trim else table


def _trimmed(table: pa.Table) -> pa.Table:
    trimmed = table.rename_columns([name.strip(BLANKS) for name in table.column_names])
    _check_names(trimmed.schema)
    return trimmed


def _check_names(schema: pa.Schema) -> None:
    try:
        names = list(schema.names)
        right = len(set(names)) == len(names) and not any("\0" in name for name in names)
    except UnicodeError:
        right = False
    if not right:
        what = "The frame's column names are not all different texts without a zero character."
        raise CatalogError([(None, what, "rename its columns.")])


def _frame_table(source: Any) -> pa.Table:
    if _of(source, "pandas", "DataFrame"):
        return pa.table({name: _pandas_column(column) for name, column in _named(source)})
    if not _is_lazy(source):
        return _arrow(source)
    try:
        computed = source.collect()
    except Exception:  # Polars' own error; its text may quote a value
        raise _unreadable() from None
    return _arrow(computed)


def frame_columns(source: Any, trim: bool = False) -> tuple[pa.Table, dict[str, str]]:
    """Returns the usable columns in a form that DuckDB can read, and the kinds of all columns."""
    table = frame_table(source, trim)
    kinds = {field.name: arrow_kind(field.type) for field in table.schema}
    try:
        return readable(table), kinds
    except (pa.ArrowException, UnicodeError):
        raise _unreadable() from None


def _arrow(source: Any) -> pa.Table:
    try:
        if isinstance(source, pa.Table):
            return source
        if _is_dict(source):
            return pa.table({name: array(values) for name, values in source.items()})
        return pa.RecordBatchReader.from_stream(source).read_all()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise _unreadable() from None  # Arrow's own text may quote a value


def _named(frame: Any) -> list[tuple[str, Any]]:
    names = list(frame.columns)
    if any(not isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise CatalogError([(None, "The frame's column names are not all different texts.", "rename its columns.")])
    return [(name, frame[name]) for name in names]


def _pandas_type(column: Any) -> pa.DataType:
    if column.dtype == object:
        return pa.string()
    return pa.array(column.iloc[:0], from_pandas=True).type


def _pandas_column(column: Any) -> Any:
    try:
        if column.dtype == object:
            return _texts(column)
        return pa.array(column, from_pandas=True)
    except UnicodeError:
        return _texts(column)
    except (pa.ArrowException, TypeError, ValueError):
        raise _unreadable() from None


def _texts(column: Any) -> pa.Array:
    missing = column.isna()
    return pa.array([None if gone else _as_text(value) for value, gone in zip(column, missing, strict=True)], pa.string())


def _as_text(value: Any) -> str | None:
    """Returns the value as text; None if it has no text: a lone surrogate, or a number of too many digits for Python."""
    try:
        text = str(value)
        text.encode()
    except ValueError:
        return None
    return text


def _unreadable() -> CatalogError:
    return CatalogError([(None, "The frame cannot be read.", "pass a pandas, Polars or Arrow table with plain columns.")])


def _of(source: Any, package: str, name: str) -> bool:
    """Whether the source is of this class. Compares names, so that the library is not imported."""
    return any(kind.__name__ == name and kind.__module__.split(".")[0] == package for kind in type(source).__mro__)


def _is_lazy(source: Any) -> bool:
    return _of(source, "polars", "LazyFrame")


def _is_dict(source: Any) -> bool:
    return isinstance(source, Mapping)
