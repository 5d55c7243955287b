"""Takes addresses of PostgreSQL tables. The driver, psycopg, is an extra, and is imported when the first one is opened."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from dither.catalog.draft import Keys
from dither.catalog.reading import DEFAULT, Read
from dither.catalog.report import TableReport
from dither.catalog.values import Catalog
from dither.engines.base import Backend, Opened, Places, Progress
from dither.errors import CatalogError, Fix, Shell

_PREFIXES = ("postgresql://", "postgres://")


@dataclass(frozen=True)
class PostgresBackend(Backend):
    """Opens tables of one PostgreSQL database. Small public tables from elsewhere are uploaded as constants."""

    name: str = "PostgreSQL"
    most_constants: int = 10_000

    def takes(self, source: Any) -> bool:
        return isinstance(source, str) and source.startswith(_PREFIXES)

    def schema(self, source: Any, read: Read = DEFAULT) -> Mapping[str, str]:
        """Returns the column names and kinds of a table. Reads no row."""
        _require_driver()
        from dither.engines.postgres import sources

        return sources.schema(source, read)

    def open(self, catalog: Catalog, progress: Progress | None = None) -> Opened:
        """Opens all tables in one connection."""
        _require_driver()
        from dither.engines.postgres import sources

        return sources.open_catalog(catalog, progress)

    def keys(self, places: Places) -> AbstractContextManager[Keys | None]:
        _require_driver()
        from dither.engines.postgres import report

        return report.stored_keys(places)

    def report(self, catalog: Catalog, progress: Progress | None = None) -> tuple[tuple[TableReport, ...], CatalogError | None]:
        _require_driver()
        from dither.engines.postgres import report

        return report.report_data(catalog, progress)


def _require_driver() -> None:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        fix = Fix("run `{install}`.", install=Shell("pip install 'dither[postgres]'"))
        raise CatalogError([(None, "Tables of PostgreSQL are read by psycopg, which is not installed.", fix)]) from None
