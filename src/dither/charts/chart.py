"""Describes the picture of an answer: its panels, points, margins and axes, and what was left out.

How rows are arranged follows from the keys of GROUP BY, never from the noisy numbers:

    rows          a row for each group: its label, a dot, the bar of its margin
    line          eight or more dates or numbers as the only key: a line along the axis, and the band of margins
    multiples     two keys: a panel for each value of one of them, all on the same scale; inside, rows or a line by the other

A NULL among dates or numbers stands apart, behind the end of the line. Numbers without a margin are hollow.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dither.charts.axes import Axis, day_number, number_axis, time_axis, whole_axis

MOST_ROWS = 400  # with a label each
MOST_COLUMNS = 8
_LONG = 8  # ordered values from which on they are a line
_PANELS = 16  # the most panels of one column
_TIMES = ("date", "timestamp")


@dataclass(frozen=True)
class Point:
    """A number of one group: its label, its text in the table, and its margin if one can be stated.

    `along` is its place on the axis of a line, and None in rows. `apart` is a NULL beside a line. A group that the answer does
    not have is a point without a text.
    """

    label: str
    text: str
    value: float | None
    margin: float | None
    along: float | None = None
    apart: bool = False

    @property
    def ends(self) -> tuple[float, float] | None:
        """Where the bar of its margin ends."""
        if self.value is None or self.margin is None:
            return None
        return self.value - self.margin, self.value + self.margin


@dataclass(frozen=True)
class Panel:
    """Points side by side. `title` is the value of the outer key, if there is one."""

    title: str
    points: tuple[Point, ...]

    def segments(self) -> list[tuple[Point, ...]]:
        """Returns the stretches of a line: it breaks where there is no number or no margin."""
        joined = [point for point in self.points if not point.apart]
        groups = itertools.groupby(joined, key=lambda point: (point.value is not None, point.ends is not None))
        return [tuple(group) for (is_number, _), group in groups if is_number]


@dataclass(frozen=True)
class Column:
    """A noisy column: its panels, all on one axis. `bars`: numbers are also drawn as bars from zero."""

    name: str
    axis: Axis
    bars: bool
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Share:
    """What was left out, from 0 to 1. `estimate` is None if noise hides it; `high` if no upper end is known."""

    words: str
    estimate: float | None
    low: float
    high: float | None

    @property
    def text(self) -> str:
        """Its words, and whether there may be more than is drawn."""
        return f"{self.words[:60]}{'; there may be more' if self.high is None else ''}"

    @property
    def span(self) -> tuple[float, float | None, float]:
        """Where its bar begins, where its dot is, and where its bar ends, in percent."""
        first = 100 * max(self.low, 0.0)
        dot = None if self.estimate is None else 100 * min(self.estimate, 1.0)
        last = 100 * min(self.high, 1.0) if self.high is not None else first if dot is None else max(dot, first)
        return first, dot, last


@dataclass(frozen=True)
class Chart:
    """The picture of an answer. `along` is the axis of lines, None for rows; `inner` and `outer` name the keys.

    `cut` says what is not drawn because there is too much.
    """

    columns: tuple[Column, ...]
    along: Axis | None
    inner: str
    outer: str
    shares: tuple[Share, ...]
    warnings: tuple[str, ...]
    caption: str
    cut: str


def chart_of(answer: Mapping[str, Any]) -> Chart:
    """Describes the picture of an answer, given its JSON fields (docs/json.md) with `notes` and the table's `cells`."""
    names, noisy = answer["columns"], [name for name in answer["columns"] if name in answer["margins"]]
    keys = [_key(answer, name) for name in names if name not in answer["margins"] and name not in answer["ranks"]]
    plan = arrange(keys, len(answer["rows"]))
    drawn = [name for name in noisy if any(number(value) is not None for value in _values(answer, name))]
    seen = [each for each in answer["left_out"] if each.get("seen")]
    warned = [*([answer["warning"]] if answer["warning"] else []), *(each["text"] for each in seen)]
    notes = "; ".join(each for each in answer["notes"] if each not in warned)
    return Chart(
        tuple(_column(answer, name, plan) for name in drawn[:MOST_COLUMNS]),
        plan.axis,
        plan.inner,
        plan.outer,
        tuple(_share(each) for each in seen if each["kind"] != "amount clipped"),
        tuple(warned),
        notes,
        ", ".join(filter(None, [plan.cut, _first(MOST_COLUMNS, len(drawn), "columns")])),
    )


def _first(most: int, found: int, what: str) -> str:
    return f"the first {most} of {found} {what}" if found > most else ""


def _share(each: Mapping[str, Any]) -> Share:
    known = each["beyond"] is None
    return Share(each["title"], None if each["hidden"] else each["estimate"], each["low"], each["high"] if known else None)


# --- how groups are arranged ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Key:
    """A key column: its name, its values and how they are shown. `places` are those along an axis, if the kind has an order."""

    name: str
    labels: tuple[str, ...]
    places: tuple[float | None, ...] | None
    kind: str = "text"

    @property
    def distinct(self) -> tuple[str, ...]:
        """The labels, each once, in their order."""
        return tuple(dict.fromkeys(self.labels))

    @property
    def ordered(self) -> bool:
        """Whether it is drawn along an axis: many dates or numbers."""
        return self.places is not None and len(set(self.places) - {None}) >= _LONG

    def axis(self) -> tuple[Axis, float | None]:
        """Returns its axis, and the place of NULL on it."""
        places = [place for place in self.places or () if place is not None]
        if self.kind in _TIMES:
            axis = time_axis(places)
        elif self.kind == "int":
            axis = whole_axis(min(places), max(places))
        else:
            axis = number_axis(min(places), max(places), zero=False)
        return axis.longer("NULL") if None in (self.places or ()) else (axis, None)


@dataclass(frozen=True)
class Arrangement:
    """How groups are drawn: the rows of each panel by its title (None: a group that is missing), and the axis of lines."""

    panels: Mapping[str, tuple[int | None, ...]]
    labels: tuple[str, ...]  # of a panel's points, in its order
    along: Key | None = None
    inner: str = ""
    outer: str = ""
    cut: str = ""

    @property
    def axis(self) -> Axis | None:
        return self.along.axis()[0] if self.along else None


def arrange(keys: Sequence[Key], rows: int) -> Arrangement:
    """Decides how to draw groups with these keys."""
    every = tuple(range(rows))
    if len(keys) == 1 and keys[0].ordered and _rises(keys[0].places or ()):
        return Arrangement({"": every}, keys[0].labels, keys[0], keys[0].name)
    if len(keys) == 2 and len(set(zip(keys[0].labels, keys[1].labels, strict=True))) == rows:
        outer, inner = _outer(keys[0], keys[1])
        if 1 < len(outer.distinct) <= _PANELS and 1 < len(inner.distinct) <= MOST_ROWS:
            return _multiples(outer, inner)
    labels = tuple(", ".join(each) for each in zip(*(key.labels for key in keys), strict=True)) if keys else ("all",) * rows
    shown, cut = {"": every[:MOST_ROWS]}, _first(MOST_ROWS, rows, "rows")
    return Arrangement(shown, labels[:MOST_ROWS], inner=", ".join(key.name for key in keys), cut=cut)


def _multiples(outer: Key, inner: Key) -> Arrangement:
    """Returns a panel for each value of the outer key. All of them have a place for each value of the inner one."""
    rows = {pair: row for row, pair in enumerate(zip(outer.labels, inner.labels, strict=True))}
    if not inner.ordered:
        labels = inner.distinct
        panels = {each: tuple(rows.get((each, label)) for label in labels) for each in outer.distinct}
        return Arrangement(panels, labels, None, inner.name, outer.name)
    places = dict(zip(inner.labels, inner.places or (), strict=True))
    labels = tuple(sorted(inner.distinct, key=lambda label: (places[label] is None, places[label] or 0.0)))
    found = {each: tuple(rows[each, label] for label in labels if (each, label) in rows) for each in outer.distinct}
    return Arrangement(found, labels, inner, inner.name, outer.name)


def _outer(first: Key, second: Key) -> tuple[Key, Key]:
    """Returns which of two keys has a panel for each value: not the one with an order, else the one with fewer values."""
    if first.ordered != second.ordered:
        return (second, first) if first.ordered else (first, second)
    return (second, first) if len(second.distinct) < len(first.distinct) else (first, second)


def _rises(places: Sequence[float | None]) -> bool:
    """Whether values rise; one NULL may stand anywhere."""
    found = [place for place in places if place is not None]
    return len(places) - len(found) <= 1 and all(a < b for a, b in itertools.pairwise(found))


# --- what is read from an answer --------------------------------------------------------------------------------


def _values(answer: Mapping[str, Any], name: str) -> list[Any]:
    place = answer["columns"].index(name)
    return [row[place] for row in answer["rows"]]


def _texts(answer: Mapping[str, Any], name: str) -> tuple[str, ...]:
    place = answer["columns"].index(name)
    return tuple(row[place] for row in answer["cells"])


def _key(answer: Mapping[str, Any], name: str) -> Key:
    kind, values = answer["kinds"][answer["columns"].index(name)], _values(answer, name)
    places: list[float | None] | None = None
    if kind in _TIMES:
        places = [None if value is None else day_number(value) for value in values]
    elif kind in ("int", "real"):
        places = [number(value) for value in values]
    return Key(name, _texts(answer, name), None if places is None else tuple(places), kind)


def _column(answer: Mapping[str, Any], name: str, plan: Arrangement) -> Column:
    values, margins, texts = _values(answer, name), answer["margins"][name], _texts(answer, name)
    null = plan.along.axis()[1] if plan.along else None

    def point(row: int | None, label: str) -> Point:
        if row is None:
            return Point(label, "", None, None)
        value, margin = number(values[row]), number(margins[row])
        if plan.along is None or plan.along.places is None:
            return Point(label, texts[row], value, margin)
        place = plan.along.places[row]
        return Point(plan.along.labels[row], texts[row], value, margin, null if place is None else place, place is None)

    panels = tuple(
        Panel(title, tuple(point(row, label) for row, label in zip(rows, plan.labels, strict=False)))
        for title, rows in plan.panels.items()
    )
    shown = [each for panel in panels for each in panel.points if each.value is not None]
    ends = [end for each in shown for end in each.ends or (each.value or 0.0,)]
    counted = plan.along is None and answer["kinds"][answer["columns"].index(name)] == "int"
    axis = number_axis(min(ends, default=0.0), max(ends, default=0.0), zero=counted)
    return Column(name, axis, plan.along is None and axis.low <= 0 <= axis.high, panels)


def number(value: Any) -> float | None:
    """Returns a value that can be drawn; None for others."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value or abs(value) >= 1e300:
        return None
    return float(value)
