"""Attacks on the server: each is tried on a real one, and most have a twin that shows that the check can fail."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path

import pytest

from dither.errors import ArgumentError, CatalogError
from dither.server.desk import open_desk
from dither.server.settings import read_settings
from dither.server.sources import check_sources
from server.serving import BY_WARD, COUNT, Client, Running, Service, ages, make, process, serving

PASSWORD = "correct horse battery"


def logged_in(running: Running, name: str = "ada") -> str:
    """Returns the cookie of a new session."""
    running.desk.accounts.set_password(name, PASSWORD)
    reply = running.post("/v1/login", None, {"name": name, "password": PASSWORD})
    assert reply.status == 200
    return reply.headers["set-cookie"].partition(";")[0]


def own(running: Client) -> str:
    return f"http://127.0.0.1:{running.port}"


# --- who asks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Bearer x", "Basic YWRhOmFkYQ==", "Bearer dth_" + "A" * 43, "dth_" + "A" * 43, "Bearer \xff"],
)
def test_without_a_valid_token_nothing_is_told(shared: Running, header: str) -> None:
    for path in ("/v1/budget", "/v1/catalog", "/v1/history", "/v1/key", "/v1/verify", "/v1/answers/4", "/v1/me"):
        reply = shared.get(path, headers={"Authorization": header})
        assert (reply.status, reply.json["code"]) == (401, "access")
        assert reply.headers["www-authenticate"].startswith("Bearer")


def test_two_authorization_headers_are_refused(shared: Running) -> None:
    """A proxy and the server could each believe another one."""
    lines = f"GET /v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {shared.tokens['ada']}\r\n"
    both = lines + f"Authorization: Bearer {shared.tokens['cora']}\r\nConnection: close\r\n\r\n"
    assert shared.raw(both.encode()).startswith(b"HTTP/1.1 400")


def test_a_revoked_token_is_refused_at_once(running: Running) -> None:
    ident, secret = running.desk.accounts.make_token("ada")
    assert running.get("/v1/me", token=secret).status == 200
    running.desk.accounts.revoke(ident)
    assert running.get("/v1/me", token=secret).status == 401


def test_a_token_in_the_address_is_not_a_login(shared: Running) -> None:
    secret = shared.tokens["ada"]
    assert shared.get(f"/v1/me?token={secret}&access_token={secret}").status == 401


# --- scopes -----------------------------------------------------------------------------------------------------


def test_a_replay_token_can_never_spend(running: Running, service: Service) -> None:
    token = service.token("ada", "replay")
    refused = running.ask(None, COUNT, "0.1", token=token)
    assert refused.status == 402
    assert (refused.json["code"], refused.json["charged"]) == ("budget", "nothing")
    assert running.ask(None, COUNT, "0.1", token=token, fresh=True, key="k").status == 403
    assert running.ask(None, COUNT, "0.1", token=token, free=True).status == 403
    assert running.post("/v1/suggest", None, {"column": "people.income", "epsilon": 1}, token=token).status == 403
    assert running.spent() == "0"
    assert running.ask("ada", COUNT, "0.1").status == 200  # twin: her whole token spends
    assert running.spent() == "1/10"
    again = running.ask(None, COUNT, "0.1", token=token)
    assert (again.status, again.json["replayed"]) == (200, True)
    assert running.spent() == "1/10"


def test_a_replay_token_does_not_use_up_a_quota(tmp_path: Path) -> None:
    service = make(tmp_path, budget="per_analyst = 0.5")
    with serving(service) as running:
        assert running.ask("ada", COUNT, "0.1").status == 200
        token = service.token("ben", "replay")
        assert running.ask(None, COUNT, "0.1", token=token).status == 402
        assert running.get("/v1/budget", "ben").json["analyst"]["epsilon"]["spent"] == "0"
        assert running.ask("ben", COUNT, "0.1").json["replayed"]  # twin: his whole token counts it
        assert running.get("/v1/budget", "ben").json["analyst"]["epsilon"]["spent"] == "1/10"
        assert running.ask(None, COUNT, "0.1", token=token).status == 200


@pytest.mark.parametrize(
    ("who", "method", "path", "data"),
    [
        ("otto", "POST", "/v1/ask", {"question": COUNT, "epsilon": "0.1"}),
        ("otto", "POST", "/v1/quote", {"question": COUNT, "epsilon": "0.1"}),
        ("otto", "POST", "/v1/suggest", {"column": "people.income", "epsilon": "0.1"}),
        ("ada", "GET", "/v1/verify", None),
        ("ada", "GET", "/metrics", None),
        ("ada", "GET", "/v1/history?everyone=1", None),
    ],
)
def test_roles_do_not_reach_further(shared: Running, who: str, method: str, path: str, data: object) -> None:
    before = shared.spent()
    assert shared.send(method, path, who, data).status == 403
    assert shared.spent() == before


def test_a_person_sees_nobody_elses_answers_or_history(running: Running) -> None:
    asked = running.ask("ada", COUNT, "0.1").json
    assert running.get(f"/v1/answers/{asked['entry']}", "ben").status == 404
    assert running.get("/v1/history", "ben").json["questions"] == []


# --- sessions ---------------------------------------------------------------------------------------------------


def test_a_session_cookie_is_out_of_reach_of_scripts_and_other_sites(running: Running) -> None:
    running.desk.accounts.set_password("ada", PASSWORD)
    cookie = running.post("/v1/login", None, {"name": "ada", "password": PASSWORD}).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert "Path=/" in cookie
    assert "Domain" not in cookie


def test_behind_tls_the_cookie_demands_it(tmp_path: Path) -> None:
    with serving(make(tmp_path, behind_proxy=("127.0.0.1",))) as running:
        running.desk.accounts.set_password("ada", PASSWORD)
        reply = running.post("/v1/login", None, {"name": "ada", "password": PASSWORD})
        assert reply.headers["set-cookie"].startswith("__Host-dither=")
        assert "Secure" in reply.headers["set-cookie"]
        assert reply.headers["strict-transport-security"]


def test_session_fixation(running: Running) -> None:
    """A cookie that somebody planted before the login is worth nothing after it."""
    planted = "dither=" + "A" * 43
    running.desk.accounts.set_password("ada", PASSWORD)
    reply = running.post("/v1/login", None, {"name": "ada", "password": PASSWORD}, {"Cookie": planted})
    fresh = reply.headers["set-cookie"].partition(";")[0]
    assert fresh != planted
    assert running.get("/v1/me", headers={"Cookie": planted}).status == 401
    assert running.get("/v1/me", headers={"Cookie": fresh}).json["name"] == "ada"


def test_a_session_ends_with_logout(running: Running) -> None:
    cookie = logged_in(running)
    headers = {"Cookie": cookie, "Origin": own(running)}
    assert running.post("/v1/logout", None, {}, headers).status == 204
    assert running.get("/v1/me", headers={"Cookie": cookie}).status == 401


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "https://127.0.0.1", "http://127.0.0.1:1"])
def test_csrf_another_site_cannot_spend_with_a_cookie(running: Running, origin: str | None) -> None:
    headers = {"Cookie": logged_in(running)} | ({} if origin is None else {"Origin": origin})
    data = {"question": COUNT, "epsilon": "0.1"}
    assert running.post("/v1/ask", None, data, headers).status == 403
    assert running.spent() == "0"
    assert running.post("/v1/ask", None, data, headers | {"Origin": own(running)}).status == 200  # twin: the console itself


def test_csrf_a_form_of_another_site_is_not_json(running: Running) -> None:
    headers = {"Cookie": logged_in(running), "Origin": own(running), "Content-Type": "text/plain"}
    body = json.dumps({"question": COUNT, "epsilon": "0.1"}).encode()
    assert running.send("POST", "/v1/ask", headers=headers, body=body).status == 415
    cross = headers | {"Content-Type": "application/json", "Sec-Fetch-Site": "cross-site"}
    assert running.send("POST", "/v1/ask", headers=cross, body=body).status == 403


def test_csrf_nobody_can_be_logged_in_by_another_site(running: Running) -> None:
    code = running.desk.accounts.make_code("ada")
    assert running.post("/v1/login", None, {"code": code}, {"Origin": "http://evil.example"}).status == 403
    assert running.post("/v1/login", None, {"code": code}, {"Origin": own(running)}).status == 200


def test_a_wrong_login_tells_nothing_and_is_limited(running: Running) -> None:
    running.desk.accounts.set_password("ada", PASSWORD)
    replies = [running.post("/v1/login", None, {"name": name, "password": "wrong"}) for name in ("ada", "nobody") * 5]
    assert {reply.status for reply in replies} == {401}
    assert len({reply.body for reply in replies}) == 1
    assert running.post("/v1/login", None, {"name": "ada", "password": PASSWORD}).status == 429


# --- requests ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "head",
    [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -1\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding:\x0bchunked\r\n",
        " folded: x\r\n",
        "X: a\rb\r\n",
        "X\x00: a\r\n",
    ],
)
def test_header_smuggling(shared: Running, head: str) -> None:
    """What a proxy could read as two requests is refused, and the bytes after it are not read as a request."""
    hidden = f"GET /v1/budget HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {shared.tokens['cora']}\r\n\r\n"
    sent = f"POST /v1/quote HTTP/1.1\r\nHost: x\r\n{head}\r\n0\r\n\r\n{hidden}"
    found = shared.raw(sent.encode("latin-1"), 2.0)
    assert b"rules" not in found
    assert found.count(b"HTTP/1.1 200") == 0


def test_a_newline_in_a_name_makes_no_header(shared: Running) -> None:
    reply = shared.get("/v1/answers/4%0d%0aSet-Cookie:%20x=1", "ada")
    assert reply.status == 404
    assert "set-cookie" not in reply.headers


@pytest.mark.parametrize(
    "path",
    [
        "/v1/answers/../../etc/passwd",
        "/v1/answers/..%2f..%2fetc%2fpasswd",
        "/v1/receipts/%2e%2e/%2e%2e/catalog.ledger",
        "//etc/passwd",
        "/static/../../../../etc/passwd",
        "/static/..%2f..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/catalog.ledger.key",
        "/v1/answers/%00",
        "/catalog.ledger.key",
        "/people.parquet",
    ],
)
def test_path_traversal(shared: Running, path: str) -> None:
    reply = shared.get(path, "cora")
    assert reply.status in (400, 404)
    assert b"root:" not in reply.body
    assert b"PRIVATE KEY" not in reply.body


@pytest.mark.parametrize("data", [{}, {"question": 1}, {"question": COUNT, "epsilon": []}, [], "x", None, 7, {"question": [1]}])
def test_wrong_fields_are_refused(shared: Running, data: object) -> None:
    reply = shared.send("POST", "/v1/ask", "ada", body=json.dumps(data).encode(), headers={"Content-Type": "application/json"})
    assert reply.status == 422
    assert reply.json["charged"] == "nothing"


NESTED = "[" * 400 + "]" * 400


@pytest.mark.parametrize(
    "params", ["[[[1]]]", '{"a": [[1]]}', f'{{"a": {NESTED}}}', NESTED, '[{"date": ["x"]}]', '[{"date": {}}]']
)
def test_nested_parameters_are_refused_in_words(shared: Running, params: str) -> None:
    """Deep ones used to end their handler by the depth of its own recursion."""
    body = f'{{"question": "SELECT COUNT(*) AS n FROM people WHERE age > :a", "epsilon": "0.1", "params": {params}}}'
    reply = shared.send("POST", "/v1/ask", "ada", body=body.encode(), headers={"Content-Type": "application/json"})
    assert (reply.status, reply.json["code"], reply.json["charged"]) == (422, "argument", "nothing")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"question":"' + b"\\ud800" + b'"}', b"nan", b"1e999"]
)
def test_what_is_not_json_is_refused(shared: Running, body: bytes) -> None:
    reply = shared.send("POST", "/v1/ask", "ada", body=body, headers={"Content-Type": "application/json"})
    assert reply.status in (400, 422)


def test_oversized_bodies_are_refused_before_they_are_read(shared: Running) -> None:
    most = shared.desk.settings.body
    big = {"question": "x" * most, "epsilon": "0.1"}
    assert shared.post("/v1/ask", "ada", big).status == 413
    lines = f"POST /v1/ask HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {shared.tokens['ada']}\r\n"
    lines += "Content-Type: application/json\r\n"
    declared = lines + f"Content-Length: {10**18}\r\n\r\n"
    assert shared.raw(declared.encode(), 3.0).startswith(b"HTTP/1.1 413")
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    chunked = lines.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 4
    assert shared.raw(chunked, 3.0).startswith(b"HTTP/1.1 413")


def test_oversized_heads_questions_keys_and_nesting_are_refused(shared: Running) -> None:
    assert shared.raw(b"GET /v1/me HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100_000 + b"\r\n\r\n", 3.0).startswith(b"HTTP/1.1 4")
    assert shared.raw(b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 3.0).startswith(b"HTTP/1.1 4")
    long = "SELECT COUNT(*) FROM people WHERE " + " AND ".join(["age > 1"] * 9000)
    assert shared.ask("ada", long, "0.1").status == 422
    assert shared.ask("ada", COUNT, "0.1", key="k" * 201).status == 422
    nested = "SELECT COUNT(*) AS n FROM people WHERE " + "(" * 5000 + "age > 1" + ")" * 5000
    assert shared.ask("ada", nested, "0.1").status == 422
    many = shared.ask("ada", [COUNT] * 101, "0.1")
    assert (many.status, many.json["charged"]) == (422, "nothing")


def test_a_body_that_does_not_arrive_is_not_waited_for(tmp_path: Path) -> None:
    with serving(make(tmp_path, read_time=0.3)) as running:
        lines = f"POST /v1/ask HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {running.tokens['ada']}\r\n"
        slow = lines + "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        assert running.raw(slow.encode(), 5.0).startswith(b"HTTP/1.1 408")


def test_methods_that_are_not_meant_are_refused(shared: Running) -> None:
    for method, path in (
        ("GET", "/v1/ask"),
        ("DELETE", "/v1/history"),
        ("PUT", "/v1/budget"),
        ("TRACE", "/v1/me"),
        ("POST", "/v1/verify"),
    ):
        reply = shared.send(method, path, "cora")
        assert reply.status == 405
        assert reply.json["code"] == "request"


def test_responses_carry_headers_against_misuse(shared: Running) -> None:
    reply = shared.get("/v1/me", "ada")
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["cache-control"] == "no-store"
    assert "server" not in reply.headers
    assert "access-control-allow-origin" not in shared.get("/v1/me", "ada", headers={"Origin": "http://evil.example"}).headers


def test_a_fault_of_the_server_shows_a_constant_text(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("secret row 42")

    monkeypatch.setattr(running.desk.survey.ledger, "head", broken)
    reply = running.get("/v1/budget", "ada")
    assert (reply.status, reply.json["code"]) == (500, "server")
    assert b"secret" not in reply.body
    assert b"Traceback" not in reply.body


# --- logs -------------------------------------------------------------------------------------------------------


def test_no_token_question_or_answer_is_in_the_logs(tmp_path: Path) -> None:
    service, log = make(tmp_path), tmp_path / "log"
    with process(service, log) as running:
        wrong = "dth_" + "B" * 43
        assert running.get("/v1/me", token=wrong).status == 401
        assert running.get(f"/v1/me?token={service.tokens['ada']}").status == 401
        asked = running.ask("ada", "SELECT COUNT(*) AS very_secret_name FROM people WHERE age > 17", "0.1", key="the-key")
        assert asked.status == 200
        assert running.ask("ada", "SELECT broken very_secret_name", "0.1").status == 422
        running.end()
    text = log.read_text()
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    assert [line["who"] for line in lines if line["route"] == "/v1/ask"] == ["ada", "ada"]
    for secret in (*service.tokens.values(), wrong, "very_secret_name", "the-key"):
        assert secret not in text
    assert "Traceback" not in text


def test_that_check_can_fail(tmp_path: Path) -> None:
    """With log_questions the question is in the log, so the test above looks at the right place."""
    service, log = make(tmp_path, log_questions=True), tmp_path / "log"
    with process(service, log) as running:
        assert running.ask("ada", "SELECT COUNT(*) AS very_secret_name FROM people", "0.1").status == 200
        running.end()
    assert "very_secret_name" in log.read_text()


# --- sources ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "/etc/passwd",
        "../outside.parquet",
        "http://169.254.169.254/latest",
        "s3://bucket/x.parquet",
        "link.parquet",
        "*/../../x.csv",
        "up/*.csv",
    ],
)
def test_ssrf_and_files_through_sources(tmp_path: Path, source: str) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    service = make(inside)
    (tmp_path / "outside.parquet").write_bytes((inside / "people.parquet").read_bytes())
    os.symlink(tmp_path / "outside.parquet", inside / "link.parquet")
    os.symlink(tmp_path, inside / "up")
    catalog = Path(service.settings.catalog)
    catalog.write_text(catalog.read_text().replace("people.parquet", source))
    with pytest.raises(CatalogError, match="source of people"):
        open_desk(service.settings)


def test_sources_in_listed_roots_are_read(tmp_path: Path) -> None:
    """Twin: the same file outside, with its folder listed."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    service = make(inside)
    (inside / "people.parquet").rename(outside / "people.parquet")
    catalog = Path(service.settings.catalog)
    catalog.write_text(catalog.read_text().replace("people.parquet", str(outside / "people.parquet")))
    with pytest.raises(CatalogError):
        check_sources(catalog, ())
    check_sources(catalog, (str(outside),))


def test_no_request_can_name_a_source(shared: Running) -> None:
    for question in (
        "SELECT COUNT(*) FROM '/etc/passwd'",
        "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
        "ATTACH 'x'",
        "COPY people TO 'x'",
    ):
        reply = shared.ask("ada", question, "0.1")
        assert (reply.status, reply.json["charged"]) == (422, "nothing")


def test_an_open_address_needs_tls(service: Service) -> None:
    with pytest.raises(ArgumentError, match="in the clear"):
        read_settings(Path(service.settings.catalog), host="0.0.0.0")
    assert read_settings(Path(service.settings.catalog), host="0.0.0.0", behind_proxy=("10.0.0.1",)).secure


def test_two_analysts_cannot_get_two_answers_at_once(running: Running) -> None:
    """The average of many answers to one question would have less noise than one is priced at."""
    assert running.ask("ada", BY_WARD).json["rows"] == running.ask("ben", BY_WARD).json["rows"]
    assert running.ask("ada", ages(3), fresh=True).status == 422  # needs a key


def test_the_owner_alone_reads_the_accounts(service: Service) -> None:
    for path in service.folder.glob("*.people*"):
        assert path.stat().st_mode & 0o077 == 0


def test_a_head_that_does_not_arrive_is_not_waited_for(service: Service) -> None:
    """Twin: a server without that limit keeps the same connection."""
    slow = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: "
    with process(service, read_time=1.0) as limited:
        for sent in (slow, b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" + slow):
            with socket.create_connection(("127.0.0.1", limited.port), timeout=60) as wire:
                wire.sendall(sent)
                found = b""
                while part := wire.recv(65536):  # until the server closes it
                    found += part
            assert found.count(b"200 OK") == sent.count(b"\r\n\r\n")
        assert limited.get("/healthz").status == 200
    with serving(service) as unlimited, socket.create_connection(("127.0.0.1", unlimited.port), timeout=3) as wire:
        wire.sendall(slow)
        with pytest.raises(TimeoutError):
            wire.recv(1)


def test_a_body_after_its_response_is_not_waited_for(service: Service) -> None:
    """Nobody is logged in, so the response is there before the body; its bytes must not hold the connection."""
    head = b"POST /v1/quote HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
    with process(service, read_time=1.0) as limited:
        assert _held(limited.port, head) < 600
    with serving(service) as unlimited:  # the twin
        assert _held(unlimited.port, head, most=40) == 40


def _held(port: int, head: bytes, most: int = 600) -> int:
    """Sends a byte of a body every 50 ms. Returns how many, until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as wire:
        wire.sendall(head)
        assert wire.recv(65536).startswith(b"HTTP/1.1 401")
        for sent in range(most):
            try:
                wire.sendall(b" ")
            except ConnectionError:
                return sent
            time.sleep(0.05)
    return most
