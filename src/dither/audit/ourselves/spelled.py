"""Generates calls of functions of dates, text and numbers, most of them legal, for the questions of `make audit`."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from dither.query.sql.gate import parameters

Pick = Callable[..., str]
# The values of parameters in generated questions; :other has none.
PARAMETERS = {
    "low": 3,
    "share": 0.5,
    "few": [1, -2, 30],
    "word": "north",
    "words": ("north", "it's"),
    "day": datetime.date(2020, 2, 29),
    "yes": True,
    "none": None,
}
DATES = ("born", "day", "DATE '2020-02-29'")
_UNITS = ("DAY", "WEEK", "MONTH", "YEAR", "HOUR")
_PATTERNS = ("^[a-n]", "o.*th", "(a|e)+", "\\d{2}", ".", "(?i)O+", "(?m)^n$", "(?x)x")
_OPTIONS = ("", "", ", 'i'", ", 'ls'", ", 'x'")


def params_of(text: str) -> dict[str, Any] | None:
    """Returns the values of a generated question's parameters; None if it has none."""
    found = {place.name for place in parameters(text)} & PARAMETERS.keys()
    return {name: PARAMETERS[name] for name in sorted(found)} or None


def date(pick: Pick, dates: tuple[str, ...] = DATES) -> str:
    """Returns an expression of a date."""
    one, many = pick(*dates), pick("1", "-3", "90", "'12000'", "10000000")
    text = pick("city", "town", "region", "'3.4.2021'")
    return pick(
        one,
        one,
        f"({one} {pick('+', '-')} INTERVAL {many} {pick(*_UNITS)})",
        f"({one} {pick('+', '-')} INTERVAL '{pick('1 year 2 months', '-1 month 3 days', '1 day 12 hours', '1 day 12:00')}')",
        f"({one} + {pick(many, 'age', 'person_id')})",
        f"LAST_DAY({one})",
        f"MAKE_DATE({pick('2020', 'age', '10000')}, 2, {pick('29', 'age')})",
        f"STRPTIME({text}, '%d.%m.%Y')",
        f"DATE_TRUNC('{pick('month', 'week', 'year')}', {one})",
    )


def number(pick: Pick, inner: str, words: tuple[str, ...], dates: tuple[str, ...] = DATES) -> str:
    """Returns an expression of a number."""
    one, two = date(pick, dates), date(pick, dates)
    return pick(
        f"ROUND({inner}, {pick('1', '-1', '2')})",
        f"TRUNC({inner}, {pick('0', '1')})",
        f"({pick('', '-')}{inner} // {pick('7', '0', 'age')})",
        f"({inner} ^ {pick('2', '3')})",
        f"LEAST({inner}, {pick('9', 'NULL', 'age')})",
        f"GREATEST({inner}, 0, age)",
        f"WIDTH_BUCKET({inner}, 0, 50, {pick('5', '0')})",
        f"DATE_DIFF('{pick('day', 'month', 'week', 'hour')}', {one}, {two})",
        f"({one} - {two})",
        f"{pick('WEEK', 'DAYOFWEEK', 'DAYOFYEAR', 'ISOYEAR', 'MONTH')}({one})",
        f"POSITION('o' IN {pick(*words)})",
        f"CAST({inner} AS DECIMAL(10, 1))",
    )


def word(pick: Pick, words: tuple[str, ...], dates: tuple[str, ...] = DATES) -> str:
    """Returns an expression of a text."""
    one = pick(*words)
    return pick(
        f"{pick('UPPER', 'LOWER', 'LTRIM')}({one})",
        f"SUBSTRING({one} FROM 1 FOR {pick('1', '2')})",
        f"{pick('LEFT', 'RIGHT')}({one}, {pick('0', '2')})",
        f"REPLACE({one}, 'o', '{pick('', 'ooo')}')",
        f"SPLIT_PART({one}, 'o', {pick('1', '2')})",
        f"CONCAT({one}, {pick(*words)})",
        f"{pick('DAYNAME', 'MONTHNAME')}({date(pick, dates)})",
        f"STRFTIME({date(pick, dates)}, '{pick('%Y-%m', '%a', '%G-%V', '%M')}')",
    )


def condition(pick: Pick, inner: str, words: tuple[str, ...], dates: tuple[str, ...] = DATES) -> str:
    """Returns a condition."""
    one = pick(*words)
    day, text = pick("'2020-02-29'", "'1995-13-01'", date(pick, dates)), pick("'north'", "''", one)
    return pick(
        f"{one} {pick('ILIKE', 'NOT ILIKE')} '{pick('N%', '%É_', 'ab')}'",
        f"REGEXP_MATCHES({one}, '{pick(*_PATTERNS)}'{pick(*_OPTIONS)})",
        f"{inner} IS {pick('', 'NOT ')}DISTINCT FROM {pick('3', 'NULL', 'age')}",
        f"{date(pick, dates)} {pick('>=', '<')} {day}",
        f"{word(pick, words, dates)} = {text}",
        f"{number(pick, inner, words, dates)} > {pick('0', '3')}",
    )


def with_parameter(pick: Pick, numbers: tuple[str, ...], words: tuple[str, ...], dates: tuple[str, ...] = DATES) -> str:
    """Returns a condition with a parameter."""
    return pick(
        f"{pick(*numbers)} {pick('>', '<=')} {pick(':low', ':share', ':low + 1', ':other', '?')}",
        f"{pick(*numbers)} {pick('IN', 'NOT IN')} (:few)",
        f"{pick(*words)} {pick('= :word', 'IN (:words)', 'LIKE :word', '= :none')}",
        f"{pick(*dates)} {pick('>=', '<')} :day",
    )
