"""Defines a program: everything that is charged as one, such as an answer, a proposal of bounds or a workload.

    identity ─▶ charge ─▶ works prepared ─▶ charged ─▶ release

Before the first row is read, a program states its identity, its whole price, the noise the price is for, and every Work that it
may run. The price is read from the objects that draw, so that it cannot differ from the noise. Later steps may depend on the
noisy numbers of earlier ones. Then `charge` must hold for adaptive choice: add up the steps (epsilons, deltas and rhos add
under adaptive composition) and take the largest where one of several is chosen. What a program returns is stored; nothing else
of it is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

from dither.planning import outputs
from dither.planning.left_out import Cuts, LeftOut, left_out_of
from dither.planning.levels import Levels
from dither.planning.outputs import DRAW, Draw, Noisy
from dither.planning.plan import Plan
from dither.planning.price import Price
from dither.planning.records import Identity, identity
from dither.privacy.filters import Charge
from dither.privacy.losses import Approx, Pure, total
from dither.query.work import Group, Work


def charge(plans: Sequence[Plan]) -> Charge:
    """Returns the charge of plans that run together. A question is one plan; a proposal of bounds has several."""
    losses, concentrated = [plan.loss for plan in plans], [plan.zcdp for plan in plans]
    stated = total(losses)
    if not isinstance(stated, (Pure, Approx)):
        raise TypeError("a plan's loss is pure or (epsilon, delta)")
    return Charge.of(stated, total(concentrated).zcdp())


def mechanisms(plans: Sequence[Plan]) -> tuple[dict[str, Any], ...]:
    """Returns a record for each noise that will be drawn: its name and exact parameters, in plain values."""
    records = []
    for plan in plans:
        sample = {} if plan.sample is None else {"sample": str(plan.sample.q)}
        for noise in plan.noises:
            records.append({**noise.record, "on": noise.of.words, "groups": noise.groups, "steps": noise.steps, **sample})
        records += [{**plan.threshold.record(), "on": "keys", "groups": 1, "steps": 1, **sample}] if plan.threshold else []
    return tuple(records)


Run = Callable[[Work], Sequence[Group]]


def distinct_works(plans: Sequence[Plan]) -> tuple[Work, ...]:
    """Returns the works of the plans, each once: plans of grouping sets share one."""
    return tuple({id(plan.work): plan.work for plan in plans}.values())


class Program(Protocol):
    """Anything that can be charged and released."""

    @property
    def identity(self) -> str:
        """The text that stored answers are looked up by: equal if and only if releases and price are equal."""

    @property
    def charge(self) -> Charge:
        """The whole price of the most expensive path through `release`, as (epsilon, delta) and as zCDP."""

    @property
    def mechanisms(self) -> tuple[Mapping[str, Any], ...]:
        """A record of every noise that may be drawn."""

    @property
    def works(self) -> tuple[Work, ...]:
        """The Works that `release` may run. An engine prepares them before anything is charged."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables it reads."""

    @property
    def unit(self) -> str:
        """The protected unit, in words."""

    def release(self, run: Run, draw: Draw) -> Sequence[Noisy]:
        """Runs the `works` it needs and adds the noise. Draws through `draw` only."""

    def write(self, released: Sequence[Noisy]) -> str:
        """Encodes the answer that is stored under `identity`."""

    def read(self, stored: str) -> Sequence[Noisy]:
        """Decodes a stored answer, in the order in which this program releases."""


def release(program: Program, run: Run, draw: Draw = DRAW) -> tuple[Noisy, ...]:
    """Releases the program's noisy numbers. It can run the prepared Works only."""
    prepared = tuple(program.works)

    def run_prepared(work: Work) -> Sequence[Group]:
        for each in prepared:  # not a generator: a Ctrl-C is lost if it comes while one is being closed
            if each is work:
                return run(work)
        raise RuntimeError("a program runs a Work that was not among its works")

    return tuple(program.release(run_prepared, draw))


@dataclass(frozen=True)
class Batch:
    """Independent plans that run and are charged together: one for an answer, several for a proposal of bounds.

    `cuts`: what the bounds of an answer can leave out; the last plans estimate it.
    """

    plans: tuple[Plan, ...]
    tables: tuple[str, ...]
    purpose: str = "answer"
    rows: int | None = None  # rows in a group, for predicted margins
    relative: str = ""  # what a margin in percent was relative to
    cuts: Cuts = field(default=Cuts(), compare=False)
    levels: Levels | None = None  # the first plans are grouping sets
    works: tuple[Work, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "works", distinct_works(self.plans))

    @property
    def size(self) -> int:
        """How many releases it has."""
        return len(self.plans)

    @cached_property
    def total(self) -> Price:
        """The price of everything, as (epsilon, delta)."""
        return Price(self.charge.epsilon, self.charge.delta)

    @property
    def quoted(self) -> Batch:
        """The plans that a quote shows."""
        return self

    @property
    def further(self) -> tuple[tuple[str, str], ...]:
        """Further lines of a quote: a word, and what it says."""
        return (("asked for", self.relative),) if self.relative else ()

    def answer(self, released: Sequence[Noisy]) -> tuple[Batch, Sequence[Noisy], str]:
        """Returns the plans of the answer, their noisy numbers, and a note on how the plans were chosen."""
        return self, released, ""

    @cached_property
    def _identity(self) -> Identity:
        return identity(self.plans, self.purpose)

    @property
    def identity(self) -> str:
        return self._identity.text

    @cached_property
    def charge(self) -> Charge:
        return charge(self.plans)

    @cached_property
    def mechanisms(self) -> tuple[Mapping[str, Any], ...]:
        return mechanisms(self.plans)

    @property
    def unit(self) -> str:
        own = self.plans[: len(self.plans) - len(self.cuts.parts)]  # the others have one row for each unit
        units = dict.fromkeys(f"one value of {plan.unit}" if plan.work.by_unit else "one row" for plan in own)
        return " and ".join(units)

    def release(self, run: Run, draw: Draw) -> tuple[Noisy, ...]:
        groups: dict[int, Sequence[Group]] = {}
        released = []
        for plan in self.plans:
            if id(plan.work) not in groups:  # grouping sets share one work, which runs once
                groups[id(plan.work)] = run(plan.work)
            released.append(outputs.release(plan, groups[id(plan.work)], draw))
        return tuple(released)

    def write(self, released: Sequence[Noisy]) -> str:
        return self._identity.write(released)

    def read(self, stored: str) -> tuple[Noisy, ...]:
        return self._identity.read(stored)

    def left_out(self, released: Sequence[Noisy], confidence: Fraction) -> tuple[LeftOut, ...]:
        """Reads what the bounds of an answer left out."""
        own, place = self.own, max(range(self.own), key=lambda each: len(self.plans[each].query.keys))
        plans, noisy = (self.plans[place], *self.plans[own:]), (released[place], *released[own:])
        return left_out_of(self.cuts.parts, plans, noisy, confidence)

    @property
    def each_level(self) -> tuple[Batch, ...]:
        """The plans of the grouping sets, each alone."""
        cuts = replace(self.cuts, parts=())
        return tuple(replace(self, plans=(plan,), cuts=cuts, levels=None) for plan in self.plans[: self.own])

    @property
    def own(self) -> int:
        """How many plans the answer has: one, or one for each grouping set. The others estimate what is left out."""
        return 1 if self.levels is None else self.levels.count
