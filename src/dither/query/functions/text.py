"""Text functions. A character is a code point; only ASCII letters have a case and only ASCII spaces are trimmed, so that
every engine agrees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dither.query.functions.base import Cell, Facts, Function, fixed

_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LOWER = "abcdefghijklmnopqrstuvwxyz"
_TO_LOWER = str.maketrans(_UPPER, _LOWER)
_TO_UPPER = str.maketrans(_LOWER, _UPPER)
# Texts that double at every step would fill the memory, and whether they do depends on the rows.
MOST_CHARACTERS = 65_536


def like(text: str, pattern: str) -> bool:
    """Returns whether the whole text matches: % is any run of characters, _ is one character.

    Backtracks to the last % only, so that no pattern takes more than length times length steps.

    >>> like("dither", "d%e_"), like("a%b", "a\\\\%b"), like("", "%"), like("DIther", "di%")
    (True, False, True, False)
    """
    place = mark = 0
    star = -1
    spot = 0
    while place < len(text):
        if spot < len(pattern) and pattern[spot] == "%":
            star, mark = spot, place
            spot += 1
        elif spot < len(pattern) and pattern[spot] in ("_", text[place]):
            place, spot = place + 1, spot + 1
        elif star >= 0:
            mark += 1
            place, spot = mark, star + 1
        else:
            return False
    return all(character == "%" for character in pattern[spot:])


def substr(text: str, start: int, length: int) -> str:
    """Returns at most `length` characters from number `start`, counted from 1.

    >>> substr("dither", 2, 3), substr("a", 5, 2)
    ('ith', '')
    """
    return text[start - 1 : start - 1 + length]


def concat(*parts: str) -> str | None:
    """Concatenates texts; NULL, without building the text, if it would exceed MOST_CHARACTERS.

    >>> concat("di", "ther"), concat("a" * 40_000, "b" * 40_000)
    ('dither', None)
    """
    return "".join(parts) if sum(map(len, parts)) <= MOST_CHARACTERS else None


def _bad_substr(constants: list[Any]) -> str | None:
    start, length = constants[1], constants[2]
    right = all(isinstance(number, int) and not isinstance(number, bool) for number in (start, length))
    if not right or not 1 <= start <= 2**31 - 1 or not 0 <= length <= 2**31 - 1:
        return "its start must be a whole number from 1 and its length one from 0"
    return None


def _no_constant(constants: list[Any]) -> str | None:
    return None if isinstance(constants[1], str) else "its pattern must be a constant text"


def _text(name: str, meaning: str, compute: Callable[..., Cell]) -> Function:
    return Function(name, meaning, ("text",), compute, fixed("text"), 1, 1)


def _test(name: str, meaning: str, compute: Callable[..., Cell]) -> Function:
    return Function(name, meaning, ("text",), compute, fixed("bool"), 2, 2, constants=(1,), refuse=_no_constant)


def _length(a: list[Facts]) -> Facts:
    return fixed("int", 0)(a)


def _joined(a: list[Facts]) -> Facts:
    return replace(fixed("text")(a), nullable=True)


TEXT = (
    _text("lower", "A to Z in small letters, all else untouched", lambda x: x.translate(_TO_LOWER)),
    _text("upper", "a to z in capitals, all else untouched", lambda x: x.translate(_TO_UPPER)),
    _text("trim", "without the ASCII spaces at both ends", lambda x: x.strip(" ")),
    Function(
        "concat",
        f"one after the other; NULL if any is NULL or if that has more than {MOST_CHARACTERS:,} code points",
        ("text",),
        concat,
        _joined,
        1,
        None,
    ),
    Function("length", "the number of code points", ("text",), len, _length, 1, 1),
    Function(
        "substr",
        "from code point `start`, counted from 1, at most `length` of them",
        ("text", "number", "number"),
        substr,
        fixed("text"),
        3,
        3,
        constants=(1, 2),
        refuse=_bad_substr,
    ),
    _test("like", "the whole text fits the pattern of % and _; no escape", like),
    _test("starts_with", "whether it begins with the constant", lambda x, y: x.startswith(y)),
    _test("contains", "whether the constant occurs in it", lambda x, y: y in x),
)
