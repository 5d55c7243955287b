"""Catalogs with a graph: who knows whom at a small school, for edge and for node privacy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

import dither as dt
from dither.curator import Curator
from dither.query.work import Ends, Group, Work

PUPILS = 9
KNOWS = [(a, b) for a in range(PUPILS) for b in range(a + 1, PUPILS) if (a + 2 * b) % 3]
CLASSES = ["red", "blue", None]
Pairs = Iterable[tuple[int | None, int | None]]


def edge_frame(pairs: Pairs) -> pa.Table:
    listed = list(pairs)
    return pa.table({"from": pa.array([a for a, _ in listed], pa.int64()), "to": pa.array([b for _, b in listed], pa.int64())})


def pupil_frame(pupils: Sequence[int]) -> pa.Table:
    return pa.table(
        {"id": pa.array(pupils, pa.int64()), "class": pa.array([CLASSES[each % 3] for each in pupils], pa.string())}
    )


def school(
    pairs: Pairs = KNOWS, pupils: Sequence[int] = range(PUPILS), *, unit: str = "edge", nodes: Any = None, **declared: Any
) -> dt.Catalog:
    """Returns a catalog: pupils are public if edges are protected."""
    more: dict[str, Any] = {"at_most": {"nodes": 100, "edges": 1000}} if unit == "node" else {}
    tables = {"knows": dt.Table(edge_frame(pairs), edge=("from", "to"), unit=unit, nodes=nodes or "pupils.id", **more)}
    if nodes is None:
        public: dict[str, Any] = {"public": True, "key": "id"} if unit == "edge" else {"unit": "id", "key": "id", "max_rows": 1}
        tables["pupils"] = dt.Table(pupil_frame(list(pupils)), **public)
    budget = declared.pop("budget", dt.Budget(epsilon=10**6))
    return dt.Catalog(tables=tables, budget=budget, **declared)


def opened(catalog: dt.Catalog, ledger: Any = ":memory:") -> Curator:
    return dt.open(catalog, ledger=ledger, make=ledger != ":memory:")


def watched(survey: Curator) -> list[Ends]:
    """Returns a list to which every list of edges is added that the engine returns."""
    seen: list[Ends] = []
    run = survey.steps.run

    def watch(engine: Any, work: Work) -> Sequence[Group]:
        found = run(engine, work)
        seen.extend(each for group in found for each in group.measures if isinstance(each, Ends))
        return found

    survey.steps = replace(survey.steps, run=watch)
    return seen
