"""Asks from many processes and threads at once, for tests/ledger/test_race.py.

    python racers.py LEDGER KEY PROCESSES THREADS       prints what became of each ask, as JSON

A program of its own, so that it can fork before it has threads.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import threading
from typing import Any

from dither.errors import BudgetError, LedgerError
from dither.ledger import opening
from dither.ledger.stores import postgres  # noqa: F401 - the driver is loaded here, not by each process
from ledger.asking import asked


def race(where: str, key: str, process: int, threads: int, ready: Any, done: Any) -> None:
    """All threads of one process share one ledger object; all of all processes start together."""
    ledger = opening.open(where, key)

    def ask(thread: int) -> None:
        ready.wait()
        try:
            asked(ledger, f"{process}/{thread}", analyst=f"analyst {process}")
            done.put("answered")
        except BudgetError:
            done.put("refused")
        except LedgerError as error:
            done.put(error.what)

    running = [threading.Thread(target=ask, args=(number,)) for number in range(threads)]
    for each in running:
        each.start()
    for each in running:
        each.join()
    ledger.close()


def main(where: str, key: str, processes: int, threads: int) -> list[str]:
    fork = multiprocessing.get_context("fork")
    ready, done = fork.Barrier(processes * threads), fork.SimpleQueue()
    running = [fork.Process(target=race, args=(where, key, number, threads, ready, done)) for number in range(processes)]
    for each in running:
        each.start()
    outcomes = [done.get() for _ in range(processes * threads)]
    for each in running:
        each.join()
    return outcomes


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
