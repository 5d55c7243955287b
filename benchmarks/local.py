"""Speed and error of local reports: `python benchmarks/local.py`.

CPU seconds of one process. Reports are drawn with exact coins from the cryptographic stream; numpy's column draws the same bits
with `rng.random() < p`, which is neither exact nor secret.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

import dither as dt
from dither.local.randomisers import RANDOMISERS
from dither.local.shuffle import shuffled_epsilon
from dither.local.simulate import simulate

ROWS = 200_000
ANCHORS = {"response": 347.1, "unary": 3.683, "hashing": 3.692, "subset": 3.674, "hadamard": 4.683}


def cpu(call: Callable[[], object]) -> float:
    """The least CPU time of three calls."""
    times = []
    for _ in range(3):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def speeds() -> None:
    print(f"{'kind':<10} {'values':>6} {'M reports/s':>12} {'s per M aggregated':>19} {'variance x n':>13} {'literature':>11}")
    for size in (2, 100, 1024):
        for kind, maker in RANDOMISERS.items():
            made = maker(Fraction(1), size)
            rows = ROWS // 20 if kind == "subset" else ROWS
            values = np.random.default_rng(0).integers(0, size, rows)
            reports = made.encode(values)
            drawn, counted = cpu(lambda: made.encode(values)), cpu(lambda: made.count(reports))  # noqa: B023
            known = f"{ANCHORS[kind]:.3f}" if size == 1024 else ""
            variance = float(made.variance(0.0))
            print(
                f"{kind:<10} {size:>6} {rows / drawn / 1e6:>12.2f} {counted / rows * 1e6:>19.3f} {variance:>13.3f} {known:>11}"
            )
    rng = np.random.default_rng(0)
    plain = cpu(lambda: np.packbits(rng.random((2000, 1024)) < 0.27, axis=1)) / 2000
    ours = cpu(lambda: RANDOMISERS["unary"](Fraction(1), 1024).encode(np.zeros(2000, dtype=np.int64))) / 2000
    print(f"unary reports of 1024 values, numpy's time over ours: {plain / ours:.1f}")


def errors() -> None:
    print("\ntypical error in people, 10 values, epsilon 1: without and with a trusted curator")
    for people in (10_000, 100_000, 1_000_000):
        local, central = simulate(dt.LocalSurvey.choice("x", 10, epsilon=1), people).errors()
        print(f"  {people:>9,} people   {local:>8,.0f}   {central:>5.1f}   ratio {local / central:,.0f}")
    print("\nshuffled reports, epsilon0 = 1, delta = 1e-6 (closed form 0.214 at 10,000):")
    for people in (1000, 10_000, 100_000):
        print(f"  {people:>9,} reports   epsilon {float(shuffled_epsilon(1, people, '1e-6')):.4f}")


if __name__ == "__main__":
    speeds()
    errors()
