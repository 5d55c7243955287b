"""The whole path under observation: what the engine said, what was released, how it ended, what was charged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

import dither as dt
from dither.answer import Answer
from dither.engines.base import Engine
from dither.exact import replay
from dither.planning.choose import Price
from dither.planning.plan import Plan
from dither.query.work import Bins, Distinct, Group, Sums, Work

Change = Callable[[Work], Work]
KEY = b"the same dice on both sides"


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
    """One question from end to end. `status` is "answered", or the refusal as it was shown."""

    status: str
    plan: Plan | None
    groups: list[Group]
    answer: Answer | None
    charge: Price

    def integers(self) -> dict[tuple[Any, ...], Group]:
        return {group.key: group for group in self.groups}

    def only(self) -> tuple[Any, ...]:
        """The measures of the single group."""
        (group,) = self.groups
        return group.measures


def watched(catalog: dt.Catalog, change: Change | None = None) -> dt.Curator:
    curator = dt.open(catalog, ledger=":memory:")
    curator._engine = Watched(curator._engine, change)
    return curator


def see(curator: dt.Curator, question: str, epsilon: Any = 1, delta: Any = None, key: bytes = KEY) -> Seen:
    """Asks with recorded dice: the engine's secret and all noise are the same for the same key."""
    engine, before = curator._engine, curator.budget.spent
    assert isinstance(engine, Watched)
    engine.groups, answer, status = [], None, "answered"
    try:
        with replay.stream(key):
            answer = curator.ask(question, epsilon=epsilon, delta=delta, fresh=True)
    except dt.DitherError as error:
        status = f"{type(error).__name__}: {error}"
    spent = curator.budget.spent
    charge = Price(spent.epsilon - before.epsilon, spent.delta - before.delta)
    return Seen(status, None if answer is None else answer.plan, engine.groups, answer, charge)


def catalog(
    table: Mapping[str, Any],
    columns: Mapping[str, Any],
    *,
    epsilon: Any = 10**6,
    delta: Any = 0,
    neighbours: str = "add-remove",
    unit: Any = "u",
    **more: Any,
) -> dt.Catalog:
    """One table called t, whose unit is u unless said otherwise."""
    held = dt.Table(pa.table(dict(table)), unit=unit, columns=dict(columns), **more)
    return dt.Catalog({"t": held}, dt.Budget(epsilon, delta), neighbours)


def ask(question: str, table: Mapping[str, Any], columns: Mapping[str, Any], price: Any = 1, **more: Any) -> Seen:
    """One question about one table."""
    return see(watched(catalog(table, columns, **more)), question, price)


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
    return (0,) * len(measure.cells) if isinstance(measure, Sums) else {} if isinstance(measure, Bins) else 0
