"""The command line in a process of its own, loaded once for all tests.

    subprocess.run(command("history"), cwd=folder, env=environment)       instead of python -m dither.cli history

A server loads the program, once for each test process, and forks for every command. The fork gets the arguments, the folder,
the environment and the open files of the caller, and ends as Python ends. `command` is a small client that waits for it.
Signals reach only the client, so tests about signals start Python itself. So do tests about starting and importing.
"""

from __future__ import annotations

import atexit
import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).with_name("preloaded_programs.py")


@functools.cache
def server() -> str:
    """The address of this process's server, which ends with it."""
    folder = tempfile.TemporaryDirectory(prefix="dither-forked-")
    address = f"{folder.name}/socket"
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("DITHER_", "COLUMNS"))}
    command, pipe = [sys.executable, str(PROGRAMS), "serve", address], subprocess.PIPE
    child = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=clean | {"PYTHONPATH": str(ROOT / "src")})

    def end() -> None:
        child.communicate()
        folder.cleanup()

    atexit.register(end)
    if child.stdout is None or child.stdout.readline() != b"ready\n":
        raise RuntimeError("the server of commands did not start")
    return address


def command(*words: str) -> list[str]:
    """A command line that runs `dither` with these words."""
    return [sys.executable, "-I", "-S", str(PROGRAMS), server(), *words]
