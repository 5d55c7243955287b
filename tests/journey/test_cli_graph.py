"""`dither graph` in a shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from journey.hospital import run

EDGES = """
[budget]
epsilon = 999
[tables.friends]
source = "friends.csv"
edge = ["from", "to"]
unit = "edge"
nodes = "people.id"
[tables.people]
source = "people.csv"
public = true
key = "id"
"""
NODES = EDGES.replace('unit = "edge"', 'unit = "node"\nat_most = { nodes = 50, edges = 200 }').replace(
    'public = true\nkey = "id"', 'unit = "id"\nmax_rows = 1'
)


@pytest.fixture
def friends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pairs = [f"{a},{b}" for a in range(12) for b in range(a) if (a + b) % 3]
    (tmp_path / "friends.csv").write_text("\n".join(["from,to", *pairs]) + "\n")
    (tmp_path / "people.csv").write_text("\n".join(["id,town", *(f"{a},{'xy'[a % 2]}" for a in range(12))]) + "\n")
    (tmp_path / "catalog.toml").write_text(EDGES)
    assert run("init").exit_code == 0
    return tmp_path


def test_a_graph_is_quoted_asked_and_asked_again(friends: Path) -> None:
    quoted = run("graph", "friends", "edge_count", "-e", "100", "--quote")
    assert (quoted.exit_code, "differ by one edge" in quoted.stdout) == (0, True)
    first = run("graph", "friends", "edge_count", "-e", "100", "--receipt", "r.json")
    assert (first.exit_code, first.stdout.splitlines()[2]) == (0, "44 ± 0")
    assert "charged ε = 100" in first.stderr
    again = run("graph", "friends", "density", "-e", "100", "-f", "csv")
    assert (again.exit_code, again.stdout.splitlines()[0]) == (0, "density,margin")
    assert "charged nothing, given again from entry 4" in again.stderr
    groups = json.loads(run("graph", "friends", "edges_between", "--by", "town", "-e", "100", "-f", "json").stdout)
    assert sum(row["edges by groups"] for row in groups["graph"]) == 44
    drawn = run("graph", "friends", "degree_histogram", "--largest", "9", "-e", "1", "--plot", "h.svg")
    assert (drawn.exit_code, (friends / "h.svg").stat().st_size > 1000) == (0, True)
    assert run("verify", "--receipt", "r.json").exit_code == 0
    assert "friends.degree_histogram(largest=9)" in run("history").stdout


def test_node_privacy_says_what_is_left_out(friends: Path) -> None:
    (friends / "catalog.toml").write_text(NODES)
    asked = run("graph", "friends", "edge_count", "--most-degree", "2", "-e", "100", "-f", "json")
    assert asked.exit_code == 0, asked.stderr
    told = json.loads(asked.stdout)
    assert told["bounds"] == {"most_degree": 2}
    assert told["left_out"]["value"] > 0
    assert run("graph", "friends", "bounded_triangles", "--most-triangles", "5", "-e", "1").exit_code == 0
    assert run("graph", "friends", "suggest_degree", "--largest", "9", "-e", "1").exit_code == 0
    assert run("graph", "friends", "cumulative_degrees", "--most-degree", "3", "--side", "at least", "-e", "1").exit_code == 0


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("friends", "edge_count"), 2, "--epsilon"),
        (("friends", "clusters", "-e", "1"), 2, "edge_count"),
        (("people", "edge_count", "-e", "1"), 2, "not a table of edges"),
        (("friends", "edge_count", "--by", "town", "-e", "1"), 2, "leave --by out"),
        (("friends", "stars", "-e", "1"), 2, "give --k"),
        (("friends", "edge_count", "-e", "1000"), 3, "does not allow"),
        (("friends", "edge_count", "-e", "1", "--plot", "h.txt"), 2, ".svg"),
    ],
)
def test_what_cannot_be_asked_charges_nothing(friends: Path, words: tuple[str, ...], code: int, told: str) -> None:
    refused = run("graph", *words)
    assert refused.exit_code == code, refused.stderr
    assert told in refused.stderr.replace("\n", " ")
    assert json.loads(run("budget", "-f", "json").stdout)["rules"]["sum"]["epsilon"]["spent"] == "0"


def test_sql_about_edges_points_to_the_command(friends: Path) -> None:
    refused = run("ask", "SELECT COUNT(*) FROM friends", "-e", "1")
    assert refused.exit_code == 1
    assert "dither graph friends edge_count --epsilon 1" in refused.stderr.replace("\n", " ")
