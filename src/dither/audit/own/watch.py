"""The whole path under observation: what the engine said, what was released, how it ended, what was charged and written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import dither as dt
from dither.answer import Answer
from dither.audit.own.frozen import Trace, frozen
from dither.engines.base import Engine
from dither.exact import replay
from dither.planning.choose import Price
from dither.planning.plan import Plan
from dither.query.work import Bins, Distinct, Group, Sums, Work

Change = Callable[[Work], Work]
Written = tuple[Mapping[str, Any], ...]
KEY = b"the same dice on both sides"
FIRST = ("opened/1", "catalog/1")  # what a ledger's first question writes before its own entries: no question is in it
CHANCE = ("number", "previous", "nonce", "time", "token", "reserved", "reserved_hash")  # new for every entry, whatever the rows


class Watched:
    """An engine that remembers its integers. `change` lets a twin hand it another Work than the one that was priced."""

    name = "watched"

    def __init__(self, engine: Engine, change: Change | None = None) -> None:
        self.engine, self.change = engine, change
        self.groups: list[Group] = []

    def schema(self, table: str) -> Mapping[str, str]:
        return self.engine.schema(table)

    def prepare(self, work: Work) -> None:
        self.engine.prepare(work)

    def run(self, work: Work, secret: bytes) -> list[Group]:
        self.groups = []
        self.groups = list(self.engine.run(self.change(work) if self.change else work, secret))
        return self.groups


@dataclass(frozen=True)
class Seen:
    """One question from end to end. `status` is "answered", or the refusal as it was shown.

    `entries` are the bodies that the ledger got, without what is new for every entry; the noisy answer is their `payload`.
    """

    status: str
    plan: Plan | None
    groups: list[Group]
    answer: Answer | None
    charge: Price
    entries: Written = ()
    trace: Trace = field(default_factory=Trace, compare=False)

    def integers(self) -> dict[tuple[Any, ...], Group]:
        return {group.key: group for group in self.groups}

    def only(self) -> tuple[Any, ...]:
        """The measures of the single group."""
        (group,) = self.groups
        return group.measures


def watched(catalog: dt.Catalog, change: Change | None = None) -> dt.Curator:
    """The public door, with an engine that remembers."""
    curator = dt.open(catalog, ledger=":memory:")
    curator._engine = Watched(curator._engine, change)
    return curator


def engine_of(curator: dt.Curator) -> Watched:
    if not isinstance(curator._engine, Watched):
        raise TypeError("this curator is not watched")
    return curator._engine


def see(
    curator: dt.Curator, question: str, epsilon: Any = 1, delta: Any = None, key: bytes = KEY, like: Trace | None = None
) -> Seen:
    """Asks with recorded dice: the engine's secret and all noise are the same for the same key.

    `like`: what the mechanisms gave in an earlier run; they draw all the same, and then these outputs are passed on.
    """
    engine, start, before = engine_of(curator), curator.ledger.head().number, curator.budget.spent
    engine.groups, answer, status = [], None, "answered"
    with frozen(key, like) as trace:
        try:
            with replay.stream(key):
                answer = curator.ask(question, epsilon=epsilon, delta=delta, fresh=True)
        except dt.DitherError as error:
            status = f"{type(error).__name__}: {error}"
    spent = curator.budget.spent
    charge = Price(spent.epsilon - before.epsilon, spent.delta - before.delta)
    entries = _entries(curator, start)
    return Seen(status, None if answer is None else answer.plan, engine.groups, answer, charge, entries, trace)


def _entries(curator: dt.Curator, start: int) -> Written:
    """The bodies that were written since."""
    bodies = [json.loads(row.body) for row in curator.ledger.store.rows(start + 1) if row.kind not in FIRST]
    return tuple({name: part for name, part in body.items() if name not in CHANCE} for body in bodies)


def looser(rows: int = 1, groups: int = 1) -> Change:
    """What a careless engine would do: let each unit in with more rows and more groups than were priced."""

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
    """What a group without rows has."""
    return (0,) * len(measure.cells) if isinstance(measure, Sums) else {} if isinstance(measure, Bins) else 0
