"""Finds the engine that opens a source: the first backend that takes it. The last backend takes every source."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from dither.catalog.check import is_csv
from dither.catalog.draft import Found, Keys
from dither.catalog.reading import DEFAULT, Read
from dither.catalog.report import TableReport
from dither.catalog.values import Catalog
from dither.engines.base import Backend, Opened, Progress
from dither.engines.duckdb.delimited import DAMAGED
from dither.engines.duckdb.guesses import guess
from dither.engines.duckdb.keys import stored_keys
from dither.engines.duckdb.report import report_data
from dither.engines.duckdb.sources import DuckDBBackend
from dither.errors import CatalogError

_backends: tuple[Backend, ...] = (DuckDBBackend(),)


def register(backend: Backend) -> None:
    """Puts this backend before all others, in this process."""
    global _backends
    _backends = (backend, *_backends)


@contextmanager
def registered(backend: Backend) -> Iterator[None]:
    """Puts this backend before all others, inside the block. Catalogs opened there stay open."""
    global _backends
    register(backend)
    try:
        yield
    finally:
        _backends = tuple(other for other in _backends if other is not backend)


def backend_for(source: Any) -> Backend:
    """Returns the backend that reads a source."""
    return next(backend for backend in _backends if backend.takes(source))


def read_schema(source: Any, read: Read = DEFAULT) -> Mapping[str, str]:
    """Returns the column names and kinds of a source. Reads no row."""
    return backend_for(source).schema(source, read)


def find_settings(source: str) -> Found:
    """Returns how a CSV file is written, as far as its first rows show, for the curator only; nothing for another source."""
    if not is_csv(source) or not isinstance(backend_for(source), DuckDBBackend):
        return Found()
    file = source if os.path.isfile(source) else next(iter(sorted(glob.glob(source))), source)
    try:
        return guess(file)
    except DAMAGED:  # reading its schema says so
        return Found()


@contextmanager
def read_keys(places: Mapping[str, tuple[Any, Read, Mapping[str, str]]]) -> Iterator[Keys | None]:
    """Yields what the data says of key columns, by table its source, how it is read and their kinds; None where it cannot be
    read. For the curator only."""
    embedded = all(isinstance(backend_for(source), DuckDBBackend) for source, *_ in places.values())
    try:
        keys = stored_keys(places) if embedded else nullcontext()
        found = keys.__enter__()
    except CatalogError:  # such as a line of a CSV that is no row: opening the catalog says so
        yield None
        return
    try:
        yield found
    finally:
        keys.__exit__(None, None, None)


def read_report(catalog: Catalog, progress: Progress | None = None) -> tuple[tuple[TableReport, ...], CatalogError | None]:
    """Returns how the rows fit the catalog, for the curator only, and the error if it does not open."""
    if all(isinstance(backend_for(table.source), DuckDBBackend) for table in catalog.tables.values()):
        return report_data(catalog, progress)
    try:
        open_sources(catalog, progress).close()
    except CatalogError as error:
        return (), error
    return (), None


def open_sources(catalog: Catalog, progress: Progress | None = None) -> Opened:
    """Opens a catalog with the one engine that reads all of its sources."""
    backends = [(name, backend_for(table.source)) for name, table in catalog.tables.items()]
    first, chosen = backends[0] if backends else ("", _backends[-1])
    for name, backend in backends:
        if backend is not chosen:
            what = f"{first} is read by {chosen.name} and {name} by {backend.name}, and one question cannot ask both."
            raise CatalogError([(None, what, "keep all tables of a catalog in one place.")])
    return chosen.open(catalog, progress)
