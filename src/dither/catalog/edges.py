"""Checks tables of edges: a graph in a catalog, its nodes, and what else the catalog may hold.

    unit = "edge"    nodes are public: a column of a public table, or labels that are listed here. No other table is private
    unit = "node"    nodes are the people of a private table. Every other private table is about the same people

So all private tables of a catalog have one neighbour relation, and their prices add up. Under node privacy the list of nodes
cannot be read off the edges: a node with many edges would bring its neighbours into the list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dither.text import did_you_mean

if TYPE_CHECKING:
    from dither.catalog.values import ColumnFacts, Edges, Table

UNITS = ("edge", "node")
MOST_NODES = 1 << 24
_EXAMPLE = 'write edge = ["from", "to"].'
_LISTED = 'write nodes = "people.id", or nodes = { between = [0, 999] }, or nodes = { values = ["ann", "bob"] }.'
_PEOPLE = 'write nodes = "people.id", and declare people with unit = "id".'
_Fault = tuple[tuple[str, ...], str, str]  # path, what, fix


def edge_faults(tables: Mapping[str, Table], neighbours: str, unread: frozenset[str]) -> Iterator[_Fault]:
    """Yields every fault that has to do with tables of edges."""
    graphs = {name: table.edges for name, table in tables.items() if table.edges is not None}
    for name, edges in graphs.items():
        path = ("tables", name)
        faults = [*_ends(path, edges), *_settings(path, tables[name]), *_at_most(path, edges)]
        yield from faults
        if edges.unit not in UNITS:
            what = f"{name} lists edges, so its unit is an edge or a node."
            yield (*path, "unit"), what, 'write unit = "edge", or unit = "node" to protect a node with all its edges.'
        elif edges.nodes is None:
            yield path, f"{name} does not say what its nodes are.", _LISTED if edges.unit == "edge" else _PEOPLE
        elif not (isinstance(edges.nodes, tuple) and edges.nodes[0] in unread):
            yield from _nodes((*path, "nodes"), name, edges, tables)
    if graphs and neighbours == "replace":
        what = "Edges and nodes are added or removed; they are not replaced."
        yield ("privacy", "neighbours"), what, 'write neighbours = "add-remove", or leave it out.'
    if graphs and not unread:
        yield from _others(graphs, tables)


def _ends(path: tuple[str, ...], edges: Edges) -> Iterator[_Fault]:
    ends: Any = edges.ends
    if not isinstance(ends, tuple) or len(ends) != 2 or not all(isinstance(end, str) and end for end in ends):
        yield (*path, "edge"), f"{path[1]}.edge must name the columns of both ends.", _EXAMPLE
    elif ends[0] == ends[1]:
        yield (*path, "edge"), f"{path[1]}.edge names one column twice.", _EXAMPLE


def _settings(path: tuple[str, ...], table: Table) -> Iterator[_Fault]:
    """Refuses settings that bound people or rows."""
    given = {"max_rows": table.max_rows, "max_groups": table.max_groups, "key": table.key, "most_rows": table.most_rows}
    named = [part for part, value in given.items() if value is not None]
    named += ["rows"] if table.rows.public is not None or table.rows.at_least is not None else []
    named += ["caps"] if table.caps.max_rows is not None or table.caps.max_groups is not None else []
    named += ["public"] if table.public else []
    for part in named:
        yield (*path, part), f"{path[1]} lists edges, and {part} is for other tables.", f"leave {part} out."


def _at_most(path: tuple[str, ...], edges: Edges) -> Iterator[_Fault]:
    for part, value in (("nodes", edges.at_most.nodes), ("edges", edges.at_most.edges)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            what = f"{path[1]}.at_most.{part} must be a whole number above 0."
            yield (*path, "at_most", part), what, "write at_most = { nodes = 2000, edges = 10000 }."
    if edges.unit == "edge" and (edges.at_most.nodes is not None or edges.at_most.edges is not None):
        yield (*path, "at_most"), f"{path[1]}.at_most is for graphs whose unit is a node.", "leave at_most out."


def _nodes(path: tuple[str, ...], name: str, edges: Edges, tables: Mapping[str, Table]) -> Iterator[_Fault]:
    if not isinstance(edges.nodes, tuple):
        if edges.unit == "node":
            what = f"{name} protects nodes, so the list of its nodes is private."
            yield path, what, _PEOPLE
        elif edges.nodes is not None:
            yield from _labels(path, name, edges.nodes)
        return
    parent, column = edges.nodes
    if parent not in tables:
        yield (
            path,
            f"{name} has its nodes in {parent}, and there is no table {parent}.",
            f"{did_you_mean(parent, tables)}{_LISTED}",
        )
        return
    listing = tables[parent]
    if edges.unit == "edge" and not listing.public:
        what = f"{name} protects edges, so its nodes are public, and {parent} is not."
        yield path, what, 'name a public table, or write unit = "node" to protect nodes with all their edges.'
    if edges.unit == "node" and (listing.unit is None or listing.unit.column != column or listing.unit.references):
        what = f"{name} protects nodes, and {column} is not the unit of {parent}."
        yield path, what, f'write unit = "{column}" for {parent}, which lists the nodes.'


def _labels(path: tuple[str, ...], name: str, facts: ColumnFacts) -> Iterator[_Fault]:
    """Checks nodes that are listed in the catalog: whole numbers of a range, or values of one kind."""
    if facts.values is not None and facts.kind in ("int", "text") and None not in facts.values:
        return
    low, high = facts.low, facts.high
    if (
        facts.values is not None
        or low is None
        or high is None
        or facts.kind not in (None, "int")
        or facts.step not in (None, 1)
    ):
        yield path, f"{name}: nodes are whole numbers or texts.", _LISTED
    elif low.denominator != 1 or high.denominator != 1:
        yield path, f"{name}: the first and the last node must be whole numbers.", _LISTED
    elif high - low >= MOST_NODES:
        yield path, f"{name}: a graph has at most {MOST_NODES:,} nodes.", "declare a smaller range."


def _others(graphs: Mapping[str, Edges], tables: Mapping[str, Table]) -> Iterator[_Fault]:
    """Refuses private tables with another unit: prices under different neighbours do not add up."""
    first, edges = next(iter(graphs.items()))
    for name, table in tables.items():
        if name == first or table.public or _same_nodes(name, edges, tables):
            continue
        path = ("tables", name)
        if edges.unit == "edge":
            what = f"{first} protects edges, and {name} is private too: prices of two kinds of privacy do not add up."
            yield path, what, f"declare {name} in a catalog of its own, or public = true if anyone may know every row."
        elif isinstance(edges.nodes, tuple):
            what = f"{first} protects the nodes of {'.'.join(edges.nodes)}, and {name} protects somebody else."
            fix = f'let its unit refer to them: unit = {{ column = "…", references = "{".".join(edges.nodes)}" }}; '
            yield path, what, fix + "or declare it in a catalog of its own."


def _same_nodes(name: str, edges: Edges, tables: Mapping[str, Table]) -> bool:
    """Whether a private table protects the nodes of this graph: one of them with everything about it."""
    if edges.unit != "node":
        return False
    other = tables[name].edges
    if other is not None:
        return other.unit == "node" and other.nodes == edges.nodes
    seen: set[str] = set()
    while name in tables and name not in seen and (unit := tables[name].unit) is not None:
        seen.add(name)
        if unit.references is None:
            return (name, unit.column) == edges.nodes
        name = unit.references[0]
    return False
