"""The path of one question stays short: scripts/walk.py counts the modules and the borders between packages on it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_one_question_goes_through_few_modules_and_borders() -> None:
    done = subprocess.run([sys.executable, ROOT / "scripts" / "walk.py"], capture_output=True, text=True, check=True)
    lines = done.stdout.replace(",", "").splitlines()[1:]
    rows = {line[:16].strip(): [int(number) for number in line[16:].split()] for line in lines}
    (modules, modules_new), (borders, borders_new) = rows["modules"], rows["package borders"]
    assert 20 < modules <= 45
    assert 20 < borders <= 60
    assert modules < modules_new <= 60
    assert borders < borders_new <= 60
