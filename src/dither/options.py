"""Reads options that users type, on the command line and in a notebook, and shows fixes as options."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

from dither.errors import Argument, ArgumentError, Blank, Fix, Name, Part, Python, Shell, python

_OPTIONS = {
    name: f"--{name}"
    for name in ("epsilon", "delta", "margin", "of", "confidence", "analyst", "ledger", "key", "witness", "by")
}
_OPTIONS |= {"assume_rows": "--rows", "fresh": "--fresh", "max_rows": "--max-rows", "max_groups": "--max-groups"}
_OPTIONS |= {"ca": "--ca"}
_OPTIONS |= {"left_out": "--left-out", "free": "--free", "sample": "--sample"}


def shell(part: Part) -> str:
    """Shows a part of a fix as a command-line option, or as Python if there is no such option.

    >>> shell(Argument("epsilon", "0.1")), shell(Argument("fresh", True)), shell(Argument("key", Blank("FILE")))
    ('--epsilon 0.1', '--fresh', '--key FILE')
    >>> shell(Name("assume_rows")), shell(Argument("sensitivity", 1))
    ('--rows', 'sensitivity=1')
    """
    match part:
        case Argument(name, value) if name in _OPTIONS:
            shown = value.word if isinstance(value, Blank) else "" if value is True else str(value)
            return f"{_OPTIONS[name]} {shown}".rstrip()
        case Name(name):
            return _OPTIONS.get(name, name)
        case Python(shell=str() as words):
            return words
        case _:
            return python(part)


def param_values(given: Sequence[str] | None) -> dict[str, Any] | None:
    """Returns the values of --param. A number, true, false, null and a date are read as such; quotes make a text of them.

    >>> param_values(["age=18", "ward=north", "day=2026-01-31", "code='007'", "dead=false"])
    {'age': 18, 'ward': 'north', 'day': datetime.date(2026, 1, 31), 'code': '007', 'dead': False}
    """
    if not given:
        return None
    values: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name.strip() or name in values:
            what = (
                f"--param {each} is not written as name=value." if not equals else f"--param {name}= is given more than once."
            )
            raise ArgumentError(what, fix=Fix("write {it}.", it=Shell("--param age=18")))
        values[name.strip()] = _param(value)
    return values


def _param(text: str) -> Any:
    constants = {"true": True, "false": False, "null": None}
    if text.lower() in constants:
        return constants[text.lower()]
    if re.fullmatch(r"[+-]?\d{1,18}", text):
        return int(text)
    if re.fullmatch(r"[+-]?(\d+\.\d*|\.?\d+)([eE][+-]?\d{1,3})?", text):
        return Decimal(text)
    if re.fullmatch(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?", text):
        with suppress(ValueError):
            return datetime.date.fromisoformat(text) if len(text) == 10 else datetime.datetime.fromisoformat(text)
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if quoted else text


def bound(text: str | None) -> int | str | None:
    """Returns the value of --max-rows or --max-groups: a number, or the text as it is, which `ask` checks.

    >>> bound("20"), bound("auto"), bound(None)
    (20, 'auto', None)
    """
    return int(text) if text is not None and re.fullmatch(r"-?[0-9]{1,18}", text) else text
