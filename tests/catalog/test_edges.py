"""Tables of edges in a catalog: one neighbour relation, public nodes for edge privacy, private ones for node privacy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dither as dt
from dither.catalog.check import check
from dither.catalog.edges import UNITS
from dither.catalog.file import parse
from dither.catalog.text import catalog_hash, catalog_text
from dither.engines.registry import read_schema
from dither.privacy.neighbours import GRAPHS
from dither.workspace import declaration

EDGES = pa.table({"from": [1, 2], "to": [2, 3], "weight": [0.5, 1.5]})
PEOPLE = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"], "born": [1.5, 2.5, 3.5]})
PUBLIC = dt.Table(PEOPLE, public=True, key="id")
PRIVATE = dt.Table(PEOPLE, unit="id", key="id", max_rows=1)
HEAD = "[budget]\nepsilon = 1\n[tables.e]\nsource = 'e.csv'\n"
WRITTEN = HEAD + "edge = ['from', 'to']\n"


def table(**more: Any) -> dt.Table:
    return dt.Table(EDGES, **{"edge": ("from", "to"), "unit": "edge", "nodes": "people.id"} | more)


def made(tables: dict[str, dt.Table], **more: Any) -> dt.Catalog:
    return dt.Catalog(tables, dt.Budget(epsilon=1), **more)


def test_the_relation_of_a_catalog_is_a_value_of_privacy() -> None:
    assert made({"e": table(), "people": PUBLIC}).relation == "edge"
    assert made({"e": table(unit="node"), "people": PRIVATE}).relation == "node"
    assert made({"people": PRIVATE}).relation == "add-remove"
    assert tuple(GRAPHS) == UNITS
    declared = declaration(made({"e": table(unit="node"), "people": PRIVATE}))
    assert declared.neighbours == "node"
    assert declared.units["e"] == "one node with its edges, which is people.id of one value of id"


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"e": table(), "people": PRIVATE}, "its nodes are public, and people is not"),
        ({"e": table(), "people": PUBLIC, "x": dt.Table(PEOPLE, unit="row")}, "do not add up"),
        ({"e": table(), "people": PUBLIC, "f": table()}, "do not add up"),
        ({"e": table()}, "there is no table people"),
        ({"e": table(nodes=None)}, "does not say what its nodes are"),
        ({"e": table(unit="row"), "people": PUBLIC}, "an edge or a node"),
        ({"e": table(unit=None), "people": PUBLIC}, "an edge or a node"),
        ({"e": table(unit="from"), "people": PUBLIC}, "an edge or a node"),
        ({"e": table(unit="node"), "people": PUBLIC}, "not the unit of people"),
        ({"e": table(unit="node", nodes=dt.between(0, 9))}, "list of its nodes is private"),
        ({"e": table(unit="node"), "people": PRIVATE, "x": dt.Table(PEOPLE, unit="row")}, "protects somebody else"),
        ({"e": table(unit="node"), "people": PRIVATE, "x": dt.Table(PEOPLE, unit="name")}, "protects somebody else"),
        ({"e": table(edge=("from", "from")), "people": PUBLIC}, "one column twice"),
        ({"e": table(edge=("from",)), "people": PUBLIC}, "columns of both ends"),
        ({"e": table(edge=(1, 2)), "people": PUBLIC}, "columns of both ends"),
        ({"e": table(max_rows=2), "people": PUBLIC}, "max_rows is for other tables"),
        ({"e": table(key="from"), "people": PUBLIC}, "key is for other tables"),
        ({"e": table(public=True), "people": PUBLIC}, "public is for other tables"),
        ({"e": table(at_most={"nodes": 3}), "people": PUBLIC}, "at_most is for graphs whose unit is a node"),
        ({"e": table(unit="node", at_most={"nodes": 0}), "people": PRIVATE}, "whole number above 0"),
        ({"e": table(nodes=dt.between("0.5", 3))}, "whole numbers"),
        ({"e": table(nodes=dt.between(0, 2**40))}, "at most 16,777,216 nodes"),
        ({"e": table(nodes=dt.values(True, False))}, "whole numbers or texts"),
        ({"e": table(nodes=dt.values("a", None))}, "whole numbers or texts"),
        ({"e": table(nodes=dt.column())}, "whole numbers or texts"),
    ],
)
def test_what_is_not_one_graph_is_refused(tables: dict[str, dt.Table], words: str) -> None:
    with pytest.raises(dt.CatalogError, match=words):
        made(tables)


@pytest.mark.parametrize(
    "wrong",
    [{"edge": "from"}, {"edge": 3}, {"nodes": "people"}, {"nodes": 3}, {"at_most": 3}, {"at_most": {"people": 3}}],
    ids=str,
)
def test_what_is_wrong_by_type_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(dt.CatalogError):
        table(**wrong)


def test_nodes_without_edges_are_refused() -> None:
    with pytest.raises(dt.CatalogError, match="for tables of edges"):
        dt.Table(EDGES, unit="row", nodes="people.id")


def test_replaced_edges_are_refused() -> None:
    with pytest.raises(dt.CatalogError, match="not replaced"):
        made({"e": table(), "people": PUBLIC}, neighbours="replace")


def test_tables_about_the_same_people_may_stand_beside_a_graph() -> None:
    visits = dt.Table(PEOPLE, unit={"column": "id", "references": "people.id"}, max_rows=2, max_groups=2)
    more = {"e": table(unit="node"), "f": table(unit="node"), "people": PRIVATE, "visits": visits}
    assert made(more | {"towns": dt.Table(PEOPLE, public=True)}).relation == "node"


FILES = {
    "between": WRITTEN + "unit = 'edge'\nnodes = { between = [0, 9] }\n",
    "values": WRITTEN + "unit = 'edge'\nnodes = { values = ['ann', 'bob'] }\n",
    "table": WRITTEN + "unit = 'edge'\nnodes = 'p.id'\n[tables.p]\nsource = 'p.csv'\npublic = true\n",
    "node": WRITTEN
    + "unit = 'node'\nnodes = 'p.id'\nat_most = { nodes = 9, edges = 99 }\n[tables.p]\nsource = 'p.csv'\nunit = 'id'\n",
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_says_what_python_says(name: str) -> None:
    read = parse(FILES[name])
    assert parse(catalog_text(read)) == read
    assert catalog_hash(parse(catalog_text(read))) == catalog_hash(read)
    assert len({catalog_hash(parse(text)) for text in FILES.values()}) == len(FILES)


def test_digests_of_other_catalogs_stay_as_they_are() -> None:
    assert '"edges"' not in declaration(made({"people": PRIVATE})).text


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (WRITTEN + "unit = 'edge'\n", 3, "does not say what its nodes are"),
        (WRITTEN + "unit = 'edge'\nnodes = 'people'\n", 7, "must name a table and a column"),
        (WRITTEN + "unit = 'edge'\nnodes = 3\n", 7, "must be a set of facts"),
        (WRITTEN + "unit = 3\nnodes = { between = [0, 9] }\n", 6, "an edge or a node"),
        (HEAD + "edge = 'from'\nunit = 'edge'\nnodes = { between = [0, 9] }\n", 5, "columns of both ends"),
        (HEAD + "unit = 'row'\nnodes = 'p.id'\n", 6, "for tables of edges"),
        (WRITTEN + "unit = 'edge'\nnodes = { between = [0, 9] }\nedges = 3\n", 8, "not known"),
    ],
)
def test_a_problem_names_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(dt.CatalogError) as error:
        parse(text)
    assert any(found == line and words in what for found, what, _ in error.value.problems), error.value.problems


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"edge": ("from", "too")}, "has no column too"),
        ({"nodes": "people.ID"}, "has no column ID"),
        ({"nodes": "people.name"}, "e.from is int and the nodes are text"),
        ({"nodes": "people.born"}, "nodes are whole numbers or texts"),
        ({"edge": ("from", "weight")}, "e.weight is real and the nodes are int"),
        ({"nodes": dt.values("a", "b")}, "nodes are text"),
    ],
)
def test_schemas_are_compared_without_reading_rows(more: dict[str, Any], words: str) -> None:
    tables = {"e": table(**more)} | ({} if "nodes" in more and not isinstance(more["nodes"], str) else {"people": PUBLIC})
    with pytest.raises(dt.CatalogError, match=words):
        dt.open(made(tables), ledger=":memory:")


def test_labels_of_a_csv_are_read_exactly_in_the_kind_of_the_nodes(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("from,to\n1,2\n2,3\n04,5\n4.5,3\nx,1\n")
    (tmp_path / "c.toml").write_text(FILES["between"].replace("epsilon = 1", "epsilon = 1000"))
    assert check(tmp_path / "c.toml", read_schema) == []
    with dt.open(tmp_path / "c.toml", make=True) as survey:
        assert survey.graph("e").edge_count(epsilon=500).value == 2
