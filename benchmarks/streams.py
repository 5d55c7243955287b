"""Measures running sums: the error of the worst step, the price of rounding, and steps a second.

Gaussian, rho = 1/2 (the noise of one count has standard deviation 1): the worst step as stated, from the whole-number
recurrence with its slack, and as measured over many runs; beside the square root in real numbers, noise on
every number, noise on every sum, and a binary tree. Pure: the worst step times epsilon, beside a binary tree and one level.
Margins: how often they hold at 95 %. Speed: `feed` of an array, in steps a second of one processor, beside numpy's cumsum with
unsafe normal noise on each number.

`python benchmarks/streams.py`; `--quick` measures fewer runs. The exit code is 1 if a figure is missed.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

import numpy as np

import dither as dt
from dither.streams.fit import square_root
from dither.streams.tree import most_nodes

STEPS = 1024
WORST, PURE, SPEED = 1.02 * 3.2726, 22.1, 1e6
missed: list[str] = []


def main() -> int:
    runs = 300 if "--quick" in sys.argv else 3000
    gaussian(runs)
    pure(runs)
    doubling()
    speed()
    for each in missed:
        print("missed:", each)
    return 1 if missed else 0


def line(name: str, *cells: str) -> None:
    print(f"{name:52}" + "".join(f"{cell:>16}" for cell in cells))


def ways(name: str, here: float, others: dict[str, float]) -> None:
    """Prints an error, and how many times as large those of other ways are."""
    line(name, f"{here:.4f}", "1")
    for other, error in others.items():
        line(f"  {other}", f"{error:.4f}", f"{error / here:.3f}")


def errors(make: Callable[[], dt.RunningSum], runs: int) -> np.ndarray:
    exact = np.arange(1, STEPS + 1)
    return np.array([make().feed(np.ones(STEPS, dtype=np.int64)) - exact for _ in range(runs)])


def measured(name: str, make: Callable[[], dt.RunningSum], runs: int, unit: float) -> None:
    found = errors(make, runs)
    held = float((np.abs(found) <= make().margins("0.95")).mean())
    last = float(found[:, -100:].std()) / unit
    line(f"  measured: last 100 steps of {runs} runs; margins hold", f"{last:.4f}", f"{held:.2%}")
    if not 0.945 <= held <= 0.975:
        missed.append(f"{name}: margins hold in {held:.2%}")


def gaussian(runs: int) -> None:
    levels = int(math.log2(STEPS))
    line(f"Gaussian, {STEPS} steps, worst step ÷ σ", "error", "÷ dither's")
    # A price at which σ is 100: whole numbers are fine enough to measure.
    worst = float(dt.RunningSum(STEPS, rho="1/20000").terms.segment(0).deviations.max()) / 100
    others = {
        "square root in real numbers, the best known": square_root(STEPS),
        "binary tree": math.sqrt((levels + 1) * levels),
        "noise on every number, then summed": math.sqrt(STEPS),
        "noise on every sum": math.sqrt(STEPS),
    }
    ways("dither, whole numbers, with its slack", worst, others)
    measured("Gaussian", lambda: dt.RunningSum(STEPS, rho="1/20000"), runs, 100)
    if worst > WORST:
        missed.append(f"Gaussian: worst step {worst:.4f} > {WORST:.4f}")


def pure(runs: int) -> None:
    line(f"pure, {STEPS} steps, worst step · ε", "error", "÷ dither's")
    worst = float(dt.RunningSum(STEPS, epsilon="1/100").terms.segment(0).deviations.max()) / 100
    others = {
        "binary tree": 10 * math.sqrt(2 * most_nodes(STEPS, 2, 10)),
        "one level: noise on every number, then summed": math.sqrt(2 * STEPS),
        "noise on every sum": STEPS * math.sqrt(2),
    }
    ways("dither, the best branching", worst, others)
    measured("pure", lambda: dt.RunningSum(STEPS, epsilon="1/100"), runs, 100)
    if worst > PURE:
        missed.append(f"pure: worst step {worst:.4f} > {PURE}")


def doubling() -> None:
    line("unknown horizon, margin at 95 % ÷ that of a known one", "Gaussian", "pure")
    for steps in (64, STEPS, 1 << 16):
        cells = []
        for price in ({"rho": "1/20000"}, {"epsilon": "1/100"}):
            known, unknown = dt.RunningSum(steps, **price), dt.RunningSum(None, **price)  # type: ignore[arg-type]
            cells.append(f"{unknown.margins('0.95', steps).max() / known.margins('0.95').max():.3f}")
        line(f"  {steps} steps", *cells)


def speed() -> None:
    line("steps a second (million), one array", "steps/s", "÷ numpy")
    for steps in (STEPS, 1 << 20):
        numbers = np.ones(steps, dtype=np.int64)
        rng = np.random.default_rng()
        plain = rate(steps, lambda n=numbers, r=rng: np.cumsum(n + r.normal(size=len(n))))  # type: ignore[misc]
        for name, price in (("Gaussian", {"rho": "1/8"}), ("pure", {"epsilon": 1})):
            dt.RunningSum(steps, **price)  # type: ignore[arg-type]
            here = rate(steps, lambda n=numbers, p=price: dt.RunningSum(len(n), **p).feed(n))  # type: ignore[misc]
            line(f"  {name}, {steps} steps", f"{here / 1e6:.2f}", f"{here / plain:.4f}")
            if here < SPEED:
                missed.append(f"{name}: {here / 1e6:.2f} million steps a second")


def rate(steps: int, run: Callable[[], object]) -> float:
    """Steps a second of processor time; the best of three."""
    times = max(1, (1 << 20) // steps)
    best = math.inf
    for _ in range(3):
        begun = time.process_time()
        for _ in range(times):
            run()
        best = min(best, time.process_time() - begun)
    return times * steps / best


if __name__ == "__main__":
    sys.exit(main())
