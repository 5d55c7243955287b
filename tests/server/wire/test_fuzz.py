"""Messages that no client sends: the server stays up, says nothing of its inside, and answers others.

`make test` sends the same 1,500 each time to a server in this process. The long run sends DITHER_FUZZ of them to `dither
serve`, and looks for answers that take longer than a second. A million are 20 runs with seeds of their own:

    DITHER_FUZZ=50000 DITHER_FUZZ_SEED=1 python -m pytest -m long tests/server/wire/test_fuzz.py -k long_run -s
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from dither.ledger import opening as ledgers
from dither.ledger.verify.report import verify
from dither.server.wire.backend import Backend
from dither.server.wire.protocol import Body
from server.serving import BY_WARD, Process, Service, free_port, make, process
from server.wire.fuzzing import Fuzzing, Used
from server.wire.talking import Raw, Wire, shared_twin

pytestmark = pytest.mark.slow
MESSAGES = int(os.environ.get("DITHER_FUZZ", "100000"))
SAMPLE = 1500
SEED = int(
    os.environ.get("DITHER_FUZZ_SEED", random.SystemRandom().randrange(1 << 30) if os.environ.get("DITHER_SEARCH") else 1)
)


def test_fuzzed_messages_do_no_harm(wire: Wire) -> None:
    faults = wire.listening.faults
    fuzzing = Fuzzing(wire.port, wire.service.tokens["cora"], random.Random(SEED), judging=False)
    fuzzing.run(SAMPLE)
    assert wire.listening.faults == faults, f"seed {SEED}"
    with wire.connect() as link:
        assert link.execute(BY_WARD).fetchall(), f"seed {SEED}"


def test_that_check_can_fail(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault in handling a message is counted, so the checks above would see it."""

    def broken(*_: object) -> None:
        raise IndexError

    monkeypatch.setattr("dither.server.wire.session.statements", broken)
    faults = wire.listening.faults
    with Raw(wire.port) as raw:
        raw.log_in("cora", wire.service.tokens["cora"])
        raw.send(b"Q", b"SELECT 1\0")
        raw.until(b"Z")
    assert wire.listening.faults == faults + 1
    monkeypatch.undo()


# --- the long run ---------------------------------------------------------------------------------------------------


@contextmanager
def served(folder: Path) -> Iterator[tuple[Service, Process, int, Path]]:
    """Runs `dither serve` with the PostgreSQL protocol; returns its port and its log."""
    port, log = free_port(), folder / "log"
    service = make(folder, epsilon="100000", wire=port, twin=shared_twin())
    with process(service, log) as server:
        yield service, server, port, log


@pytest.mark.long
def test_a_long_run_of_fuzzed_messages_finds_no_fault_and_no_hang(tmp_path: Path) -> None:
    begun = time.monotonic()
    with served(tmp_path) as (service, server, port, log):
        fuzzing = Fuzzing(port, service.tokens["cora"], random.Random(SEED), lambda: Used.by(server.running.pid))
        fuzzing.run(MESSAGES)
        spent = Used.by(server.running.pid).computed
        print(f"\n{fuzzing.words()}; {time.monotonic() - begun:.0f} s, {spent:.0f} s of the server, seed {SEED}")
        assert server.ask("ada", BY_WARD).status == 200
        assert server.running.poll() is None
    told = log.read_text(encoding="utf-8", errors="replace")
    assert "Traceback" not in told, f"seed {SEED}"
    assert '"fault"' not in told, f"seed {SEED}"
    with closing(ledgers.open_readonly(str(service.ledger))) as store:
        assert verify(store).ok, f"seed {SEED}"
    assert not fuzzing.hangs, f"seed {SEED}"


def slowed(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Makes the server wait for 1.5 seconds at a Flush, so many times."""
    waits = iter(range(times))

    async def slow(self: Backend, body: Body) -> None:
        if next(waits, None) is not None:
            await asyncio.sleep(1.5)

    monkeypatch.setattr(Backend, "_nothing", slow)


@pytest.mark.long
def test_that_a_hang_is_found(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    slowed(monkeypatch, 10**6)
    fuzzing = Fuzzing(wire.port, wire.service.tokens["cora"], random.Random(1))
    fuzzing.run(150)
    print(fuzzing.words())
    assert fuzzing.hangs


@pytest.mark.long
def test_that_a_pause_of_the_machine_is_no_hang(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    slowed(monkeypatch, 1)
    fuzzing = Fuzzing(wire.port, wire.service.tokens["cora"], random.Random(1))
    fuzzing.run(150)
    assert fuzzing.slow
    assert not fuzzing.hangs
