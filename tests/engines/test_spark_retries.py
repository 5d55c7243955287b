"""A question whose executors are killed, or whose tasks run twice, chooses what it would have chosen, and is charged once.

Two executors run as processes of their own; one of them is killed at two points of a question. It takes minutes, so it is in
`make test-spark` and long runs only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engines.places import missing_for_spark

MINUTES = 15
pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("speculation", ["false", "true"])
def test_lost_executors_change_nothing(speculation: str, tmp_path: Path) -> None:
    if reason := missing_for_spark():
        pytest.skip(reason)
    script = Path(__file__).with_name("spark_retries.py")
    command = [sys.executable, str(script), str(tmp_path), speculation]
    environment = {**os.environ, "PYTHONPATH": str(script.parent.parent)}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=MINUTES * 60, env=environment, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    found = json.loads(ended.stdout.splitlines()[-1])
    assert found["equal"] == [True, True]
    assert found["hit"] == [True, True], "an executor was lost too late"
    assert (found["groups"], found["spent"]) == (50, "1")
    assert not found["Random"], "the twin that draws random numbers must differ"
    assert not found["TaskLocal"], "the twin whose hash depends on the task must differ"
