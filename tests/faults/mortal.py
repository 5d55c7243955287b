"""Processes that ask and are killed, for tests/faults/test_kill.py.

    python mortal.py '{"folder": …, "where": …, "key": …, "way": "right", "instants": 40, "seed": 1, …}'

Everything is loaded once, and each life is a fork of that; the ledger and the data are opened by the fork alone. A life tells
what becomes of it in a journal: that the data was called on, and what it was given. A line is written by one call, and what
was written before a kill is there after it. After deaths the ledger is examined (inquest.py); each next life opens it, too.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import dither as dt
from dither.curator import Curator
from dither.ledger import reservations
from dither.ledger.ledger import Ledger
from dither.ledger.reservations import Reservation
from faults.inquest import PRICE, Journal, asked_again, examined
from faults.steps import announced, watch

Show = Callable[[Any], None]
reservations.YOUNG = 0  # a life is followed by the next at once, which has to see that it is dead


class Death(NamedTuple):
    """When a life ends: at the n-th step (counted from 0), or some time after it; never, if there is no step."""

    step: int | None
    after: float | None = None


class Case(NamedTuple):
    folder: str
    where: str
    key: str
    way: str = "right"
    boundaries: int = 1  # how often to go through all of them
    instants: int = 0
    seed: int = 0
    since: str = ""  # the first boundary
    until: str = ""  # the text of a problem that ends it all
    every: int = 1  # how many deaths to an examination: nothing is ever erased, so what is wrong is still there later

    def open(self) -> Curator:
        survey = dt.open(Path(self.folder) / "survey.toml", self.where, key=self.key, make=True)
        survey.reopen()  # so many deaths close the catalog
        return survey


def question(number: int) -> str:
    return f"SELECT COUNT(*) AS n FROM people WHERE age <> {number}"  # names are not part of what makes a question


# --- the right way, and wrong ones -----------------------------------------------------------------------------------


def right(survey: Curator, text: str, show: Show) -> None:
    show(survey.ask(text, epsilon=PRICE).rows)


def charged_late(survey: Curator, text: str, show: Show) -> None:
    """The twin: runs and shows the answer before the price is written."""
    held: list[Any] = []
    reserve, commit = Ledger.reserve, Ledger.commit
    setattr(Ledger, "reserve", lambda _, attempt, **_more: attempt)  # noqa: B010
    setattr(Ledger, "commit", lambda _, *late: held.extend(late))  # noqa: B010
    setattr(Reservation, "touch", lambda _: None)  # noqa: B010
    show(survey.ask(text, epsilon=PRICE).rows)
    commit(survey.ledger, reserve(survey.ledger, held[0]), held[1])  # type: ignore[arg-type]


def kept_late(survey: Curator, text: str, show: Show) -> None:
    """Charged first, but shown before it is kept."""
    held: list[Any] = []
    commit = Ledger.commit
    setattr(Ledger, "commit", lambda *late: held.extend(late))  # noqa: B010
    show(survey.ask(text, epsilon=PRICE).rows)
    commit(*held)


def given_back(survey: Curator, text: str, show: Show) -> None:
    """The twin: gives back the price of a dead process, although its rows were read."""
    reserve = Ledger.reserve

    def reserved(ledger: Ledger, attempt: Any, **more: Any) -> Any:
        held: Any = reserve(ledger, attempt, **more)
        ledger.cancel(held)
        held._settled = False
        return held

    setattr(Ledger, "reserve", reserved)  # noqa: B010
    setattr(Ledger, "commit", lambda *_: None)  # noqa: B010
    right(survey, text, show)


WAYS: dict[str, Callable[[Curator, str, Show], None]] = {
    way.__name__: way for way in (right, charged_late, kept_late, given_back)
}


# --- one life ----------------------------------------------------------------------------------------------------------


def live(case: Case, death: Death, numbers: Sequence[int], journal: Journal, ready: int) -> None:
    """Asks its questions; dies at its step, or tells `ready` there so that the parent can kill it."""
    survey, steps, text = case.open(), iter(range(10**9)), ""

    def step(name: str) -> None:
        number = next(steps)
        if death.step is None:
            journal.write("step", text, name)
        elif number == death.step and death.after is None:
            os.kill(os.getpid(), signal.SIGKILL)
        elif number == death.step:
            os.write(ready, b"!")

    def show(rows: Any) -> None:
        step("answer in hand")
        journal.write("got", text, json.loads(json.dumps(rows)))
        step("answer shown")

    def called_on(when: str) -> None:  # once for a question, whose estimates of what was left out are further runs
        if when.startswith("before") and text not in called:
            called.add(text)
            journal.write("run", text)

    called: set[str] = set()
    noting = announced(survey.steps.run, called_on, "run")
    survey.steps = replace(survey.steps, run=noting)
    watch(survey, step)
    for number in numbers:
        text = question(number)
        WAYS[case.way](survey, text, show)
    if death.after is not None:
        signal.pause()
    survey.ledger.close()


def born(work: Callable[[int], None]) -> tuple[int, int]:
    """A fork that does the work, and the end of a pipe on which it tells."""
    told, ready = os.pipe()
    child = os.fork()
    if child:
        os.close(ready)
        return child, told
    code = 1
    try:
        os.close(told)
        work(ready)
        code = 0
    except BaseException as error:
        print(f"a life ended by itself: {error!r}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def lived(case: Case, death: Death, numbers: Sequence[int], journal: Journal) -> int:
    """How a life ended: the signal as a negative number, or its exit code."""
    child, told = born(lambda ready: live(case, death, numbers, journal, ready))
    if death.after is not None and os.read(told, 1):
        time.sleep(death.after)
        os.kill(child, signal.SIGKILL)
    os.close(told)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# --- all of them -------------------------------------------------------------------------------------------------------


def deaths(case: Case, steps: Sequence[str]) -> Iterator[Death]:
    """Every boundary; then moments, most of them soon after a boundary, where single writes and syncs are going on."""
    dice = random.Random(case.seed)
    for _ in range(case.boundaries):
        yield from map(Death, range(steps.index(case.since) if case.since else 0, len(steps)))
    for _ in range(case.instants):
        yield Death(dice.randrange(len(steps)), 0.02 * dice.random() ** 3)


def main(case: Case) -> dict[str, Any]:
    """Returns the problems, the number of killed processes, and the boundaries."""
    journal, numbers = Journal(Path(case.folder) / "journal"), iter(range(10**6))
    if lived(case._replace(way="right"), Death(None), [next(numbers)], Journal(Path(case.folder) / "first")):
        return {"problems": ["the first question was not answered"]}
    if lived(case, Death(None), [next(numbers)], journal):
        return {"problems": ["the second question was not answered"]}
    steps = [line[2] for line in journal.lines() if line[0] == "step"]
    killed, (head, problems) = 0, examined(case.where, case.key, journal, None)
    for number, death in enumerate(deaths(case, steps)):
        end = lived(case, death, [next(numbers) for _ in range(1 if death.after is None else 3)], journal)
        killed += end == -signal.SIGKILL
        if end != -signal.SIGKILL:
            problems.append(f"{death} ended with {end}")
        if number % case.every == 0:
            head, found = examined(case.where, case.key, journal, head)
            problems += [f"until {death}: {each}" for each in found]
        if case.until and any(case.until in each for each in problems):
            break
    problems += examined(case.where, case.key, journal, head)[1]
    if not case.until:
        problems += asked_again(case.where, journal, case.open, born)
    return {"problems": problems, "killed": killed, "steps": steps}


if __name__ == "__main__":
    print(json.dumps(main(Case(**json.loads(sys.argv[1])))))
