"""Processes that are killed while they rotate the key of a ledger, for tests/faults/test_kill.py.

    python rotating.py FOLDER ADDRESS WAY      prints what was found wrong, and how many were killed, as JSON

Each death gets a ledger of its own. Then an heir opens it, asks, and does what the dead wanted to do.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dither.errors import DitherError
from dither.ledger import opening, receipts, rotation
from dither.ledger.ledger import Ledger
from dither.ledger.receipts import Key
from dither.ledger.verify.report import verify
from faults.inquest import settled
from faults.mortal import born
from faults.steps import Step, around, watch_making
from ledger.asking import asked, declaration


def make(where: str, key: str) -> None:
    """Creates a ledger with an answer."""
    ledger = opening.create(where, key)
    ledger.register(declaration())
    asked(ledger, 1)
    ledger.close()


def watch(step: Step) -> None:
    """Announces every step of a rotation: each file that is written or renamed, and each statement."""
    watch_making(step)
    around(Ledger, "rotate", step)
    around(os, "link", step)
    around(os, "replace", step)
    around(os, "fsync", step)
    around(receipts.Key, "create", step)


def files_first(where: str, key: str, by: str) -> None:
    """The twin: renames the files before the ledger knows of the new key."""
    ledger = opening.open(where, key)
    new = Key.create(opening.next_key(Path(key)))
    opening.replace_key(Path(key), ledger.head().number + 1)
    ledger.rotate(new, by)


WAYS: dict[str, Callable[[str, str, str], object]] = {"right": rotation.rotate, "files first": files_first}


def life(where: str, key: str, fatal: int, way: Callable[[str, str, str], object]) -> int:
    """How it ended: killed at the step with the number `fatal`, if there are so many."""

    def work(_: int) -> None:
        steps = itertools.count()
        watch(lambda _: os.kill(os.getpid(), signal.SIGKILL) if next(steps) == fatal else None)
        way(where, key, "cora")

    child, told = born(work)
    os.close(told)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def inherited(where: str, key: Path) -> list[str]:
    """Returns the problems of what a killed process left: the ledger must open with its key file, as it is."""
    settled(where)
    first = Key.read(key).public
    heir = opening.open(where, key)
    asked(heir, 2)
    keys = heir.keys()
    report = verify(heir.store)
    heir.close()
    problems = list(report.problems)
    if Key.read(key).public != keys.in_force:
        problems.append("the key file is not the key in force")
    if len(keys.terms) > 2 or (len(keys.terms) == 1) != (first == keys.in_force and not _retired(key)):
        problems.append("rotated twice, or not as its files say")
    made = rotation.rotate(where, key, "cora")  # whether or not it was interrupted, the next one works
    again = opening.open(where, key)
    asked(again, 3)
    problems += verify(again.store, str(made.head)).problems
    if again.public_key != Key.read(key).public or Key.read(_retired(key)[-1]).public == again.public_key:
        problems.append("after the next rotation the files are wrong")
    again.close()
    return problems


def _retired(key: Path) -> list[Path]:
    return sorted(key.parent.glob(f"{key.name}.until-*"))


def main(folder: Path, address: str, way: Callable[[str, str, str], object]) -> dict[str, Any]:
    problems: list[str] = []
    for step in itertools.count():
        key = folder / f"{step}.key"
        where = f"{address}_{step}" if address else str(folder / f"{step}.ledger")
        make(where, str(key))
        end = life(where, str(key), step, way)
        if end != -signal.SIGKILL:
            return {"problems": problems + ([f"step {step} ended with {end}"] if end else []), "killed": step}
        try:
            problems += [f"step {step}: {each}" for each in inherited(where, key)]
        except DitherError as error:
            problems.append(f"step {step}: {error}")
    return {}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2], WAYS[sys.argv[3]])))
