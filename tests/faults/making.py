"""Processes that are killed while they make a ledger, for tests/faults/test_kill.py.

    python making.py FOLDER [ADDRESS]      prints what was found wrong, and how many were killed, as JSON

Each death gets a place of its own, and then an heir who does there what the dead wanted to do.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from dither.errors import DitherError
from dither.ledger import opening
from dither.ledger.receipts import Key
from dither.ledger.verify.report import verify
from dither.workspace import make_ledger
from faults.inquest import settled
from faults.mortal import born
from faults.steps import watch_making
from ledger.asking import asked, declaration


def make(where: str, key: str) -> None:
    """Creates a ledger and registers a catalog, as `dither init` and the first question do."""
    make_ledger(where, key)
    ledger = opening.open(where, key)
    ledger.register(declaration())
    ledger.close()


def life(where: str, key: str, fatal: int) -> int:
    """How it ended: killed at the step with the number `fatal`, if there are so many."""

    def work(_: int) -> None:
        steps = itertools.count()
        watch_making(lambda _: os.kill(os.getpid(), signal.SIGKILL) if next(steps) == fatal else None)
        make(where, key)

    child, told = born(work)
    os.close(told)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def inherited(where: str, key: Path) -> list[str]:
    """Returns the problems of what a killed process left, and of the next attempt."""
    settled(where)
    problems, head = [], None
    if key.exists():
        Key.read(key)
    elif not opening.is_address(where) and Path(where).exists():
        problems.append("a ledger without its key")
    try:
        left = opening.view(where)
        report = verify(left.store)
        problems, head = [*problems, *report.problems], report.head
        left.close()
    except DitherError as error:
        if "There is no ledger" not in str(error):
            raise
    make(where, str(key))  # with the right key, or it would not open
    heir = opening.open(where, key)
    asked(heir, 1)
    report = verify(heir.store, head=head if head and not head.startswith("0:") else None)
    heir.close()
    return [*problems, *report.problems, *(["entries twice"] if report.entries != 4 else [])]


def main(folder: Path, address: str) -> dict[str, Any]:
    problems: list[str] = []
    for step in itertools.count():
        key = folder / f"{step}.key"
        where = f"{address}_{step}" if address else str(folder / f"{step}.ledger")
        end = life(where, str(key), step)
        if end != -signal.SIGKILL:
            return {"problems": problems + ([f"step {step} ended with {end}"] if end else []), "killed": step}
        try:
            problems += [f"step {step}: {each}" for each in inherited(where, key)]
        except DitherError as error:
            problems.append(f"step {step}: {error}")
    return {}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")))
