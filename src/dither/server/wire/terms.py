"""The settings of a connection: the terms of its questions, as `SET dither.epsilon = 0.1` names them.

They begin with what the connection's startup says (`options=-c dither.epsilon=0.1`). SET LOCAL holds until the transaction
ends. Other settings are not undone by ROLLBACK: what was named as a price stays named. A question has a price or a margin, so
a SET of one of the two clears the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from dither.errors import Argument, ArgumentError, Blank, Fix, Name, Part, Python, python
from dither.exact.numbers import parse_number
from dither.text import did_you_mean

_ON = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False}


def _flag(text: str) -> bool:
    if text.lower() not in _ON:
        raise ValueError
    return _ON[text.lower()]


def _number(text: str) -> str:
    """A number of any spelling, as a text. One whose digits would fill the memory, such as 1e999999999, is refused unread."""
    if parse_number(text) is None:
        raise ValueError
    return text


def _margin(text: str) -> str:
    """A number or a share: 50, 2 %."""
    Decimal(text.removesuffix("%").strip())
    return text


def _whole(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise ValueError
    return int(text)


def _bound(text: str) -> int | str:
    return text.lower() if text.lower() == "auto" else _whole(text)


# name -> how its text is read, and what it may be
_KINDS: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "epsilon": (_number, "a number such as 0.1"),
    "delta": (_number, "a number such as 1e-9"),
    "margin": (_margin, "a number such as 50, or a share such as 2 %"),
    "of": (_number, "a number"),
    "confidence": (_number, "a number such as 0.95"),
    "assume_rows": (_whole, "a whole number"),
    "max_rows": (_bound, "a whole number or auto"),
    "max_groups": (_bound, "a whole number or auto"),
    "left_out": (_flag, "on or off"),
    "sample": (_number, "a number such as 1/10"),
    "fresh": (_flag, "on or off"),
    "free": (_flag, "on or off"),
    "margins": (_flag, "on or off"),
    "notices": (_flag, "on or off"),
}
NAMES = tuple(f"dither.{name}" for name in _KINDS)
SHOWN = ("dither.budget", "dither.analyst")  # SHOW has these too
_NOT_TERMS = ("fresh", "free", "margins", "notices")
_INSTEAD = {"epsilon": "margin", "margin": "epsilon"}


class Settings:
    """The settings of one connection."""

    def __init__(self) -> None:
        self._start: dict[str, Any] = {"notices": True}
        self._own: dict[str, Any] = {}
        self._local: dict[str, Any] = {}

    def begin(self, name: str, value: str) -> None:
        """Takes a setting from the startup of the connection."""
        short, read = self._read(name, value)
        self._start[short] = read

    def set(self, name: str, value: str, local: bool = False) -> None:
        short, read = self._read(name, value)
        changed = {short: read}
        if short in _INSTEAD:
            changed |= self._other(short, read)
        (self._local if local else self._own).update(changed)
        if not local:
            for each in changed:
                self._local.pop(each, None)

    def _other(self, short: str, read: Any) -> dict[str, Any]:
        """Returns what the other of price and margin is now: cleared, if this one is named; otherwise as it was before this one
        cleared it."""
        other = _INSTEAD[short]
        if read is not None:
            return {other: None}
        return {other: self._own.get(other) or self._start.get(other)} if self[other] is None else {}

    def reset(self, name: str = "all") -> None:
        """Returns to what the connection began with."""
        self._local.clear()
        if name == "all":
            self._own.clear()
        else:
            self.set(name, "default")

    def end_transaction(self) -> None:
        self._local.clear()

    def show(self, name: str) -> str:
        value = self[self._known(name)]
        return "" if value is None else ("on" if value else "off") if isinstance(value, bool) else str(value)

    def __getitem__(self, short: str) -> Any:
        return self._all().get(short)

    def terms(self) -> dict[str, Any]:
        """Returns the terms of a question, as `survey.ask` takes them. Refuses if the connection began with both prices."""
        found = {name: value for name, value in self._all().items() if name not in _NOT_TERMS and value is not None}
        if found.keys() >= _INSTEAD.keys():
            fix = Fix("write {epsilon}, or {margin}: a SET of one clears the other.", epsilon="0.1", margin=50)
            raise ArgumentError("This connection began with a price and a margin.", fix=fix)
        return found

    def _all(self) -> dict[str, Any]:
        return self._start | self._own | self._local

    def _known(self, name: str) -> str:
        short = name.removeprefix("dither.")
        if short not in _KINDS:
            near = did_you_mean(short, _KINDS, of="dither.")
            raise ArgumentError(f"There is no setting {name}.", fix=f"{near}take one of: {', '.join(NAMES)}.")
        return short

    def _read(self, name: str, value: str) -> tuple[str, Any]:
        short = self._known(name)
        text = value.strip()
        if len(text) > 1 and text[0] == text[-1] == "'":
            text = text[1:-1].replace("''", "'").strip()
        if text.lower() in ("default", ""):
            return short, self._start.get(short)
        read, words = _KINDS[short]
        try:
            return short, read(text)
        except (ValueError, InvalidOperation, ZeroDivisionError, OverflowError):
            raise ArgumentError(f"{name} cannot be {text[:60]}.", fix=f"give {words}.") from None


def options(text: str) -> list[tuple[str, str]]:
    """Returns the settings of the startup's `options`: -c name=value and --name=value. A backslash keeps a blank.

    >>> options("-c dither.epsilon=0.1 --dither.margin=2\\\\ % -c geqo=off")
    [('dither.epsilon', '0.1'), ('dither.margin', '2 %'), ('geqo', 'off')]
    """
    parts = [re.sub(r"\\(.)", r"\1", part) for part in re.findall(r"(?:\\.|[^\s\\])+", text)]
    found = []
    while parts:
        part = parts.pop(0)
        given = parts.pop(0) if part == "-c" and parts else part.removeprefix("--" if part.startswith("--") else "-c")
        name, sign, value = given.partition("=")
        if sign:
            found.append((name.strip().lower().replace("-", "_"), value))
    return found


def sql(part: Part) -> str:
    """Shows a part of a fix as SQL tools can write it.

    >>> sql(Argument("epsilon", "0.1")), sql(Argument("fresh", True)), sql(Name("margin"))
    ('SET dither.epsilon = 0.1', 'SET dither.fresh = on', 'dither.margin')
    """
    match part:
        case Argument(name, Blank()) if name in _KINDS:
            return f"SET dither.{name} = …"
        case Argument(name, bool() as value) if name in _KINDS:
            return f"SET dither.{name} = {'on' if value else 'off'}"
        case Argument(name, value) if name in _KINDS:
            return f"SET dither.{name} = {value}"
        case Name(name) if name in _KINDS:
            return f"dither.{name}"
        case Python(shell=str() as words):
            return words
        case _:
            return python(part)
