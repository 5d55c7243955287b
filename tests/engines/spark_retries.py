"""Loses executors in the middle of a question, on two real executor processes. Run by test_spark_retries.py, one process each.

python spark_retries.py FOLDER SPECULATION     prints one line of JSON
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dither as dt
from dither.engines.registry import open_sources
from dither.engines.spark.dialect import SparkDialect
from dither.engines.spark.engine import Spark
from dither.engines.sql.dialect import Sql
from dither.query.nodes import Column, Compute, Named, Scan
from dither.query.work import UNIT, Cell, Distinct, Sums, Work

MASTER = "local-cluster[2,1,1024]"
ROWS, PEOPLE = 300_000, 30_000
POINTS = (0.35, 0.75)  # of the time of a question that nothing disturbs


class Random(SparkDialect):
    """The twin: groups are chosen by random numbers."""

    def keyed_hash(self, purpose: str, columns: Any) -> str:
        return "rand()"


class TaskLocal(SparkDialect):
    """Another twin: the hash depends on the task that computes it."""

    def keyed_hash(self, purpose: str, columns: Any) -> str:
        hashed = super().keyed_hash(purpose, [*columns, Sql("monotonically_increasing_id()", "int")])
        return hashed.replace(":secret", "uuid()")


def write(folder: Path) -> str:
    dice = np.random.default_rng(5)
    columns = {"who": dice.integers(0, PEOPLE, ROWS), "k": dice.integers(0, 50, ROWS), "x": dice.integers(0, 100, ROWS)}
    pq.write_table(pa.table(columns), folder / "visits.parquet", row_group_size=50_000)
    return f"spark:{folder}/visits.parquet#{MASTER}"


def executors() -> list[int]:
    """The executor processes that this process started."""
    found = []
    for entry in Path("/proc").iterdir():
        one = entry.name.isdigit() and b"CoarseGrainedExecutorBackend" in _read(entry / "cmdline")
        if one and os.getpid() in _ancestors(int(entry.name)):
            found.append(int(entry.name))
    return found


def _ancestors(process: int) -> Iterator[int]:
    while process > 1:
        status = _read(Path(f"/proc/{process}/stat")).rpartition(b")")[2].split()
        process = int(status[1]) if len(status) > 1 else 0
        yield process


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def disturbed(run: Callable[[], Any], after: float) -> tuple[Any, bool]:
    """Returns what `run` returns while an executor is killed after so many seconds, and whether it was still running then."""
    finished, hit = threading.Event(), []

    def kill() -> None:
        if not finished.wait(after):
            victim = max(executors())
            os.kill(victim, signal.SIGKILL)
            hit.append(victim)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        result = run()
        return result, bool(hit)
    finally:
        finished.set()
        killer.join()


def settled() -> None:
    """Waits until two executors run."""
    end = time.monotonic() + 120
    while len(executors()) < 2 and time.monotonic() < end:
        time.sleep(0.2)


def plain(groups: Any) -> list[Any]:
    return sorted((group.key, group.units, group.measures) for group in groups)


def main(folder: Path, speculation: str) -> dict[str, Any]:
    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        f"--conf spark.speculation={speculation} --conf spark.speculation.interval=50ms "
        "--conf spark.speculation.multiplier=1.1 --conf spark.speculation.quantile=0.5 "
        "--conf spark.sql.shuffle.partitions=6 --conf spark.sql.files.maxPartitionBytes=2m "
        "--conf spark.executor.memory=1g --conf spark.executor.cores=1 --conf spark.dynamicAllocation.enabled=false "
        "--conf spark.driver.bindAddress=127.0.0.1 --conf spark.driver.host=127.0.0.1 pyspark-shell"
    )
    source = write(folder)
    columns = {"k": dt.values(*range(50)), "x": dt.between(0, 100)}
    table = dt.Table(source, unit="who", max_rows=5, max_groups=3, columns=columns)
    catalog = dt.Catalog({"visits": table}, dt.Budget(epsilon=9))
    opened: Any = open_sources(catalog)
    scan = Compute(Scan("visits", "v"), (Named(UNIT, Column("v.who")), Named("k", Column("v.k")), Named("x", Column("v.x"))))
    measures = (Sums((Cell(constant=1),), 5), Distinct(Column("x"), 2))
    work = Work(scan, (Named("k", Column("k")),), None, True, 3, measures, count_units=True)

    def ask() -> list[Any]:
        return plain(opened.engine.run(work, b"one secret"))

    ask()  # warm
    began = time.monotonic()
    calm = ask()
    taken = time.monotonic() - began
    found: dict[str, Any] = {"seconds": round(taken, 1), "equal": [], "hit": []}
    for point in POINTS:
        settled()
        result, hit = disturbed(ask, point * taken)
        found["equal"].append(result == calm)
        found["hit"].append(hit)
        print(found, file=sys.stderr, flush=True)
    for twin in (Random, TaskLocal):
        engine = Spark(opened.session, twin({"visits": "dither_view_0"}), {"visits": opened.engine.schema("visits")})
        settled()
        first = plain(engine.run(work, b"one secret"))
        second, _ = disturbed(lambda engine=engine: plain(engine.run(work, b"one secret")), taken / 2)  # type: ignore[misc]
        found[twin.__name__] = first == second
        print(found, file=sys.stderr, flush=True)
    with dt.open(catalog, ledger=folder / "ledger", make=True) as survey:
        settled()
        answer, _ = disturbed(
            lambda: survey.ask("SELECT k, COUNT(*) AS n FROM visits GROUP BY k", epsilon=1, max_groups=3), taken / 2
        )
        found["groups"], found["spent"] = len(answer.rows), str(Fraction(survey.budget.sums.epsilon, survey.budget.sums.unit))
    opened.close()
    return found


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2])))
