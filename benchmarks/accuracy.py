"""Measures the errors of COUNT and AVG on a million rows in fifty groups at epsilon 1, against theory and peers.

Prints mean absolute errors over many releases, with standard errors, beside their theoretical values. The joint release
is three cells of Laplace scale 1/epsilon (the sums of u and 1 - u, where u = x/high, and the NULLs): 15/8 for the count, or
1.859 because it is rounded to a whole number, and (1 - u + u^2) * high / n for a mean at u. If OpenDP and
Tumult are installed, they answer the same question at the same price, in the same run; accuracy_peers.py describes their setup.

Two tables: x spread evenly, its mean in the middle of its bounds, and x skewed as incomes are, in wider bounds. The error of
AVG is proportional to the width of the bounds in all systems, so ratios depend only on where the mean lies.

Medians: a million amounts in cents, at epsilon 0.1. Prints the mean rank error as a share of the rows, how often the margin
holds the true median, and the time of the engine and of the release, for all rows and in fifty groups.

People with many rows, and joins: noise and what bounds leave out together, against the best bounds known (accuracy_people.py).

`python benchmarks/accuracy.py`; `--whole` lets Tumult see all rows, an hour or more a table; `--no-tumult` leaves it out.
The exit code is 1 if COUNT or AVG is not within 1.05 of the theory.
"""

from __future__ import annotations

import math
import sys
import time
from fractions import Fraction

import numpy as np
import pyarrow as pa

from accuracy_peers import GROUPS, Line, Releases, Task, measure, opendp, opendp_by_hand, tumult, two_laplaces
from accuracy_people import people
from dither.catalog.declare import between, values
from dither.catalog.values import Budget, Catalog, Table
from dither.curator import open as open_curator
from dither.planning.outputs import Noisy, release, table
from dither.planning.plan import Plan

ROWS, TIMES, ALLOWED = 1_000_000, 1000, 1.05
TABLES = {"x even in 0..800": (800, 1), "x skewed in 0..100000, mean 20000": (100_000, 4)}
QUESTION = "SELECT g, COUNT(*) AS n, AVG(x) AS x FROM sales GROUP BY g"


def catalog(frame: pa.Table, high: int, delta: float = 0) -> Catalog:
    columns = {"g": values(*range(GROUPS)), "x": between(0, high)}
    return Catalog({"sales": Table(frame, unit="row", columns=columns)}, Budget(1, delta))


def whole_count() -> float:
    """Returns the mean size of the rounded sum X of three Laplace draws of scale 1: the sum of Pr[|X| > k + 1/2]."""
    return sum(math.exp(-h) * (h * h + 5 * h + 8) / 8 for h in np.arange(0.5, 60))


def dither(task: Task, times: int = TIMES) -> Line:
    """Measures our errors: computes the exact integers once with the engine, and releases them many times."""
    u = task.mean / task.high
    theory = whole_count(), two_laplaces(1 - u, u) * task.high / task.known
    return measure("dither", _releases(task), times, theory, task.mean)


def _releases(task: Task) -> Releases:
    survey = open_curator(catalog(task.frame(), task.high), ledger=":memory:")
    plan = survey.quote(QUESTION, epsilon=1).plan
    groups = survey.engine.run(plan.work, b"s" * 32)
    while True:
        found = np.array(sorted(table(plan, release(plan, groups)).rows), dtype=float)
        yield found[:, 1] - task.n, found[:, 2]


def speed(delta: float = 0, times: int = 50) -> float:
    """Returns milliseconds for a small question, warm, without the engine: read, plan, draw noise, finish."""
    frame = pa.table({"g": pa.array([0, 1]), "x": pa.array([1, 2])})
    survey = open_curator(catalog(frame, 800, delta), ledger=":memory:")
    groups = survey.engine.run(survey.quote(QUESTION, epsilon=1).plan.work, b"s" * 32)
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        plan = survey.quote(QUESTION, epsilon=1).plan
        table(plan, release(plan, groups))
        taken.append(time.perf_counter() - start)
    return 1000 * float(np.median(taken))


def medians(times: int = 200) -> None:
    """Prints the errors and the time of medians of amounts in cents."""
    rng = np.random.default_rng(14)
    amounts = np.sort(np.round(np.minimum(rng.lognormal(4, 1.5, ROWS), 100_000), 2))
    frame = pa.table({"x": rng.permutation(amounts), "g": rng.integers(0, GROUPS, ROWS)})
    columns = {"g": values(*range(GROUPS)), "x": between(0, 100_000, step="0.01")}
    survey = open_curator(Catalog({"t": Table(frame, unit="row", columns=columns)}, Budget(1)), ledger=":memory:")
    for question in ("SELECT MEDIAN(x) AS m FROM t", "SELECT g, MEDIAN(x) AS m FROM t GROUP BY g"):
        plan, taken = survey.quote(question, epsilon="0.1").plan, []
        for _ in range(7):
            start = time.perf_counter()
            groups = survey.engine.run(plan.work, b"s" * 32)
            middle = time.perf_counter()
            release(plan, groups)
            taken.append((middle - start, time.perf_counter() - middle))
        engine, draw = (1000 * min(each) for each in zip(*taken, strict=True))
        print(f"median of {ROWS:,} amounts in cents, {len(groups)} groups: engine {engine:.0f} ms, release {draw:.0f} ms")
        if len(groups) > 1:
            continue
        ranks, held = [], 0
        for _ in range(times):
            noisy = release(plan, groups)
            value, margin = plan.readings[0].values(plan.noises, noisy.cells)[0], _margin(plan, noisy)
            first, last = np.searchsorted(amounts, value - 0.001), np.searchsorted(amounts, value + 0.001)
            ranks.append(max(0, first - ROWS / 2, ROWS / 2 - last) / ROWS)
            held += abs(value - float(np.median(amounts))) <= margin + 0.005
        print(f"  rank error {np.mean(ranks):.2g} n at epsilon 0.1, margin {margin:.2f} held {held} of {times} times")


def _margin(plan: Plan, noisy: Noisy) -> float:
    return plan.readings[0].margins(plan.noises, noisy.cells, Fraction(19, 20))[0] or 0.0


def show(ours: Line, peers: list[Line]) -> None:
    """Prints a line for each system: error ± standard error (theory), and the ratio of ours to it."""
    for line in (ours, *peers):
        print(f"  {line.name:<16}", end="")
        if line.note:
            print(f" {line.note}")
            continue
        for label, (found, spread, theory), (own, _, _) in (("COUNT", line.count, ours.count), ("AVG", line.mean, ours.mean)):
            print(f" {label} {found:#.3g} ± {spread:.2g}, theory {theory:#.3g}", end="")
            print(f", ratio {found / theory:.3f};" if line is ours else f", dither/this {own / found:.3f};", end="")
        print(f" {line.times} releases", flush=True)


def main() -> int:
    step, asked = 1 if "--whole" in sys.argv else 20, "--no-tumult" not in sys.argv
    good = True
    for name, (high, power) in TABLES.items():
        task = Task.draw(ROWS, high, power)
        ours = dither(task)
        peers = [opendp(task), opendp_by_hand(task), tumult(task, step) if asked else Line("Tumult", "left out")]
        print(f"{ROWS:,} rows, {GROUPS} groups, epsilon 1, {name}: mean absolute errors")
        show(ours, peers)
        good = good and all(found <= ALLOWED * theory for found, _, theory in (ours.count, ours.mean))
    print(f"within {ALLOWED} of the joint release's theory: {'yes' if good else 'NO'}")
    medians()
    people()
    print(f"plan and release: {speed():.2f} ms; with a delta {speed(1e-6):.2f} ms; at most 10 ms")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
