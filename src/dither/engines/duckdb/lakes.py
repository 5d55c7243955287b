"""Finds the files of lake tables.

A path into the folder of a Delta or Iceberg table is refused: files of removed rows lie beside the table's own, and only its
log says which are which. One version of a Delta table is a fixed list of Parquet files:

    delta:/lake/visits@12        version 12 of a Delta table in a folder of this machine

The package deltalake reads the log. Only tables of reader version 1 of Delta's protocol are taken, which are their files and
nothing else. Deletion vectors (rows that are removed inside a file) and column mapping (columns that have other names in the
files) need a higher version. Values of partitions are in the log only, so partitioned tables are refused as well.
"""

from __future__ import annotations

import glob
import importlib.util
import os
import re
from collections.abc import Sequence

from dither.engines.duckdb.stored import StoredError
from dither.errors import extra

_SOURCE = re.compile(r"delta:(.+)@([0-9]{1,18})", re.DOTALL)
_LOGS = {"Delta": ("_delta_log",), "Iceberg": ("metadata", "*.metadata.json")}  # what lies in the folder of a table
_OWN_FOLDER = "store its rows as plain Parquet files, in a folder of their own."


def refuse_lakes(files: Sequence[str]) -> None:
    """Refuses files in the folder of a lake table, also behind links."""
    folders = {os.path.dirname(path) for file in files for path in (file, os.path.realpath(file))}
    while folders:
        for folder in folders:
            for format, log in _LOGS.items():
                if glob.glob(os.path.join(glob.escape(folder), *log)):
                    fix = "write delta:/folder/of/the/table@version instead." if format == "Delta" else _OWN_FOLDER
                    raise StoredError(f"it belongs to a table of {format}, and removed rows may lie in its files", fix)
        folders = {os.path.dirname(folder) for folder in folders} - folders


def delta_files(source: str) -> list[str]:
    """Returns the Parquet files of one version of a Delta table."""
    found = _SOURCE.fullmatch(source)
    if found is None:
        raise StoredError("the version of the Delta table is missing", 'write source = "delta:/lake/visits@12".')
    if importlib.util.find_spec("deltalake") is None:
        raise StoredError("Delta tables need the package deltalake", extra("delta"))
    folder, version = os.path.abspath(found[1]), int(found[2])
    if not os.path.isdir(os.path.join(folder, "_delta_log")):
        raise StoredError("there is no Delta table in that folder", "look at the path of the table.")
    from deltalake import DeltaTable

    try:
        table = DeltaTable(folder, version=version)
        reader, parts, files = table.protocol().min_reader_version, table.metadata().partition_columns, table.file_uris()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # of many types, panics of Rust among them; their texts may quote anything
        table = None
    if table is None:
        raise StoredError(f"version {version} of the Delta table cannot be read", "name a version that the table still has.")
    if reader != 1:
        what = f"the Delta table needs reader version {reader}, such as for deletion vectors or column mapping, and 1 is read"
        raise StoredError(what, _OWN_FOLDER)
    if parts:
        raise StoredError("the Delta table is partitioned", _OWN_FOLDER)
    if not files:
        raise StoredError("that version of the Delta table has no rows", "name another version.")
    return sorted(files)
