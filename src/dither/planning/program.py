"""What a plan costs, stated both ways, and which noise it is the price of: for ledgers and receipts.

Everything here is read off the objects that draw: a price of its own, kept beside them, could come apart from the noise.

What is charged as one: an answer, a proposal of bounds, later a workload or a training run.

    identity ─▶ charge ─▶ works prepared ─▶ charged ─▶ release

A program states all of it before the first row is read: its identity, its whole price, the noise the price is for, and every
Work that it may run. Its later steps may depend on what its earlier ones released, that is on noisy numbers. Then `charge`
must hold for adaptive choice: add up steps (epsilons, deltas and rhos add under adaptive composition) and take the largest
where one of several is chosen. What a program returns is stored, and is all that anyone sees of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from dither.planning import outputs
from dither.planning.outputs import DRAW, Draw, Noisy
from dither.planning.plan import Plan
from dither.planning.records import Identity, identity
from dither.privacy.filters import Charge
from dither.privacy.losses import Approx, Pure, total
from dither.query.work import Group, Work


def charge(plans: Sequence[Plan]) -> Charge:
    """The charge of plans that are run together. A question is one plan; a proposal of bounds has several."""
    losses, concentrated = [plan.loss for plan in plans], [plan.zcdp for plan in plans]
    stated = total(losses)
    if not isinstance(stated, (Pure, Approx)):
        raise TypeError("a plan's loss is pure or (epsilon, delta)")
    return Charge.of(stated, total(concentrated).zcdp())


def mechanisms(plans: Sequence[Plan]) -> tuple[dict[str, Any], ...]:
    """One record for each noise that will be drawn: its name and its exact parameters, in plain values."""
    found = []
    for plan in plans:
        for noise in plan.noises:
            found.append({**noise.record, "on": noise.of.words, "groups": noise.groups, "steps": noise.steps})
        found += [{**plan.threshold.record(), "on": "keys", "groups": 1, "steps": 1}] if plan.threshold else []
    return tuple(found)


Run = Callable[[Work], Sequence[Group]]


class Program(Protocol):
    """Anything that can be charged and released."""

    @property
    def identity(self) -> str:
        """The same text for the same releases at the same price, and for no others: what a stored answer is found by."""

    @property
    def charge(self) -> Charge:
        """The whole price, stated both ways: of the worst that `release` may choose to do."""

    @property
    def mechanisms(self) -> tuple[Mapping[str, Any], ...]:
        """A record of every noise that may be drawn."""

    @property
    def works(self) -> tuple[Work, ...]:
        """All that `release` may run. An engine prepares them before anything is charged."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables it is about."""

    @property
    def unit(self) -> str:
        """Who is protected, in words."""

    def release(self, run: Run, draw: Draw) -> Sequence[Noisy]:
        """Runs what it needs of `works` and adds the noise, by `draw` alone."""

    def write(self, released: Sequence[Noisy]) -> str:
        """The answer as it is stored under `identity`."""

    def read(self, stored: str) -> Sequence[Noisy]:
        """A stored answer as this program would have released it."""


def release(program: Program, run: Run, draw: Draw = DRAW) -> tuple[Noisy, ...]:
    """The program's noisy numbers. It is given nothing to run but what was prepared: the very objects."""
    prepared = tuple(program.works)

    def run_prepared(work: Work) -> Sequence[Group]:
        for each in prepared:  # no generator: a Ctrl-C while one is dropped half-way would be lost
            if each is work:
                return run(work)
        raise RuntimeError("a program runs a Work that was not among its works")

    return tuple(program.release(run_prepared, draw))


@dataclass(frozen=True)
class Batch:
    """Plans that are run and charged together, none depending on another: one for an answer, several for a proposal."""

    plans: tuple[Plan, ...]
    tables: tuple[str, ...]
    purpose: str = "answer"
    rows: int | None = None  # that margins are predicted with
    works: tuple[Work, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "works", tuple(plan.work for plan in self.plans))

    @cached_property
    def same(self) -> Identity:
        """What makes it the same question as another."""
        return identity(self.plans, self.purpose)

    @property
    def identity(self) -> str:
        return self.same.text

    @cached_property
    def charge(self) -> Charge:
        return charge(self.plans)

    @cached_property
    def mechanisms(self) -> tuple[Mapping[str, Any], ...]:
        return mechanisms(self.plans)

    @property
    def unit(self) -> str:
        units = dict.fromkeys(f"one value of {plan.unit}" if plan.work.by_unit else "one row" for plan in self.plans)
        return " and ".join(units)

    def release(self, run: Run, draw: Draw) -> tuple[Noisy, ...]:
        return tuple(outputs.release(plan, run(plan.work), draw) for plan in self.plans)

    def write(self, released: Sequence[Noisy]) -> str:
        return self.same.write(released)

    def read(self, stored: str) -> tuple[Noisy, ...]:
        return self.same.read(stored)
