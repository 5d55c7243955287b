"""Prints stored columns of Spark in their declared kinds. No stored value can make it fail.

    tinyint smallint int bigint    int
    float double decimal(p,s)      real
    string varchar char            text, compared by its bytes whatever its collation; NULL if it is not UTF-8
    boolean                        bool
    date                           date
    timestamp_ntz timestamp        timestamp; an instant in UTC
    others, such as arrays         cannot be used

A column may be declared as another kind (READ_AS in catalog/check.py). Text is read in plain spellings only (casts.py).
A value that does not fit is NULL. In a column that identifies, different stored values stay different or are NULL. Dates
outside the years 1 to 9999 are NULL where a question reads them (`Dialect.scan`).

A text of more than `longest` characters is NULL, so that no cell makes a question slow. In a column that identifies, its row is
left out; it is never cut, which could make one person of two.
"""

from __future__ import annotations

from dataclasses import dataclass

from dither.catalog.check import UNSUPPORTED
from dither.catalog.values import ColumnFacts
from dither.engines.spark.dialect import SparkDialect
from dither.query.functions.casts import DATE_TEXT, MOMENT_TEXT, REAL_TEXT, WHOLE_TEXT

DIALECT = SparkDialect({})
_KINDS = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "int"),
    **dict.fromkeys(("float", "double", "decimal"), "real"),
    **dict.fromkeys(("string", "varchar", "char"), "text"),
    "boolean": "bool",
    "date": "date",
    **dict.fromkeys(("timestamp", "timestamp_ntz"), "timestamp"),
}
_LONGEST_NUMBER = 64  # characters: texts of numbers and dates are shorter


def kind_of(type: str) -> str:
    """Returns the kind of a type.

    >>> kind_of("decimal(10,2)"), kind_of("string collate UNICODE_CI"), kind_of("array<int>")
    ('real', 'text', 'unsupported')
    """
    return _KINDS.get(type.partition("(")[0].partition(" ")[0], UNSUPPORTED)


@dataclass(frozen=True)
class Reading:
    """How a column is read. `keep`: the test of rows that are not left out. `plain`: how it is read if `fits` holds for all
    rows, which saves time in every question; "" if there is no such way."""

    text: str
    keep: str = ""
    plain: str = ""
    fits: str = ""


def read_column(name: str, type: str, facts: ColumnFacts, *, exact: bool) -> Reading:
    """Prints a stored column in its kind. `exact`: it identifies."""
    column, stored = DIALECT.identifier(name), kind_of(type)
    kind = facts.kind or stored
    if stored == "text":
        return _read_text(column, type, facts, kind, exact)
    if stored == "real" and kind == "int":
        return Reading(_whole(column, decimal=type.startswith("decimal"), exact=exact))
    if exact and stored == "timestamp" and kind == "date":  # two moments of a day would be one person
        return Reading(f"(CASE WHEN {column} = date_trunc('DAY', {column}) THEN CAST({column} AS DATE) END)")
    return Reading(column if type.upper() == DIALECT.type(kind) else f"CAST({column} AS {DIALECT.type(kind)})")


def _whole(column: str, *, decimal: bool, exact: bool) -> str:
    """Reads a number with a fraction as a whole one: the nearest, or if it identifies, only whole ones that a double can tell
    from their neighbours."""
    if decimal:
        number = f"try_cast(round({column}, 0) AS BIGINT)"
        return f"(CASE WHEN {column} = round({column}, 0) THEN {number} END)" if exact else number
    value = f"CAST({column} AS DOUBLE)"
    inside = f"{value} >= {DIALECT.double(-(2.0**63))} AND {value} < {DIALECT.double(2.0**63)}"
    if exact:
        inside = f"abs({value}) <= {DIALECT.double(2.0**53)} AND {value} = rint({value})"
    return f"(CASE WHEN {inside} THEN CAST(rint({value}) AS BIGINT) END)"


def _read_text(column: str, type: str, facts: ColumnFacts, kind: str, exact: bool) -> Reading:
    plain = column if type == "string" else f"CAST({column} COLLATE UTF8_BINARY AS STRING)"
    text = f"try_validate_utf8({plain})"
    if kind != "text":
        short = f"octet_length({plain}) <= {_LONGEST_NUMBER}"
        return Reading(f"(CASE WHEN {short} THEN {_parsed(text, kind, exact)} END)")
    most = facts.longest
    short = f"(octet_length({plain}) <= {most} OR (octet_length({plain}) <= {4 * most} AND length({plain}) <= {most}))"
    fits = f"({plain} IS NULL OR ({short} AND is_valid_utf8({plain})))"
    if exact:
        return Reading(text, f"({plain} IS NULL OR {short})", plain, fits)
    return Reading(f"(CASE WHEN {short} THEN {text} END)", "", plain, fits)


def _parsed(text: str, kind: str, exact: bool) -> str:
    """Reads text in a plain spelling as another kind. If it identifies, only the shortest spelling of a value is read: '7' and
    '07' would be one person."""

    def fits(pattern: str) -> str:
        return f"(CASE WHEN {DIALECT.fits(text, pattern)} THEN {DIALECT.read(text, kind)} END)"

    if kind == "bool":
        word = text if exact else f"lower({text})"
        return f"(CASE {word} WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END)"
    if kind in ("int", "real"):
        return fits("0|-?[1-9][0-9]{0,17}" if exact and kind == "int" else WHOLE_TEXT if kind == "int" else REAL_TEXT)
    days = DATE_TEXT.partition("(")[0]
    if kind == "timestamp":
        return fits(MOMENT_TEXT if exact else DATE_TEXT)
    date = DIALECT.read(f"substring({text}, 1, 10)", "date")
    return f"(CASE WHEN {DIALECT.fits(text, days if exact else DATE_TEXT)} THEN {date} END)"
