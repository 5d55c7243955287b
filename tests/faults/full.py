"""Asks on a disk that is really full, for tests/faults/test_disk.py: a small one in memory, in a name space of its own.

    unshare --map-root-user --mount python full.py FOLDER      prints what became of each ask, as JSON

One page more is left free each time, until there is room for the whole ask.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import dither as dt
from faults.mortal import question
from faults.told import charged, outcome, true

PAGE = 4096


def fill(ballast: Path, free: int) -> None:
    """The disk is full but for so many pages."""
    with ballast.open("wb", buffering=0) as out:
        size = 0
        try:
            while True:
                size += out.write(bytes(PAGE))
        except OSError:
            out.truncate(max(0, size - size % PAGE - free * PAGE))


def main(folder: Path) -> dict[str, Any]:
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], check=True, capture_output=True)
    for name in ("survey.toml", "people.parquet"):
        shutil.copyfile(folder / name, disk / name)
    where, ballast = disk / "survey.ledger", disk / "ballast"
    survey = dt.open(disk / "survey.toml", where, make=True)
    survey.ask(question(0), epsilon="0.1")
    first: list[Any] = []
    second: list[Any] = []
    while not first or first[-1][1] != "answered":
        fill(ballast, len(first))
        first.append(outcome(survey, question(2 * len(first) + 1)))
        ballast.unlink()
        second.append(outcome(survey, question(2 * len(second) + 2)))
    paid, kept = charged(str(where))
    survey.ledger.close()
    texts = sorted({what for _, what, *_ in first})
    return {
        "texts": texts,
        "full": [true(each, paid, kept) for each in first],
        "after": [true(each, paid, kept) for each in second],
    }


if __name__ == "__main__":
    os.umask(0o077)
    print(json.dumps(main(Path(sys.argv[1]))))
