"""Runs `dither audit`, from a target's name to a report.

`dither audit dither` applies every method to dither itself:

exact      every registered mechanism's price on its law, and every family of samplers along its random bits
replay     generated questions on generated neighbouring tables, through the public API and the real engine
black box  the mechanisms as they run, attacked like any other code
measured   what run times reveal
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import numpy as np

from dither.audit import foreign, synthetic
from dither.audit.blackbox.attack import attack
from dither.audit.exact import prices, samplers
from dither.audit.exact.prices import show_mechanism
from dither.audit.inputs import AUTO
from dither.audit.ourselves import replay
from dither.audit.ourselves.timing import measure
from dither.audit.replay.pairs import ADD_REMOVE
from dither.audit.report.report import Report
from dither.audit.synthetic import audit_catalog
from dither.audit.verdict import Target, Verdict
from dither.errors import ArgumentError, Fix, Shell
from dither.exact.numbers import positive, rational
from dither.mechanisms.base import Example, Mechanism
from dither.privacy.losses import Approx, Pure

Progress = Callable[[str, float], None]  # the current step, and the share of all work that is done
ERROR, STRICT = 0.05, 1e-3  # of all black-box verdicts of one audit together
_ASKS_PER_SECOND = 60
_ARRAYS = ("Geometric", "TruncatedGeometric", "Gaussian", "RandomizedResponse", "Threshold")
NOT_CHECKED = (
    "randomness: the operating system's random numbers and AES in counter mode are assumed to be fair coin flips",
    "mechanisms at other parameters than their examples: the formulas are the same, and tests vary the parameters",
    *samplers.NOT_WALKED,
    "questions and tables that replay did not generate",
    "engines other than the installed one, and attackers who can read the machine's memory or disk",
)


def verdicts(seconds: float, seed: int, progress: Progress) -> Iterator[Verdict]:
    """Yields all verdicts on dither in about `seconds`: a quarter for walks, two fifths for replay, the rest for attacks."""
    yield from prices.over_registry(lambda share: progress("prices on exact laws", 0.05 * share))
    yield from _walks(seconds / 4, lambda share: progress("samplers, bit by bit", 0.05 + 0.2 * share))
    yield _replay(seconds * 0.4, seed, lambda share: progress("replay on neighbouring tables", 0.25 + 0.5 * share))
    yield from _attacks(seconds / 5, lambda share: progress("mechanisms as a black box", 0.75 + 0.2 * share))


def _walks(seconds: float, progress: Callable[[float], None]) -> Iterator[Verdict]:
    every, until = samplers.samplers(), time.monotonic() + seconds
    for done, sampler in enumerate(every):
        yield sampler.walk(max(0.5, until - time.monotonic())).verdict()
        progress((done + 1) / len(every))


def _replay(seconds: float, seed: int, progress: Callable[[float], None]) -> Verdict:
    return replay.replay(pairs=2000, seed=seed, seconds=seconds, progress=lambda done, total: progress(done / total))


def _attacks(seconds: float, progress: Callable[[float], None]) -> Iterator[Verdict]:
    targets = mechanisms()
    for done, target in enumerate(targets):
        each = max(0.2, seconds / len(targets))
        yield attack(target, error=ERROR / len(targets), strict=STRICT / len(targets), seconds=each)
        progress((done + 1) / len(targets))


def mechanisms() -> tuple[Target, ...]:
    """Returns one example of each registered mechanism that states an epsilon, as a target."""
    chosen = [samplers.example_of(kind) for kind in prices.kinds()]
    stated = [one for one in chosen if isinstance(one.mechanism.loss(), (Pure, Approx))]
    return tuple(_target(type(one.mechanism).__name__, one) for one in stated)


def _target(name: str, example: Example) -> Target:
    mechanism: Mechanism = example.mechanism
    loss = mechanism.loss()
    epsilon, delta = loss.pair() if isinstance(loss, (Pure, Approx)) else (loss.epsilon(prices.DELTA), prices.DELTA)

    def batch(data: Any, size: int) -> Sequence[Any]:
        return list(mechanism.release(np.full(size, data)))

    pairs = tuple((example.exact, other) for other in example.neighbours)
    return Target(show_mechanism(example), mechanism.release, epsilon, delta, pairs, batch=batch if name in _ARRAYS else None)


def timing(seconds: float, seed: int) -> dict[str, str]:
    """Measures what run time reveals, each effect with its limit. Reported, never a verdict."""
    asks = min(400, max(40, 2 * int(seconds * _ASKS_PER_SECOND / 6)))
    return {one.words: str(one).partition(": ")[2] for one in measure(asks, seed).effects}


OURS = "dither"
SECONDS = {True: 120.0, False: 60.0}  # for dither, and for other code: there of processor time on all cores


@dataclass(frozen=True)
class AuditRequest:
    """The arguments of the command line."""

    target: str
    epsilon: str | None = None
    delta: str = "0"
    data: str = AUTO
    pairs: str | None = None
    neighbours: str = ADD_REMOVE
    library: str = AUTO
    time_limit: float | None = None
    seed: int = 1
    synthetic: bool = False
    questions: str | None = None

    def command(self) -> str:
        """Returns the command that repeats the audit."""
        words = ["dither", "audit", self.target]
        if self.synthetic:
            options = {"--questions": self.questions, "--epsilon": self.epsilon, "--delta": self.delta}
            words += ["--synthetic", *(word for name, value in options.items() if value is not None for word in (name, value))]
            return shlex.join([*words, *self._ending()])
        options = {"--epsilon": self.epsilon, "--delta": self.delta, "--data": self.data, "--pairs": self.pairs}
        options |= {"--neighbours": self.neighbours, "--library": None if self.library == AUTO else self.library}
        if self.target != OURS:
            words += [word for name, value in options.items() if value is not None for word in (name, value)]
        return shlex.join([*words, *self._ending()])

    def _ending(self) -> list[str]:
        limit = [] if self.time_limit is None else ["--time-limit", f"{self.time_limit:g}"]
        return [*limit, "--seed", str(self.seed)]

    def claim(self) -> tuple[Fraction, Fraction]:
        if self.epsilon is None:
            raise ArgumentError(
                "The audit needs the epsilon that the code claims.",
                where=self.target,
                fix=Fix("add {epsilon}, with the value that the code claims.", epsilon=Shell("--epsilon 1")),
            )
        return rational(self.epsilon, "epsilon"), rational(self.delta, "delta")


def audit(
    request: AuditRequest, progress: Progress = lambda words, share: None, on_verdict: Callable[[Verdict], None] | None = None
) -> Report:
    """Runs the audit, and calls `on_verdict` with each verdict as it comes."""
    start, started = time.monotonic(), datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    limit = SECONDS[request.target == OURS] if request.time_limit is None else float(positive(request.time_limit, "time-limit"))
    runs, open_ends, facts = _verdicts_of(request, limit, progress)
    done = []
    for verdict in runs:
        done.append(verdict)
        if on_verdict is not None:
            on_verdict(verdict)
    extra = {**facts, **_measurements(request, limit, progress)}
    progress("done", 1.0)
    seconds = time.monotonic() - start
    return Report(request.target, tuple(done), request.command(), request.seed, started, seconds, open_ends, extra)


_Plan = tuple[Iterator[Verdict], tuple[str, ...], Mapping[str, str]]  # verdicts, what is not checked, and what is run on


def _verdicts_of(request: AuditRequest, limit: float, progress: Progress) -> _Plan:
    if request.target == OURS:
        if request.epsilon is not None or request.pairs is not None:
            raise ArgumentError(
                "dither states its own prices and generates its own tables.",
                fix=Fix("leave out {epsilon} and {pairs}.", epsilon=Shell("--epsilon"), pairs=Shell("--pairs")),
            )
        return verdicts(limit, request.seed, progress), NOT_CHECKED, {}
    if request.synthetic:
        price = (request.epsilon or "1", None if request.delta == "0" else request.delta)
        done = audit_catalog(
            *(request.target, request.questions, price, limit, request.seed),
            lambda share: progress("questions on generated tables", share),
        )
        return done, synthetic.NOT_CHECKED, {}
    epsilon, delta = request.claim()
    claim = foreign.Claim(epsilon, delta, request.data, None, request.neighbours, request.library, request.seed)
    target = foreign.load(request.target, claim, request.pairs, limit)
    facts = {} if target.inputs is None else {"data": target.inputs.words}
    return foreign.verdicts(target, limit, progress, processes=None), foreign.not_checked(target), facts


def _measurements(request: AuditRequest, limit: float, progress: Progress) -> Mapping[str, Any]:
    if request.target != OURS:
        return {}
    progress("what run times tell", 0.95)
    return timing(limit / 10, request.seed)
