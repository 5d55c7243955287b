"""A table of visits that grows from snapshot to snapshot, its catalog, and the exact totals that a stream reads of it."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

import dither as dt
from dither.curator import Curator
from dither.engines.reference import Reference
from dither.query.work import Group, Work
from dither.streams.plan import StreamPlan
from dither.streams.program import step_totals

START = datetime.date(2026, 1, 1)
PEOPLE = 4
KINDS = {"person": "int", "day": "date", "amount": "int"}
Visit = tuple[int | None, int | None, int | None]  # person, days after START, amount


def day(number: int) -> datetime.date:
    return START + datetime.timedelta(days=number)


def frame(rows: Iterable[Visit]) -> pa.Table:
    rows = list(rows)
    days = [None if when is None else day(when) for _, when, _ in rows]
    columns = {"person": pa.array([who for who, _, _ in rows], pa.int64()), "day": pa.array(days, pa.date32())}
    return pa.table({**columns, "amount": pa.array([amount for _, _, amount in rows], pa.int64())})


def catalog(rows: Iterable[Visit], snapshot: str = "", **declared: Any) -> dt.Catalog:
    terms: dict[str, Any] = {"unit": "person", "max_rows": 2, "max_groups": 3} | declared.pop("table", {})
    columns = {"day": dt.between(START, day(99)), "amount": dt.between(-5, 10)}
    budget = declared.pop("budget", dt.Budget(epsilon=20))
    tables = {"visits": dt.Table(frame(rows), columns=columns, **terms)}
    if declared.get("neighbours") == "replace":  # the number of people is public
        people = pa.table({"id": range(PEOPLE)})
        tables["people"] = dt.Table(people, unit="id", key="id", max_rows=1, rows={"public": PEOPLE})
        unit = {"column": "person", "references": "people.id"}
        tables["visits"] = dt.Table(frame(rows), columns=columns, **(terms | {"unit": unit}))
    return dt.Catalog(tables=tables, budget=budget, snapshot=snapshot, **declared)


def opened(
    rows: Iterable[Visit] = (), ledger: Any = ":memory:", snapshot: str = "", witness: Any = None, **declared: Any
) -> Curator:
    return dt.open(catalog(rows, snapshot, **declared), ledger=ledger, make=ledger != ":memory:", witness=witness)


def planned(question: str = "SELECT COUNT(*) FROM visits", **terms: Any) -> StreamPlan:
    declared = terms.pop("declared", {})
    with opened(**declared) as survey:
        return survey.stream(question, **({"by": "day", "horizon": 10, "epsilon": 1} | terms)).plan


def reference(rows: Iterable[Visit]) -> Reference:
    table = [{"person": who, "day": None if when is None else day(when), "amount": amount} for who, when, amount in rows]
    people = [{"id": number} for number in range(PEOPLE)]
    return Reference({"visits": table, "people": people}, {"visits": KINDS, "people": {"id": "int"}})


def totals(engine: Any, plan: StreamPlan, start: int, end: int) -> list[int]:
    """Returns the exact numbers that a stream reads from start to end."""
    return step_totals(engine.run(plan.work(start, end), b"0" * 32), plan.steps[start:end])


def history(engines: Sequence[Any], plan: StreamPlan, ends: Sequence[int]) -> list[int]:
    """Returns the exact numbers of a stream that is advanced once over each snapshot."""
    found: list[int] = []
    for engine, end in zip(engines, ends, strict=True):
        found += totals(engine, plan, len(found), end)
    return found


def watched(survey: Curator) -> list[list[Group]]:
    """Returns a list to which every exact result of the engine is added."""
    seen: list[list[Group]] = []
    run = survey.steps.run

    def watch(engine: Any, work: Work) -> Sequence[Group]:
        seen.append(list(run(engine, work)))
        return seen[-1]

    survey.steps = replace(survey.steps, run=watch)
    return seen
