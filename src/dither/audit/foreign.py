"""Audits a user's function, `dither audit module:function`: by replay if its noise can be recorded, then as a black box."""

from __future__ import annotations

import copy
import importlib
import inspect
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dither.audit.blackbox.attack import OverdueError, alarm, attack, grace
from dither.audit.replay.pairs import Given, Records, Source, source
from dither.audit.replay.replay import BLIND, replay
from dither.audit.verdict import NOT_FOUND, VIOLATES, Target, Verdict
from dither.errors import ArgumentError, Fix, Shell


@contextmanager
def _current_folder_first() -> Iterator[None]:
    """Puts the current folder first on sys.path, as `python -m` does."""
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def load_object(name: str, what: str) -> Any:
    """Imports the object `module:name`. Refuses a name that cannot be imported."""
    module, colon, path = name.partition(":")
    if not colon or not module or not path:
        raise ArgumentError(
            f"{what} must be written module:name, and it is {name!r}.", fix="write, for example, counts:release."
        )
    with _current_folder_first():
        try:
            importlib.invalidate_caches()
            value: Any = importlib.import_module(module)
        except ModuleNotFoundError as problem:
            if problem.name is not None and module.split(".")[0] == problem.name.split(".")[0]:
                raise ArgumentError(
                    f"there is no module {module!r} here.", fix=f"run it in the folder of {module}.py."
                ) from None
            raise ArgumentError(f"{module} needs {problem.name!r}, which is not installed.", fix="install it first.") from None
        except (Exception, SystemExit) as problem:
            raise ArgumentError(
                f"{module} cannot be imported: {_describe(problem)}.", fix="make it importable first."
            ) from None
    for part in path.split("."):
        if not hasattr(value, part):
            raise ArgumentError(f"{module} has no {path!r}.", fix=f"name one of {_names(value)}.")
        value = getattr(value, part)
    return value


def _describe(problem: BaseException) -> str:
    text = str(problem).strip().splitlines()
    return type(problem).__name__ + (f": {text[0]}" if text else "")


def _names(module: Any) -> str:
    names = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
    return ", ".join(names[:8]) or "its functions"


def load_function(name: str) -> Callable[..., Any]:
    """Imports the function `module:function`."""
    value = load_object(name, "TARGET")
    if not callable(value):
        raise ArgumentError(f"{name} is a {type(value).__name__} and cannot be called.", fix="name a function of the data.")
    function: Callable[..., Any] = value
    return function


def takes(function: Callable[..., Any]) -> str:
    """Returns how the function gets its noise: "noise" or "rng" for a second argument, "" if it draws its own.

    >>> takes(lambda data, rng: 0), takes(lambda data: 0)
    ('rng', '')
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return ""
    needed = [one for one in parameters if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    names = {one.name for one in parameters}
    spare = [one.name for one in needed[1:] if one.name not in ("noise", "rng")]
    if spare or not parameters:
        what = f"the function must take the data, and may take noise or rng; it takes {', '.join(sorted(names)) or 'nothing'}."
        raise ArgumentError(what, fix="wrap it: def audited(data): return yours(data, ...).")
    return next((name for name in ("noise", "rng") if name in names), "")


def load_pairs(name: str | None, data: str) -> Source:
    """Returns the source of neighbouring inputs: the user's list or function, or data of the named kind."""
    if name is None:
        return source(data)
    pairs = load_object(name, "--pairs")
    if callable(pairs):
        return Given(_check_pairs(pairs, name))
    if not isinstance(pairs, Sequence) or not pairs or not all(_is_pair(one) for one in pairs):
        raise ArgumentError(f"{name} must be pairs of neighbouring inputs.", fix="write a list such as [([1, 2], [1])].")
    return Given([(one, two) for one, two in pairs])


def _is_pair(one: Any) -> bool:
    return isinstance(one, (tuple, list)) and len(one) == 2


def _check_pairs(make: Callable[..., Any], name: str) -> Callable[[random.Random], tuple[Any, Any]]:
    def pair(rng: random.Random) -> tuple[Any, Any]:
        result = make(rng)
        if not _is_pair(result):
            raise ArgumentError(f"{name} must give a pair of neighbouring inputs.", fix="return (D, D′) from it.")
        one, two = result
        return one, two

    return pair


Progress = Callable[[str, float], None]
_ADAPTERS = {"noise": "plain", "rng": "rng", "": "numpy"}
_PLAIN, _ODD = 6, 2  # pairs for the black box: ordinary ones, and ones with a poisoned record
_EXAMPLES = 400
BASE = (
    "inputs that were not tried: a reported violation is real, but finding none proves nothing",
    "other neighbours than those tried: one record added or removed or, with --pairs, your own pairs",
    "run time, memory, logs and files: only what the function returns or raises was compared",
    "the quality of the random numbers that the function draws",
    "whether runs are independent: a function that repeats its noise looks like one without noise",
)


@dataclass(frozen=True)
class Foreign:
    """A function under audit: its claim, how it gets its noise, and the source of neighbouring inputs."""

    name: str
    function: Callable[..., Any]
    takes: str
    epsilon: Fraction
    delta: Fraction
    source: Source
    seed: int
    rng: np.random.Generator  # one stream for the whole audit, so that calls do not repeat their noise

    @classmethod
    def load(
        cls, name: str, epsilon: Fraction, delta: Fraction, data: str, pairs: str | None, seed: int, seconds: float = 30.0
    ) -> Foreign:
        function = load_function(name)
        given = load_pairs(pairs, data)
        made = cls(name, function, takes(function), epsilon, delta, given, seed, np.random.default_rng(seed))
        Target(name, function, epsilon, delta)  # refuses an invalid claim
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
        """Calls the function with fresh randomness, on a copy of the data: the code may change its input."""
        given = copy.deepcopy(data)
        if self.takes == "rng":
            return self.function(given, self.rng)
        return self.function(given)

    def pairs(self) -> tuple[tuple[Any, Any], ...]:
        """Returns a few pairs for the black box, which runs on each many times."""
        rng, chosen = random.Random(self.seed), []
        for origin, count in ((_without_poison(self.source), _PLAIN), (self.source, _ODD)):
            chosen += [origin.built(origin.pair(rng)) for _ in range(count)]
        return tuple(_distinct(chosen))

    def check(self) -> None:
        """Refuses a function that fails on every input: it would keep any promise."""
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
            where=f"data = {repr(given)[:100]}",  # generated, or the caller's own
            fix=Fix(
                "name the kind of data it takes with {data}, or give your own pairs with {pairs}.",
                data=Shell("--data"),
                pairs=Shell("--pairs module:name"),
            ),
        )


def _without_poison(source: Source) -> Source:
    return replace(source, poisoned=False) if isinstance(source, Records) else source


def _distinct(pairs: list[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    seen: set[str] = set()
    for one, two in pairs:
        shown = repr((one, two))
        if shown not in seen and repr(one) != repr(two):
            seen.add(shown)
            yield one, two


def verdicts(target: Foreign, seconds: float, progress: Progress) -> Iterator[Verdict]:
    """Replays first, because its findings are certain. Then attacks, unless the auditor supplies the noise."""
    progress("replay on neighbouring inputs", 0.02)
    share = seconds if target.takes == "noise" else seconds / 2
    verdict = _in_time(target, "replay", share, lambda: _replay(target, share))
    yield verdict
    if target.takes == "noise":
        return
    progress("black box", 0.5)
    spent = min(verdict.seconds, share)
    violated = verdict.outcome == VIOLATES
    outside = Target(target.name, target.run, target.epsilon, target.delta, target.pairs())
    rest = max(0.5, (seconds - spent) / (4 if violated else 1))
    yield _in_time(target, "black box", rest, lambda: attack(outside, seconds=rest, wall=True))


def _replay(target: Foreign, seconds: float) -> Verdict:
    return replay(
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
    """Returns the verdict, or one without a conclusion if the function did not return in time."""
    start = time.monotonic()
    try:
        with alarm(2 * grace(seconds)):
            return work()
    except OverdueError:
        why, spent = "runs did not end within the time limit", time.monotonic() - start
        claim = (target.epsilon, target.delta)
        return Verdict(target.name, method, NOT_FOUND, claim, 0.0, 1.0, None, "", {}, spent, open=why)


def not_checked(target: Foreign) -> tuple[str, ...]:
    own = ("the noise itself: the function takes it as an argument, and the auditor supplied it",) * (target.takes == "noise")
    return (*own, *BASE, BLIND)
