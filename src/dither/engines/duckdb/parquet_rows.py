"""Reads Parquet files that DuckDB's own reader refuses, through pyarrow, into a table of the DuckDB connection.

DuckDB converts Parquet values while it reads, and raises where one does not fit: a timestamp in milliseconds beyond its
range, bytes that are not UTF-8. pyarrow hands the stored values over as they are, arrow_values.py makes NULL of those
that do not fit, and the rows are copied once, on opening. The copy takes memory (declared columns only; DuckDB moves it to
the disk beyond its memory limit), while files that DuckDB reads are never copied.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from duckdb import DuckDBPyConnection

from dither.engines.duckdb.arrow_values import arrow_kind, readable
from dither.engines.duckdb.dialect import identifier, literal
from dither.query.check import UNSUPPORTED

_BATCH = "batch of rows"  # no table can have this name: it has spaces
_ROWS = 65_536  # in one batch: what is converted at a time
_ZONED = "TIMESTAMP WITH TIME ZONE"


class UnreadableError(Exception):
    """pyarrow cannot read the files either."""


def copy_parquet(connection: DuckDBPyConnection, name: str, files: Iterable[str], types: Mapping[str, str]) -> dict[str, str]:
    """Makes the table `name` of the named columns. Returns their types: as DuckDB states them, zoned timestamps in UTC."""
    if not types:
        raise UnreadableError  # nothing of the files was converted, so nothing else is to be had from them
    stored = {column: "TIMESTAMP" if text == _ZONED else text for column, text in types.items()}
    listed = ", ".join(f"{identifier(column)} {text}" for column, text in stored.items())
    connection.execute(f"CREATE TABLE {identifier(name)} ({listed})")
    try:
        for file in files:
            _copy_file(connection, name, file, stored)
    except (pa.ArrowException, OSError, ValueError, TypeError, LookupError):  # pyarrow's text may quote a value
        raise UnreadableError from None
    return stored


def _copy_file(connection: DuckDBPyConnection, name: str, file: str, types: Mapping[str, str]) -> None:
    with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as opened:
        stored = [column for column in types if column in opened.schema_arrow.names]
        path = _path_values(connection, file, [column for column in types if column not in stored])
        listed = [
            f"TRY_CAST({identifier(column) if column in stored else path[column]} AS {text})" for column, text in types.items()
        ]
        insert = f"INSERT INTO {identifier(name)} SELECT {', '.join(listed)} FROM {identifier(_BATCH)}"
        for batch in opened.iter_batches(_ROWS, columns=stored):
            connection.register(_BATCH, _batch(pa.Table.from_batches([batch]), types))
            try:
                connection.execute(insert)
            finally:
                connection.unregister(_BATCH)


def _path_values(connection: DuckDBPyConnection, file: str, columns: list[str]) -> dict[str, str]:
    """Columns of a file's path (region=north/) as constants. DuckDB says what they are; no value of the file is read for it."""
    if not columns:
        return {}
    listed = ", ".join(identifier(column) for column in columns)
    source = f"read_parquet([{literal(file).text}], hive_types_autocast = false)"
    found = connection.execute(f"SELECT {listed} FROM {source} LIMIT 1").fetchall()
    return {
        column: literal(value).text for column, value in zip(columns, found[0] if found else [None] * len(columns), strict=True)
    }


def _batch(table: pa.Table, types: Mapping[str, str]) -> pa.Table:
    """The rows as DuckDB reads them without an error."""
    columns = {name: _as_stored(table.column(name), types[name]) for name in table.column_names}
    if any(arrow_kind(column.type) == UNSUPPORTED for column in columns.values()):
        raise UnreadableError
    return readable(pa.table(columns)) if columns else pa.table({"no column": pa.nulls(table.num_rows, pa.int8())})


def _as_stored(column: pa.ChunkedArray, stored: str) -> pa.ChunkedArray:
    """The column in the type that the file itself has: pyarrow may give it one of its own, or one that its writer had noted."""
    if isinstance(column.type, pa.BaseExtensionType):
        kind = column.type.storage_type
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], kind)
    if pa.types.is_duration(column.type):
        return column.cast(pa.int64())
    if stored == "UUID" and pa.types.is_fixed_size_binary(column.type):
        return pa.chunked_array([pa.array(map(_uuid, column.to_pylist()), pa.string())])
    if stored == "VARCHAR" and pa.types.is_binary(column.type):  # an ENUM of Parquet
        return pa.chunked_array([chunk.cast(pa.string(), safe=False) for chunk in column.chunks], pa.string())
    return column


def _uuid(value: bytes | None) -> str | None:
    return None if value is None else str(uuid.UUID(bytes=value))
