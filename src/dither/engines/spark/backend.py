"""Takes tables and files of Spark. pyspark is an extra, and is imported when the first one is opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dither.catalog.file import SPARK
from dither.catalog.reading import DEFAULT, Read
from dither.catalog.values import Catalog
from dither.engines.base import Backend, Opened, Progress


@dataclass(frozen=True)
class SparkBackend(Backend):
    """Opens tables and files of one Spark. Small public tables from elsewhere are uploaded."""

    name: str = "Spark"
    most_constants: int = 100_000

    def takes(self, source: Any) -> bool:
        return isinstance(source, str) and source.startswith(SPARK)

    def schema(self, source: Any, read: Read = DEFAULT) -> Mapping[str, str]:
        """Returns the column names and kinds of a table. Reads no row."""
        from dither.engines.spark import sources

        return sources.schema(source, read)

    def open(self, catalog: Catalog, progress: Progress | None = None) -> Opened:
        """Opens all tables in one session."""
        from dither.engines.spark import sources

        return sources.open_catalog(catalog, progress)
