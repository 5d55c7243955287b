"""Answers and other rows as tables, CSV, JSON or Parquet: on stdout, or in a file.

Beside every noisy column of a CSV or Parquet answer stands its margin, as `n_margin`; in JSON the margins have a place of
their own.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dither.cli.screen import OutputError, harmless_json, harmless_lines, plain_table, say, show_table
from dither.errors import ArgumentError, DitherError, Fix, Interrupted, Shell, extra

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
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

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
