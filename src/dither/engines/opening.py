"""Holds the rules of opening a catalog in any engine: which columns identify, which must be unique, which values are public.

Each engine reads its tables in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from dither.catalog.check import UNSUPPORTED, complete, schema_faults
from dither.catalog.rules import Fault, fits_key
from dither.catalog.values import Catalog, Key, Table
from dither.engines.sql.work import ROWS
from dither.errors import CatalogError

NOTHING = "no column"  # a table needs a column, even if only the number of rows matters
MOST_FOUND = 10_000  # values of a public column; more are not listed as keys
_KEY_KINDS = ("int", "text", "bool", "date")
Column = tuple[str, str]  # a table and its column


def completed(catalog: Catalog, schemas: Mapping[str, Mapping[str, str]]) -> Catalog:
    """Returns the catalog with the kind of every usable column, or raises an error that names every fault."""
    faults = schema_faults(catalog.tables, schemas)
    faults += [
        Fault(
            ("tables", name, "rows"), f"{name} has more than 2^40 rows, for which no sum is proved to fit.", "divide the table."
        )
        for name, table in catalog.tables.items()
        if max(table.rows.public or 0, table.rows.at_least or 0) > ROWS
    ]
    if faults:
        raise CatalogError([(None, fault.what, fault.fix) for fault in faults])
    return complete(catalog, schemas)


def kinds_of(catalog: Catalog) -> dict[str, dict[str, str]]:
    """Returns the usable columns of each table and their kinds. A table without columns gets an empty one."""
    schemas = {}
    for name, table in catalog.tables.items():
        kinds = {column: facts.kind or UNSUPPORTED for column, facts in table.columns.items()}
        schemas[name] = kinds or {NOTHING: "int"}
    return schemas


def identifying(catalog: Catalog, name: str) -> frozenset[str]:
    """Returns the columns of a table that identify a unit or a row."""
    table = catalog.tables[name]
    referenced = [other.unit.references for other in catalog.tables.values() if other.unit and other.unit.references]
    referenced += [other.edges.listing for other in catalog.tables.values() if other.edges and other.edges.listing]
    named = [table.unit and table.unit.column, table.key, *(column for parent, column in referenced if parent == name)]
    named += table.edges.ends if table.edges else ()
    return frozenset(column for column in named if column)


def check_unique(catalog: Catalog, doubled: Callable[[str, str], int]) -> None:
    """Refuses referenced columns and declared keys that are not unique. The error names no value and no number.

    `doubled`: how many values a table's column has more than once.
    """
    keys = {(name, table.key): "" for name, table in catalog.tables.items() if table.key}
    for name, table in catalog.tables.items():
        if table.unit and table.unit.references:
            keys[table.unit.references] = f", and {name} refers to it"
    problems: list[tuple[int | None, str, str]] = []
    diagnosis = []
    for (name, column), use in keys.items():
        count = doubled(name, column)
        if count:
            what = f"{name}.{column} is not unique{use}."
            problems.append((None, what, "keep one row for each, or refer to a unique column."))
            diagnosis.append(f"{count:,} values of {name}.{column} stand in more than one row.")
    if problems:
        raise CatalogError(problems, diagnosis=diagnosis)


def with_found(table: Table, different: Callable[[str, int], list[Key]]) -> Table:
    """Returns a table, with the values of its columns if it is public: they are public keys. Reads no private table.

    `different`: so many different values of a column at most, NULL among them.
    """
    if not table.public:
        return table
    columns = dict(table.columns)
    for column, facts in columns.items():
        if facts.kind in _KEY_KINDS and facts.values is None and facts.low is None and facts.high is None:
            columns[column] = replace(facts, found=_keys(different(column, MOST_FOUND + 2)))
    return replace(table, columns=columns)


def _keys(rows: list[Key]) -> tuple[Key, ...] | None:
    """Returns different values in order, NULL last; None if they are too many, or not all can be keys."""
    values = [value for value in rows if value is not None]
    if not 0 < len(values) <= MOST_FOUND or not all(map(fits_key, values)):
        return None
    return (*sorted(values), *((None,) if len(values) < len(rows) else ()))
