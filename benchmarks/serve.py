"""Measures `dither serve` on loopback: one charge, latency under load, peaks, refusals when it is full, overhead.

    python benchmarks/serve.py                    about two minutes
    python benchmarks/serve.py --seconds 60       the full load

The client runs on the same machine and takes its share of the processors. Use a quiet one: the load is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from dither import curator
from server.serving import BY_WARD, COUNT, Process, Service, ages, make, process

EPSILON = "0.00001"


def flush_time(folder: Path) -> float:
    """Returns the seconds of one write that is flushed to the disk."""
    times = []
    with open(folder / "flush", "wb") as out:
        for _ in range(20):
            start = time.perf_counter()
            out.write(b"x" * 4096)
            out.flush()
            os.fsync(out.fileno())
            times.append(time.perf_counter() - start)
    return statistics.median(times)


@dataclass
class Wire:
    """One open connection, which sends one request at a time."""

    port: int
    token: str
    reader: asyncio.StreamReader | None = None
    writer: asyncio.StreamWriter | None = None

    async def send(self, path: str, data: dict[str, Any]) -> tuple[int, bytes, float]:
        """Returns status, body and seconds."""
        if self.writer is None or self.reader is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        body = json.dumps(data).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.token}\r\nContent-Type: application/json\r\n"
        start = time.perf_counter()
        self.writer.write(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        found = await self.reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in found.lower().split(b"\r\n") if line.startswith(b"content-length"))
        content = await self.reader.readexactly(length)
        return int(found.split()[1]), content, time.perf_counter() - start

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


@dataclass
class Tally:
    times: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)

    def add(self, status: int, seconds: float) -> None:
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.times.append(seconds)

    def at(self, share: float) -> float:
        return 1000 * sorted(self.times)[min(int(share * len(self.times)), len(self.times) - 1)] if self.times else float("nan")

    @property
    def errors(self) -> int:
        return sum(count for status, count in self.statuses.items() if status != 200)


def show(what: str, reached: str, wanted: str) -> None:
    print(f"| {what} | {reached} | {wanted} |", flush=True)


def one_charge(running: Process) -> None:
    with ThreadPoolExecutor(64) as pool:
        replies = list(pool.map(lambda i: running.ask("ada", BY_WARD, EPSILON), range(256)))
    good = [reply.json for reply in replies if reply.status == 200]
    charged, answers = sum(not each["replayed"] for each in good), len({json.dumps(each["rows"]) for each in good})
    busy = sum(reply.status == 503 for reply in replies)
    show(
        "same question, 64 threads × 4 processes",
        f"{charged} charge, {answers} answer, {busy} refused",
        "one charge, one answer",
    )


def analysts(service: Service, number: int) -> list[str]:
    """Returns the tokens of new analysts."""
    with service.accounts() as accounts:
        names = [accounts.add(f"analyst {place}", "analyst") for place in range(number)]
        return [accounts.make_token(name)[1] for name in names]


async def load(
    running: Process, tokens: list[str], seconds: float, open_: int, quotes: float, asks: float
) -> tuple[Tally, Tally]:
    """Sends quotes and new questions at a fixed rate, over many open connections in turn."""
    wires = [Wire(running.port, tokens[place % len(tokens)]) for place in range(open_)]
    for place in range(0, open_, 50):
        await asyncio.gather(
            *(each.send("/v1/quote", {"question": COUNT, "epsilon": "0.1"}) for each in wires[place : place + 50])
        )
    free, tallies = asyncio.Queue[Wire](), (Tally(), Tally())
    for each in wires:
        free.put_nowait(each)
    tasks: list[asyncio.Task[None]] = []

    async def one(place: int, path: str, data: dict[str, Any]) -> None:
        wire = await free.get()
        status, _, took = await wire.send(path, data)
        tallies[place].add(status, took)
        free.put_nowait(wire)

    async def stream(place: int, path: str, rate: float) -> None:
        start = time.perf_counter()
        for number in range(int(rate * seconds)):
            await asyncio.sleep(max(0.0, start + number / rate - time.perf_counter()))
            question = ages(10_000 + number) if place else ages(number % 40)
            tasks.append(asyncio.create_task(one(place, path, {"question": question, "epsilon": EPSILON})))

    await asyncio.gather(stream(0, "/v1/quote", quotes), stream(1, "/v1/ask", asks))
    await asyncio.gather(*tasks)
    for each in wires:
        each.close()
    return tallies


async def peak(running: Process, seconds: float, clients: int, fresh: bool) -> float:
    """Returns answers in a second: stored ones, or new ones."""
    end, done = time.perf_counter() + seconds, [0]
    names = ("ada", "ben", "cora", "carl")

    async def client(place: int) -> None:
        wire, number = Wire(running.port, running.tokens[names[place % 4]]), 0
        while time.perf_counter() < end:
            number += 1
            question = ages(1_000_000 * (place + 1) + number) if fresh else BY_WARD
            status, _, _ = await wire.send("/v1/ask", {"question": question, "epsilon": EPSILON})
            done[0] += status == 200
        wire.close()

    start = time.perf_counter()
    await asyncio.gather(*(client(place) for place in range(clients)))
    return done[0] / (time.perf_counter() - start)


async def overload(running: Process, seconds: float) -> tuple[Tally, float, float]:
    """Returns refusals, how many in a second, and how long a question takes two seconds later."""
    end, refused, others = time.perf_counter() + seconds, Tally(), Tally()

    async def client(place: int) -> None:
        wire = Wire(running.port, running.tokens["ada"])
        while time.perf_counter() < end:
            data = {"question": ages(50_000_000 + place), "epsilon": EPSILON}
            status, _, took = await wire.send("/v1/ask", data)
            (refused if status == 503 else others).add(status, took)
        wire.close()

    await asyncio.gather(*(client(place) for place in range(100)))
    await asyncio.sleep(2)
    after = Wire(running.port, running.tokens["ben"])
    _, _, took = await after.send("/v1/ask", {"question": ages(99_999_999), "epsilon": EPSILON})
    after.close()
    return refused, len(refused.times) / seconds, 1000 * took


def overhead(service: Service, running: Process) -> tuple[float, float]:
    """Returns the median milliseconds of a stored answer by `survey.ask`, and over HTTP."""
    with curator.open(service.settings.catalog, analyst="ada") as survey:
        survey.ask(COUNT, EPSILON)
        direct = [timed(lambda: survey.ask(COUNT, EPSILON).as_data()) for _ in range(200)]

    async def remote() -> list[float]:
        wire, times = Wire(running.port, running.tokens["ada"]), []
        for _ in range(200):
            times.append((await wire.send("/v1/ask", {"question": COUNT, "epsilon": EPSILON}))[2])
        wire.close()
        return times

    return 1000 * statistics.median(direct), 1000 * statistics.median(asyncio.run(remote()))


def timed(call: Any) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def memory(running: Process) -> float:
    """Returns the megabytes of the largest worker."""
    from server.test_faults import children

    def resident(pid: int) -> float:
        fields = Path(f"/proc/{pid}/status").read_text().split("VmRSS:")
        return int(fields[1].split()[0]) / 1024 if len(fields) > 1 else 0.0

    return max(resident(pid) for pid in children(running.running.pid))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--connections", type=int, default=1000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dither-bench-") as name:
        folder = Path(name)
        print(f"processors {os.cpu_count()}, load {os.getloadavg()[0]:.1f}, flush {1000 * flush_time(folder):.2f} ms\n")
        print("| | reached | to reach |\n|---|---|---|")
        service = make(folder, epsilon="1000", budget="least_epsilon = 0.000001", waiting=200, waiting_each=64)
        with process(service, workers=4) as running:
            one_charge(running)
        with process(service, workers=2) as running:
            quotes, asks = asyncio.run(load(running, analysts(service, 100), given.seconds, given.connections, 100, 15))
            text = f"p50 {quotes.at(0.5):.0f}, p99 {quotes.at(0.99):.0f} ms; {quotes.errors} errors"
            show(f"{given.connections} connections, 100 quotes/s for {given.seconds:g} s", text, "p99 ≤ 150 ms, 0 errors")
            text = f"p50 {asks.at(0.5):.0f}, p99 {asks.at(0.99):.0f} ms; {asks.errors} errors"
            show("with 15 new questions/s", text, "p99 ≤ 300 ms, 0 errors")
            show("memory of a worker", f"{memory(running):.0f} MB", "≤ 250 MB")
            show("stored answers", f"{asyncio.run(peak(running, 5, 16, False)):.0f}/s", "≥ 300/s")
            show("new small questions, SQLite", f"{asyncio.run(peak(running, 5, 16, True)):.0f}/s", "≥ 60/s")
            refused, rate, later = asyncio.run(overload(running, 5))
            show("refusals when full", f"{rate:.0f}/s, p50 {refused.at(0.5):.0f} ms", "≥ 1,000/s, p50 ≤ 50 ms")
            show("a question 2 s later", f"{later:.0f} ms", "normal")
            direct, remote = overhead(service, running)
            show("overhead over survey.ask, p50", f"{remote - direct:.2f} ms ({direct:.2f} and {remote:.2f})", "≤ 1.5 ms")
            verdict = running.get("/v1/verify", "otto").json
            show(
                "the ledger after all of it",
                "nothing wrong" if verdict["ok"] else str(verdict["problems"][:3]),
                "nothing wrong",
            )
    print(f"\nload at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
