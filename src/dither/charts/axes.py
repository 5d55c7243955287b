"""The ends and ticks of an axis: round numbers, or the calendar's steps.

Times are days since 1970, as in matplotlib. Ticks are few, so that their labels fit a narrow panel.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_TICKS = 4  # about as many steps as an axis of numbers has
_MOST_TIMES = 4  # the most ticks of an axis of times
_EPOCH = datetime.datetime(1970, 1, 1)
_UNITS = ((1e9, " G"), (1e6, " M"))
_MONTHS = (1, 3, 6, *(12 * years for years in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)))
_DAYS = (1, 2, 7, 14)
_SECONDS = (1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10800, 21600, 43200)
_DAY = 86400


@dataclass(frozen=True)
class Axis:
    """The numbers at both ends of an axis, and its ticks with their labels."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]

    def share(self, value: float) -> float:
        """Returns how far along the axis a value is, from 0 to 1."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def longer(self, label: str) -> tuple[Axis, float]:
        """Returns the axis with a place for one more value behind its end, and that place."""
        place = self.high + (self.high - self.low) / 10
        return Axis(self.low, place + (place - self.high) / 4, (*self.ticks, (place, label))), place


def number_axis(low: float, high: float, *, zero: bool) -> Axis:
    """Returns an axis that holds `low` and `high`, with round ticks. With `zero`, or if it is near, zero is on it.

    It ends at a tick, or, if that is more than half a step away, at the number itself.

    >>> [label for _, label in number_axis(3, 18, zero=True).ticks]
    ['0', '5', '10', '15', '20']
    >>> [label for _, label in number_axis(1_200_000, 1_900_000, zero=False).ticks]
    ['1.2 M', '1.4 M', '1.6 M', '1.8 M', '2.0 M']
    """
    if zero or 0 < low < high / 3 or 0 > high > low / 3:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-200):
        wide = max(abs(low), 1.0)
        low, high = low - wide / 2, high + wide / 2
    step = _round_step((high - low) / _TICKS)
    below, above = low - math.floor(low / step) * step > step / 2, math.ceil(high / step) * step - high > step / 2
    first, last = math.floor(low / step) + below, math.ceil(high / step) - above
    places = [place * step for place in range(first, last + 1)]
    size, sign = next((each for each in _UNITS if each[0] <= max(map(abs, places)) < 1e15), (1.0, ""))
    ticks = tuple((place, _show(place, step, size, sign)) for place in places)
    return Axis(min(low, places[0]), max(high, places[-1]), ticks)


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next((step * power for step in (1.0, 2.0, 2.5, 5.0) if step * power >= least * 0.999), 10 * power)


def _show(value: float, step: float, size: float, sign: str) -> str:
    """Shows a tick with the decimals that tell it from the next one."""
    if abs(value) >= 1e15 or step < 1e-6:
        return f"{value:.4g}"
    decimals = next(digits for digits in range(16) if abs(round(step / size, digits) - step / size) < 1e-9 * step / size)
    return f"{value / size:z,.{decimals}f}{sign if value else ''}"


def whole_axis(low: float, high: float) -> Axis:
    """Returns an axis along whole numbers, such as years or ages: without commas, and ticks at whole numbers only.

    >>> [label for _, label in whole_axis(2015, 2026).ticks]
    ['2015', '2020', '2025']
    """
    step = max(1, round(_round_step((high - low) / _TICKS)))
    places = range(math.ceil(low / step) * step, math.floor(high) + 1, step)
    return Axis(low, high, tuple((float(place), str(place) if abs(place) < 10**6 else f"{place:.3g}") for place in places))


# --- times ------------------------------------------------------------------------------------------------------


def day_number(text: str) -> float:
    """Returns a date or moment as days since 1970.

    >>> day_number("1970-01-02"), day_number("1970-01-01T06:00:00")
    (1.0, 0.25)
    """
    return (datetime.datetime.fromisoformat(text).replace(tzinfo=None) - _EPOCH) / datetime.timedelta(days=1)


def time_axis(days: Sequence[float]) -> Axis:
    """Returns an axis over times, with ticks where a year, month, day, hour, minute or second begins.

    >>> [label for _, label in time_axis([day_number(f"2026-{month:02}-01") for month in range(1, 13)]).ticks]
    ['Jan 2026', 'Apr', 'Jul', 'Oct']
    >>> [label for _, label in time_axis([day_number("2026-02-27"), day_number("2026-03-03")]).ticks]
    ['28 Feb 2026', '2 Mar']
    """
    low, high = min(days), max(days)
    found = next((ticks for ticks in _times(low, high) if len(ticks) <= _MOST_TIMES), [])
    moments = [moment for moment, _ in found]
    labels = [_moment(each, kind, before) for (each, kind), before in zip(found, [None, *moments], strict=False)]
    places = [(each - _EPOCH) / datetime.timedelta(days=1) for each in moments]
    return Axis(low, high, tuple(zip(places, labels, strict=True)))


def _times(low: float, high: float) -> Iterator[list[tuple[datetime.datetime, str]]]:
    """Yields ticks by ever larger steps: seconds to hours, days, months, years."""
    for step in _SECONDS:
        first, last = math.ceil(low * _DAY / step - 1e-6), math.floor(high * _DAY / step + 1e-6)
        if last - first < _MOST_TIMES:
            yield [(_EPOCH + datetime.timedelta(seconds=place * step), "second") for place in range(first, last + 1)]
    for step in _DAYS:
        offset = 4 if step in (7, 14) else 0  # weeks begin on Mondays
        first, last = math.ceil((low - offset) / step), math.floor((high - offset) / step)
        if last - first < _MOST_TIMES:
            yield [(_EPOCH + datetime.timedelta(days=offset + place * step), "day") for place in range(first, last + 1)]
    for months in _MONTHS:
        yield [(each, "month" if months < 12 else "year") for each in _months(low, high, months)]


def _months(low: float, high: float, step: int) -> list[datetime.datetime]:
    """Returns the first days of every `step`-th month; the year 0 begins the count."""
    first, last = (_EPOCH + datetime.timedelta(days=day) for day in (low, high))
    begin = first.year * 12 + first.month - 1
    places = range(math.ceil(begin / step) * step, last.year * 12 + last.month, step)
    found = [datetime.datetime(place // 12, place % 12 + 1, 1) for place in places if place >= 12]
    return [each for each in found if each >= first]


def _moment(each: datetime.datetime, kind: str, before: Any) -> str:
    """Shows a tick by what differs from the tick before it."""
    year = "" if before is not None and before.year == each.year else f" {each.year:04}"
    if kind == "year":
        return f"{each.year:04}"
    if kind == "month":
        return f"{each:%b}{year}"
    month = "" if before is not None and before.month == each.month and not year else f" {each:%b}{year}"
    if kind == "day":
        return f"{each.day}{month}"
    clock = f"{each:%H:%M:%S}" if each.second else f"{each:%H:%M}"
    return clock if before is not None and before.date() == each.date() else f"{each.day} {each:%b}{year} {clock}"
