"""Scores the black box: detection, false alarms, time, and how tight its bounds are."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from detection.case import Case
from detection.functions import function, neighbours
from dither.audit.blackbox.attack import attack
from dither.audit.foreign import Claim, Foreign, verdicts
from dither.audit.verdict import VIOLATES, Verdict


@dataclass(frozen=True)
class Row:
    """One case with the verdict of a full audit, and how many of the short ones said "violates"."""

    case: Case
    verdict: Verdict
    flagged: int
    repetitions: int

    @property
    def right(self) -> bool:
        return (self.verdict.outcome == VIOLATES) == self.case.broken

    @property
    def tightness(self) -> float:
        """Lower bound over truth; NaN if the truth is infinite."""
        return math.nan if math.isinf(self.case.truth) else self.verdict.epsilon / self.case.truth


def flags(case: Case, repetitions: int, seconds: float, seed: int = 1000, strict: float = 1e-3) -> int:
    """Counts the audits, each with its own stream, that say "violates"."""
    verdicts = (attack(case.target(seed + turn), seconds=seconds, strict=strict) for turn in range(repetitions))
    return sum(verdict.outcome == VIOLATES for verdict in verdicts)


def score(case: Case, *, seconds: float = 3.0, seed: int = 1, most: int = 4_000_000) -> Verdict:
    return attack(case.target(seed), seconds=seconds, most=most)


def made_up(case: Case, seconds: float, seed: int = 1) -> Verdict:
    """Audits the case as a function, with made-up data only: the first verdict that says "violates", or the last one."""
    claim = Claim(case.epsilon, case.delta, neighbours=neighbours(case), seed=seed)
    found: list[Verdict] = []
    for verdict in verdicts(Foreign.of(case.name, function(case), claim, seconds), seconds, lambda words, share: None):
        found.append(verdict)
        if verdict.outcome == VIOLATES:
            break
    return found[-1]


def table(rows: Iterable[Row]) -> str:
    """Returns the rows as a Markdown table."""
    lines = [
        "| mechanism | source | claim | truth | verdict | lower bound | tightness | CPU s | flagged |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        case, verdict = row.case, row.verdict
        claim = _number(float(case.epsilon)) + (f", δ {_number(float(case.delta))}" if case.delta else "")
        close = "–" if math.isnan(row.tightness) else f"{row.tightness:.2f}"
        cells = [case.name, case.source, claim, _number(case.truth), verdict.outcome, f"{verdict.epsilon:.3f}", close]
        cells += [f"{verdict.seconds:.2f}", f"{row.flagged}/{row.repetitions}" if row.repetitions else "–"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def summary(rows: Sequence[Row]) -> str:
    """Returns detection, false alarms, time and tightness in a few lines."""
    broken, right = [row for row in rows if row.case.broken], [row for row in rows if not row.case.broken]
    detected = sum(row.verdict.outcome == VIOLATES for row in broken)
    alarms = sum(row.flagged for row in right) + sum(row.verdict.outcome == VIOLATES for row in right)
    audits = sum(row.repetitions + 1 for row in right)
    seconds = [row.verdict.seconds for row in rows]
    lines = [
        f"detected: {detected} of {len(broken)} broken mechanisms",
        f"false alarms: {alarms} in {audits} audits of {len(right)} correct mechanisms",
        f"CPU seconds a verdict: median {statistics.median(seconds):.2f}, most {max(seconds):.2f}, all {sum(seconds):.0f}",
    ]
    for name, group in (("correct", right), ("broken, finite truth", broken)):
        close = [row.tightness for row in group if not math.isnan(row.tightness)]
        if close:
            lines.append(f"tightness, {name}: median {statistics.median(close):.2f}, least {min(close):.2f}")
    return "\n".join(lines)


def _number(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.4g}"
