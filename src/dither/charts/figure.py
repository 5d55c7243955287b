"""Draws a chart as a matplotlib figure: `answer.plot()`, `dither ask --plot` and notebooks. Needs the extra `plots`.

Names come from the question and the data, so no text is read as a formula.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from math import ceil
from os import PathLike
from typing import Any

from dither.charts.axes import Axis
from dither.charts.chart import Chart, Column, Panel, Point, Share
from dither.errors import DitherError
from dither.plots import BLUE, GREY, ORANGE, new_figure, save_figure

_FEW = 60  # rows, beyond which letters are smaller
_ACROSS, _COLUMNS = 4, 3  # the most panels, and the most columns with one panel each, side by side
_SMALL, _LETTERS = 7, 15  # the caption's size in points, and its letters per inch
_WARNING = 9  # the size in points of what was left out
_TITLE = 40  # letters of a title or label
_KEPT = "nothing more: the answer is kept"


def draw_figure(chart: Chart, path: str | PathLike[str] | None = None) -> Any:
    """Draws the noisy columns of an answer. Returns the figure, and saves it to `path`.

    Warnings stand above the panels and what was left out below: error bars do not show it.
    """
    if not chart.columns:
        raise DitherError("The answer has no noisy number to draw.", fix="print it instead.", charged=_KEPT)
    many = len(chart.columns[0].panels) > 1
    across = min(_ACROSS, len(chart.columns[0].panels)) if many else min(_COLUMNS, len(chart.columns))
    width = max(4.5, (2.8 if many else 4) * across)
    caption = textwrap.wrap(chart.caption + (f" ({chart.cut})" if chart.cut else ""), int(width * _LETTERS))
    above = [line for text in chart.warnings for line in textwrap.wrap(text, int(width * _LETTERS * _SMALL / _WARNING))]
    down = ceil(len(chart.columns[0].panels) / across) * len(chart.columns) if many else ceil(len(chart.columns) / across)
    high = _height(chart, many)
    strip = 0.5 + 0.42 * len(chart.shares) if chart.shares else 0
    figure = new_figure(width, down * high + strip + 0.12 * len(caption) + 0.17 * len(above), _KEPT)
    if above:
        figure.suptitle("\n".join(above), x=0.01, ha="left", fontsize=_WARNING, color=ORANGE, parse_math=False)
    ratios = [high] * down + ([strip] if chart.shares else [])
    grid = figure.add_gridspec(down + bool(chart.shares), across, height_ratios=ratios)
    _fill(figure, grid, chart, across, many)
    if chart.shares:
        _strip(figure.add_subplot(grid[down, :]), chart.shares)
    figure.supxlabel("\n".join(caption), fontsize=_SMALL, color=GREY, parse_math=False)
    if path is not None:
        save_figure(figure, path, _KEPT)
    return figure


def _height(chart: Chart, many: bool) -> float:
    """Returns the height of one panel, in inches."""
    if chart.along is not None:
        return 2.6
    rows = max(len(panel.points) for panel in chart.columns[0].panels)
    return max(1.4 if many else 2.2, 0.8 + (0.32 if rows <= _FEW else 0.16) * rows)


def _fill(figure: Any, grid: Any, chart: Chart, across: int, many: bool) -> None:
    """Draws every panel: one for each column, or for each column and each value of the outer key."""
    each_down = ceil(len(chart.columns[0].panels) / across) if many else 0
    for above, column in enumerate(chart.columns):
        for place, panel in enumerate(column.panels):
            row, side = divmod(place if many else above, across)
            axis = figure.add_subplot(grid[above * each_down + row, side])
            first = f"{column.name}, {chart.outer} = {panel.title}" if many else column.name
            title = first if place == 0 else panel.title
            _draw(axis, chart, column, panel, labelled=side == 0)
            axis.set_title(title[:_TITLE], loc="left", fontsize=9 if many else 11, fontweight="bold", parse_math=False)
            axis.spines[["top", "right"]].set_visible(False)


def _draw(axis: Any, chart: Chart, column: Column, panel: Panel, labelled: bool) -> None:
    if chart.along is not None:
        _line(axis, panel)
        _set_ticks(axis.xaxis, chart.along)
        _set_ticks(axis.yaxis, column.axis)
        axis.set_xlim(*_padded(chart.along))
        axis.set_ylim(column.axis.low, column.axis.high)
        axis.set_xlabel(chart.inner[:_TITLE], fontsize=8, parse_math=False)
        axis.grid(alpha=0.3)
        return
    _rows(axis, column, panel, labelled)
    _set_ticks(axis.xaxis, column.axis)
    axis.set_xlim(*_padded(column.axis))
    axis.grid(axis="x", alpha=0.3)
    if labelled and chart.outer:
        axis.set_ylabel(chart.inner[:_TITLE], fontsize=8, parse_math=False)


def _set_ticks(axis: Any, ticks: Axis) -> None:
    axis.set_ticks([place for place, _ in ticks.ticks], [label for _, label in ticks.ticks], fontsize=8, parse_math=False)


def _padded(axis: Axis) -> tuple[float, float]:
    """Returns the ends of an axis with room for the dots on them."""
    room = (axis.high - axis.low) / 50
    return axis.low - room, axis.high + room


def _line(axis: Any, panel: Panel) -> None:
    """Draws a line through the numbers, and the band of their margins. It breaks where there is no number."""
    for points in panel.segments():
        x, y = [point.along for point in points], [point.value for point in points]
        ends = [point.ends for point in points if point.ends]
        if ends:
            axis.fill_between(x, [low for low, _ in ends], [high for _, high in ends], color=BLUE, alpha=0.2, lw=0)
        many = len(panel.points) > _FEW
        hollow = {} if ends else {"markerfacecolor": "white"}
        axis.plot(x, y, color=BLUE, lw=1.5, marker=None if many and len(points) > 1 else "o", ms=3, **hollow)
        if len(points) == 1 and ends:
            axis.errorbar(x, y, yerr=points[0].margin, fmt="o", color=BLUE, capsize=3, markersize=3)
    for point in panel.points:
        if point.apart and point.value is not None:
            axis.errorbar(point.along, point.value, yerr=point.margin, fmt="o", color=GREY, capsize=3, markersize=4)


def _rows(axis: Any, column: Column, panel: Panel, labelled: bool) -> None:
    """Draws a dot and an error bar for each row, at the place of its label."""
    small = len(panel.points) > _FEW
    for place, point in enumerate(panel.points):
        _row(axis, column, point, place, small)
    names = [point.label[:_TITLE] for point in panel.points]
    axis.set_yticks(range(len(names)), names, parse_math=False, fontsize=5 if small else 9)
    axis.tick_params(axis="y", labelleft=labelled)
    axis.set_ylim(len(names) - 0.5, -0.5)


def _row(axis: Any, column: Column, point: Point, place: int, small: bool) -> None:
    if point.value is None:
        if point.text:
            middle = 0 if column.bars else column.axis.low
            axis.annotate("NULL", (middle, place), (3, 0), textcoords="offset points", color=GREY, fontsize=8, va="center")
        return
    if column.bars:
        axis.barh(place, point.value, height=0.5, color=BLUE, alpha=0.15)
    hollow = {} if point.margin is not None else {"markerfacecolor": "white"}
    size = {"capsize": 0, "markersize": 3, "elinewidth": 1} if small else {"capsize": 3, "markersize": 5}
    axis.errorbar(point.value, place, xerr=point.margin, fmt="o", color=BLUE, **size, **hollow)


def _strip(axis: Any, shares: Sequence[Share]) -> None:
    """Draws what was left out: a bar over its interval, a dot at the estimate. Without an upper end it fades to the right."""
    for place, share in enumerate(shares):
        first, dot, last = share.span
        axis.barh(place, last - first, left=first, height=0.4, color=ORANGE, alpha=0.35)
        axis.plot([first, first], [place - 0.2, place + 0.2], color=ORANGE, lw=2)
        if share.high is None:
            axis.barh(place, 100 - last, left=last, height=0.4, color=ORANGE, alpha=0.1)
        if dot is not None:
            axis.plot([dot], [place], "o", color=ORANGE, ms=5)
        axis.text(0, place - 0.25, share.text, va="bottom", fontsize=8, parse_math=False)
    axis.set_yticks([])
    axis.set_ylim(len(shares) - 0.65, -0.8)
    axis.set_xlim(0, 100)
    axis.set_title("left out by the bounds, in %", loc="left", fontsize=9, color=ORANGE)
    axis.tick_params(axis="x", labelsize=8)
    axis.spines[["top", "right", "left"]].set_visible(False)
