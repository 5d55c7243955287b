"""Processes that advance a stream and are killed, for tests/faults/test_streams.py.

    python streaming.py '{"folder": …, "way": "right"}'

Each life opens the ledger, advances the stream by one step, and shows it. It is killed at one of the boundaries between its
steps, from opening to showing. After each death the ledger is examined: it verifies, the price was charged once, and all that
was ever shown is there, unchanged. The next life goes on from what it finds.
"""

from __future__ import annotations

import datetime
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import dither as dt
from dither.curator import Curator
from dither.ledger import opening, reservations
from dither.ledger.ledger import Ledger
from dither.ledger.verify.report import verify
from dither.stream import Stream
from faults.inquest import Journal
from faults.mortal import born
from faults.steps import around, watch

READS = ("SELECT", "WITH", "PRAGMA")  # before these is after what came before
PRICE = Fraction("0.6")
START, HORIZON = datetime.date(2026, 1, 1), 400
reservations.YOUNG = 0  # a life is followed by the next at once, which has to see that it is dead


class Case(NamedTuple):
    folder: str
    way: str = "right"
    since: str = ""  # the first boundary
    every: int = 12  # how many deaths to an examination: nothing is ever erased, so what is wrong is still there later

    def open(self) -> Curator:
        visits = dt.Table(
            Path(self.folder) / "visits.parquet",
            unit="person",
            max_rows=1,
            max_groups=5,
            columns={"day": dt.between(START, START + datetime.timedelta(days=HORIZON))},
        )
        catalog = dt.Catalog(tables={"visits": visits}, budget=dt.Budget(epsilon=1))
        survey = dt.open(catalog, Path(self.folder) / "visits.ledger", make=True)
        survey.reopen()  # so many deaths close the catalog
        return survey


def stream_of(survey: Curator) -> Stream:
    return survey.stream("SELECT COUNT(*) FROM visits", by="day", horizon=HORIZON, epsilon=PRICE)


def kept_late(survey: Curator, show: Callable[[Any], None]) -> None:
    """The twin: shows the steps before they are kept."""
    held: list[Any] = []
    advance = Ledger.advance
    setattr(Ledger, "advance", lambda *late: held.extend(late))  # noqa: B010
    show(stream_of(survey).next())
    advance(*held)


def right(survey: Curator, show: Callable[[Any], None]) -> None:
    show(stream_of(survey).next())


WAYS = {way.__name__: way for way in (right, kept_late)}


def live(case: Case, death: int | None, journal: Journal) -> None:
    survey, steps = case.open(), iter(range(10**9))

    def step(name: str) -> None:
        if death is None:
            journal.write("step", "", name)
        elif next(steps) == death:
            os.kill(os.getpid(), signal.SIGKILL)

    def show(answer: Any) -> None:
        step("answer in hand")
        journal.write("got", "", [[str(key), value] for key, value, _ in answer])
        step("answer shown")

    watch(survey, step)
    around(Ledger, "advance", step)
    WAYS[case.way](survey, show)
    survey.ledger.close()


def examined(case: Case, journal: Journal) -> list[str]:
    """Returns what is wrong with the ledger, given what was shown."""
    with closing(opening.view(Path(case.folder) / "visits.ledger")) as ledger:
        report = verify(ledger.store)
    problems = [*report.problems] + (["it was charged more than once"] if report.spent["epsilon"] != PRICE else [])
    survey = case.open()
    kept = {str(key): value for key, value, _ in stream_of(survey).released()}
    survey.close()
    shown = [pair for line in journal.lines() if line[0] == "got" for pair in line[2]]
    for key, value in shown:
        if kept.get(key) != value:
            problems.append(f"step {key} was shown and is not kept")
    if len({key for key, _ in shown}) < len(shown):
        problems.append("a step was released twice")
    return problems


def lived(case: Case, death: int | None, journal: Journal) -> int:
    child, told = born(lambda ready: live(case, death, journal))
    os.close(told)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def inquest(case: Case, journal: Journal) -> list[str]:
    """Examines in a fork, so that this process never opens the ledger."""

    def tell(ready: int) -> None:
        os.write(ready, json.dumps(examined(case, journal)).encode())

    child, told = born(tell)
    with os.fdopen(told) as said:
        text = said.read()
    os.waitpid(child, 0)
    return list(json.loads(text or '["the examination failed"]'))


def main(case: Case) -> dict[str, Any]:
    first = Journal(Path(case.folder) / "first")
    lived(case._replace(way="right"), None, first)  # opens the stream
    ordinary = Journal(Path(case.folder) / "ordinary")
    if lived(case, None, ordinary):
        return {"problems": ["an ordinary life failed"]}
    steps = [line[2] for line in ordinary.lines() if line[0] == "step"]
    journal, killed, problems = Journal(Path(case.folder) / "journal"), 0, []
    first_death = steps.index(case.since) if case.since else 0
    deaths = [place for place, name in enumerate(steps) if place >= first_death and not name.endswith(READS)]
    for number, death in enumerate(deaths, start=1):
        killed += lived(case, death, journal) == -signal.SIGKILL
        if number % case.every == 0 or number == len(deaths):
            problems += [f"until killed {steps[death]}: {each}" for each in inquest(case, journal)]
        if problems:
            break
    return {"problems": problems, "killed": killed, "deaths": len(deaths), "steps": steps}


if __name__ == "__main__":
    print(json.dumps(main(Case(**json.loads(sys.argv[1])))))
