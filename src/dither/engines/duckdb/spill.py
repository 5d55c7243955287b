"""Makes folders for data that does not fit into memory, and removes those that killed processes left.

A folder is removed with its connection. Its owner holds a lock on a file in it. The operating system frees the lock when the
process ends, however it ends, and shares it across containers that share the temporary folder. A folder gets the name that
`sweep` looks for only after it is locked, so a sweep never removes one that is being made.
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
_ABANDONED = 3600.0  # seconds after which a folder that never got its final name counts as abandoned


class Spill:
    """A folder that only this user can read."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        path = tempfile.mkdtemp(prefix=_MAKING)
        self._lock = os.open(os.path.join(path, _LOCK), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        if fcntl is not None:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.folder = os.path.join(os.path.dirname(path), PREFIX + os.path.basename(path).removeprefix(_MAKING))
        os.rename(path, self.folder)

    def remove(self) -> None:
        """Removes the folder, except in a forked child: it belongs to the parent."""
        if os.getpid() == self._owner:
            shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):
            os.close(self._lock)


def sweep() -> None:
    """Removes this user's folders whose owner is gone. Leaves every folder that it cannot check."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith((PREFIX, _MAKING)):
                with suppress(OSError):
                    _sweep_one(entry.path, locked_before=entry.name.startswith(PREFIX))


def _sweep_one(path: str, *, locked_before: bool) -> None:
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return
    if not locked_before and time.time() - status.st_mtime < _ABANDONED:
        return
    with _opened(path, os.O_RDONLY | os.O_DIRECTORY) as folder:
        try:
            with _opened(_LOCK, os.O_RDWR, dir_fd=folder) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises where the owner is alive
                shutil.rmtree(path, ignore_errors=True)
        except FileNotFoundError:
            if not locked_before:
                shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _opened(path: str, flags: int, **where: Any) -> Iterator[int]:
    """Opens a file descriptor inside the block, without following links."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW, **where)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
