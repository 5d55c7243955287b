"""Runs the nightly replay and measures what run time reveals. Exit code 1 if anything is found."""

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
    parser.add_argument("--seed", type=int, default=None, help="repeat the run with this seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seconds", type=float, default=None, help="stop after so many seconds")
    parser.add_argument("--asks", type=int, default=400, help="questions whose run time is measured; 0 for none")
    args = parser.parse_args()
    seed = time.time_ns() % 10**9 if args.seed is None else args.seed
    verdict = replay(args.pairs, seed, args.seconds, _bar(), jobs=args.jobs)
    lines = [
        str(verdict),
        *(f"  {name}: {value}" for name, value in verdict.evidence.items() if name != "counterexample"),
    ]
    if verdict.outcome == VIOLATES:
        lines.append(str(verdict.evidence["counterexample"]))
    if args.asks:
        lines.append(str(measure(args.asks, seed)))
    sys.stdout.write("\n".join(lines) + "\n")
    return int(verdict.outcome == VIOLATES)


def _bar() -> Progress:
    """Shows progress and the time left on one line of the terminal."""
    start = time.perf_counter()

    def show(done: int, total: int) -> None:
        passed = time.perf_counter() - start
        left = passed * (total - done) / max(done, 1)
        end = "\n" if done >= total else ""
        sys.stderr.write(f"\r{done:,} of {total:,} pairs, {done / passed:,.0f} a second, {left:,.0f} s left   {end}")
        sys.stderr.flush()

    return show


if __name__ == "__main__":
    sys.exit(main())
