"""An answer as a picture: every noisy number with its margin as an error bar. Needs matplotlib: the extra `plots`.

It takes texts and numbers, not an answer, so that answers can draw themselves.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from os import PathLike
from typing import Any

from dither.errors import DitherError, extra

Panel = tuple[str, Sequence[Any], Sequence[float | None]]  # a column: its name, its values, its margins

_BLUE, _GREY = "#0072b2", "#555555"
_MOST = 60  # rows: more would be a smear
_SMALL, _LETTERS = 7, 15  # the caption's size in points, and how many letters of a sentence fit into an inch


def answer_picture(labels: Sequence[str], panels: Sequence[Panel], note: str, path: str | PathLike[str] | None = None) -> Any:
    """One panel for each noisy column, one row for each label; returns the figure, and saves it if a path is given."""
    drawn = [(name, values, margins) for name, values, margins in panels if any(map(_is_number, values))]
    if not drawn:
        raise DitherError("The answer has no noisy number to draw.", fix="print it instead.", charged=_KEPT)
    shown = len(labels[:_MOST])
    more = f" (the first {_MOST} of {len(labels)} rows)" if len(labels) > _MOST else ""
    width = max(4.5, 4 * len(drawn))
    caption = textwrap.wrap(note + more, int(width * _LETTERS))
    figure, axes = _figure(width, max(2.2, 0.8 + 0.32 * shown) + 0.12 * len(caption), len(drawn))
    for axis, (name, values, margins) in zip(axes, drawn, strict=True):
        _panel(axis, name, values[:_MOST], margins[:_MOST])
    axes[0].set_yticks(range(shown), [label[:40] for label in labels[:_MOST]])
    axes[0].invert_yaxis()
    figure.supxlabel("\n".join(caption), fontsize=_SMALL, color=_GREY)
    if path is not None:
        _save(figure, path)
    return figure


def _panel(axis: Any, name: str, values: Sequence[Any], margins: Sequence[float | None]) -> None:
    for place, (value, margin) in enumerate(zip(values, margins, strict=True)):
        if not _is_number(value):
            axis.annotate("NULL", (0, place), color=_GREY, fontsize=8, va="center")
            continue
        # A number without a margin is drawn hollow: it says nothing of how far it may be off.
        hollow = {} if margin is not None else {"markerfacecolor": "white"}
        axis.errorbar(float(value), place, xerr=margin, fmt="o", color=_BLUE, capsize=3, markersize=5, **hollow)
    axis.set_title(name, loc="left", fontsize=11, fontweight="bold")
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="x", alpha=0.3)


def _figure(width: float, height: float, columns: int) -> tuple[Any, Any]:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise DitherError("Pictures need matplotlib, and it is not installed.", fix=extra("plots"), charged=_KEPT) from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, columns, sharey=True, squeeze=False)[0]


def _save(figure: Any, path: str | PathLike[str]) -> None:
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError):  # a folder that is not there; an ending that is no kind of picture
        raise DitherError(
            "The picture cannot be written there.",
            fix="name a file that ends in .png in a folder that is there.",
            charged=_KEPT,
        ) from None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value and abs(value) < float("1e300")


_KEPT = "nothing more: the answer is kept"
