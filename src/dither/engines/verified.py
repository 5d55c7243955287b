"""Remembers which checks held for which files, so that unchanged files are not read again on opening.

The user's cache folder has one empty file per check. Its name is a digest of the statement (which includes the view's text), of
each file's path, device, inode, size and times, and of the versions of dither and of the engine. So another file, another
version of it or another declaration has another name. No value of the data is in it.

If the cache folder cannot be used, the files are read again.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

MOST = 1000  # statements; the oldest are removed first
_SETTLED = 2.0  # seconds: a file changed more recently may change again without a new modification time
Stats = tuple[tuple[str, int, int, int, int, int], ...]


class Verified:
    """The checks that held in an engine, named with its version. `stats` distinguishes versions of files, by default of files
    on this machine. `folder`: by default `dither/verified` in the user's cache folder; tests pass another."""

    def __init__(self, engine: str, folder: Path | None = None, stats: Callable[[Sequence[str]], Stats] | None = None) -> None:
        self._engine = engine
        self._folder = _private(folder or _default())
        self._stats = stats or file_stats

    def holds(self, statement: str, files: Sequence[str]) -> bool:
        """Whether the statement held for these files as they are now."""
        stats = self._stats(files) if self._folder is not None else ()
        if self._folder is None or not stats:
            return False
        entry = self._folder / _digest(self._engine, statement, stats)
        with suppress(OSError):
            os.utime(entry, follow_symlinks=False)  # used now, so among the last to be removed
            return True
        return False

    def remember(self, statement: str, files: Sequence[str], before: Stats) -> None:
        """Remembers that the statement holds, if the files did not change since `before`."""
        if self._folder is None or not before or before != self._stats(files) or _recent(before):
            return
        with suppress(OSError):
            (self._folder / _digest(self._engine, statement, before)).touch(mode=0o600)
            self._forget()

    def _forget(self) -> None:
        if self._folder is None:
            return
        with os.scandir(self._folder) as entries:
            paths = [entry.path for entry in entries]
        if len(paths) > MOST:
            for path in sorted(paths, key=_changed)[: len(paths) - MOST // 2]:
                with suppress(OSError):
                    os.unlink(path)


def file_stats(files: Sequence[str]) -> Stats:
    """Returns what distinguishes versions of the files; empty if there are none or one cannot be read."""
    stats = []
    try:
        for file in files:
            logs = [f"{file}.wal"] if os.path.exists(f"{file}.wal") else []  # changes that DuckDB has not yet merged
            for path in (file, *logs):
                s = os.stat(path)
                stats.append((os.path.abspath(path), s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns))
    except OSError:
        return ()
    return tuple(stats)


def _recent(stats: Stats) -> bool:
    latest = max(max(mtime, ctime) for *_, mtime, ctime in stats)
    return time.time() - latest / 1e9 < _SETTLED


def _digest(engine: str, statement: str, stats: Stats) -> str:
    parts = ["1", _version(), engine, statement, stats]
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).hexdigest()


@functools.cache
def _version() -> str:
    try:
        return version("dither")
    except PackageNotFoundError:  # run from a source tree
        return ""


def _default() -> Path | None:
    cache = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    if cache and os.path.isabs(cache):
        return Path(cache) / "dither" / "verified"
    with suppress(RuntimeError):
        return Path.home() / ".cache" / "dither" / "verified"
    return None


def _private(folder: Path | None) -> Path | None:
    """Returns the folder if only this user can use it, and makes it if it is missing; else None: nothing is remembered."""
    if folder is None:
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = os.lstat(folder)
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return None
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o077):
        return None
    return folder


def _changed(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0.0
