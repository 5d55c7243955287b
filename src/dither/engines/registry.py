"""Finds the engine that opens a source: the first backend that takes it. The last backend takes every source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dither.catalog.reading import DEFAULT, Read
from dither.catalog.values import Catalog
from dither.engines.base import Backend, Opened, Progress
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


def open_sources(catalog: Catalog, progress: Progress | None = None) -> Opened:
    """Opens a catalog with the one engine that reads all of its sources."""
    backends = [(name, backend_for(table.source)) for name, table in catalog.tables.items()]
    first, chosen = backends[0] if backends else ("", _backends[-1])
    for name, backend in backends:
        if backend is not chosen:
            what = f"{first} is read by {chosen.name} and {name} by {backend.name}, and one question cannot ask both."
            raise CatalogError([(None, what, "keep all tables of a catalog in one place.")])
    return chosen.open(catalog, progress)
