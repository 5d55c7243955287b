"""Measures the PostgreSQL protocol of `dither serve` on loopback: what it adds to `survey.ask`, and looks.

    python benchmarks/wire.py                             about a minute
    python benchmarks/wire.py --looks 10000               the full number of looks

Fuzzed messages are counted and timed by the long run of tests/server/wire/test_fuzz.py. The client runs on the same machine and
takes its share of the processors. Use a quiet one: the load is printed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from dither import curator
from dither.server.http.app import TURN
from dither.server.wire.protocol import message
from server.serving import BY_WARD, ages, make
from server.wire.talking import Raw, Wire, wired

EPSILON = "0.01"


@dataclass(frozen=True)
class Times:
    """Milliseconds of each call, and of this process' processors per call: the client's and the server's together."""

    wall: list[float]
    cpu: float

    @property
    def p50(self) -> float:
        return statistics.median(self.wall)


def timed(call: Callable[[int], object], times: int, warm: int = 20) -> Times:
    for number in range(warm):
        call(number)
    found, before = [], time.process_time()
    for number in range(warm, warm + times):
        start = time.perf_counter()
        call(number)
        found.append(1000 * (time.perf_counter() - start))
    return Times(sorted(found), 1000 * (time.process_time() - before) / times)


AIM = 3.0  # milliseconds that the wire may add to `survey.ask` at p50


def line(name: str, times: Times, base: Times | None = None) -> None:
    """Prints one line of the table: with a base, what was added to it, and whether that is within the aim."""
    p95 = times.wall[int(0.95 * len(times.wall))]
    added = [""] * 3
    if base is not None:
        more = times.p50 - base.p50
        added = [f"{more:.2f}, CPU {times.cpu - base.cpu:.2f}", f"≤ {AIM:g}", "yes" if more <= AIM else "**no**"]
    print(f"| {name} | {times.p50:.2f} | {p95:.2f} | {times.cpu:.2f} | {' | '.join(added)} |", flush=True)


def overhead(wire: Wire, folder: Path, times: int) -> None:
    """Compares the same questions, asked in Python and over the wire: stored answers, and new ones."""
    service = make(folder, epsilon="100000")
    with curator.open(service.settings.catalog) as survey:
        again = timed(lambda _: survey.ask(BY_WARD, EPSILON, analyst="ada"), times)
        new = timed(lambda number: survey.ask(ages(number), EPSILON, analyst="ada"), times)
    line("survey.ask, stored answer", again)
    line("survey.ask, new question", new)
    with wire.connect(epsilon=EPSILON) as link:
        simple = timed(lambda _: link.pgconn.exec_(BY_WARD.encode()), times)
        line("wire, stored answer, simple protocol", simple, again)
        extended = timed(lambda _: link.execute(BY_WARD).fetchall(), times)
        line("wire, stored answer, psycopg", extended, again)
        fresh = timed(lambda number: link.pgconn.exec_(ages(number).encode()), times)
        line("wire, new question, simple protocol", fresh, new)
        prepared = "SELECT COUNT(*) AS n FROM people WHERE age > %s"
        line("wire, stored answer, prepared, parameters", timed(lambda _: link.execute(prepared, (30,), prepare=True), times))
        line("wire, catalog query of the twin", timed(lambda _: link.execute("SELECT count(*) FROM pg_class"), times))
    line("connect and log in (SCRAM)", timed(lambda _: wire.connect().close(), 20, 3))


def looks(wire: Wire, number: int) -> None:
    """Describes questions, which charges nothing."""
    before = wire.spent()
    with Raw(wire.port) as raw:
        raw.log_in("ada", wire.service.tokens["ada"], options=f"-c dither.epsilon={EPSILON}")

        def look(place: int) -> None:
            raw.socket.sendall(message(b"P", b"\0" + ages(place).encode() + b"\0\0\0") + message(b"D", b"S\0") + message(b"S"))
            raw.until(b"Z")

        times = timed(look, number, 0)
    line(f"{number:,} looks at new questions (Describe)", times)
    print(f"\ncharged for the looks: {'nothing' if wire.spent() == before else 'SOMETHING'}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--looks", type=int, default=500)
    given = parser.parse_args()
    sys.setswitchinterval(TURN)  # as `dither serve` does; by default a thread that computes holds the others up for 5 ms
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; milliseconds; the log of the server is on stderr\n")
    with (
        tempfile.TemporaryDirectory() as one,
        tempfile.TemporaryDirectory() as other,
        wired(Path(one), epsilon="100000") as wire,
    ):
        print("| | p50 | p95 | CPU | added at p50 | aim | met |\n|---|---|---|---|---|---|---|")
        overhead(wire, Path(other), given.times)
        looks(wire, given.looks)


if __name__ == "__main__":
    main()
