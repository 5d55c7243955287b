"""Draws a chart as SVG, without a script or styles of its own: the page's style sheet has the colours.

Places across are percentages: a panel fits any width while its letters keep their size. The table beside it has the same
numbers, for those who cannot see it. Every text is escaped: names come from the question and the data.

    classes   bar, whisker, dot (hollow), band, through, apart; label, value, tick, grid (zero); left-out
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from dither.charts.axes import Axis
from dither.charts.chart import Chart, Column, Panel, Point, Share

_FEW = 60  # rows, beyond which they are low, and points of a line, beyond which they have no dots
_ROW, _TOP, _AXIS = 40, 12, 26  # heights in pixels
_LOW, _SIDE = 15, 34  # the height of a low row, and the percentage of the width that its label has
_LINE = 180  # the height of a panel with a line
_SHARE = 34  # the height of a share that was left out
_LETTERS = 34  # of a label
_SPOKEN = 500  # letters of what a screen reader says
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # characters that XML cannot hold


@dataclass(frozen=True)
class Drawing:
    """A column as SVG: its name, and the title and picture of each panel."""

    name: str
    panels: tuple[tuple[str, str], ...]


def draw_columns(chart: Chart) -> list[Drawing]:
    """Returns the drawings of all columns of a chart."""
    return [
        Drawing(column.name, tuple((_title(chart, panel), _panel(chart, column, panel)) for panel in column.panels))
        for column in chart.columns
    ]


def draw_shares(shares: Sequence[Share]) -> str:
    """Returns what was left out: a bar over the interval, a dot at the estimate. Without an upper end it fades to the right."""
    foot = _TOP + _SHARE * len(shares)
    axis = Axis(0, 100, tuple((place, f"{place} %") for place in (0, 25, 50, 75, 100)))
    parts = [_spoken("Left out by the bounds. " + "; ".join(share.text for share in shares)), *_down(axis, _TOP, foot)]
    for place, share in enumerate(shares):
        top = _TOP + _SHARE * place
        first, dot, last = share.span
        parts.append(_text("label", 0, top + 13, share.text))
        parts.append(_rect("left-out", axis, first, last, top + 19))
        if share.high is None:
            parts.append(_rect("left-out more", axis, last, 100, top + 19))
        if dot is not None:
            parts.append(f'<circle class="left-out" cx="{_at(axis, dot)}" cy="{top + 24}" r="4"/>')
    return _svg("shares", foot + _AXIS, parts)


def _title(chart: Chart, panel: Panel) -> str:
    return f"{chart.outer} = {panel.title}" if chart.outer else ""


def _panel(chart: Chart, column: Column, panel: Panel) -> str:
    if chart.along is not None:
        return _line(chart.along, column, panel)
    return _low_rows(column, panel) if len(panel.points) > _FEW else _rows(column, panel)


# --- rows -------------------------------------------------------------------------------------------------------


def _rows(column: Column, panel: Panel) -> str:
    """Draws groups below each other: the label and the number, and below them the dot with its bar."""
    foot = _TOP + _ROW * len(panel.points)
    parts = [_summary(column, panel), *_down(column.axis, _TOP, foot)]
    for place, point in enumerate(panel.points):
        top = _TOP + _ROW * place
        parts.append(_text("label", 0, top + 14, _short(point.label)))
        parts.append(_text("value", "100%", top + 14, point.text, "end"))
        parts += _mark(column, point, top + 27, 12)
    return _svg("rows", foot + _AXIS, parts)


def _low_rows(column: Column, panel: Panel) -> str:
    """Draws many groups: labels on the left, low rows on the right."""
    foot = _TOP + _LOW * len(panel.points)
    marks, labels = list(_down(column.axis, _TOP, foot)), []
    for place, point in enumerate(panel.points):
        middle = _TOP + _LOW * place + _LOW // 2
        labels.append(_text("tick", 0, middle + 4, _short(point.label, 16)))
        marks += _mark(column, point, middle, 8)
    inner = f'<svg class="inner" x="{_SIDE}%" width="{100 - _SIDE}%" height="{foot + _AXIS}">{"".join(marks)}</svg>'
    return _svg("rows low", foot + _AXIS, [_summary(column, panel), *labels, inner])


def _mark(column: Column, point: Point, middle: int, high: int) -> Iterator[str]:
    """Draws a number: a bar from zero if zero is on the axis, the bar of its margin, and a dot."""
    axis, value = column.axis, point.value
    if value is None:
        return
    if column.bars:
        left, right = sorted((axis.share(0), axis.share(value)))
        wide = f"{100 * (right - left):.3f}%"
        yield f'<rect class="bar" x="{100 * left:.3f}%" y="{middle - high / 2:g}" width="{wide}" height="{high}" rx="2"/>'
    if point.ends is not None:
        a, b = (_at(axis, end) for end in point.ends)
        yield f'<line class="whisker" x1="{a}" x2="{b}" y1="{middle}" y2="{middle}"/>'
        yield from (f'<line class="whisker" x1="{x}" x2="{x}" y1="{middle - 4}" y2="{middle + 4}"/>' for x in (a, b))
    hollow = " hollow" if point.ends is None else ""
    yield f'<circle class="dot{hollow}" cx="{_at(axis, value)}" cy="{middle}" r="{high / 4 + 0.5:g}"/>'


# --- lines ------------------------------------------------------------------------------------------------------


def _line(along: Axis, column: Column, panel: Panel) -> str:
    """Draws a line through the numbers, and the band of their margins. It breaks where there is no number."""
    parts, labels = [_summary(column, panel)], []
    for tick, label in column.axis.ticks:
        y = _TOP + _height(column, tick)
        parts.append(f'<line class="grid" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>')
        labels.append(_text("tick", 0, f"{y - 3:.1f}", label))
    box = f'x="0" y="{_TOP}" width="100%" height="{_LINE}" viewBox="0 0 1000 {_LINE}" preserveAspectRatio="none"'
    parts.append(f"<svg {box}>{''.join(_stretches(along, column, panel))}</svg>")
    for point in panel.points:
        if point.value is not None and (point.apart or point.ends is None or len(panel.points) <= _FEW):
            parts += _dot(along, column, point)
    return _svg("line", _TOP + _LINE + _AXIS, [*parts, *labels, *_tick_texts(along, _TOP + _LINE + 17)])


def _stretches(along: Axis, column: Column, panel: Panel) -> Iterator[str]:
    for points in panel.segments():
        xs = [1000 * along.share(point.along or 0.0) for point in points]
        ends = [point.ends for point in points if point.ends is not None]
        if ends:
            above = [f"{x:.1f},{_height(column, high):.1f}" for x, (_, high) in zip(xs, ends, strict=True)]
            below = [f"{x:.1f},{_height(column, low):.1f}" for x, (low, _) in zip(xs, ends, strict=True)]
            yield f'<polygon class="band" points="{" ".join(above + below[::-1])}"/>'
        through = " ".join(f"{x:.1f},{_height(column, point.value or 0.0):.1f}" for x, point in zip(xs, points, strict=True))
        yield f'<polyline class="through" points="{through}"/>'


def _dot(along: Axis, column: Column, point: Point) -> Iterator[str]:
    """Draws one number of a line. A NULL apart from it has its own bar."""
    x = _at(along, point.along or 0.0)
    if point.apart and point.ends is not None:
        low, high = (_TOP + _height(column, end) for end in point.ends)
        yield f'<line class="whisker apart" x1="{x}" x2="{x}" y1="{low:.1f}" y2="{high:.1f}"/>'
    kinds = ("dot", *(["apart"] if point.apart else []), *(["hollow"] if point.ends is None else []))
    yield f'<circle class="{" ".join(kinds)}" cx="{x}" cy="{_TOP + _height(column, point.value or 0.0):.1f}" r="3"/>'


def _height(column: Column, value: float) -> float:
    """Returns how far below the top of a line's panel a number is, in pixels."""
    return _LINE * (1 - column.axis.share(value))


# --- parts ------------------------------------------------------------------------------------------------------


def _at(axis: Axis, value: float) -> str:
    return f"{100 * axis.share(value):.3f}%"


def _down(axis: Axis, top: int, foot: int) -> Iterator[str]:
    """Draws the ticks of a horizontal axis as lines, with their labels below."""
    for tick, _ in axis.ticks:
        x = _at(axis, tick)
        yield f'<line class="grid{" zero" if tick == 0 else ""}" x1="{x}" x2="{x}" y1="{top}" y2="{foot}"/>'
    yield from _tick_texts(axis, foot + 17)


def _tick_texts(axis: Axis, y: int) -> Iterator[str]:
    for tick, label in axis.ticks:
        share = axis.share(tick)
        yield _text("tick", _at(axis, tick), y, label, "start" if share < 0.06 else "end" if share > 0.94 else "middle")


def _text(kind: str, x: int | str, y: int | str, text: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{_escaped(text)}</text>'


def _rect(kind: str, axis: Axis, first: float, last: float, top: int) -> str:
    wide = max(100 * (axis.share(last) - axis.share(first)), 0.4)
    return f'<rect class="{kind}" x="{_at(axis, first)}" y="{top}" width="{wide:.3f}%" height="10"/>'


def _summary(column: Column, panel: Panel) -> str:
    named = f"{column.name}, {panel.title}" if panel.title else column.name
    return _spoken(f"{named}, with margins. " + "; ".join(f"{each.label}: {each.text}" for each in panel.points))


def _spoken(text: str) -> str:
    return f"<title>{_escaped(text[:_SPOKEN])}</title>"


def _escaped(text: str) -> str:
    return escape(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def _short(label: str, letters: int = _LETTERS) -> str:
    return label if len(label) <= letters else label[: letters - 1] + "…"


def _svg(kind: str, height: int, parts: Sequence[str]) -> str:
    return f'<svg class="chart {kind}" role="img" width="100%" height="{height}">{"".join(parts)}</svg>'
