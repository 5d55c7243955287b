"""Detects forks, which would spend, settle or answer twice; and what operating systems do not have in common about files."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from dither.errors import DitherError

# Flags of os.open. PLAIN: bytes stay as they are, and no child inherits the file. NOFOLLOW: no link is followed, if possible.
PLAIN: int = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", getattr(os, "O_NOINHERIT", 0))
NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)


def sync_folder(folder: Path) -> None:
    """Makes what happened to the names in a folder durable. Windows opens no folders, and logs names itself."""
    if os.name != "posix":
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@dataclass(frozen=True)
class Origin:
    """The process in which an object was made.

    >>> Origin().here
    True
    """

    process: int = field(default_factory=os.getpid)

    @property
    def here(self) -> bool:
        """Whether this is that process, and not a fork of it."""
        return os.getpid() == self.process

    def check(self, what: str, fix: str, error: type[DitherError] = DitherError) -> None:
        """Refuses to continue in a fork."""
        if not self.here:
            raise error(what, fix=fix)
