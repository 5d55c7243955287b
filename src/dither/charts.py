"""Draws the picture of an answer: noisy numbers with error bars. Needs matplotlib: the extra `plots`.

How rows are arranged follows from the keys of GROUP BY, never from the noisy numbers:

    rows          a row for each group: its label, a dot, the bar of its margin
    line          eight or more dates or numbers as the only key: a line along the axis, and the band of margins
    multiples     two keys: a panel for each value of one of them, all on the same scale; inside, rows or lines by the other

Below, if bounds left something out: how much, with its interval. `answer.plot()`, `dither ask --plot` and notebooks share it.
Names come from the question and the data, so no text is read as a formula.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import ceil
from os import PathLike
from typing import Any, NamedTuple

from dither.errors import DitherError
from dither.plots import BLUE, GREY, ORANGE, new_figure, plain_tick, save_figure

Panel = tuple[str, Sequence[Any], Sequence[float | None]]  # a column: its name, its values, its margins

MOST_ROWS = 400  # with a label each
_FEW = 60  # rows, beyond which letters are smaller
_LONG = 8  # ordered values from which on they are a line
_PANELS, _ACROSS = 16, 4  # the most panels of one column, and how many stand side by side
_SMALL, _LETTERS = 7, 15  # the caption's size in points, and its letters per inch
_WARNING = 9  # the size in points of what was left out
_KEPT = "nothing more: the answer is kept"
_ORDERED = ("int", "real", "date", "timestamp")


class Share(NamedTuple):
    """What was left out, from 0 to 1. `estimate` is None if noise hides it; `high` if no upper end is known."""

    words: str
    estimate: float | None
    low: float
    high: float | None


@dataclass(frozen=True)
class Key:
    """A key column: its name, its kind, its values and how they are shown."""

    name: str
    kind: str
    values: tuple[Any, ...]
    labels: tuple[str, ...]

    @property
    def distinct(self) -> tuple[str, ...]:
        """The labels, each once, in their order."""
        return tuple(dict.fromkeys(self.labels))

    @property
    def ordered(self) -> bool:
        """Whether it is drawn along an axis: many dates or numbers, none of them NULL."""
        return self.kind in _ORDERED and None not in self.values and len(self.distinct) >= _LONG


@dataclass(frozen=True)
class Arrangement:
    """How groups are drawn: the rows of each panel by its title, and the key along the axis if there is one."""

    panels: Mapping[str, tuple[int, ...]]
    along: Key | None
    labels: tuple[str, ...]  # of all rows
    outer: str = ""  # the key that has a panel for each value
    inner: str = ""  # the other one


def arrange(keys: Sequence[Key], labels: Sequence[str]) -> Arrangement:
    """Decides how to draw groups with these keys. `labels` are those of whole rows."""
    rows = tuple(range(len(labels)))
    if len(keys) == 1 and keys[0].ordered and _rises(keys[0].values):
        return Arrangement({"": rows}, keys[0], tuple(labels))
    if len(keys) == 2 and len(set(zip(keys[0].labels, keys[1].labels, strict=True))) == len(rows):
        outer, inner = _outer(keys[0], keys[1])
        if 1 < len(outer.distinct) <= _PANELS and 1 < len(inner.distinct) <= MOST_ROWS:
            panels = {each: tuple(i for i in rows if outer.labels[i] == each) for each in outer.distinct}
            return Arrangement(panels, inner if inner.ordered else None, inner.labels, outer.name, inner.name)
    return Arrangement({"": rows}, None, tuple(labels))


def _outer(first: Key, second: Key) -> tuple[Key, Key]:
    """Returns which of two keys has a panel for each value: not the one with an order, else the one with fewer values."""
    if first.ordered != second.ordered:
        return (second, first) if first.ordered else (first, second)
    return (second, first) if len(second.distinct) < len(first.distinct) else (first, second)


def _rises(values: Sequence[Any]) -> bool:
    return all(a < b for a, b in itertools.pairwise(values))


# --- the figure -------------------------------------------------------------------------------------------------


def answer_picture(
    labels: Sequence[str],
    columns: Sequence[Panel],
    note: str,
    path: str | PathLike[str] | None = None,
    warnings: Sequence[str] = (),
    *,
    keys: Sequence[Key] = (),
    left_out: Sequence[Share] = (),
) -> Any:
    """Draws the noisy columns of an answer. Returns the figure, and saves it to `path`.

    `warnings` stand above the panels and `left_out` below: error bars do not show what was left out.
    """
    drawn = [(name, values, margins) for name, values, margins in columns if any(map(is_number, values))]
    if not drawn:
        raise DitherError("The answer has no noisy number to draw.", fix="print it instead.", charged=_KEPT)
    plan = arrange(keys, labels)
    across = min(_ACROSS, max(len(plan.panels), 1)) if len(plan.panels) > 1 else len(drawn)
    width = max(4.5, (2.8 if len(plan.panels) > 1 else 4) * across)
    cut = len(labels) > MOST_ROWS and plan.along is None and len(plan.panels) == 1
    caption = textwrap.wrap(note + (f" (the first {MOST_ROWS} of {len(labels)} rows)" if cut else ""), int(width * _LETTERS))
    above = [line for text in warnings for line in textwrap.wrap(text, int(width * _LETTERS * _SMALL / _WARNING))]
    down = ceil(len(plan.panels) / across) * len(drawn) if len(plan.panels) > 1 else 1
    high = _height(plan)
    strip = 0.5 + 0.3 * len(left_out) if left_out else 0
    figure = new_figure(width, down * high + strip + 0.12 * len(caption) + 0.17 * len(above), _KEPT)
    if above:
        figure.suptitle("\n".join(above), x=0.01, ha="left", fontsize=_WARNING, color=ORANGE, parse_math=False)
    grid = figure.add_gridspec(down + bool(left_out), across, height_ratios=[high] * down + ([strip] if left_out else []))
    _fill(figure, grid, plan, drawn, across)
    if left_out:
        _strip(figure.add_subplot(grid[down, :]), left_out)
    figure.supxlabel("\n".join(caption), fontsize=_SMALL, color=GREY, parse_math=False)
    if path is not None:
        save_figure(figure, path, _KEPT)
    return figure


def _height(plan: Arrangement) -> float:
    """Returns the height of one panel, in inches."""
    if plan.along is not None:
        return 2.6
    rows = len(dict.fromkeys(plan.labels)) if len(plan.panels) > 1 else min(len(plan.labels), MOST_ROWS)
    return max(2.2 if len(plan.panels) == 1 else 1.4, 0.8 + (0.32 if rows <= _FEW else 0.16) * rows)


def _fill(figure: Any, grid: Any, plan: Arrangement, columns: Sequence[Panel], across: int) -> None:
    """Draws every panel: one for each column, or for each column and each value of the outer key."""
    if len(plan.panels) == 1:
        first = None
        for place, column in enumerate(columns):
            first = axis = figure.add_subplot(grid[0, place], sharey=None if plan.along is not None else first)
            _draw(axis, plan, column, tuple(range(len(plan.labels)))[: None if plan.along else MOST_ROWS], column[0], not place)
        return
    down = ceil(len(plan.panels) / across)
    for above, column in enumerate(columns):
        first = None
        for place, (title, rows) in enumerate(plan.panels.items()):
            row, side = divmod(place, across)
            axis = figure.add_subplot(grid[above * down + row, side], sharex=first, sharey=first)
            words = f"{column[0]}, {plan.outer} = {title}" if place == 0 else title
            _draw(axis, plan, column, rows, words[:40], side == 0)
            first = first or axis


def _draw(axis: Any, plan: Arrangement, column: Panel, rows: Sequence[int], title: str, labelled: bool) -> None:
    _, values, margins = column
    if plan.along is not None:
        _line(axis, plan.along, values, margins, rows)
    else:
        _dots(axis, plan, values, margins, rows, labelled)
    axis.set_title(title, loc="left", fontsize=11 if len(plan.panels) == 1 else 9, fontweight="bold", parse_math=False)
    axis.spines[["top", "right"]].set_visible(False)


def _line(axis: Any, along: Key, values: Sequence[Any], margins: Sequence[float | None], rows: Sequence[int]) -> None:
    """Draws a line through the numbers, and the band of their margins. It breaks where there is no number."""
    rows = sorted(rows, key=lambda row: along.values[row])
    x = [along.values[row] for row in rows]
    y = [float(values[row]) if is_number(values[row]) else float("nan") for row in rows]
    wide = [margins[row] or 0.0 for row in rows]
    low, high = ([a - s * b for a, b in zip(y, wide, strict=True)] for s in (1, -1))
    axis.fill_between(x, low, high, color=BLUE, alpha=0.2, lw=0)
    axis.plot(x, y, color=BLUE, lw=1.5, marker="o" if len(x) <= _FEW else None, ms=3)
    if along.kind in ("date", "timestamp"):
        dates: Any = import_module("matplotlib.dates")
        places = dates.AutoDateLocator(minticks=3, maxticks=8)
        axis.xaxis.set_major_locator(places)
        axis.xaxis.set_major_formatter(dates.ConciseDateFormatter(places))
    axis.yaxis.set_major_formatter(plain_tick)
    axis.tick_params(labelsize=8)
    axis.set_xlabel(along.name, fontsize=8, parse_math=False)
    axis.grid(alpha=0.3)


def _dots(
    axis: Any, plan: Arrangement, values: Sequence[Any], margins: Sequence[float | None], rows: Sequence[int], labelled: bool
) -> None:
    """Draws a dot and an error bar for each row, at the place of its label."""
    shared = len(plan.panels) > 1
    names = list(dict.fromkeys(plan.labels)) if shared else list(plan.labels[:MOST_ROWS])
    small = len(names) > _FEW
    for number, row in enumerate(rows):
        place = names.index(plan.labels[row]) if shared else number
        if not is_number(values[row]):
            axis.annotate("NULL", (0, place), color=GREY, fontsize=8, va="center")
            continue
        # A number without a margin is drawn hollow.
        hollow = {} if margins[row] is not None else {"markerfacecolor": "white"}
        size = {"capsize": 0, "markersize": 3, "elinewidth": 1} if small else {"capsize": 3, "markersize": 5}
        axis.errorbar(float(values[row]), place, xerr=margins[row], fmt="o", color=BLUE, **size, **hollow)
    axis.set_yticks(range(len(names)), [name[:40] for name in names], parse_math=False, fontsize=5 if small else 9)
    axis.tick_params(axis="y", labelleft=labelled)
    if labelled and plan.inner:
        axis.set_ylabel(plan.inner[:40], fontsize=8, parse_math=False)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.xaxis.set_major_formatter(plain_tick)
    axis.tick_params(axis="x", labelsize=8)
    axis.grid(axis="x", alpha=0.3)


def _strip(axis: Any, shares: Sequence[Share]) -> None:
    """Draws what was left out: a bar over its interval, a dot at the estimate. Without an upper end it fades to the right."""
    for place, (words, estimate, low, high) in enumerate(shares):
        first = 100 * max(low, 0.0)
        dot = None if estimate is None else 100 * min(estimate, 1.0)
        last = 100 * min(high, 1.0) if high is not None else first if dot is None else dot
        axis.barh(place, last - first, left=first, height=0.6, color=ORANGE, alpha=0.35)
        axis.plot([first, first], [place - 0.3, place + 0.3], color=ORANGE, lw=2)
        if high is None:
            axis.barh(place, 100 - last, left=last, height=0.6, color=ORANGE, alpha=0.1)
        if dot is not None:
            axis.plot([dot], [place], "o", color=ORANGE, ms=5)
        where, side = (last + 1, "left") if last < 50 else (first - 1, "right") if first > 50 else (1, "left")
        more = ", or more" if high is None else ""
        axis.text(where, place, f"{words[:60]}{more}", ha=side, va="center", fontsize=8, parse_math=False)
    axis.set_yticks([])
    axis.set_ylim(len(shares) - 0.5, -0.5)
    axis.set_xlim(0, 100)
    axis.set_title("left out by the bounds, in %", loc="left", fontsize=9, color=ORANGE)
    axis.tick_params(axis="x", labelsize=8)
    axis.spines[["top", "right", "left"]].set_visible(False)


def is_number(value: Any) -> bool:
    """Returns whether a value can be drawn."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value and abs(value) < float("1e300")
