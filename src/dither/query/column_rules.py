"""What must hold of one declared column: bounds in order, a step that fits, public values that can be keys."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dither.exact.numbers import spell
from dither.query.faults import Fault, Path

if TYPE_CHECKING:
    from dither.query.catalog import ColumnFacts

KINDS = ("int", "real", "text", "bool", "date", "timestamp")
_OTHER_WORDS = {
    **dict.fromkeys(("string", "str", "varchar", "char", "object", "category"), "text"),
    **dict.fromkeys(("integer", "bigint", "int32", "int64", "long", "whole"), "int"),
    **dict.fromkeys(("float", "float64", "double", "decimal", "numeric", "number"), "real"),
    "boolean": "bool",
    "datetime": "timestamp",
    "day": "date",
}
LARGEST_KEY = 2**62  # a key beyond it is NULL in every engine
FIRST_DAY, LAST_DAY = -719162, 2932896  # the calendar of datetime.date, in days since 1970-01-01
LARGEST_BOUND = Fraction(2**500)  # doubles can square what is not beyond it, and divide by what is not below its inverse
MOST_STEPS = 2**52  # a double counts whole steps exactly up to here
LONGEST = 4096  # characters of a text cell, unless its column says otherwise
MOST_LONGEST = 2**20


def column_faults(path: Path, column: ColumnFacts) -> list[Fault]:
    """Everything wrong with one column's declaration."""
    name = ".".join(path[1:2] + path[3:4]) or path[-1]
    if column.kind is not None and (not isinstance(column.kind, str) or column.kind not in KINDS):
        other = _OTHER_WORDS.get(column.kind.lower()) if isinstance(column.kind, str) else None
        meant = f'write kind = "{other}"; the kinds are' if other else "write one of"
        return [Fault((*path, "kind"), f"{name} has no known kind.", f"{meant} {', '.join(KINDS)}.")]
    found = [Fault((*path, part), f"{name}: {what}", fix) for part, what, fix in _bounds(column)]
    found += [Fault((*path, part), f"{name}: {what}", fix) for part, what, fix in _values(column)]
    found += [Fault((*path, "longest"), f"{name}: {what}", fix) for what, fix in _longest(column)]
    return found


def kind_of(value: Any) -> str | None:
    """The kind of a public value; None if it cannot be a key (a bool is no int, a timestamp no date)."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, str):
        return "text"
    return "date" if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime) else None


def _bounds(column: ColumnFacts) -> Iterator[tuple[str, str, str]]:
    low, high, step = column.low, column.high, column.step
    if low is None or high is None:
        if low is not None or high is not None:
            yield "between", "only one bound is declared.", "declare both, as in between = [0, 120]."
        if step is not None:
            yield "step", "a step needs bounds to count from.", "declare between = [low, high] as well."
        return
    if column.kind in ("text", "bool", "timestamp"):
        fix = "declare values instead" if column.kind != "timestamp" else 'leave the bounds out, or declare kind = "date"'
        yield "between", f"bounds make no sense for {column.kind}.", f"{fix}."
        return
    if low >= high:
        turned = f"[{spell(high)}, {spell(low)}]" if low > high else "a range with more than one number"
        yield "between", f"the lower bound {spell(low)} is not below the upper bound {spell(high)}.", f"write {turned}."
        return
    if max(abs(low), abs(high)) > LARGEST_BOUND or high - low < 1 / LARGEST_BOUND:
        what = "the bounds are beyond 2^500, or less than 2^-500 apart: no sum or mean could be taken over them."
        yield "between", what, "write what such a value can be at most, as in between = [0, 250000]."
        return
    if column.kind in ("int", "date"):
        if any(part is not None and part.denominator != 1 for part in (low, high, step)):
            yield "between", f"bounds and step of kind {column.kind} must be whole.", 'write whole numbers, or kind = "real".'
        if max(abs(low), abs(high)) > LARGEST_KEY:
            yield "between", "a bound is beyond 2^62.", "declare narrower bounds."
        elif column.kind == "date" and not (low >= FIRST_DAY and high <= LAST_DAY):
            yield "between", "a bound is outside the years 1 to 9999.", "declare dates of the calendar."
    if step is not None:
        yield from _step(low, high, step)


def _step(low: Fraction, high: Fraction, step: Fraction) -> Iterator[tuple[str, str, str]]:
    if step <= 0:
        yield "step", f"the step must be above 0, and it is {spell(step)}.", "write a step such as 1 or 0.01."
        return
    count = (high - low) / step
    if count.denominator != 1:
        outward = low + step * -(-count.numerator // count.denominator)
        yield (
            "step",
            f"the range is not a whole number of steps of {spell(step)}.",
            f"write between = [{spell(low)}, {spell(outward)}], or another step.",
        )
    if count > MOST_STEPS:
        yield "step", "the range has more than 2^52 steps.", "write a larger step or narrower bounds."


def _values(column: ColumnFacts) -> Iterator[tuple[str, str, str]]:
    values = column.values
    if values is None:
        return
    known = [value for value in values if value is not None]
    kinds = {kind_of(value) for value in known}
    if not known:
        yield "values", "no value is listed.", 'list the public values, as in values = ["north", "south"].'
    elif None in kinds:
        yield "values", "a value is neither text, a whole number, true or false, nor a date.", "list values of one such kind."
    elif len(kinds) > 1:
        yield "values", f"the values are of several kinds: {', '.join(sorted(map(str, kinds)))}.", "list values of one kind."
    elif column.kind not in (None, *kinds):
        yield "values", f"the values are {kinds.pop()}, the column is {column.kind}.", "make values and kind agree."
    else:
        yield from _each_value(values, known)
        yield from _values_and_bounds(column, known)
    if any(value is None for value in values) and not column.nullable:
        yield "null", "NULL is declared a public value and impossible at once.", "leave one of the two out."


def _longest(column: ColumnFacts) -> Iterator[tuple[str, str]]:
    longest = column.longest
    if isinstance(longest, bool) or not isinstance(longest, int) or not 1 <= longest <= MOST_LONGEST:
        yield f"longest must be a whole number of characters from 1 to {MOST_LONGEST:,}.", "write longest = 20000."
    elif longest != LONGEST and column.kind not in (None, "text"):
        yield f"longest is for text, and the column is {column.kind}.", "leave longest out."
    elif any(isinstance(value, str) and len(value) > longest for value in column.values or ()):
        yield "a public value is longer than longest.", "write a larger longest."


def _each_value(values: tuple[Any, ...], known: list[Any]) -> Iterator[tuple[str, str, str]]:
    twice = sorted(str(value) for value, times in Counter(values).items() if times > 1)
    if twice:
        yield "values", f"listed twice: {', '.join(twice[:5])}.", "list every value once."
    if any(isinstance(value, int) and abs(value) > LARGEST_KEY for value in known):
        yield "values", "a value is beyond 2^62.", "list smaller whole numbers."
    if any(isinstance(value, str) and ("\0" in value or _broken(value)) for value in known):
        yield "values", "a value is not text that a database can hold.", "list values without zero bytes or half characters."


def _broken(text: str) -> bool:
    """Half of a surrogate pair: Python holds it, no database does."""
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def _values_and_bounds(column: ColumnFacts, known: list[Any]) -> Iterator[tuple[str, str, str]]:
    if column.low is None or column.high is None:
        return
    if not all(kind_of(value) == "int" for value in known):
        yield "between", "bounds go with whole-number values only.", "leave between or values out."
    elif any(not column.low <= value <= column.high for value in known):
        yield "between", "a public value lies outside the bounds.", "widen between, or leave it out: the values imply it."
