"""Many processes and threads race for what is left of the budget: exactly as many as it allows are answered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from dither.ledger import opening
from dither.ledger.verify.report import verify
from dither.privacy.filters import GRID
from ledger.asking import asked, declaration


@pytest.mark.parametrize(("processes", "threads"), [(16, 4), (1, 64)])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_exactly_as_many_are_answered_as_the_budget_allows(
    kind: str, processes: int, threads: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    where = str(tmp_path / "survey.ledger") if kind == "sqlite" else request.getfixturevalue("postgres_url")
    key = str(tmp_path / "survey.key")
    ledger = opening.create(where, key)
    ledger.register(declaration())
    for number in range(7):
        asked(ledger, number)
    command = [sys.executable, "-W", "error", str(Path(__file__).with_name("racers.py")), where, key]
    paths = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([*command, str(processes), str(threads)], capture_output=True, text=True, check=False, env=paths)
    assert (done.returncode, done.stderr) == (0, "")
    assert Counter(json.loads(done.stdout)) == {"answered": 3, "refused": processes * threads - 3}
    assert ledger.balance().sums.epsilon == GRID
    assert ledger.balance().entries == 2 + 2 * 10  # opened, declared; reserved and committed for each answer
    assert not verify(ledger.store).problems
    ledger.close()
