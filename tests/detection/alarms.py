"""Counts false alarms: audits of correct mechanisms that say "violates".

One turn audits every correct mechanism, each time with new random streams: as a black box on its own pairs, or as a function on
made-up data, the way `dither audit` does it (replay, then the black box). Turns come one after the other, so a run that is
stopped has still audited every mechanism equally often.

Why a small budget shows as much as a large one: each look of the black box is a test of its own with an equal, fixed share of
the error (audit/blackbox/attack.py), and its bounds hold for any number of outputs (audit/blackbox/confidence.py). A larger
budget allows more looks, up to six; it changes neither the share nor the sum of the shares. Replay sets the
noise itself; only for draws of unknown law it counts runs, with an error of 2e-9 for each pair.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from detection.case import Case
from detection.functions import function, neighbours
from dither.audit.blackbox.attack import attack
from dither.audit.foreign import Claim, Foreign, verdicts
from dither.audit.verdict import NOT_FOUND, VIOLATES, Verdict
from dither.errors import ArgumentError

Audit = Callable[[Case, float, int], Iterator[Verdict]]


@dataclass
class Tally:
    """What the audits of one mechanism said: how many in all and how many alarms, by method, and the alarms themselves."""

    audits: Counter[str] = field(default_factory=Counter)
    alarms: Counter[str] = field(default_factory=Counter)
    unconcluded: Counter[str] = field(default_factory=Counter)
    found: list[Verdict] = field(default_factory=list)

    def add(self, verdict: Verdict) -> None:
        self.audits[verdict.method] += 1
        self.unconcluded[verdict.method] += bool(verdict.open)
        if verdict.outcome == VIOLATES:
            self.alarms[verdict.method] += 1
            self.found.append(verdict)


def on_own_pairs(case: Case, seconds: float, seed: int) -> Iterator[Verdict]:
    yield attack(case.target(seed), seconds=seconds)


def on_made_up_data(case: Case, seconds: float, seed: int) -> Iterator[Verdict]:
    claim = Claim(case.epsilon, case.delta, neighbours=neighbours(case), seed=seed)
    try:
        made = Foreign.of(case.name, function(case), claim, seconds)
    except ArgumentError as error:  # on a full machine a first run may not end in time: no audit, and no conclusion
        claimed = (case.epsilon, case.delta)
        yield Verdict(case.name, "not begun", NOT_FOUND, claimed, 0.0, 1.0, None, "", {}, 0.0, open=str(error))
        return
    yield from verdicts(made, seconds, lambda words, share: None)


def count_alarms(
    cases: Sequence[Case], turns: int, seconds: float, progress: Callable[[str], None], audit: Audit, seed: int = 1000
) -> dict[str, Tally]:
    """Audits every case `turns` times, and reports after every turn."""
    tallies = {case.name: Tally() for case in cases}
    start, cpu = time.monotonic(), time.process_time()
    for turn in range(turns):
        for case in cases:
            for verdict in audit(case, seconds, seed + turn):
                tallies[case.name].add(verdict)
                if verdict.outcome == VIOLATES:
                    progress(f"alarm in turn {turn + 1}: {verdict}")
        spent, used = time.monotonic() - start, time.process_time() - cpu
        alarms = sum(sum(tally.alarms.values()) for tally in tallies.values())
        left = spent / (turn + 1) * (turns - turn - 1)
        progress(
            f"{turn + 1} of {turns} turns, {alarms} alarms, {used:.0f} CPU s, {spent:.0f} s, about {left / 60:.0f} min left"
        )
    return tallies


def alarm_table(tallies: dict[str, Tally]) -> str:
    """Returns a Markdown table: alarms of audits for each mechanism and method, and the sums."""
    methods = sorted({method for tally in tallies.values() for method in tally.audits})
    lines = ["| mechanism | " + " | ".join(methods) + " |", "|---|" + "---|" * len(methods)]
    sums = Tally()
    for name, tally in tallies.items():
        lines.append(f"| {name} | " + " | ".join(_cell(tally, method) for method in methods) + " |")
        for ours, theirs in zip(
            (sums.audits, sums.alarms, sums.unconcluded), (tally.audits, tally.alarms, tally.unconcluded), strict=True
        ):
            ours.update(theirs)
    lines.append(f"| all {len(tallies)} | " + " | ".join(_cell(sums, method) for method in methods) + " |")
    return "\n".join(lines)


def _cell(tally: Tally, method: str) -> str:
    if not tally.audits[method]:
        return "–"
    nothing = f", {tally.unconcluded[method]} without a conclusion" if tally.unconcluded[method] else ""
    return f"{tally.alarms[method]} of {tally.audits[method]}{nothing}"
