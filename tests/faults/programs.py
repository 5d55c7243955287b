"""Programs beside this file, run on their own: they fork, so they must not have the threads that run tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def program(name: str, *words: str, within: Sequence[str] = ()) -> dict[str, Any]:
    """What a program says. Warnings are errors there, too. `within` are the words of a command that runs it."""
    command = [*within, sys.executable, "-W", "error", str(Path(__file__).with_name(name)), *words]
    paths = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=paths)
    assert (done.returncode, done.stderr) == (0, "")
    return dict(json.loads(done.stdout))
