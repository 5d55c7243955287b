"""Compares questions about neighbouring graphs: one edge less, or one node with all its edges.

Each side opens a catalog with a table of edges and asks through the public API, with the same random stream. The edges that the
engine lists are counted once more, as the question counts them, and the numbers compared with what the noise was priced for:
sums of moves, scores, and for triangles and stars the bound in whose proportion noise is added. Where the noise does not depend
on the graph, what was released minus the exact numbers must be the same on both sides.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

import dither as dt
from dither.audit.ourselves.cases import Violation, excess
from dither.audit.ourselves.compare import Move
from dither.audit.ourselves.observe import KEY, Written, entries_after, open_curator
from dither.curator import STEPS, Steps
from dither.engines.base import Engine
from dither.engines.duckdb.backend import DuckDBBackend
from dither.exact import balls, replay
from dither.graphs.plan import GraphPlan
from dither.graphs.questions import Question
from dither.graphs.reading import Content
from dither.graphs.smooth import SmoothNoise
from dither.mechanisms import Exponential, Geometric
from dither.planning.outputs import Draw, Noisy
from dither.planning.program import Program, Run
from dither.query.work import Ends, Group, Work

Row = tuple[int | None, int | None]
Asked = tuple[str, dict[str, Any]]  # the method of a graph, and its arguments
FOR_EDGES: tuple[Asked, ...] = (
    ("edge_count", {}),
    ("density", {}),
    ("degree_histogram", {"largest": 3}),
    ("degree_histogram", {}),
    ("degree_sequence", {}),
    ("edges_between", {"by": "class"}),
    ("triangles", {}),
    ("triangles", {"margin_share": "1/4"}),
    ("stars", {"k": 2}),
    ("stars", {"k": 3, "margin_share": "1/4"}),
)
FOR_NODES: tuple[Asked, ...] = (
    ("edge_count", {"most_degree": 2}),
    ("edge_count", {"most_degree": 3, "left_out": False}),
    ("degree_histogram", {"most_degree": 2}),
    ("cumulative_degrees", {"most_degree": 2}),
    ("cumulative_degrees", {"most_degree": 3, "side": "at least"}),
    ("bounded_triangles", {"most_triangles": 1}),
    ("suggest_degree", {"largest": 8}),
)
_CLASSES = ("red", "blue", None)


@dataclass(frozen=True)
class GraphCase:
    """A table of edges, with rows that mean nothing among them. `out`: the edge, or the node, that the other side lacks."""

    nodes: tuple[int, ...]
    rows: tuple[Row, ...]
    out: tuple[int, ...]
    question: Asked
    epsilon: str
    listed: str = "table"  # under edge privacy, the nodes are in a public table, or a range

    @property
    def unit(self) -> str:
        return "edge" if len(self.out) == 2 else "node"

    def side(self, number: int) -> tuple[tuple[int, ...], tuple[Row, ...]]:
        """Returns the nodes and rows: all on side 0; on side 1 without the edge, or without the node and its edges."""
        if number == 0:
            return self.nodes, self.rows
        if self.unit == "edge":
            return self.nodes, tuple(row for row in self.rows if set(row) != set(self.out))
        (gone,) = self.out
        return tuple(node for node in self.nodes if node != gone), tuple(row for row in self.rows if gone not in row)

    def catalog(self, number: int, rng: random.Random) -> dt.Catalog:
        nodes, rows = self.side(number)
        shuffled = rng.sample(rows, len(rows))
        edges = pa.table({name: pa.array([row[i] for row in shuffled], pa.int64()) for i, name in enumerate(("from", "to"))})
        if self.listed == "range":
            inside = dt.between(min(self.nodes), max(self.nodes))
            return _catalog({"knows": dt.Table(edges, edge=("from", "to"), unit="edge", nodes=inside)})
        classes = pa.array([_CLASSES[node % 3] for node in nodes], pa.string())
        pupils = pa.table({"id": pa.array(nodes, pa.int64()), "class": classes})
        if self.unit == "edge":
            listing, more = dt.Table(pupils, public=True, key="id"), {}
        else:
            listing, more = dt.Table(pupils, unit="id", key="id", max_rows=1), {"at_most": {"nodes": 100, "edges": 1000}}
        known: Any = {"edge": ("from", "to"), "unit": self.unit, "nodes": "pupils.id", **more}
        return _catalog({"knows": dt.Table(edges, **known), "pupils": listing})

    def __str__(self) -> str:
        method, given = self.question
        words = [f"{method}({', '.join(f'{name}={value!r}' for name, value in given.items())}) at epsilon {self.epsilon}"]
        words += [f"nodes: {self.nodes} ({self.listed})", f"rows: {self.rows}", f"one {self.unit} less: {self.out}"]
        return "\n".join(words)


def _catalog(tables: dict[str, Any]) -> dt.Catalog:
    return dt.Catalog(tables, dt.Budget(10**6, "1/2"))


def any_graph(rng: random.Random) -> GraphCase:
    """Generates a graph, sparse to complete, now and then with a hub, and a question about it."""
    size = rng.choice([3, 5, 8, 12])
    nodes = tuple(range(1, size + 1))
    share = rng.choice([0.1, 0.4, 0.7, 1.0])
    edges = [pair for pair in combinations(nodes, 2) if rng.random() < share]
    hub = rng.choice(nodes)
    if rng.random() < 0.4:
        edges = sorted({*edges, *((min(hub, node), max(hub, node)) for node in nodes if node != hub)})
    if rng.random() < 0.5:
        out: tuple[int, ...] = rng.choice(edges) if edges and rng.random() < 0.9 else (nodes[0], nodes[1])
        question, listed = rng.choice(FOR_EDGES), rng.choice(["table", "range"])
    else:
        out, question, listed = (rng.choice([hub, rng.choice(nodes)]),), rng.choice(FOR_NODES), "table"
    if question[0] == "edges_between":
        listed = "table"
    rows: list[Row] = [pair if rng.random() < 0.5 else (pair[1], pair[0]) for pair in edges]
    rows += [rng.choice(rows) for _ in range(3) if rows] + [(b, a) for a, b in rng.sample(rows, min(2, len(rows)))]
    rows += [(hub, hub), (hub, 99), (None, hub), (None, None)]
    return GraphCase(nodes, tuple(rows), out, question, rng.choice(["1", "1/10", "3"]), listed)


@dataclass(frozen=True)
class Side:
    """One side: how it ended, the question, what it counted, what it released, what was charged, and the ledger."""

    status: str
    question: Question | None
    exact: tuple[tuple[Any, ...], ...]
    released: tuple[Any, ...]
    charge: str
    entries: Written


def compare_graphs(case: GraphCase, rng: random.Random, steps: Steps = STEPS) -> tuple[Violation | None, float | None]:
    """Asks both sides. Returns what is wrong, and the largest move as a share of the price; None if it was refused."""
    one, two = (_ask(case, number, rng, steps) for number in (0, 1))
    checks = {
        "status": one.status == two.status,
        "charge": one.charge == two.charge,
        "ledger": one.entries == two.entries,
        "what is released": [each.shape for each in one.released] == [each.shape for each in two.released],
    }
    checks["noise"] = not all(checks.values()) or list(_noise(one)) == list(_noise(two))
    words = tuple(name for name, same in checks.items() if not same)
    if words:
        return (words, float("inf"), (one.status, two.status)), None
    if one.question is None:
        return None, None
    moves = [
        move
        for noise, left, right in zip(one.question.noises, one.exact, two.exact, strict=True)
        for move in _moves(one.question.what, noise, left, right)
    ]
    return excess(moves), max(move.share for move in moves)


def _noise(side: Side) -> Iterator[list[int]]:
    """Yields what was released minus what was counted, up to the first noise that depends on the graph."""
    for noise, exact, released in zip(side.question.noises if side.question else (), side.exact, side.released, strict=False):
        if not isinstance(noise, Geometric):
            return
        yield [int(a) - int(b) for a, b in zip(released.ravel(), np.atleast_1d(exact[0]), strict=True)]


def _moves(what: str, noise: Any, left: tuple[Any, ...], right: tuple[Any, ...]) -> Iterator[Move]:
    """Yields how far what a noise is added to has moved, and how far it may."""
    if isinstance(noise, SmoothNoise):
        (f, s), (g, t) = left, right
        stretch = balls.above(lambda: balls.exp(noise.beta), 64)
        yield Move(f"{what}: the count", abs(f - g), min(s, t))
        yield Move(f"{what}: the bound of the noise", max(s, t), min(s, t) * stretch)
        return
    steps = [abs(Fraction(a) - Fraction(b)) for a, b in zip(_numbers(left[0]), _numbers(right[0]), strict=True)]
    if isinstance(noise, Exponential):
        yield Move(f"{what}: scores", max(steps), Fraction(noise.sensitivity))
    else:
        yield Move(f"{what}: sum of moves", sum(steps), noise.sensitivity.total(None))


def _numbers(exact: Any) -> list[Any]:
    return [
        each if isinstance(each, Fraction) else int(each)
        for each in (exact if isinstance(exact, list) else np.atleast_1d(exact))
    ]


class _Recorder:
    """Steps that record what the engine lists, what the question counts in it, and what is released."""

    def __init__(self, steps: Steps) -> None:
        self.question: Question | None = None
        self.exact: tuple[tuple[Any, ...], ...] = ()
        self.released: tuple[Any, ...] = ()
        self._steps = steps
        self._ends: Ends | None = None

    def run(self, engine: Engine, work: Work) -> Sequence[Group]:
        groups = list(self._steps.run(engine, work))
        for group in groups:
            self._ends = next((each for each in group.measures if isinstance(each, Ends)), self._ends)
        return groups

    def release(self, program: Program, run: Run, draw: Draw) -> Sequence[Noisy]:
        released = self._steps.release(program, run, draw)
        if not isinstance(program, GraphPlan) or self._ends is None:
            raise TypeError("a question about a graph lists its edges")
        self.question, self.released = program.question, released[0].cells
        self.exact = self.question.exact(Content(range(self._ends.size), self._ends.pairs, self._ends.groups))
        return released


def _ask(case: GraphCase, number: int, rng: random.Random, steps: Steps) -> Side:
    recorder = _Recorder(steps)
    watched = replace(steps, run=recorder.run, release=recorder.release)
    curator = open_curator(case.catalog(number, rng), watched, DuckDBBackend(threads=1))
    status, (method, given) = "answered", case.question
    try:
        start = curator.ledger.head().number
        try:
            with replay.stream(KEY):
                getattr(curator.graph("knows", fresh=True), method)(epsilon=case.epsilon, **given)
        except dt.DitherError as error:
            status = f"{type(error).__name__}: {error}"
        spent = curator.budget.spent
        entries = tuple(
            {name: part for name, part in body.items() if name != "payload"} for body in entries_after(curator, start)
        )
        charge = f"{spent.epsilon}, {spent.delta}"
        return Side(status, recorder.question, recorder.exact, recorder.released, charge, entries)
    finally:
        curator.close()
