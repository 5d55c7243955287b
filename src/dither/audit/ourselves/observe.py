"""Observes one question end to end: the engine's integers, the releases, how it ended, what was charged and written.

Mechanisms can be frozen: they draw as always, but return what they returned in an earlier run. Whatever still differs between
two neighbouring tables has then bypassed the noise: rows, order, holes, the text in the ledger. The real draws are recorded
too, because noise must not depend on the answer. A plan draws in the two places of `planning.outputs.Draw`. Each draw gets a
recorded stream of its own, so that one that needs more random bits (a choice among scores) does not shift the next.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import dither as dt
from dither.answer import Answer
from dither.audit.ourselves.spelled import params_of
from dither.curator import STEPS, Steps
from dither.engines.base import Backend, Engine
from dither.engines.registry import open_sources
from dither.exact import replay
from dither.ledger.opening import memory
from dither.planning.levels import rolled
from dither.planning.outputs import DRAW, Draw, Noisy
from dither.planning.plan import Plan
from dither.planning.price import Price
from dither.planning.program import Program, Run
from dither.planning.releases.base import Noise
from dither.query.work import Bins, Distinct, Group, Sums, Work


@dataclass
class Trace:
    """What the mechanisms of one question did: the keys that each plan showed, their outputs, and output minus exact."""

    keys: list[list[Any]] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    noise: list[Any] = field(default_factory=list)  # None for choices, which have no additive noise
    diverged: bool = False  # drew in another order or shape than the run it should repeat

    def same_noise(self, other: Trace) -> bool:
        """Tells whether the noise was the same wherever it is a number."""
        if len(self.noise) != len(other.noise):
            return False
        return all((a is None) == (b is None) and np.array_equal(a, b) for a, b in zip(self.noise, other.noise, strict=True))


class Frozen:
    """Draws from the stream of `key` and records in `trace`. With `like`, returns the outputs of that run instead."""

    def __init__(self, key: bytes, like: Trace | None, draw: Draw = DRAW) -> None:
        self.trace = Trace()
        self._key, self._like, self._draw = key, like, draw

    def keys(self, plan: Plan, exact: Mapping[tuple[Any, ...], Group]) -> list[tuple[Any, ...]]:
        place = len(self.trace.keys)
        with replay.stream(self._key + b" keys %d" % place):
            shown = self._draw.keys(plan, exact)
        self.trace.keys.append(shown)
        if self._like is None:
            return shown
        if place >= len(self._like.keys):
            self.trace.diverged = True
            return shown
        return list(self._like.keys[place])

    def noise(self, noise: Noise, exact: Sequence[Any]) -> Any:
        place = len(self.trace.outputs)
        with replay.stream(self._key + b" noise %d" % place):
            output = self._draw.noise(noise, exact)
        self.trace.outputs.append(output)
        self.trace.noise.append(None if isinstance(noise.of.measure, Bins) else _noise(output, exact))
        if self._like is None:
            return output
        if place >= len(self._like.outputs) or self._like.outputs[place].shape != output.shape:
            self.trace.diverged = True
            return output
        return self._like.outputs[place].copy()


def _noise(output: Any, exact: Sequence[Any]) -> Any:
    cells = [value if isinstance(value, tuple) else (value,) for value in exact]
    return output.astype(object) - np.array(cells, dtype=object).reshape(output.shape)


Change = Callable[[Work], Work]
Written = tuple[Mapping[str, Any], ...]
KEY = b"the same dice on both sides"
FIRST = ("opened/1", "catalog/1")  # what a ledger writes before the entries of its first question
CHANCE = ("number", "previous", "nonce", "time", "token", "reserved", "reserved_hash")  # new for every entry


class Recorder:
    """Steps that record the engine's integers for each plan and, during `recording`, what the mechanisms drew."""

    def __init__(self, steps: Steps = STEPS) -> None:
        self.ran: list[tuple[Plan, list[Group]]] = []
        self._plans: tuple[Plan, ...] = ()
        self.frozen: Frozen | None = None
        self._steps = steps

    def run(self, engine: Engine, work: Work) -> Sequence[Group]:
        groups = list(self._steps.run(engine, work))
        for plan in self._plans:  # grouping sets share a work: each adds up its groups
            if plan.work is work:
                self.ran.append((plan, groups if plan.level is None else rolled(groups, plan.level)))
        return groups

    def release(self, program: Program, run: Run, draw: Draw) -> Sequence[Noisy]:
        self._plans = tuple(getattr(program, "plans", ()))
        return self._steps.release(program, run, draw)

    def keys(self, plan: Plan, exact: Mapping[tuple[Any, ...], Group]) -> list[tuple[Any, ...]]:
        return (self.frozen or self._steps.draw).keys(plan, exact)

    def noise(self, noise: Noise, exact: Sequence[Any]) -> Any:
        return (self.frozen or self._steps.draw).noise(noise, exact)

    @contextmanager
    def recording(self, key: bytes, like: Trace | None) -> Iterator[Trace]:
        """Records one question with replayed randomness. For one thread: the auditor runs processes only."""
        self.ran, self.frozen = [], Frozen(key, like, self._steps.draw)
        try:
            with replay.stream(key):
                yield self.frozen.trace
        finally:
            self.frozen = None


@dataclass(frozen=True)
class RecordedSteps(Steps):
    """The steps of an observed curator, with their recorder."""

    recorder: Recorder = field(default_factory=Recorder)

    @classmethod
    def over(cls, steps: Steps) -> RecordedSteps:
        recorder = Recorder(steps)
        same = {name: getattr(steps, name) for name in ("read", "plan", "prepare", "table")}
        return cls(
            **same, run=recorder.run, release=recorder.release, draw=Draw(recorder.keys, recorder.noise), recorder=recorder
        )


@dataclass(frozen=True)
class Observation:
    """One question from end to end. `status` is "answered" or the text of the refusal.

    `entries` are the bodies written to the ledger, without the fields in CHANCE; the noisy answer is their `payload`. `groups`
    are the integers of the answer's plan; `others` are the further plans that ran, with theirs.
    """

    status: str
    plan: Plan | None
    groups: list[Group]
    answer: Answer | None
    charge: Price
    entries: Written = ()
    trace: Trace = field(default_factory=Trace, compare=False)
    others: tuple[tuple[Plan, list[Group]], ...] = ()

    def integers(self) -> dict[tuple[Any, ...], Group]:
        return {group.key: group for group in self.groups}

    def only(self) -> tuple[Any, ...]:
        """Returns the measures of the single group."""
        (group,) = self.groups
        return group.measures


def with_changed_work(change: Change, steps: Steps = STEPS) -> Steps:
    """Returns steps that hand the engine another Work than the one that was priced."""
    return replace(steps, run=lambda engine, work: steps.run(engine, change(work)))


def open_curator(catalog: dt.Catalog, steps: Steps = STEPS, backend: Backend | None = None) -> dt.Curator:
    """Opens an observed curator with its own ledger. `backend` opens the sources instead of the registered one."""
    sources = open_sources(catalog) if backend is None else backend.open(catalog)
    return dt.Curator(
        sources.catalog,
        sources.engine,
        memory(),
        declared=catalog,
        files=sources.unchanged,
        closing=sources.close,
        steps=RecordedSteps.over(steps),
    )


def open_observed(catalog: dt.Catalog, change: Change | None = None) -> dt.Curator:
    """Opens a curator whose questions can be observed. `change` plants a bug: what a careless engine makes of a Work."""
    return open_curator(catalog, with_changed_work(change) if change else STEPS)


def recorder_of(curator: dt.Curator) -> Recorder:
    if not isinstance(curator.steps, RecordedSteps):
        raise TypeError("this curator is not observed: open it with open_observed")
    return curator.steps.recorder


def observe(
    curator: dt.Curator,
    question: str,
    epsilon: Any = 1,
    delta: Any = None,
    key: bytes = KEY,
    like: Trace | None = None,
    params: Any = None,
    **terms: Any,
) -> Observation:
    """Asks with replayed randomness: the engine's secret and all noise are the same for the same key.

    `like`: the trace of an earlier run. The mechanisms draw, and then the outputs of that run are passed on.
    `params`: the values of parameters, by default those of generated questions. `terms`: further arguments of `ask`.
    """
    recorder, start, before = recorder_of(curator), curator.ledger.head().number, curator.budget.spent
    answer, status = None, "answered"
    with recorder.recording(key, like) as trace:
        try:
            values = params_of(question) if params is None else params
            answer = curator.ask(question, epsilon=epsilon, delta=delta, fresh=True, params=values, **terms)
        except dt.DitherError as error:
            status = f"{type(error).__name__}: {error}"
    spent = curator.budget.spent
    charge = Price(spent.epsilon - before.epsilon, spent.delta - before.delta)
    entries = entries_after(curator, start)
    plan = None if answer is None else answer.plan
    groups = next(
        (each for one, each in recorder.ran if one is plan), [] if plan else [g for _, each in recorder.ran for g in each]
    )
    others = tuple((one, each) for one, each in recorder.ran if plan is not None and one is not plan)
    return Observation(status, plan, groups, answer, charge, entries, trace, others)


def entries_after(curator: dt.Curator, start: int) -> Written:
    """Returns the bodies written after entry `start`, without the fields in CHANCE."""
    bodies = [json.loads(row.body) for row in curator.ledger.store.rows(start + 1) if row.kind not in FIRST]
    return tuple({name: part for name, part in body.items() if name not in CHANCE} for body in bodies)


def looser(rows: int = 1, groups: int = 1) -> Change:
    """Returns a planted bug: each unit gets in with more rows and more groups than were priced."""

    def change(work: Work) -> Work:
        measures = tuple(
            replace(each, max_values=each.max_values * rows)
            if isinstance(each, Distinct)
            else replace(each, max_rows=each.max_rows * rows)
            for each in work.measures
        )
        return replace(work, measures=measures, max_groups=work.max_groups and work.max_groups * groups)

    return change


def empty(measure: Sums | Distinct | Bins) -> Any:
    """Returns the measure of a group without rows."""
    return (0,) * len(measure.cells) if isinstance(measure, Sums) else {} if isinstance(measure, Bins) else 0
