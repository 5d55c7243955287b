"""Chooses, for each column of an expression, a few values that stand for all of its values.

The result of an expression depends on a column only through the places where it is used. If these are comparisons with
constants or parts of a date, all values between two consecutive cuts give the same results, so one of them is enough:

    age < 18 OR age = 65         17, 18, 64, 65, 66           (whole numbers: the neighbours of each constant)
    YEAR(d) * 100 + MONTH(d)     the first day of each month, and the first day of the column
    income * 2                   every value: here the value itself counts

Bounds are made for clipping, and rows may lie outside (`Facts.clipped`). A comparison sees the value as it is, so a column
that is compared with constants may have any value of its kind; where its value counts, it is clipped to its bounds:

    CASE WHEN age > 20 THEN age ELSE 0 END, age between 10 and 20      0 and 20

Other comparisons of such columns (age > limit, age / 2 > 12) may be true or false, whatever the bounds.
"""

from __future__ import annotations

import bisect
import datetime
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from dither.query.functions.base import Cell, Facts, moment
from dither.query.functions.dates import date_trunc, day, day_number, from_day_number
from dither.query.functions.formats import units
from dither.query.functions.registry import literal
from dither.query.nodes import Call, Column, Expression, Literal

MOST_VALUES = 10_000  # the largest domain that is enumerated
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "in_list")
_PARTS = {
    "year": "year",
    "quarter": "quarter",
    "month": "month",
    "day": "day",
    "weekday": "day",
    "dayofweek": "day",
    "dayofyear": "day",
    "dayname": "day",
    "monthname": "month",
    "last_day": "month",
    "week": "week",
    "isoyear": "week",
    "hour": "hour",
    "to_date": "day",
}
_SHORTEST = {"year": 365, "quarter": 90, "month": 28, "week": 7, "day": 1}  # days
_EXACT = 2**53  # every smaller whole number is a double, so comparing as doubles is exact
_DAY, _TICK = datetime.timedelta(days=1), datetime.timedelta(microseconds=1)
_MIDNIGHT = datetime.datetime(1970, 1, 1)


@dataclass
class Use:
    """How an expression uses a column: by its value, compared with `cuts`, by calendar `units`."""

    value: bool = False
    cuts: list[Any] = field(default_factory=list)
    units: set[str] = field(default_factory=set)


def uses(expression: Expression) -> dict[str, Use]:
    """Returns how an expression uses each of its columns."""
    found: dict[str, Use] = {}
    _collect(expression, found)
    return found


def _collect(expression: Expression, found: dict[str, Use]) -> None:
    if isinstance(expression, Column):
        found.setdefault(expression.name, Use()).value = True
    if not isinstance(expression, Call):
        return
    inner = [part for part in expression.arguments if not isinstance(part, Literal)]
    constants = [literal(part.value) for part in expression.arguments if isinstance(part, Literal)]
    if len(inner) == 1 and isinstance(inner[0], Column):
        use = found.setdefault(inner[0].name, Use())
        if expression.name in _COMPARISONS:
            use.cuts += [constant for constant in constants if constant is not None]
        elif expression.name in _PARTS:
            use.units.add(_PARTS[expression.name])
        elif _by_units(expression, constants):
            use.units |= _by_units(expression, constants)
        elif expression.name != "is_null":
            use.value = True
        return
    for part in inner:
        _collect(part, found)


def _by_units(expression: Call, constants: list[Any]) -> set[str]:
    """Returns the calendar units on which a call depends by its constants; none if it depends on more."""
    if expression.name == "date_trunc":
        return {str(constants[0])}
    if expression.name == "strftime":
        found = units(str(constants[0]))
        return found if "" not in found else set()
    if expression.name == "date_diff" and constants[0] in ("day", "week", "month", "quarter", "year"):
        return {"day" if constants[0] == "week" else str(constants[0])}
    return set()


def representatives(facts: Facts, use: Use) -> tuple[Cell, ...] | None:
    """Returns values of a column that give every result of the expression, NULL if it may occur; None if they are too many."""
    chosen = _chosen(facts, use)
    if chosen is None:
        return None
    listed = None in (facts.values or ())
    known = tuple(value for value in chosen if value is not None)
    return (*known, None) if facts.nullable or listed else known


def _chosen(facts: Facts, use: Use) -> Iterable[Cell] | None:
    if facts.kind == "bool":
        return facts.values if facts.values is not None else (False, True)
    dates = facts.kind in ("date", "timestamp")
    if use.value or (use.units and not dates) or not _comparable(facts.kind, use.cuts):
        return _with_outside(facts, use)
    if use.units:
        return _class_starts(facts, use) if facts.values is None or facts.clipped else facts.values
    if facts.values is None or (facts.clipped and facts.kind != "text"):
        candidates = around(facts.kind, use.cuts)
        return candidates if facts.clipped or facts.kind == "text" else _inside(facts, candidates)
    return _neighbours([value for value in facts.values if value is not None], use.cuts)


def _with_outside(facts: Facts, use: Use) -> Iterable[Cell] | None:
    """Returns the values of a column, and those outside its bounds that its comparisons tell apart."""
    if facts.values is None or not _is_clipped(facts) or not use.cuts or not _comparable(facts.kind, use.cuts):
        return facts.values
    return [*facts.values, *(value for value in around("int", use.cuts) if not facts.low <= value <= facts.high)]


def _is_clipped(facts: Facts) -> bool:
    """Whether the column has whole numbers between bounds that rows may exceed."""
    return facts.clipped and facts.kind == "int" and facts.bounded


def clip_values(expression: Expression, scope: Mapping[str, Facts]) -> Expression:
    """Returns the expression with columns clipped to their bounds, except where they are compared with constants."""
    if isinstance(expression, Column) and _is_clipped(scope[expression.name]):
        low, high = scope[expression.name].low, scope[expression.name].high
        return Call("clamp", (expression, Literal(int(low or 0)), Literal(int(high or 0))))
    if not isinstance(expression, Call) or _compares_with_constants(expression):
        return expression
    return replace(expression, arguments=tuple(clip_values(part, scope) for part in expression.arguments))


def _compares_with_constants(expression: Call) -> bool:
    inner = [part for part in expression.arguments if not isinstance(part, Literal)]
    return expression.name in _COMPARISONS and len(inner) == 1 and isinstance(inner[0], Column)


def is_open(expression: Expression, scope: Mapping[str, Facts]) -> bool:
    """Whether this is a comparison whose result the bounds of its columns would decide, and rows outside would not."""
    if not isinstance(expression, Call) or expression.name not in _COMPARISONS or _compares_with_constants(expression):
        return False
    return any(scope[name].clipped for name in uses(expression))


def _comparable(kind: str, cuts: list[Any]) -> bool:
    """Whether all constants are of the column's family, and whole numbers are compared exactly."""
    if kind in ("int", "real"):
        return all(isinstance(cut, (int, float)) and abs(cut) < _EXACT for cut in cuts)
    if kind in ("date", "timestamp"):
        return all(isinstance(cut, datetime.date) for cut in cuts)
    return all(isinstance(cut, str) for cut in cuts)


def _neighbours(values: list[Any], cuts: list[Any]) -> set[Any]:
    """Returns, of sorted values, each cut itself and the last value before it; and the last value of all."""
    if not values:
        return set()
    ordered = sorted(values)
    chosen = {ordered[-1]}
    for cut in cuts:
        place = bisect.bisect_left(ordered, _like(ordered[0], cut))
        chosen.update(ordered[max(place - 1, 0) : place + 2])
    return chosen


def _like(value: Any, cut: Any) -> Any:
    """Returns a constant that can be compared with dates as it is with timestamps: a date stands for its midnight."""
    return day(cut) if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime) else cut


def around(kind: str, cuts: Iterable[Any]) -> list[Any]:
    """Returns each constant with the next value below and above, of a kind without bounds.

    >>> around("int", [18, 2.5]), around("text", ["b"]), around("real", [])
    ([17, 18, 19, 2, 3], ['', 'b', 'b\\x00'], [0.0])
    """
    found: dict[Any, None] = {}
    for cut in cuts:
        if kind == "int":
            below = math.ceil(cut) - 1
            found |= dict.fromkeys((below, *((below + 1,) if cut == below + 1 else ()), math.floor(cut) + 1))
        elif kind == "real":
            found |= dict.fromkeys((math.nextafter(cut, -math.inf), float(cut), math.nextafter(cut, math.inf)))
        elif kind == "text":
            found |= dict.fromkeys(("", cut, f"{cut}\0"))
        else:
            found |= dict.fromkeys(_days_around(kind, cut))
    first = {"int": 0, "real": 0.0, "text": "", "date": day(_MIDNIGHT)}
    return list(found) or [first.get(kind, _MIDNIGHT)]


def _days_around(kind: str, cut: datetime.date) -> list[datetime.date]:
    value: datetime.date = day(cut) if kind == "date" else moment(cut)
    step, lowest, highest = (
        (_DAY, datetime.date.min, datetime.date.max)
        if kind == "date"
        else (_TICK, datetime.datetime.min, datetime.datetime.max)
    )
    below = [value - step] if value > lowest else []
    return [*below, value, *([value + step] if value < highest else [])]


def _inside(facts: Facts, candidates: list[Any]) -> list[Any]:
    """Returns the candidates between bounds that no row exceeds, and the ends."""
    low, high = facts.low, facts.high
    ends = [_value(facts.kind, end) for end in (low, high) if end is not None]
    places = [(value, Fraction(value) if isinstance(value, (int, float)) else day_number(value)) for value in candidates]
    inside = (value for value, place in places if (low is None or low <= place) and (high is None or place <= high))
    return [*ends, *inside]


def _value(kind: str, place: Fraction) -> Any:
    if kind in ("int", "real"):
        return math.floor(place) if kind == "int" else float(place)
    return from_day_number(place) if kind == "date" else _instant(place)


def _instant(place: Fraction) -> datetime.datetime:
    """Returns the timestamp of a day number."""
    return _MIDNIGHT + datetime.timedelta(microseconds=math.floor(place * 86_400_000_000))


# --- calendars --------------------------------------------------------------------------------------------------


def _class_starts(facts: Facts, use: Use) -> list[Any] | None:
    """Returns the first value of each run of dates or timestamps that are alike in all units and comparisons."""
    first, last = from_day_number(facts.low), from_day_number(facts.high)
    if first is None or last is None or facts.low is None or facts.high is None:
        return None
    found: set[Any] = set()
    for unit in use.units - {"hour"}:
        starts = unit_starts(unit, first, last)
        if starts is None:
            return None
        found.update(starts)
    if facts.kind == "date":
        found |= {near for cut in use.cuts for near in _days_around("date", cut)}
        return [value for value in found if first <= value <= last] + [first]
    return _moments(facts, use, {moment(value) for value in found})


def _moments(facts: Facts, use: Use, found: set[datetime.datetime]) -> list[Any] | None:
    low, high = _instant(facts.low or Fraction(0)), _instant(facts.high or Fraction(0))
    if "hour" in use.units:
        alone = use.units == {"hour"} and not use.cuts  # the hours of one day are those of every day
        hours = math.ceil((high - low) / datetime.timedelta(hours=1)) + 1
        if hours > MOST_VALUES and not alone:
            return None
        start = low.replace(minute=0, second=0, microsecond=0)
        found |= {start + datetime.timedelta(hours=n) for n in range(min(hours, 25) if alone else hours)}
    found |= {near for cut in use.cuts for near in _days_around("timestamp", cut)}  # type: ignore[misc]
    return [low, *(value for value in found if low < value <= high)]


def unit_starts(unit: str, first: datetime.date, last: datetime.date) -> list[datetime.date] | None:
    """Returns the first day of each calendar unit that has a day from `first` to `last`; None if they are too many.

    >>> unit_starts("month", datetime.date(2024, 1, 31), datetime.date(2024, 3, 1))
    [datetime.date(2024, 1, 1), datetime.date(2024, 2, 1), datetime.date(2024, 3, 1)]
    """
    if (last - first).days // _SHORTEST[unit] > MOST_VALUES:
        return None
    starts = []
    start = date_trunc(unit, first)
    while start is not None and start <= last:
        starts.append(start)
        start = _next(unit, start)
    return starts if len(starts) <= MOST_VALUES else None


def _next(unit: str, start: datetime.date) -> datetime.date | None:
    """Returns the start of the next unit; None after the calendar."""
    if unit in ("day", "week"):
        days = 1 if unit == "day" else 7
        return start + datetime.timedelta(days=days) if datetime.date.max - start >= datetime.timedelta(days=days) else None
    months = start.year * 12 + start.month - 1 + {"month": 1, "quarter": 3, "year": 12}[unit]
    return datetime.date(months // 12, months % 12 + 1, 1) if months // 12 <= datetime.MAXYEAR else None


def _has_open(expression: Expression, scope: Mapping[str, Facts]) -> bool:
    parts = expression.arguments if isinstance(expression, Call) else ()
    return is_open(expression, scope) or any(_has_open(part, scope) for part in parts)


def combinations(expression: Expression, scope: Mapping[str, Facts]) -> dict[str, tuple[Cell, ...]] | None:
    """Returns the representatives of each column; None if a column has no finite ones, or if all together are too many."""
    if _has_open(expression, scope):
        return None
    found = {}
    count = 1
    for name, use in sorted(uses(expression).items()):
        chosen = representatives(scope[name], use)
        if chosen is None:
            return None
        found[name] = chosen
        count *= len(chosen)
        if count > MOST_VALUES:
            return None
    return found
