"""The smallest pieces of DuckDB SQL: names, constants, and a printed expression with what is known of it.

Everything dither hands to DuckDB is put together from these pieces and from fixed words. A name or a constant of the
question, the catalog or the data enters the text here and nowhere else.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from fractions import Fraction

TYPES = {
    "int": "BIGINT",
    "real": "DOUBLE",
    "text": "VARCHAR",
    "bool": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "null": "DOUBLE",
}
NAN = "CAST('nan' AS DOUBLE)"
INF = "CAST('inf' AS DOUBLE)"


@dataclass(frozen=True)
class Sql:
    """A printed expression.

    `kind` is one of catalog.KINDS, or "null" for a bare NULL. `atom`: a column or a constant, so it may be written twice
    without computing anything twice. `nan`: a double that may be "not a number" where the meaning says NULL.
    `level`: how many stages of helper columns must exist before it can be computed. `constant`: its value, if it has one.
    """

    text: str
    kind: str
    atom: bool = False
    nan: bool = False
    level: int = 0
    constant: int | float | Fraction | str | None = None


def identifier(name: str) -> str:
    """A name, quoted.

    >>> print(identifier('a"; DROP TABLE people; --'))
    "a""; DROP TABLE people; --"
    """
    return '"' + name.replace('"', '""') + '"'


def literal(value: object) -> Sql:
    """A constant. Decimals, and integers beyond 64 bits, become the nearest double.

    A zero character cannot stand in SQL text and is spelt chr(0).

    >>> literal("it's").text, literal(Fraction(1, 10)).text, literal(-3).text, literal(None).text
    ("'it''s'", '0.1e0', '(-3)', 'NULL')
    """
    if value is None:
        return Sql("NULL", "null", atom=True)
    if isinstance(value, bool):
        return Sql("TRUE" if value else "FALSE", "bool", atom=True)
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return Sql(f"({value})" if value < 0 else str(value), "int", atom=True, constant=value)
    if isinstance(value, (int, Fraction, float)):
        number = nearest(value)
        return Sql(double_text(number), "real", atom=True, nan=math.isnan(number), constant=value)
    if isinstance(value, str):
        return Sql(_string(value), "text", atom=True, constant=value)
    if isinstance(value, datetime.datetime):
        return Sql(f"CAST('{value.isoformat(sep=' ')}' AS TIMESTAMP)", "timestamp", atom=True)
    if isinstance(value, datetime.date):
        return Sql(f"CAST('{value.isoformat()}' AS DATE)", "date", atom=True)
    raise TypeError("a constant of this type cannot be printed")


def nearest(value: int | float | Fraction) -> float:
    """The nearest double; an infinity beyond the largest one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def double_text(number: float) -> str:
    """A double that reads back as itself: with an exponent, because DuckDB reads 0.1 as a decimal.

    >>> double_text(0.1), double_text(-1e300), double_text(float("inf"))
    ('0.1e0', '(-1e+300)', "CAST('inf' AS DOUBLE)")
    """
    if math.isnan(number):
        return NAN
    if math.isinf(number):
        return INF if number > 0 else f"(-{INF})"
    text = repr(abs(number))
    text = text if "e" in text else text + "e0"
    return f"(-{text})" if math.copysign(1.0, number) < 0 else text


def _string(value: str) -> str:
    parts = ["'" + part.replace("'", "''") + "'" for part in value.split("\0")]
    return parts[0] if len(parts) == 1 else "(" + " || chr(0) || ".join(parts) + ")"


def made(text: str, kind: str, *arguments: Sql, nan: bool = False) -> Sql:
    """An expression over arguments: it needs as many stages as they do."""
    return Sql(text, kind, nan=nan, level=max((argument.level for argument in arguments), default=0))


def double(x: Sql) -> Sql:
    """The number as a double."""
    if x.constant is not None and not isinstance(x.constant, str):
        number = nearest(x.constant)
        return Sql(double_text(number), "real", atom=True, nan=math.isnan(number), constant=x.constant)
    if x.kind == "real":
        return x
    return made(f"CAST({x.text} AS DOUBLE)", "real", x)
