"""Runs the black box on every mechanism of the benchmark: verdict, bound, tightness, processor time, false alarms.

    python benchmarks/audit.py                         one full audit (up to 8 s) of each mechanism
    python benchmarks/audit.py --repeat 100            and 100 short ones (0.25 s) of each, to count false alarms
    python benchmarks/audit.py --only "sparse vector"  mechanisms whose name contains the text
    python benchmarks/audit.py --made-up               each as a function, on made-up data instead of its own pairs
    python benchmarks/audit.py --set second            the mechanisms that were written after the search was tuned

Streams are seeded, so runs repeat; only the number of outputs drawn in the time depends on the machine.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from detection import CASES
from detection.functions import TRUSTING
from detection.score import Row, flags, made_up, score, summary, table
from detection.second import SECOND

SETS = {"first": CASES, "second": SECOND}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repeat", type=int, default=0, help="short audits of each mechanism")
    options.add_argument("--short", type=float, default=0.25, help="processor seconds of a short audit")
    options.add_argument("--seconds", type=float, default=8.0, help="processor seconds of a full audit")
    options.add_argument("--only", default="", help="text in the mechanism's name")
    options.add_argument("--kind", choices=["all", "correct", "broken"], default="all")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--made-up", action="store_true", help="give no pairs: the auditor makes up its inputs")
    options.add_argument("--set", choices=["first", "second"], default="first")
    args = options.parse_args()
    rows: list[Row] = []
    for case in SETS[args.set]:
        if args.made_up and case.name in TRUSTING:
            continue
        if args.only in case.name and args.kind in ("all", "broken" if case.broken else "correct"):
            audit = made_up if args.made_up else score
            verdict = audit(case, seconds=args.seconds, seed=args.seed)
            flagged = flags(case, args.repeat, args.short)
            rows.append(Row(case, verdict, flagged, args.repeat))
            print(f"{len(rows):3d} {verdict} flagged {flagged}/{args.repeat}", file=sys.stderr, flush=True)
    print(table(rows))
    print()
    print(summary(rows))


if __name__ == "__main__":
    main()
