"""Tells from the data which columns have no value twice and whose values they hold: for the curator who drafts a catalog.

Nothing of it reaches a question, a ledger or another person. A draft proposes references by it; opening checks them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from duckdb import DuckDBPyConnection

from dither.catalog.reading import Read
from dither.catalog.values import Budget, Catalog, ColumnFacts, Table
from dither.engines.duckdb.dialect import identifier
from dither.engines.duckdb.sources import open_catalog

_NEARLY = 0.95  # the share of values that must be in the referenced column: some rows point to nothing
End = tuple[str, str]


class StoredKeys:
    """The key columns of open tables. Each comparison is computed once."""

    def __init__(self, connection: DuckDBPyConnection) -> None:
        self._connection = connection
        self._unique: dict[End, bool] = {}

    def unique(self, end: End) -> bool:
        """Whether the column has values, and none of them twice."""
        if end not in self._unique:
            table, column = map(identifier, end)
            counts = f"SELECT count(*), count({column}), count(DISTINCT {column}) FROM {table}"
            ((rows, filled, different),) = self._connection.execute(counts).fetchall()
            self._unique[end] = filled == different and (filled > 0 or not rows)
        return self._unique[end]

    def held(self, child: End, parent: End) -> bool:
        """Whether nearly all values of the child's column are in the parent's."""
        (table, column), (other, target) = map(identifier, child), map(identifier, parent)
        found = f"count(*) FILTER ({column} IN (SELECT {target} FROM {other}))"
        ((filled, held),) = self._connection.execute(f"SELECT count({column}), {found} FROM {table}").fetchall()
        return bool(held >= _NEARLY * filled)


@contextmanager
def stored_keys(places: Mapping[str, tuple[Any, Read, Mapping[str, str]]]) -> Iterator[StoredKeys]:
    """Opens the key columns of some tables: by name, the source, how it is read and the kind of each column."""
    tables = {
        name: Table(source, unit="row", columns={column: ColumnFacts(kind=kind) for column, kind in kinds.items()}, read=read)
        for name, (source, read, kinds) in places.items()
    }
    opened = open_catalog(Catalog(tables, Budget(1)))
    try:
        yield StoredKeys(opened.connection)
    finally:
        opened.close()
