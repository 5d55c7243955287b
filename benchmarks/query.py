"""Compares the exact part of a private query with the same question to DuckDB directly: ratios of one run.

    python benchmarks/query.py            10 million rows, slope from 1 to 20 million
    python benchmarks/query.py --full     slope from 1 to 100 million
    python benchmarks/query.py --rows 1   a quick look with 1 million rows

Data are generated into a temporary directory as Parquet: 50 regions, 10 rows per person in 3 regions, a whole-number column
(age) and a real one (income). Both sides read the same files with the same threads, in turns: DuckDB with its
default settings and dither with the settings of opened sources. The ratio is of the medians. CPU seconds are shown too,
because other load affects them less.
"""

from __future__ import annotations

import argparse
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb

from dither.curator import STEPS, Steps
from dither.engines.base import Engine
from dither.engines.duckdb.engine import DuckDB, use_many_parts
from dither.engines.duckdb.sources import configure
from dither.query.nodes import Column, Compute, Named, Scan
from dither.query.work import UNIT, Cell, Group, Quantised, Sums, Work

REGIONS = tuple(f"region {i:02d}" for i in range(50))
BOUNDS = {"age": 120, "income": 250_000}
MAX_GROUPS, MAX_ROWS = 3, 5
Task = Callable[[], object]


# --- data and questions -----------------------------------------------------------------------------------------


def generate(path: Path, millions: int, *, together: bool = False) -> None:
    """Writes one Parquet file. The rows of one person are scattered, as if they arrived over time, or together."""
    rows = millions * 1_000_000
    person, place = ("i // 10", "i % 10") if together else (f"(i * 7919) % {rows // 10}", f"i // {rows // 10}")
    connection = duckdb.connect()
    connection.execute(
        f"""COPY (
            SELECT person,
                'region ' || lpad(CAST((hash(person) + 17 * ({place} % 3)) % 50 AS VARCHAR), 2, '0') AS region,
                CAST(hash(i) % 100 AS INTEGER) AS age, CAST(hash(i + 7) % 20000000 AS DOUBLE) / 100 AS income
            FROM (SELECT i, {person} AS person FROM range({rows}) t(i))
        ) TO '{path}' (FORMAT parquet)"""
    )


def connect(path: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")  # it would be printed among the results
    connection.read_parquet(str(path)).create_view("people")
    return connection


def opened(path: Path) -> DuckDB:
    """Opens the engine with the settings of every opened catalog: some of them cost time."""
    connection = duckdb.connect()
    configure(connection)
    connection.read_parquet(str(path)).create_view("people")
    use_many_parts(connection)
    return DuckDB(connection)


def private(column: str, *, by_unit: bool, max_groups: int = MAX_GROUPS) -> Work:
    """Returns the Work of COUNT and AVG by region in one joint release: q, R - q, and R for a missing value."""
    steps = BOUNDS[column]
    x = Quantised(Column("x"), Fraction(0), Fraction(1), steps)
    cells = (Cell(x, linear=1), Cell(x, constant=steps, linear=-1), Cell(x, null=steps))
    names = [Named(UNIT, Column("p.person"))] if by_unit else []
    source = Compute(Scan("people", "p"), (*names, Named("region", Column("p.region")), Named("x", Column(f"p.{column}"))))
    key = (Named("region", Column("region")),)
    return Work(source, key, (REGIONS,), by_unit, max_groups if by_unit else None, (Sums(cells, MAX_ROWS),))


def raw(column: str, *, by_unit: bool) -> str:
    if not by_unit:
        return f"SELECT region, count(*), avg({column}) FROM people GROUP BY region"
    inner = f"SELECT person, region, count(*) AS n, sum({column}) AS s FROM people GROUP BY person, region"
    return f"SELECT region, sum(n), sum(s) / sum(n) FROM ({inner}) GROUP BY region"


# --- measuring --------------------------------------------------------------------------------------------------


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def taken(tasks: Sequence[Task], repeats: int) -> list[list[tuple[float, float]]]:
    """Returns wall and CPU seconds of each run of each task, in turns after a warm-up round."""
    times: list[list[tuple[float, float]]] = [[] for _ in tasks]
    for turn in range(repeats + 1):
        for place, task in enumerate(tasks):
            wall, used = time.perf_counter(), cpu()
            task()
            if turn:
                times[place].append((time.perf_counter() - wall, cpu() - used))
    return times


def middle(found: list[tuple[float, float]]) -> tuple[float, float]:
    """Returns the medians of wall and of CPU seconds."""
    return statistics.median(wall for wall, _ in found), statistics.median(used for _, used in found)


def medians(tasks: Sequence[Task], repeats: int) -> list[tuple[float, float]]:
    return [middle(found) for found in taken(tasks, repeats)]


def compare(name: str, plain: Task, ours: Task, repeats: int, target: str) -> None:
    (wall, used), (our_wall, our_used) = medians([plain, ours], repeats)
    print(
        f"{name:<44} {wall:7.3f} s {our_wall:7.3f} s   ratio {our_wall / wall:4.2f}"
        f"   CPU {used:6.3f} s {our_used:6.3f} s   ratio {our_used / used:4.2f}   ({target})"
    )


def ratios(path: Path, repeats: int) -> None:
    connection, engine = connect(path), opened(path)
    print(f"{'':<44} {'DuckDB':>9} {'dither':>9}")
    for column in BOUNDS:
        for by_unit, title, target in ((False, "rows", "at most 1.5"), (True, "persons, nobody over the bound", "at most 2")):
            work, plain = private(column, by_unit=by_unit), raw(column, by_unit=by_unit)
            compare(
                f"COUNT, AVG({column}) by region, {title}",
                lambda plain=plain: connection.execute(plain).fetchall(),
                lambda work=work: engine.run(work, b"benchmark"),
                repeats if by_unit else 4 * repeats,  # short runs need more of them
                target,
            )
    over, plain = private("income", by_unit=True, max_groups=2), raw("income", by_unit=True)
    compare(
        "COUNT, AVG(income) by region, everybody over",
        lambda: connection.execute(plain).fetchall(),
        lambda: engine.run(over, b"benchmark"),
        repeats,
        "at most 2",
    )


def slope(folder: Path, sizes: list[int], repeats: int) -> None:
    """Fits CPU time = c * rows^exponent over the sizes, and prints the exponent beside that of the plain query.

    Other load lasts minutes, so the sizes take turns, several times; small ones run many times in a row, warm.
    """
    for by_unit, together, title in (
        (False, False, "rows"),
        (True, True, "persons whose rows stand together"),
        (True, False, "persons whose rows are scattered"),
    ):
        pairs: list[tuple[Task, Task]] = []
        for millions in sizes:
            path = folder / f"{millions}{' together' if together else ''}.parquet"
            if not path.exists():
                generate(path, millions, together=together)
            connection, engine = connect(path), opened(path)
            work, plain = private("income", by_unit=by_unit), raw("income", by_unit=by_unit)
            first: Task = lambda connection=connection, plain=plain: connection.execute(plain).fetchall()  # noqa: E731
            second: Task = lambda engine=engine, work=work: engine.run(work, b"benchmark")  # noqa: E731
            pairs.append((first, second))
        found: list[list[list[tuple[float, float]]]] = [[[], []] for _ in sizes]
        for _ in range(repeats):
            for kept, pair, millions in zip(found, pairs, sizes, strict=True):
                for side, more in zip(kept, taken(pair, max(1, 10 // millions)), strict=True):
                    side.extend(more)
        times = [[middle(side) for side in kept] for kept in found]
        theirs, ours = (exponent(sizes, [sides[side][1] for sides in times]) for side in (0, 1))
        shown = ", ".join(f"{size} M {wall:.2f} s" for size, (_, (wall, _)) in zip(sizes, times, strict=True))
        print(f"{f'slope, {title}':<44} {ours:.2f} (at most 1.1)   plain DuckDB {theirs:.2f}   {shown}")


def exponent(sizes: list[int], seconds: list[float]) -> float:
    return statistics.linear_regression([math.log(size) for size in sizes], [math.log(used) for used in seconds]).slope


def memory(path: Path, repeats: int) -> None:
    """Prints the median peak resident memory of separate processes, taken in turns."""
    for by_unit, title in (("", "rows"), ("unit", "persons")):
        peaks: dict[str, list[float]] = {"raw": [], "ours": []}
        for _ in range(repeats):
            for side, found in peaks.items():
                command = [sys.executable, __file__, "--child", side + by_unit, str(path)]
                found.append(int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) / 1024)
        theirs, ours = (statistics.median(found) for found in peaks.values())
        name = f"peak memory, {title}"
        print(f"{name:<44} {theirs:6.0f} MB {ours:6.0f} MB   {ours - theirs:+.0f} MB   (at most +200)")


def child(side: str, path: Path) -> None:
    by_unit = side.endswith("unit")
    if side.startswith("raw"):
        connect(path).execute(raw("income", by_unit=by_unit)).fetchall()
    else:
        opened(path).run(private("income", by_unit=by_unit), b"benchmark")
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def whole_path(path: Path, repeats: int) -> None:
    """Measures from the question's text to the noisy table: large for ratios, small for overhead."""
    try:
        import dither as dt
        from dither.curator import Curator
    except ImportError:
        print("the curator is not installed: no figures for the whole path")
        return

    def survey(source: object, **unit: object) -> Curator:
        columns = {name: dt.between(0, high, step=1) for name, high in BOUNDS.items()}
        table = dt.Table(source, columns={**columns, "region": dt.values(*REGIONS)}, **unit)
        return dt.open(dt.Catalog(tables={"people": table}, budget=dt.Budget(epsilon=10**9)), ledger=":memory:")

    connection, rows = connect(path), survey(str(path), unit="row")
    persons = survey(str(path), unit="person", max_rows=MAX_ROWS, max_groups=MAX_GROUPS)
    for column, large, by_unit in ((name, *kind) for kind in ((rows, False), (persons, True)) for name in BOUNDS):
        question = f"SELECT region, COUNT(*) AS n, AVG({column}) AS mean FROM people GROUP BY region"
        compare(
            f"the whole path, AVG({column}), {'persons' if by_unit else 'rows'}",
            lambda column=column, by_unit=by_unit: connection.execute(raw(column, by_unit=by_unit)).fetchall(),
            lambda question=question, large=large: large.ask(question, epsilon=1, fresh=True, left_out=False),
            repeats if by_unit else 4 * repeats,
            "at most 2" if by_unit else "at most 1.5",
        )
        compare(
            f"  and what was left out, AVG({column})",
            lambda question=question, large=large: large.ask(question, epsilon=1, fresh=True, left_out=False),
            lambda question=question, large=large: large.ask(question, epsilon=1, fresh=True),
            repeats if by_unit else 4 * repeats,
            "against the answer alone",
        )
    overhead(survey(connection.sql("SELECT * FROM people LIMIT 1000").to_arrow_table(), unit="row"))


def overhead(small: Any) -> None:
    """Prints the time of a small question without the engine's part."""
    inside: list[float] = []

    def timed(engine: Engine, work: Work) -> Sequence[Group]:
        start = time.perf_counter()
        found = STEPS.run(engine, work)
        inside.append(time.perf_counter() - start)
        return found

    small.steps = Steps(run=timed)
    for question in (
        "SELECT COUNT(*) AS n FROM people",
        "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY region",
    ):
        left = []
        for _ in range(30):
            start = time.perf_counter()
            small.ask(question, epsilon=1, fresh=True, left_out=False)
            left.append(time.perf_counter() - start - inside[-1])
        engine_ms, ms = 1000 * statistics.median(inside[-30:]), 1000 * statistics.median(left[10:])
        print(f"{'planning and release, warm':<44} {ms:6.1f} ms   (at most 10 ms)   engine {engine_ms:.1f} ms   {question}")


def starting() -> None:
    """Measures imports in fresh processes, in turns, less the start of a bare interpreter; `*` loads every name."""
    codes = ("pass", "import numpy", "import duckdb", "import dither", "from dither import *")
    tasks: list[Task] = [lambda code=code: subprocess.run([sys.executable, "-c", code], check=True) for code in codes]
    bare, *others = (wall for wall, _ in medians(tasks, 7))
    numpy, database, *ours = (wall - bare for wall in others)
    for code, seconds, target in zip(codes[-2:], ours, ("at most 0.4 s", "no target"), strict=True):
        shown = f"ratio to numpy {seconds / numpy:4.2f}   to duckdb {seconds / database:4.2f}"
        print(f"{code:<44} {seconds:7.3f} s   ({target})   with the interpreter {seconds + bare:.3f} s   {shown}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="slope up to 100 million rows")
    parser.add_argument("--rows", type=int, default=10, help="millions of rows for the ratios")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=("import", "ratios", "path", "slope", "memory"))
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child[0], Path(options.child[1]))
        return
    if options.only in (None, "import"):
        starting()
    if options.only == "import":
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / f"{options.rows}.parquet"
        generate(path, options.rows)
        if options.only in (None, "memory"):
            memory(path, options.repeats)  # first: a child starts with the peak of its parent
        if options.only in (None, "ratios"):
            ratios(path, options.repeats)
        if options.only in (None, "path"):
            whole_path(path, options.repeats)
        if options.only in (None, "slope"):
            slope(folder, [1, 5, 20, 100] if options.full else [1, 5, 20], max(1, options.repeats - 2))


if __name__ == "__main__":
    main()
