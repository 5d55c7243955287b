"""Whole asks from many processes and threads at once, for tests/faults/test_races.py.

    python racing.py FOLDER LEDGER KEY PROCESSES THREADS [apart]      prints what became of each ask, as JSON

A program of its own, so that it can fork before it has threads. "apart" is a wrong curator: it looks whether the budget
allows the question, and charges it, in two steps.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import threading
from pathlib import Path
from typing import Any

import dither as dt
from dither.curator import Curator
from dither.ledger import rules, state
from dither.ledger.records import Request
from dither.ledger.rules import Admitted


def asks(survey: Curator, process: int, thread: int, done: Any) -> None:
    try:
        answer = survey.ask(
            f"SELECT COUNT(*) AS n FROM people WHERE age <> {100 * process + thread}", epsilon="0.1", analyst=f"a{process}"
        )
        done.put(["answered", answer.receipt.body["entry"]["number"], answer.receipt.to_json()])
    except dt.BudgetError as error:
        done.put(["refused", 0, str(error)])
    except BaseException as error:  # whatever it is, the test is to see it
        done.put([repr(error), 0, ""])


def unchecked(books: Any, request: Request, now: str) -> Admitted:
    """Charges without checking what is left."""
    terms, caps = rules.allowed_terms(books, request, request.charge)
    total, used = state.decode_sums(books.get("total")), books.used(request.analyst)
    return Admitted(terms, caps, total.plus(request.charge), "sum", used.plus(request.charge))


def race(words: list[str], process: int, ready: Any, done: Any) -> None:
    """All threads of one process share one curator; all of all processes start together."""
    try:
        _race(words, process, ready, done)
    except BaseException as error:  # or whoever waits for this process would wait for ever
        for _ in range(int(words[4])):
            done.put([repr(error), 0, ""])
        ready.abort()


def _race(words: list[str], process: int, ready: Any, done: Any) -> None:
    folder, where, key, _, threads, *apart = words
    survey = dt.open(Path(folder) / "survey.toml", where, key=key)
    if apart:
        allowed = survey.quote("SELECT COUNT(*) AS n FROM people", epsilon="0.1").refusal == ""
        rules.admit = unchecked if allowed else rules.admit

    def run(thread: int) -> None:
        ready.wait()
        asks(survey, process, thread, done)

    running = [threading.Thread(target=run, args=(number,)) for number in range(int(threads))]
    for each in running:
        each.start()
    for each in running:
        each.join()
    survey.ledger.close()


def main(words: list[str]) -> list[Any]:
    processes, threads = int(words[3]), int(words[4])
    fork = multiprocessing.get_context("fork")
    ready, done = fork.Barrier(processes * threads), fork.SimpleQueue()
    running = [fork.Process(target=race, args=(words, number, ready, done)) for number in range(processes)]
    for each in running:
        each.start()
    outcomes = [done.get() for _ in range(processes * threads)]
    for each in running:
        each.join()
    return outcomes


if __name__ == "__main__":
    print(json.dumps({"outcomes": main(sys.argv[1:])}))
