"""Compares the exact part of a private query with the same raw query in the same Spark.

    python benchmarks/engines_spark.py             10 million rows, on two cores
    python benchmarks/engines_spark.py --rows 1    a quick look with 1 million rows
    python benchmarks/engines_spark.py --only fixed    one of rows, persons and fixed; large.py measures growth

The data are those of query.py: 50 regions, 10 rows per person in 3 regions, a whole-number column (age) and a real one
(income), as Parquet. CPU seconds are those of the one Java process, compiling and collecting garbage included; other load
affects them less than wall time. Both sides run in turns in sessions of the same process after two rounds of warming up, and
the ratio is of the smallest: what Java compiles in between belongs to neither. The fixed cost is a count of ten rows.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dither as dt
from dither.engines.registry import open_sources
from query import BOUNDS, MAX_GROUPS, MAX_ROWS, generate, private, raw

Task = Callable[[], object]
SHAPES = (  # name, column, by_unit, max_groups, the most that the ratio may be
    ("rows, whole numbers", "age", False, None, "1.3"),
    ("rows, reals", "income", False, None, "1.3"),
    ("persons, nobody over the bound", "age", True, MAX_GROUPS, "1.4"),
    ("persons, everybody over the bound", "age", True, MAX_GROUPS - 1, "1.4"),
    ("persons, without a bound of groups", "age", True, None, ""),
)
COLUMNS = {"person": "int", "region": "text", "age": "int", "income": "real"}


def smallest(tasks: Sequence[Task], process: int, repeats: int) -> list[tuple[float, float]]:
    """Returns the smallest wall and CPU seconds of each task, taken in turns."""
    times: list[list[tuple[float, float]]] = [[] for _ in tasks]
    for turn in range(repeats + 2):
        for place, task in enumerate(tasks):
            wall, used = time.perf_counter(), cpu_of(process)
            task()
            if turn > 1:
                times[place].append((time.perf_counter() - wall, cpu_of(process) - used))
    return [(min(wall for wall, _ in each), min(used for _, used in each)) for each in times]


def cpu_of(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(parquet: Path, master: str, repeats: int, only: Sequence[str]) -> None:
    columns = {name: dt.column(kind=kind) for name, kind in COLUMNS.items()}
    table = dt.Table(f"spark:{parquet}#{master}", unit="row", columns=columns)
    opened: Any = open_sources(dt.Catalog({"people": table}, dt.Budget(epsilon=1)))
    plain_session = opened.session.newSession()
    plain_session.read.parquet(str(parquet)).createOrReplaceTempView("people")
    process = opened.session.sparkContext._gateway.proc.pid
    print(f"Spark {opened.session.version}, {master}; CPU seconds of the Java process, raw and private", flush=True)
    for name, column, by_unit, most, target in SHAPES:
        if not any(name.startswith(each) for each in only):
            continue
        work, plain = private(column, by_unit=by_unit, max_groups=most), raw(column, by_unit=by_unit)  # type: ignore[arg-type]
        ask: Task = lambda plain=plain: plain_session.sql(plain).toArrow()  # noqa: E731
        ours: Task = lambda work=work: opened.engine.run(work, b"benchmark")  # noqa: E731
        one, two = smallest([ask, ours], process, repeats)
        aim = f"   (at most {target})" if target else ""
        print(
            f"{name:<36} {one[1]:7.2f} s {two[1]:7.2f} s   ratio {two[1] / one[1]:4.2f}{aim:<16}"
            f"   wall {one[0]:6.2f} s {two[0]:6.2f} s   ratio {two[0] / one[0]:4.2f}",
            flush=True,
        )
    if "fixed" in only:
        fixed(opened, process, repeats)
    opened.close()


def fixed(opened: Any, process: int, repeats: int) -> None:
    """Prints what a statement costs that reads next to nothing."""
    from dither.engines.spark.dialect import SparkDialect
    from dither.engines.spark.engine import Spark
    from dither.engines.spark.sources import upload

    upload(opened.session, "ten", COLUMNS, [(i, "region 01", i, float(i)) for i in range(10)])
    engine = Spark(opened.session, SparkDialect({"people": "ten"}), {"people": COLUMNS})
    work = private("age", by_unit=True, max_groups=1)
    ((wall, used),) = smallest([lambda: engine.run(work, b"benchmark")], process, 3 * repeats)
    print(f"{'ten rows: the fixed cost':<36} {'':9} {used:7.2f} s   wall {wall:.2f} s   (at most 0.5)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=10, help="millions of rows")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--only", nargs="+", default=["rows", "persons", "fixed"], help="how the names of measurements begin")
    parser.add_argument("--folder", type=Path, help="keeps the data there")
    options = parser.parse_args()
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--driver-memory 4g --conf spark.sql.shuffle.partitions=8 pyspark-shell")
    print(f"{options.rows} million rows, max_rows {MAX_ROWS}, bounds {BOUNDS}; load of the machine {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as name:
        parquet = (options.folder or Path(name)) / f"{options.rows} million people.parquet"
        if not parquet.exists():
            generate(parquet, options.rows)
        measure(parquet, options.master, options.repeats, options.only)
    print(f"load of the machine {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
