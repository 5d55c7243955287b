"""Every stored type with its extreme and malformed values, as columns of Arrow, and the ways to store them.

A specimen is one value of one type. Each test stores ordinary rows with and without it. An analyst must not be able to tell the
two apart by whether a catalog opens or a question is answered.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

Store = Callable[[pa.Table, Path], Any]
LOW64, HIGH64 = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Specimen:
    """One value of a column, built by hand if no library would build it. `usual` is the value of other rows."""

    name: str
    usual: pa.Array
    odd: pa.Array

    def rows(self, *, present: bool) -> pa.Table:
        """Six people with an ordinary value, and perhaps a seventh with the odd one."""
        column = pa.concat_arrays([*([self.usual] * 6), *([self.odd] if present else [])])
        people = range(1, len(column) + 1)
        return pa.table({"pid": list(people), "flag": [person % 2 == 0 for person in people], "x": column})


def specimens() -> list[Specimen]:
    return [*_numbers(), *_decimals(), *_texts(), *_days(), *_moments()]


def _viewed(numbers: list[int], width: pa.DataType, kind: pa.DataType) -> pa.Array:
    return pa.array(numbers, width).view(kind)


def _each(name: str, usual: pa.Array, odd: pa.Array) -> Iterator[Specimen]:
    for place in range(len(odd)):
        yield Specimen(f"{name} {place}", usual, odd.slice(place, 1))


def _numbers() -> Iterator[Specimen]:
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()):
        info = np.iinfo(kind.to_pandas_dtype())
        yield from _each(str(kind), pa.array([1], kind), pa.array([info.min, info.max, None], kind))
    for kind, width in ((pa.float16(), np.float16), (pa.float32(), np.float32), (pa.float64(), np.float64)):
        info = np.finfo(width)
        odd = np.array([np.nan, np.inf, -np.inf, info.max, info.min, info.tiny, -0.0], width)
        yield from _each(str(kind), pa.array(np.array([1], width)), pa.array(odd))
    yield from _each("bool", pa.array([True]), pa.array([False, None]))


def _decimals() -> Iterator[Specimen]:
    for precision, scale in ((4, 1), (9, 9), (18, 0), (38, 0), (38, 10), (38, 38)):
        kind, most = pa.decimal128(precision, scale), 10**precision - 1
        digits = [most, -most, most + 1, 2**126, 2**127 - 1, -(2**127)]
        yield from _each(f"{kind}", _decimal([1], kind), _decimal(digits, kind))


def _decimal(digits: list[int], kind: pa.DataType) -> pa.Array:
    stored = b"".join(each.to_bytes(16, "little", signed=True) for each in digits)
    return pa.Array.from_buffers(kind, len(digits), [None, pa.py_buffer(stored)])


def _texts() -> Iterator[Specimen]:
    odd = [b"", b"\0", b"a\0b", b"\xff\xfe", b"ok\xc3", b"\xed\xa0\x80", b"x" * 4097, "é".encode() * 4096, b"y" * 100_000, None]
    for kind in (pa.string(), pa.large_string()):
        raw = pa.binary() if kind == pa.string() else pa.large_binary()
        yield from _each(str(kind), pa.array(["a"], kind), pa.array(odd, raw).view(kind))
    yield from _each("string_view", pa.array(["a"], pa.string_view()), pa.array(odd, pa.binary_view()).view(pa.string_view()))
    entries = pa.array([b"a", None, b"\xff"], pa.binary()).view(pa.string())
    encoded = pa.DictionaryArray.from_arrays(pa.array([1, 2, None], pa.int8()), entries)
    yield from _each("dictionary", pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), entries), encoded)


def _days() -> Iterator[Specimen]:
    ends = [-(2**31), -(2**31) + 1, 2**31 - 1, 2**31 - 2, 2932897, -719163, 106751992]
    yield from _each("date32", _viewed([1], pa.int32(), pa.date32()), _viewed(ends, pa.int32(), pa.date32()))
    more = [LOW64, HIGH64, 86_400_000 * 2**31, -86_400_000 * 2**31, 5, -1]
    yield from _each("date64", _viewed([86_400_000], pa.int64(), pa.date64()), _viewed(more, pa.int64(), pa.date64()))


def _moments() -> Iterator[Specimen]:
    ends = [
        LOW64,
        LOW64 + 1,
        HIGH64,
        HIGH64 - 1,
        10**16,
        -(10**16),
        9_223_372_036_854_776,
        -9_223_372_036_854_775,
        253402300800,
    ]
    for unit, zone in itertools.product(("s", "ms", "us", "ns"), (None, "UTC", "Asia/Kathmandu")):
        kind = pa.timestamp(unit, zone)
        yield from _each(f"{kind}", _viewed([0], pa.int64(), kind), _viewed(ends, pa.int64(), kind))


# --- ways to store a table --------------------------------------------------------------------------------------


def _pyarrow(**options: Any) -> Store:
    def store(rows: pa.Table, folder: Path) -> Path:
        pq.write_table(rows, folder / "t.parquet", **options)
        return folder / "t.parquet"

    return store


def _polars(**options: Any) -> Store:
    def store(rows: pa.Table, folder: Path) -> Path:
        pl.DataFrame(rows).write_parquet(folder / "t.parquet", **options)
        return folder / "t.parquet"

    return store


def _by_duckdb(make: str, name: str) -> Store:
    """Writes with DuckDB, if it can hold the value."""

    def store(rows: pa.Table, folder: Path) -> Any:
        with duckdb.connect(str(folder / "t.duckdb")) as connection:
            connection.register("rows", rows)
            connection.execute(make.format(folder=folder))
        return f"{folder}/{name}"

    return store


def _pandas(rows: pa.Table, folder: Path) -> Any:
    frame = rows.to_pandas()
    if (
        rows.column("x").null_count
        and pa.types.is_primitive(rows.schema.field("x").type)
        and str(frame.x.dtype) != str(rows.schema.field("x").type)
    ):
        raise TypeError("pandas has no such column: it makes another type of all of it")
    return frame


def _csv(rows: pa.Table, folder: Path) -> Path:
    rows.to_pandas().to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


PARQUET: dict[str, Store] = {
    "pyarrow": _pyarrow(),
    "pyarrow, no statistics": _pyarrow(write_statistics=False),
    "pyarrow, some statistics": _pyarrow(write_statistics=["pid", "flag"]),
    "pyarrow, plain": _pyarrow(use_dictionary=False, compression="none"),
    "pyarrow, plain, no statistics": _pyarrow(use_dictionary=False, write_statistics=False),
    "pyarrow, row groups": _pyarrow(row_group_size=2),
    "pyarrow, row groups, no statistics": _pyarrow(row_group_size=2, write_statistics=False),
    "pyarrow, page 2.0": _pyarrow(data_page_version="2.0", write_page_index=True, compression="zstd"),
    "pyarrow, format 1.0": _pyarrow(version="1.0"),
    "pyarrow, int96": _pyarrow(use_deprecated_int96_timestamps=True),
    "pyarrow, decimals as integers": _pyarrow(store_decimal_as_integer=True),
    "pyarrow, no schema of its own": _pyarrow(store_schema=False),
    "polars": _polars(),
    "polars, no statistics": _polars(statistics=False),
    "polars, row groups": _polars(row_group_size=2, compression="uncompressed"),
    "duckdb": _by_duckdb("COPY rows TO '{folder}/t.parquet' (FORMAT parquet)", "t.parquet"),
    "duckdb, v2": _by_duckdb("COPY rows TO '{folder}/t.parquet' (FORMAT parquet, PARQUET_VERSION v2)", "t.parquet"),
}
OTHERS: dict[str, Store] = {
    "arrow": lambda rows, folder: rows,
    "arrow stream": lambda rows, folder: rows.to_reader(),
    "pandas": _pandas,
    "pandas arrow": lambda rows, folder: rows.to_pandas(types_mapper=_backed),
    "polars frame": lambda rows, folder: pl.DataFrame(rows),
    "polars lazy": lambda rows, folder: pl.DataFrame(rows).lazy(),
    "mapping": lambda rows, folder: {name: rows.column(name) for name in rows.column_names},
    "duckdb table": _by_duckdb("CREATE TABLE t AS SELECT * FROM rows", "t.duckdb#t"),
    "csv": _csv,
}
STORES = PARQUET | OTHERS


def _backed(kind: pa.DataType) -> Any:
    import pandas as pd

    return pd.ArrowDtype(kind)
