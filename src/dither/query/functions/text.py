"""Text functions. A character is a code point; case follows one table (letters.py) and only ASCII spaces are trimmed, so that
every engine agrees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dither.query.functions.base import Cell, Facts, Function, fixed
from dither.query.functions.casts import to_text
from dither.query.functions.letters import lower, upper
from dither.query.functions.patterns import fault, matches

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


def replaced(text: str, old: str, new: str) -> str | None:
    """Replaces a text from left to right; NULL, without building it, if the result would exceed MOST_CHARACTERS."""
    longer = len(text) + text.count(old) * (len(new) - len(old)) > MOST_CHARACTERS
    return None if longer and len(new) > len(old) else text.replace(old, new)


def split_part(text: str, separator: str, number: int) -> str:
    """Returns a part of a text between separators.

    >>> split_part("a,b,c", ",", 2), split_part("a", ",", 2)
    ('b', '')
    """
    parts = text.split(separator)
    return parts[number - 1] if number <= len(parts) else ""


def row(*values: Cell) -> str | None:
    """Returns one text for several values: different rows have different texts.

    >>> row("a", None), row("a", "-"), row(1, True)
    ('1:a-', '1:a1:-', '1:14:true')
    """
    texts = [to_text(value) for value in values]
    return concat(*("-" if text is None else f"{len(text)}:{text}" for text in texts))


def _count(number: Any, least: int) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and least <= number <= 2**31 - 1


def _bad_right(constants: list[Any]) -> str | None:
    return None if _count(constants[1], 0) else "its length must be a whole number from 0"


def _bad_replace(constants: list[Any]) -> str | None:
    right = isinstance(constants[1], str) and isinstance(constants[2], str) and constants[1]
    return None if right else "it needs two constant texts, the first not empty"


def _bad_split(constants: list[Any]) -> str | None:
    if not isinstance(constants[1], str) or not constants[1]:
        return "its separator must be a constant text that is not empty"
    return None if _count(constants[2], 1) else "its number must be a whole number from 1"


def _bad_pattern(constants: list[Any]) -> str | None:
    if not isinstance(constants[1], str) or "\0" in constants[1]:
        return "its pattern must be a constant text"
    return fault(constants[1])


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


def _replaced(a: list[Facts]) -> Facts:
    old, new = (x.values[0] if x.values else "" for x in a[1:])
    return replace(fixed("text")(a), nullable=a[0].nullable or len(str(new)) > len(str(old)))


def _joined(a: list[Facts]) -> Facts:
    return replace(fixed("text")(a), nullable=True)


TEXT = (
    _text("lower", "in small letters, one for one", lower),
    _text("upper", "in capital letters, one for one", upper),
    _text("trim", "without the ASCII spaces at both ends", lambda x: x.strip(" ")),
    _text("ltrim", "without the ASCII spaces at its beginning", lambda x: x.lstrip(" ")),
    _text("rtrim", "without the ASCII spaces at its end", lambda x: x.rstrip(" ")),
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
    _test("ends_with", "whether it ends with the constant", lambda x, y: x.endswith(y)),
    _test("contains", "whether the constant occurs in it", lambda x, y: y in x),
    Function(
        "regexp_matches",
        "whether a part of it fits the pattern, a regular expression",
        ("text",),
        matches,
        fixed("bool"),
        2,
        2,
        constants=(1,),
        refuse=_bad_pattern,
    ),
    Function(
        "position",
        "the place of the constant, counted from 1; 0 if it does not occur",
        ("text",),
        lambda x, y: x.find(y) + 1,
        _length,
        2,
        2,
        constants=(1,),
        refuse=_no_constant,
    ),
    Function(
        "right",
        "its last code points",
        ("text", "number"),
        lambda x, y: x[-y:] if y else "",
        fixed("text"),
        2,
        2,
        constants=(1,),
        refuse=_bad_right,
    ),
    Function(
        "replace",
        f"with one constant in the place of another; NULL if that has more than {MOST_CHARACTERS:,} code points",
        ("text",),
        replaced,
        _replaced,
        3,
        3,
        constants=(1, 2),
        refuse=_bad_replace,
    ),
    Function(
        "split_part",
        "the part of that number between separators, counted from 1; empty if there are fewer",
        ("text", "text", "number"),
        split_part,
        fixed("text"),
        3,
        3,
        constants=(1, 2),
        refuse=_bad_split,
    ),
    Function("row", "one text for several values; NULL is a value", ("plain",), row, _joined, 2, None, strict=False),
)
