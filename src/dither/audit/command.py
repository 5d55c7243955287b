"""What `dither audit` does, from a target's name to a report."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from dither.audit import foreign, ours
from dither.audit.report import Report
from dither.audit.verdicts import Verdict
from dither.errors import ArgumentError, Fix, Shell
from dither.exact.numbers import positive, rational

OURS = "dither"
SECONDS = {True: 120.0, False: 30.0}  # ours, and anyone's
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Asked:
    """The command line, as it was given."""

    target: str
    epsilon: str | None = None
    delta: str = "0"
    data: str = "numbers"
    pairs: str | None = None
    time_limit: float | None = None
    seed: int = 1

    def command(self) -> str:
        """The command that does it again."""
        words = ["dither", "audit", self.target]
        options = {"--epsilon": self.epsilon, "--delta": self.delta, "--data": self.data, "--pairs": self.pairs}
        if self.target != OURS:
            words += [word for name, value in options.items() if value is not None for word in (name, value)]
        if self.time_limit is not None:
            words += ["--time-limit", f"{self.time_limit:g}"]
        return shlex.join([*words, "--seed", str(self.seed)])

    def claim(self) -> tuple[Fraction, Fraction]:
        if self.epsilon is None:
            raise ArgumentError(
                "It is not said what is promised.",
                where=self.target,
                fix=Fix("add {epsilon}, or what the code claims.", epsilon=Shell("--epsilon 1")),
            )
        return rational(self.epsilon, "epsilon"), rational(self.delta, "delta")


def audit(
    asked: Asked, progress: Progress = lambda words, share: None, tell: Callable[[Verdict], None] | None = None
) -> Report:
    """Run the audit; `tell` hears each verdict as it comes."""
    begun, started = time.monotonic(), datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    limit = SECONDS[asked.target == OURS] if asked.time_limit is None else float(positive(asked.time_limit, "time-limit"))
    runs, open_ends = _runs(asked, limit, progress)
    found = []
    for verdict in runs:
        found.append(verdict)
        if tell is not None:
            tell(verdict)
    extra = _measured(asked, limit, progress)
    progress("done", 1.0)
    seconds = time.monotonic() - begun
    return Report(asked.target, tuple(found), asked.command(), asked.seed, started, seconds, open_ends, extra)


def _runs(asked: Asked, limit: float, progress: Progress) -> tuple[Iterator[Verdict], tuple[str, ...]]:
    if asked.target == OURS:
        if asked.epsilon is not None or asked.pairs is not None:
            raise ArgumentError(
                "dither states its own prices and makes its own tables.",
                fix=Fix("leave out {epsilon} and {pairs}.", epsilon=Shell("--epsilon"), pairs=Shell("--pairs")),
            )
        return ours.verdicts(limit, asked.seed, progress), ours.NOT_CHECKED
    target = foreign.Foreign.load(asked.target, *asked.claim(), asked.data, asked.pairs, asked.seed, limit)
    return foreign.verdicts(target, limit, progress), foreign.not_checked(target)


def _measured(asked: Asked, limit: float, progress: Progress) -> Mapping[str, Any]:
    if asked.target != OURS:
        return {}
    progress("what run times tell", 0.95)
    return ours.timing(limit / 10, asked.seed)
