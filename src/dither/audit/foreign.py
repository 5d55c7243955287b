"""Audits a user's function, `dither audit module:function`: by replay if its noise can be recorded, then as a black box."""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from dither.audit.blackbox.attack import OverdueError, alarm, attack, grace
from dither.audit.blackbox.workers import Workers
from dither.audit.inputs import AUTO, Inputs, choose_inputs
from dither.audit.loading import library_of, load_function, load_pairs, takes, takes_size
from dither.audit.replay.adapters import NAMED
from dither.audit.replay.pairs import ADD_REMOVE, REPLACE
from dither.audit.replay.replay import BLIND, replay
from dither.audit.replay.tape import Tape
from dither.audit.verdict import NOT_FOUND, VIOLATES, Target, Verdict
from dither.errors import ArgumentError, Fix, Shell

Progress = Callable[[str, float], None]
LIBRARIES = ("numpy", "opendp", "diffprivlib")
_EXAMPLES = 400
_REPLAYED = 1 / 4  # share of the time for replay, whose findings come early
_STARTING = 6.0  # seconds of work from which further processes are worth their start
_PLAIN = (int, float, str, bytes, bool, type(None))
BASE = (
    "inputs that were not tried: a reported violation is real, but finding none proves nothing",
    "run time, memory, logs and files: only what the function returns or raises was compared",
    "the quality of the random numbers that the function draws",
    "whether runs are independent: a function that repeats its noise looks like one without noise",
)


@dataclass(frozen=True)
class Claim:
    """What is audited and how: the options of the command line, or of `assert_private`."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    data: str = AUTO
    pairs: Any = None  # a list of pairs, or a function of a random.Random
    neighbours: str = ADD_REMOVE
    library: str = AUTO
    seed: int = 1
    strict: float = 1e-3  # the probability of calling a true claim violated

    def __post_init__(self) -> None:
        if self.neighbours not in (ADD_REMOVE, REPLACE):
            fix = Fix("write {one} or {other}.", one=Shell(ADD_REMOVE), other=Shell(REPLACE))
            raise ArgumentError(f"neighbours cannot be {self.neighbours!r}.", fix=fix)
        if self.library not in (AUTO, *LIBRARIES):
            raise ArgumentError(f"no adapter is called {self.library!r}.", fix=f"write one of {', '.join(LIBRARIES)}.")


@dataclass(frozen=True)
class Foreign:
    """A function under audit: its claim, how it gets its noise, and the neighbouring inputs."""

    name: str
    function: Callable[..., Any]
    claim: Claim
    takes: str
    sized: bool
    inputs: Inputs | None = None  # None: in a worker, and until it is prepared
    rng: np.random.Generator = field(default_factory=np.random.default_rng)  # one stream, so that calls do not repeat noise
    copies: dict[int, tuple[Any, Callable[[Any], Any]]] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, function: Callable[..., Any], claim: Claim, seconds: float) -> Foreign:
        """Prepares an audit. Refuses an invalid claim, and a function that runs on no input."""
        Target(name, function, claim.epsilon, claim.delta)
        bare = cls(name, function, claim, takes(function), takes_size(function), None, np.random.default_rng(claim.seed))
        try:
            with alarm(grace(seconds)):
                made = replace(bare, inputs=choose_inputs(function, bare.run, claim.data, claim.pairs, claim.neighbours))
                made.check()
        except OverdueError:
            fix = Fix(
                "give it more {limit}, or smaller inputs with {pairs}.", limit=Shell("--time-limit"), pairs=Shell("--pairs")
            )
            raise ArgumentError("one run did not end within the time limit.", where=name, fix=fix) from None
        return made

    @property
    def adapter(self) -> str:
        if self.takes:
            return {"noise": "plain", "rng": "rng"}[self.takes]
        return library_of(self.function) if self.claim.library == AUTO else self.claim.library

    def call(self, data: Any, *noise: Any) -> Any:
        """Calls the function for one output."""
        if self.sized:
            return self.function(data, *noise, size=1)[0]
        return self.function(data, *noise)

    def run(self, data: Any) -> Any:
        """Calls the function with fresh randomness, on a copy of the data: the code may change its input."""
        given = self.copied(data)
        if self.takes == "rng":
            return self.call(given, self.rng)
        if self.takes == "noise":
            return NAMED["plain"].run(self.call, given, Tape(random.getrandbits(60)))
        return self.call(given)

    def batch(self, data: Any, size: int) -> Any:
        """Returns many outputs at once from a function that takes `size`."""
        return self.function(self.copied(data), *((self.rng,) if self.takes == "rng" else ()), size=size)

    def copied(self, data: Any) -> Any:
        """Copies the data as deeply as needed. Remembers how, because the black box copies the same data many times."""
        known = self.copies.get(id(data))
        if known is None or known[0] is not data:
            known = self.copies[id(data)] = (data, _copier(data))
        return known[1](data)

    def check(self) -> None:
        """Refuses a function that fails on every input: it would keep any promise."""
        problems: list[tuple[BaseException, Any]] = []
        for data in (data for pair in self.pairs() for data in pair):
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
            where=f"data = {repr(given)[:100]}",  # generated, or the caller's own
            fix=Fix(
                "name the kind of data it takes with {data}, or give your own pairs with {pairs}.",
                data=Shell("--data"),
                pairs=Shell("--pairs module:name"),
            ),
        )

    def pairs(self) -> tuple[tuple[Any, Any], ...]:
        return () if self.inputs is None else self.inputs.pairs(self.claim.seed)

    def target(self) -> Target:
        """Returns the function as a target of the black box."""
        batch = self.batch if self.sized else None
        return Target(self.name, self.run, self.claim.epsilon, self.claim.delta, self.pairs(), batch=batch)


def load(name: str, claim: Claim, pairs: str | None, seconds: float) -> Foreign:
    """Loads `module:function` and its pairs, and prepares the audit."""
    return Foreign.of(name, load_function(name), replace(claim, pairs=load_pairs(pairs)), seconds)


def _copier(data: Any) -> Callable[[Any], Any]:
    if isinstance(data, _PLAIN) or (isinstance(data, tuple) and all(isinstance(one, _PLAIN) for one in data)):
        return lambda same: same
    if type(data) is list and all(isinstance(one, _PLAIN) for one in data):
        return list
    if isinstance(data, np.ndarray) and data.dtype != object:
        return np.copy
    if type(data) is list and all(type(one) is dict and all(isinstance(v, _PLAIN) for v in one.values()) for one in data):
        return lambda rows: [dict(row) for row in rows]
    return copy.deepcopy


def verdicts(target: Foreign, seconds: float, progress: Progress, processes: int | None = 1) -> Iterator[Verdict]:
    """Replays first, because its findings are certain. Then attacks, unless the auditor supplies the noise.

    `seconds` are of processor time, of all processes together. With `processes` None there is one for each core; the function
    must then be importable as `module:function`.
    """
    progress("replay on neighbouring inputs", 0.02)
    share = seconds if target.takes == "noise" else seconds * _REPLAYED
    verdict = _in_time(target, "replay", share, lambda: _replay(target, share))
    yield verdict
    if target.takes == "noise":
        return
    progress("black box", _REPLAYED)
    spent = min(verdict.seconds, share)
    rest = max(0.5, (seconds - spent) / (4 if verdict.outcome == VIOLATES else 1))
    yield _in_time(target, "black box", rest, lambda: _attack(target, rest, processes))


def _attack(target: Foreign, seconds: float, processes: int | None) -> Verdict:
    outside = target.target()
    if processes == 1 or seconds < _STARTING:
        return attack(outside, seconds=seconds, strict=target.claim.strict, patience=2)
    with Workers.start(
        partial(_of_worker, target.name, replace(target.claim, pairs=None), outside.pairs), processes
    ) as workers:
        return attack(outside, seconds=seconds, strict=target.claim.strict, patience=2, workers=workers)


def _of_worker(name: str, claim: Claim, pairs: tuple[tuple[Any, Any], ...], number: int) -> Target:
    """Makes the target in a worker, with a stream of its own."""
    function = load_function(name)
    rng = np.random.default_rng([claim.seed, number])
    here = Foreign(name, function, claim, takes(function), takes_size(function), None, rng)
    return replace(here.target(), pairs=pairs)


def _replay(target: Foreign, seconds: float) -> Verdict:
    source: Any = None if target.inputs is None else target.inputs.source
    return replay(
        target.call,
        target.claim.epsilon,
        target.claim.delta,
        source,
        target.adapter,
        examples=_EXAMPLES,
        seed=target.claim.seed,
        seconds=seconds,
        name=target.name,
    )


def _in_time(target: Foreign, method: str, seconds: float, work: Callable[[], Verdict]) -> Verdict:
    """Returns the verdict, or one without a conclusion if the function did not return in time."""
    start = time.monotonic()
    try:
        with alarm(3 * grace(seconds)):
            return work()
    except OverdueError:
        why, spent = "the time was over before anything could be counted", time.monotonic() - start
        claim = (target.claim.epsilon, target.claim.delta)
        return Verdict(target.name, method, NOT_FOUND, claim, 0.0, 1.0, None, "", {}, spent, open=why)


def not_checked(target: Foreign) -> tuple[str, ...]:
    own = ("the noise itself: the function takes it as an argument, and the auditor supplied it",) * (target.takes == "noise")
    tried = "" if target.inputs is None else f"other data and neighbours than those tried: {target.inputs.words}"
    return (*own, tried, *BASE, BLIND)
