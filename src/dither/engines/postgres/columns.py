"""Prints stored columns in their declared kinds. No stored value can make it fail.

    int2 int4 int8               int
    float4 float8 numeric        real; a numeric beyond the doubles is infinite, NaN is NULL
    text varchar char(n) name    text, compared by its bytes; char(n) without the blanks at its end
    enum uuid citext             text
    bool                         bool
    date timestamp               date, timestamp; NULL outside the years 1 to 9999, infinite ones too
    timestamptz                  timestamp, in UTC
    domains                      as the type they are made of
    others, such as arrays       cannot be used

A column may be declared as another kind (READ_AS in catalog/check.py). Text is read in plain spellings only (casts.py).
A value that does not fit is NULL. In a column that identifies, different stored values stay different or are NULL.

A text of more than `longest` characters is NULL, so that no cell makes a question slow. In a column that identifies, its row is
left out; it is never cut, which could make one person of two.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass

from dither.catalog.check import UNSUPPORTED
from dither.catalog.values import ColumnFacts
from dither.engines.opening import NOTHING
from dither.engines.postgres.arithmetic import double
from dither.engines.postgres.texts import read_date
from dither.query.functions.casts import DATE_TEXT, MOMENT_TEXT, REAL_TEXT, WHOLE_TEXT

KINDS = {
    **dict.fromkeys(("int2", "int4", "int8"), "int"),
    **dict.fromkeys(("float4", "float8", "numeric"), "real"),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "char", "uuid"), "text"),
    "bool": "bool",
    "date": "date",
    **dict.fromkeys(("timestamp", "timestamptz"), "timestamp"),
}
_ENDS = {
    "date": ("'0001-01-01'::date", "'9999-12-31'::date"),
    "timestamp": ("'0001-01-01'::timestamp", "'9999-12-31 23:59:59.999999'::timestamp"),
    "timestamptz": ("'0001-01-01 00:00:00+00'::timestamptz", "'9999-12-31 23:59:59.999999+00'::timestamptz"),
}
_TOO_LARGE = f"{2**1024 - 2**970}::numeric"  # rounds to 2^1024, which is no double
# Half of the smallest double, all 752 digits of it: it rounds to 0, which PostgreSQL refuses.
_TOO_SMALL = f"'{5**1075}e-1075'::numeric"
_WIDE = 300  # digits that a double's range holds


@dataclass(frozen=True)
class Stored:
    """A stored column. `type`: the name of its type, a domain's base. `modifier`: as in pg_attribute.

    `fixed`: the modifier binds every value, as it does in a table of the database itself.
    """

    name: str
    type: str
    modifier: int = -1
    fixed: bool = False
    computed: bool = False  # when it is read
    readable: bool = True  # by this role

    @property
    def kind(self) -> str:
        return KINDS.get(self.type, UNSUPPORTED)

    @property
    def most_characters(self) -> int | None:
        """The most characters that a value has; None if that is not known."""
        if self.type == "uuid":
            return 36
        if self.type in ("name", "char"):
            return 63
        bound = self.fixed and self.type in ("varchar", "bpchar") and self.modifier > 4
        return self.modifier - 4 if bound else None


@dataclass(frozen=True)
class Reading:
    """How a column is read. `dear`: too much to compute at every use. `keep`: the test of rows that are not left out.

    `bare`: the column without its test for long texts, for questions that leave out all texts but short ones themselves.
    """

    text: str
    dear: bool = False
    keep: str = ""
    bare: str = ""


@dataclass(frozen=True)
class View:
    """A table as questions see it: its declared columns in their kinds. `source`: its rows, for FROM."""

    source: str
    columns: Mapping[str, Reading]
    fenced: bool = False

    def sql(self, bare: Container[str] = ()) -> str:
        """Prints the subselect. `bare`: columns whose long texts the question leaves out itself."""
        read = {name: each.bare if name in bare and each.bare else each.text for name, each in self.columns.items()}
        listed = ", ".join(f"{text} AS {quoted(name)}" for name, text in read.items()) or f"NULL::bigint AS {quoted(NOTHING)}"
        kept = [each.keep for each in self.columns.values() if each.keep]
        where = f" WHERE {' AND '.join(kept)}" if kept else ""
        fence = " OFFSET 0" if self.fenced or any(each.dear for each in self.columns.values()) else ""
        return f"(SELECT {listed} FROM {self.source}{where}{fence})"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def read_column(stored: Stored, facts: ColumnFacts, *, exact: bool) -> Reading:
    """Prints a stored column in its kind. `exact`: it identifies."""
    column, kind = quoted(stored.name), facts.kind or stored.kind
    if stored.kind == "text":
        return _read_text(column, stored, facts, kind, exact)
    if stored.kind in ("date", "timestamp"):
        return _read_date(column, stored.type, kind, exact)
    if stored.kind == "bool":
        return Reading(f"{column}::int::bigint" if kind == "int" else f"{column}::boolean")
    if stored.kind == "int":
        return Reading(f"{column}::float8" if kind == "real" else f"{column}::{stored.type}")
    if kind == "int":
        return Reading(_whole(column, stored.type, exact), dear=True)
    return Reading(f"{column}::float8") if stored.type != "numeric" else _real(column, stored)


def _real(column: str, stored: Stored) -> Reading:
    """Reads a numeric as the nearest double. Most declare how many digits they have, and need no test."""
    digits, scale = (stored.modifier - 4) >> 16 & 0xFFFF, (stored.modifier - 4) & 0x7FF
    if stored.fixed and stored.modifier > 4 and digits <= _WIDE and (scale ^ 1024) - 1024 <= _WIDE and scale < 1024:
        return Reading(f"{column}::float8")
    infinite = f"(CASE WHEN {column} > 0 THEN {double(math.inf)} ELSE {double(-math.inf)} END)"
    small = f"(CASE WHEN abs({column}) <= {_TOO_SMALL} THEN {double(0.0)} ELSE {column}::float8 END)"
    nan = f"{column} = 'NaN'::numeric"
    text = f"(CASE WHEN abs({column}) < {_TOO_LARGE} THEN {small} WHEN {nan} THEN NULL WHEN {column} <> 0 THEN {infinite} END)"
    return Reading(text, dear=True)


def _whole(column: str, type: str, exact: bool) -> str:
    """Reads a number with a fraction as a whole one: the nearest, or if it identifies, only whole ones that a double can tell
    from their neighbours."""
    if type == "numeric":
        inside = f"{column} > -9223372036854775808.5 AND {column} < 9223372036854775807.5"
        number = f"(CASE WHEN {inside} THEN {column}::bigint END)"
        return f"(CASE WHEN {column} = trunc({column}) THEN {number} END)" if exact else number
    value = f"{column}::float8"
    inside = f"{value} >= {double(-(2.0**63))} AND {value} < {double(2.0**63)}"
    if exact:
        inside = f"abs({value}) <= {double(2.0**53)} AND {value} = trunc({value})"
    return f"(CASE WHEN {inside} THEN round({value})::bigint END)"


def _read_date(column: str, type: str, kind: str, exact: bool) -> Reading:
    """Reads a date or a moment. If it identifies, a moment is a date at midnight only: two moments of a day would be one
    person."""
    first, last = _ENDS[type]
    base = f"({column} AT TIME ZONE 'UTC')" if type == "timestamptz" else f"{column}::{type}"
    value = base if kind == type else f"{base}::{kind}"
    if exact and kind == "date" and type != "date":
        value = f"(CASE WHEN {base} = date_trunc('day', {base}) THEN {value} END)"
    return Reading(f"(CASE WHEN {column}::{type} BETWEEN {first} AND {last} THEN {value} END)")


def _read_text(column: str, stored: Stored, facts: ColumnFacts, kind: str, exact: bool) -> Reading:
    text = f'({column}::text COLLATE "C")'
    if stored.type == "char":  # one byte; before PostgreSQL 16 not always a letter
        text = f"(CASE WHEN {column}::int BETWEEN 1 AND 127 THEN {text} END)"
    if kind == "text":
        most = stored.most_characters
        if most is not None and most <= facts.longest:
            return Reading(text)
        short = _short(f"{column}::text", facts.longest)
        if exact:
            return Reading(text, keep=f"({column} IS NULL OR {short})")
        return Reading(f"(CASE WHEN {short} THEN {text} END)", bare=text)
    return Reading(f"(CASE WHEN octet_length({text}) <= 64 THEN {_parsed(text, kind, exact)} END)", dear=True)


def short_text(stored: Stored, facts: ColumnFacts) -> str:
    """Prints the test that a stored text is not too long."""
    return _short(f"{quoted(stored.name)}::text", facts.longest) if facts.kind == stored.kind == "text" else "TRUE"


def _short(text: str, most: int) -> str:
    """Prints the test for at most so many characters. The number of bytes decides for nearly all cells."""
    return f"(octet_length({text}) <= {most} OR (octet_length({text}) <= {4 * most} AND length({text}) <= {most}))"


def _parsed(text: str, kind: str, exact: bool) -> str:
    """Reads text in a plain spelling as another kind. If it identifies, only the shortest spelling of a value is read: '7' and
    '07' would be one person."""

    def fits(pattern: str, read: str) -> str:
        return f"(CASE WHEN {text} ~ '^(?:{pattern})$' THEN {read} END)"

    if kind == "int":
        return fits("0|-?[1-9][0-9]{0,17}" if exact else WHOLE_TEXT, f"{text}::bigint")
    if kind == "real":
        return fits(REAL_TEXT, f"{text}::float8")
    if kind == "bool":
        words = f"(CASE lower({text}) WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END)"
        return f"(CASE {text} WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END)" if exact else words
    days = DATE_TEXT.partition("(")[0]
    if kind == "date":
        return fits(days if exact else DATE_TEXT, read_date(text))
    return fits(MOMENT_TEXT if exact else DATE_TEXT, f"(CASE WHEN {read_date(text)} IS NOT NULL THEN {text}::timestamp END)")
