"""Infers the facts of columns and expressions, with the domain: the public values that a key can take. Reads no row.

The domain of an expression is its image over the declared domains of its columns, found by the first of these that works:

1. evaluate it on all combinations of values that represent its columns (representatives.py): exact;
2. evaluate its function on all combinations of the images of its arguments: exact if no two arguments read the same column
   and those images are exact, else it may be larger;
3. all whole numbers between its bounds that are on its grid (grids.py), or all days: exact for roundings of columns with
   bounds (FLOOR(income / 1000)), else it may be larger.

A domain has at most MOST_VALUES values; if it would have more, the keys are not public. It is never too small: each row within
the declared facts has its key in it (NULL aside, which is a key only where the catalog lists it).
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dither.catalog.values import ColumnFacts, Key
from dither.query.functions.base import Cell, Facts, apply
from dither.query.functions.casts import as_key
from dither.query.functions.dates import day_number, from_day_number
from dither.query.functions.formats import DOMAINS
from dither.query.functions.grids import grid
from dither.query.functions.registry import FUNCTIONS, check_depth, columns, evaluator, known, literal, typed
from dither.query.functions.representatives import MOST_VALUES, clip_values, combinations, is_open, unit_starts
from dither.query.nodes import Call, Column, Expression, Literal

_REMEMBERED = 512
_SAME = {"lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}


@lru_cache(maxsize=_REMEMBERED)
def declared(column: ColumnFacts, kind: str | None = None, found: tuple[Key, ...] | None = None) -> Facts:
    """Returns the declared facts of a column; `kind` is the schema's, if the catalog declares none.

    `found`: the values of a public table's column, if they are known; a column without declared values has these.

    >>> declared(ColumnFacts("int", Fraction(0), Fraction(2))).values
    (0, 1, 2)
    """
    kind = column.kind or kind or "text"
    whole = kind == "int"
    step = column.step if column.step is not None else Fraction(1) if whole else None
    values = found if column.values is None else column.values
    clipped = values is None and (column.low is not None or column.high is not None)
    facts = Facts(kind, column.low, column.high, column.nullable, whole, values, step, clipped)
    if kind == "int":
        facts = replace(
            facts,
            low=None if facts.low is None else Fraction(math.ceil(facts.low)),
            high=None if facts.high is None else Fraction(math.floor(facts.high)),
        )
    if facts.values is not None:
        return within_values(facts)
    return replace(facts, values=every_value(facts))


def facts(expression: Expression, scope: Mapping[str, Facts]) -> Facts:
    """Returns the facts of an expression; `scope` has the facts of its columns.

    >>> age = Facts("int", Fraction(0), Fraction(120), nullable=False, whole=True)
    >>> found = facts(Call("div", (Column("age"), Literal(10))), {"age": age})
    >>> found.low, found.high, found.nullable
    (Fraction(0, 1), Fraction(12, 1), False)
    """
    check_depth(expression)
    inferred = known(expression, scope)
    if isinstance(expression, Column):
        return inferred
    names = tuple(sorted(columns(expression)))
    absent = inferred.nullable and any(scope[name].absent for name in names)
    inferred = replace(inferred, clipped=any(scope[name].clipped for name in names), absent=absent)
    if inferred.kind in ("timestamp", "null") or (inferred.kind == "real" and not inferred.whole):
        return replace(inferred, values=None)  # cannot be a key
    return _with_domain(expression, inferred, names, tuple(scope[name] for name in names))


@dataclass(frozen=True)
class Image:
    """The values of an expression. `null`: NULL is one of them; `listed`: one that comes from a NULL which is a value: the
    catalog lists it, or the question makes it."""

    values: tuple[Cell, ...]
    null: bool = False
    listed: bool = False


@lru_cache(maxsize=_REMEMBERED)
def _with_domain(expression: Expression, inferred: Facts, names: tuple[str, ...], scope: tuple[Facts, ...]) -> Facts:
    """Adds the domain. Remembered by public facts alone."""
    within = dict(zip(names, scope, strict=True))
    image = _enumerated(typed(expression, within), within)
    if image is None:
        between = _between_bounds(expression, inferred, within)
        return replace(inferred, values=(*between, None) if between is not None and inferred.absent else between)
    on = grid(expression, within) if inferred.numeric else None
    keys = {value: as_key(value) for value in image.values}
    keys = {value: key for value, key in keys.items() if on is None or not isinstance(key, int) or on.holds(key)}
    beyond = None in keys.values()
    values: dict[Key, None] = dict.fromkeys(key for key in keys.values() if key is not None)
    ordered = (*_sorted(values), *((None,) if image.listed else ()))
    result = replace(inferred, values=ordered, nullable=image.null or image.listed or beyond)
    return result if beyond else within_values(result)


def _image(expression: Expression, scope: Mapping[str, Facts]) -> Image | None:
    """Returns all values of a part of an expression; None if they are too many or not known."""
    if isinstance(expression, Literal):
        value = literal(expression.value)
        return Image((), null=True) if value is None else Image((value,))
    found = _enumerated(expression, scope)
    if found is not None or isinstance(expression, Column):
        return found
    inferred = known(expression, scope)
    values = _between_bounds(expression, inferred, scope)
    if values is None or (inferred.kind == "real" and not inferred.whole):
        return None
    cells: Iterable[Any] = map(float, values) if inferred.kind == "real" else values  # type: ignore[arg-type]
    return Image(tuple(cells), inferred.nullable, inferred.nullable and _absent(expression, scope))


def _absent(expression: Expression, scope: Mapping[str, Facts]) -> bool:
    return any(scope[name].absent for name in columns(expression))


def _enumerated(expression: Expression, scope: Mapping[str, Facts]) -> Image | None:
    """Evaluates the expression on its columns' representatives, or its function on the images of its arguments."""
    if is_open(expression, scope):
        nullable = known(expression, scope).nullable
        return Image((False, True), nullable, nullable and _absent(expression, scope))
    chosen = combinations(expression, scope)
    if chosen is not None:
        compute, names = evaluator(clip_values(expression, scope)), tuple(chosen)
        listed = [scope[name].absent or None in (scope[name].values or ()) for name in names]
        rows = itertools.product(*chosen.values())
        return _collected(((compute(dict(zip(names, row, strict=True))), row) for row in rows), listed)
    if not isinstance(expression, Call):
        return None
    if expression.name == "case":
        return _first_true([_image(argument, within) for argument, within in _branches(expression, scope)])
    images = [_image(argument, scope) for argument in expression.arguments]
    finite = [image for image in images if image is not None]
    inputs = [(*image.values, *((None,) if image.null or image.listed else ())) for image in finite]
    if len(finite) < len(images) or math.prod(map(len, inputs)) > MOST_VALUES:
        return None
    function = FUNCTIONS[expression.name]
    computed = ((apply(function, list(row)), row) for row in itertools.product(*inputs))
    return _collected(computed, [image.listed for image in finite])


def _collected(computed: Iterable[tuple[Cell, tuple[Cell, ...]]], listed: Sequence[bool]) -> Image:
    """Collects results. A NULL is listed if it comes from a NULL that is listed."""
    values: dict[Cell, None] = {}
    null = from_listed = False
    for value, row in computed:
        if value is not None:
            values[value] = None
        elif any(part is None and mark for part, mark in zip(row, listed, strict=True)):
            from_listed = True
        else:
            null = True
    return Image(tuple(values), null, from_listed)


def _branches(expression: Call, scope: Mapping[str, Facts]) -> Iterator[tuple[Expression, Mapping[str, Facts]]]:
    """Yields the arguments of CASE, each with the facts of columns for which the conditions lead to it."""
    *pairs, last = expression.arguments
    for when, then in zip(pairs[::2], pairs[1::2], strict=True):
        yield when, scope
        yield then, _limited(when, scope, _SAME)
        scope = _limited(when, scope, _OPPOSITE)
    yield last, scope


def _limited(when: Expression, scope: Mapping[str, Facts], by: Mapping[str, str]) -> Mapping[str, Facts]:
    """Returns the facts where a condition `column < constant` is true, or is not true: `by` says which comparison then holds.
    Limits whole numbers whose values are too many to be listed. A clipped one stays within its bounds."""
    if not isinstance(when, Call) or when.name not in by or not isinstance(when.arguments[0], Column):
        return scope
    name, constant = when.arguments[0].name, known(when.arguments[1], scope)
    facts, end = scope[name], constant.low
    if facts.kind != "int" or facts.values is not None or end is None or end != constant.high or abs(end) >= 2**53:
        return scope
    comparison = by[when.name]
    low = math.floor(end) + 1 if comparison == "gt" else math.ceil(end) if comparison == "ge" else None
    high = math.ceil(end) - 1 if comparison == "lt" else math.floor(end) if comparison == "le" else None
    limited = replace(facts, low=_inner(facts.low, low, max), high=_inner(facts.high, high, min))
    if limited.low is not None and limited.high is not None and limited.low > limited.high:
        return scope  # no value inside; those outside are clipped
    return {**scope, name: replace(limited, values=every_value(limited))}


def _inner(bound: Fraction | None, end: int | None, pick: Callable[..., Fraction]) -> Fraction | None:
    return bound if end is None else Fraction(end) if bound is None else pick(bound, Fraction(end))


def _first_true(images: Sequence[Image | None]) -> Image | None:
    """Returns the image of CASE: of each branch whose condition may be true, up to the first that always is."""
    branches = []
    for when, then in zip(images[:-1:2], images[1::2], strict=True):
        if when is None or True in when.values:
            branches.append(then)
        if when is not None and when == Image((True,)):
            break
    else:
        branches.append(images[-1])
    finite = [branch for branch in branches if branch is not None]
    values = tuple(dict.fromkeys(value for branch in finite for value in branch.values))
    if len(finite) < len(branches) or len(values) > MOST_VALUES:
        return None
    return Image(values, any(branch.null for branch in finite), any(branch.listed for branch in finite))


# --- values between bounds --------------------------------------------------------------------------------------


def _between_bounds(expression: Expression, inferred: Facts, scope: Mapping[str, Facts]) -> tuple[Key, ...] | None:
    """Returns all values between the bounds of an expression: numbers on its grid, names, starts of a calendar unit."""
    if isinstance(expression, Call) and expression.name in DOMAINS:
        return DOMAINS[expression.name]
    on = grid(expression, scope) if inferred.whole and inferred.numeric else None
    listed = None if on is None else on.values()
    if listed is not None:
        return tuple(value for value in listed if inferred.may_be(value))
    if isinstance(expression, Call) and expression.name == "date_trunc" and isinstance(expression.arguments[0], Literal):
        inner = known(expression.arguments[1], scope)
        first, last = from_day_number(inner.low), from_day_number(inner.high)
        if first is not None and last is not None:
            starts = unit_starts(str(expression.arguments[0].value), first, last)
            return None if starts is None else tuple(starts)
    return every_value(inferred)


def every_value(facts: Facts) -> tuple[Key, ...] | None:
    """Returns the whole numbers or days between the bounds; None if there are too many."""
    if facts.kind == "bool":
        return (False, True)
    if facts.low is None or facts.high is None or not (facts.whole or facts.kind == "date"):
        return None
    first, last = math.ceil(facts.low), math.floor(facts.high)
    if last - first + 1 > MOST_VALUES:
        return None
    if facts.kind == "date":
        return tuple(date for date in (from_day_number(Fraction(n)) for n in range(first, last + 1)) if date is not None)
    return tuple(range(first, last + 1))


def within_values(facts: Facts) -> Facts:
    """Narrows the bounds to the values."""
    found: list[Any] = [value for value in facts.values or () if value is not None]
    if not found or facts.kind not in ("int", "real", "date"):
        return facts
    return replace(facts, low=_place(min(found)), high=_place(max(found)))


def _place(value: int | datetime.date) -> Fraction:
    return day_number(value) if isinstance(value, datetime.date) else Fraction(value)


def _sorted(values: Iterable[Key]) -> tuple[Key, ...]:
    known: list[Any] = list(values)
    return tuple(sorted(known))
