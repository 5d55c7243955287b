"""New files that appear under their name whole, or not at all: a process that ends in between leaves no half of one."""

from __future__ import annotations

import os
import re
import secrets
import time
from contextlib import suppress
from pathlib import Path

STALE = 3600.0  # seconds after which nobody is still writing a draft


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


def sweep(path: Path) -> None:
    """Drafts of this file that a process left when it was killed: nobody knows them, and one of a key is a key."""
    for draft in _drafts(path):
        with suppress(OSError):
            if time.time() - draft.stat(follow_symlinks=False).st_mtime > STALE:
                os.unlink(draft.path)


def sole(path: Path) -> bool:
    """Whether a file has this one name only. The name of the draft it was made as is left behind by who was killed there,
    and is taken away."""
    found = os.stat(path)
    if found.st_nlink > 1:
        for draft in _drafts(path):
            if draft.inode() == found.st_ino:
                with suppress(OSError):
                    os.unlink(draft.path)
        found = os.stat(path)
    return found.st_nlink == 1


def _drafts(path: Path) -> list[os.DirEntry[str]]:
    left = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{16}}(-wal|-shm|-journal)?")
    with suppress(OSError), os.scandir(path.parent) as found:
        return [each for each in found if left.fullmatch(each.name)]
    return []
