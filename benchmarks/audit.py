"""Runs the black box on every mechanism of the benchmark: verdict, bound, tightness, processor time, false alarms.

    python benchmarks/audit.py                         one full audit (up to 8 s) of each mechanism
    python benchmarks/audit.py --repeat 100            and 100 short ones (0.25 s) of each, to count false alarms
    python benchmarks/audit.py --only "sparse vector"  mechanisms whose name contains the text
    python benchmarks/audit.py --made-up               each as a function, on made-up data instead of its own pairs
    python benchmarks/audit.py --set second            the mechanisms that were written after the search was tuned
    python benchmarks/audit.py --false-alarms 100 --cpu 1   100 audits of each correct mechanism: alarms (also with --made-up)

Streams are seeded, so runs repeat; only the number of outputs drawn in the time depends on the machine.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from detection import CASES
from detection.alarms import alarm_table, count_alarms, on_made_up_data, on_own_pairs
from detection.functions import TRUSTING
from detection.score import Row, flags, made_up, score, summary, table
from detection.second import SECOND

SETS = {"first": CASES, "second": SECOND}


def count_false_alarms(args: argparse.Namespace) -> None:
    """Prints a table of alarms for the correct mechanisms of the set."""
    correct = [case for case in SETS[args.set] if not case.broken and args.only in case.name]
    correct = [case for case in correct if not (args.made_up and case.name in TRUSTING)]
    data, audit = ("made-up data", on_made_up_data) if args.made_up else ("their own pairs", on_own_pairs)
    print(f"{args.set} set, {len(correct)} correct mechanisms on {data}, {args.cpu:g} s of processor time each", flush=True)
    tallies = count_alarms(correct, args.false_alarms, args.cpu, _say, audit, seed=1000 * args.seed)
    print(alarm_table(tallies))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


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
    options.add_argument("--false-alarms", type=int, default=0, metavar="TURNS", help="count alarms on correct mechanisms only")
    options.add_argument("--cpu", type=float, default=1.0, help="processor seconds of an audit that counts false alarms")
    args = options.parse_args()
    if args.false_alarms:
        count_false_alarms(args)
        return
    rows: list[Row] = []
    for case in SETS[args.set]:
        if args.made_up and case.name in TRUSTING:
            continue
        if args.only in case.name and args.kind in ("all", "broken" if case.broken else "correct"):
            audit = made_up if args.made_up else score
            verdict = audit(case, seconds=args.seconds, seed=args.seed)
            flagged = flags(case, args.repeat, args.short)
            rows.append(Row(case, verdict, flagged, args.repeat))
            _say(f"{len(rows):3d} {verdict} flagged {flagged}/{args.repeat}")
    print(table(rows))
    print()
    print(summary(rows))


if __name__ == "__main__":
    main()
