"""Measures the errors of workloads: many linear questions at one price, against the best possible and against peers.

Gaussian thresholds and ranges: the error at rho = 1/2 of the strategy that is really used, in whole numbers, beside the lower
bound that its own run proves, and what jax-privacy's dense optimiser finds if it is installed. Pure thresholds and ranges: the
error times epsilon, beside the best figures known and a uniform binary tree's. Marginals: the closed form, and how long
planning takes. Margins: how often they hold at 95 %, over many releases.

Times are of one processor, without any cache: run it with OPENBLAS_NUM_THREADS=1.

`python benchmarks/workloads.py`; `--quick` leaves out 1024 cells. The exit code is 1 if a figure is missed.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from dither.privacy.neighbours import AddRemove
from dither.workloads.blocks import Record
from dither.workloads.choose import _best
from dither.workloads.design import Design
from dither.workloads.price import Price
from dither.workloads.residuals import Residuals
from dither.workloads.strategy import Flat
from dither.workloads.trees import Tree, widths
from dither.workloads.workload import Workload

PURE = {  # RMSE times epsilon to reach
    ("thresholds", 64): 5.33,
    ("ranges", 64): 5.56,
    ("thresholds", 256): 7.35,
    ("ranges", 256): 8.06,
    ("thresholds", 1024): 9.6,
    ("ranges", 1024): 11.1,
}
SECONDS = {64: 1.0, 256: 1.0, 1024: 15.0}
ADULT = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)  # values of Adult's 14 columns
TIMES = 10_000
missed: list[str] = []


def main() -> int:
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()  # an empty cache
    sizes = (64, 256) if "--quick" in sys.argv else (64, 256, 1024)
    line("Gaussian, rho = 1/2", "error", "÷ bound", "÷ jax-privacy", "seconds")
    for n in sizes:
        for kind in ("thresholds", "ranges"):
            gaussian(kind, n)
    line("pure, error · ε", "error", "÷ best known", "÷ binary tree", "seconds")
    for n in sizes:
        for kind in ("thresholds", "ranges"):
            pure(kind, n)
    line("marginals, rho = 1/2", "error", "÷ closed form", "÷ plain split", "milliseconds")
    marginals("10^10 cells, all 2-way", (10,) * 10, 2)
    marginals("10^10 cells, all 3-way", (10,) * 10, 3)
    marginals("Adult's columns, all ≤ 3-way", ADULT, 3)
    line("margins at 95 %", "hold in", "", "", "releases")
    for name, given in [("thresholds, pure", {"epsilon": 1}), ("thresholds, Gaussian", {"rho": "1/2"})]:
        margins(name, Workload.thresholds(64), given)
    margins("histogram, pure", Workload.histogram(16), {"epsilon": "1/10"})
    margins("marginals, pure", Workload.marginals((5, 4, 3), 2), {"epsilon": 1})
    margins("marginals, Gaussian", Workload.marginals((5, 4, 3), 2), {"rho": "1/2"})
    for each in missed:
        print(f"missed: {each}")
    return 1 if missed else 0


def line(*cells: str) -> None:
    print("\n" + cells[0].ljust(28) + "".join(each.rjust(16) for each in cells[1:]))


def row(name: str, *cells: float | str) -> None:
    print(name.ljust(28) + "".join((each if isinstance(each, str) else f"{each:.4f}").rjust(16) for each in cells))


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return run(), time.process_time() - start


def gaussian(kind: str, n: int) -> None:
    work = getattr(Workload, kind)(n)
    (matrix, ratio), seconds = timed(lambda: _best(work.gram(), True, 20))
    made = Design(Flat("optimum", work, matrix, ratio), Price(rho=Fraction(1, 2)), Record(), AddRemove())
    row(f"{kind}, {n} cells", made.rmse, ratio or math.nan, peer(work, made.rmse), seconds)
    if ratio is None or ratio > 1.001 or seconds > SECONDS[n]:
        missed.append(f"Gaussian {kind} at {n}: {ratio} of the optimum in {seconds:.1f} s")


def peer(work: Workload, error: float) -> float | str:
    """Our error over that of jax-privacy's dense optimiser, for thresholds."""
    if work.terms[0].factors[0].tag != "thresholds" or work.cells > 256:
        return "not tried"
    try:
        from jax_privacy.matrix_factorization import dense
    except ImportError:
        return "not installed"
    theirs = np.asarray(dense.optimize(work.cells), dtype=float)
    left = np.tril(np.ones((work.cells, work.cells))) @ np.linalg.inv(theirs)
    return error / math.sqrt((left**2).sum() / work.size * (theirs**2).sum(axis=0).max())


def pure(kind: str, n: int) -> None:
    work = getattr(Workload, kind)(n)
    (matrix, _), seconds = timed(lambda: _best(work.gram(), False, 20))
    made = Design(Flat("p-Identity", work, matrix), Price(epsilon=Fraction(1)), Record(), AddRemove())
    levels = len(widths(n, 2))
    tree = Design(Tree(work, 2, (Fraction(1, levels),) * levels), Price(epsilon=Fraction(1)), Record(), AddRemove())
    row(f"{kind}, {n} cells", made.rmse, made.rmse / PURE[kind, n], made.rmse / tree.rmse, seconds)
    if made.rmse > PURE[kind, n]:
        missed.append(f"pure {kind} at {n}: {made.rmse:.3f}, not {PURE[kind, n]}")


def marginals(name: str, sizes: tuple[int, ...], ways: int) -> None:
    work = Workload.marginals(sizes, ways)

    def plan() -> Design:
        made = Design(Residuals(work), Price(rho=Fraction(1, 2)), Record(), AddRemove())
        assert made.rmse > 0  # noqa: S101
        return made

    made, seconds = timed(plan)
    row(name, made.rmse, made.rmse / closed_form(work), made.rmse / math.sqrt(len(work.terms)), seconds * 1000)
    if seconds > 0.05:
        missed.append(f"{name}: planned in {seconds * 1000:.0f} ms")


def closed_form(work: Workload) -> float:
    """The error of ResidualPlanner's optimum: sum of sqrt(v_A p_A), squared, over the number of questions."""
    total = 0.0
    made = Residuals(work)
    for axes in made.sets:
        cost = math.prod(1 - 1 / work.shape[i] for i in axes)
        spread = 0.0
        for term in work:
            if set(axes) <= set(term.axes):
                spread += cost * term.size * math.prod(1 / work.shape[i] ** 2 for i in term.axes if i not in axes)
        total += math.sqrt(cost * spread)
    return total / math.sqrt(work.size)


def margins(name: str, work: Workload, given: dict[str, object]) -> None:
    made = work.design(**given)  # type: ignore[arg-type]
    cells = np.zeros(work.shape, dtype=np.int64)
    wide = np.concatenate([each.reshape(-1) for each in made.margins()])
    held = 0
    for _ in range(TIMES):
        off = np.concatenate([each.reshape(-1) for each in made.release(cells).answers])
        held += int((np.abs(off) <= wide).sum())
    share = held / (TIMES * work.size)
    row(name, share, "", "", str(TIMES))
    if not 0.94 <= share <= 0.97:
        missed.append(f"{name}: margins hold in {share:.1%}")


if __name__ == "__main__":
    sys.exit(main())
