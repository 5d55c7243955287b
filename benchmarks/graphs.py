"""Measures questions about a graph of a million edges, in memory and on a catalog: time beside that of the same number without
privacy, and error.

Time: CPU seconds of the question, of the same statistic computed without noise (numpy and scipy), and their ratio. On a catalog
the question reads its edges from Parquet files, charges a ledger on disk and signs a receipt; the same statistic without
privacy reads the edges by DuckDB, too. Two graphs: one whose nodes are alike, and one with hubs. Beside it, one noisy number
with its margin at 95 %, and the exact number.

`python benchmarks/graphs.py`; `--quick` takes a tenth of the edges. The exit code is 1 if a question takes over ten seconds.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dither as dt
from dither.graphs import counts, shape
from dither.graphs.reading import Content, read

LONGEST = 10.0
missed: list[str] = []


def main() -> int:
    edges = 100_000 if "--quick" in sys.argv else 1_000_000
    for name, pairs in (("alike", alike(edges)), ("with hubs", hubs(edges))):
        measure(name, pairs, edges // 10)
        on_catalog(name, pairs, edges // 10)
    programme()
    for each in missed:
        print("missed:", each)
    return 1 if missed else 0


def alike(edges: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).integers(0, edges // 10, size=(edges, 2))


def hubs(edges: int) -> np.ndarray[Any, Any]:
    """Ends with probability about 1 / rank^0.6."""
    ranks = (np.random.default_rng(2).random((edges, 2)) ** 2.5 * (edges // 10)).astype(np.int64)
    return np.random.default_rng(3).permutation(edges // 10)[ranks]


def seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.process_time()
    result = run()
    return time.process_time() - begun, result


def measure(name: str, pairs: np.ndarray[Any, Any], nodes: int) -> None:
    plain, content = seconds(lambda: read(pairs, nodes))
    taken, graph = seconds(lambda: dt.Graph(pairs, nodes))
    line(f"{name}: {len(content.ends)} edges, {nodes} nodes, largest degree {content.degrees().max()}", "s", "plain s", "ratio")
    line("  made", taken, plain)
    by_node = dt.Graph(pairs, nodes, unit="node")
    theta = 50
    asked: list[tuple[str, Callable[[], Any], Callable[[Content], Any]]] = [
        ("edges", lambda: graph.edge_count(epsilon=1), counts.edge_count),
        ("degree sequence", lambda: graph.degree_sequence(epsilon=1), counts.degree_sequence),
        (
            "degree histogram",
            lambda: graph.degree_histogram(epsilon=1, largest=200),
            lambda it: counts.degree_histogram(it, 200),
        ),
        ("triangles", lambda: graph.triangles(epsilon=1), shape.triangle_count),
        ("triangles, with a margin", lambda: graph.triangles(epsilon=1, margin_share="1/4"), shape.triangle_count),
        ("2-stars", lambda: graph.stars(2, epsilon=1), lambda it: shape.star_count(it, 2)),
        ("edges, node privacy", lambda: by_node.edge_count(epsilon=1, most_degree=theta), counts.edge_count),
        (
            "degree histogram, node privacy",
            lambda: by_node.degree_histogram(epsilon=1, most_degree=theta),
            lambda it: counts.degree_histogram(it, theta),
        ),
        ("degree bound, node privacy", lambda: by_node.suggest_degree(epsilon=1, largest=1000), counts.edge_count),
    ]
    for what, question, statistic in asked:
        taken, answer = seconds(question)
        plain, exact = seconds(lambda: statistic(content))  # noqa: B023
        line(f"  {what}", taken, plain, note(answer, exact))
        if taken > LONGEST:
            missed.append(f"{name}, {what}: {taken:.1f} s")


def on_catalog(name: str, pairs: np.ndarray[Any, Any], nodes: int) -> None:
    """The same questions on the charged path, for edges and for nodes."""
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(pa.table({"from": pairs[:, 0], "to": pairs[:, 1]}), f"{folder}/edges.parquet")
        pq.write_table(pa.table({"id": np.random.default_rng(5).permutation(nodes)}), f"{folder}/people.parquet")
        line(f"{name}, on a catalog", "s", "plain s", "ratio")
        for unit, listing in (("edge", {"public": True, "key": "id"}), ("node", {"unit": "id", "key": "id", "max_rows": 1})):
            tables = {
                "edges": dt.Table(f"{folder}/edges.parquet", edge=("from", "to"), unit=unit, nodes="people.id"),
                "people": dt.Table(f"{folder}/people.parquet", **listing),
            }
            catalog = dt.Catalog(tables, dt.Budget(epsilon=1000))
            with dt.open(catalog, ledger=f"{folder}/{unit}.ledger", make=True) as survey:
                ask_all(name, folder, nodes, survey.graph("edges"), FOR_EDGES if unit == "edge" else FOR_NODES)


FOR_EDGES: dict[str, tuple[Callable[[Any], Any], Callable[[Content], Any]]] = {
    "edges": (lambda graph: graph.edge_count(epsilon=1), counts.edge_count),
    "degree histogram": (
        lambda graph: graph.degree_histogram(epsilon=1, largest=200),
        lambda content: counts.degree_histogram(content, 200),
    ),
    "degree sequence": (lambda graph: graph.degree_sequence(epsilon=1), counts.degree_sequence),
    "triangles, with a margin": (lambda graph: graph.triangles(epsilon=1, margin_share="1/4"), shape.triangle_count),
    "2-stars": (lambda graph: graph.stars(2, epsilon=1), lambda content: shape.star_count(content, 2)),
    "edges, again": (lambda graph: graph.edge_count(epsilon=1), counts.edge_count),
}
FOR_NODES: dict[str, tuple[Callable[[Any], Any], Callable[[Content], Any]]] = {
    "edges, node privacy": (lambda graph: graph.edge_count(epsilon=1, most_degree=50), counts.edge_count),
    "degree histogram, node privacy": (
        lambda graph: graph.degree_histogram(epsilon=1, most_degree=50),
        lambda content: counts.degree_histogram(content, 50),
    ),
    "degree bound, node privacy": (lambda graph: graph.suggest_degree(epsilon=1, largest=1000), counts.edge_count),
}


def ask_all(name: str, folder: str, nodes: int, graph: Any, asked: dict[str, Any]) -> None:
    for what, (question, statistic) in asked.items():
        taken, answer = seconds(lambda: question(graph))  # noqa: B023
        plain, exact = seconds(lambda: statistic(plainly(folder, nodes)))  # noqa: B023
        line(f"  {what}", taken, plain, note(answer, exact))
        if taken > LONGEST:
            missed.append(f"{name} on a catalog, {what}: {taken:.1f} s")


def plainly(folder: str, nodes: int) -> Content:
    """Reads the edges as somebody without privacy would: the distinct pairs, by DuckDB."""
    ends = 'least("from", "to") AS a, greatest("from", "to") AS b'
    text = f'SELECT DISTINCT {ends} FROM \'{folder}/edges.parquet\' WHERE "from" <> "to"'
    found = duckdb.sql(text).to_arrow_table()
    return Content(range(nodes), np.stack([found.column(0).to_numpy(), found.column(1).to_numpy()], axis=1))


def note(answer: Any, exact: Any) -> str:
    wide = answer.margin()
    if np.ndim(answer.value):
        return f"± {wide}"
    return f"{answer.value} ± {'?' if wide is None else wide}, exact {exact}"


def programme() -> None:
    """The linear programme: 1,000 nodes and 5,000 edges, within what may be declared."""
    drawn = np.random.default_rng(4).random((5000, 2)) ** 2
    graph = dt.Graph((drawn * 1000).astype(np.int64), 1000, unit="node")
    bounds = {"most_triangles": 20, "most_nodes": 2000, "most_edges": 10_000}
    taken, answer = seconds(lambda: graph.bounded_triangles(epsilon=1, **bounds))
    line("triangles, node privacy: 1000 nodes, 5000 edges", taken, 0.0, note(answer, "?"))


def line(name: str, taken: float | str, plain: float | str, more: str = "") -> None:
    if isinstance(taken, str) or isinstance(plain, str):
        print(f"{name:76}{taken:>10}{plain:>10}{more:>10}")
        return
    ratio = f"{taken / plain:.1f}" if plain > 1e-4 else "–"
    print(f"{name:76}{taken:10.3f}{plain:10.3f}{ratio:>10}  {more}")


if __name__ == "__main__":
    sys.exit(main())
