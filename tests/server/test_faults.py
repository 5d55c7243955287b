"""Faults of whole servers: killed workers, several processes on one ledger, nonsense on the wire. The full size is `long`."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from dither.history import questions
from dither.ledger import opening
from dither.ledger.verify.report import Report, verify
from server.serving import BY_WARD, COUNT, Process, Running, Service, ages, make, process, wait_until_ready

pytestmark = pytest.mark.slow


def judged(service: Service) -> tuple[Report, list[dict[str, Any]]]:
    with closing(opening.open_readonly(service.ledger)) as store:
        return verify(store), questions(store, store.state()[1], None)[0]


def children(pid: int) -> list[int]:
    """Returns the processes that this one started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid and fields[0] not in "ZX":
                found.append(int(path.parent.name))
    return found


@pytest.fixture(params=["sqlite", "postgres"])
def several(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Service, Process]]:
    """A server of two processes, on each kind of ledger."""
    service = make(tmp_path, epsilon="10")
    if request.param == "postgres":
        service = on_postgres(service, request.getfixturevalue("postgres_url"))
    with process(service, workers=2) as running:
        yield service, running


def on_postgres(service: Service, url: str) -> Service:
    from dataclasses import replace

    from dither.workspace import make_ledger

    key = str(service.folder / "server.key")
    make_ledger(url, key)
    settings = replace(service.settings, ledger=url, key=key, people=str(service.ledger) + ".people")
    return replace(service, settings=settings)


def test_one_question_from_threads_and_processes_is_charged_once(several: tuple[Service, Process]) -> None:
    _, running = several
    assert len(children(running.running.pid)) >= 2
    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda i: running.ask(("ada", "ben")[i % 2], BY_WARD, "0.1"), range(32)))
    answered = [reply.json for reply in replies if reply.status == 200]
    assert {reply.status for reply in replies} <= {200, 503}
    assert len({json.dumps(each["rows"]) for each in answered}) == 1
    assert sum(not each["replayed"] for each in answered) == 1
    assert running.spent() == "1/10"


class Load:
    """Analysts who ask new questions until they are told to stop, and remember what they were given."""

    def __init__(self, running: Process, analysts: int) -> None:
        self.given: dict[int, Any] = {}
        self.stop = threading.Event()
        self._running = running
        self._threads = [threading.Thread(target=self._ask, args=(i, analysts)) for i in range(analysts)]
        for each in self._threads:
            each.start()

    def _ask(self, start: int, step: int) -> None:
        number = start
        while not self.stop.is_set():
            with suppress(OSError, ValueError):
                reply = self._running.ask(("ada", "ben")[number % 2], ages(number), "0.001", key=f"k{number}")
                if reply.status == 200:
                    self.given[reply.json["entry"]] = reply.json["rows"]
                if reply.status == 503 and reply.json["code"] == "closed":
                    return
            number += step

    def join(self) -> None:
        self.stop.set()
        for each in self._threads:
            each.join()


def killed(service: Service, rounds: int, dice: random.Random) -> None:
    """Kills a worker again and again under load; the curator reopens after every second one."""
    with process(service, workers=2) as running:
        load = Load(running, 4)
        for turn in range(rounds):
            time.sleep(dice.uniform(0.1, 0.6))
            workers = [pid for pid in children(running.running.pid) if b"spawn_main" in command(pid)]
            if workers:
                with suppress(ProcessLookupError):
                    os.kill(dice.choice(workers), signal.SIGKILL)
            wait_until_ready(running)
            if turn % 2:
                with closing(opening.open(service.ledger)) as ledger:
                    ledger.reopen()
        load.join()
        assert running.ask("ada", COUNT, "0.001").status in (200, 503)
        running.end()
    report, rows = judged(service)
    assert report.problems == ()
    states = [row["state"] for row in rows]
    paid = {row["answer"] for row in rows if row["state"] == "answered"}
    assert set(load.given) <= paid  # no answer that was not paid for
    assert load.given
    spent = sum(state in ("answered", "process died", "reserved", "interrupted") for state in states)
    assert report.spent["epsilon"] * 1000 == spent  # what was answered, or is said to be lost


def command(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def test_killed_workers_leave_a_clean_ledger(tmp_path: Path) -> None:
    killed(make(tmp_path, epsilon="100"), 4, random.Random(1))


@pytest.mark.long
def test_killed_workers_leave_a_clean_ledger_500_times(tmp_path: Path) -> None:
    """In pieces: DITHER_TIMES kills, with other moments for each DITHER_SEED."""
    for turn in range(times(500) // 20):
        folder = tmp_path / str(turn)
        folder.mkdir()
        killed(make(folder, epsilon="100"), 20, random.Random(1000 * seed() + turn))


def times(default: int) -> int:
    """Returns how often a long run repeats what it does."""
    return int(os.environ.get("DITHER_TIMES", str(default)))


def seed() -> int:
    return int(os.environ.get("DITHER_SEED", "0"))


def test_a_server_is_ended_by_a_signal_and_leaves_nothing_open(tmp_path: Path) -> None:
    service = make(tmp_path, epsilon="100")
    with process(service, workers=2) as running:
        load = Load(running, 4)
        while len(load.given) < 3:
            time.sleep(0.05)
        threading.Timer(0.2, load.stop.set).start()
        assert running.end(signal.SIGTERM) in (0, 143, -15)
        load.join()
    report, rows = judged(service)
    assert (report.problems, report.open) == ((), 0)
    assert {row["state"] for row in rows} == {"answered"}
    assert set(load.given) <= {row["answer"] for row in rows}


# --- nonsense ---------------------------------------------------------------------------------------------------


PATHS = (
    *("/v1/ask", "/v1/quote", "/v1/ask", "/v1/quote", "/v1/suggest", "/v1/login", "/v1/logout", "/v1/approvals/1"),
    *("/v1/answers/1", "/v1/answers/-", "/v1/answers/%00", "/v1/answers/" + "q" * 99, "/v1/receipts/9", "/v1/receipts/x"),
    *("/v1/history?limit=x", "/v1/history?before=0", "/v1/key?at=%F0", "/v1/catalog", "/v1/budget", "/v1/me", "/v1/verify"),
    *("/", "/answers/1", "/receipts/1", "/login", "/static/../x", "/static/%2e%2e/x", "*", "", "//", "/v1/\u00e9"),
)
POSTS = ("/v1/ask", "/v1/quote", "/v1/suggest", "/v1/log", "/v1/approvals/")
QUESTIONS = (
    *("SELECT", "SELECT 1", "SELECT COUNT(*) FROM people GROUP BY", "';--", "\u202e", "SELECT \x00", COUNT, BY_WARD, "(" * 500),
    *("SELECT COUNT(*) FROM people WHERE age > :a", "SELECT AVG(age) FROM people", ["SELECT 1", COUNT], [], 1, None, {"a": 1}),
)
TERMS = (
    *({}, {}, {"params": {"a": []}}, {"params": {"a": {"date": 1}}}, {"confidence": 2}, {"max_rows": -1}, {"max_rows": "auto"}),
    *({"weights": [0]}, {"sample": "1/0"}, {"sample": "1/2"}, {"margin": 1}, {"free": True}, {"fresh": True}, {"payload": 1}),
    *({"column": "people.income"}, {"name": "ada", "password": "x"}, {"decision": "approve"}, {"token": "dth_"}, {"x": 1}),
)


def nonsense(dice: random.Random, token: str) -> bytes:
    """Returns a request that is wrong in a random way, mostly deep inside."""
    path = dice.choice(PATHS)
    method = "POST" if path.startswith(POSTS) else "GET"
    method = method if dice.random() < 0.85 else dice.choice(["GET", "POST", "PUT", "HEAD", "get", "X" * 30, "\x00"])
    body = dice.choice(
        [b"", b"{}", b'{"question":', b'{"question":1}', b"[]", dice.randbytes(dice.randrange(200)), b"[" * 9999]
    )
    if dice.random() < 0.7:
        epsilon = dice.choice([0, -1, "x", "1e999", "NaN", "1/0", 10**400, None, "0.0001", "0.0001", "0.0001"])
        body = json.dumps({"question": dice.choice(QUESTIONS), "epsilon": epsilon} | dice.choice(TERMS)).encode()
    version = "HTTP/1.1" if dice.random() < 0.95 else dice.choice(["HTTP/1.0", "HTTP/9", ""])
    lines = [f"{method} {path} {version}", "Host: x", "Connection: close"]
    lines += [f"Authorization: Bearer {token}"] if dice.random() < 0.9 else []
    lines += ["Content-Type: application/json"] if dice.random() < 0.9 else []
    lines += [f"Content-Length: {len(body) if dice.random() < 0.9 else dice.choice([0, 7, -1, 10**9])}"]
    extra = [
        "X: y",
        "Expect: 100-continue",
        "Idempotency-Key: k",
        "Prefer: wait=0",
        "Cookie: dither=x",
        "Range: x",
        "Origin: null",
    ]
    lines += [dice.choice(extra) if dice.random() < 0.97 else ": "]
    sent = "\r\n".join(lines).encode("utf-8", "replace") + b"\r\n\r\n" + body
    if dice.random() < 0.2:
        place = dice.randrange(len(sent))
        sent = sent[:place] + dice.randbytes(dice.randrange(1, 9)) + sent[place + dice.randrange(9) :]
    return sent


SILENCE = 1.0  # seconds: what has not been answered by then was not whole, and is given up
HANG = 60.0  # seconds in which a connection that was given up must be closed


async def exchange(port: int, sent: bytes) -> bytes:
    """Sends bytes as they are, and returns all that comes back until the server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    found = b""
    try:
        writer.write(sent)
        with suppress(ConnectionError):
            try:
                async with asyncio.timeout(SILENCE):
                    while part := await reader.read(65536):
                        found += part
                    return found
            except TimeoutError:
                writer.write_eof()
            async with asyncio.timeout(HANG):
                while part := await reader.read(65536):
                    found += part
        return found
    finally:
        writer.close()


def fuzzed(port: int, token: str, number: int, dice: random.Random, at_once: int = 50) -> Counter[bytes]:
    """Sends wrong requests. Returns how many had which status; none: the connection was closed."""
    statuses: Counter[bytes] = Counter()
    left = iter(range(number))

    async def sender() -> None:
        for _ in left:
            sent = nonsense(dice, token)
            found = await exchange(port, sent)
            assert b"Traceback" not in found, sent
            assert b'File "' not in found, sent
            assert b'"code": "server"' not in found, (sent, found)
            assert not found or found.startswith(b"HTTP/1.1 "), (sent, found)
            statuses[found[9:12]] += 1

    async def all_of_them() -> None:
        await asyncio.gather(*(sender() for _ in range(at_once)))

    asyncio.run(all_of_them())
    return statuses


def test_nonsense_on_the_wire_crashes_nothing(shared: Running) -> None:
    found = fuzzed(shared.port, shared.tokens["ada"], 300, random.Random(1))
    assert {b"200", b"400", b"401", b"404", b"405", b"415", b"422"} <= set(found)
    assert shared.ask("ada", COUNT, "0.1").status == 200


@pytest.mark.long
def test_much_nonsense_on_the_wire_crashes_nothing(tmp_path: Path) -> None:
    """In pieces: DITHER_TIMES requests, others for each DITHER_SEED."""
    log = tmp_path / "log"
    with process(make(tmp_path), log, workers=2) as running:
        workers = children(running.running.pid)
        found = fuzzed(running.port, running.tokens["ada"], times(1_000_000), random.Random(seed()), at_once=200)
        print(f"{found.total()} requests: {dict(found)}")
        assert children(running.running.pid) == workers  # none died
        assert running.ask("ada", COUNT, "0.1").status == 200
    assert b"Traceback" not in log.read_bytes()
