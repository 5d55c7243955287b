"""Writes a table with margins for documents and spreadsheets: Markdown, LaTeX and Excel.

Texts of the data are escaped: a key can add no column, no command and no formula.
"""

from __future__ import annotations

import datetime
import io
import math
import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from dither.errors import DitherError, extra

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|#~$])")
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "ε": r"$\varepsilon$",
    "δ": r"$\delta$",
    "ρ": r"$\rho$",
    "−": "$-$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{each: f"\\{each}" for each in "&%$#_{}"},
}
_EXACT = 1 << 53  # Excel's numbers are doubles
_FIRST = (1900, 3)  # year and month: before it, Excel's dates are off by a day or missing
_FORMATS = {"date": "yyyy-mm-dd", "timestamp": "yyyy-mm-dd hh:mm:ss"}


def markdown(columns: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool], notes: Sequence[str]) -> str:
    """Returns a Markdown table, and the notes as a list below it.

    >>> print(markdown(["ward", "n"], [["a|b", "7 ± 2"]], [False, True], ["± at 95 %"]))
    | ward | n |
    |:---|---:|
    | a\\|b | 7 ± 2 |
    <BLANKLINE>
    - ± at 95 %
    """
    lines = [_row(map(_in_markdown, columns)), "|" + "|".join("---:" if each else ":---" for each in right) + "|"]
    lines += [_row(map(_in_markdown, row)) for row in cells]
    return "\n".join([*lines, "", *(f"- {_in_markdown(note)}" for note in notes)])


def _row(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _in_markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def latex(columns: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool], notes: Sequence[str]) -> str:
    """Returns a LaTeX tabular that needs no package, and the notes in small print below it.

    >>> print(latex(["ward", "n"], [["a&b", "7 ± 2"]], [False, True], ["± at 95 %"]))
    \\begin{tabular}{lr}
    \\hline
    ward & n \\\\
    \\hline
    a\\&b & 7 $\\pm$ 2 \\\\
    \\hline
    \\end{tabular}
    <BLANKLINE>
    {\\footnotesize
    $\\pm$ at 95 \\%
    \\par}
    """
    rows = [" & ".join(map(_in_latex, row)) + r" \\" for row in (columns, *cells)]
    body = [rows[0], r"\hline", *rows[1:]]
    table = [r"\begin{tabular}{" + "".join("r" if each else "l" for each in right) + "}", r"\hline", *body, r"\hline"]
    small = "\n\n".join(map(_in_latex, notes))
    return "\n".join([*table, r"\end{tabular}", "", r"{\footnotesize", small, r"\par}"])


def _in_latex(text: str) -> str:
    return "".join(_LATEX.get(each, each) for each in " ".join(text.split()))


Typed = tuple[str, str, Sequence[Any]]  # the name, kind and values of a column


def excel(columns: Sequence[Typed], facts: Sequence[tuple[str, str]]) -> bytes:
    """Returns an Excel workbook: numbers, with their margins beside them, and a sheet of facts about them."""
    held = io.BytesIO()
    book = _writer().Workbook(held, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False})
    bold = book.add_format({"bold": True})
    formats = {kind: book.add_format({"num_format": words}) for kind, words in _FORMATS.items()}
    sheet, about = book.add_worksheet("Answer"), book.add_worksheet("About")
    for place, (name, kind, values) in enumerate(columns):
        sheet.write_string(0, place, name, bold)
        sheet.set_column(place, place, max(10, min(40, len(name) + 2)))
        for row, value in enumerate(values, start=1):
            _write(sheet, row, place, value, formats.get(kind))
    sheet.freeze_panes(1, 0)
    about.set_column(0, 0, 14)
    about.set_column(1, 1, 100)
    for row, (word, text) in enumerate(facts):
        about.write_string(row, 0, word, bold)
        about.write_string(row, 1, text)
    book.close()
    return held.getvalue()


def _write(sheet: Any, row: int, place: int, value: Any, form: Any) -> None:
    """Writes one cell by its type. What Excel has no number or date for is written as text; NULL stays empty."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return
    if isinstance(value, bool):
        sheet.write_boolean(row, place, value)
    elif isinstance(value, (int, float)) and (isinstance(value, float) or abs(value) <= _EXACT):
        sheet.write_number(row, place, value)
    elif isinstance(value, datetime.date) and (value.year, value.month) >= _FIRST:
        sheet.write_datetime(row, place, value, form)
    else:
        sheet.write_string(row, place, str(value)[:32_767])


def _writer() -> Any:
    try:
        return import_module("xlsxwriter")
    except ImportError:
        raise DitherError(
            "xlsxwriter is not installed, and it is needed for an Excel file.",
            fix=extra("excel"),
            charged="nothing more: the answer is kept",
        ) from None
