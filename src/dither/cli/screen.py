"""What people see: two consoles, a bar for the budget, tables that bear pipes and narrow windows."""

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

_LONG = 30  # a column of questions that is narrower cannot be read
_INDENT, _NARROWEST = 4, 16  # of a question in an error; a window without room for anything around a caret
_CARET = re.compile(r" {4,}\^+")


class OutputError(DitherError):
    """What was to be shown cannot be written: a full disk, a closed standard output."""

    code, exit_code = "output", 4


def occupy_streams() -> None:
    """Gives a standard stream that was closed a stand-in, before a ledger's file can be opened in its place.

    What is written to a closed stdout fails, as it should; what is said to a closed stderr goes nowhere.
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


def let_go_of_stdout() -> None:
    """What is still buffered goes nowhere, or Python complains about it a second time while it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def speak_utf8() -> None:
    """Data in a pipe or a file is UTF-8 wherever it is run; a terminal that knows no ε is shown a question mark.

    Without this a locale of another kind would end in a traceback, after the question was paid for.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="replace")


def out() -> Console:
    """Standard output, for data."""
    return Console(highlight=False)


def notes() -> Console:
    """Standard error, for everything that is not data."""
    return Console(stderr=True, highlight=False)


def complain(text: str) -> None:
    """An error, on stderr. A question is cut around the caret below it, so that one stays below the other."""
    with suppress(OSError):  # there is nowhere left to complain to
        console = notes()
        lines, width = harmless_lines(text).split("\n"), _room(console)
        kept: list[str] = []
        for above, line in zip(["", *lines], lines, strict=False):
            if kept and _CARET.fullmatch(line):
                kept[-1:] = around(above, line, width)
            else:
                kept.append(by_words(line, width, "      " if line.startswith("    ") else "  "))
        console.print(Text("\n".join(kept), style="red"), soft_wrap=True)


def around(line: str, caret: str, width: int | None) -> tuple[str, str]:
    """A line and the caret below it, cut to the width of a window with what the caret points at in the middle.

    >>> print(*around("    SELECT a, b, SUM(income) FROM people", "                     ^^^^^^", 24), sep="\\n")
        …, SUM(income) FROM…
               ^^^^^^
    """
    if width is None or width < _NARROWEST or cell_len(line) <= width:
        return line, caret
    text, room = line[_INDENT:], width - _INDENT
    start = caret.index("^") - _INDENT
    span = min(len(caret) - _INDENT - start, room - 2)  # a … has room at either end
    left = max(0, min(start - (room - span) // 2, len(text) - room))
    shown = ("…" if left else text[:1]) + text[left + 1 : left + room - 1]
    shown += "…" if left + room < len(text) else text[left + room - 1 : left + room]
    return " " * _INDENT + shown, " " * (_INDENT + start - left) + "^" * span


def say(text: str, style: str = "") -> None:
    """A remark, on stderr."""
    with suppress(OSError):
        console = notes()
        console.print(Text(by_words(text, _room(console)), style=style), soft_wrap=True)


def tell(text: str, hang: int | None = None) -> None:
    """Lines of text on stdout; on a terminal without what it would obey. With `hang` they are broken between words there, the
    rest so far in; without it they are as they are, to be copied."""
    if sys.stdout.isatty():
        text, width = harmless_lines(text), _room(out()) if hang is not None else None
        text = "\n".join(by_words(line, width, " " * (hang or 0)) for line in text.split("\n"))
    sys.stdout.write(text + "\n")


def _room(console: Console) -> int | None:
    """How wide a line may be: a pipe or a file takes any."""
    return console.width if console.is_terminal else None


def say_head(head: str) -> None:
    """Where the chain ends, on stderr: in one piece, to be copied; without room for that as much as tells it apart."""
    room = _room(notes())
    whole = room is None or len(head) + 5 <= room
    say(f"head {head}" if whole else f"head {head.partition(':')[0]}:{head.partition(':')[2][:8]}…; dither verify has it whole")


def by_words(text: str, width: int | None, hang: str = "") -> str:
    """One line broken between words, and never inside `ε = 0.1`, `± 3` or `95 %`: half a number is another number.

    >>> print(by_words("charged ε = 0.1; ± at 95 % confidence", 15, "  "))
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
    """A table on stdout: drawn for a terminal, plain and never cut when piped. Only the `long` column, if one is, is folded.

    Where a window is too narrow for it, the rows stand one below the other: half a number is another number.
    """
    if not sys.stdout.isatty():
        sys.stdout.write(plain_table(columns, cells, right))
        return
    columns, cells = [harmless(name) for name in columns], [[harmless(text) for text in row] for row in cells]
    console, wide = out(), [max(map(cell_len, (name, *texts))) for name, *texts in zip(columns, *cells, strict=True)]
    needed = sum(min(width, _LONG) if name == long else width for name, width in zip(columns, wide, strict=True))
    if needed + 2 * len(columns) <= console.width:  # two cells between columns, and one at either end
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
    """For each row its short cells, broken only between them, and below them the long one."""
    place, lines = list(columns).index(long), []
    for row in cells:
        lines.append("")
        for text in (text for i, text in enumerate(row) if text and i != place):
            if lines[-1] and cell_len(lines[-1]) + 2 + cell_len(text) > width:
                lines.append("    " + text)
            else:
                lines[-1] += ("  " if lines[-1] else "") + text
        if row[place]:
            lines.append(by_words("    " + row[place], width, "    "))
    return "\n".join(lines)


def _records(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """Each row as lines of its own, a name and a value on each."""
    wide = max(map(cell_len, columns))
    names = [name + " " * (wide - cell_len(name)) for name in columns]
    return "\n\n".join("\n".join(f"{name}  {text}" for name, text in zip(names, row, strict=True)) for row in cells)


def harmless(text: str) -> str:
    """On one line, and without what a terminal would obey: a key or a question of somebody else's is only shown.

    >>> harmless("a\\nb \\x1b[2J é")
    'a\\\\nb \\\\x1b[2J é'
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def harmless_lines(text: str) -> str:
    """The same, line by line."""
    return "\n".join(map(harmless, text.split("\n")))


def harmless_json(text: str) -> str:
    """The same for JSON, in its own spelling: it reads as before, whoever looks at it.

    >>> harmless_json('{"a": "\x9b2J é"}')
    '{"a": "\\\\u009b2J é"}'
    """
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def plain_table(columns: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """Aligned text.

    >>> print(plain_table(["ward", "n"], [["bones", "7 ± 2"]], [False, True]), end="")
    ward       n
    -----  -----
    bones  7 ± 2
    """
    body = [[harmless(text) for text in row] for row in [columns, *cells]]
    widths = [max(len(row[i]) for row in body) for i in range(len(columns))]
    body.insert(1, ["-" * width for width in widths])
    lines = (
        "  ".join(text.rjust(width) if end else text.ljust(width) for text, width, end in zip(row, widths, right, strict=True))
        for row in body
    )
    return "".join(line.rstrip() + "\n" for line in lines)


def bar(spent: Fraction, total: Fraction, width: int) -> Text:
    """How much of the budget is gone: full cells for what is spent, at least one as soon as anything is."""
    share = min(spent / total, Fraction(1)) if total else Fraction(1)
    full = int(share * width)
    if share and not full:
        full = 1
    if full == width and share < 1:
        full = width - 1
    colour = "green" if share < Fraction(1, 2) else "yellow" if share < Fraction(9, 10) else "red"
    return Text("█" * full, style=colour) + Text("░" * (width - full), style="dim")


class Watch:
    """Progress of a long question on a terminal's stderr: it appears with the first report and is gone with the answer."""

    def __init__(self) -> None:
        self._shown: Progress | None = None

    def __enter__(self) -> Watch:
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
