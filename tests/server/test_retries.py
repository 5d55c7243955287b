"""A request that is repeated never pays twice: keys, cut connections, answers that are looked up, full lines, ends."""

from __future__ import annotations

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dither.errors import DitherError
from server.serving import BY_WARD, COUNT, Running, Service, ages, make, serving


class Slow:
    """Makes the engine wait: a test decides when an answer is computed. Not a mock: the answer is the engine's own."""

    def __init__(self, running: Running) -> None:
        from dataclasses import replace

        self.begun, self.go = threading.Event(), threading.Event()
        survey = running.desk.survey
        real = survey.steps.run

        def run(engine: Any, work: Any) -> Any:
            self.begun.set()
            self.go.wait(30)
            return real(engine, work)

        survey.steps = replace(survey.steps, run=run)


def test_a_fresh_answer_needs_a_key_and_is_paid_once_for_each(running: Running) -> None:
    assert running.ask("ada", COUNT, "0.1", fresh=True).status == 422
    first = running.ask("ada", COUNT, "0.1", fresh=True, key="one")
    again = running.ask("ada", COUNT, "0.1", fresh=True, key="one")
    assert first.json == again.json
    assert running.spent() == "1/10"
    assert running.ask("ada", COUNT, "0.1", fresh=True, key="two").status == 200  # twin: another key is another payment
    assert running.spent() == "1/5"


def test_a_key_is_for_one_request_and_one_person(running: Running) -> None:
    assert running.ask("ada", COUNT, "0.1", key="k").status == 200
    other = running.ask("ada", BY_WARD, "0.1", key="k")
    assert (other.status, other.json["code"]) == (422, "conflict")
    assert running.ask("ben", BY_WARD, "0.1", key="k").status == 200


def test_a_key_is_free_again_if_nothing_was_charged(running: Running) -> None:
    wrong = running.ask("ada", "SELECT SUM(income) FROM people", "0.1", key="k")
    assert (wrong.status, wrong.json["charged"]) == (422, "nothing")
    assert running.ask("ada", COUNT, "0.1", key="k").status == 200


def test_a_retry_while_the_first_one_runs_waits_for_it(running: Running) -> None:
    slow = Slow(running)
    data = {"question": COUNT, "epsilon": "0.1", "fresh": True}
    headers = {"Idempotency-Key": "k", "Prefer": "respond-async"}
    first = running.post("/v1/ask", "ada", data, headers)
    assert (first.status, first.json["state"]) == (202, "answering")
    assert slow.begun.wait(30)
    second = running.post("/v1/ask", "ada", data, headers)
    assert (second.status, second.json["id"]) == (202, first.json["id"])
    slow.go.set()
    found = looked_up(running, first.headers["location"])
    assert running.post("/v1/ask", "ada", data, headers).json == found
    assert running.spent() == "1/10"


def looked_up(running: Running, path: str) -> Any:
    for _ in range(600):
        reply = running.get(path, "ada")
        if reply.status != 202:
            assert reply.status == 200
            return reply.json
        assert set(reply.json) == {"id", "state", "ticks"}  # ticks, and no share of the work
        assert isinstance(reply.json["ticks"], int)
        time.sleep(0.02)
    raise AssertionError("it was never answered")


def test_a_long_question_is_looked_up_by_its_analyst_only(running: Running) -> None:
    slow = Slow(running)
    reply = running.post("/v1/ask", "ada", {"question": COUNT, "epsilon": "0.1"}, {"Prefer": "wait=0"})
    assert reply.status == 202
    assert running.get(reply.headers["location"], "ben").status == 404
    slow.go.set()
    assert looked_up(running, reply.headers["location"])["rows"]


def test_a_failed_long_question_says_so(running: Running) -> None:
    data = {"question": "SELECT SUM(income) FROM people", "epsilon": "0.1"}
    reply = running.post("/v1/ask", "ada", data, {"Prefer": "respond-async"})
    found = reply
    for _ in range(600):
        if found.status != 202:
            break
        time.sleep(0.02)
        found = running.get(reply.headers["location"], "ada")
    assert (found.status, found.json["code"], found.json["charged"]) == (422, "query", "nothing")


def test_connections_cut_at_every_byte(running: Running) -> None:
    """Wherever a client goes away, before or within the answer, what was charged is answered, and asking again is free."""
    body = json.dumps({"question": COUNT, "epsilon": "0.1"}).encode()
    head = f"POST /v1/ask HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {running.tokens['ada']}\r\n"
    whole = head.encode() + f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

    def cut(sent: int, read: int) -> None:
        reset = (sent + read) % 2
        with socket.create_connection(("127.0.0.1", running.port), timeout=10) as wire:
            wire.sendall(whole[:sent])
            while read > 0:
                read -= len(wire.recv(read))
            if reset:
                wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")

    for place in range(len(whole) + 1):
        cut(place, 0)
    answer = running.raw(whole.replace(b"Host: x", b"Host: x\r\nConnection: close"))
    for place in range(1, len(answer) - 100, 7):  # its length changes by a few bytes
        cut(len(whole), place)
    last = running.ask("ada", COUNT, "0.1")
    assert last.status == 200
    assert running.spent() == "1/10"
    verdict = running.get("/v1/verify", "otto").json
    assert (verdict["ok"], verdict["answered"], verdict["open"]) == (True, 1, 0)


def test_one_question_from_many_threads_is_charged_once(running: Running) -> None:
    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda i: running.ask(("ada", "ben")[i % 2], BY_WARD, "0.1"), range(16)))
    assert {reply.status for reply in replies} == {200}
    assert len({json.dumps(reply.json["rows"]) for reply in replies}) == 1
    assert sum(not reply.json["replayed"] for reply in replies) == 1
    assert running.spent() == "1/10"


def test_a_full_line_refuses_before_any_charge(tmp_path: Path) -> None:
    service = make(tmp_path, threads=1, waiting=2, waiting_each=2)
    with serving(service) as running:
        slow = Slow(running)
        with ThreadPoolExecutor(20) as pool:
            first = pool.submit(running.ask, "ada", ages(0), "0.01")
            assert slow.begun.wait(30)
            rest = [pool.submit(running.ask, "ada", ages(i), "0.01") for i in range(1, 20)]
            while running.desk.asking.waiting < 2:
                time.sleep(0.01)
            refused = [each.result() for each in rest if wait_for(each, 2.0)]
            slow.go.set()
            replies = [each.result() for each in (first, *rest)]
        assert refused
        for reply in refused:
            assert (reply.status, reply.json["code"], reply.json["charged"]) == (503, "busy", "nothing")
            assert reply.headers["retry-after"] == "1"
        answered = sum(reply.status == 200 for reply in replies)
        assert answered + len(refused) == 20
        assert running.spent() == str(Fraction(answered, 100))
        assert running.get("/v1/verify", "otto").json["answered"] == answered
        assert running.ask("ada", ages(50), "0.01").status == 200  # and is normal again


def wait_for(future: Any, seconds: float) -> bool:
    try:
        future.result(seconds)
    except TimeoutError:
        return False
    return True


def test_a_refused_key_can_be_used_again(tmp_path: Path) -> None:
    with serving(make(tmp_path, threads=1, waiting=1, waiting_each=1)) as running:
        slow = Slow(running)
        with ThreadPoolExecutor(3) as pool:
            first = pool.submit(running.ask, "ada", ages(0))
            assert slow.begun.wait(30)
            second = pool.submit(running.ask, "ada", ages(1))
            while running.desk.asking.waiting < 1:
                time.sleep(0.01)
            assert running.ask("ada", ages(2), key="k").status == 503
            slow.go.set()
            assert (first.result().status, second.result().status) == (200, 200)
        assert running.ask("ada", ages(2), key="k").status == 200


def test_a_server_that_stops_commits_what_it_reserved(service: Service) -> None:
    from contextlib import closing

    from dither.ledger import opening
    from dither.ledger.verify.report import verify

    with serving(service) as running:
        slow = Slow(running)
        reply = running.post("/v1/ask", "ada", {"question": COUNT, "epsilon": "0.1"}, {"Prefer": "wait=0"})
        assert reply.status == 202
        assert slow.begun.wait(30)
        threading.Timer(0.3, slow.go.set).start()
    with closing(opening.open_readonly(service.ledger)) as store:
        report = verify(store)
    assert (report.ok, report.open, report.kinds["committed/1"]) == (True, 0, 1)


def test_a_question_that_does_not_end_in_time_is_settled_and_stays_charged(tmp_path: Path) -> None:
    from contextlib import closing

    from dither.ledger import opening
    from dither.ledger.verify.report import verify

    service = make(tmp_path, stop=0.5)
    with serving(service) as running:
        slow = Slow(running)
        reply = running.post("/v1/ask", "ada", {"question": COUNT, "epsilon": "0.1"}, {"Prefer": "wait=0"})
        assert reply.status == 202
        assert slow.begun.wait(30)
    slow.go.set()
    with closing(opening.open_readonly(service.ledger)) as store:
        report = verify(store)
    assert (report.ok, report.open, report.closed, str(report.spent["epsilon"])) == (True, 0, 0, "1/10")
    assert report.kinds["failed/1"] == 1


def test_a_project_pays_from_its_quota(running: Running, service: Service) -> None:
    with service.accounts() as accounts:
        accounts.set_project("hearts", Fraction(1, 5), ["ada"])
        token = accounts.make_token("ada", project="hearts")[1]
    assert running.ask(None, COUNT, "0.15", token=token).status == 200
    over = running.ask(None, BY_WARD, "0.1", token=token)
    assert (over.status, over.json["charged"]) == (402, "nothing")
    assert running.ask(None, COUNT, "0.15", token=token).json["replayed"]  # free again
    assert running.ask(None, "SELECT SUM(income) FROM people", "0.05", token=token).status == 422
    assert running.get("/v1/budget", token=token).json["project"] == {"name": "hearts", "quota": "1/5", "spent": "3/20"}
    assert running.ask("ada", BY_WARD, "0.1").status == 200  # twin: outside the project


@pytest.mark.parametrize("wait", ["wait=x", "wait=99999", "nonsense", "wait=-1"])
def test_odd_preferences_are_ignored(shared: Running, wait: str) -> None:
    assert shared.post("/v1/ask", "ada", {"question": COUNT, "epsilon": "0.1"}, {"Prefer": wait}).status == 200


def test_a_fault_of_the_server_does_not_leave_a_request_answering_for_ever(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(running.desk.survey, "ask", fault)
    assert running.ask("ada", COUNT, "0.1", key="k").status == 500
    again = running.ask("ada", COUNT, "0.1", key="k")
    assert (again.status, again.json["charged"]) == (500, "nothing, unless your history shows a new entry")
    assert b"secret" not in again.body


def test_a_suggestion_at_no_price_is_refused_and_moves_no_quota(running: Running, service: Service) -> None:
    with service.accounts() as accounts:
        accounts.set_project("p", Fraction(1, 10), ["ada"])
    token, held = service.token("ada", project="p"), []
    hold = running.desk.accounts.hold
    running.desk.accounts.hold = lambda who, epsilon: (held.append(epsilon), hold(who, epsilon))[1]  # type: ignore[method-assign]
    for epsilon in ("much", "-1000", "0", "1e-999999999"):
        body = {"column": "people.income", "epsilon": epsilon}
        wrong = running.post("/v1/suggest", None, body, {"Idempotency-Key": "k"}, token=token)
        assert (wrong.status, wrong.json["charged"]) == (422, "nothing")
    assert held == []  # below zero, it would make room for others while it is looked at
    right = running.post("/v1/suggest", None, {"column": "people.income", "epsilon": "0.1"}, token=token)
    assert (right.status, held) == (200, [Fraction(1, 10)])


def test_a_paid_answer_is_given_even_if_it_cannot_be_kept(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise DitherError("The file of accounts cannot be used.", fix="see that the disk has space.")

    monkeypatch.setattr(running.desk.requests, "finish", full)
    assert running.ask("ada", COUNT, "0.1", fresh=True, key="k").json["rows"]
    monkeypatch.undo()
    assert running.ask("ada", COUNT, "0.1", fresh=True, key="k").status == 202  # the key stays taken
    assert running.spent() == "1/10"


@pytest.mark.parametrize(("question", "status"), [(COUNT, 200), ("SELECT SUM(income) FROM people", 422)])
def test_a_job_that_ends_as_it_is_noted_is_not_answering_for_ever(
    running: Running, monkeypatch: pytest.MonkeyPatch, question: str, status: int
) -> None:
    assert running.ask("ada", COUNT, "0.1").status == 200  # kept: the next one finds it
    requests, noting, ended = running.desk.requests, threading.Event(), threading.Event()
    start, fail, find = requests.start, requests.fail, requests._store.read

    def late(job: str, person: str) -> None:
        noting.set()
        ended.wait(20)
        start(job, person)

    def failed(job: str, problem: Any) -> None:
        noting.wait(20)
        fail(job, problem)
        ended.set()

    def read(statement: str, *values: Any) -> Any:
        if "FROM jobs" not in statement:
            return find(statement, *values)
        noting.wait(20)
        found = find(statement, *values)
        ended.set()
        return found

    monkeypatch.setattr(requests, "start", late)
    monkeypatch.setattr(requests, "fail", failed)
    monkeypatch.setattr(requests._store, "read", read)
    first = running.post("/v1/ask", "ada", {"question": question, "epsilon": "0.1"}, {"Prefer": "respond-async"})
    monkeypatch.undo()
    assert first.status == 202
    for _ in range(200):
        found = running.get(f"/v1/answers/{first.json['id']}", "ada")
        if found.status != 202:
            break
        time.sleep(0.05)
    assert found.status == status


def test_a_question_that_a_server_lost_is_a_fault_of_the_server(running: Running) -> None:
    gone = "999999999.0"  # a worker that is no process
    running.desk.requests._store.write(
        "INSERT INTO jobs VALUES (?, ?, ?, ?, NULL, NULL, ?)", "q1", "ada", gone, "answering", 0.0
    )
    lost = running.get("/v1/answers/q1", "ada")
    assert (lost.status, lost.json["code"]) == (500, "server")
    assert lost.json["what"] == "The server ended while it was answering this question."
