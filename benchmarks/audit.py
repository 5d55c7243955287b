"""Runs the black box on every mechanism of the benchmark: verdict, bound, tightness, processor time, false alarms.

    python benchmarks/audit.py                         one full audit (up to 8 s) of each mechanism
    python benchmarks/audit.py --repeat 100            and 100 short ones (0.25 s) of each, to count false alarms
    python benchmarks/audit.py --only "sparse vector"  mechanisms whose name contains the text

Streams are seeded, so runs repeat; only the number of outputs drawn in the time depends on the machine.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from detection import CASES
from detection.score import Row, flags, score, summary, table


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repeat", type=int, default=0, help="short audits of each mechanism")
    options.add_argument("--short", type=float, default=0.25, help="processor seconds of a short audit")
    options.add_argument("--seconds", type=float, default=8.0, help="processor seconds of a full audit")
    options.add_argument("--only", default="", help="text in the mechanism's name")
    options.add_argument("--kind", choices=["all", "correct", "broken"], default="all")
    options.add_argument("--seed", type=int, default=1)
    args = options.parse_args()
    rows: list[Row] = []
    for case in CASES:
        if args.only in case.name and args.kind in ("all", "broken" if case.broken else "correct"):
            verdict = score(case, seconds=args.seconds, seed=args.seed)
            flagged = flags(case, args.repeat, args.short)
            rows.append(Row(case, verdict, flagged, args.repeat))
            print(f"{len(rows):3d} {verdict} flagged {flagged}/{args.repeat}", file=sys.stderr, flush=True)
    print(table(rows))
    print()
    print(summary(rows))


if __name__ == "__main__":
    main()
