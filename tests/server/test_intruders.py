"""Attacks by each kind of login: nobody, a dashboard's token, an analyst, somebody who was removed; and from behind a proxy."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from starlette.routing import Route

from server.serving import BY_WARD, COUNT, Running, Service, ages, make, serving
from server.test_console import cookie

OPEN = ("/healthz", "/readyz", "/login", "/v1/login", "/v1/tokens", "/v1/openapi.json", "/static/{path:path}")


def routes(running: Running) -> list[tuple[str, str]]:
    found = [route for route in running.app.routes if isinstance(route, Route)]
    return [(method, route.path) for route in found for method in sorted((route.methods or set()) - {"HEAD"})]


def filled(path: str) -> str:
    return path.replace("{id}", "1").replace("{path:path}", "console.css")


# --- nobody -----------------------------------------------------------------------------------------------------


def test_nobody_gets_anything_from_any_route(shared: Running) -> None:
    """A new route is tried unasked: it must be open on purpose, or refuse."""
    shared.ask("ada", COUNT, "0.1")
    for method, path in routes(shared):
        reply = shared.send(method, filled(path), data={} if method == "POST" else None)
        if path in OPEN:
            continue
        assert reply.status in (303, 401), (method, path, reply.status)
        assert reply.headers.get("location", "/login") == "/login"
        assert b"people" not in reply.body


def test_every_response_forbids_to_be_kept_and_sniffed(shared: Running) -> None:
    """Answers are not left in the cache of a browser or a proxy."""
    entry = shared.ask("ada", COUNT, "0.1").json["entry"]
    for method, path in routes(shared):
        for headers in ({}, cookie(shared, "ada") | {"Origin": f"http://127.0.0.1:{shared.port}"}):
            target = path.replace("{id}", str(entry)).replace("{path:path}", "console.css")
            if path == "/v1/logout":
                continue
            reply = shared.send(method, target, data={} if method == "POST" else None, headers=headers)
            kept = reply.headers["cache-control"]
            assert kept == ("public, max-age=31536000, immutable" if path.startswith("/static") else "no-store"), path
            assert reply.headers["x-content-type-options"] == "nosniff"
            assert reply.headers["referrer-policy"] == "no-referrer"


def test_a_login_leads_nowhere_else(shared: Running) -> None:
    """There is no way to name a page to go on to, so no link can lead a person who logs in to another site."""
    for search in (
        "?next=//evil.example",
        "?next=https://evil.example/",
        "?return=/\\evil.example",
        "?url=javascript:alert(1)",
    ):
        for path in ("/login", "/", "/history", "/receipts/1"):
            reply = shared.get(path + search)
            assert b"evil" not in reply.body
            assert "evil" not in str(reply.headers)
            assert reply.headers.get("location", "/login") == "/login"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1@evil.example", "", "x" * 3000])
def test_the_host_header_is_believed_nowhere(shared: Running, host: str) -> None:
    """No page, redirection or cookie is made of it."""
    for path in ("/", "/login", "/v1/openapi.json", "/static/console.css"):
        reply = shared.get(path, headers={"Host": host})
        assert reply.status in (200, 303)
        assert b"evil" not in reply.body
        assert "evil" not in str(reply.headers)
    session = cookie(shared, "ada")
    origin = {"Host": host or "x", "Origin": f"http://127.0.0.1:{shared.port}"}
    assert shared.post("/v1/ask", None, {"question": COUNT, "epsilon": "0.1"}, session | origin).status == 403


def test_addresses_cannot_be_invented_without_a_proxy(running: Running) -> None:
    """Otherwise each guess of a password would come from an address of its own."""
    statuses = []
    for guess in range(12):
        headers = {"X-Forwarded-For": f"10.0.0.{guess}", "Forwarded": f"for=10.0.0.{guess}", "X-Real-IP": f"10.0.0.{guess}"}
        statuses.append(running.post("/v1/login", None, {"token": f"dth_{guess:043}"}, headers).status)
    assert statuses == [401] * 10 + [429] * 2


def test_a_name_is_guarded_from_every_address_and_the_others_are_not_shut_out(running: Running) -> None:
    accounts = running.desk.accounts
    accounts.set_password("cora", "four words are enough")
    accounts.set_password("carl", "four words are enough")
    for guess in range(10):
        with pytest.raises(Exception, match="not right"):
            accounts.log_in("cora", "wrong", f"10.0.0.{guess}", 60)
    with pytest.raises(Exception, match="Too many"):
        accounts.log_in("cora", "four words are enough", "10.0.1.1", 60)
    assert accounts.log_in("carl", "four words are enough", "10.0.0.1", 60)
    code = accounts.make_code("cora")
    assert accounts.log_in_by_code(code, "10.0.1.1", 60)  # the curator has another way in


# --- behind a proxy ---------------------------------------------------------------------------------------------


def test_behind_a_proxy_the_cookie_demands_tls_and_its_own_site(tmp_path: Path) -> None:
    with serving(make(tmp_path, behind_proxy=("127.0.0.1",))) as running:
        made = running.post("/v1/login", None, {"token": running.tokens["ada"]})
        (given,) = made.cookies
        assert given.startswith("__Host-dither=")
        assert {"Secure", "HttpOnly", "Path=/", "SameSite=strict"} <= set(given.split("; "))
        assert "Domain" not in given
        assert made.headers["strict-transport-security"] == "max-age=31536000"
        session = {"Cookie": given.partition(";")[0], "Host": "survey.example"}
        asked = {"question": COUNT, "epsilon": "0.1"}
        for origin, status in (("https://survey.example", 200), ("http://survey.example", 403), ("https://evil.example", 403)):
            assert running.post("/v1/ask", None, asked, session | {"Origin": origin}).status == status
        plain = {"Cookie": given.partition(";")[0].removeprefix("__Host-"), "Host": "survey.example"}
        assert running.get("/v1/me", headers=plain).status == 401  # a cookie that a neighbouring site could set


# --- a dashboard ------------------------------------------------------------------------------------------------


def test_a_dashboard_leaves_no_trace_in_the_ledger(tmp_path: Path) -> None:
    """Its token spends nothing, files no request for an approval, and decides on none."""
    service = make(tmp_path, approve_above="0.1")
    with serving(service) as running:
        running.ask("ada", COUNT, "0.05")
        token, head = service.token("ada", "replay"), running.desk.survey.ledger.head()
        asked = {"question": BY_WARD, "epsilon": "0.05"}
        tries: list[tuple[str, object]] = [
            *(("/v1/ask", asked), ("/v1/ask", asked | {"epsilon": "0.5"}), ("/v1/ask", asked | {"free": True})),
            *(("/v1/ask", asked | {"fresh": True}), ("/v1/ask", {"question": [COUNT, BY_WARD], "epsilon": "0.05"})),
            *(("/console/ask", asked), ("/console/ask", asked | {"epsilon": "0.5"}), ("/v1/quote", asked)),
            *((path, {"column": "people.age", "epsilon": "0.05"}) for path in ("/v1/suggest", "/console/suggest")),
            ("/console/suggest/quote", {"column": "people.age", "epsilon": "0.05"}),
            ("/v1/approvals/1", {"decision": "approve"}),
        ]
        for path, data in tries:
            reply = running.post(path, None, data, {"Idempotency-Key": f"{path}{data}"[:150]}, token=token)
            assert reply.status in (200, 402, 403), (path, reply.body)
            assert b'"rows"' not in reply.body
        assert running.desk.survey.ledger.head() == head
        stored = running.ask(None, COUNT, "0.05", token=token)
        assert (stored.status, stored.json["replayed"]) == (200, True)


# --- an analyst -------------------------------------------------------------------------------------------------


def test_a_key_of_another_person_gives_nothing_of_theirs(running: Running) -> None:
    first = running.ask("ada", ages(1), "0.01", key="k")
    second = running.ask("ben", ages(2), "0.01", key="k")
    assert second.status == 200
    assert second.json["entry"] != first.json["entry"]
    assert running.ask("ada", ages(1), "0.01", key="k").json["entry"] == first.json["entry"]


def test_receipts_jobs_and_requests_of_others_are_not_there(tmp_path: Path) -> None:
    with serving(make(tmp_path, approve_above="0.1")) as running:
        entry = running.ask("ada", COUNT, "0.01").json["entry"]
        job = running.post("/v1/ask", "ada", {"question": BY_WARD, "epsilon": "0.01"}, {"Prefer": "respond-async"}).json["id"]
        waits = running.ask("ada", BY_WARD, "0.5").json["approval"]["id"]
        hidden = [f"/v1/receipts/{entry}", f"/v1/answers/{entry}", f"/v1/answers/{job}", f"/v1/approvals/{waits}"]
        hidden += [f"/console/answers/{job}"]
        for path in hidden:
            theirs, missing = running.get(path, "ben"), running.get(path.rpartition("/")[0] + "/99999", "ben")
            assert (theirs.status, theirs.body) == (404, missing.body)  # not even whether it exists
        for path in (f"/answers/{entry}", f"/answers/{entry}/csv", f"/receipts/{entry}", f"/receipts/{entry}/json"):
            assert running.get(path, headers=cookie(running, "ben")).status == 404
        assert running.get("/v1/approvals", "ben").json == {"approvals": []}


@pytest.mark.parametrize(
    "change",
    [
        {"question": "SELECT COUNT(*) AS n FROM people WHERE age > 51"},
        {"question": "SELECT COUNT(*) AS n FROM people WHERE age > :a", "params": {"a": 51}},
        {"epsilon": "0.21"},
        {"max_rows": 2},
        {"sample": "1/2"},
        {"question": ["SELECT COUNT(*) AS n FROM people WHERE age > 50", COUNT]},
    ],
)
def test_an_approval_is_for_what_the_curator_read(tmp_path: Path, change: dict[str, object]) -> None:
    asked = {"question": "SELECT COUNT(*) AS n FROM people WHERE age > 50", "epsilon": "0.2"}
    with serving(make(tmp_path, approve_above="0.1")) as running:
        request = running.post("/v1/ask", "ada", asked).json["approval"]["id"]
        assert running.post(f"/v1/approvals/{request}", "cora", {"decision": "approve"}).status == 200
        assert running.post("/v1/ask", "ada", asked | change).status == 202
        assert running.spent() == "0"
        assert running.post("/v1/ask", "ada", asked).status == 200


# --- somebody who was removed -----------------------------------------------------------------------------------


def test_a_removed_person_is_out_at_once(running: Running, service: Service) -> None:
    """Their token, session, link, password and narrow tokens; also in a connection that stays open."""
    accounts, session, code = running.desk.accounts, cookie(running, "ada"), running.desk.accounts.make_code("ada")
    accounts.set_password("ada", "four words are enough")
    session, narrow = cookie(running, "ada"), service.token("ada", "replay")
    wire = running.connect()
    wire.request("GET", "/v1/me", headers=session)
    assert wire.getresponse().read()
    with service.accounts() as another:  # another process
        another.remove("ada")
    wire.request("GET", "/v1/me", headers=session)
    assert wire.getresponse().status == 401
    wire.close()
    assert running.get("/v1/me", "ada").status == 401
    assert running.get("/v1/budget", token=narrow).status == 401
    assert running.get("/", headers=session).headers["location"] == "/login"
    logins: list[object] = [{"code": code}, {"token": narrow}, {"name": "ada", "password": "four words are enough"}]
    for login in logins:
        assert running.post("/v1/login", None, login).status in (401, 403)
    assert running.post("/v1/tokens", None, {"name": "ada", "password": "four words are enough"}).status == 401


def test_who_was_removed_while_waiting_is_not_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that waited in the line is asked under a name that may no longer ask."""
    service = make(tmp_path, threads=1)
    with serving(service) as running:
        began, go = threading.Event(), threading.Event()
        ask = running.desk.survey.ask

        def slow(question: object, **terms: object) -> object:
            began.set()
            go.wait(30)
            return ask(question, **terms)  # type: ignore[call-overload]

        monkeypatch.setattr(running.desk.survey, "ask", slow)
        first = threading.Thread(target=running.ask, args=("ben", ages(1), "0.01"))
        first.start()
        assert began.wait(30)
        found: list[int] = []
        second = threading.Thread(target=lambda: found.append(running.ask("ada", ages(2), "0.01").status))
        second.start()
        while not running.desk.asking.waiting:
            pass
        running.desk.accounts.remove("ada")
        go.set()
        first.join()
        second.join()
        assert found == [401]
        assert running.spent() == "1/100"
