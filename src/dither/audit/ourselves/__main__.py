"""`python -m dither.audit.ourselves`: the nightly-size replay, and what run time tells. Exit code 1 if anything is found."""

from __future__ import annotations

import argparse
import os
import sys
import time

from dither.audit.ourselves.replay import Progress, replay
from dither.audit.ourselves.timing import measure
from dither.audit.verdict import VIOLATES


def main() -> int:
    parser = argparse.ArgumentParser(prog="dither.audit.ourselves", description=__doc__)
    parser.add_argument("--pairs", type=int, default=100_000, help="neighbouring pairs to compare")
    parser.add_argument("--seed", type=int, default=None, help="another run; the seed of this one is printed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seconds", type=float, default=None, help="stop after so long, whatever was done")
    parser.add_argument("--asks", type=int, default=400, help="questions whose run time is measured; 0 for none")
    given = parser.parse_args()
    seed = time.time_ns() % 10**9 if given.seed is None else given.seed
    verdict = replay(given.pairs, seed, given.seconds, _bar(), jobs=given.jobs)
    lines = [
        str(verdict),
        *(f"  {name}: {value}" for name, value in verdict.evidence.items() if name != "counterexample"),
    ]
    if verdict.outcome == VIOLATES:
        lines.append(str(verdict.evidence["counterexample"]))
    if given.asks:
        lines.append(str(measure(given.asks, seed)))
    sys.stdout.write("\n".join(lines) + "\n")
    return int(verdict.outcome == VIOLATES)


def _bar() -> Progress:
    """A line on the terminal that says how far and how much longer."""
    start = time.perf_counter()

    def show(done: int, wanted: int) -> None:
        passed = time.perf_counter() - start
        left = passed * (wanted - done) / max(done, 1)
        end = "\n" if done >= wanted else ""
        sys.stderr.write(f"\r{done:,} of {wanted:,} pairs, {done / passed:,.0f} a second, {left:,.0f} s left   {end}")
        sys.stderr.flush()

    return show


if __name__ == "__main__":
    sys.exit(main())
