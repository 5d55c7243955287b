"""A command line on a terminal of a given width, as its user sees it."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from pathlib import Path

from journey.preloaded import ROOT, command

_STYLES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def seen(folder: Path, width: int, *words: str) -> list[str]:
    """Returns the lines on the screen, without colours and trailing spaces."""
    leader, follower = pty.openpty()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DITHER_")}
    clean |= {"PYTHONPATH": str(ROOT / "src"), "TERM": "xterm", "COLUMNS": str(width), "PYTHONIOENCODING": "utf-8"}
    child = subprocess.Popen(command(*words), cwd=folder, env=clean, stdout=follower, stderr=follower)
    os.close(follower)
    shown = b""
    try:
        while part := os.read(leader, 65536):
            shown += part
    except OSError:
        pass  # how Linux says that the other end is closed
    child.wait(timeout=60)
    os.close(leader)
    lines = (line.rstrip() for line in _STYLES.sub("", shown.decode("utf-8")).splitlines())
    return [line for line in lines if "━" not in line]  # a bar shows progress on slow machines, and is erased at the end
