"""Neighbouring graphs through the whole path of a catalog, with the same random bits.

Edge privacy: one row of the edge table more. Node privacy: one person more, with their row and all edges. What the engine and
the question compute must differ by at most the sensitivity that the noise is for, and nothing else that anyone can observe may
differ: the quote, the charge, ledger entries, the receipt, shape, margins and errors.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dither as dt
from dither.exact import replay
from dither.graphs.questions import Question, SmoothCount
from dither.graphs.reading import Content
from dither.mechanisms.geometric import Geometric
from graphs.families import triangle_chain
from graphs.surveys import KNOWS, PUPILS, opened, school, watched

Ask = Callable[[Any], Any]
FOR_EDGES: dict[str, Ask] = {
    "edges": lambda graph: graph.edge_count(epsilon=1),
    "density": lambda graph: graph.density(epsilon=1),
    "histogram": lambda graph: graph.degree_histogram(epsilon=1),
    "sequence": lambda graph: graph.degree_sequence(epsilon=1),
    "groups": lambda graph: graph.edges_between("class", epsilon=1),
    "triangles": lambda graph: graph.triangles(epsilon=1),
    "stars": lambda graph: graph.stars(2, epsilon=1, margin_share="1/4"),
}
FOR_NODES: dict[str, Ask] = {
    "edges": lambda graph: graph.edge_count(epsilon=1, most_degree=3),
    "histogram": lambda graph: graph.degree_histogram(epsilon=1, most_degree=2),
    "cumulative": lambda graph: graph.cumulative_degrees(epsilon=1, most_degree=3),
    "at least": lambda graph: graph.cumulative_degrees(epsilon=1, most_degree=3, side="at least"),
    "triangles": lambda graph: graph.bounded_triangles(epsilon=1, most_triangles=3),
    "bound": lambda graph: graph.suggest_degree(epsilon=1, largest=8),
}
UNSEEN = {
    "time",
    "nonce",
    "token",
    "digest",
    "previous",
    "payload",
    "reserved_hash",
    "ledger",
    "public_key",
    "hash",
    "signature",
}


class Seen:
    """What one question computed, and everything that could be observed of it."""

    def __init__(self, catalog: dt.Catalog, ask: Ask) -> None:
        with opened(catalog) as survey:
            seen, graph = watched(survey), survey.graph("knows")
            self.quote = ask(graph.quote)
            with replay.stream(b"the same bits"):
                self.answer = ask(graph)
            (ends,) = seen
            question = self.quote.plan.question
            self.question: Question = question
            self.exact = question.exact(Content(range(ends.size), ends.pairs, ends.groups))
            self.spent = survey.budget.spent.epsilon
            self.entries = [json.loads(row.body) for row in survey.ledger.store.rows()]

    @property
    def observed(self) -> dict[str, Any]:
        answer = self.answer
        keys = list(answer.value) if isinstance(answer.value, dict) else np.shape(answer.value)
        told = None if answer.left_out is None else (answer.left_out.wider, answer.left_out.margin())
        told_margin = None if isinstance(self.question, SmoothCount) else answer.margin()  # its level is a noisy release
        return {
            "quote": (str(self.quote), self.quote.plan.identity, self.quote.plan.charge, self.quote.plan.mechanisms),
            "answer": (
                type(answer.value),
                keys,
                answer.record(),
                answer.loss(),
                answer.charged,
                answer.remaining,
                answer.notes,
            ),
            "margins": (told_margin, told, answer.columns, len(answer.rows)),
            "receipt": _visible(answer.receipt.body),
            "entries": [_visible(entry) for entry in self.entries],
            "spent": self.spent,
        }


def _visible(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _visible(part) for name, part in value.items() if name not in UNSEEN}
    return [_visible(part) for part in value] if isinstance(value, (list, tuple)) else value


def moved(one: Seen, other: Seen) -> list[tuple[Any, int]]:
    """Returns the sensitivity that each geometric noise is for, and how far its exact numbers moved, in L1."""
    found = []
    for noise, a, b in zip(one.question.noises, one.exact, other.exact, strict=True):
        if isinstance(noise, Geometric):
            found.append((noise.sensitivity, int(np.abs(np.asarray(a[0]) - np.asarray(b[0])).sum())))
    return found


def within(one: Seen, other: Seen) -> bool:
    return all(change <= _total(norm) for norm, change in moved(one, other))


def _total(norm: Any) -> Any:
    return norm.value if hasattr(norm, "value") else norm.count * norm.each


@pytest.mark.parametrize("name", FOR_EDGES)
def test_one_edge(name: str) -> None:
    whole = Seen(school(), FOR_EDGES[name])
    for left_out in KNOWS[::6]:
        less = Seen(school([edge for edge in KNOWS if edge != left_out]), FOR_EDGES[name])
        assert within(whole, less)
        assert whole.observed == less.observed


@pytest.mark.parametrize("name", FOR_NODES)
def test_one_node(name: str) -> None:
    whole = Seen(school(unit="node"), FOR_NODES[name])
    for v in range(0, PUPILS, 3):
        kept = [edge for edge in KNOWS if v not in edge]
        less = Seen(school(kept, [each for each in range(PUPILS) if each != v], unit="node"), FOR_NODES[name])
        assert within(whole, less)
        assert whole.observed == less.observed


def test_edges_of_somebody_who_is_not_listed_count_for_nothing() -> None:
    """Removing a person from the list of nodes alone is as removing them with all edges."""
    ask = FOR_NODES["histogram"]
    others = [each for each in range(PUPILS) if each != 4]
    gone, unlisted = (Seen(school(edges, others, unit="node"), ask) for edges in ([e for e in KNOWS if 4 not in e], KNOWS))
    assert str(gone.exact) == str(unlisted.exact)


def test_that_check_finds_noise_for_one_edge_where_a_node_changes() -> None:
    """The twin: a node with its edges moves an edge count by more than noise for one edge hides."""
    whole, less = (Seen(school(edges), FOR_EDGES["edges"]) for edges in (KNOWS, [e for e in KNOWS if 0 not in e]))
    assert not within(whole, less)


def test_that_check_finds_what_depends_on_rows() -> None:
    """The twin: the number of nodes is public for edge privacy, and part of what is observed; nobody may make it private."""
    whole, less = (Seen(school(pupils=range(size)), FOR_EDGES["histogram"]) for size in (PUPILS, PUPILS - 1))
    assert whole.observed != less.observed


def test_that_check_finds_a_projection_that_triangles_would_need() -> None:
    """The twin: after bounding degrees by 2, one person breaks a chain of triangles; so nobody can ask for that."""
    chain, v = triangle_chain(12)
    everyone, pairs = range(chain.size), [tuple(edge) for edge in chain.ends.tolist()]
    ask: Ask = lambda graph: graph.bounded_triangles(epsilon=1, most_triangles=2)  # noqa: E731
    whole = Seen(school(pairs, everyone, unit="node"), ask)
    less = Seen(school([e for e in pairs if v not in e], [each for each in everyone if each != v], unit="node"), ask)
    assert within(whole, less)
    assert whole.observed == less.observed
    with opened(school(pairs, everyone, unit="node")) as survey, pytest.raises(dt.ArgumentError, match="unit is a node"):
        survey.graph("knows").triangles(epsilon=1)


@pytest.mark.parametrize("unit", ["edge", "node"])
def test_no_error_depends_on_edges(unit: str) -> None:
    graphs = [[], KNOWS, [(a, b) for a in range(PUPILS) for b in range(a)]]
    for name, ask in {**FOR_EDGES, **FOR_NODES}.items():
        told = set()
        for edges in graphs:
            with opened(school(edges, unit=unit)) as survey:
                try:
                    ask(survey.graph("knows"))
                    told.add("answered")
                except dt.DitherError as error:
                    told.add(str(error))
        assert len(told) == 1, name


def test_the_smooth_bound_is_written_nowhere() -> None:
    """S of two graphs differs; every record of a question about them is the same but for noisy numbers."""
    ask = FOR_EDGES["stars"]
    few, many = Seen(school([]), ask), Seen(school(KNOWS[:2]), ask)
    assert few.exact[0][1] != many.exact[0][1]
    assert few.observed == many.observed
    for seen in (few, many):
        bound = seen.exact[0][1]
        assert len(str(bound)) > 20  # so that it is in no text by chance
        texts = [
            json.dumps(seen.entries),
            json.dumps(seen.answer.receipt.body),
            str(seen.answer),
            str(seen.quote),
            repr(seen.answer),
        ]
        assert not any(str(bound) in text or str(float(bound)) in text for text in texts)
