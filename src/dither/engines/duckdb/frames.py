"""Frames in memory (pandas, Polars eager or lazy, Arrow) as Arrow tables that DuckDB reads without a copy.

A pandas column of Python objects becomes text, value by value, as a CSV column is: its declared kind decides what it
means. NaN in pandas means NULL. A lazy frame is computed once, on opening, so that every question sees the same data.
Values that DuckDB cannot read are NULL (arrow_values.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from dither.engines.duckdb.arrow_values import arrow_kind, readable
from dither.errors import CatalogError


def is_frame(source: Any) -> bool:
    """Whether this is a frame rather than a path."""
    return _of(source, "pandas", "DataFrame") or hasattr(source, "__arrow_c_stream__") or _is_lazy(source) or _is_dict(source)


def frame_schema(source: Any) -> pa.Schema:
    """Names and Arrow types, from the frame's schema only."""
    found = _frame_schema(source)
    _check_names(found)
    return found


def _frame_schema(source: Any) -> pa.Schema:
    if _of(source, "pandas", "DataFrame"):
        return pa.schema([(name, _pandas_type(column)) for name, column in _named(source)])
    if _is_lazy(source):
        empty = source.collect_schema().to_frame(eager=True)
        return _arrow(empty).schema
    if hasattr(source, "schema") and isinstance(source.schema, pa.Schema):
        return source.schema
    return _arrow(source).schema


def frame_table(source: Any) -> pa.Table:
    """The rows as an Arrow table."""
    found = _frame_table(source)
    _check_names(found.schema)
    return found


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
    except Exception:  # any of Polars' own errors, whose text may quote a value
        raise _unreadable() from None
    return _arrow(computed)


def frame_columns(source: Any) -> tuple[pa.Table, dict[str, str]]:
    """The columns that questions can use, as DuckDB reads them without an error, and the kinds of all columns."""
    table = frame_table(source)
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
            return pa.table(dict(source))
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
    return pa.array([None if gone else _written(value) for value, gone in zip(column, missing, strict=True)], pa.string())


def _written(value: Any) -> str | None:
    """The value as text; None if it has none: half a character, or a number of more digits than Python writes."""
    try:
        text = str(value)
        text.encode()
    except ValueError:
        return None
    return text


def _unreadable() -> CatalogError:
    return CatalogError([(None, "The frame cannot be read.", "pass a pandas, Polars or Arrow table with plain columns.")])


def _of(source: Any, package: str, name: str) -> bool:
    """By name, so that a library nobody uses is not imported."""
    return any(kind.__name__ == name and kind.__module__.split(".")[0] == package for kind in type(source).__mro__)


def _is_lazy(source: Any) -> bool:
    return _of(source, "polars", "LazyFrame")


def _is_dict(source: Any) -> bool:
    return isinstance(source, Mapping)
