"""Prints the statements that list the edges of a graph (EdgeList in query/work.py), and reads their rows.

Where a table lists the nodes, a first statement numbers them by their label and finds their groups; the second joins both ends
of every edge with these numbers. DuckDB compares texts by their bytes in UTF-8, which is the order of code points.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dither.engines.duckdb.dialect import identifier, literal
from dither.engines.sql.work import Results, Statement
from dither.query.nodes import Relation, Scan
from dither.query.work import EdgeList, Ends, NodeColumn, NodeLabels, NodeRange, sorted_pairs


def edge_statements(edges: EdgeList, source: Relation) -> list[Statement]:
    """Returns the statements that list edges."""
    if not isinstance(source, Scan):
        raise TypeError("edges are listed from one table")
    table, alias = identifier(source.table), f"{source.alias}."
    first, second = (f"e.{identifier(end.removeprefix(alias))}" for end in edges.ends)
    nodes = edges.nodes
    if isinstance(nodes, NodeRange):
        low, high = (literal(end).text for end in (nodes.low, nodes.high))
        within = f"{first} BETWEEN {low} AND {high} AND {second} BETWEEN {low} AND {high} AND {first} <> {second}"
        ends = f"least({first}, {second}) - {low} AS a, greatest({first}, {second}) - {low} AS b"
        read = partial(_read_edges, nodes.high - nodes.low + 1)
        return [_statement(f"SELECT DISTINCT {ends} FROM {table} AS e WHERE {within}", read)]
    listed = _numbered(nodes) if isinstance(nodes, NodeColumn) else _labels(nodes)
    ends = "least(x.place, y.place) AS a, greatest(x.place, y.place) AS b"
    joined = f"{table} AS e JOIN n AS x ON {first} = x.label JOIN n AS y ON {second} = y.label WHERE x.place <> y.place"
    text = f"WITH n AS MATERIALIZED ({listed}) SELECT DISTINCT {ends} FROM {joined}"
    if isinstance(nodes, NodeLabels):
        return [_statement(text, partial(_read_edges, len(nodes.labels)))]
    counted = f"SELECT g FROM ({listed}) ORDER BY place" if nodes.group is not None else f"SELECT count(*) FROM ({listed})"
    return [_statement(counted, partial(_read_nodes, nodes)), _statement(text, partial(_read_edges, None))]


def _numbered(nodes: NodeColumn) -> str:
    """Prints the nodes of a table with their numbers and groups."""
    column = identifier(nodes.column)
    group = _group_place(nodes) if nodes.group is not None else "NULL"
    each = f"SELECT {column} AS label, {group} AS g FROM {identifier(nodes.table)} WHERE {column} IS NOT NULL GROUP BY {column}"
    return f"SELECT label, g, row_number() OVER (ORDER BY label) - 1 AS place FROM ({each})"


def _group_place(nodes: NodeColumn) -> str:
    """Prints the place of a node's group among the public ones, -1 for others."""
    group = identifier(nodes.group or "")
    known = [
        f"WHEN {group} = {literal(value).text} THEN {place}" for place, value in enumerate(nodes.groups) if value is not None
    ]
    known += [f"WHEN {group} IS NULL THEN {nodes.groups.index(None)}"] if None in nodes.groups else []
    return f"max(CASE {' '.join(known)} ELSE -1 END)" if known else "-1"


def _labels(nodes: NodeLabels) -> str:
    ordered: list[Any] = sorted(nodes.labels)
    rows = ", ".join(f"({literal(label).text}, {place})" for place, label in enumerate(ordered))
    return f"SELECT * FROM (VALUES {rows}) AS t(label, place)"


def _statement(text: str, read: Any) -> Statement:
    return Statement(text, _unread, read)


def _unread(*_: object) -> None:
    raise TypeError("edges are read from Arrow")


def _read_nodes(nodes: NodeColumn, table: pa.Table, results: Results) -> None:
    column = _whole(table, 0)
    found = Ends(len(column), _NO_EDGES, column) if nodes.group is not None else Ends(int(column[0]), _NO_EDGES)
    results.setdefault((), {})[0] = found


def _read_edges(size: int | None, table: pa.Table, results: Results) -> None:
    known = results.setdefault((), {}).get(0)
    listed = known if size is None and known is not None else Ends(size or 0, _NO_EDGES)
    results[()][0] = Ends(listed.size, sorted_pairs(_whole(table, 0), _whole(table, 1)), listed.groups)


def _whole(table: pa.Table, place: int) -> NDArray[np.int64]:
    return np.asarray(table.column(place).to_numpy(), dtype=np.int64)


_NO_EDGES = np.zeros((0, 2), dtype=np.int64)
