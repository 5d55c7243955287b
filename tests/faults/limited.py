"""Asks in processes that may not write as they should, for tests/faults/test_disk.py.

    python limited.py size FOLDER          files may be a little longer each time: every single write fails once
    python limited.py readonly FOLDER      the ledger's file, or its folder, may not be written

Prints for each ask its question, what became of it, and what its error says, as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dither as dt
from dither.curator import Curator
from faults.mortal import born, question
from faults.told import outcome

PAGE = 4096  # what SQLite writes at once
NOBODY = 65534


def in_child(work: Callable[[], Any]) -> Any:
    """Runs the work in a fork and returns its result."""
    child, told = born(lambda ready: os.write(ready, json.dumps(work()).encode()) and None)
    with os.fdopen(told, "rb") as pipe:
        found = pipe.read()
    if os.waitpid(child, 0)[1]:
        raise SystemExit(1)
    return json.loads(found)


def opened(folder: Path) -> Curator:
    return dt.open(folder / "survey.toml", folder / "survey.ledger", make=True)


def size(folder: Path, number: int, steps: int) -> list[Any]:
    """A question for which no file may be written beyond so many twentieths of the ledger; from 20 on, so many half pages
    more than the ledger has. Then one for which there is room again."""
    survey = opened(folder)
    survey.reopen()
    survey.ask(question(0), epsilon="0.1")
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    now = (folder / "survey.ledger").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (min(steps, 20) * now // 20 + max(0, steps - 20) * PAGE // 2, most))
    first = outcome(survey, question(number + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    second = outcome(survey, question(number + 2))
    survey.ledger.close()
    return [first, second]


def readonly(folder: Path, locked: str) -> list[Any]:
    """Opens a session of a user who may read the survey but not write its ledger."""
    before = opened(folder)
    before.ask(question(0), epsilon="0.1")  # so that all that is needed is loaded
    before.ledger.close()
    for path in (folder, *folder.iterdir()):
        if not os.getuid():
            os.chown(path, NOBODY, NOBODY)
    (folder / locked).chmod(0o555 if locked == "." else 0o444)
    if not os.getuid():
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    try:
        survey = opened(folder)
    except dt.DitherError as error:
        return [["opening", error.what, error.fix, error.charged, False]]
    found = [outcome(survey, question(1)), outcome(survey, question(0))]
    survey.ledger.close()
    return found


def main(way: str, folder: Path) -> list[Any]:
    if way == "readonly":
        return in_child(lambda: readonly(folder, sys.argv[3]))  # type: ignore[no-any-return]
    found = []
    for start in (0, *[20] * 9):  # the file ends elsewhere in a page each time, so reserve and commit need another one in turn
        for steps in range(start, 100):
            number = len(found)
            found += in_child(lambda number=number, steps=steps: size(folder, number, steps))
            if found[-2][1] == "answered":
                break
    return found


if __name__ == "__main__":
    print(json.dumps({"asked": main(sys.argv[1], Path(sys.argv[2]))}))
