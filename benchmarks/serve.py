"""Measures `dither serve` on loopback: one charge, latency under load, peaks, refusals when it is full, overhead.

    python benchmarks/serve.py                    about two minutes
    python benchmarks/serve.py --seconds 60       the full load
    python benchmarks/serve.py peak overload      some parts only

The client runs on the same machine and takes its share of the processors. Stored answers and refusals are asked for by `wrk`
(serve.lua), if it is installed: a client in Python is busy itself at 1,000 requests a second, and asks for the rest. Use a
quiet machine: the load is printed. All results stand in one table at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from dither import curator
from dither.ledger import opening
from dither.ledger.verify.report import verify
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


TABLE: list[tuple[str, str, str, str]] = []


def show(what: str, reached: str, aim: str, met: bool | None = None) -> None:
    """Adds a line to the table, and prints it at once: whoever waits sees how far it is."""
    TABLE.append((what, reached, aim, "" if met is None else "yes" if met else "**no**"))
    print(f"{what}: {reached} (aim {aim})", flush=True)


def print_table() -> None:
    print("\n| | reached | aim | met |\n|---|---|---|---|")
    for line in TABLE:
        print(f"| {' | '.join(line)} |")


@dataclass(frozen=True)
class Counted:
    """What wrk counted."""

    seconds: float
    answered: int
    busy: int
    other: int
    p50: float
    p99: float


def wrk(running: Process, token: str, connections: int, seconds: float, data: dict[str, Any]) -> Counted:
    """Sends a question again and again with wrk. PLACE in it becomes one of 40 numbers."""
    script, address = Path(__file__).with_name("serve.lua"), f"http://127.0.0.1:{running.port}"
    options = ["-t1", f"-c{connections}", f"-d{seconds:g}s", "-s", str(script), address, "--", token, "/v1/ask"]
    done = subprocess.run(["wrk", *options, json.dumps(data)], capture_output=True, text=True, check=True)
    return Counted(**json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{"))))


def has_wrk() -> bool:
    return shutil.which("wrk") is not None


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
        charged == answers == 1,
    )


def analysts(service: Service, number: int) -> list[str]:
    """Returns the tokens of new analysts."""
    with service.accounts() as accounts:
        names = [accounts.add(f"analyst {place}", "analyst") for place in range(number)]
        return [accounts.make_token(name)[1] for name in names]


async def load(
    running: Process, tokens: list[str], seconds: float, open_: int, quotes: float, asks: float
) -> tuple[Tally, Tally]:
    """Sends quotes and new questions at a fixed rate, over many open connections in turn.

    Of five quotes one is of a question that nobody has asked about before; the others repeat one of 100, as dashboards and
    people who type do. Each question that is asked is a new one.
    """
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
            new = place == 1 or number % 5 == 0
            question = ages(10_000 + 1_000_000 * (1 - place) + number) if new else ages(number % 125)
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


async def overload(running: Process, other: str, seconds: float) -> tuple[float, float, int, float]:
    """Fills the line with new questions of one person, and sends those of another, over 40 connections at once. Returns
    refusals in a second, their median (with wrk that of all responses, nearly all of which are refusals), how many answers
    came in between, and how long a question takes two seconds later."""
    end, refused, answered = time.perf_counter() + seconds, Tally(), [0]

    async def filler(place: int) -> None:
        wire, number = Wire(running.port, running.tokens["ada"]), 0
        while time.perf_counter() < end:
            number += 1
            data = {"question": ages(20_000_000 + 10_000 * place + number), "epsilon": EPSILON}
            if (await wire.send("/v1/ask", data))[0] == 503:
                await asyncio.sleep(0.2)
        wire.close()

    async def client(place: int) -> None:
        wire = Wire(running.port, other)
        while time.perf_counter() < end:
            data = {"question": ages(50_000_000 + place), "epsilon": EPSILON}
            status, _, took = await wire.send("/v1/ask", data)
            if status == 503:
                refused.add(status, took)
            answered[0] += status == 200
        wire.close()

    full = [asyncio.create_task(filler(place)) for place in range(80)]
    await asyncio.sleep(1)
    start = time.perf_counter()
    if has_wrk():
        data = {"question": ages(50_000_000).replace("50000100", "500001PLACE"), "epsilon": EPSILON}
        counted = await asyncio.to_thread(wrk, running, other, 40, seconds - 1, data)
        rate, middle, answered[0] = counted.busy / counted.seconds, counted.p50, counted.answered
        await asyncio.gather(*full)
    else:
        await asyncio.gather(*full, *(client(place) for place in range(40)))
        rate, middle = len(refused.times) / (time.perf_counter() - start), refused.at(0.5)
    await asyncio.sleep(2)
    after = Wire(running.port, running.tokens["cora"])
    await after.send("/v1/quote", {"question": COUNT, "epsilon": EPSILON})
    _, _, took = await after.send("/v1/ask", {"question": ages(99_999_999), "epsilon": EPSILON})
    after.close()
    return rate, middle, answered[0], 1000 * took


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


def processor_time(running: Process) -> float:
    """Returns the seconds that the workers have computed."""
    from server.test_faults import children

    def used(pid: int) -> float:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    return sum(used(pid) for pid in children(running.running.pid))


def measure_load(service: Service, seconds: float, connections: int) -> None:
    with process(service, workers=2) as running:
        quotes, asks = asyncio.run(load(running, analysts(service, 100), seconds, connections, 100, 15))
        text = f"p50 {quotes.at(0.5):.0f}, p99 {quotes.at(0.99):.0f} ms; {quotes.errors} errors"
        met = quotes.at(0.99) <= 150 and not quotes.errors
        show(f"{connections} connections, 100 quotes/s for {seconds:g} s, 20 of them new", text, "p99 ≤ 150 ms, 0 errors", met)
        text = f"p50 {asks.at(0.5):.0f}, p99 {asks.at(0.99):.0f} ms; {asks.errors} errors"
        show("with 15 new questions/s", text, "p99 ≤ 300 ms, 0 errors", asks.at(0.99) <= 300 and not asks.errors)
        show("memory of a worker", f"{memory(running):.0f} MB", "≤ 250 MB", memory(running) <= 250)


def measure_peak(service: Service) -> None:
    with process(service, workers=2) as running:
        running.ask("ada", BY_WARD, EPSILON)
        for fresh, what, aim in ((False, "stored answers", 300), (True, "new small questions, SQLite", 60)):
            before, start = processor_time(running), time.perf_counter()
            if not fresh and has_wrk():
                counted = wrk(running, running.tokens["ada"], 16, 8, {"question": BY_WARD, "epsilon": EPSILON})
                rate = counted.answered / counted.seconds
            else:
                rate = asyncio.run(peak(running, 8, 16, fresh))
            each = 1000 * (processor_time(running) - before) / max(rate * (time.perf_counter() - start), 1)
            show(what, f"{rate:.0f}/s, {each:.1f} ms of processor each", f"≥ {aim}/s", rate >= aim)


def measure_overload(service: Service) -> None:
    with service.accounts() as accounts:
        other = accounts.make_token(accounts.add("other", "analyst"))[1]
    with process(service, workers=2, waiting=20, waiting_each=20) as running:
        rate, middle, answered, later = asyncio.run(overload(running, other, 8))
        text = f"{rate:.0f}/s, p50 {middle:.0f} ms"
        show("refusals when full", text, "≥ 1,000/s, p50 ≤ 50 ms", rate >= 1000 and middle <= 50)
        show("a new question 2 s later", f"{later:.0f} ms", "normal")
        rows = running.get("/v1/history?limit=500", token=other).json["questions"]
        cut = 40 if has_wrk() else 0  # wrk ends in the middle: answers that it does not wait for
        charged = max(sum(row["answer"] is None for row in rows), len(rows) - answered - cut)
        show("charged for refusals", f"{charged} questions; {len(rows)} were answered", "nothing", charged <= 0)


def measure_overhead(service: Service) -> None:
    with process(service, workers=2) as running:
        direct, remote = overhead(service, running)
        text = f"{remote - direct:.2f} ms ({direct:.2f} and {remote:.2f})"
        show("overhead over survey.ask, p50", text, "≤ 1.5 ms", remote - direct <= 1.5)


def measure_typing(service: Service) -> None:
    """Types a question in a real browser and takes the time from the end of the pause to the quote on the page."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        show("a quote while typing, in a browser", "not measured: no Chromium, or no Playwright", "≤ 200 ms after the pause")
        return
    with process(service, workers=2) as running, sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"]).new_page()
        page.set_default_timeout(60_000)
        with service.accounts() as accounts:
            page.goto(f"http://127.0.0.1:{running.port}/login#{accounts.make_code('ada')}")
        page.wait_for_url("**/")
        page.wait_for_selector("#quote .price")
        times = []
        for number in range(30):
            page.click(".cm-content")
            page.keyboard.press("Control+A")
            page.evaluate("delete document.getElementById('quote').dataset.milliseconds")
            page.keyboard.insert_text(ages(70_000_000 + number))
            page.wait_for_selector("#quote[data-milliseconds]")
            times.append(int(page.get_attribute("#quote", "data-milliseconds") or 0))
        times.sort()
        text = f"p50 {times[len(times) // 2]}, largest {times[-1]} ms of {len(times)}"
        show("a quote while typing, in a browser", text, "≤ 200 ms after the pause", times[-1] <= 200)


def measure_one_charge(service: Service) -> None:
    with process(service, workers=4) as running:
        one_charge(running)


PARTS = ("one", "load", "peak", "overload", "overhead", "typing")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"some of: {', '.join(PARTS)}; by default all")
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--connections", type=int, default=1000)
    given = parser.parse_args()
    parts = given.parts or PARTS
    with tempfile.TemporaryDirectory(prefix="dither-bench-") as name:
        folder = Path(name)
        client = "wrk, and one Python process" if has_wrk() else "one Python process"
        flush = f"flush {1000 * flush_time(folder):.2f} ms"
        print(f"processors {os.cpu_count()}, load {os.getloadavg()[0]:.1f}, {flush}, client: {client}\n")
        service = make(folder, epsilon="1000", budget="least_epsilon = 0.000001", waiting=200, waiting_each=64)
        measures: dict[str, Callable[[], None]] = {
            "one": lambda: measure_one_charge(service),
            "load": lambda: measure_load(service, given.seconds, given.connections),
            "peak": lambda: measure_peak(service),
            "overload": lambda: measure_overload(service),
            "overhead": lambda: measure_overhead(service),
            "typing": lambda: measure_typing(service),
        }
        for part in PARTS:
            if part in parts:
                measures[part]()
        with closing(opening.open_readonly(str(service.ledger))) as store:
            report = verify(store)
        found = "nothing wrong" if not report.problems else str(report.problems[:3])
        show("the ledger after all of it", found, "nothing wrong", not report.problems)
    print_table()
    print(f"\nload at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
