"""Tells from the data which columns have no value twice and whose values they hold: for the curator who drafts a catalog.

Nothing of it reaches a question, a ledger or another person. A draft proposes references by it; opening checks them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dither.catalog.reading import Read
from dither.catalog.values import Budget, Catalog, ColumnFacts, Table
from dither.engines.duckdb.dialect import identifier
from dither.engines.duckdb.sources import open_catalog
from dither.engines.sql.facts import StoredKeys


@contextmanager
def stored_keys(places: Mapping[str, tuple[Any, Read, Mapping[str, str]]]) -> Iterator[StoredKeys]:
    """Opens the key columns of some tables: by name, the source, how it is read and the kind of each column."""
    tables = {
        name: Table(source, unit="row", columns={column: ColumnFacts(kind=kind) for column, kind in kinds.items()}, read=read)
        for name, (source, read, kinds) in places.items()
    }
    opened = open_catalog(Catalog(tables, Budget(1)))
    try:
        yield StoredKeys(lambda text: opened.connection.execute(text).fetchall(), identifier, identifier)
    finally:
        opened.close()
