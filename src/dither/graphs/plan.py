"""A question about a graph on a catalog, as a program that is charged: the edges to read, the noise, the price, the identity.

The engine lists the edges, each once (EdgeList in query/work.py). They go straight into what is counted, and from there into
the noise. The plan depends on the question and the catalog only, and under edge privacy on the public number of nodes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dither.catalog.values import Catalog, ColumnFacts, Edges
from dither.errors import ArgumentError, Fix, Text
from dither.graphs.questions import Question
from dither.graphs.reading import MOST_NODES, Content
from dither.planning.outputs import Draw, Noisy
from dither.planning.program import Run
from dither.planning.records import decode_noisy, encode, encode_noisy
from dither.privacy.filters import Charge
from dither.query.nodes import Column, Literal, Scan
from dither.query.work import Distinct, EdgeList, Ends, NodeColumn, NodeLabels, NodeRange, Work
from dither.text import did_you_mean

LOST = "edges with an end that is not a node"
FORMAT = 1  # ledgers keep these identities: any change to them needs a new number


@dataclass(frozen=True)
class Source:
    """A graph of a catalog: its table, what it declares, and what its nodes are."""

    table: str
    edges: Edges
    nodes: NodeColumn | NodeRange | NodeLabels

    @property
    def unit(self) -> str:
        return self.edges.unit

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that are read."""
        return (self.table,) if self.edges.listing is None else (self.table, self.edges.listing[0])

    @property
    def unit_words(self) -> str:
        return "one edge" if self.unit == "edge" else f"one node, which is one value of {'.'.join(self.edges.listing or ())}"

    @property
    def size(self) -> int | None:
        """The number of nodes, if the catalog says it."""
        if isinstance(self.nodes, NodeRange):
            return self.nodes.high - self.nodes.low + 1
        return len(self.nodes.labels) if isinstance(self.nodes, NodeLabels) else None

    def work(self, nodes: NodeColumn | NodeRange | NodeLabels) -> Work:
        """Returns the Work that lists the edges."""
        ends: Any = tuple(f"{self.table}.{end}" for end in self.edges.ends)
        return Work(Scan(self.table, self.table), (), None, False, None, (), edges=EdgeList(ends, nodes))

    def count_nodes(self) -> Work:
        """Returns the Work that counts the nodes of a public table."""
        if self.unit != "edge" or not isinstance(self.nodes, NodeColumn):
            raise TypeError("only a public table's nodes are counted")
        column = Column(f"{self.nodes.table}.{self.nodes.column}")
        return Work(Scan(self.nodes.table, self.nodes.table), (), None, False, None, (Distinct(column, 1),))


def source_of(catalog: Catalog, name: str) -> Source:
    """Returns the graph of this name. Refuses a table that lists no edges."""
    graphs = [each for each, table in catalog.tables.items() if table.edges is not None]
    if not isinstance(name, str) or name not in graphs:
        named = name if isinstance(name, str) else f"A {type(name).__name__}"
        example = 'declare one in the catalog: edge = ["from", "to"].'
        fix = f"{did_you_mean(named, graphs)}The graphs are: {', '.join(graphs)}." if graphs else example
        raise ArgumentError(f"{named} is not a table of edges in this catalog.", fix=Fix("{it}", it=Text(fix)))
    edges = catalog.tables[name].edges
    if edges is None:
        raise TypeError("a graph has edges")
    return Source(name, edges, _nodes(edges))


def _nodes(edges: Edges) -> NodeColumn | NodeRange | NodeLabels:
    if edges.listing is not None:
        return NodeColumn(*edges.listing)
    facts = edges.nodes
    if not isinstance(facts, ColumnFacts):
        raise TypeError("nodes are a column or labels")
    if facts.values is not None:
        labels: Any = tuple(sorted(facts.values))
        return NodeLabels(labels)
    if facts.low is None or facts.high is None:
        raise TypeError("labels are values or a range")
    return NodeRange(int(facts.low), int(facts.high))


def check_size(size: int) -> int:
    """Returns the public number of nodes. Refuses more than pairs of them can be numbered."""
    if size > MOST_NODES:
        raise ArgumentError(f"A graph has at most {MOST_NODES} nodes.", fix="list fewer nodes.")
    return size


@dataclass(frozen=True)
class GraphPlan:
    """A question about one graph. `size`: the number of nodes under edge privacy, where it is public; else 0."""

    question: Question
    source: Source
    size: int
    nodes: NodeColumn | NodeRange | NodeLabels
    works: tuple[Work, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "works", (self.source.work(self.nodes),))

    @property
    def text(self) -> str:
        """The question, as ledgers and receipts show it."""
        given = ", ".join(f"{name}={value}" for name, value in self.question.parameters.items() if value != "")
        return f"{self.source.table}.{self.question.name}({given})"

    @cached_property
    def identity(self) -> str:
        """The text that says which questions are the same."""
        price = self.question.loss().epsilon()
        body = {
            "format": FORMAT,
            "purpose": "graph",
            "table": self.source.table,
            "ends": list(self.source.edges.ends),
            "unit": self.source.unit,
            "nodes": _spelled(self.nodes),
            "size": self.size,
            "question": self.question.measured,
            "parameters": {name: value for name, value in self.question.parameters.items() if value != ""},
            "noises": [noise.record() for noise in self.question.noises],
            "price": {"epsilon": encode(price), "delta": 0},
        }
        return json.dumps(body, sort_keys=True, ensure_ascii=True, separators=(",", ":"))

    @cached_property
    def charge(self) -> Charge:
        loss = self.question.loss()
        return Charge.of(loss, loss.zcdp())

    @cached_property
    def mechanisms(self) -> tuple[Mapping[str, Any], ...]:
        return tuple({**record, "groups": 1, "steps": 1} for record in self.question.records())

    @property
    def tables(self) -> tuple[str, ...]:
        return self.source.tables

    @property
    def unit(self) -> str:
        return self.source.unit_words

    @property
    def notes(self) -> tuple[str, ...]:
        """What the numbers leave out, whatever the bounds are."""
        if isinstance(self.nodes, NodeColumn) and self.nodes.group is not None and not self.nodes.complete:
            return LOST, f"edges of nodes with other values of {self.nodes.group}"
        return (LOST,)

    def release(self, run: Run, draw: Draw) -> Sequence[Noisy]:
        (group,) = run(self.works[0])
        (ends,) = group.measures
        if not isinstance(ends, Ends):
            raise TypeError("the engine lists edges")
        numbers = self.question.release(Content(range(ends.size), ends.pairs, ends.groups))
        return (Noisy(((),), numbers),)

    def write(self, released: Sequence[Noisy]) -> str:
        return encode_noisy(released)

    def read(self, stored: str) -> Sequence[Noisy]:
        return decode_noisy(stored)


def _spelled(nodes: NodeColumn | NodeRange | NodeLabels) -> dict[str, Any]:
    """Spells what the nodes are, for an identity."""
    if isinstance(nodes, NodeRange):
        return {"is": "range", "low": nodes.low, "high": nodes.high}
    if isinstance(nodes, NodeLabels):
        return {"is": "labels", "labels": [encode(Literal(label)) for label in nodes.labels]}
    spelled: dict[str, Any] = {"is": "column", "table": nodes.table, "column": nodes.column}
    if nodes.group is not None:
        spelled |= {"group": nodes.group, "groups": [encode(Literal(value)) for value in nodes.groups]}
    return spelled
