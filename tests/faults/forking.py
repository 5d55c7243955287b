"""A session that is forked while it is open, for tests/faults/test_copies.py.

python forking.py FOLDER LEDGER      prints what parent and child were told, as JSON
"""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import dither as dt
from dither.curator import Curator
from faults.told import outcome

MANY = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"


def noise(survey: Curator) -> list[Any]:
    """Four numbers that would be the same again only if their noise were."""
    return list(survey.ask(MANY, epsilon="0.01", fresh=True).rows)


def child(survey: Curator, folder: Path, where: str) -> dict[str, Any]:
    told = outcome(survey, MANY, fresh=True)
    try:
        spent = str(survey.budget.spent.epsilon)
    except dt.DitherError as error:
        return {"child": told, "own": ["", error.what], "rows": []}
    own = dt.open(folder / "survey.toml", where, key=folder / "survey.key", make=True)
    rows = noise(own)
    own.ledger.close()
    return {"child": told, "own": [spent, "answered"], "rows": rows}


def main(folder: Path, where: str) -> dict[str, Any]:
    survey = dt.open(folder / "survey.toml", where, key=folder / "survey.key", make=True)
    first = noise(survey)
    parent = [["answered", str(survey.budget.spent.epsilon)]]
    told, tell = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of forking with threads: that is what is tried here
        forked = os.fork()
    if not forked:
        signal.alarm(300)  # a child that waits for ever is ended, and seen
        os.write(tell, json.dumps(child(survey, folder, where)).encode())
        os._exit(0)
    os.close(tell)
    with os.fdopen(told, "rb") as pipe:
        found = json.loads(pipe.read() or b"{}")
    os.waitpid(forked, 0)
    second = noise(survey)
    parent.append(["answered", str(survey.budget.spent.epsilon)])
    survey.ledger.close()
    all_ = {json.dumps(rows) for rows in (first, second, found.pop("rows"))}
    return found | {"parent": parent, "noise": len(all_)}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2])))
