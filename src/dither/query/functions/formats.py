"""Writes dates as text and reads them, by constant formats: STRFTIME, STRPTIME, DAYNAME, MONTHNAME.

    STRFTIME(d, '%Y-%m')              2024-05
    STRPTIME('24.10.1947', '%d.%m.%Y')     1947-10-24; a timestamp if the format has a time

Names are English. A text that does not fit its format, or names no day, is NULL. A format is a closed list of directives, so
that every engine writes and reads the same.
"""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Callable
from typing import Any

from dither.query.functions.base import Facts, Function, fixed, moment
from dither.query.functions.dates import Day

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
DOMAINS = {"dayname": tuple(sorted(DAYS)), "monthname": tuple(sorted(MONTHS))}  # all values, whatever the dates
_PIECES = re.compile(r"%(-?.?)|([^%]+)", re.DOTALL)

# What each directive writes, and the calendar unit on which that depends; "" if it is shorter than an hour.
_WRITERS: dict[str, tuple[Callable[[datetime.datetime], str], str]] = {
    "Y": (lambda x: f"{x.year:04}", "year"),
    "y": (lambda x: f"{x.year % 100:02}", "year"),
    "m": (lambda x: f"{x.month:02}", "month"),
    "-m": (lambda x: str(x.month), "month"),
    "B": (lambda x: MONTHS[x.month - 1], "month"),
    "b": (lambda x: MONTHS[x.month - 1][:3], "month"),
    "d": (lambda x: f"{x.day:02}", "day"),
    "-d": (lambda x: str(x.day), "day"),
    "j": (lambda x: f"{x.timetuple().tm_yday:03}", "day"),
    "A": (lambda x: DAYS[x.weekday()], "day"),
    "a": (lambda x: DAYS[x.weekday()][:3], "day"),
    "u": (lambda x: str(x.isoweekday()), "day"),
    "w": (lambda x: str(x.isoweekday() % 7), "day"),
    "G": (lambda x: f"{x.isocalendar().year:04}", "week"),
    "V": (lambda x: f"{x.isocalendar().week:02}", "week"),
    "H": (lambda x: f"{x.hour:02}", "hour"),
    "I": (lambda x: f"{(x.hour + 11) % 12 + 1:02}", "hour"),
    "p": (lambda x: "AM" if x.hour < 12 else "PM", "hour"),
    "M": (lambda x: f"{x.minute:02}", ""),
    "S": (lambda x: f"{x.second:02}", ""),
}
# What each directive reads. One or two digits, or exactly two beside another directive of digits.
_READERS = {
    "Y": "[0-9]{4}",
    "y": "[0-9]{2}",
    **dict.fromkeys("mdHMS", "[0-9]{1,2}"),
    "B": "|".join("".join(f"[{letter.upper()}{letter.lower()}]" for letter in month) for month in MONTHS),
    "b": "|".join("".join(f"[{letter.upper()}{letter.lower()}]" for letter in month[:3]) for month in MONTHS),
}
_DIGITS = "YymdHMS"
_CENTURY = 69  # %y: 69 to 99 are 19xx


def pieces(format: str) -> list[tuple[str, str]]:
    """Returns the directives (without %) and the texts between them, one of each pair empty.

    >>> pieces("%Y-%m")
    [('Y', ''), ('', '-'), ('m', '')]
    """
    found = [(directive, text) for directive, text in _PIECES.findall(format)]
    return [("", "%") if directive == "%" else (directive, text) for directive, text in found]


def strftime(value: Day, format: str) -> str:
    """Writes a date or timestamp by a format.

    >>> strftime(datetime.date(33, 1, 2), "%a %-d %b %Y, %H:%M, %j")
    'Sun 2 Jan 0033, 00:00, 002'
    """
    at = moment(value)
    return "".join(text if text else _WRITERS[directive][0](at) for directive, text in pieces(format))


def units(format: str) -> set[str]:
    """Returns the calendar units on which the text of a format depends; "" for units below an hour."""
    return {_WRITERS[directive][1] for directive, text in pieces(format) if not text and directive in _WRITERS}


@functools.lru_cache(maxsize=512)
def format_pattern(format: str) -> str:
    """Returns the regular expression of the texts that a format reads, the same in Python and in RE2.

    >>> format_pattern("%d.%m.%Y"), format_pattern("%Y%m%d")
    ('([0-9]{1,2})\\\\.([0-9]{1,2})\\\\.([0-9]{4})', '([0-9]{4})([0-9]{2})([0-9]{2})')
    """
    parts = pieces(format)
    written = []
    for place, (directive, text) in enumerate(parts):
        beside = [other for other, _ in (*parts[max(place - 1, 0) : place], *parts[place + 1 : place + 2]) if other]
        tight = directive in _DIGITS and any(other in _DIGITS for other in beside)
        reader = _READERS.get(directive, "")
        written.append("".join(each if each.isalnum() or not each.isascii() or each == " " else f"\\{each}" for each in text))
        written.append(f"({reader.replace('{1,2}', '{2}') if tight else reader})" if directive else "")
    return "".join(written)


def strptime(text: str, format: str) -> Day | None:
    """Reads a text by a format: a timestamp if the format has a time, else a date.

    >>> strptime("24.10.1947", "%d.%m.%Y"), strptime("31.2.2024", "%d.%m.%Y"), strptime("May 24", "%b %y")
    (datetime.date(1947, 10, 24), None, datetime.date(2024, 5, 1))
    """
    found = re.fullmatch(format_pattern(format), text)
    if found is None:
        return None
    parts = dict(zip((directive for directive, _ in pieces(format) if directive), found.groups(), strict=True))
    numbers = {directive: _number(directive, part) for directive, part in parts.items()}
    short = numbers.get("y", 0)
    year = numbers["Y"] if "Y" in numbers else short + (1900 if short >= _CENTURY else 2000)
    month = next((numbers[each] for each in "mbB" if each in numbers), 1)
    try:
        date = datetime.date(year, month, numbers.get("d", 1))
        time = datetime.time(numbers.get("H", 0), numbers.get("M", 0), numbers.get("S", 0))
    except ValueError:
        return None
    return datetime.datetime.combine(date, time) if has_time(format) else date


def _number(directive: str, part: str) -> int:
    """Returns the number that a part of the text stands for; the names of months differ in their first three letters."""
    if directive in "bB":
        return 1 + next(place for place, month in enumerate(MONTHS) if month[:3].lower() == part[:3].lower())
    return int(part)


def has_time(format: str) -> bool:
    """Whether a format reads the time of day."""
    return any(directive in ("H", "M", "S") for directive, text in pieces(format) if not text)


# --- facts and refusals -------------------------------------------------------------------------------------------


def _read(a: list[Facts]) -> Facts:
    format = str(a[1].values[0]) if a[1].values else ""
    return Facts("timestamp" if has_time(format) else "date", nullable=True)


def _bad_format(known: Any) -> Callable[[list[Any]], str | None]:
    """Returns the check of a format; `known` are its directives."""

    def refuse(constants: list[Any]) -> str | None:
        format = constants[1]
        listed = ", ".join(f"%{each}" for each in (*known, "%"))
        if not isinstance(format, str) or "\0" in format or "%" not in format:
            return "its format must be a constant text such as '%Y-%m'"
        unknown = [directive for directive, text in pieces(format) if not text and directive not in known]
        return f"%{unknown[0]} is not among {listed}" if unknown else None

    return refuse


def _bad_reading(constants: list[Any]) -> str | None:
    reason = _bad_format(_READERS)(constants)
    if reason is not None:
        return reason
    directives = [directive for directive, text in pieces(constants[1]) if not text]
    months = [each for each in directives if each in "mbB"]
    if len(set(directives)) < len(directives) or len(months) > 1 or {"Y", "y"} <= set(directives):
        return "its format says a part twice"
    if "  " in constants[1] or " ".join(constants[1].split()) != constants[1]:
        return "its format has two blanks in a row, or blanks at an end"
    return None if {"Y", "y"} & set(directives) else "its format has no year"


def _name(name: str, meaning: str, compute: Callable[[Any], str]) -> Function:
    return Function(name, meaning, ("date",), compute, fixed("text"), 1, 1)


FORMATS = (
    _name("dayname", "Monday to Sunday", lambda x: DAYS[x.weekday()]),
    _name("monthname", "January to December", lambda x: MONTHS[x.month - 1]),
    Function(
        "strftime",
        "a date written by a constant format",
        ("date", "text"),
        strftime,
        fixed("text"),
        2,
        2,
        constants=(1,),
        refuse=_bad_format(_WRITERS),
    ),
    Function(
        "strptime",
        "a text read by a constant format; NULL if it does not fit",
        ("text",),
        strptime,
        _read,
        2,
        2,
        constants=(1,),
        refuse=_bad_reading,
    ),
)
