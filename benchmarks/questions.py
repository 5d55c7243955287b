"""Measures what one question costs on a small table, where planning and not the data decides: milliseconds per question.

    python benchmarks/questions.py            100 questions of each kind
    python benchmarks/questions.py --profile  also the functions that take most of the time

Each line has dither's time beside the same SQL asked of DuckDB directly, without privacy. The ledger is in memory. "different"
asks every question with other constants, so no answer is given again; "warm" asks one question again with `fresh=True`.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import time
from collections.abc import Callable, Sequence

import duckdb
import numpy as np
import pyarrow as pa

import dither as dt

ROWS = 5_000


def people(rows: int) -> pa.Table:
    """Returns made-up people: 75 ages, 100 numbers of hours, 5 regions."""
    number = np.arange(rows)
    regions = np.array(["centre", "east", "north", "south", "west"])[number % 5]
    return pa.table({"person": number, "age": 17 + number % 75, "hours": number * 7919 % 100, "region": regions})


def survey(table: pa.Table) -> dt.Curator:
    columns = {
        "age": dt.between(17, 91),
        "hours": dt.between(0, 99),
        "region": dt.values("centre", "east", "north", "south", "west"),
    }
    declared = dt.Table(table, unit="person", max_rows=1, columns=columns)
    catalog = dt.Catalog(tables={"people": declared}, budget=dt.Budget(epsilon=100_000))
    return dt.open(catalog, ledger=":memory:")


def milliseconds(task: Callable[[str], object], questions: Sequence[str]) -> tuple[float, float]:
    """Returns the median time of a question, and the mean processor time, which other load on the machine affects less."""
    times, busy = [], time.process_time()
    for question in questions:
        start = time.perf_counter()
        task(question)
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times), 1000 * (time.process_time() - busy) / len(questions)


def measure(title: str, rows: int, questions: Sequence[str], *, fresh: bool) -> Callable[[], None]:
    table = people(rows)
    raw = duckdb.connect()
    raw.register("people", table)
    curator = survey(table)

    def ask(question: str) -> object:
        return curator.ask(question, epsilon=1, fresh=fresh).rows

    ask(questions[0])
    plain = milliseconds(lambda question: raw.execute(question).fetchall(), questions[1:])
    private = milliseconds(ask, questions[1:])
    planned = milliseconds(lambda question: curator.quote(question, epsilon=2), questions[1:])  # at 1 it is planned already
    measured = zip(("ask", "quote", "DuckDB alone"), (private, planned, plain), strict=True)
    shown = "   ".join(f"{name} {wall:6.2f} ms (CPU {cpu:5.2f})" for name, (wall, cpu) in measured)
    print(f"{title:44} {shown}", flush=True)
    return lambda: [ask(question + " ") for question in questions[1:]] and None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="questions of each kind")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    given = parser.parse_args()
    count = given.count + 1
    different = [f"SELECT COUNT(*) FROM people WHERE age = {17 + n % 75} AND hours > {n % 97}" for n in range(count)]
    by_decade = [
        f"SELECT FLOOR(age / 10) * 10 AS decade, AVG(hours) AS h FROM people WHERE hours < {99 - n % 90} GROUP BY decade"
        for n in range(count)
    ]
    grouped = ["SELECT region, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY region"] * count
    tasks = [
        measure("different, two bounded columns in WHERE", ROWS, different, fresh=False),
        measure("different, by decade", ROWS, by_decade, fresh=False),
        measure("warm, COUNT and AVG by region, 1,000 rows", 1_000, grouped, fresh=True),
    ]
    if given.profile:
        profiler = cProfile.Profile()
        for task in tasks:
            profiler.runcall(task)
        pstats.Stats(profiler).sort_stats("cumulative").print_stats(45)


if __name__ == "__main__":
    main()
