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
from server.serving import PROGRAM, Process, ages, make, process

HEAVY = 20_000
NOTE = 1000  # characters of each note of the person
EPSILON = "0.0001"
WITHOUT_NOISE = f"from dither.server.clock import Delay; Delay.draw = lambda self: 0; {PROGRAM}"
Question = Callable[[int], str]  # the question of this number
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


def costly(number: int, patterns: int = 12) -> str:
    """A question of its own for every number, whose time is that of the person's notes: 0.01 s of a processor per pattern."""
    looks = "".join(f" OR note LIKE '%a{part}%b'" for part in range(patterns))
    return f"SELECT COUNT(*) AS n FROM people WHERE age < {100 + number} AND (age < 0{looks})"


def costliest(number: int) -> str:
    """The same with as many patterns as one question holds."""
    return costly(number, 38)


@contextmanager
def two_servers(
    folder: Path, rows: int = HEAVY, note: int = 0, program: str = PROGRAM, **settings: Any
) -> Iterator[tuple[Process, Process]]:
    """Runs two servers: with one more person, who has so many rows, and without. `note`: adds a column of notes, which have so
    many characters in the person's rows. `program`: runs the server, or a broken one."""
    places = [folder / "present", folder / "absent"]
    for place in places:
        place.mkdir()
    services = [make(place, epsilon="1", **settings) for place in places]
    for place, count in zip(places, (rows, 0), strict=True):
        _add(place, count, note)
    with process(services[0], program=program) as present, process(services[1], program=program) as absent:
        yield present, absent


def _add(place: Path, rows: int, note: int) -> None:
    """Adds the person's rows to the table of a service, and the column of notes."""
    table = pq.read_table(place / "people.parquet")
    columns: dict[str, list[Any]] = {"person": [10**6] * rows, "ward": ["north"] * rows, "age": [i % 100 for i in range(rows)]}
    columns["income"] = [1.0] * rows
    if note:
        catalog = place / "catalog.toml"
        catalog.write_text(f'{catalog.read_text()}note = {{ kind = "text", longest = {note} }}\n', encoding="utf-8")
        table = table.append_column("note", pa.array(["x"] * table.num_rows))
        columns["note"] = ["a" * note] * rows
    pq.write_table(pa.concat_tables([table, pa.table(columns).cast(table.schema)]), place / "people.parquet")


def timer(
    server: Process,
    tick: int,
    lead: float | None = None,
    before: int = 0,
    question: Question = ages,
    earlier: Question = ages,
) -> Measure:
    """Returns a function that asks a question of its own and returns its seconds, through an open connection.

    `lead`: sends it so many seconds before a tick, to be around it. `before`: another analyst asks so many just before,
    `earlier`.
    """
    headers = {"Authorization": f"Bearer {server.tokens['ada']}", "Content-Type": "application/json"}

    def measure(number: int) -> float:
        for extra in range(before):
            asked = {"question": earlier(10_000 + number * before + extra), "epsilon": EPSILON}
            assert server.post("/v1/ask", "ben", asked, {"Prefer": "respond-async"}).status in (200, 202)
        if lead is not None:
            seconds = tick / STEPS
            time.sleep((-lead - time.monotonic()) % seconds)
        body = json.dumps({"question": question(number), "epsilon": EPSILON})
        with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=180)) as connection:
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


def shift(sides: tuple[list[float], list[float]]) -> float:
    """Returns the seconds that the person adds, from times without noise: the difference of the third quartiles."""
    present, absent = (statistics.quantiles(side, n=4)[2] for side in sides)
    return present - absent


def usual(measure: Measure, count: int, first: int) -> float:
    """Returns the median time of some questions: what an attacker learns before tuning one."""
    return statistics.median(measure(number) for number in range(first, first + count))
