"""Questions that wait for a curator, over HTTP and in a shell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from server.serving import BY_WARD, COUNT, Running, make, serving


@pytest.fixture
def careful(tmp_path: Path) -> Iterator[Running]:
    """A server on which questions above 0.1 wait."""
    with serving(make(tmp_path, approve_above="0.1")) as running:
        yield running


def test_a_question_waits_is_approved_and_is_answered_once(careful: Running) -> None:
    waits = careful.ask("ada", COUNT, "0.2")
    assert (waits.status, waits.json["approval"]["state"], waits.json["charged"]) == (202, "waiting", "nothing")
    path = waits.headers["location"]
    assert careful.spent() == "0"
    assert careful.get(path, "ada").json["state"] == "waiting"
    decided = careful.post(path, "cora", {"decision": "approve", "words": "for the report"})
    assert (decided.status, decided.json["state"], decided.json["by"]) == (200, "approved", "cora")
    assert careful.ask("ada", COUNT, "0.2").status == 200
    assert careful.get(path, "ada").json["state"] == "used"
    assert careful.ask("ada", COUNT, "0.2", fresh=True, key="k").status == 202
    assert careful.spent() == "1/5"
    assert careful.get("/v1/verify", "otto").json["ok"]


def test_a_quote_says_whether_and_why_it_would_wait(careful: Running) -> None:
    def quoted(epsilon: str, question: object = COUNT) -> dict[str, object]:
        found: dict[str, object] = careful.post("/v1/quote", "ada", {"question": question, "epsilon": epsilon}).json
        return found

    for question in (COUNT, [COUNT, BY_WARD], f"{BY_WARD} UNION ALL SELECT 'all', COUNT(*) FROM people"):
        assert quoted("0.2", question)["waits"] == "it costs more than ε = 0.1"
        assert quoted("0.1", question)["waits"] is None
    assert (quoted("5")["waits"], quoted("5")["refused"] is None) == (None, False)  # the budget refuses it: nothing to wait for


def test_a_suggestion_waits_as_a_question_does(careful: Running) -> None:
    asked = {"column": "people.income", "epsilon": "0.2"}
    reply = careful.post("/v1/suggest", "ada", asked)
    assert reply.status == 202
    request = reply.json["approval"]["id"]
    assert reply.headers["location"] == f"/v1/approvals/{request}"
    assert careful.spent() == "0"
    assert careful.post(f"/v1/approvals/{request}", "cora", {"decision": "approve"}).status == 200
    assert careful.post("/v1/suggest", "ada", asked).json["kind"] == "proposal"
    assert careful.spent() == "1/5"


def test_a_cheap_question_does_not_wait(careful: Running) -> None:
    assert careful.ask("ada", COUNT, "0.1").status == 200


def test_a_refused_question_stays_unanswered(careful: Running) -> None:
    path = careful.ask("ada", COUNT, "0.2").headers["location"]
    assert careful.post(path, "cora", {"decision": "refuse", "words": "no"}).json["state"] == "denied"
    assert careful.ask("ada", COUNT, "0.2").status == 202
    assert careful.spent() == "0"


def test_curators_alone_decide_and_not_on_their_own(careful: Running) -> None:
    path = careful.ask("cora", COUNT, "0.2").headers["location"]
    for who, status in (("ada", 403), ("otto", 403), ("cora", 422), ("carl", 200)):
        assert careful.post(path, who, {"decision": "approve"}).status == status


def test_requests_are_seen_by_their_analyst_curators_and_auditors(careful: Running) -> None:
    path = careful.ask("ada", BY_WARD, "0.2").headers["location"]
    for who, status in (("ada", 200), ("ben", 404), ("cora", 200), ("otto", 200)):
        assert careful.get(path, who).status == status
    assert careful.get("/v1/approvals", "ben").json["approvals"] == []


@pytest.mark.parametrize("decision", ["", "APPROVE", "yes"])
def test_a_decision_is_one_of_two(careful: Running, decision: str) -> None:
    path = careful.ask("ada", COUNT, "0.2").headers["location"]
    assert careful.post(path, "cora", {"decision": decision}).status == 422
    for days in (0, -1, 1e9):
        assert careful.post(path, "cora", {"decision": "approve", "days": days}).status == 422
    assert careful.post("/v1/approvals/999", "cora", {"decision": "approve"}).status == 422


def test_an_approval_for_one_analyst_is_none_for_another(careful: Running) -> None:
    path = careful.ask("ada", COUNT, "0.2").headers["location"]
    assert careful.post(path, "cora", {"decision": "approve"}).status == 200
    assert careful.ask("ben", COUNT, "0.2").status == 202


def test_chosen_tables_wait(tmp_path: Path) -> None:
    with serving(make(tmp_path, approve_tables=("People",))) as running:
        assert running.ask("ada", COUNT, "0.01").status == 202


def test_a_policy_that_is_taken_back_is_on_record(tmp_path: Path) -> None:
    from dataclasses import replace

    service = make(tmp_path, approve_above="0.1")
    with serving(service) as running:
        assert running.ask("ada", COUNT, "0.2").status == 202
    open_again = replace(service, settings=replace(service.settings, approve_above=None))
    with serving(open_again) as running:
        assert running.ask("ada", COUNT, "0.2").status == 200
        assert running.get("/v1/verify", "otto").json["ok"]


def test_a_closed_catalog_gives_stored_answers_only(running: Running) -> None:
    assert running.ask("ada", COUNT, "0.1").status == 200
    running.desk.survey.ledger.close_questions("cora", "")
    closed = running.ask("ada", BY_WARD, "0.1")
    assert (closed.status, closed.json["code"], closed.json["charged"]) == (503, "closed", "nothing")
    assert running.ask("ben", COUNT, "0.1").status == 200
    assert running.get("/v1/budget", "ada").json["closed"]
