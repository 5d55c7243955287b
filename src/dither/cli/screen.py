"""Prints to stdout and stderr: text, tables, budget bars and progress, for terminals, pipes and narrow windows."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from textwrap import wrap
from types import TracebackType

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from dither.errors import DitherError

_LONG = 30  # the least width of a column of questions
_INDENT, _NARROWEST = 4, 16  # of a question in an error; narrower windows cannot show a caret in its context
_CARET = re.compile(r" {4,}\^+")


class OutputError(DitherError):
    """The output cannot be written: a full disk, a closed standard output."""

    code, exit_code = "output", 4


def replace_closed_streams() -> None:
    """Replaces closed standard streams, so that no ledger file is opened under their descriptors.

    Writing to a closed stdout still fails; text for a closed stderr is dropped.
    """
    for number, name, flags in ((0, "stdin", os.O_RDONLY), (1, "stdout", os.O_RDONLY), (2, "stderr", os.O_WRONLY)):
        if getattr(sys, name) is not None:
            continue
        found = os.open(os.devnull, flags)
        if found != number:
            os.dup2(found, number)
            os.close(found)
        mode = "r" if name == "stdin" else "w"
        setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def discard_stdout() -> None:
    """Drops what is still buffered; otherwise Python reports the error again when it exits."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def set_utf8() -> None:
    """Sets UTF-8 for pipes and files; a terminal that cannot show ε gets a question mark.

    Otherwise some locales would end in a traceback, after the question was charged.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="replace")


def out() -> Console:
    """Returns a console on stdout, for data."""
    return Console(highlight=False)


def notes() -> Console:
    """Returns a console on stderr, for everything that is not data."""
    return Console(stderr=True, highlight=False)


def print_error(text: str) -> None:
    """Prints an error to stderr. Cuts a long question around the caret below it, so that they stay aligned."""
    with suppress(OSError):  # stderr is closed, too
        console = notes()
        lines, width = escape_lines(text).split("\n"), _width(console)
        kept: list[str] = []
        for above, line in zip(["", *lines], lines, strict=False):
            if kept and _CARET.fullmatch(line):
                kept[-1:] = around(above, line, width)
            else:
                kept.append(wrap_words(line, width, "      " if line.startswith("    ") else "  "))
        console.print(Text("\n".join(kept), style="red"), soft_wrap=True)


def around(line: str, caret: str, width: int | None) -> tuple[str, str]:
    """Cuts a line and the caret below it to a width, with the marked part in the middle.

    >>> print(*around("    SELECT a, b, SUM(income) FROM people", "                     ^^^^^^", 24), sep="\\n")
        …, SUM(income) FROM…
               ^^^^^^
    """
    if width is None or width < _NARROWEST or cell_len(line) <= width:
        return line, caret
    text, room = line[_INDENT:], width - _INDENT
    start = caret.index("^") - _INDENT
    span = min(len(caret) - _INDENT - start, room - 2)  # leaves room for a … at either end
    left = max(0, min(start - (room - span) // 2, len(text) - room))
    shown = ("…" if left else text[:1]) + text[left + 1 : left + room - 1]
    shown += "…" if left + room < len(text) else text[left + room - 1 : left + room]
    return " " * _INDENT + shown, " " * (_INDENT + start - left) + "^" * span


def note(text: str, style: str = "") -> None:
    """Prints a note to stderr."""
    with suppress(OSError):
        console = notes()
        console.print(Text(wrap_words(text, _width(console)), style=style), soft_wrap=True)


def print_lines(text: str, hang: int | None = None) -> None:
    """Writes lines to stdout; escapes control characters on a terminal.

    With `hang`, long lines are wrapped there and indented by it. Without it they stay whole, to be copied."""
    if sys.stdout.isatty():
        text, width = escape_lines(text), _width(out()) if hang is not None else None
        text = "\n".join(wrap_words(line, width, " " * (hang or 0)) for line in text.split("\n"))
    sys.stdout.write(text + "\n")


def _width(console: Console) -> int | None:
    """Returns the width of a terminal; None for a pipe or a file."""
    return console.width if console.is_terminal else None


def print_head(head: str) -> None:
    """Prints the head to stderr on one line, to be copied; shortened in a narrow window."""
    room = _width(notes())
    whole = room is None or len(head) + 5 <= room
    note(
        f"head {head}" if whole else f"head {head.partition(':')[0]}:{head.partition(':')[2][:8]}…; dither verify has it whole"
    )


def wrap_words(text: str, width: int | None, hang: str = "") -> str:
    """Wraps a line between words, but never inside `ε = 0.1`, `± 3` or `95 %`: half a number is another number.

    >>> print(wrap_words("charged ε = 0.1; ± at 95 % confidence", 15, "  "))
    charged
      ε = 0.1; ± at
      95 %
      confidence
    """
    if width is None or cell_len(text) <= width:
        return text
    bound = re.sub(r" [=±] (?=[-\d?])|(?<=\d) (?=%)", lambda found: found[0].replace(" ", "\u00a0"), text)
    hang = hang if len(hang) <= width // 4 else "  "
    lines = wrap(bound, width, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\u00a0", " ")


def show_table(columns: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool], long: str = "") -> None:
    """Writes a table to stdout: drawn on a terminal, plain and never cut in a pipe. Only the `long` column is wrapped.

    In a narrow window each row becomes several lines: half a number is another number.
    """
    if not sys.stdout.isatty():
        sys.stdout.write(plain_table(columns, cells, right))
        return
    columns, cells = [escape(name) for name in columns], [[escape(text) for text in row] for row in cells]
    console, wide = out(), [max(map(cell_len, (name, *texts))) for name, *texts in zip(columns, *cells, strict=True)]
    needed = sum(min(width, _LONG) if name == long else width for name, width in zip(columns, wide, strict=True))
    if needed + 2 * len(columns) <= console.width:  # two spaces between columns, one at either end
        console.print(_drawn(columns, cells, right, long))
    elif long:
        console.print(Text(_stacked(columns, cells, long, console.width)), soft_wrap=True)
    else:
        console.print(Text(_records(columns, cells)), soft_wrap=True)


def _drawn(columns: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool], long: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name, end in zip(columns, right, strict=True):
        table.add_column(Text(name), justify="right" if end else "left", overflow="fold", no_wrap=name != long)
    for row in cells:
        table.add_row(*(Text(text) for text in row))
    return table


def _stacked(columns: Sequence[str], cells: Sequence[Sequence[str]], long: str, width: int) -> str:
    """Returns each row as its short cells, wrapped between cells, with the long cell below."""
    place, lines = list(columns).index(long), []
    for row in cells:
        lines.append("")
        for text in (text for i, text in enumerate(row) if text and i != place):
            if lines[-1] and cell_len(lines[-1]) + 2 + cell_len(text) > width:
                lines.append("    " + text)
            else:
                lines[-1] += ("  " if lines[-1] else "") + text
        if row[place]:
            lines.append(wrap_words("    " + row[place], width, "    "))
    return "\n".join(lines)


def _records(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """Returns each row as lines of a name and a value."""
    wide = max(map(cell_len, columns))
    names = [name + " " * (wide - cell_len(name)) for name in columns]
    return "\n\n".join("\n".join(f"{name}  {text}" for name, text in zip(names, row, strict=True)) for row in cells)


def escape(text: str) -> str:
    """Returns the text on one line, with control characters escaped: text from others must not control a terminal.

    >>> escape("a\\nb \\x1b[2J é")
    'a\\\\nb \\\\x1b[2J é'
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def escape_lines(text: str) -> str:
    """Escapes control characters in each line."""
    return "\n".join(map(escape, text.split("\n")))


def escape_json(text: str) -> str:
    """Escapes control characters as JSON does, so that the JSON keeps its meaning.

    >>> escape_json('{"a": "\x9b2J é"}')
    '{"a": "\\\\u009b2J é"}'
    """
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def plain_table(columns: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """Returns a table as aligned text.

    >>> print(plain_table(["ward", "n"], [["bones", "7 ± 2"]], [False, True]), end="")
    ward       n
    -----  -----
    bones  7 ± 2
    """
    body = [[escape(text) for text in row] for row in [columns, *cells]]
    widths = [max(len(row[i]) for row in body) for i in range(len(columns))]
    body.insert(1, ["-" * width for width in widths])
    lines = (
        "  ".join(text.rjust(width) if end else text.ljust(width) for text, width, end in zip(row, widths, right, strict=True))
        for row in body
    )
    return "".join(line.rstrip() + "\n" for line in lines)


def bar(spent: Fraction, total: Fraction, width: int) -> Text:
    """Returns a bar of what is spent: at least one full cell if anything is, and all only if everything is."""
    share = min(spent / total, Fraction(1)) if total else Fraction(1)
    full = int(share * width)
    if share and not full:
        full = 1
    if full == width and share < 1:
        full = width - 1
    colour = "green" if share < Fraction(1, 2) else "yellow" if share < Fraction(9, 10) else "red"
    return Text("█" * full, style=colour) + Text("░" * (width - full), style="dim")


class ReadingProgress:
    """Shows the progress of a long question on stderr, if that is a terminal, until the answer is there."""

    def __init__(self) -> None:
        self._shown: Progress | None = None

    def __enter__(self) -> ReadingProgress:
        return self

    def __call__(self, share: float) -> None:
        console = notes()
        if not console.is_terminal:
            return
        if self._shown is None:
            columns = (TextColumn("reading"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
            self._shown = Progress(*columns, console=console, transient=True)
            self._shown.add_task("reading", total=1.0)
            self._shown.start()
        self._shown.update(self._shown.task_ids[0], completed=share)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._shown is not None:
            self._shown.stop()
