"""Folders for what does not fit into memory. Each goes away with its connection; those of killed processes are swept.

A folder's owner holds a lock on a file in it for as long as it lives. The operating system frees the lock when the process
ends, however it ends, and knows about it across containers that share a folder for temporary files. A folder gets the
name that is swept only once it is locked, so a sweep never meets one that is being made.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows: nothing is swept there
    fcntl = None

PREFIX = "dither-spill-"
_MAKING = "dither-making-"
_LOCK = "lock"
_ABANDONED = 3600.0  # seconds after which a folder that never got its name was given up


class Spill:
    """A folder that only this user can read, until `remove`."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        made = tempfile.mkdtemp(prefix=_MAKING)
        self._lock = os.open(os.path.join(made, _LOCK), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        if fcntl is not None:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.folder = os.path.join(os.path.dirname(made), PREFIX + os.path.basename(made).removeprefix(_MAKING))
        os.rename(made, self.folder)

    def remove(self) -> None:
        """Removes the folder. A forked child that ends must not take its parent's folder away."""
        if os.getpid() == self._owner:
            shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):
            os.close(self._lock)


def sweep() -> None:
    """Removes this user's folders whose owner is gone. Leaves alone whatever it may not or cannot judge."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith((PREFIX, _MAKING)):
                with suppress(OSError):
                    _sweep_one(entry.path, made=entry.name.startswith(PREFIX))


def _sweep_one(path: str, *, made: bool) -> None:
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        return
    if not made and time.time() - found.st_mtime < _ABANDONED:
        return
    with _opened(path, os.O_RDONLY | os.O_DIRECTORY) as folder:
        try:
            with _opened(_LOCK, os.O_RDWR, dir_fd=folder) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises where the owner is alive
                shutil.rmtree(path, ignore_errors=True)
        except FileNotFoundError:
            if not made:
                shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _opened(path: str, flags: int, **where: Any) -> Iterator[int]:
    """A descriptor; links are not followed."""
    opened = os.open(path, flags | os.O_NOFOLLOW, **where)
    try:
        yield opened
    finally:
        os.close(opened)
