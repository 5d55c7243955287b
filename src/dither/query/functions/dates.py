"""Date functions. Dates run from 0001-01-01 to 9999-12-31; timestamps have no zone. Bounds count days since 1970-01-01."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dither.query.functions.base import Bound, Facts, Function, any_nullable, fixed, negative

Day = datetime.date
UNITS = ("day", "week", "month", "quarter", "year")
_EPOCH = datetime.date(1970, 1, 1)
FIRST, LAST = (datetime.date.min - _EPOCH).days, (datetime.date.max - _EPOCH).days  # day numbers


def day(value: Day) -> Day:
    """Returns a date, or the date of a timestamp."""
    return value.date() if isinstance(value, datetime.datetime) else value


def day_number(value: Day) -> Fraction:
    """Returns the days since 1970-01-01 of a date or timestamp, with the time as a fraction.

    >>> day_number(datetime.date(1970, 1, 2)), day_number(datetime.datetime(1970, 1, 1, 12))
    (Fraction(1, 1), Fraction(1, 2))
    """
    whole = Fraction((day(value) - _EPOCH).days)
    if not isinstance(value, datetime.datetime):
        return whole
    past = value - datetime.datetime(value.year, value.month, value.day)
    return whole + Fraction(past // datetime.timedelta(microseconds=1), 86_400_000_000)


def from_day_number(number: Bound) -> Day | None:
    """Returns the date of a day number; None outside the calendar."""
    if number is None or not FIRST <= math.floor(number) <= LAST:
        return None
    return _EPOCH + datetime.timedelta(days=math.floor(number))


def date_trunc(unit: str, value: Day) -> Day | None:
    """Returns the first day of the day, ISO week, month, quarter or year of a value.

    >>> date_trunc("month", datetime.date(2024, 2, 29)), date_trunc("week", datetime.date(2024, 2, 29))
    (datetime.date(2024, 2, 1), datetime.date(2024, 2, 26))
    """
    date = day(value)
    if unit == "year":
        return date.replace(month=1, day=1)
    if unit == "quarter":
        return date.replace(month=(date.month - 1) // 3 * 3 + 1, day=1)
    if unit == "month":
        return date.replace(day=1)
    if unit == "week":  # 0001-01-01 is a Monday, so no week begins before the calendar
        return date - datetime.timedelta(days=date.weekday())
    return date


def days_between(first: Day, second: Day) -> int:
    """Returns the days from the first to the second; negative if the second is earlier."""
    return day(second).toordinal() - day(first).toordinal()


def _year(a: list[Facts]) -> Facts:
    low, high = from_day_number(a[0].low), from_day_number(a[0].high)
    interval = (None if low is None else Fraction(low.year), None if high is None else Fraction(high.year))
    return Facts("int", *interval, a[0].nullable, True, None, Fraction(1))


def _iso_year(a: list[Facts]) -> Facts:
    low, high = from_day_number(a[0].low), from_day_number(a[0].high)
    bottom = None if low is None else Fraction(low.isocalendar().year)
    top = None if high is None else Fraction(high.isocalendar().year)
    return Facts("int", bottom, top, a[0].nullable, True, None, Fraction(1))


def _truncated(a: list[Facts]) -> Facts:
    unit = str(a[0].values[0]) if a[0].values else "year"
    low, high = (_start(unit, end) for end in (a[1].low, a[1].high))
    return replace(a[1], kind="date", low=low, high=high, whole=False, values=None, step=None)


def _start(unit: str, place: Bound) -> Bound:
    """Returns the first day of the unit in which a day lies."""
    date = from_day_number(place)
    start = None if date is None or unit not in UNITS else date_trunc(unit, date)
    return None if start is None else day_number(start)


def _apart(a: list[Facts]) -> Facts:
    days = [tuple(None if end is None else Fraction(math.floor(end)) for end in (x.low, x.high)) for x in a]
    low, high = negative((days[0][0], days[0][1]))
    return Facts(
        "int",
        None if low is None or days[1][0] is None else low + days[1][0],
        None if high is None or days[1][1] is None else high + days[1][1],
        any_nullable(a),
        True,
        None,
        Fraction(1),
    )


def _bad_unit(constants: list[Any]) -> str | None:
    if constants[0] in UNITS:
        return None
    years = {"decade": 10, "century": 100}.get(str(constants[0]).lower())
    other = "" if years is None else f"; for the first year of a {constants[0]}, write FLOOR(YEAR(d) / {years}) * {years}"
    return f"its unit must be one of 'day', 'week', 'month', 'quarter' and 'year'{other}"


def _part(name: str, meaning: str, compute: Callable[[Any], int], low: int, high: int) -> Function:
    return Function(name, meaning, ("date",), compute, fixed("int", low, high), 1, 1)


def _time(name: str, meaning: str, compute: Callable[[Any], int], high: int) -> Function:
    return Function(name, meaning, ("timestamp",), compute, fixed("int", 0, high), 1, 1)


DATES = (
    Function("year", "the calendar year", ("date",), lambda x: x.year, _year, 1, 1),
    _part("month", "1 to 12", lambda x: x.month, 1, 12),
    _part("day", "the day of the month, 1 to 31", lambda x: x.day, 1, 31),
    _part("quarter", "1 to 4", lambda x: (x.month + 2) // 3, 1, 4),
    _part("weekday", "1 Monday to 7 Sunday", lambda x: x.isoweekday(), 1, 7),
    _part("dayofweek", "0 Sunday to 6 Saturday", lambda x: x.isoweekday() % 7, 0, 6),
    _part("dayofyear", "1 to 366", lambda x: x.timetuple().tm_yday, 1, 366),
    _part("week", "the ISO week, 1 to 53", lambda x: x.isocalendar().week, 1, 53),
    Function("isoyear", "the year of the ISO week", ("date",), lambda x: x.isocalendar().year, _iso_year, 1, 1),
    _time("hour", "0 to 23", lambda x: x.hour, 23),
    _time("minute", "0 to 59", lambda x: x.minute, 59),
    _time("second", "0 to 59, without fractions", lambda x: x.second, 59),
    Function(
        "date_trunc",
        "the first day of the unit the value lies in, as a date",
        ("text", "date"),
        date_trunc,
        _truncated,
        2,
        2,
        constants=(0,),
        refuse=_bad_unit,
    ),
    Function("days_between", "the days from the first to the second", ("date",), days_between, _apart, 2, 2),
)
