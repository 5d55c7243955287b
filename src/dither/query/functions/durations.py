"""Arithmetic on dates: moving by days, months and seconds, differences in calendar units, dates made of numbers.

A result outside the calendar (years 1 to 9999) is NULL. A month later is the same day of the next month, or its last day:
a month after January 31 is the end of February, as in DuckDB.
"""

from __future__ import annotations

import calendar
import datetime
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dither.query.functions.base import Bound, Facts, Function, any_nullable, moment, plus
from dither.query.functions.dates import FIRST, LAST, Day, day, day_number, days_between, from_day_number

MOST_MONTHS = 12 * 9999
MOST_DAYS = LAST - FIRST
SECONDS = {"hour": 3600, "minute": 60, "second": 1}
DIFFERENCES = ("year", "quarter", "month", "week", "day", *SECONDS)
_MIDNIGHT = datetime.datetime(1970, 1, 1)


def add_days(value: Day, days: int) -> Day | None:
    """Returns the date or timestamp so many days later.

    >>> add_days(datetime.date(2024, 2, 28), 2), add_days(datetime.date.max, 1)
    (datetime.date(2024, 3, 1), None)
    """
    try:
        return value + datetime.timedelta(days=days)
    except OverflowError:
        return None


def add_months(value: Day, months: int) -> Day | None:
    """Returns the date or timestamp so many months later, at most the last day of that month.

    >>> add_months(datetime.date(2024, 1, 31), 1), add_months(datetime.date(2024, 2, 29), -12)
    (datetime.date(2024, 2, 29), datetime.date(2023, 2, 28))
    """
    year, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    if not datetime.MINYEAR <= year <= datetime.MAXYEAR:
        return None
    return value.replace(year=year, month=month + 1, day=min(value.day, calendar.monthrange(year, month + 1)[1]))


def add_seconds(value: Day, seconds: int) -> datetime.datetime | None:
    """Returns the timestamp so many seconds later; a date counts from its midnight."""
    try:
        return moment(value) + datetime.timedelta(seconds=seconds)
    except OverflowError:
        return None


def date_diff(unit: str, first: Day, second: Day) -> int:
    """Returns how many times a new unit begins between two dates; for weeks, the days divided by 7, cut towards zero.

    >>> date_diff("month", datetime.date(2024, 1, 31), datetime.date(2024, 2, 1))
    1
    """
    if unit in SECONDS:
        width = datetime.timedelta(seconds=SECONDS[unit])
        return (moment(second) - _MIDNIGHT) // width - (moment(first) - _MIDNIGHT) // width
    if unit in ("day", "week"):
        days = days_between(first, second)
        return days if unit == "day" else int(Fraction(days, 7))
    months = {"month": 1, "quarter": 3, "year": 12}[unit]
    return (second.year * 12 + second.month - 1) // months - (first.year * 12 + first.month - 1) // months


def make_date(year: int, month: int, number: int) -> Day | None:
    """Returns the date of a year, a month and a day of the month; NULL if there is no such day."""
    try:
        return datetime.date(year, month, number)
    except (ValueError, OverflowError):
        return None


def last_day(value: Day) -> Day:
    """Returns the last day of the month."""
    date = day(value)
    return date.replace(day=calendar.monthrange(date.year, date.month)[1])


# --- facts --------------------------------------------------------------------------------------------------------


def _in_calendar(facts: Facts, low: Bound, high: Bound) -> Facts:
    """Returns the facts of a moved date: NULL where it may leave the calendar."""
    inside = low is not None and high is not None and low >= FIRST and high < LAST + 1
    low, high = (None if end is None or not FIRST <= end < LAST + 1 else end for end in (low, high))
    return Facts(facts.kind, low, high, facts.nullable or not inside)


def _days(a: list[Facts]) -> Facts:
    return _in_calendar(replace(a[0], nullable=any_nullable(a)), *plus((a[0].low, a[0].high), (a[1].low, a[1].high)))


def _months(a: list[Facts]) -> Facts:
    months = int(a[1].low or 0)
    ends = [None if end is None else _moved(end, months) for end in (a[0].low, a[0].high)]
    return _in_calendar(a[0], ends[0], ends[1])


def _moved(end: Fraction, months: int) -> Bound:
    """Returns the day number so many months later, with the same time of day."""
    date = from_day_number(end)
    later = None if date is None else add_months(date, months)
    return None if later is None else day_number(later) + end - math.floor(end)


def _seconds(a: list[Facts]) -> Facts:
    days = (a[1].low or Fraction(0)) / 86_400
    ends = [None if end is None else end + days for end in (a[0].low, a[0].high)]
    return _in_calendar(replace(a[0], kind="timestamp"), ends[0], ends[1])


def _difference(a: list[Facts]) -> Facts:
    """The difference grows with the second date and falls with the first."""
    unit, first, second = (a[0].values or ("day",))[0], a[1], a[2]
    interval = (_extreme(str(unit), first.high, second.low, -1), _extreme(str(unit), first.low, second.high, 1))
    return Facts("int", *interval, any_nullable(a[1:]), True, None, Fraction(1))


def _extreme(unit: str, first: Bound, second: Bound, way: int) -> Bound:
    """Returns the difference of two ends; in units below a day a day more, because these are whole days."""
    ends = [from_day_number(end) for end in (first, second)]
    if ends[0] is None or ends[1] is None or unit not in DIFFERENCES:
        return None
    slack = way * 86_400 // SECONDS[unit] if unit in SECONDS else 0
    return Fraction(date_diff(unit, ends[0], ends[1]) + slack)


def _made(a: list[Facts]) -> Facts:
    year = a[0]
    low = None if year.low is None else make_date(max(math.floor(year.low), 1), 1, 1)
    high = None if year.high is None else make_date(min(math.floor(year.high), datetime.MAXYEAR), 12, 31)
    ends = (None if low is None else day_number(low), None if high is None else day_number(high))
    sure = year.lies_within(1, datetime.MAXYEAR) and a[1].lies_within(1, 12) and a[2].lies_within(1, 28)
    return Facts("date", *ends, any_nullable(a) or not sure)


def _last(a: list[Facts]) -> Facts:
    low, high = from_day_number(a[0].low), from_day_number(a[0].high)
    bottom = None if low is None else day_number(last_day(low))
    return Facts("date", bottom, None if high is None else day_number(last_day(high)), a[0].nullable)


# --- constants ----------------------------------------------------------------------------------------------------


def _at_most(most: int, what: str) -> Callable[[list[Any]], str | None]:
    def refuse(constants: list[Any]) -> str | None:
        number = constants[1]
        right = isinstance(number, int) and not isinstance(number, bool) and abs(number) <= most
        return None if right else f"its {what} must be a whole number of at most {most:,}"

    return refuse


def _bad_unit(constants: list[Any]) -> str | None:
    listed = ", ".join(f"'{unit}'" for unit in DIFFERENCES[:-1])
    return None if constants[0] in DIFFERENCES else f"its unit must be one of {listed} and '{DIFFERENCES[-1]}'"


DURATIONS = (
    Function("add_days", "so many days later", ("date", "whole"), add_days, _days, 2, 2),
    Function(
        "add_months",
        "so many months later, at most the last day of that month",
        ("date", "whole"),
        add_months,
        _months,
        2,
        2,
        constants=(1,),
        refuse=_at_most(MOST_MONTHS, "months"),
    ),
    Function(
        "add_seconds",
        "so many seconds later, as a timestamp",
        ("date", "whole"),
        add_seconds,
        _seconds,
        2,
        2,
        constants=(1,),
        refuse=_at_most(MOST_DAYS * 86_400, "seconds"),
    ),
    Function(
        "date_diff",
        "how many units begin from the first to the second",
        ("text", "date"),
        date_diff,
        _difference,
        3,
        3,
        constants=(0,),
        refuse=_bad_unit,
    ),
    Function("make_date", "the date of a year, a month and a day", ("whole",), make_date, _made, 3, 3),
    Function("last_day", "the last day of the month", ("date",), last_day, _last, 1, 1),
)
