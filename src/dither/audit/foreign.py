"""`dither audit module:function`: anyone's code, by replay where its noise can be recorded, then as a black box."""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dither.audit import loading
from dither.audit.blackbox import attack
from dither.audit.limits import OverdueError, alarm, grace
from dither.audit.pairs import Records, Source
from dither.audit.replay import BLIND
from dither.audit.replay import replay as replayed
from dither.audit.targets import Target
from dither.audit.verdicts import NOT_FOUND, VIOLATES, Verdict
from dither.errors import ArgumentError, Fix, Shell

Progress = Callable[[str, float], None]
_ADAPTERS = {"noise": "plain", "rng": "rng", "": "numpy"}
_PLAIN, _ODD = 6, 2  # pairs the black box compares: ordinary ones, and ones with a poisoned record
_EXAMPLES = 400
BASE = (
    "inputs other than those that were tried: a violation shown is real, but that none was found is no proof",
    "whether the pairs are all that the claim calls neighbours: add one, remove one or, with --pairs, whatever you gave",
    "run time, memory, logs and files: only what the function returns or raises was compared",
    "the quality of the random numbers that the function draws",
    "whether runs are independent of each other: a function that remembers its noise looks like one that has none",
)


@dataclass(frozen=True)
class Foreign:
    """A function with its claim, how it takes its noise, and where neighbouring inputs come from."""

    name: str
    function: Callable[..., Any]
    takes: str
    epsilon: Fraction
    delta: Fraction
    source: Source
    seed: int
    rng: np.random.Generator  # one stream for the whole audit: a new one for each call would repeat its noise

    @classmethod
    def load(
        cls, name: str, epsilon: Fraction, delta: Fraction, data: str, pairs: str | None, seed: int, seconds: float = 30.0
    ) -> Foreign:
        function = loading.function(name)
        given = loading.pairs(pairs, data)
        made = cls(name, function, loading.takes(function), epsilon, delta, given, seed, np.random.default_rng(seed))
        Target(name, function, epsilon, delta)  # refuses a claim that is none
        try:
            with alarm(grace(seconds)):
                made.check()
        except OverdueError:
            fix = Fix(
                "give it more {limit}, or smaller inputs with {pairs}.", limit=Shell("--time-limit"), pairs=Shell("--pairs")
            )
            raise ArgumentError("one run did not end within the time limit.", where=name, fix=fix) from None
        return made

    def run(self, data: Any) -> Any:
        """One call with randomness of its own. The data is copied: code may change what it is given."""
        given = copy.deepcopy(data)
        if self.takes == "rng":
            return self.function(given, self.rng)
        return self.function(given)

    def pairs(self) -> tuple[tuple[Any, Any], ...]:
        """A few pairs for the black box, which must run on each of them many times."""
        dice, found = random.Random(self.seed), []
        for source, count in ((_calm(self.source), _PLAIN), (self.source, _ODD)):
            found += [source.built(source.pair(dice)) for _ in range(count)]
        return tuple(_distinct(found))

    def check(self) -> None:
        """Something must run: a function that fails on every input keeps every promise."""
        if self.takes == "noise":
            return
        problems: list[tuple[BaseException, Any]] = []
        for pair in self.pairs():
            for data in pair:
                try:
                    self.run(data)
                except (Exception, SystemExit) as problem:
                    problems.append((problem, data))
                else:
                    return
        if not problems:
            raise ArgumentError("the pairs hold equal inputs only.", where=self.name, fix="give pairs that differ.")
        first, given = problems[0]
        text = str(first).strip().splitlines()
        raise ArgumentError(
            f"{self.name} raises {type(first).__name__} on both inputs of every pair: {text[0] if text else 'no message'}.",
            where=f"data = {repr(given)[:100]}",  # made up, or the caller's own
            fix=Fix(
                "name the kind of data it takes with {data}, or give your own pairs with {pairs}.",
                data=Shell("--data"),
                pairs=Shell("--pairs module:name"),
            ),
        )


def _calm(source: Source) -> Source:
    return replace(source, poisoned=False) if isinstance(source, Records) else source


def _distinct(pairs: list[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    seen: set[str] = set()
    for one, two in pairs:
        shown = repr((one, two))
        if shown not in seen and repr(one) != repr(two):
            seen.add(shown)
            yield one, two


def verdicts(target: Foreign, seconds: float, progress: Progress) -> Iterator[Verdict]:
    """Replay first: what it finds is certain. Then the black box, unless the function's noise is the auditor's own."""
    progress("replay on neighbouring inputs", 0.02)
    share = seconds if target.takes == "noise" else seconds / 2
    found = _in_time(target, "replay", share, lambda: _replayed(target, share))
    yield found
    if target.takes == "noise":
        return
    progress("black box", 0.5)
    spent = min(found.seconds, share)
    again = found.outcome == VIOLATES
    outside = Target(target.name, target.run, target.epsilon, target.delta, target.pairs())
    rest = max(0.5, (seconds - spent) / (4 if again else 1))
    yield _in_time(target, "black box", rest, lambda: attack(outside, seconds=rest, wall=True))


def _replayed(target: Foreign, seconds: float) -> Verdict:
    return replayed(
        target.function,
        target.epsilon,
        target.delta,
        target.source,
        _ADAPTERS[target.takes],
        examples=_EXAMPLES,
        seed=target.seed,
        seconds=seconds,
        name=target.name,
    )


def _in_time(target: Foreign, method: str, seconds: float, work: Callable[[], Verdict]) -> Verdict:
    """The verdict, or that none could be reached because the function did not come back in time."""
    begun = time.monotonic()
    try:
        with alarm(2 * grace(seconds)):
            return work()
    except OverdueError:
        why, spent = "runs did not end within the time limit", time.monotonic() - begun
        claim = (target.epsilon, target.delta)
        return Verdict(target.name, method, NOT_FOUND, claim, 0.0, 1.0, None, "", {}, spent, open=why)


def not_checked(target: Foreign) -> tuple[str, ...]:
    own = ("the noise itself: the function takes it from its caller, and the auditor handed it over",) * (
        target.takes == "noise"
    )
    return (*own, *BASE, BLIND)
