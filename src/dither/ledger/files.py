"""New files that appear under their name whole, or not at all: a process that ends in between leaves no half of one."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def draft_of(path: Path) -> Path:
    """Where a file is written before it gets its name: beside it, hidden, nobody else's."""
    return path.parent / f".{path.name}.{secrets.token_hex(8)}"


def publish(draft: Path, path: Path) -> None:
    """The finished file gets its name, unless the name is taken; the folder's entry is synced like the file."""
    os.link(draft, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
