"""Charts of answers as SVG: one panel for each noisy column, with error bars. No script, and no styles of their own.

Places along the axis are percentages, so that a chart fits any width while its letters keep their size. Colours come from the
page's style sheet. The table beside the chart has the same numbers, for those who cannot see it.

    bars    one row for each group: its label, its number, a bar from zero (counts) or a dot, and the whisker of its margin
    line    ordered keys, such as months: a line through the numbers, and the band of their margins
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

MOST = 40  # rows of a chart
PANELS = 4
_ROW, _TOP, _AXIS = 40, 6, 26  # heights in pixels
_LINE = 180  # height of a line chart
_LONG = 8  # ordered keys from this many on are drawn as a line
_TICKS = 4


@dataclass(frozen=True)
class Panel:
    """One noisy column: a label, a number, its margin and its text for each row."""

    name: str
    labels: tuple[str, ...]
    values: tuple[float | None, ...]
    margins: tuple[float | None, ...]
    texts: tuple[str, ...]
    from_zero: bool
    places: tuple[float, ...] | None  # of ordered keys along the axis


def charts(answer: Mapping[str, Any]) -> list[tuple[str, Markup]]:
    """Returns the charts of an answer, as /v1/ask returns it: the name of each noisy column, and its picture."""
    return [(panel.name, _line(panel) if panel.places else _bars(panel)) for panel in _panels(answer)]


def _panels(answer: Mapping[str, Any]) -> Iterator[Panel]:
    columns, rows, cells = answer["columns"], answer["rows"][:MOST], answer["cells"][:MOST]
    noisy = [name for name in columns if name in answer["margins"]]
    keys = [place for place, name in enumerate(columns) if name not in answer["margins"] and name not in answer["ranks"]]
    labels = tuple(", ".join(row[place] for place in keys) or "all" for row in cells)
    places = _ordered([row[keys[0]] for row in rows], answer["kinds"][keys[0]]) if len(keys) == 1 else None
    for name in noisy[:PANELS]:
        place = columns.index(name)
        values = tuple(_number(row[place]) for row in rows)
        if not any(value is not None for value in values):
            continue
        margins = tuple(_number(each) for each in answer["margins"][name][:MOST])
        texts = tuple(row[place] for row in cells)
        counted = answer["kinds"][place] == "int"
        whole = places if all(value is not None for value in values) else None
        yield Panel(name, labels, values, margins, texts, counted, whole)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or abs(value) > 1e300:
        return None
    return float(value)


def _ordered(keys: Sequence[Any], kind: str) -> tuple[float, ...] | None:
    """Returns the places of many keys that rise along an axis; None for others."""
    if len(keys) < _LONG or kind not in ("int", "real", "date", "timestamp") or None in keys:
        return None
    if kind in ("date", "timestamp"):
        found = [datetime.datetime.fromisoformat(key).timestamp() for key in keys]
    else:
        found = [float(key) for key in keys]
    return tuple(found) if all(a < b for a, b in itertools.pairwise(found)) else None


# --- the axis ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Axis:
    low: float
    high: float
    ticks: tuple[float, ...]

    @classmethod
    def over(cls, panel: Panel) -> Axis:
        """Returns an axis that holds every number and its margin, with round ticks."""
        pairs = [(v, m or 0.0) for v, m in zip(panel.values, panel.margins, strict=True) if v is not None]
        low, high = min(v - m for v, m in pairs), max(v + m for v, m in pairs)
        if panel.from_zero or 0 < low < high / 3:
            low, high = min(low, 0.0), max(high, 0.0)
        if low == high:
            low, high = low - 1, high + 1
        step = _round_step((high - low) / _TICKS)
        first, last = math.floor(low / step), math.ceil(high / step)
        ticks = tuple(place * step for place in range(first, last + 1))
        return cls(ticks[0], ticks[-1], ticks)

    def share(self, value: float) -> float:
        return (value - self.low) / (self.high - self.low)

    def at(self, value: float) -> str:
        return f"{100 * min(max(self.share(value), 0.0), 1.0):.3f}%"


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= least * 0.999)


def show_tick(value: float) -> str:
    """Shows a number of an axis briefly.

    >>> show_tick(0), show_tick(2500), show_tick(1200000), show_tick(72.5), show_tick(-0.05)
    ('0', '2,500', '1.2 M', '72.5', '-0.05')
    """
    if abs(value) >= 1e15:
        return f"{value:.2g}"
    for size, sign in ((1e9, " G"), (1e6, " M")):
        if abs(value) >= size:
            return f"{value / size:,.4g}{sign}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


# --- bars -------------------------------------------------------------------------------------------------------


def _bars(panel: Panel) -> Markup:
    axis = Axis.over(panel)
    foot = _TOP + _ROW * len(panel.values)
    parts = [_title(panel)]
    for tick in axis.ticks:
        x = axis.at(tick)
        parts.append(f'<line class="grid{" zero" if tick == 0 else ""}" x1="{x}" x2="{x}" y1="{_TOP}" y2="{foot}"/>')
    parts += _tick_texts(axis, foot + 17)
    for place in range(len(panel.values)):
        parts += _bar(panel, axis, place)
    return _svg("bars", foot + _AXIS, parts)


def _bar(panel: Panel, axis: Axis, place: int) -> list[str]:
    top = _TOP + _ROW * place
    value, margin, middle = panel.values[place], panel.margins[place], top + 27
    parts = [f'<text class="label" x="0" y="{top + 14}">{escape(_short(panel.labels[place]))}</text>']
    parts.append(f'<text class="value" x="100%" y="{top + 14}" text-anchor="end">{escape(panel.texts[place])}</text>')
    if value is None:
        return parts
    is_bar = axis.low <= 0 <= axis.high
    if is_bar:
        left, right = sorted((axis.share(0), axis.share(value)))
        wide = f"{100 * (right - left):.3f}%"
        parts.append(f'<rect class="bar" x="{100 * left:.3f}%" y="{middle - 6}" width="{wide}" height="12" rx="2"/>')
    if margin is not None:
        a, b = axis.at(value - margin), axis.at(value + margin)
        parts.append(f'<line class="whisker" x1="{a}" x2="{b}" y1="{middle}" y2="{middle}"/>')
        parts += [f'<line class="whisker" x1="{x}" x2="{x}" y1="{middle - 4}" y2="{middle + 4}"/>' for x in (a, b)]
    if margin is None or not is_bar:
        hollow = " hollow" if margin is None else ""  # no margin can be stated
        parts.append(f'<circle class="dot{hollow}" cx="{axis.at(value)}" cy="{middle}" r="4"/>')
    return parts


# --- lines ------------------------------------------------------------------------------------------------------


def _line(panel: Panel) -> Markup:
    axis, places = Axis.over(panel), panel.places or ()
    first, last = places[0], places[-1]
    xs = [1000 * (place - first) / (last - first) for place in places]

    def height(value: float) -> float:
        return _LINE * (1 - axis.share(value))

    points = [(x, v, m or 0.0) for x, v, m in zip(xs, panel.values, panel.margins, strict=True) if v is not None]
    above = [f"{x:.1f},{height(v + m):.1f}" for x, v, m in points]
    below = [f"{x:.1f},{height(v - m):.1f}" for x, v, m in reversed(points)]
    through = " ".join(f"{x:.1f},{height(v):.1f}" for x, v, _ in points)
    parts = [_title(panel)]
    for tick in axis.ticks:
        y = _TOP + height(tick)
        parts.append(f'<line class="grid" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="0" y="{y - 3:.1f}">{show_tick(tick)}</text>')
    inner = f'<polygon class="band" points="{" ".join(above + below)}"/><polyline class="through" points="{through}"/>'
    box = f'x="0" y="{_TOP}" width="100%" height="{_LINE}" viewBox="0 0 1000 {_LINE}" preserveAspectRatio="none"'
    parts.append(f"<svg {box}>{inner}</svg>")
    foot = _TOP + _LINE + 17
    for x, anchor, label in (("0", "start", panel.labels[0]), ("100%", "end", panel.labels[-1])):
        parts.append(f'<text class="tick" x="{x}" y="{foot}" text-anchor="{anchor}">{escape(_short(label))}</text>')
    return _svg("line", _TOP + _LINE + _AXIS, parts)


# --- parts ------------------------------------------------------------------------------------------------------


def _tick_texts(axis: Axis, y: int) -> Iterator[str]:
    for place, tick in enumerate(axis.ticks):
        anchor = "start" if place == 0 else "end" if place == len(axis.ticks) - 1 else "middle"
        yield f'<text class="tick" x="{axis.at(tick)}" y="{y}" text-anchor="{anchor}">{show_tick(tick)}</text>'


def _title(panel: Panel) -> str:
    shown = "; ".join(f"{label}: {text}" for label, text in zip(panel.labels, panel.texts, strict=True))
    return f"<title>{escape(f'{panel.name} with margins. {shown}'[:500])}</title>"


def _short(label: str) -> str:
    return label if len(label) <= 34 else label[:33] + "…"


def _svg(kind: str, height: int, parts: Sequence[str]) -> Markup:
    return Markup(f'<svg class="chart {kind}" role="img" width="100%" height="{height}">{"".join(parts)}</svg>')
