"""The API: what each request returns, what it costs, and what a refusal says."""

from __future__ import annotations

import json
import socket
from contextlib import closing
from fractions import Fraction

import pytest

from dither.catalog import file
from dither.catalog.text import catalog_hash
from dither.ledger.receipts import Receipt
from server.serving import BY_WARD, COUNT, Running, Service, ages, serving


def test_a_quote_is_free_and_has_price_and_margins(shared: Running) -> None:
    before = shared.spent()
    reply = shared.post("/v1/quote", "ada", {"question": BY_WARD, "epsilon": "0.1"})
    assert reply.status == 200
    assert reply.json["price"] == {"epsilon": "1/10", "delta": "0"}
    assert reply.json["margins"]["n"] > 0
    assert shared.spent() == before


def test_a_refused_question_is_an_answer_to_a_quote(shared: Running) -> None:
    reply = shared.post("/v1/quote", "ada", {"question": "SELECT SUM(income) FROM people", "epsilon": "0.1"})
    assert reply.status == 200
    error = reply.json["error"]
    assert (error["code"], error["charged"], error["span"]) == ("query", "nothing", [11, 17])
    assert "CLAMP" in error["fix"]["words"]


def test_an_answer_is_charged_once_and_then_free(running: Running) -> None:
    first, again = running.ask("ada", BY_WARD, "0.1"), running.ask("ada", BY_WARD, "0.1")
    assert (first.status, again.status) == (200, 200)
    assert first.json["rows"] == again.json["rows"]
    assert (first.json["charged"]["epsilon"], again.json["charged"]["epsilon"]) == ("1/10", "0")
    assert running.spent() == "1/10"
    assert running.ask("ben", BY_WARD, "0.1").json["replayed"]


def test_who_asked_is_in_the_ledger_as_the_token_proves(running: Running) -> None:
    assert running.ask("ada", COUNT).status == 200
    rows = running.get("/v1/history?everyone=1", "otto").json["questions"]
    assert [(row["analyst"], row["state"]) for row in rows] == [("ada", "answered")]
    refused = running.post("/v1/ask", "ada", {"question": COUNT, "epsilon": "0.1", "analyst": "ben"})
    assert refused.status == 422  # nobody can ask in another's name


def test_a_refusal_says_what_where_how_and_what_was_charged(shared: Running) -> None:
    reply = shared.ask("ada", "SELECT SUM(income) FROM people", "0.1")
    assert reply.status == 422
    assert reply.headers["content-type"] == "application/problem+json"
    problem = reply.json
    assert problem["type"] == "urn:dither:problem:query"
    assert problem["title"] == problem["what"]
    assert "^" in problem["where"]
    assert problem["charged"] == "nothing"


def test_the_budget_ends_and_says_so(running: Running) -> None:
    assert running.ask("ada", COUNT, "0.9").status == 200
    over = running.ask("ada", BY_WARD, "0.2")
    assert (over.status, over.json["code"], over.json["charged"]) == (402, "budget", "nothing")
    assert running.get("/v1/budget", "ada").json["rules"]["sum"]["epsilon"]["left"] == "1/10"


def test_several_questions_share_one_price(shared: Running) -> None:
    reply = shared.ask("ada", [COUNT, BY_WARD], "0.25")
    assert reply.status == 200
    assert len(reply.json["answers"]) == 2
    assert reply.json["price"]["epsilon"] == "1/4"


def test_terms_reach_the_curator(shared: Running) -> None:
    asked = {"question": "SELECT COUNT(*) AS n FROM people WHERE age > :low", "params": {"low": 30}, "margin": 50}
    reply = shared.post("/v1/quote", "ada", asked)
    assert reply.json["margins"]["n"] <= 50
    assert Fraction(reply.json["price"]["epsilon"]) > 0
    day = {"question": "SELECT COUNT(*) AS n FROM people WHERE age > ?", "params": [{"decimal": "1.5"}], "epsilon": 0.1}
    assert shared.post("/v1/quote", "ada", day).json["price"]["epsilon"] == "1/10"


def test_a_free_answer_is_made_of_stored_ones(running: Running) -> None:
    assert running.ask("ada", BY_WARD, "0.1").status == 200
    reply = running.post("/v1/ask", "ada", {"question": COUNT, "free": True})
    assert (reply.status, reply.json["charged"]["epsilon"]) == (200, "0")
    assert running.spent() == "1/10"


def test_bounds_are_proposed_at_a_price(running: Running) -> None:
    reply = running.post("/v1/suggest", "ada", {"column": "people.income", "epsilon": "0.3"})
    assert reply.status == 200
    assert reply.json["column"] == "income"
    assert running.spent() == "3/10"


def test_an_answer_can_be_looked_up_by_who_got_it(running: Running) -> None:
    asked = running.ask("ada", COUNT, "0.1").json
    assert running.get(f"/v1/answers/{asked['id']}", "ada").json == asked
    assert running.get(f"/v1/answers/{asked['id']}", "ben").status == 404


def test_the_payload_is_what_the_ledger_stored(running: Running) -> None:
    asked = running.ask("ada", COUNT, "0.1", payload=True).json
    row = running.desk.survey.ledger.store.entry(asked["entry"])
    assert row is not None
    assert json.loads(row.body)["payload"] == asked["payload"]


def test_receipts_are_for_those_who_got_the_answer_and_for_auditors(running: Running) -> None:
    asked = running.ask("ada", COUNT, "0.1").json
    path = f"/v1/receipts/{asked['entry']}"
    public = running.get("/v1/key", "ada").json["public_key"]
    receipt = Receipt.from_json(running.get(path, "ada").body.decode())
    assert receipt.verify(public)
    assert json.loads(receipt.to_json()) == asked["receipt"]
    assert running.get(path, "otto").status == 200
    assert running.get(path, "ben").status == 404
    assert running.ask("ben", COUNT, "0.1").json["replayed"]
    assert running.get(path, "ben").status == 200
    for wrong in ("0", "999", "x", "-1", "1" * 30, "3"):
        assert running.get(f"/v1/receipts/{wrong}", "otto").status == 404


def test_the_catalog_reads_back_without_its_sources(shared: Running) -> None:
    data = shared.get("/v1/catalog", "ada").json
    assert "people.parquet" not in json.dumps(data)
    read = file.parse(data["toml"])
    assert read.tables["people"].columns["age"].high == 100
    assert data["hash"] == catalog_hash(file.read(shared.desk.settings.catalog))
    assert data["tables"]["people"]["columns"]["ward"]["values"] == ["north", "south"]


def test_history_is_ones_own_and_comes_in_pages(running: Running) -> None:
    for i in range(4):
        assert running.ask("ada", ages(i)).status == 200
    assert running.ask("ben", COUNT).status == 200
    page = running.get("/v1/history?limit=3", "ada").json
    assert (len(page["questions"]), page["more"]) == (3, True)
    rest = running.get(f"/v1/history?before={page['questions'][0]['number']}", "ada").json
    assert (len(rest["questions"]), rest["more"]) == (1, False)
    assert running.get("/v1/history?everyone=1", "ada").status == 403
    assert len(running.get("/v1/history", "otto").json["questions"]) == 5
    assert running.get("/v1/history?limit=0", "ada").status == 422


def test_an_auditor_verifies_and_others_do_not(running: Running) -> None:
    assert running.ask("ada", COUNT).status == 200
    verdict = running.get("/v1/verify", "otto").json
    assert (verdict["ok"], verdict["answered"]) == (True, 1)
    assert running.get("/v1/verify", "ada").status == 403


def test_a_client_can_ask_for_the_hash_of_an_entry_it_remembers(running: Running) -> None:
    assert running.ask("ada", COUNT).status == 200
    head = running.get("/v1/key", "ada").json["head"]
    number = int(head.partition(":")[0])
    assert running.ask("ada", BY_WARD).status == 200
    assert running.get(f"/v1/key?at={number}", "ada").json["at"] == head
    assert running.get("/v1/key?at=9999", "ada").json["at"] is None


def test_the_description_names_every_path_and_its_fields(shared: Running) -> None:
    data = shared.get("/v1/openapi.json").json
    assert data["openapi"].startswith("3.1")
    assert {"/v1/ask", "/v1/quote", "/v1/history"} <= set(data["paths"])
    form = data["components"]["schemas"]["AskForm"]
    assert {"question", "epsilon", "fresh"} <= set(form["properties"])
    assert form["additionalProperties"] is False


@pytest.mark.parametrize(("path", "status"), [("/healthz", 200), ("/readyz", 200), ("/metrics", 401), ("/v1/nothing", 404)])
def test_paths_for_operators(shared: Running, path: str, status: int) -> None:
    assert shared.get(path).status == status


def test_metrics_count_and_time_nothing(shared: Running) -> None:
    shared.ask("ada", COUNT, "0.01")
    text = shared.get("/metrics", "otto").body.decode()
    assert 'dither_questions_total{kind="ask",outcome="answered"}' in text
    assert "seconds" not in text
    assert shared.get("/metrics", "ada").status == 403


def _delays(running: Running) -> list[bool]:
    """Returns, for an open connection, whether the system may hold its small writes back."""
    assert running.server is not None
    with closing(running.connect()) as wire:
        wire.request("GET", "/healthz")
        wire.getresponse().read()
        kept = [each.transport.get_extra_info("socket") for each in running.server.server_state.connections]
        return [not each.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for each in kept]


def test_responses_are_sent_at_once(service: Service) -> None:
    with serving(service) as running:
        assert _delays(running) == [False]


def test_that_check_can_fail(service: Service) -> None:
    with serving(service, http="h11") as running:
        assert _delays(running) == [True]
