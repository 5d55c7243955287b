"""The path of one question stays short: scripts/walk.py counts the modules and the borders between packages on it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_one_question_goes_through_few_modules_and_borders() -> None:
    done = subprocess.run([sys.executable, ROOT / "scripts" / "walk.py"], capture_output=True, text=True, check=True)
    rows = dict(line.replace(",", "").rsplit(maxsplit=1) for line in done.stdout.splitlines())
    assert 20 < int(rows["modules"]) <= 65
    assert 20 < int(rows["package borders"]) <= 60
    assert int(rows["modules"]) < int(rows["modules with estimate"]) <= 70
    assert int(rows["package borders with estimate"]) <= 2.5 * int(rows["package borders"])
