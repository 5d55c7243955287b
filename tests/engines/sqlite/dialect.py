"""SQLite's spelling of a Work: the whole of what the printer needs to know of another SQL engine.

SQLite has 64-bit integers only, no NaN (it is NULL), no dates (they are kept as ISO text, which sorts as dates do), and a
type for each value instead of each column. Functions of doubles come from Python, as the connection can be given any.
"""

from __future__ import annotations

import datetime
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dither.engines.sql.dialect import Dialect, Printer, Sql, cannot_compute
from dither.engines.sql.functions import extreme

READERS: Mapping[str, Callable[[Any], Any]] = {
    "bool": bool,
    "date": datetime.date.fromisoformat,
    "timestamp": datetime.datetime.fromisoformat,
}
STORED = {"int": "'integer'", "real": "'real', 'integer'", "text": "'text'", "date": "'text'", "timestamp": "'text'"}


class SQLiteDialect(Dialect):
    """`tables`: the name that each table of the catalog has in the file."""

    name = "SQLite"
    types: Mapping[str, str] = {
        "int": "INTEGER",
        "real": "REAL",
        "text": "TEXT",
        "bool": "INTEGER",
        "date": "TEXT",
        "timestamp": "TEXT",
        "null": "REAL",
    }
    printers: Mapping[str, Printer] = {"least": extreme("min"), "greatest": extreme("max")}
    aggregates: Mapping[str, str] = {"bool_or": "max", "bool_and": "min"}
    missing = frozenset(
        [
            *("round", "sqrt", "ln", "exp", "power", "lower", "upper", "concat"),
            *("width_bucket", "replace", "row"),
            *("to_int", "to_real", "to_text", "to_bool", "to_date"),
            *("sum", "avg"),  # within one unit: they could outgrow 64 bits, and SQLite raises there
        ]
    )

    def __init__(self, tables: Mapping[str, str]) -> None:
        self._tables = tables

    def table(self, name: str) -> str:
        return self.identifier(self._tables[name])

    def scan(self, column: str, kind: str) -> str:
        name = self.identifier(column)
        fits = f"{name} IN (0, 1)" if kind == "bool" else f"typeof({name}) IN ({STORED[kind]})"
        return f"(CASE WHEN {fits} THEN {self.cast(name, 'real', 'real') if kind == 'real' else name} END)"

    def string(self, value: str) -> str:
        parts = [super(SQLiteDialect, self).string(part) for part in value.split("\0")]
        return parts[0] if len(parts) == 1 else "(" + " || char(0) || ".join(parts) + ")"

    def double(self, number: float) -> str:
        return "NULL" if math.isnan(number) else f"exactly('{number.hex()}')"  # SQLite may read decimals an ulp off

    def cast(self, x: str, stored: str, kind: str) -> str:
        if {stored, kind} & {"date", "timestamp"} and "null" not in (stored, kind):
            raise cannot_compute(self, f"{stored} to {kind}")
        return super().cast(x, stored, kind)

    def is_nan(self, x: str) -> str:
        return "FALSE"

    def quotient(self, x: str, y: str, *, wide: bool) -> str:
        return f"{x} / {y}"

    def keyed_hash(self, purpose: str, columns: Sequence[Sql]) -> str:
        return f"keyed_hash(:{purpose}, {', '.join(column.text for column in columns)})"

    def read_keys(self, kinds: Sequence[str]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
        readers = [READERS.get(kind, lambda value: value) for kind in kinds]
        return lambda key: tuple(None if v is None else read(v) for read, v in zip(readers, key, strict=True))


def keyed_hash(secret: bytes, *columns: Any) -> str:
    """The hash by which groups are chosen; the same for TRUE and 1, which SQLite does not tell apart."""
    text = repr([int(value) if isinstance(value, bool) else value for value in columns])
    return hashlib.blake2b(text.encode(), key=secret, digest_size=16).hexdigest()


def _of_doubles(function: Callable[[float], int]) -> Callable[[float | None], float | None]:
    return lambda x: x if x is None or math.isinf(x) else float(function(x))


FUNCTIONS: Mapping[str, tuple[int, Callable[..., Any]]] = {
    "exactly": (1, float.fromhex),
    "floor": (1, _of_doubles(math.floor)),
    "ceil": (1, _of_doubles(math.ceil)),
    "trunc": (1, _of_doubles(math.trunc)),
    "keyed_hash": (-1, keyed_hash),
}
