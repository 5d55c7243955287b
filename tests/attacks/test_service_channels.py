"""What a server shows besides noisy numbers and time: counts, places in the line, memory, errors and their codes.

All of it must be the same with a person of 20,000 rows and without, and the same while rows are read and until their tick.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import prometheus_client
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attacks.clock import HEAVY
from dither.server.clock import Delay
from server.serving import BY_WARD, COUNT, Client, Running, ages, make, serving
from server.wire.talking import Wire, shared_twin

pytestmark = pytest.mark.slow
QUICK = {"tick": "10 ms", "epsilon": "1", "effect": "0.1 ms"}
REQUESTS: list[tuple[str, str, str, Any]] = [
    ("ada", "POST", "/v1/quote", {"question": BY_WARD, "epsilon": "0.1", "left_out": False}),
    ("ada", "POST", "/v1/ask", {"question": BY_WARD, "epsilon": "0.1", "left_out": False}),
    ("ada", "POST", "/v1/ask", {"question": BY_WARD, "epsilon": "0.1", "left_out": False}),
    ("ada", "POST", "/v1/ask", {"question": "SELECT SUM(income) FROM people", "epsilon": "0.1"}),
    (
        "ada",
        "POST",
        "/v1/ask",
        {"question": "SELECT COUNT(*) FROM people WHERE person = 1000000 / 0", "epsilon": "0.1", "left_out": False},
    ),
    ("ada", "POST", "/v1/ask", {"question": "SELECT * FROM people WHERE person = 1000000", "epsilon": "0.1"}),
    ("ada", "POST", "/v1/ask", {"question": COUNT, "epsilon": "5"}),
    ("ben", "GET", "/v1/budget", None),
    ("ben", "GET", "/v1/catalog", None),
    ("otto", "GET", "/v1/history?everyone=1", None),
    ("otto", "GET", "/metrics", None),
    ("ada", "GET", "/readyz", None),
]


@contextmanager
def served(folder: Path, rows: int = 0) -> Iterator[Wire]:
    """A server with a person of so many rows more, on both protocols."""
    folder.mkdir()
    service = make(folder, epsilon="2", clock=QUICK, wire=0, twin=shared_twin())
    table = pq.read_table(folder / "people.parquet")
    columns = {"person": [10**6] * rows, "ward": ["north"] * rows, "age": [1] * rows, "income": [1.0] * rows}
    pq.write_table(pa.concat_tables([table, pa.table(columns).cast(table.schema)]), folder / "people.parquet")
    with serving(service) as running:
        yield Wire(running, service)


def masked(text: str) -> str:
    """Leaves out what is random on every server: noisy numbers, names of entries, times."""
    rows = re.sub(r'"(rows|cells|margins|payload|committed)": ?(\[.*?\]\]|\{.*?\})', r'"\1"', text)
    return re.sub(r"[0-9a-f]{8,}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+|[A-Za-z0-9+/=_-]{40,}|17[0-9]{8}(\.[0-9]+)?", "#", rows)


def transcript(client: Client) -> list[tuple[str, int, tuple[str, ...], str]]:
    """Everything that requests show, but for what is random."""
    found = []
    for who, method, path, body in REQUESTS:
        reply = client.send(method, path, who, body)
        found.append((path, reply.status, tuple(sorted(reply.headers)), masked(reply.body.decode())))
    return found


def counted(text: str) -> list[str]:
    """The counts of questions and of the line."""
    return [
        line for line in text.splitlines() if line.startswith(("dither_questions_total", "dither_waiting", "dither_running"))
    ]


def shown(running: Running) -> list[str]:
    return counted(running.get("/metrics", "otto").body.decode())


def since(before: list[str], after: list[str]) -> list[str]:
    """What is in the counts now that was not: servers in one process share them."""
    return [line for line in after if line not in before]


def test_nothing_but_the_noise_differs_with_20000_rows_more(tmp_path: Path) -> None:
    found = []
    for name, rows in (("present", HEAVY), ("absent", 0)):
        with served(tmp_path / name, rows) as wire:
            found.append([each for each in transcript(wire.running) if each[0] != "/metrics"])
    assert found[0] == found[1]
    assert {status for _, status, _, _ in found[0]} == {200, 402, 422}


def test_that_check_notices_an_error_that_counts_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for name, rows in (("present", HEAVY), ("absent", 0)):
        with served(tmp_path / name, rows) as wire:
            survey = wire.running.desk.survey
            own = survey.quote

            def quote(*given: Any, own: Any = own, rows: int = rows, **terms: Any) -> Any:
                made = own(*given, **terms)
                data = made.as_data() | {"rows_read": 400 + rows}
                monkeypatch.setattr(type(made), "as_data", lambda self: data)
                return made

            monkeypatch.setattr(survey, "quote", quote)
            found.append(transcript(wire.running)[0])
            monkeypatch.undo()
    assert found[0] != found[1]


# --- memory ---------------------------------------------------------------------------------------------------------


def test_counts_hold_nothing_of_the_process(tmp_path: Path) -> None:
    """Memory and the processor's time depend on rows, and an auditor need not see them."""
    with served(tmp_path / "one") as wire:
        text = wire.running.get("/metrics", "otto").body.decode()
    names = {line.split("{")[0].split(" ")[0] for line in text.splitlines() if not line.startswith("#")}
    assert names
    assert all(name.startswith("dither_") for name in names)
    assert not re.search("memory|bytes|cpu|second", " ".join(sorted(names)))


def test_that_check_notices_the_registry_of_prometheus() -> None:
    text = prometheus_client.generate_latest(prometheus_client.REGISTRY).decode()
    assert "python_gc" in text or "process_resident_memory_bytes" in text


# --- errors ---------------------------------------------------------------------------------------------------------

FAILURES = [
    MemoryError("20000 rows of person 1000000"),
    duckdb.OutOfMemoryException("failed to allocate data of size 1.2 GiB (512 MiB / 512 MiB used)"),
    OSError(28, "No space left on device"),
    RuntimeError("thread 7: std::bad_alloc"),
]


def replies_to_a_failure(wire: Wire, error: Exception, number: int) -> tuple[Any, ...]:
    """Asks over both protocols while the engine fails so. Returns all that is told."""
    survey, told = wire.running.desk.survey, []

    def fail(engine: Any, work: Any) -> Any:
        raise error

    own = survey.steps
    for ask in (_over_http, _over_the_wire):
        survey.steps = replace(own, run=fail)
        told.append(ask(wire, ages(number)))
        survey.steps = own
        told.append(ask(wire, ages(number)))  # the catalog is closed by now
        survey.reopen()
        number += 1
    return tuple(told)


def _over_http(wire: Wire, question: str) -> tuple[Any, ...]:
    reply = wire.running.ask("ada", question, "0.01")
    return reply.status, tuple(sorted(reply.headers)), masked(reply.body.decode())


def _over_the_wire(wire: Wire, question: str) -> tuple[Any, ...]:
    with wire.connect(epsilon="0.01") as link:
        try:
            link.execute(question)
        except psycopg.Error as failed:
            diag = failed.diag
            return diag.sqlstate, diag.message_primary, diag.message_detail, diag.message_hint, diag.statement_position
    return ("answered",)


def test_an_engine_that_runs_out_of_memory_says_what_every_failure_says(tmp_path: Path) -> None:
    """That it failed is one bit, and closes the catalog. How it failed, and for want of how much, is not told."""
    with served(tmp_path / "one") as wire:
        assert wire.running.ask("ada", COUNT, "0.01").status == 200
        found = {replies_to_a_failure(wire, error, 10 * place) for place, error in enumerate(FAILURES)}
    assert len(found) == 1
    text = str(found)
    assert not re.search("memory|alloc|GiB|20000|1000000|thread|space", text)


# --- the line -------------------------------------------------------------------------------------------------------


def test_the_line_looks_the_same_while_rows_are_read_and_until_the_tick(tmp_path: Path) -> None:
    """Neither counts nor another analyst's place in the line tell when the rows were read."""
    with served(tmp_path / "one") as wire, ThreadPoolExecutor(4) as pool:
        running, survey, clock = wire.running, wire.running.desk.survey, wire.running.desk.clock
        assert clock is not None
        assert running.ask("ada", COUNT, "0.01").status == 200
        reading, read, go, leave = (threading.Event() for _ in range(4))
        own = survey.steps

        def run(engine: Any, work: Any) -> Any:
            reading.set()
            assert go.wait(60)
            return own.run(engine, work)

        def wait(delay: Delay) -> None:
            read.set()
            assert leave.wait(60)

        survey.steps, clock.wait = replace(own, run=run), wait
        first = pool.submit(running.ask, "ada", ages(1), "0.01")
        assert reading.wait(60)
        late = running.post("/v1/ask", "ben", {"question": ages(2), "epsilon": "0.01"}, {"Prefer": "respond-async"})
        while running.desk.paying.waiting < 1:
            pass
        before = shown(running), running.get(late.headers["location"], "ben").body
        go.set()
        assert read.wait(60)
        assert (shown(running), running.get(late.headers["location"], "ben").body) == before
        leave.set()
        assert first.result().status == 200
        while running.get(late.headers["location"], "ben").status == 202:
            pass
        assert since(before[0], shown(running))
