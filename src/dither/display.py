"""Shows answers, quotes, budgets and proposals in notebooks, as HTML.

Names and values may come from anybody, so every text is escaped, and pictures are PNG: no name becomes markup.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from html import escape
from typing import Any

from dither.errors import DitherError

_SHARP = 80  # dots per inch of a picture in a notebook
_MOST_CELLS = 500  # rows of a table


def show_table(columns: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """Returns a table; of a long one the first rows, and how many there are."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    sides = ["right" if each else "left" for each in right]
    body = "".join(
        "<tr>"
        + "".join(f"<td style='text-align:{side}'>{escape(text)}</td>" for side, text in zip(sides, row, strict=True))
        + "</tr>"
        for row in cells[:_MOST_CELLS]
    )
    more = f"<caption>the first {_MOST_CELLS} of {len(cells)} rows</caption>" if len(cells) > _MOST_CELLS else ""
    return f"<table>{more}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def show_notes(warnings: Iterable[str], notes: Iterable[str]) -> str:
    """Returns a paragraph, warnings first and in bold."""
    strong = [f"<strong>{escape(each)}</strong>" for each in warnings]
    return f"<p>{'<br>'.join([*strong, *map(escape, notes)])}</p>"


def show_text(text: str) -> str:
    """Returns text as it is, with its blanks and line breaks."""
    return f"<pre>{escape(text)}</pre>"


def show_picture(draw: Callable[[], Any], words: str) -> str:
    """Returns the picture that `draw` makes; nothing if it cannot be drawn, or if matplotlib is not installed."""
    with suppress(DitherError):
        content = io.BytesIO()
        draw().savefig(content, format="png", dpi=_SHARP)
        data = base64.b64encode(content.getvalue()).decode("ascii")
        return f"<img alt='{escape(words, quote=True)}' src='data:image/png;base64,{data}'>"
    return ""


def show_margins(price: str, margins: Mapping[str, float | None], refusal: str, plan: str) -> str:
    """Returns a quote: its price, the margin to expect of each column, why it would be refused, and the plan."""
    rows = [(name, "depends on the rows" if margin is None else f"± {margin:,.6g}") for name, margin in margins.items()]
    table = show_table(("column", "margin to expect"), rows, (False, True)) if rows else ""
    refused = show_notes([f"asked now, it would be refused: {refusal}"], ()) if refusal else ""
    details = f"<details open><summary>plan</summary>{show_text(plan)}</details>"
    return f"<p><strong>{escape(price)}</strong></p>{refused}{table}{details}"


def show_bars(text: str, bars: Iterable[tuple[str, float]]) -> str:
    """Returns a text and a bar below it for each share from 0 to 1, named by its words."""
    drawn = "".join(
        f"<div role='img' aria-label='{escape(words, quote=True)}' style='width:20em;height:0.7em;background:#ccc'>"
        f"<div style='width:{100 * min(max(share, 0.0), 1.0):.1f}%;height:100%;background:#0072b2'></div></div>"
        f"<small>{escape(words)}</small>"
        for words, share in bars
    )
    return f"<div><p>{escape(text)}</p>{drawn}</div>"
