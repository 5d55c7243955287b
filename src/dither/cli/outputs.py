"""Files that commands write: new and whole, never in place of another unless asked, and never of the books or the data.

    files = Outputs(replace=force, protected=protected(sources, books))
    files.check({"--out": out, "--receipt": receipt})     before anything is charged
    files.write(out, content)                             after it

A file appears under its name when all of it is on the disk. `--force` replaces an output of before, and nothing that the
catalog or the ledger names: not by another spelling, a symbolic or hard link, or a descriptor (/proc/self/fd/3).
"""

from __future__ import annotations

import glob
import os
import re
import secrets
import stat
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer

from dither.errors import ArgumentError, Fix, Shell

Force = Annotated[bool, typer.Option("--force", help="Replace an output file that is there already.")]

_STREAMS = {"/dev/stdout": 1, "/dev/fd/1": 1, "/proc/self/fd/1": 1, "/dev/stderr": 2, "/dev/fd/2": 2, "/proc/self/fd/2": 2}
# What SQLite and DuckDB keep beside a database, and believe when they open it.
_SQLITE, _DUCKDB = ("-journal", "-wal", "-shm"), (".wal",)
# How databases, their logs and keys begin. A file that does is never an output of ours, whichever catalog it belongs to.
_BEGINNINGS = (
    (0, b"SQLite format 3\0"),
    (0, bytes.fromhex("d9d505f920a163d7")),
    (0, bytes.fromhex("377f0682")),
    (0, bytes.fromhex("377f0683")),
    (8, b"DUCK"),
    (0, b"-----BEGIN PRIVATE KEY-----"),
)
_WITNESS = re.compile(rb"[0-9a-f]{32} [1-9][0-9]{0,17}:[0-9a-f]")  # how a file of heads begins


# --- what no output may touch -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """Protects the files of a folder whose names match a pattern, those to come included."""

    what: str
    folder: str
    pattern: str

    def covers(self, folder: str, name: str) -> bool:
        return self.folder == folder and fnmatchcase(_folded(name), _folded(self.pattern))

    def inodes(self) -> Iterator[tuple[int, int]]:
        """The files that are there, whatever else they are called."""
        with suppress(OSError), os.scandir(self.folder) as found:
            for each in found:
                if self.covers(self.folder, each.name):
                    with suppress(OSError):
                        status = os.stat(each.path)
                        yield status.st_dev, status.st_ino


@dataclass(frozen=True)
class Protected:
    """Files that no output may touch, whatever it is called."""

    rules: tuple[Rule, ...] = ()

    def name_of(self, file: Path) -> str | None:
        """What the file is, if it is protected."""
        places = [_place(file), _place(Path(os.path.realpath(file)))]
        for rule in self.rules:
            if any(rule.covers(*place) for place in places):
                return rule.what
        status = _status(file)
        if status is not None:
            inode = status.st_dev, status.st_ino
            return next((rule.what for rule in self.rules if inode in rule.inodes()), _book(file, status))
        return next((found for place in places if (found := _log(*place))), None)


def protected(sources: Mapping[str, str], books: Mapping[str, Path]) -> Protected:
    """Protects a catalog's sources and its books: the catalog file, the ledger, the key."""
    rules: list[Rule] = []
    for what, path in books.items():
        for folder, name in _places(path):
            exact = glob.escape(name)
            rules += [Rule(what, folder, exact), Rule(f"a draft of {what}", folder, f".{exact}.*")]
            rules += [Rule(f"a file of {what}", folder, exact + ending) for ending in _SQLITE]
    for table, source in sources.items():
        rules += _source_rules(f"the data of {table}", source)
    return Protected(tuple(dict.fromkeys(rules)))


def _source_rules(what: str, source: str) -> Iterator[Rule]:
    """Protects the files of a source, and those that would become part of it: a new file that its pattern matches."""
    file = source.partition("#")[0]
    for folder, name in _places(Path(file)):
        yield Rule(what, folder, glob.escape(name))
        for ending in _DUCKDB:
            yield Rule(f"a file of {what}", folder, glob.escape(name) + ending)
    pattern = os.path.join(file, "**", "*.parquet") if os.path.isdir(file) else file
    if glob.has_magic(pattern):
        for folder in glob.glob(os.path.dirname(pattern) or os.curdir, recursive=True):
            yield Rule(what, os.path.realpath(folder), os.path.basename(pattern))


def _places(path: Path) -> Iterator[tuple[str, str]]:
    """Where a file is as it is named, and where it is when links are followed."""
    yield _place(path)
    yield _place(Path(os.path.realpath(path)))


def _place(path: Path) -> tuple[str, str]:
    """The folder, links followed, and the name in it."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.realpath(folder), name


def _folded(name: str) -> str:
    """Two names that any file system takes for one are one here."""
    return unicodedata.normalize("NFKC", name).casefold()


def _log(folder: str, name: str) -> str | None:
    """A new file beside a database that the database would take for its log."""
    for ending in (*_SQLITE, *_DUCKDB):
        base = os.path.join(folder, name[: -len(ending)])
        if name.lower().endswith(ending) and os.path.isfile(base):
            return f"the log of {os.path.basename(base)}"
    return None


def _book(file: Path, status: os.stat_result) -> str | None:
    """A database, its log or a key, told by how it begins or what it is called."""
    if not stat.S_ISREG(status.st_mode):
        return None
    try:
        with open(file, "rb") as found:
            start = found.read(64)
    except OSError:
        return None  # who cannot read it is refused because of that
    if any(start[at:].startswith(text) for at, text in _BEGINNINGS):
        return "a database, its log or a key"
    if _WITNESS.match(start):
        return "a witness"
    return _log(*_place(Path(os.path.realpath(file))))


# --- outputs ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outputs:
    """Writes the files of one command. `replace`: those that are there already, too, unless they are protected."""

    replace: bool = False
    protected: Protected = Protected()

    def check(self, files: Mapping[str, Path | None]) -> None:
        """Refuses what could not be written later, by option. Call it before anything is charged."""
        named = [(option, file) for option, file in files.items() if file is not None]
        for place, (option, file) in enumerate(named):
            for earlier, other in named[:place]:
                if _same(file, other):
                    raise ArgumentError(
                        f"{option} and {earlier} are the same file, {file}.",
                        fix=Fix("name another file with {option}: one would be lost.", option=Shell(option)),
                    )
        for option, file in named:
            self._check(option, file)

    def _check(self, option: str, file: Path) -> None:
        if (what := self.protected.name_of(file)) is not None:
            raise ArgumentError(
                f"{option} names {what}, {file}.",
                fix=Fix("name another file with {option}: nothing may take its place.", option=Shell(option)),
            )
        if _stream(file) is not None:
            return
        status, folder = _status(file), Path(os.path.realpath(file)).parent
        if status is not None and _is_device(status):
            good = os.access(file, os.W_OK)
        else:
            good = folder.is_dir() and os.access(folder, os.W_OK)
            good = good and (status is None or (stat.S_ISREG(status.st_mode) and os.access(file, os.W_OK)))
            if good and not self.replace and os.path.lexists(file):
                raise ArgumentError(
                    f"{file} is there already.",
                    fix=Fix(
                        "name a new file with {option}, or add {force} to replace it.",
                        option=Shell(option),
                        force=Shell("--force"),
                    ),
                )
        if not good:
            raise ArgumentError(
                f"{file} cannot be written.", fix="name a file in a folder that is there and yours to write in."
            )

    def write(self, file: Path, content: bytes) -> None:
        """Writes a checked output. Raises OSError, FileExistsError among them if somebody was faster."""
        stream, status = _stream(file), _status(file)
        if stream is not None:
            sys.stdout.flush()
            with os.fdopen(os.dup(stream), "wb") as out:
                out.write(content)
        elif status is not None and _is_device(status):
            _into_device(file, content)
        elif self.replace and os.path.lexists(file):
            self._replaced(Path(os.path.realpath(file)), content, status)
        else:
            _publish(_draft(file.parent, content), file)

    def _replaced(self, file: Path, content: bytes, status: os.stat_result | None) -> None:
        draft = _draft(file.parent, content)
        try:
            if self.protected.name_of(file) is not None:  # it was put there since it was checked
                raise FileExistsError(file)
            if status is not None:
                os.chmod(draft, stat.S_IMODE(status.st_mode))
            os.replace(draft, file)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


def drawn(draw: Callable[[Path], object], file: Path) -> bytes:
    """The picture that `draw` saves under a path, in the form that the name of `file` ends in."""
    with tempfile.TemporaryDirectory(prefix="dither-") as folder:
        picture = Path(folder) / f"picture{file.suffix.lower()}"
        draw(picture)
        return picture.read_bytes()


def _draft(folder: Path, content: bytes) -> Path:
    """The content on the disk, under a hidden name of its own."""
    draft = folder / f".dither-{secrets.token_hex(8)}"
    try:
        with open(draft, "xb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return draft


def _publish(draft: Path, file: Path) -> None:
    """Gives a draft its name, unless the name is taken."""
    try:
        try:
            os.link(draft, file)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links: take the name first
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            os.replace(draft, file)
    finally:
        draft.unlink(missing_ok=True)


def _into_device(file: Path, content: bytes) -> None:
    """Writes to a terminal, a named pipe or /dev/null; never to a file that was put in its place."""
    number = os.open(file, os.O_WRONLY)
    with os.fdopen(number, "wb") as out:
        if not _is_device(os.fstat(number)):
            raise FileExistsError(file)
        out.write(content)


def _stream(file: Path) -> int | None:
    """The descriptor behind /dev/stdout and its other names: whatever the shell has opened there is written to."""
    return _STREAMS.get(os.path.abspath(file))


def _is_device(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) or stat.S_ISFIFO(status.st_mode)


def _status(file: Path) -> os.stat_result | None:
    """The file behind a name, links followed; None where there is none yet."""
    try:
        return os.stat(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):  # a link that leads to itself, a name that no file can have
        raise ArgumentError(f"{file} cannot be written.", fix="name a file in a folder that is there.") from None


def _same(one: Path, other: Path) -> bool:
    if os.path.realpath(one) == os.path.realpath(other) or _place(one) == _place(other):
        return True
    first, second = _status(one), _status(other)
    return first is not None and second is not None and os.path.samestat(first, second)
