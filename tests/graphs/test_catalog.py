"""Graphs on a catalog: charged once, free again, refused uncharged, and what rows of an edge table mean."""

from __future__ import annotations

import datetime
import json
import os
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dither as dt
from dither.engines.registry import registered
from dither.graph import CatalogGraph
from dither.ledger import opening
from dither.ledger.verify.report import verify
from engines.sqlite.engine import PREFIX, SQLiteBackend
from graphs.surveys import KNOWS, PUPILS, edge_frame, opened, pupil_frame, school, watched

SURE = 500  # so large a price that noise is 0
GOLDEN = Path(__file__).with_name("identities.txt")
Ask = Callable[[Any], Any]
FOR_EDGES: dict[str, Ask] = {
    "edges": lambda graph: graph.edge_count(epsilon=1),
    "histogram": lambda graph: graph.degree_histogram(epsilon="1/3", largest=4),
    "sequence": lambda graph: graph.degree_sequence(epsilon=1),
    "groups": lambda graph: graph.edges_between("class", epsilon=1),
    "triangles": lambda graph: graph.triangles(epsilon=1),
    "triangles with a margin": lambda graph: graph.triangles(epsilon=1, margin_share="1/4"),
    "stars": lambda graph: graph.stars(3, epsilon=1),
}
FOR_NODES: dict[str, Ask] = {
    "edges": lambda graph: graph.edge_count(epsilon=1, most_degree=3),
    "edges alone": lambda graph: graph.edge_count(epsilon=1, most_degree=3, left_out=False),
    "histogram": lambda graph: graph.degree_histogram(epsilon=1, most_degree=3),
    "cumulative": lambda graph: graph.cumulative_degrees(epsilon=1, most_degree=3, side="at least"),
    "triangles": lambda graph: graph.bounded_triangles(epsilon=1, most_triangles=3),
    "bound": lambda graph: graph.suggest_degree(epsilon=1, largest=8, for_epsilon="1/2"),
}


def test_a_question_is_charged_once_and_free_again(tmp_path: Path) -> None:
    with opened(school(), tmp_path / "l") as survey:
        graph = survey.graph("knows")
        seen = watched(survey)
        assert "ε = 1, charged before any edge is read" in str(graph.quote.triangles(epsilon=1))
        assert (survey.budget.spent.epsilon, seen) == (0, [])
        first = graph.triangles(epsilon=1, margin_share="1/4")
        assert "charged ε = 1" in str(first)
        assert (survey.budget.spent.epsilon, len(seen)) == (1, 1)
        again = graph.triangles(epsilon=1, margin_share="1/4")
        assert (again.value, again.margin(), again.receipt) == (first.value, first.margin(), first.receipt)
        assert "nothing, given again" in again.charged
        assert graph.quote.triangles(epsilon=1, margin_share="1/4").again is not None
        fresh = survey.graph("knows", fresh=True).triangles(epsilon=1, margin_share="1/4")
        assert fresh.receipt != first.receipt
        assert survey.budget.spent.epsilon == 2
        assert (first.receipt.body["neighbours"], first.receipt.body["unit"]) == ("edge", "one edge")
        assert verify(survey.ledger.store).ok
    assert verify(opening.view(tmp_path / "l").store).ok


@pytest.mark.parametrize(("unit", "questions"), [("edge", FOR_EDGES), ("node", FOR_NODES)])
def test_every_question_costs_what_it_says_and_is_stored(unit: str, questions: dict[str, Ask]) -> None:
    with opened(school(unit=unit)) as survey:
        graph, spent = survey.graph("knows"), Fraction(0)
        for ask in questions.values():
            quoted, answer = ask(graph.quote), ask(graph)
            spent += quoted.plan.charge.epsilon
            assert survey.budget.spent.epsilon == spent
            assert answer.loss().epsilon() == quoted.plan.charge.epsilon
            stored = ask(graph)
            assert str(stored.value) == str(answer.value)
            assert stored.margin() == answer.margin()
            assert survey.budget.spent.epsilon == spent
        assert verify(survey.ledger.store).ok


def test_a_density_is_read_from_the_number_of_edges() -> None:
    with opened(school()) as survey:
        graph = survey.graph("knows")
        edges, density = graph.edge_count(epsilon=1), graph.density(epsilon=1)
        assert density.value == edges.value * Fraction(2, PUPILS * (PUPILS - 1))
        assert survey.budget.spent.epsilon == 1


def test_identities_never_change() -> None:
    """Ledgers look answers up by them: a changed text would charge for a question again."""
    lines = []
    forms: list[tuple[str, Any, dict[str, Ask]]] = [
        ("edge", None, FOR_EDGES),
        ("edge", dt.between(0, 8), {"edges": FOR_EDGES["edges"]}),
        ("edge", dt.values(*range(9)), {"edges": FOR_EDGES["edges"]}),
        ("node", None, FOR_NODES),
    ]
    for unit, nodes, questions in forms:
        with opened(school(unit=unit, nodes=nodes)) as survey:
            quotes = {name: ask(survey.graph("knows").quote) for name, ask in questions.items()}
        lines += [f"{unit}> {name}\n{quote.plan.identity}" for name, quote in quotes.items()]
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert "\n".join(lines) + "\n" == GOLDEN.read_text(encoding="utf-8")
    assert len({line.partition("\n")[2] for line in lines}) == len(lines)


# --- what rows mean ---------------------------------------------------------------------------------------------

ODD: list[tuple[int | None, int | None]] = [KNOWS[0], KNOWS[0][::-1], (3, 3), (3, 99), (98, 99), (None, 3), (None, None)]


@pytest.mark.parametrize("nodes", [None, dt.between(0, 8), dt.values(*range(9))], ids=["table", "range", "values"])
def test_repeats_loops_nulls_and_unknown_ends_change_nothing(nodes: Any) -> None:
    with opened(school([*KNOWS, *ODD], nodes=nodes)) as survey:
        assert survey.graph("knows").edge_count(epsilon=SURE).value == len(KNOWS)
        plain = dt.Graph(KNOWS, PUPILS).degree_sequence(epsilon=SURE).value.tolist()
        assert survey.graph("knows").degree_sequence(epsilon=SURE).value.tolist() == plain


def test_answers_of_a_large_price_are_those_of_a_graph_in_memory() -> None:
    by_edge, by_node = dt.Graph(KNOWS, PUPILS), dt.Graph(KNOWS, PUPILS, unit="node")
    with opened(school()) as survey:
        graph = survey.graph("knows")
        assert graph.triangles(epsilon=SURE).value == by_edge.triangles(epsilon=SURE).value
        groups = {v: ["red", "blue", None][v % 3] for v in range(PUPILS)}
        told, here = graph.edges_between("class", epsilon=SURE).value, by_edge.edges_between(groups, epsilon=SURE).value
        assert {frozenset(pair): count for pair, count in told.items()} == {frozenset(p): n for p, n in here.items()}
    with opened(school(unit="node")) as survey:
        graph = survey.graph("knows")
        bounds = {"most_degree": 2, "epsilon": SURE}
        assert graph.edge_count(**bounds).value == by_node.edge_count(**bounds).value
        assert graph.degree_histogram(**bounds).value.tolist() == by_node.degree_histogram(**bounds).value.tolist()
        limits = {"most_nodes": 100, "most_edges": 1000}
        kept = by_node.bounded_triangles(epsilon=SURE, most_triangles=2, **limits).value
        assert graph.bounded_triangles(epsilon=SURE, most_triangles=2).value == kept


def test_texts_and_files_do(tmp_path: Path) -> None:
    (tmp_path / "knows.csv").write_text("from,to\nann,bob\nbob,eve\nBob,eve\né,ann\n", encoding="utf-8")
    (tmp_path / "people.csv").write_text("id,town\nann,x\nbob,x\neve,y\né,y\nzoe,\n", encoding="utf-8")
    head = "[budget]\nepsilon = 10000\n[tables.knows]\nsource = 'knows.csv'\nedge = ['from', 'to']\nunit = 'edge'\n"
    people = "nodes = 'people.id'\n[tables.people]\nsource = 'people.csv'\npublic = true\nkey = 'id'\n"
    (tmp_path / "a.toml").write_text(head + people)
    with dt.open(tmp_path / "a.toml", make=True) as survey:
        assert survey.graph("knows").degree_sequence(epsilon=SURE).value.tolist() == [0, 1, 1, 2, 2]
        assert survey.graph("knows").edges_between("town", epsilon=SURE).value["x", "y"] == 2
    (tmp_path / "b.toml").write_text(head + "nodes = { values = ['ann', 'bob', 'eve', \"o'x\"] }\n")
    with dt.open(tmp_path / "b.toml", make=True) as survey:
        assert survey.graph("knows").edge_count(epsilon=SURE).value == 2


def test_people_and_their_edges_share_one_budget() -> None:
    """Under node privacy a person is a row of pupils, with all edges: SQL about pupils and questions about edges add up."""
    with opened(school(unit="node")) as survey:
        assert survey.ask("SELECT COUNT(*) FROM pupils", epsilon=SURE)["count"] == [PUPILS]
        survey.graph("knows").edge_count(epsilon=SURE, most_degree=3)
        assert survey.budget.spent.epsilon == 2 * SURE
        assert "free" in str(survey.quote("SELECT COUNT(*) FROM pupils", epsilon=1))  # a graph's answer beside it is no offer
        assert survey.ask("SELECT COUNT(*) FROM pupils", free=True)["count"] == [PUPILS]
        assert verify(survey.ledger.store).ok


def test_catalogs_with_a_delta_charge_a_graph_as_pure() -> None:
    with opened(school(budget=dt.Budget(epsilon=2, delta="1e-6"))) as survey:
        for _ in range(3):
            survey.graph("knows", fresh=True).triangles(epsilon="1/2", margin_share="1/4")
        assert survey.budget.spent.epsilon <= Fraction(3, 2)
        assert verify(survey.ledger.store).ok


def test_groups_may_be_dates() -> None:
    people = pa.table({"id": [0, 1, 2], "born": [datetime.date(2000 + year, 1, 1) for year in (0, 1, 0)]})
    tables = {**school().tables, "pupils": dt.Table(people, public=True, key="id")}
    with opened(dt.Catalog(tables, dt.Budget(epsilon=1000))) as survey:
        answer = survey.graph("knows").edges_between("born", epsilon=SURE)
        assert "2000-01-01" in str(answer)
        assert survey.graph("knows").edges_between("born", epsilon=SURE).value == answer.value


def test_a_public_table_stays_free_and_edges_are_not_reached_by_sql() -> None:
    with opened(school()) as survey:
        for question in ("SELECT COUNT(*) FROM knows", 'SELECT COUNT(*) FROM pupils JOIN knows ON id = knows."from"'):
            with pytest.raises(dt.QueryError, match="edges of a graph"):
                survey.ask(question, epsilon=1)
        with pytest.raises(dt.DitherError):
            survey.suggest("knows.from", epsilon=1)
        assert survey.budget.spent.epsilon == 0


# --- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "ask", "words"),
    [
        ("edge", lambda graph: graph.edge_count(epsilon=1, most_degree=3), "unit is a node"),
        ("edge", lambda graph: graph.bounded_triangles(epsilon=1, most_triangles=3), "unit is a node"),
        ("edge", lambda graph: graph.edges_between("id", epsilon=1, fresh=True), "fresh"),
        ("edge", lambda graph: graph.edges_between("colour", epsilon=1), "public values"),
        ("edge", lambda graph: graph.edge_count(epsilon=1, left_out=True), "Nothing is left out"),
        ("edge", lambda graph: graph.triangles(epsilon=0), "epsilon must"),
        ("edge", lambda graph: graph.triangles(epsilon=10**7), "epsilon must"),
        ("edge", lambda graph: graph.stars(1, epsilon=1), "k must be"),
        ("node", lambda graph: graph.triangles(epsilon=1), "unit is a node"),
        ("node", lambda graph: graph.edge_count(epsilon=1), "needs a bound"),
        ("node", lambda graph: graph.edge_count(epsilon=1, most_degree=0), "at least 1"),
        ("node", lambda graph: graph.bounded_triangles(epsilon=1, most_triangles=0), "at least 1"),
        ("node", lambda graph: graph.edge_count(epsilon="1e-6", most_degree=10**6), "no noise is wide enough"),
        ("edge", lambda graph: graph.triangles(epsilon="1e-6", margin_share="1/4"), "too little of the price"),
    ],
)
def test_what_cannot_be_asked_is_refused_uncharged(unit: str, ask: Ask, words: str) -> None:
    with opened(school(unit=unit)) as survey:
        seen = watched(survey)
        for graph in (survey.graph("knows"), survey.graph("knows").quote):
            with pytest.raises((dt.ArgumentError, TypeError), match=words):
                ask(graph)
        assert (survey.budget.spent.epsilon, seen) == (0, [])


@pytest.mark.parametrize("name", ["pupils", "know", 3, None])
def test_a_table_without_edges_is_no_graph(name: Any) -> None:
    with opened(school()) as survey, pytest.raises(dt.ArgumentError, match=r"not a table of edges(.|\n)*knows"):
        survey.graph(name)


def test_the_programme_needs_a_declared_size() -> None:
    catalog = school(unit="node")
    undeclared = dt.Table(edge_frame(KNOWS), edge=("from", "to"), unit="node", nodes="pupils.id")
    large = dt.Table(edge_frame([]), edge=("from", "to"), unit="node", nodes="pupils.id", at_most={"nodes": 10**6, "edges": 9})
    for table, words in ((undeclared, "does not say how large"), (large, "most_nodes must be at most")):
        tables = {**catalog.tables, "knows": table}
        with opened(dt.Catalog(tables=tables, budget=dt.Budget(epsilon=1))) as survey:
            with pytest.raises(dt.ArgumentError, match=words):
                survey.graph("knows").bounded_triangles(epsilon=1, most_triangles=3)
            assert survey.budget.spent.epsilon == 0


def test_what_the_budget_does_not_allow_reads_nothing() -> None:
    with opened(school(budget=dt.Budget(epsilon=1))) as survey:
        seen = watched(survey)
        assert "does not allow" in survey.graph("knows").quote.edge_count(epsilon=2).refusal
        with pytest.raises(dt.BudgetError, match="Charged: nothing"):
            survey.graph("knows").edge_count(epsilon=2)
        assert (seen, survey.budget.spent.epsilon) == ([], 0)


def test_engines_that_cannot_list_edges_refuse_before_the_charge(tmp_path: Path) -> None:
    file = tmp_path / "school.sqlite3"
    with sqlite3.connect(file) as made:
        made.execute('CREATE TABLE knows ("from" INTEGER, "to" INTEGER)')
    made.close()
    with registered(SQLiteBackend()):
        source = f"{PREFIX}{file}#knows"
        table = dt.Table(source, edge=("from", "to"), unit="edge", nodes=dt.between(0, 8))
        with opened(dt.Catalog({"knows": table}, dt.Budget(epsilon=1))) as survey:
            with pytest.raises(dt.ArgumentError, match="cannot list the edges"):
                survey.graph("knows").edge_count(epsilon=1)
            assert survey.budget.spent.epsilon == 0


def test_a_catalog_cannot_turn_edges_into_nodes(tmp_path: Path) -> None:
    """Prices under different neighbours do not add up: a ledger stays with one."""
    with opened(school(), tmp_path / "l") as survey:
        survey.graph("knows").edge_count(epsilon=1)
    with pytest.raises(dt.LedgerError, match="neighbour relation was 'edge' and is 'node'"):
        opened(school(unit="node"), tmp_path / "l")


def test_analysts_have_their_quota() -> None:
    budget = dt.Budget(epsilon=10, per_analyst=2, analysts=["ada", "bob"])
    with opened(school(budget=budget)) as survey:
        survey.graph("knows", analyst="ada").edge_count(epsilon=2)
        with pytest.raises(dt.BudgetError):
            survey.graph("knows", analyst="ada").triangles(epsilon=1)
        assert survey.graph("knows", analyst="bob").edge_count(epsilon=2).charged.startswith("nothing")


def test_the_answer_can_be_drawn_and_listed(tmp_path: Path) -> None:
    with opened(school()) as survey:
        answer = survey.graph("knows").degree_histogram(epsilon=SURE)
        assert answer.plot(tmp_path / "h.svg").stat().st_size > 1000
        assert answer.columns == ("degree", "nodes by degree")
        assert [degree for degree, _ in answer.rows] == list(range(PUPILS))
        assert json.dumps(answer.record())
        assert isinstance(survey.graph("knows"), CatalogGraph)


def test_left_out_follows_the_catalog() -> None:
    with opened(school(unit="node", budget=dt.Budget(epsilon=10**4, left_out=False))) as survey:
        assert survey.graph("knows").edge_count(epsilon=SURE, most_degree=1).left_out is None
        told = survey.graph("knows").edge_count(epsilon=SURE, most_degree=1, left_out=True)
        assert told.left_out is not None
        assert "left out by most_degree = 1" in str(told)


def test_dictionary_columns_are_ordered_by_label() -> None:
    """A category's order must not be the order of nodes."""
    labels = pa.array(["zoe", "ann", "bob"]).dictionary_encode()
    edges = pa.table({"from": pa.array(["zoe", "zoe"]).dictionary_encode(), "to": pa.array(["ann", "bob"]).dictionary_encode()})
    tables = {
        "knows": dt.Table(edges, edge=("from", "to"), unit="edge", nodes="people.id"),
        "people": dt.Table(pa.table({"id": labels}), public=True),
    }
    with opened(dt.Catalog(tables, dt.Budget(epsilon=1000))) as survey:
        seen = watched(survey)
        survey.graph("knows").edge_count(epsilon=1)
        assert seen[0].pairs.tolist() == [[0, 2], [1, 2]]


def test_frames_of_people_may_repeat() -> None:
    tables = dict(school(unit="node").tables)
    tables["pupils"] = dt.Table(pupil_frame([*range(PUPILS), 0, 0]), unit="id", max_rows=2)
    with opened(dt.Catalog(tables, dt.Budget(epsilon=1000))) as survey:
        found = survey.graph("knows").degree_histogram(epsilon=SURE, most_degree=8, left_out=False).value
        assert int(found.sum()) == PUPILS
