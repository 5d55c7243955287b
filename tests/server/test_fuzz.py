"""Wrong requests, by every login and on every route, crash nothing, hang nothing and tell nothing. The full size is `long`."""

from __future__ import annotations

import logging
import random
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dither.server.http import api
from dither.server.http.app import application
from server.fuzzing import Requests, Wrong, cpu_of, fuzz, hangs, routes_of
from server.serving import COUNT, Client, Running, Service, make, process, repeats, seed, serving
from server.test_faults import children, judged

pytestmark = pytest.mark.slow


def wrong_requests(service: Service, client: Client, dice: random.Random) -> Requests:
    """Returns requests on all routes, by all kinds of logins."""
    tokens = [*service.tokens.values(), service.token("ada", "replay"), "dth_" + "0" * 43]
    session = client.post("/v1/login", None, {"token": service.tokens["cora"]}).cookies[0].partition(";")[0]
    own = f"Cookie: {session}\r\nOrigin: http://127.0.0.1"
    logins = [*(f"Authorization: Bearer {token}" for token in tokens), own, own, f"Cookie: {session}", ""]
    return Requests(routes_of(application(service.settings)), logins, dice)


class Complaints(logging.Handler):
    """Keeps what uvicorn and asyncio write of faults, which `serving` hides."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))


@pytest.fixture
def complaints() -> Iterator[list[str]]:
    handler, loggers = Complaints(), [logging.getLogger(name) for name in ("uvicorn.error", "asyncio")]
    for each in loggers:
        each.addHandler(handler)
    yield handler.texts
    for each in loggers:
        each.removeHandler(handler)


def listen_to_uvicorn() -> None:
    """Undoes that `serving` silences uvicorn."""
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)


def test_wrong_requests_crash_nothing(tmp_path: Path, complaints: list[str]) -> None:
    service = make(tmp_path, epsilon="1")
    with serving(service) as running:
        listen_to_uvicorn()
        found = fuzz(running.port, wrong_requests(service, running, random.Random(1)), 600)
        assert {"200", "400", "401", "403", "404", "405", "422"} <= set(found.statuses)
        assert running.ask("ada", COUNT, "0.1").status == 200
    assert judged(service)[0].problems == ()
    assert complaints == []


@pytest.mark.parametrize("method", [b"POST", b"HEAD"])
@pytest.mark.parametrize("login", [True, False], ids=["logged in", "nobody"])
@pytest.mark.parametrize("body", [b"0x2\r\nab\r\n0\r\n\r\n", b"2\r\n{}\r\nzz\r\n", b"f" * 21 + b"\r\n"])
def test_a_body_that_turns_out_to_be_no_http_is_answered_once(
    shared: Running, complaints: list[str], body: bytes, login: bool, method: bytes
) -> None:
    """It used to be answered by uvicorn and then by its handler, which ended in a traceback in the log."""
    listen_to_uvicorn()
    head = method + b" /v1/quote HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    head += b"Authorization: Bearer " + shared.tokens["ada"].encode() + b"\r\n\r\n" if login else b"\r\n"
    for pause in (0.0, 0.1):  # in one piece with its head, and after its handler has begun
        with socket.create_connection(("127.0.0.1", shared.port), timeout=10) as wire:
            wire.sendall(head if pause else head + body)
            time.sleep(pause)
            wire.sendall(body if pause else b"")
            found = b""
            while part := wire.recv(65536):
                found += part
        assert found.count(b"HTTP/1.1 ") == 1
    assert shared.get("/readyz").status == 200
    assert complaints == []


def test_that_check_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler that fails in its own way is found."""

    def failing(*_: Any) -> Any:
        raise KeyError("x")

    service = make(tmp_path)
    monkeypatch.setattr(api, "budget_data", failing)
    with serving(service) as running, pytest.raises(AssertionError, match="could not do this"):
        fuzz(running.port, wrong_requests(service, running, random.Random(1)), 600)


def test_a_request_that_takes_long_by_itself_is_found(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that only waited for others is not: it is fast when it is alone."""
    asked = b"GET /v1/budget HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + running.tokens["ada"].encode() + b"\r\n\r\n"
    wrong = Wrong(asked, "GET", True)
    assert not hangs(running.port, wrong, time.process_time)

    def computing(*_: Any) -> dict[str, Any]:
        began = time.thread_time()
        while time.thread_time() - began < 1.1:
            pass
        return {}

    monkeypatch.setattr(api, "budget_data", computing)
    assert hangs(running.port, wrong, time.process_time)


@pytest.mark.long
def test_many_wrong_requests_crash_nothing(tmp_path: Path) -> None:
    """In pieces: DITHER_TIMES requests, others for each DITHER_SEED."""
    log, total = tmp_path / "log", repeats(1_000_000)
    for turn in range(0, total, 20_000):  # a new ledger from time to time, for verifying takes longer with its length
        folder = tmp_path / str(turn)
        folder.mkdir()
        service = make(folder)
        with process(service, log, workers=2) as running:
            workers = children(running.running.pid)
            dice = random.Random(f"{seed()} {turn}")
            wrong = wrong_requests(service, running, dice)
            found = fuzz(running.port, wrong, min(20_000, total - turn), cpu=cpu_of(workers))
            assert children(running.running.pid) == workers  # none died
            assert running.get("/readyz").status == 200
            running.end()
        print(f"{found.statuses.total()} requests: {dict(found.statuses)}; tried again: {len(found.slow)}", flush=True)
        assert judged(service)[0].problems == ()
    assert b"Traceback" not in log.read_bytes()
