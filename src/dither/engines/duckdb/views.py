"""Prints the view of a table: the declared columns in their kinds, and the statements that read all of it once.

A decimal in a column of kind int is rounded, except in identifying columns (the unit, a key). Rounding could make one person of
two, so there only whole numbers are read. A value that cannot be cast is NULL.

A text cell of more than `longest` characters is NULL, so that no cell makes a question slow. In an identifying column its row
is left out; it is never cut, which could make one person of two. A decimal of more digits than its type allows is NULL, too.
Most tables have neither. There the guards would only cost time, so a view has none after its files were read and needed none.

A table with `most_rows` is always guarded and copied, whatever its rows: how it is read, and so the time of other questions,
depends on no cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dither.catalog.reading import AS_IS, Cells
from dither.catalog.values import ColumnFacts, Table
from dither.engines.duckdb.cells import cleaned, formed, is_formed, settings
from dither.engines.duckdb.dialect import DIALECT, identifier
from dither.engines.duckdb.files import SqlSource
from dither.engines.opening import NOTHING

_FIT = "all values fit"
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


def view(table: Table, source: SqlSource, exact: frozenset[str], *, guarded: bool) -> str:
    """Prints the rows of a table as questions see them. `guarded`: without values that do not fit but DuckDB lets pass."""
    columns, conditions = _columns(table, source, exact, guarded)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {columns} FROM {source.sql}{where}"


def kept(table: Table, text: str, secret: bytes) -> str:
    """Prints the rows of a view without those of a unit beyond `most_rows`, chosen by a keyed hash of the unit's own rows.

    Equal rows have equal hashes, and it does not matter which of them stays."""
    if table.most_rows is None or table.unit is None:
        return text
    first, last = int.from_bytes(secret[:8], "big"), int.from_bytes(secret[8:16], "big")
    unit, columns = identifier(table.unit.column), ", ".join(map(identifier, table.columns))
    hashed = f"hash(hash({first}::UBIGINT, {columns}), {last}::UBIGINT)"
    heavy = f"SELECT {unit} AS u FROM r WHERE {unit} IS NOT NULL GROUP BY u HAVING count(*) > {table.most_rows}"
    return (
        f"WITH r AS ({text}), h AS MATERIALIZED ({heavy}) "
        f"SELECT {columns} FROM r WHERE {unit} IS NULL OR {unit} NOT IN (SELECT u FROM h) UNION ALL "
        f"SELECT {columns} FROM r WHERE {unit} IN (SELECT u FROM h) "
        f"QUALIFY row_number() OVER (PARTITION BY {unit} ORDER BY {hashed}, {columns}) <= {table.most_rows}"
    )


def whole(table: Table, source: SqlSource, exact: frozenset[str], *, guarded: bool) -> str:
    """Prints a query that reads every value of a view and returns whether it needs guards. It hashes the values, so that
    DuckDB cannot skip any."""
    columns, conditions = _columns(table, source, exact, guarded)
    fits = " AND ".join(_fits(table, source)) if not guarded else ""
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    hashes = [f"bit_xor(hash({identifier(name)}))" for name in table.columns]
    listed = ", ".join((f"coalesce(bool_or(NOT {identifier(_FIT)}), FALSE)", *hashes))
    return f"SELECT {listed} FROM (SELECT {columns}, ({fits or 'TRUE'}) AS {identifier(_FIT)} FROM {source.sql}{where})"


def filtered(table: Table, text: str) -> Iterator[str]:
    """Prints queries that read each column through a filter, which also uses a file's statistics."""
    for name, facts in table.columns.items():
        yield f"SELECT count(*) FROM ({text}) WHERE {identifier(name)} = {_SOMETHING[facts.kind or 'text']}"


def _columns(table: Table, source: SqlSource, exact: frozenset[str], guarded: bool) -> tuple[str, list[str]]:
    """Returns the selected columns, and the conditions that a row must meet."""
    listed, conditions = [], []
    for name, facts in table.columns.items():
        column, stored = _stored(name, source), source.types[name]
        if guarded and (within := _within(column, stored)):
            column = f"(CASE WHEN {within} THEN {column} END)"
        read = _read(table, source, name, column, name in exact)
        if guarded and facts.kind == "text":
            if name in exact:
                conditions.append(f"({read} IS NULL OR {_short(read, facts)})")
            else:
                read = f"(CASE WHEN {_short(read, facts)} THEN {read} END)"
        listed.append(f"{read} AS {identifier(name)}")
    return ", ".join(listed) or f"CAST(NULL AS BIGINT) AS {identifier(NOTHING)}", conditions


def stored_and_read(table: Table, source: SqlSource, exact: frozenset[str]) -> dict[str, tuple[str, str, str]]:
    """Prints each column as stored, without words for NULL; as read, without guards; and the test that it is not too long."""
    printed, typed = {}, typed_columns(table, source)
    for name, facts in table.columns.items():
        column, cells = _stored(name, source), _settings(table, source, name)
        stored = column if cells == AS_IS else cleaned(f"CAST({column} AS VARCHAR)", cells)
        stored = f"coalesce({stored}, {identifier(typed[name])})" if name in typed else stored
        read = _read(table, source, name, column, name in exact)
        printed[name] = (stored, read, _short(read, facts) if facts.kind == "text" else "TRUE")
    return printed


def has_settings(table: Table, source: SqlSource) -> bool:
    """Whether a column of text is read by settings of the catalog."""
    return any(_settings(table, source, name) != AS_IS for name in table.columns)


def typed_columns(table: Table, source: SqlSource) -> dict[str, str]:
    """Returns the columns whose cells that are not text are needed in a column of their own."""
    return {
        name: other
        for name, other in source.typed.items()
        if name in table.columns and is_formed(_settings(table, source, name))
    }


def _settings(table: Table, source: SqlSource, name: str) -> Cells:
    text = source.types[name] == "VARCHAR" or source.types[name].startswith("ENUM")
    return settings(table, table.columns[name]) if text else AS_IS


def _read(table: Table, source: SqlSource, name: str, column: str, exact: bool) -> str:
    """Prints a column in its declared kind, by its settings."""
    cells, stored, kind = _settings(table, source, name), source.types[name], table.columns[name].kind or ""
    plain = _read_exactly if exact else _read_as
    if cells == AS_IS:
        return plain(column, stored, kind)
    text = cleaned(column if stored == "VARCHAR" else f"CAST({column} AS VARCHAR)", cells)
    if not is_formed(cells):
        return plain(text, "VARCHAR", kind)
    read = formed(text, kind, cells, exact=exact)
    if name not in source.typed:
        return read
    other = identifier(source.typed[name])
    return f"(CASE WHEN {other} IS NOT NULL THEN {plain(other, 'VARCHAR', kind)} ELSE {read} END)"


def _fits(table: Table, source: SqlSource) -> Iterator[str]:
    """Yields conditions that are all true of a row if guards would not change it."""
    for name, facts in table.columns.items():
        column, stored = _stored(name, source), source.types[name]
        if within := _within(column, stored):
            yield f"coalesce({within}, TRUE)"
        if facts.kind == "text":
            yield f"coalesce({_short(_read_as(column, stored, 'text'), facts)}, TRUE)"


def _within(column: str, stored: str) -> str:
    """Prints the test that a decimal has no more digits than its type allows. Files may hold more; readers then differ."""
    parts = _DECIMAL.fullmatch(stored)
    if parts is None:
        return ""
    precision, scale = map(int, parts.groups())
    digits = "9" * (precision - scale) + ("." + "9" * scale if scale else "")
    return f"{column} BETWEEN CAST('-{digits}' AS {stored}) AND CAST('{digits}' AS {stored})"


def _short(text: str, facts: ColumnFacts) -> str:
    """Prints the test for at most `longest` characters. The number of bytes decides for nearly all cells."""
    most = facts.longest
    return f"(strlen({text}) <= {most} OR (strlen({text}) <= {4 * most} AND length({text}) <= {most}))"


def _stored(name: str, source: SqlSource) -> str:
    """Prints a column with binary collation. A table may declare that 'a' = 'A' in one column. Then groups and joins would
    follow rules that differ between columns, and one row could become two, or take another row's group."""
    return f"{identifier(name)} COLLATE C" if source.collated and source.types[name] == "VARCHAR" else identifier(name)


def _read_as(column: str, stored: str, kind: str) -> str:
    """Prints a stored column in its declared kind. TRY_CAST gives NULL for values that do not fit; CAST is cheaper."""
    type = DIALECT.types[kind]
    if stored == type:
        return column
    return f"CAST({column} AS {type})" if (stored, kind) in _ALWAYS_FITS else f"TRY_CAST({column} AS {type})"


def _read_exactly(column: str, stored: str, kind: str) -> str:
    """Prints the same for columns whose different stored values must stay different: NULL unless the cast loses nothing."""
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
