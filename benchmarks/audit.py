"""The black box against every mechanism of the bench: verdict, lower bound, tightness, processor time, false alarms.

    python benchmarks/audit.py                         one full audit (up to 8 s) of each mechanism
    python benchmarks/audit.py --repeat 100            and 100 short ones (0.25 s) of each, to count false alarms
    python benchmarks/audit.py --only "sparse vector"  mechanisms whose name holds the text

Streams are seeded, so another run finds the same; only how far the time reaches differs from machine to machine.
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
    options.add_argument("--only", default="", help="text that the mechanism's name holds")
    options.add_argument("--kind", choices=["all", "correct", "broken"], default="all")
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    rows: list[Row] = []
    for case in CASES:
        if chosen.only in case.name and chosen.kind in ("all", "broken" if case.broken else "correct"):
            verdict = score(case, seconds=chosen.seconds, seed=chosen.seed)
            flagged = flags(case, chosen.repeat, chosen.short)
            rows.append(Row(case, verdict, flagged, chosen.repeat))
            print(f"{len(rows):3d} {verdict} flagged {flagged}/{chosen.repeat}", file=sys.stderr, flush=True)
    print(table(rows))
    print()
    print(summary(rows))


if __name__ == "__main__":
    main()
