"""Guesses by the clock whether a person is in the data: the times of paid answers with and without them, and a limit."""

from __future__ import annotations

import http.client
import json
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dither.audit.blackbox.confidence import bounds
from dither.server.clock import STEPS, Delay
from server.serving import Process, ages, make, process

HEAVY = 20_000
EPSILON = "0.0001"
Measure = Callable[[int], float]  # the time of the question of this number


def limit(delay: Delay) -> float:
    """The most that anyone gains by the time of one answer: tanh(ε_t / 2), and δ_t."""
    return math.tanh(float(delay.epsilon) / 2) + float(delay.delta)


def advantage(present: Sequence[float], absent: Sequence[float], error: float) -> tuple[float, float]:
    """Returns the advantage of the best threshold, chosen on the first half and counted on the second; and its lower limit."""
    half = len(present) // 2
    learn, judge = (present[:half], absent[:half]), (present[half:], absent[half:])
    candidates = [(at, side) for at in sorted({*learn[0], *learn[1]}) for side in (True, False)]
    at, side = max(candidates, key=lambda each: _gain(learn, *each))
    seen, other = (sum((value >= at) is side for value in values) for values in judge)
    return _gain(judge, at, side), bounds((seen, len(judge[0])), (other, len(judge[1])), 0.0, error)[1]


def _gain(sides: tuple[Sequence[float], Sequence[float]], at: float, side: bool) -> float:
    shares = [sum((value >= at) is side for value in values) / len(values) for values in sides]
    return shares[0] - shares[1]


# --- time that a test sets ----------------------------------------------------------------------------------------


@dataclass
class Virtual:
    """A clock that moves only when somebody sleeps or computes, in place of the module `time`. In nanoseconds."""

    now: int = 10**12

    def monotonic_ns(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(1, round(seconds * 1e9))


# --- two servers ----------------------------------------------------------------------------------------------------


@contextmanager
def two_servers(folder: Path, rows: int = HEAVY, **settings: Any) -> Iterator[tuple[Process, Process]]:
    """Runs two servers: with one more person, who has so many rows, and without."""
    places = [folder / "present", folder / "absent"]
    for place in places:
        place.mkdir()
    services = [make(place, epsilon="1", **settings) for place in places]
    table = pq.read_table(places[0] / "people.parquet")
    columns = {"person": [10**6] * rows, "ward": ["north"] * rows, "age": [i % 100 for i in range(rows)]}
    more = pa.table(columns | {"income": [1.0] * rows}).cast(table.schema)
    pq.write_table(pa.concat_tables([table, more]), places[0] / "people.parquet")
    with process(services[0]) as present, process(services[1]) as absent:
        yield present, absent


def timer(server: Process, tick: int, lead: float | None = None, before: int = 0) -> Measure:
    """Returns a function that asks a question of its own and returns its seconds, through an open connection.

    `lead`: sends it so many seconds before a tick, to be around it. `before`: so many other questions are asked just before.
    """
    headers = {"Authorization": f"Bearer {server.tokens['ada']}", "Content-Type": "application/json"}

    def measure(number: int) -> float:
        for extra in range(before):
            path = {"question": ages(10_000 + number * before + extra), "epsilon": EPSILON}
            server.post("/v1/ask", "ben", path, {"Prefer": "respond-async"})
        if lead is not None:
            seconds = tick / STEPS
            time.sleep((-lead - time.monotonic()) % seconds)
        body = json.dumps({"question": ages(number), "epsilon": EPSILON})
        with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
            connection.connect()
            begun = time.monotonic()
            connection.request("POST", "/v1/ask", body, headers)
            response = connection.getresponse()
            response.read()
            assert response.status == 200, response.status
            return time.monotonic() - begun

    return measure


def both(present: Measure, absent: Measure, count: int, first: int = 0) -> tuple[list[float], list[float]]:
    """Measures so many questions on each side, by turns."""
    found: tuple[list[float], list[float]] = [], []
    for number in range(first, first + count):
        order = (0, 1) if number % 2 else (1, 0)
        for side in order:
            found[side].append((present, absent)[side](number))
    return found


def at_once(present: Measure, absent: Measure, count: int, first: int = 0) -> tuple[list[float], list[float]]:
    """Measures both sides at the same time, which takes half as long where answers mostly wait."""
    with ThreadPoolExecutor(2) as pool:
        sides = [pool.submit(lambda ask: [ask(n) for n in range(first, first + count)], each) for each in (present, absent)]
        return sides[0].result(), sides[1].result()


def usual(measure: Measure, count: int, first: int) -> float:
    """Returns the median time of some questions: what an attacker learns before tuning one."""
    return statistics.median(measure(number) for number in range(first, first + count))
