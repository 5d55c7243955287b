"""Reads what a catalog calls a table of Spark.

    spark:lake.visits                      a table or view of the session's catalog
    spark:/lake/visits/*.parquet           Parquet files; spark:s3a://bucket/visits, and other addresses that Spark reads
    spark:lake.visits#sc://host:15002      the same, and where Spark is

In a catalog file, `[engine]` says where Spark is for all tables: `spark = "sc://host:15002"`. Elsewhere it stands after #.
Without either it is SPARK_REMOTE, as in Spark itself, or this machine.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from dither.catalog.file import SPARK
from dither.errors import CatalogError

_HERE = "local[*]"
_NAME = r"(?:[A-Za-z_]\w*|`(?:[^`]|``)+`)"
_TABLE = re.compile(rf"{_NAME}(?:\.{_NAME}){{0,2}}")
_SPARK = re.compile(r"(.*)#((?:sc|spark|k8s)://\S+|yarn|local\S*)", re.DOTALL)


@dataclass(frozen=True)
class Place:
    """A table: the Spark that has it, and its name or path."""

    spark: str
    name: str

    @property
    def is_path(self) -> bool:
        return "/" in self.name

    @classmethod
    def of(cls, source: str) -> Place:
        """Reads a source.

        >>> Place.of("spark:lake.visits#local[2]")
        Place(spark='local[2]', name='lake.visits')
        """
        rest = source.removeprefix(SPARK)
        found = _SPARK.fullmatch(rest)
        name, spark = found.groups() if found else (rest, os.environ.get("SPARK_REMOTE") or _HERE)
        if "/" in name and not name.startswith("/") and "://" not in name:
            what = f"{SPARK}{name} is a relative path, and Spark may run elsewhere."
            raise CatalogError([(None, what, "write the whole path, as in spark:/lake/visits/*.parquet.")])
        if "/" not in name and not _TABLE.fullmatch(name):
            what = f"{SPARK}{name} names no table."
            raise CatalogError(
                [(None, what, "write spark:lake.visits, with other names than letters and digits in backticks.")]
            )
        return cls(spark, name)
