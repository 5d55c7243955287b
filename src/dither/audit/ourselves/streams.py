"""Compares running sums over neighbouring histories: snapshots that only append, with and without one person's rows.

On each side a stream is opened through the public API, and advanced over one snapshot after the other; before each advance the
engine gets the rows of that snapshot. Both sides draw from the same random stream, so what was released minus the exact sums is
the noise: it must be the same on both sides. The exact numbers may differ in as many steps, and in each by as much, as the
stream was priced for. How it ended, what was charged and what the ledger holds without sums must not differ.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import pyarrow as pa

import dither as dt
from dither.audit.ourselves.cases import Violation, excess
from dither.audit.ourselves.compare import Move
from dither.audit.ourselves.observe import KEY, Written, entries_after, open_curator
from dither.curator import STEPS, Steps
from dither.engines.base import Engine
from dither.engines.duckdb.backend import DuckDBBackend
from dither.exact import replay
from dither.planning.outputs import Draw, Noisy
from dither.planning.program import Program, Run
from dither.query.work import Group, Work
from dither.streams.plan import StreamPlan

Visit = tuple[int | None, int | None, int | None]  # person, days after FIRST, amount
FIRST = datetime.date(2026, 1, 1)
HORIZON = 10
QUESTIONS = (
    "SELECT COUNT(*) FROM visits",
    "SELECT SUM(amount) FROM visits",
    "SELECT COUNT(amount) FROM visits WHERE amount > 0",
    "SELECT SUM(amount) FILTER (WHERE amount < 8) FROM visits",
    "SELECT COUNT(*) FROM (SELECT * FROM visits UNION ALL SELECT * FROM visits) AS twice",
)
PRICES: tuple[dict[str, Any], ...] = ({"epsilon": 1}, {"epsilon": "1/10"}, {"epsilon": 1, "delta": "1e-6"}, {"rho": "1/8"})
AMOUNTS = (None, -(2**63), -9, -5, 0, 3, 10, 11, 2**63 - 1)
HIDDEN = ("payload", "state")  # the sums, and the digest of the encrypted state


@dataclass(frozen=True)
class StreamCase:
    """A stream and its snapshots. `added`: the rows that each snapshot adds. `person`: left out on the other side, or replaced
    by `instead`."""

    added: tuple[tuple[Visit, ...], ...]
    ends: tuple[int, ...]  # the step up to which the stream is advanced over each snapshot
    person: int
    question: str
    price: dict[str, Any]
    max_rows: int
    max_steps: int
    instead: tuple[tuple[Visit, ...], ...] | None = None

    def snapshots(self, side: int) -> list[list[Visit]]:
        """Returns all rows of each snapshot: on side 0 with the person, on side 1 without, or with the other one."""
        rows: list[Visit] = []
        found = []
        for place, more in enumerate(self.added):
            kept = [row for row in more if side == 0 or row[0] != self.person]
            rows = [*rows, *kept, *(self.instead[place] if side and self.instead is not None else ())]
            found.append(rows)
        return found

    def catalog(self) -> dt.Catalog:
        columns = {"day": dt.between(FIRST, FIRST + datetime.timedelta(99)), "amount": dt.between(-5, 10)}
        unit: Any = "person"
        declared: dict[str, Any] = {}
        if self.instead is not None:  # the number of people is public
            people = pa.table({"id": range(_PEOPLE)})
            declared["people"] = dt.Table(people, unit="id", key="id", max_rows=1, rows={"public": _PEOPLE})
            unit = {"column": "person", "references": "people.id"}
        limits: dict[str, Any] = {"max_rows": self.max_rows, "max_groups": self.max_steps}
        declared["visits"] = dt.Table(_frame(()), unit=unit, columns=columns, **limits)
        more: dict[str, Any] = {} if self.instead is None else {"neighbours": "replace"}
        return dt.Catalog(declared, dt.Budget(10**6, "1/2"), **more)

    def __str__(self) -> str:
        limits = f"max_rows = {self.max_rows}, at most {self.max_steps} steps, {self.price}, advanced to {self.ends}"
        lines = [self.question, limits, f"added: {self.added}", f"left out on the other side: person {self.person}"]
        return "\n".join([*lines, *([] if self.instead is None else [f"instead: {self.instead}"])])


_PEOPLE = 6


def any_stream(rng: random.Random) -> StreamCase:
    """Generates a stream: rows of any day, late or early, of people with few rows and of one with many."""
    ends = tuple(sorted(rng.sample(range(1, HORIZON + 1), rng.choice([1, 2, 4]))))
    person = rng.randrange(_PEOPLE)
    replaced = rng.random() < 0.3
    added = [tuple(_visit(rng, None) for _ in range(rng.randrange(8))) for _ in ends]
    mine, other = ([tuple(_visits(rng, person)) for _ in ends] for _ in range(2))
    both = tuple((*rest, *own) for rest, own in zip(added, mine, strict=True))
    return StreamCase(
        both,
        ends,
        person,
        rng.choice(QUESTIONS),
        rng.choice(PRICES),
        rng.choice([1, 2, 5]),
        rng.choice([1, 3]),
        tuple(other) if replaced else None,
    )


def _visits(rng: random.Random, person: int) -> list[Visit]:
    """Returns one person's rows of one snapshot: every day, the same day many times, or a few."""
    kind = rng.randrange(3)
    if kind == 0:
        return [(person, when, 10) for when in range(HORIZON)]
    if kind == 1:
        return [(person, rng.randrange(HORIZON), rng.choice(AMOUNTS))] * rng.choice([3, 9])
    return [_visit(rng, person) for _ in range(rng.randrange(5))]


def _visit(rng: random.Random, person: int | None) -> Visit:
    who = rng.choice([None, *range(_PEOPLE)]) if person is None else person
    return who, rng.choice([None, *range(-2, HORIZON + 2)]), rng.choice(AMOUNTS)


def _frame(rows: Sequence[Visit]) -> pa.Table:
    days = [None if when is None else FIRST + datetime.timedelta(when) for _, when, _ in rows]
    return pa.table(
        {
            "person": pa.array([row[0] for row in rows], pa.int64()),
            "day": pa.array(days, pa.date32()),
            "amount": pa.array([row[2] for row in rows], pa.int64()),
        }
    )


@dataclass(frozen=True)
class Side:
    """One side: how it ended, the exact number and the released sum of each step, what was charged, and the ledger."""

    status: str
    plan: StreamPlan | None
    exact: tuple[int, ...]
    sums: tuple[int, ...]
    charge: str
    entries: Written

    @property
    def noise(self) -> list[int]:
        return [noisy - so_far for noisy, so_far in zip(self.sums, accumulate(self.exact), strict=True)]


def compare_streams(case: StreamCase, rng: random.Random, steps: Steps = STEPS) -> tuple[Violation | None, float | None]:
    """Advances both sides. Returns what is wrong, and the largest move as a share of the price; None if it was refused."""
    one, two = (_advance(case, side, rng, steps) for side in (0, 1))
    checks = {
        "status": one.status == two.status,
        "charge": one.charge == two.charge,
        "ledger": one.entries == two.entries,
        "what is released": len(one.sums) == len(two.sums) and len(one.exact) == len(two.exact),
    }
    checks["noise"] = not all(checks.values()) or one.noise == two.noise
    words = tuple(name for name, same in checks.items() if not same)
    if words:
        return (words, float("inf"), (one.status, two.status)), None
    if one.plan is None:
        return None, None
    moved = [abs(a - b) for a, b in zip(one.exact, two.exact, strict=True)]
    terms = one.plan.terms
    moves = [
        Move("steps of a stream that move", sum(map(bool, moved)), terms.contributions),
        Move("one step of a stream", max(moved, default=0), terms.largest),
    ]
    return excess(moves), max(move.share for move in moves)


class _Recorder:
    """Steps that record the engine's totals and the released sums."""

    def __init__(self, steps: Steps) -> None:
        self.exact: list[int] = []
        self.sums: list[int] = []
        self._steps = steps

    def run(self, engine: Engine, work: Work) -> Sequence[Group]:
        groups = list(self._steps.run(engine, work))
        totals = {group.key[0]: int(group.measures[0][0]) for group in groups}  # type: ignore[index]
        self.exact += [totals.get(step, 0) for step in (work.known or ((),))[0]]
        return groups

    def release(self, program: Program, run: Run, draw: Draw) -> Sequence[Noisy]:
        released = self._steps.release(program, run, draw)
        self.sums += [int(each) for noisy in released for each in noisy.cells[0].ravel()]
        return released


def _advance(case: StreamCase, side: int, rng: random.Random, steps: Steps) -> Side:
    recorder = _Recorder(steps)
    watched = replace(steps, run=recorder.run, release=recorder.release)
    curator = open_curator(case.catalog(), watched, DuckDBBackend(threads=1))
    plan, status = None, "answered"
    try:
        start = curator.ledger.head().number
        try:
            stream = curator.stream(case.question, by="day", horizon=HORIZON, **case.price)
            plan = stream.plan
            for number, (end, rows) in enumerate(zip(case.ends, case.snapshots(side), strict=True)):
                curator.engine.exchange("visits", _frame(rng.sample(rows, len(rows))))  # type: ignore[attr-defined]
                with replay.stream(KEY + b" %d" % number):
                    stream.advance(until=plan.steps[end - 1])
        except dt.DitherError as error:
            status = f"{type(error).__name__}: {error}"
        spent = curator.budget.spent
        entries = tuple(
            {name: part for name, part in body.items() if name not in HIDDEN} for body in entries_after(curator, start)
        )
        return Side(status, plan, tuple(recorder.exact), tuple(recorder.sums), f"{spent.epsilon}, {spent.delta}", entries)
    finally:
        curator.close()
