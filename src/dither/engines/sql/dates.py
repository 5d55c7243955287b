"""Prints the functions of dates that need more than a template: results outside the calendar are NULL, and nothing raises."""

from __future__ import annotations

import datetime

from dither.engines.sql.dialect import Printer, Sql, Stages, build
from dither.query.functions.durations import MOST_DAYS
from dither.query.functions.formats import format_pattern, has_time

_ENDS = {
    "date": (datetime.date.min, datetime.date.max),
    "timestamp": (datetime.datetime.min, datetime.datetime.max),
}


def _in_calendar(stages: Stages, x: Sql, kind: str) -> Sql:
    """Returns a date or timestamp; NULL outside the years 1 to 9999."""
    found = stages.atom(x)
    first, last = (stages.dialect.literal(end).text for end in _ENDS[kind])
    return build(f"(CASE WHEN {found.text} BETWEEN {first} AND {last} THEN {found.text} END)", kind, found)


def _moved(name: str, kind: str = "") -> Printer:
    """Returns a printer that moves a date by the dialect's template. `kind`: of the result; empty: that of the date."""

    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        x, n = arguments[0], stages.atom(arguments[1])
        result = kind or x.kind
        x = stages.dialect.as_kind(x, result)
        if name == "add_days" and isinstance(n.constant, int) and abs(n.constant) > MOST_DAYS:
            return build(f"(CASE WHEN FALSE THEN {x.text} END)", result, x, n)  # outside the calendar, whatever the date
        later = stages.dialect.cast(stages.dialect.templates[name].format(x.text, n.text), "timestamp", result)
        if n.constant is None:
            later = f"(CASE WHEN {n.text} BETWEEN {-MOST_DAYS} AND {MOST_DAYS} THEN {later} END)"
        return _in_calendar(stages, build(later, result, x, n), result)

    return printer


def _strptime(stages: Stages, arguments: list[Sql]) -> Sql:
    text, format = stages.atom(arguments[0]), str(arguments[1].constant)
    kind = "timestamp" if has_time(format) else "date"
    read = stages.dialect.templates["strptime"].format(text.text, arguments[1].text)
    fits = stages.dialect.fits(text.text, format_pattern(format))
    cast = stages.dialect.cast(read, "timestamp", kind)
    return _in_calendar(stages, build(f"(CASE WHEN {fits} THEN {cast} END)", kind, text), kind)


def _make_date(stages: Stages, arguments: list[Sql]) -> Sql:
    """Reads the date from a text, because a function of numbers raises for the 30th of February."""
    year, month, day = (stages.atom(x) for x in arguments)
    inside = f"{year.text} BETWEEN 1 AND 9999 AND {month.text} BETWEEN 1 AND 12 AND {day.text} BETWEEN 1 AND 31"
    digits = stages.dialect.templates["make_date"].format(year.text, month.text, day.text)
    return build(f"(CASE WHEN {inside} THEN {stages.dialect.read(digits, 'date')} END)", "date", year, month, day)


DATES: dict[str, Printer] = {
    "add_days": _moved("add_days"),
    "add_months": _moved("add_months"),
    "add_seconds": _moved("add_seconds", "timestamp"),
    "strptime": _strptime,
    "make_date": _make_date,
}
