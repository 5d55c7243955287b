"""Measures tables that are larger than memory: DuckDB out of core, and Spark beside it.

    python benchmarks/large.py generate --rows 1000 --folder data          1 billion rows, about 5 GB of Parquet
    python benchmarks/large.py duckdb --rows 100 1000 --folder data        within 8 GB of memory, on disk beyond
    python benchmarks/large.py spark --rows 1 10 100 --folder data         growth, beside that of Spark's own queries

The data are like those of query.py: 50 regions, 10 rows per person in 3 regions, a whole-number column. Rows of a person are
scattered over 100 million rows (over the whole table if it is smaller). Every figure is of a process of its own: CPU seconds
of all its threads, wall seconds, the largest resident memory and the most that lay in its spill folder. Spark's processes run
the question once on a million rows first, because Java compiles what runs often.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import dither as dt
from dither.engines.base import Opened
from dither.engines.duckdb.sources import open_catalog
from dither.engines.registry import open_sources
from query import REGIONS, exponent, private, raw

MILLION, BLOCK, FILE = 1_000_000, 100, 10  # in millions of rows: where a person's rows are, and how many are in a file
COLUMNS = {"person": "int", "region": "text", "age": "int"}
QUESTIONS = {"rows": False, "persons": True}
Task = Callable[[], object]


# --- data -------------------------------------------------------------------------------------------------------


def files(folder: Path, millions: int) -> list[Path]:
    """Returns the files of a table. Tables of whole blocks are the first files of the largest one."""
    if millions < BLOCK:
        return [folder / f"{millions} million.parquet"]
    return [folder / f"{number:04d}.parquet" for number in range(millions // FILE)]


def generate(folder: Path, millions: int) -> None:
    """Writes the files that are missing, one at a time."""
    size = FILE if millions >= BLOCK else millions
    for number, path in enumerate(files(folder, millions)):
        if not path.exists():
            part = path.with_suffix(".part")
            pq.write_table(rows(number * size * MILLION, size * MILLION, min(millions, BLOCK) * MILLION), part)
            part.rename(path)


def rows(first: int, count: int, block: int) -> pa.Table:
    """Returns `count` rows. A person has 10 of a block's rows, in 3 regions, as far from one another as possible."""
    place = np.arange(first, first + count)
    people, inside = block // 10, place % block
    person = place // block * people + inside * 7919 % people
    region = (mixed(person) + 17 * (inside // people % 3)) % len(REGIONS)
    return pa.table(
        {
            "person": person.astype(np.int32),
            "region": pa.DictionaryArray.from_arrays(region.astype(np.int8), list(REGIONS)),
            "age": (mixed(place) % 100).astype(np.int32),
        }
    )


def mixed(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns a number without pattern for each number."""
    product = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    product ^= product >> np.uint64(29)
    product *= np.uint64(0xBF58476D1CE4E5B9)
    return (product >> np.uint64(33)).astype(np.int64)


def catalog(source: object) -> dt.Catalog:
    columns = {name: dt.column(kind=kind) for name, kind in COLUMNS.items()}
    return dt.Catalog({"people": dt.Table(source, unit="row", columns=columns)}, dt.Budget(epsilon=1))


# --- one figure, in a process of its own --------------------------------------------------------------------------


class Watched:
    """Looks at a folder while it is entered, and remembers the most that lay in it."""

    def __init__(self, folder: Path) -> None:
        self.most, self._folder, self._done = 0, folder, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.5):
            self.most = max(self.most, sum(_size(path) for path in self._folder.rglob("*")))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def cpu_of(process: int | str) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_of(process: int | str) -> float:
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**20


def timed(task: Task, process: int | str) -> dict[str, float]:
    wall, used = time.perf_counter(), cpu_of(process)
    task()
    return {"cpu": cpu_of(process) - used, "wall": time.perf_counter() - wall, "peak": peak_of(process)}


def in_duckdb(folder: Path, millions: int, question: str, side: str, options: argparse.Namespace) -> dict[str, Any]:
    by_unit, paths = QUESTIONS[question], [str(path) for path in files(folder, millions)]
    with tempfile.TemporaryDirectory(dir=folder, prefix="spill ") as name:
        tempfile.tempdir = name
        reports: list[float] = []
        if side == "raw":
            connection = duckdb.connect(
                config={"threads": options.threads, "memory_limit": options.memory, "temp_directory": name}
            )
            connection.execute("SET enable_progress_bar = false")
            connection.read_parquet(paths).create_view("people")
            task: Task = lambda: connection.execute(raw("age", by_unit=by_unit)).fetchall()  # noqa: E731
        else:
            opened = open_catalog(
                catalog(duckdb_source(folder, millions)),
                threads=options.threads,
                memory_limit=options.memory,
                progress=reports.append,
            )
            reports.clear()
            work = private("age", by_unit=by_unit)
            opened.engine.prepare(work)
            task = lambda: opened.engine.run(work, b"benchmark")  # noqa: E731
        with Watched(Path(name)) as watched:
            found = timed(task, "self")
    return {**found, "spilt": watched.most / 2**30, "reports": len(reports)}


def duckdb_source(folder: Path, millions: int) -> str:
    """Returns a source that has these files only: links in a folder of their own."""
    if millions < BLOCK:
        return str(files(folder, millions)[0])
    linked = folder / f"first {millions} million"
    linked.mkdir(exist_ok=True)
    for path in files(folder, millions):
        if not (linked / path.name).exists():
            os.link(path, linked / path.name)
    return f"{linked}/*.parquet"


def in_spark(folder: Path, millions: int, question: str, side: str, options: argparse.Namespace) -> dict[str, Any]:
    by_unit, found = QUESTIONS[question], {}
    settings = f"--driver-memory {options.memory.removesuffix('B').lower()} --conf spark.sql.shuffle.partitions=16"
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{settings} --conf spark.local.dir={folder} pyspark-shell"
    work = private("age", by_unit=by_unit)
    for size in (1, millions):  # the first warms up
        opened: Any = open_spark(folder, size, options.master)
        process = opened.session.sparkContext._gateway.proc.pid
        session = opened.session.newSession()
        session.read.parquet(*map(str, files(folder, size))).createOrReplaceTempView("people")
        task: Task = lambda opened=opened: opened.engine.run(work, b"benchmark")  # noqa: E731
        if side == "raw":
            task = lambda session=session: session.sql(raw("age", by_unit=by_unit)).toArrow()  # noqa: E731
        for _ in range(options.warm if size == 1 else 1):
            found = timed(task, process)
        if size != 1:
            opened.close()
    return found


def open_spark(folder: Path, millions: int, master: str) -> Opened:
    source = duckdb_source(folder, millions)
    return open_sources(catalog(f"spark:{source}#{master}"))


# --- tables -----------------------------------------------------------------------------------------------------


def measure(engine: str, options: argparse.Namespace) -> None:
    used: dict[tuple[str, str], list[float]] = {}
    for question in options.questions:
        for millions in options.rows:
            for side in options.sides:
                found = child(engine, millions, question, side, options)
                used.setdefault((question, side), []).append(found["cpu"])
                more = f"   spilt {found['spilt']:5.1f} GB   progress reports {found['reports']}" if "spilt" in found else ""
                print(
                    f"{engine} {millions:5} million rows, {question:8} {side:8} CPU {found['cpu']:8.1f} s   "
                    f"wall {found['wall']:8.1f} s   memory {found['peak']:4.1f} GB{more}   load {os.getloadavg()[0]:.1f}",
                    flush=True,
                )
    if len(options.rows) > 1:
        for (question, side), seconds in used.items():
            print(f"{engine} growth, {question} {side}: rows ^ {exponent(options.rows, seconds):.2f}")


def child(engine: str, millions: int, question: str, side: str, options: argparse.Namespace) -> dict[str, Any]:
    """Runs one figure `repeats` times, each in a process of its own; returns the one of least CPU."""
    one = json.dumps({**vars(options), "folder": str(options.folder), "one": [engine, millions, question, side]})
    found = []
    for _ in range(options.repeats):
        ended = subprocess.run([sys.executable, __file__, "--child", one], stdout=subprocess.PIPE, text=True, check=True)
        found.append(json.loads(ended.stdout.splitlines()[-1]))
    return min(found, key=lambda each: float(each["cpu"]))


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        options = argparse.Namespace(**json.loads(sys.argv[2]))
        engine, millions, question, side = options.one
        run = in_duckdb if engine == "duckdb" else in_spark
        print(json.dumps(run(Path(options.folder), millions, question, side, options)))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=("generate", "duckdb", "spark"))
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 10, 100], help="millions of rows")
    parser.add_argument("--questions", nargs="+", choices=tuple(QUESTIONS), default=list(QUESTIONS))
    parser.add_argument("--sides", nargs="+", choices=("raw", "private"), default=["raw", "private"])
    parser.add_argument("--folder", type=Path, required=True, help="where the data are, and what does not fit into memory")
    parser.add_argument("--memory", default="8GB")
    parser.add_argument("--threads", type=int, default=2, help="of DuckDB")
    parser.add_argument("--master", default="local[2]", help="of Spark")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--warm", type=int, default=5, help="questions about 1 million rows before the one that counts")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    for millions in options.rows:
        generate(options.folder, millions)
    if options.what != "generate":
        measure(options.what, options)


if __name__ == "__main__":
    main()
