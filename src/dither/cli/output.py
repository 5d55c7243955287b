"""Writes output files and formats: tables, CSV, JSON, Parquet, Markdown, LaTeX and Excel, to stdout or to a file.

    files = Outputs(replace=force, protected=protected(sources, books))
    files.check({"--out": out, "--receipt": receipt})     before anything is charged
    files.write(out, content)                             after it

A file appears under its name once all of it is on the disk. `--force` replaces an earlier output, but never the catalog, the
ledger's files or the data: not by another spelling, a symbolic or hard link, or a descriptor (/proc/self/fd/3).

In CSV and Parquet, a noisy column `n` is followed by its margin, `n_margin`; in JSON the margins have their own field.
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

from dither.cli.screen import OutputError, escape_json, escape_lines, note, plain_table, show_table
from dither.errors import ArgumentError, DitherError, Fix, Interrupted, Shell, extra

Force = Annotated[bool, typer.Option("--force", help="Replace existing output files.")]

_STREAMS = {"/dev/stdout": 1, "/dev/fd/1": 1, "/proc/self/fd/1": 1, "/dev/stderr": 2, "/dev/fd/2": 2, "/proc/self/fd/2": 2}
# Files that SQLite and DuckDB create beside a database, and apply when they open it.
_SQLITE, _DUCKDB = ("-journal", "-wal", "-shm"), (".wal",)
# The first bytes of databases, their logs and keys. Such a file is never replaced, whichever catalog it belongs to.
_BEGINNINGS = (
    (0, b"SQLite format 3\0"),
    (0, bytes.fromhex("d9d505f920a163d7")),
    (0, bytes.fromhex("377f0682")),
    (0, bytes.fromhex("377f0683")),
    (8, b"DUCK"),
    (0, b"-----BEGIN PRIVATE KEY-----"),
)
_WITNESS = re.compile(rb"[0-9a-f]{32} [1-9][0-9]{0,17}:[0-9a-f]")  # the start of a file of heads


# --- protected files --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """Protects the files of a folder whose names match a pattern, future ones included."""

    what: str
    folder: str
    pattern: str

    def covers(self, folder: str, name: str) -> bool:
        return self.folder == folder and fnmatchcase(_folded(name), _folded(self.pattern))

    def inodes(self) -> Iterator[tuple[int, int]]:
        """Yields device and inode of the existing files, to recognise them under other names."""
        with suppress(OSError), os.scandir(self.folder) as found:
            for each in found:
                if self.covers(self.folder, each.name):
                    with suppress(OSError):
                        status = os.stat(each.path)
                        yield status.st_dev, status.st_ino


@dataclass(frozen=True)
class Protected:
    """Files that no output may replace, under any name."""

    rules: tuple[Rule, ...] = ()

    def name_of(self, file: Path) -> str | None:
        """Returns what the file is if it is protected, or None."""
        places = [_place(file), _place(Path(os.path.realpath(file)))]
        for rule in self.rules:
            if any(rule.covers(*place) for place in places):
                return rule.what
        status = _status(file)
        if status is not None:
            inode = status.st_dev, status.st_ino
            return next((rule.what for rule in self.rules if inode in rule.inodes()), _protected_kind(file, status))
        return next((found for place in places if (found := _log(*place))), None)


def protected(sources: Mapping[str, str], books: Mapping[str, Path]) -> Protected:
    """Protects a catalog's sources, and the catalog file, the ledger and the key (`books`)."""
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
    """Protects the files of a source, and new files that its pattern would match."""
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
    """Yields the place of a file as named, and with links resolved."""
    yield _place(path)
    yield _place(Path(os.path.realpath(path)))


def _place(path: Path) -> tuple[str, str]:
    """Returns the folder, with links resolved, and the name in it."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.realpath(folder), name


def _folded(name: str) -> str:
    """Folds a name, so that two names that some file system takes for one are equal."""
    return unicodedata.normalize("NFKC", name).casefold()


def _log(folder: str, name: str) -> str | None:
    """Returns what the file would be, if a database beside it would take it for its log."""
    for ending in (*_SQLITE, *_DUCKDB):
        base = os.path.join(folder, name[: -len(ending)])
        if name.lower().endswith(ending) and os.path.isfile(base):
            return f"the log of {os.path.basename(base)}"
    return None


def _protected_kind(file: Path, status: os.stat_result) -> str | None:
    """Returns what the file is, if its first bytes or its name show a database, its log, a key or a witness."""
    if not stat.S_ISREG(status.st_mode):
        return None
    try:
        with open(file, "rb") as found:
            start = found.read(64)
    except OSError:
        return None  # refused later, because it cannot be read
    if any(start[at:].startswith(text) for at, text in _BEGINNINGS):
        return "a database, its log or a key"
    if _WITNESS.match(start):
        return "a witness"
    return _log(*_place(Path(os.path.realpath(file))))


# --- outputs ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outputs:
    """Writes the output files of one command. `replace`: also replaces existing files that are not protected."""

    replace: bool = False
    protected: Protected = Protected()

    def check(self, files: Mapping[str, Path | None]) -> None:
        """Refuses files that could not be written later. Call it before anything is charged."""
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
        """Writes a checked output. Raises OSError; FileExistsError if the file was created meanwhile."""
        stream, status = _stream(file), _status(file)
        if stream is not None:
            sys.stdout.flush()
            with os.fdopen(os.dup(stream), "wb") as out:
                out.write(content)
        elif status is not None and _is_device(status):
            _into_device(file, content)
        elif self.replace and os.path.lexists(file):
            self._replace(Path(os.path.realpath(file)), content, status)
        else:
            _publish(_draft(file.parent, content), file)

    def _replace(self, file: Path, content: bytes, status: os.stat_result | None) -> None:
        draft = _draft(file.parent, content)
        try:
            if self.protected.name_of(file) is not None:  # it appeared after the check
                raise FileExistsError(file)
            if status is not None:
                os.chmod(draft, stat.S_IMODE(status.st_mode))
            os.replace(draft, file)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


def draw_bytes(draw: Callable[[Path], object], file: Path) -> bytes:
    """Returns the picture that `draw` saves, in the format of the suffix of `file`."""
    with tempfile.TemporaryDirectory(prefix="dither-") as folder:
        picture = Path(folder) / f"picture{file.suffix.lower()}"
        draw(picture)
        return picture.read_bytes()


def _draft(folder: Path, content: bytes) -> Path:
    """Writes and syncs the content under a hidden, unique name. Returns the path."""
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
        except OSError:  # no hard links on this file system: reserve the name first
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            os.replace(draft, file)
    finally:
        draft.unlink(missing_ok=True)


def _into_device(file: Path, content: bytes) -> None:
    """Writes to a terminal, a named pipe or /dev/null; never to a file that replaced it."""
    number = os.open(file, os.O_WRONLY)
    with os.fdopen(number, "wb") as out:
        if not _is_device(os.fstat(number)):
            raise FileExistsError(file)
        out.write(content)


def _stream(file: Path) -> int | None:
    """Returns the descriptor behind /dev/stdout and similar names, or None."""
    return _STREAMS.get(os.path.abspath(file))


def _is_device(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) or stat.S_ISFIFO(status.st_mode)


def _status(file: Path) -> os.stat_result | None:
    """Returns the status of the file behind a name, with links resolved; None if there is none."""
    try:
        return os.stat(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):  # a link to itself, or an invalid name
        raise ArgumentError(f"{file} cannot be written.", fix="name a file in a folder that is there.") from None


def _same(one: Path, other: Path) -> bool:
    if os.path.realpath(one) == os.path.realpath(other) or _place(one) == _place(other):
        return True
    first, second = _status(one), _status(other)
    return first is not None and second is not None and os.path.samestat(first, second)


if TYPE_CHECKING:
    from dither.answer import Answer
    from dither.answers import Answers


class Format(StrEnum):
    """The format of an answer."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    MARKDOWN = "markdown"
    LATEX = "latex"
    EXCEL = "excel"


class Listing(StrEnum):
    """The format of a listing from the ledger."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


class Verdict(StrEnum):
    """The format of a verdict."""

    TABLE = "table"
    JSON = "json"


Save = Callable[[bytes], None]  # writes a file whose name was checked

_ENDINGS = {".csv": Format.CSV, ".json": Format.JSON, ".parquet": Format.PARQUET, ".txt": Format.TABLE, "": Format.TABLE}
_ENDINGS |= {".md": Format.MARKDOWN, ".tex": Format.LATEX, ".xlsx": Format.EXCEL}
_BINARY = {Format.PARQUET: ("Parquet", ".parquet"), Format.EXCEL: ("An Excel file", ".xlsx")}
Form = Annotated[
    Format | None, typer.Option("--format", "-f", help="Output format. Default: by the suffix of --out, or table.")
]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Write the answer to this file instead of stdout.")]
ListingFormat = Annotated[Listing, typer.Option("--format", "-f", help="Output format.")]


def choose_format(form: Format | None, out: Path | None) -> Format:
    """Returns the named format, or that of the file's suffix. Refuses Parquet and Excel on a terminal, and Excel without its
    library."""
    if form is None:
        ending = out.suffix.lower() if out is not None else ""
        if ending not in _ENDINGS:  # no program could open a table in an .ods
            known = " ".join(each for each in _ENDINGS if each)
            fix = Fix(f"end it in one of {known}, or name a {{form}} as well.", form=Shell("--format"))
            raise ArgumentError(f"{out} does not say how to write the answer: {ending} is not known.", fix=fix)
        form = _ENDINGS[ending]
    if form in _BINARY and out is None and sys.stdout.isatty():
        what, ending = _BINARY[form]
        raise ArgumentError(
            f"{what} is not for a terminal.", fix=Fix("add {out}, or pipe it to a program.", out=Shell(f"--out answer{ending}"))
        )
    if form is Format.EXCEL and find_spec("xlsxwriter") is None:
        raise DitherError("Excel files need xlsxwriter, and it is not installed.", fix=extra("excel"))
    return form


def check_drawable(plot: Path | None) -> None:
    """Refuses a picture that could not be drawn later."""
    if plot is not None and plot.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ArgumentError(f"{plot} is no name of a picture.", fix="end it in .png, .svg or .pdf.")
    if plot is not None and find_spec("matplotlib") is None:
        raise DitherError("Pictures need matplotlib, and it is not installed.", fix=extra("plots"))


@contextmanager
def reporting_charge(file: Path | None, charged: str) -> Iterator[None]:
    """Reports failures to write an answer that was charged. The ledger has the answer, so asking again shows it for free."""
    again = "ask the same again: the kept answer is shown and costs nothing more."
    try:
        yield
        sys.stdout.flush()  # print the rows before the notes about them
    except BrokenPipeError:
        note(f"The reader of the output is gone. The answer is kept: asking again shows it for free. Charged: {charged}.")
        raise
    except DitherError:
        raise
    except KeyboardInterrupt as stopped:
        raise Interrupted.at(stopped, f"{charged}; the answer is kept, and asking the same again shows it") from None
    except FileExistsError:  # it did not exist before the question was asked
        what = f"{file} was made by somebody else meanwhile. The answer is kept."
        raise OutputError(what, fix=f"name another file and {again}", charged=charged) from None
    except OSError:
        what = f"{file or 'The output'} cannot be written. The answer is kept."
        raise OutputError(what, fix=f"make room and {again}", charged=charged) from None
    except Exception:  # a library failed on a value: report the charge, without a traceback
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
        _text(escape_json(answer.to_json()) + "\n", save)
    elif form is Format.CSV:
        columns = answer.to_dict(margins=True)
        _text(as_csv([columns, *zip(*columns.values(), strict=True)]), save)
    elif form is Format.MARKDOWN:
        _text(answer.to_markdown() + "\n", save)
    elif form is Format.LATEX:
        _text(answer.to_latex() + "\n", save)
    else:
        _bytes(answer.excel() if form is Format.EXCEL else _parquet(answer), save)


def check_list_format(form: Format, plot: Path | None) -> None:
    """Refuses a format that has place for one table only."""
    if form not in (Format.TABLE, Format.JSON) or plot is not None:
        raise ArgumentError(
            "A file of questions has several tables as its answer.",
            fix=Fix("write {form}, or ask one question.", form=Shell("--format json")),
        )


def write_answers(answers: Answer | Answers, form: Format, save: Save | None) -> None:
    """Writes one answer, or those to a list of questions: their tables with what each says below, or JSON."""
    from dither.answers import Answers

    if not isinstance(answers, Answers):
        write_answer(answers, form, save)
    elif form is Format.JSON:
        _text(escape_json(answers.to_json()) + "\n", save)
    elif save is not None:
        _text(f"{answers}\n", save)
    else:
        for answer in answers:
            write_answer(answer, form, None)
            _text(f"{answer.footer()}\n\n", None)


def as_csv(rows: Iterable[Iterable[Any]]) -> str:
    """Comma-separated text; NULL is empty.

    >>> as_csv([("ward", "n"), ("a,b", 7), (None, True)])
    'ward,n\\n"a,b",7\\n,true\\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([str(cell).lower() if isinstance(cell, bool) else cell for cell in row] for row in rows)
    return text.getvalue()


def _parquet(answer: Answer) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    held = pa.BufferOutputStream()
    pq.write_table(answer.to_arrow(margins=True), held)
    return bytes(held.getvalue().to_pybytes())


def _bytes(content: bytes, save: Save | None) -> None:
    if save is None:
        sys.stdout.buffer.write(content)
    else:
        save(content)


def _text(text: str, save: Save | None) -> None:
    if save is None:
        sys.stdout.write(escape_lines(text) if sys.stdout.isatty() else text)
    else:
        save(text.encode("utf-8"))


def _is_right(values: Sequence[Any]) -> bool:
    return all(value is None or isinstance(value, (int, float)) for value in values)
