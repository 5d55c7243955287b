"""The text of a table's view: the declared columns in their kinds, and the statements that read all of it once.

A decimal in a column of kind int is rounded, except where the column says who or which row it is: two people must never
become one, so there only what is a whole number as it stands is read. What does not cast at all is NULL.

A text cell of more than `longest` characters is NULL, so that no cell makes a question take long; where the column says who
or which row it is, its row is left out. It is never cut, which could make one person of two. Most tables have no such cell.
There the guard would only cost time, so a view goes without it once its files were read and none was found.
"""

from __future__ import annotations

from collections.abc import Iterator

from dither.engines.duckdb_text import TYPES, identifier
from dither.engines.files import Placed
from dither.query.catalog import Catalog, ColumnFacts, Table

NOTHING = "no column"  # a view needs one, even where only the number of rows matters
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
    """The rows of a table as questions see them. `guarded`: without texts that are too long."""
    listed, conditions = [], []
    for name, facts in table.columns.items():
        read = (_read_exactly if name in exact else _read_as)(_stored(name, source), source.types[name], facts.kind or "")
        if guarded and facts.kind == "text":
            if name in exact:
                conditions.append(f"({read} IS NULL OR {_short(read, facts)})")
            else:
                read = f"CASE WHEN {_short(read, facts)} THEN {read} END"
        listed.append(f"{read} AS {identifier(name)}")
    columns = ", ".join(listed) or f"CAST(NULL AS BIGINT) AS {identifier(NOTHING)}"
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {columns} FROM {source.sql}{where}"


def whole(table: Table, text: str) -> str:
    """Reads every value of a view; says whether a text is too long. A hash needs the value, so nothing of it can be skipped."""
    hashes = [f"bit_xor(hash({identifier(name)}))" for name in table.columns]
    texts = [(identifier(name), facts) for name, facts in table.columns.items() if facts.kind == "text"]
    long = " OR ".join(f"coalesce(bool_or(NOT {_short(name, facts)}), FALSE)" for name, facts in texts) or "FALSE"
    return f"SELECT {', '.join((long, *hashes))} FROM ({text})"


def filtered(table: Table, text: str) -> Iterator[str]:
    """Reads each column as a filter does, which looks at the statistics of a file, too."""
    for name, facts in table.columns.items():
        yield f"SELECT count(*) FROM ({text}) WHERE {identifier(name)} = {_SOMETHING[facts.kind or 'text']}"


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
    wanted = TYPES[kind]
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
