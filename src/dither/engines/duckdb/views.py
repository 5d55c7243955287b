"""The text of a table's view: the declared columns in their kinds, and the statements that read all of it once.

A decimal in a column of kind int is rounded, except where the column says who or which row it is: two people must never
become one, so there only what is a whole number as it stands is read. What does not cast at all is NULL.

A text cell of more than `longest` characters is NULL, so that no cell makes a question take long; where the column says who
or which row it is, its row is left out. It is never cut, which could make one person of two. A decimal of more digits than
its type says is NULL, too. Most tables have neither. There the guards would only cost time, so a view goes without them once
its files were read and nothing was found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dither.catalog.values import Catalog, ColumnFacts, Table
from dither.engines.duckdb.dialect import DIALECT, identifier
from dither.engines.duckdb.files import Placed

NOTHING = "no column"  # a view needs one, even where only the number of rows matters
_FIT = "all values fit"  # no column of a table that SQL can name alike: names with spaces are the data's own, and quoted
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_SMALL = ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER")
_ALWAYS_FITS = {(stored, kind) for stored in _SMALL for kind in ("int", "real")} | {("BIGINT", "real"), ("FLOAT", "real")}
_SOMETHING = {
    "int": "0",
    "real": "0e0",
    "text": "''",
    "bool": "TRUE",
    "date": "CAST('2000-01-01' AS DATE)",
    "timestamp": "CAST('2000-01-01' AS TIMESTAMP)",
}


def identifying(catalog: Catalog, name: str) -> frozenset[str]:
    """The columns of a table that say whose row it is, or which row."""
    table = catalog.tables[name]
    referenced = [other.unit.references for other in catalog.tables.values() if other.unit and other.unit.references]
    named = [table.unit and table.unit.column, table.key, *(column for parent, column in referenced if parent == name)]
    return frozenset(column for column in named if column)


def view(table: Table, source: Placed, exact: frozenset[str], *, guarded: bool) -> str:
    """The rows of a table as questions see them. `guarded`: without what does not fit and DuckDB would let pass."""
    columns, conditions = _columns(table, source, exact, guarded)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {columns} FROM {source.sql}{where}"


def whole(table: Table, source: Placed, exact: frozenset[str], *, guarded: bool) -> str:
    """Reads every value of a view; says whether it needs guards. A hash needs the value, so nothing of it can be skipped."""
    columns, conditions = _columns(table, source, exact, guarded)
    fits = " AND ".join(_fits(table, source)) if not guarded else ""
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    hashes = [f"bit_xor(hash({identifier(name)}))" for name in table.columns]
    listed = ", ".join((f"coalesce(bool_or(NOT {identifier(_FIT)}), FALSE)", *hashes))
    return f"SELECT {listed} FROM (SELECT {columns}, ({fits or 'TRUE'}) AS {identifier(_FIT)} FROM {source.sql}{where})"


def filtered(table: Table, text: str) -> Iterator[str]:
    """Reads each column as a filter does, which looks at the statistics of a file, too."""
    for name, facts in table.columns.items():
        yield f"SELECT count(*) FROM ({text}) WHERE {identifier(name)} = {_SOMETHING[facts.kind or 'text']}"


def _columns(table: Table, source: Placed, exact: frozenset[str], guarded: bool) -> tuple[str, list[str]]:
    """What is selected, and the conditions under which a row is there at all."""
    listed, conditions = [], []
    for name, facts in table.columns.items():
        column, stored = _stored(name, source), source.types[name]
        if guarded and (within := _within(column, stored)):
            column = f"(CASE WHEN {within} THEN {column} END)"
        read = (_read_exactly if name in exact else _read_as)(column, stored, facts.kind or "")
        if guarded and facts.kind == "text":
            if name in exact:
                conditions.append(f"({read} IS NULL OR {_short(read, facts)})")
            else:
                read = f"(CASE WHEN {_short(read, facts)} THEN {read} END)"
        listed.append(f"{read} AS {identifier(name)}")
    return ", ".join(listed) or f"CAST(NULL AS BIGINT) AS {identifier(NOTHING)}", conditions


def _fits(table: Table, source: Placed) -> Iterator[str]:
    """Conditions that hold of a row, or are NULL, where guards would change nothing."""
    for name, facts in table.columns.items():
        column, stored = _stored(name, source), source.types[name]
        if within := _within(column, stored):
            yield f"coalesce({within}, TRUE)"
        if facts.kind == "text":
            yield f"coalesce({_short(_read_as(column, stored, 'text'), facts)}, TRUE)"


def _within(column: str, stored: str) -> str:
    """Whether a decimal has no more digits than its type says. Files may hold more, which readers read differently."""
    parts = _DECIMAL.fullmatch(stored)
    if parts is None:
        return ""
    precision, scale = map(int, parts.groups())
    digits = "9" * (precision - scale) + ("." + "9" * scale if scale else "")
    return f"{column} BETWEEN CAST('-{digits}' AS {stored}) AND CAST('{digits}' AS {stored})"


def _short(text: str, facts: ColumnFacts) -> str:
    """At most `longest` characters. A character has at most four bytes, so nearly all cells are settled by their bytes."""
    most = facts.longest
    return f"(strlen({text}) <= {most} OR (strlen({text}) <= {4 * most} AND length({text}) <= {most}))"


def _stored(name: str, source: Placed) -> str:
    """A column, its texts equal only where they are the same. A table may have been made so that 'a' = 'A' in one column: then
    groups and joins would go by rules that differ from column to column, and one row could be two, or take another's group."""
    return f"{identifier(name)} COLLATE C" if source.collated and source.types[name] == "VARCHAR" else identifier(name)


def _read_as(column: str, stored: str, kind: str) -> str:
    """A stored column in its declared kind. TRY_CAST makes NULL of what does not fit; a cast that always fits is cheaper."""
    wanted = DIALECT.types[kind]
    if stored == wanted:
        return column
    return f"CAST({column} AS {wanted})" if (stored, kind) in _ALWAYS_FITS else f"TRY_CAST({column} AS {wanted})"


def _read_exactly(column: str, stored: str, kind: str) -> str:
    """The same where different stored values must stay different: NULL unless the value says what was stored, no less."""
    read = _read_as(column, stored, kind)
    if read == column or (stored, kind) in _ALWAYS_FITS:
        return read
    if stored in ("FLOAT", "DOUBLE") or stored.startswith("DECIMAL"):
        # Beyond 2^53 neighbouring whole numbers are one double.
        number = f"TRY_CAST({column} AS DOUBLE)" if stored in ("FLOAT", "DOUBLE") else column
        same = f"{column} = trunc({column}) AND abs({number}) <= {2**53}"
    else:
        same = f"TRY_CAST({read} AS {stored}) = {column}"
    return f"(CASE WHEN {same} THEN {read} END)"
