"""What one entry of the function registry states: kinds, NULL rule, what is publicly known of the result, its meaning.

Values are None, bool, int, float, str, datetime.date and datetime.datetime. A float that is not a number counts as NULL
as soon as it appears; an engine may keep it longer as long as nobody can tell. No value makes an evaluation raise.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dither.query.facts import Facts, double, hull, outward

Cell = None | bool | int | float | str | datetime.date | datetime.datetime

# What an argument may be, by the word used in the entries.
ACCEPTED: dict[str, tuple[str, ...]] = {
    "number": ("int", "real"),
    "text": ("text",),
    "bool": ("bool",),
    "date": ("date", "timestamp"),
    "timestamp": ("timestamp",),
    "any": ("int", "real", "text", "bool", "date", "timestamp"),
    "plain": ("int", "text", "bool", "date"),
    "castable": ("int", "real", "text", "bool"),
    "datelike": ("text", "date", "timestamp"),
}

# Kinds that can be compared with each other, and that may share the branches of a CASE (then as the wider kind).
FAMILIES = (("int", "real"), ("text",), ("bool",), ("date", "timestamp"))


@dataclass(frozen=True)
class Function:
    """One function of expressions.

    `accepts`: a word of ACCEPTED per argument, the last one repeated for further arguments.
    `alike`: all arguments must be of one family (`case` has its own rule, in infer.py).
    `constants`: positions that must be literals, in a function of any length also all later ones.
    `strict`: NULL in, NULL out, without asking `compute`.
    `compute`: the value; with `strict` it sees no NULL. `infer`: what is known of the result, from what is known
    of the arguments; it need not care for `values`. `refuse`: why these constants are impossible, or None.
    """

    name: str
    meaning: str
    accepts: tuple[str, ...]
    compute: Callable[..., Cell]
    infer: Callable[[list[Facts]], Facts]
    least: int
    most: int | None
    strict: bool = True
    alike: bool = False
    constants: tuple[int, ...] = ()
    refuse: Callable[[list[Any]], str | None] | None = None

    def accepted(self, position: int) -> tuple[str, ...]:
        """The kinds the argument at this position may have."""
        return ACCEPTED[self.accepts[min(position, len(self.accepts) - 1)]]

    def constant(self, position: int) -> bool:
        """Whether the argument at this position must be a literal."""
        later = self.most is None and bool(self.constants) and position > self.constants[-1]
        return later or position in self.constants


def settle(value: Cell) -> Cell:
    """The value as it is used: what is not a number is NULL."""
    return None if isinstance(value, float) and math.isnan(value) else value


def apply(function: Function, arguments: list[Cell]) -> Cell:
    """The function's value at these arguments."""
    if function.strict and None in arguments:
        return None
    return settle(function.compute(*arguments))


def together(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values in one kind, so that they can be compared: numbers as doubles if one is a double, dates as midnights.

    >>> together((1, 2.5)), together((datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 2, 9)))[0]
    ((1.0, 2.5), datetime.datetime(2024, 1, 2, 0, 0))
    """
    if any(isinstance(value, float) for value in values):
        return tuple(double(value) for value in values)
    if any(isinstance(value, datetime.datetime) for value in values):
        return tuple(moment(value) for value in values)
    return values


def moment(value: datetime.date) -> datetime.datetime:
    """The timestamp itself, or the date's midnight."""
    return value if isinstance(value, datetime.datetime) else datetime.datetime(value.year, value.month, value.day)


def any_nullable(arguments: list[Facts]) -> bool:
    return any(argument.nullable for argument in arguments)


def family(kinds: list[str]) -> str | None:
    """The kind that holds all of these (a bare NULL fits anywhere), or None if they do not go together.

    >>> family(["int", "null", "real"]), family(["int", "text"])
    ('real', None)
    """
    named = [kind for kind in kinds if kind != "null"]
    if not named:
        return "null"
    for members in FAMILIES:
        if all(kind in members for kind in named):
            return max(named, key=members.index)
    return None


def either(choices: list[Facts], nullable: bool) -> Facts:
    """What is known of a value that is one of these."""
    kind = family([choice.kind for choice in choices]) or "null"
    real = [choice for choice in choices if choice.kind != "null"]
    low, high = hull([(choice.low, choice.high) for choice in real])
    if kind == "real":
        low, high = outward(low, high)  # integers among them are converted
    whole = bool(real) and all(choice.whole for choice in real)
    steps = {choice.step for choice in real}
    step = steps.pop() if len(steps) == 1 else None
    return Facts(kind, low, high, nullable, whole, None, step)


def fixed(kind: str, low: int | None = None, high: int | None = None) -> Callable[[list[Facts]], Facts]:
    """A result that is NULL only where an argument is, within the given whole numbers."""
    bottom = None if low is None else Fraction(low)
    top = None if high is None else Fraction(high)
    whole = kind == "int"

    def infer(arguments: list[Facts]) -> Facts:
        return Facts(kind, bottom, top, any_nullable(arguments), whole, None, Fraction(1) if whole else None)

    return infer


def numeric(
    name: str, arity: int, compute: Callable[..., Cell], infer: Callable[[list[Facts]], Facts], meaning: str
) -> Function:
    """An entry for a function of numbers only."""
    return Function(name, meaning, ("number",), compute, infer, arity, arity)
