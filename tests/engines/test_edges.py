"""Edges of a graph: DuckDB lists those of the reference engine, whatever the rows are."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.engines.duckdb.engine import DuckDB
from dither.engines.reference import Reference
from dither.errors import ArgumentError
from dither.query.nodes import Scan
from dither.query.work import EdgeList, Ends, NodeColumn, NodeLabels, NodeRange, Work, sorted_pairs

SECRET = b"0" * 32
TEXTS = ["", "a", "B", "b", "é", "z", "a\U0001f600", "ÿ", "￿", "o'x", '"']
NUMBERS = [-3, 0, 1, 2, 5, 9, 2**62]
GROUPS = ("x", "y", None)


def work(nodes: Any) -> Work:
    return Work(Scan("e", "e"), (), None, False, None, (), edges=EdgeList(("e.from", "e.to"), nodes))


def both(edges: list[tuple[Any, Any]], listed: list[tuple[Any, Any]], nodes: Any, text: bool) -> tuple[Ends, Ends]:
    """Returns what the reference engine and DuckDB list."""
    kind, stored = ("text", pa.string()) if text else ("int", pa.int64())
    kinds = {"e": {"from": kind, "to": kind}, "n": {"id": kind, "g": "text"}}
    rows = {"e": [dict(zip(("from", "to"), each, strict=True)) for each in edges]}
    rows["n"] = [dict(zip(("id", "g"), each, strict=True)) for each in listed]
    with duckdb.connect(":memory:") as connection:
        for name, columns in kinds.items():
            arrays = {
                column: pa.array([row[column] for row in rows[name]], pa.string() if column == "g" else stored)
                for column in columns
            }
            connection.register(name, pa.table(arrays))
        engine = DuckDB(connection, kinds)
        engine.prepare(work(nodes))
        (found,) = engine.run(work(nodes), SECRET)[0].measures
    (expected,) = Reference(rows, kinds).run(work(nodes), SECRET)[0].measures
    assert isinstance(expected, Ends)
    assert isinstance(found, Ends)
    return expected, found


def same(one: Ends, two: Ends) -> bool:
    groups = one.groups is None and two.groups is None
    if one.groups is not None and two.groups is not None:
        groups = one.groups.tolist() == two.groups.tolist()
    return one.size == two.size and one.pairs.tolist() == two.pairs.tolist() and groups


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[tuple[Any, Any]], list[tuple[Any, Any]], Any, bool]:
    text = draw(st.booleans())
    label = st.sampled_from(TEXTS if text else NUMBERS)
    edges = draw(st.lists(st.tuples(st.none() | label, st.none() | label), max_size=15))
    ids = draw(st.lists(label, unique=True, max_size=8))
    listed = [(each, draw(st.sampled_from(["x", "y", "z", None]))) for each in ids]
    columns = [NodeColumn("n", "id"), NodeColumn("n", "id", "g", GROUPS), NodeColumn("n", "id", "g", ("y", "x"))]
    forms = [*columns, *([] if text else [NodeRange(-1, 5)]), *([NodeLabels(tuple(ids))] if ids else [])]
    nodes = draw(st.sampled_from(forms))
    nulls = [(None, "x")] if draw(st.booleans()) else []
    return edges, listed + nulls, nodes, text


@settings(max_examples=150, deadline=None)
@given(cases())
def test_duckdb_lists_the_edges_of_the_reference(case: tuple[Any, ...]) -> None:
    expected, found = both(*case)
    assert same(expected, found)


def test_that_check_can_fail() -> None:
    edges = [(0, 1), (1, 2)]
    expected, _ = both(edges, [], NodeRange(0, 3), False)
    assert same(expected, Ends(4, np.array(edges)))
    assert not same(expected, Ends(4, np.array(edges[:1])))
    assert not same(expected, Ends(5, np.array(edges)))


def test_the_meaning_by_hand() -> None:
    edges = [(2, 1), (1, 2), (2, 2), (1, 7), (None, 1), (0, 2)]
    for nodes in (NodeRange(0, 3), NodeLabels((3, 2, 1, 0)), NodeColumn("n", "id")):
        expected, found = both(edges, [(2, "x"), (0, "x"), (1, "x"), (3, "x"), (None, "x"), (0, "x")], nodes, False)
        assert same(expected, found)
        assert (found.size, found.pairs.tolist()) == (4, [[0, 2], [1, 2]])


@pytest.mark.parametrize("size", [0, 1, 2, 1000])
def test_pairs_are_sorted_and_unique(size: int) -> None:
    draw = np.random.default_rng(size)
    first, second = draw.integers(0, 30, size), draw.integers(0, 30, size)
    expected = sorted({(min(a, b), max(a, b)) for a, b in zip(first.tolist(), second.tolist(), strict=True) if a != b})
    assert [tuple(each) for each in sorted_pairs(first, second).tolist()] == expected


def test_text_that_no_table_holds_is_refused_in_a_label() -> None:
    with pytest.raises(ArgumentError), duckdb.connect(":memory:") as connection:
        DuckDB(connection, {"e": {"from": "text", "to": "text"}}).prepare(work(NodeLabels(("\ud800",))))
