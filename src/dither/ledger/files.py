"""Writes new files atomically: a file appears under its name complete, or not at all."""

from __future__ import annotations

import os
import re
import secrets
import time
from contextlib import suppress
from pathlib import Path

from dither.process import sync_folder

STALE = 3600.0  # seconds; an older draft was left by a killed process


def draft_of(path: Path) -> Path:
    """Returns the path a file is written to before it gets its name: hidden, unique, in the same folder."""
    return path.parent / f".{path.name}.{secrets.token_hex(8)}"


def publish(draft: Path, path: Path) -> None:
    """Gives a finished draft its name and syncs the folder. Raises FileExistsError if the name is taken."""
    os.link(draft, path)
    sync_folder(path.parent)


def remove_stale_drafts(path: Path) -> None:
    """Removes stale drafts of this file. A draft of a key file contains a key."""
    for draft in _drafts(path):
        with suppress(OSError):
            if time.time() - draft.stat(follow_symlinks=False).st_mtime > STALE:
                os.unlink(draft.path)


def has_one_name(path: Path) -> bool:
    """Returns whether a file has only this name. Removes the name of its draft, which a process killed in `publish` leaves."""
    status = os.stat(path)
    if status.st_nlink > 1:
        for draft in _drafts(path):
            if draft.inode() == status.st_ino:
                with suppress(OSError):
                    os.unlink(draft.path)
        status = os.stat(path)
    return status.st_nlink == 1


def _drafts(path: Path) -> list[os.DirEntry[str]]:
    pattern = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{16}}(-wal|-shm|-journal)?")
    with suppress(OSError), os.scandir(path.parent) as files:
        return [file for file in files if pattern.fullmatch(file.name)]
    return []
