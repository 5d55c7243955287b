"""Faults of whole servers: killed workers, several processes on one ledger. The full size is `long`."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from dither.history import questions
from dither.ledger import opening
from dither.ledger.verify.report import Report, verify
from server.serving import BY_WARD, COUNT, Process, Service, ages, make, process, repeats, seed, wait_until_ready

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
    for turn in range(repeats(500) // 20):
        folder = tmp_path / str(turn)
        folder.mkdir()
        killed(make(folder, epsilon="100"), 20, random.Random(1000 * seed() + turn))


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
