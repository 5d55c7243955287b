"""Files that commands write: new and whole, never in place of another unless asked, and never of the books or the data.

    files = Outputs(replace=force, protected=protected(sources, books))
    files.check({"--out": out, "--receipt": receipt})     before anything is charged
    files.write(out, content)                             after it

A file appears under its name when all of it is on the disk. `--force` replaces an output of before, and nothing that the
catalog or the ledger names: not by another spelling, a symbolic or hard link, or a descriptor (/proc/self/fd/3).

Answers and other rows as tables, CSV, JSON or Parquet: on stdout, or in a file.

Beside every noisy column of a CSV or Parquet answer stands its margin, as `n_margin`; in JSON the margins have a place of
their own.
"""

from __future__ import annotations

import csv
import glob
import io
import os
import re
import secrets
import stat
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dither.cli.screen import OutputError, harmless_json, harmless_lines, plain_table, say, show_table
from dither.errors import ArgumentError, DitherError, Fix, Interrupted, Shell, extra

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


if TYPE_CHECKING:
    from dither.answer import Answer


class Format(StrEnum):
    """How rows are written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


class Listing(StrEnum):
    """How the ledger's books are written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


class Verdict(StrEnum):
    """How a verdict is written."""

    TABLE = "table"
    JSON = "json"


Save = Callable[[bytes], None]  # writes a file whose name was checked: see outputs.py

_ENDINGS = {".csv": Format.CSV, ".json": Format.JSON, ".parquet": Format.PARQUET, ".txt": Format.TABLE, "": Format.TABLE}
Form = Annotated[Format | None, typer.Option("--format", "-f", help="How to write it. Default: as --out ends, else table.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Write the answer to this file instead of stdout.")]
Books = Annotated[Listing, typer.Option("--format", "-f", help="How to write it.")]


def chosen(form: Format | None, out: Path | None) -> Format:
    """The form that is named, or that the file's ending names; Parquet is not thrown at a terminal."""
    if form is None:
        ending = out.suffix.lower() if out is not None else ""
        if ending not in _ENDINGS:  # a table in an .xlsx would not be opened by whatever reads those
            known = " ".join(each for each in _ENDINGS if each)
            fix = Fix(f"end it in one of {known}, or name a {{form}} as well.", form=Shell("--format"))
            raise ArgumentError(f"{out} does not say how to write the answer: {ending} is not known.", fix=fix)
        form = _ENDINGS[ending]
    if form is Format.PARQUET and out is None and sys.stdout.isatty():
        raise ArgumentError(
            "Parquet is not for a terminal.", fix=Fix("add {out}, or pipe it to a program.", out=Shell("--out answer.parquet"))
        )
    return form


def drawable(plot: Path | None) -> None:
    """Refuses a picture that could not be drawn later."""
    if plot is not None and plot.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ArgumentError(f"{plot} is no name of a picture.", fix="end it in .png, .svg or .pdf.")
    if plot is not None and find_spec("matplotlib") is None:
        raise DitherError("Pictures need matplotlib, and it is not installed.", fix=extra("plots"))


@contextmanager
def kept(file: Path | None, charged: str) -> Iterator[None]:
    """A failure to write does not lose an answer: it is in the ledger, and asking again shows it. `charged` is what it cost."""
    again = "ask the same again: the kept answer is shown and costs nothing more."
    try:
        yield
        sys.stdout.flush()  # the rows come before what is said about them
    except BrokenPipeError:
        say(f"Nobody reads the answer. It is kept: asking the same again shows it and costs nothing more. Charged: {charged}.")
        raise
    except DitherError:
        raise
    except KeyboardInterrupt as stopped:
        raise Interrupted.at(stopped, f"{charged}; the answer is kept, and asking the same again shows it") from None
    except FileExistsError:  # it was not there when the question was asked
        what = f"{file} was made by somebody else meanwhile. The answer is kept."
        raise OutputError(what, fix=f"name another file and {again}", charged=charged) from None
    except OSError:
        what = f"{file or 'The output'} cannot be written. The answer is kept."
        raise OutputError(what, fix=f"make room and {again}", charged=charged) from None
    except Exception:  # a library stumbled over a number: who paid for it is told so, and not left with a trace
        what = "The answer cannot be written in this form. It is kept."
        raise OutputError(
            what, fix=Fix(f"choose another {{form}} and {again}", form=Shell("--format")), charged=charged
        ) from None


def write_answer(answer: Answer, form: Format, save: Save | None) -> None:
    """Writes the answer in the chosen form: by `save`, or to stdout."""
    if form is Format.TABLE:
        right = [_is_right(answer[name]) for name in answer.columns]
        if save is None:
            show_table(answer.columns, answer.cells(), right)
        else:
            _text(plain_table(answer.columns, answer.cells(), right), save)
    elif form is Format.JSON:
        _text(harmless_json(answer.to_json()) + "\n", save)
    elif form is Format.CSV:
        columns = answer.to_dict(margins=True)
        _text(as_csv([columns, *zip(*columns.values(), strict=True)]), save)
    else:
        _parquet(answer, save)


def as_csv(rows: Iterable[Iterable[Any]]) -> str:
    """Comma-separated text; NULL is empty.

    >>> as_csv([("ward", "n"), ("a,b", 7), (None, True)])
    'ward,n\\n"a,b",7\\n,true\\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([str(cell).lower() if isinstance(cell, bool) else cell for cell in row] for row in rows)
    return text.getvalue()


def _parquet(answer: Answer, save: Save | None) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    held = pa.BufferOutputStream()
    pq.write_table(answer.to_arrow(margins=True), held)
    content = held.getvalue().to_pybytes()
    if save is None:
        sys.stdout.buffer.write(content)
    else:
        save(content)


def _text(text: str, save: Save | None) -> None:
    if save is None:
        sys.stdout.write(harmless_lines(text) if sys.stdout.isatty() else text)
    else:
        save(text.encode("utf-8"))


def _is_right(values: Sequence[Any]) -> bool:
    return all(value is None or isinstance(value, (int, float)) for value in values)
