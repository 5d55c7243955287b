"""Takes every path and every frame, and whatever no other backend takes: opening says what is wrong with it."""

from __future__ import annotations

import glob
import os
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from dither.catalog.check import is_csv
from dither.catalog.draft import Found, Keys
from dither.catalog.reading import DEFAULT, Read
from dither.catalog.report import TableReport
from dither.catalog.values import Catalog
from dither.engines.base import Backend, Places, Progress
from dither.engines.duckdb.delimited import DAMAGED
from dither.engines.duckdb.engine import interruptible
from dither.engines.duckdb.guesses import guess
from dither.engines.duckdb.keys import stored_keys
from dither.engines.duckdb.report import report_data
from dither.engines.duckdb.sources import Sources, open_catalog, schema
from dither.errors import CatalogError


@dataclass(frozen=True)
class DuckDBBackend(Backend):
    """Opens paths and frames in DuckDB, and refuses other sources."""

    threads: int | None = None
    memory_limit: str | None = None
    name: str = "DuckDB"
    leaves_out: bool = True

    def takes(self, source: Any) -> bool:
        """Takes every source that no other backend takes; `open` refuses those that are neither path nor frame."""
        return True

    def schema(self, source: Any, read: Read = DEFAULT) -> dict[str, str]:
        """Returns column names and kinds. Reads no row."""
        return schema(source, read)

    def open(self, catalog: Catalog, progress: Progress | None = None) -> Sources:
        """Opens all sources in one connection. Ctrl-C raises KeyboardInterrupt."""
        return interruptible(
            lambda: open_catalog(catalog, threads=self.threads, memory_limit=self.memory_limit, progress=progress)
        )

    def settings(self, source: Any) -> Found:
        """Returns how a CSV file is written; nothing for another source."""
        if not is_csv(source):
            return Found()
        file = source if os.path.isfile(source) else next(iter(sorted(glob.glob(source))), source)
        try:
            return guess(file)
        except DAMAGED:  # reading its schema says so
            return Found()

    def keys(self, places: Places) -> AbstractContextManager[Keys | None]:
        return stored_keys(places)

    def report(self, catalog: Catalog, progress: Progress | None = None) -> tuple[tuple[TableReport, ...], CatalogError | None]:
        return report_data(catalog, progress)
