"""The path of one question stays short: scripts/walk.py counts the borders between packages that it crosses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST = 60


def test_one_question_crosses_few_borders_between_packages() -> None:
    done = subprocess.run([sys.executable, ROOT / "scripts" / "walk.py"], capture_output=True, text=True, check=True)
    counted = dict(line.rsplit(maxsplit=1) for line in done.stdout.splitlines())
    assert 20 < int(counted["package borders"]) <= MOST
