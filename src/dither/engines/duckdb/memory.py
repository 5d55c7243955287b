"""Into how many parts DuckDB cuts the hash table of a grouping: many where memory is ample, few where it is not.

It goes by the number of threads it knows of. On few processors the parts of a table of all persons outgrow the caches, and a
row costs the more the more rows there are: so it is told of at least PARTS threads. Those that are stated as external are never
started; nothing but the parts changes. But it also shares out memory among the threads it knows of, and begins to move parts
to disk while most of the memory is free, which is many times slower than grouping in few parts. So with many parts the disk is
forbidden, and a question that does not fit is asked again in few, where whatever does not fit goes to disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from duckdb import DuckDBPyConnection

PARTS = 8
SETTINGS = ("threads", "external_threads", "max_temp_directory_size")  # what may still change when all others are locked
_STATED = "SELECT current_setting('threads'), current_setting('external_threads'), current_setting('max_temp_directory_size')"


def spread(connection: DuckDBPyConnection) -> None:
    """Many parts, and nothing on disk."""
    workers = _workers(connection)
    stated = max(workers, PARTS)
    connection.execute(f"SET threads = {stated}")
    connection.execute(f"SET external_threads = {stated - workers + 1}")  # one of them is who asks
    connection.execute("SET max_temp_directory_size = '0KB'")


def is_spread(connection: DuckDBPyConnection) -> bool:
    return bool(_stated(connection)[2] == "0 bytes")


@contextmanager
def gathered(connection: DuckDBPyConnection) -> Iterator[None]:
    """Few parts, and a disk for what does not fit, inside the block."""
    workers = _workers(connection)
    connection.execute("SET external_threads = 1")
    connection.execute(f"SET threads = {workers}")
    connection.execute("RESET max_temp_directory_size")
    try:
        yield
    finally:
        spread(connection)


def _workers(connection: DuckDBPyConnection) -> int:
    stated, external, _ = _stated(connection)
    return stated - external + 1


def _stated(connection: DuckDBPyConnection) -> tuple[int, int, str]:
    ((stated, external, disk),) = connection.execute(_STATED).fetchall()
    return int(stated), int(external), str(disk)
