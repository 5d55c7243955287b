"""Narrows public keys by the conditions of the question: WHERE age < 24 leaves the groups that ages below 24 can have.

While a query is resolved, each column of a Shape remembers how it is computed from *leaves* (columns of tables, or values that
nothing more is known of, such as an aggregate per person), and the shape collects the conditions that every row meets, over the
same leaves. At the end

    keys = f(D and W)  +  those of f(D) that rows outside D may have       D: declared values of the leaves
                                                                           W: values that meet the conditions

with f the key; and of these, the ones that meet the conditions about f itself (WHERE MONTH(d) < 3 GROUP BY MONTH(d)). The
engine drops rows whose key is not public, so nothing that a row may have is left out. Bounds are made for clipping, and rows
may lie outside (`Facts.clipped`): they are counted, as without conditions, where their key is in f(D). Declared `values` and
public tables have no outside.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dither.catalog.values import Key
from dither.errors import QueryError
from dither.query.functions.base import Bound, Cell, Facts, hull
from dither.query.functions.dates import day_number
from dither.query.functions.domains import every_value, facts, within_values
from dither.query.functions.registry import columns, evaluator, literal
from dither.query.nodes import Call, Column, Expression, Literal, Value
from dither.query.resolve.shapes import Known, Shape

MOST_PARTS = 2_000  # larger expressions are not narrowed
_KEY = "#key"
_TRUE = Literal(True)
_SWAPPED = {"eq": "eq", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}  # x < y is y > x
_EXACT = 2**53
_TICK = Fraction(1, 86_400_000_000)  # a microsecond, in days


# --- while a query is resolved ----------------------------------------------------------------------------------


def traced(shape: Shape, names: Iterable[str]) -> Shape:
    """Makes leaves of these columns, unless they are made of leaves already."""
    made, leaves, origins = dict(shape.columns), dict(shape.leaves), dict(shape.origins)
    for name in names:
        known = made.get(name)
        if known is not None and known.made_of is None:
            leaf = f"{len(leaves)} {name}"
            leaves[leaf] = known.facts
            made[name] = replace(known, made_of=Column(leaf))
            if known.origin is not None:
                origins[leaf] = known.origin
    return replace(shape, columns=made, leaves=leaves, origins=origins)


def made_of(expression: Expression, columns: Mapping[str, Known]) -> Expression | None:
    """Returns an expression over leaves; None if one of its columns is made of none, or if it is too large."""
    found = substituted(expression, {name: known.made_of for name, known in columns.items()})
    return None if found is None or _parts(found) > MOST_PARTS else found


def substituted(expression: Expression, by: Mapping[str, Expression | None]) -> Expression | None:
    """Returns the expression with its columns replaced; None if one of them has nothing in its place."""
    if isinstance(expression, Column):
        return by.get(expression.name)
    if isinstance(expression, Literal):
        return expression
    parts = [substituted(argument, by) for argument in expression.arguments]
    known = tuple(part for part in parts if part is not None)
    return Call(expression.name, known) if len(known) == len(parts) else None


def _parts(expression: Expression) -> int:
    return 1 + sum(map(_parts, expression.arguments)) if isinstance(expression, Call) else 1


def filtered(shape: Shape, condition: Expression) -> Shape:
    """Returns the shape whose rows meet the condition too."""
    shape = traced(shape, columns(condition))
    found = made_of(condition, shape.columns)
    return shape if found is None else replace(shape, conditions=(*shape.conditions, found))


def beside(left: Shape, right: Shape) -> Shape:
    """Returns the right side of a join, its leaves renamed so that they differ from those of the left side."""
    names = {leaf: f"{len(left.leaves)}+{leaf}" for leaf in right.leaves}
    by: dict[str, Expression | None] = {old: Column(new) for old, new in names.items()}
    return replace(
        right,
        columns={
            name: known if known.made_of is None else replace(known, made_of=substituted(known.made_of, by))
            for name, known in right.columns.items()
        },
        leaves={names[leaf]: known for leaf, known in right.leaves.items()},
        origins={names[leaf]: origin for leaf, origin in right.origins.items()},
        equal=tuple((names[one], names[two]) for one, two in right.equal),
        conditions=tuple(part for part in (substituted(each, by) for each in right.conditions) if part is not None),
    )


def sides(
    left: Shape, right: Shape, pairs: Sequence[tuple[Expression, Expression]], kind: str
) -> tuple[Shape, Shape, tuple[tuple[str, str], ...]]:
    """Returns both sides of a join with what is known of their rows in it, and the leaves that an inner join equates."""
    if kind != "inner":
        return (_without_leaves(left) if kind == "full" else left), _without_leaves(right), ()
    ours, theirs = [one for one, _ in pairs], [two for _, two in pairs]
    left = traced(left, (name for each in ours for name in columns(each)))
    right = beside(left, traced(right, (name for each in theirs for name in columns(each))))
    made = ((made_of(one, left.columns), made_of(two, right.columns)) for one, two in zip(ours, theirs, strict=True))
    equal = tuple((one.name, two.name) for one, two in made if isinstance(one, Column) and isinstance(two, Column))
    return left, right, equal


def _without_leaves(shape: Shape) -> Shape:
    return replace(shape, leaves={}, origins={}, equal=(), conditions=())


def unlisted(shape: Shape, expressions: Iterable[Expression]) -> tuple[str, ...]:
    """Returns a note for each constant that is compared with a column of declared values and is none of them.

    Rows may have it all the same, so nothing is refused; more often it is misspelt, and no row does.
    """
    shape = traced(shape, (name for each in expressions for name in columns(each)))
    parts = [*shape.conditions, *(found for each in expressions if (found := made_of(each, shape.columns)) is not None)]
    notes: dict[str, None] = {}
    for leaf, constant in (pair for part in parts for pair in _constants(part)):
        known = shape.leaves[leaf]
        values = None if known.clipped else known.values
        if values is not None and leaf in shape.origins and constant is not None and constant not in values:
            name = ".".join(shape.origins[leaf])
            notes[f"{_as_text(constant)} is none of the declared values of {name}: check how it is written"] = None
    return tuple(notes)


def _constants(expression: Expression) -> Iterator[tuple[str, Value]]:
    """Yields the leaves that are compared with constants for being equal, with each constant."""
    if not isinstance(expression, Call):
        return
    if expression.name in ("eq", "ne", "in_list"):
        names = [each.name for each in expression.arguments if isinstance(each, Column)]
        constants = [each.value for each in expression.arguments if isinstance(each, Literal)]
        if len(names) == 1 and len(constants) == len(expression.arguments) - 1:
            yield from ((names[0], constant) for constant in constants)
    for argument in expression.arguments:
        yield from _constants(argument)


def _as_text(constant: Value) -> str:
    return f"'{constant[:40]}'" if isinstance(constant, str) else str(constant)


# --- the keys of a question -------------------------------------------------------------------------------------


def possible(key: Expression, shape: Shape) -> Facts:
    """Returns the facts of a key, its values narrowed by the conditions. Refuses a key that no declared value can give."""
    full = facts(key, shape.scope)
    shape = traced(shape, columns(key))
    expression = made_of(key, shape.columns)
    if expression is None or not shape.conditions:
        return full
    narrowed = {name: narrow(name, shape.leaves[name], shape.conditions) for name in columns(expression)}
    unchanged = all(each.unchanged for each in narrowed.values())
    values = None if unchanged else _values(expression, narrowed, full)
    values = _meeting(full.values if values is None else values, expression, full, shape.conditions)
    if values is None or values == full.values:
        return full
    if not values and full.values != ():
        raise QueryError(
            "No declared value of this key meets the conditions of the question, so there is no group.",
            span=key.span,
            fix="change the condition, or declare wider bounds or further `values` in the catalog.",
        )
    return within_values(replace(full, values=values, nullable=full.nullable))


def _values(expression: Expression, narrowed: Mapping[str, Narrow], full: Facts) -> tuple[Key, ...] | None:
    """Returns the keys of rows inside the declared facts, and those of `full` that rows outside may have."""
    inside = facts(expression, {name: each.inside for name, each in narrowed.items()}).values
    empty = any(each.inside.values == () and not each.inside.nullable for each in narrowed.values())
    inside = () if empty else inside
    if full.values is None:  # too many to be listed whole: rows outside must have no key of rows inside
        apart = isinstance(expression, Column) or not any(each.outside for each in narrowed.values())
        return inside if apart else None
    if inside is None:
        return None
    kept = set(inside)
    anywhere = {name: each.anywhere for name, each in narrowed.items()}
    for name, each in narrowed.items():
        for piece in each.outside:
            kept |= shared(facts(expression, {**anywhere, name: piece}), full.values)
    return tuple(value for value in full.values if value in kept)


def _meeting(
    values: tuple[Key, ...] | None, key: Expression, full: Facts, conditions: Sequence[Expression]
) -> tuple[Key, ...] | None:
    """Returns the values that meet the conditions about the key itself, as in WHERE MONTH(d) < 3 GROUP BY MONTH(d). They hold
    for rows outside the bounds, too. None if neither the key nor a condition lists values."""
    if not isinstance(key, Call):
        return values
    about = [_about(each, key) for each in conditions]
    known = replace(full, values=values, clipped=False, nullable=full.nullable or (values is not None and None in values))
    found = narrow(_KEY, known, [each for each in about if _KEY in columns(each)])
    return values if found.unchanged else found.inside.values


def _about(condition: Expression, key: Expression) -> Expression:
    """Returns the condition with the key in one piece."""
    if condition == key:
        return Column(_KEY)
    if not isinstance(condition, Call):
        return condition
    return Call(condition.name, tuple(_about(argument, key) for argument in condition.arguments))


def shared(outside: Facts, every: tuple[Key, ...]) -> set[Key]:
    """Returns the keys that an expression with these facts may have."""
    if outside.values is not None:
        return set(every) & set(outside.values)
    return {value for value in every if value is None or _between(value, outside)}


def _between(value: Any, known: Facts) -> bool:
    if isinstance(value, (bool, str)):
        return True
    place = day_number(value) if isinstance(value, datetime.date) else Fraction(value)
    return (known.low is None or known.low <= place) and (known.high is None or place <= known.high)


# --- one leaf ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Narrow:
    """The facts of a leaf in rows that meet the conditions: inside its declared facts; in each part outside; anywhere."""

    inside: Facts
    outside: tuple[Facts, ...]
    anywhere: Facts
    unchanged: bool = False


@lru_cache(maxsize=256)
def _narrow(name: str, known: Facts, condition: Expression) -> Narrow:
    low, high = limits(condition, known)
    holds = evaluator(condition)
    nullable = known.nullable and holds({name: None}) is True
    free = Facts(known.kind, low, high, nullable, known.whole, choices(condition, known), known.step)
    free = replace(free, absent=nullable and known.absent)
    inside = replace(free, low=_later(known.low, low), high=_earlier(known.high, high), values=_both(known, free))
    if inside.values is None and not _is_empty(inside):
        inside = replace(inside, values=every_value(inside))
    return Narrow(_kept(inside, name, holds), _outside(known, free, name, holds), free if known.clipped else inside)


def _is_empty(known: Facts) -> bool:
    return known.low is not None and known.high is not None and known.low > known.high


def _kept(known: Facts, name: str, holds: Callable[[Mapping[str, Any]], Cell]) -> Facts:
    """Returns the facts with the values that meet the condition."""
    if _is_empty(known):
        return replace(known, low=None, high=None, values=())
    if known.values is None:
        return known
    return within_values(replace(known, values=tuple(value for value in known.values if holds({name: value}) is True)))


def narrow(name: str, known: Facts, conditions: Iterable[Expression]) -> Narrow:
    """Returns what the conditions leave of a leaf."""
    parts = [part for part in (implied(each, name) for each in conditions) if part != _TRUE]
    if not parts:
        clipped = replace(known, clipped=False)
        free = Facts(known.kind, nullable=known.nullable, whole=known.whole, step=known.step, absent=known.absent)
        return Narrow(clipped, _outside(known, free, name, lambda _: True), free if known.clipped else known, unchanged=True)
    return _narrow(name, known, parts[0] if len(parts) == 1 else Call("and", tuple(parts)))


def _both(known: Facts, free: Facts) -> tuple[Key, ...] | None:
    """Returns the values in both; None if neither lists them."""
    if known.values is None:
        return None if free.values is None else tuple(value for value in free.values if _between(value, known))
    if free.values is None:
        return known.values
    return tuple(value for value in known.values if value is None or value in free.values)


def _outside(known: Facts, free: Facts, name: str, holds: Callable[[Mapping[str, Any]], Cell]) -> tuple[Facts, ...]:
    """Returns the parts of `free` that lie outside bounds made for clipping."""
    if not known.clipped or _is_empty(free):
        return ()
    step = Fraction(0) if known.kind in ("real", "timestamp") else Fraction(1)
    pieces = []
    if known.low is not None and (free.low is None or free.low < known.low):
        pieces.append(replace(free, high=_earlier(free.high, known.low - step)))
    if known.high is not None and (free.high is None or free.high > known.high):
        pieces.append(replace(free, low=_later(free.low, known.high + step)))
    listed = [replace(piece, values=None if piece.values is None else _inside(piece)) for piece in pieces]
    found = [_kept(piece, name, holds) for piece in listed]
    return tuple(piece for piece in found if piece.values != ())


def _inside(piece: Facts) -> tuple[Key, ...]:
    return tuple(value for value in piece.values or () if _between(value, piece))


def _later(*ends: Bound) -> Bound:
    return max((end for end in ends if end is not None), default=None)


def _earlier(*ends: Bound) -> Bound:
    return min((end for end in ends if end is not None), default=None)


# --- conditions -------------------------------------------------------------------------------------------------


def implied(condition: Expression, name: str) -> Expression:
    """Returns a condition over one leaf that holds wherever the condition does.

    >>> a, b = (Call("eq", (Column(name), Literal(1))) for name in "ab")
    >>> implied(Call("and", (a, b)), "a") == a, implied(Call("or", (a, b)), "a")
    (True, Literal(value=True, span=None))
    """
    if columns(condition) == {name}:
        return condition
    if isinstance(condition, Call) and condition.name in ("and", "or"):
        parts = [implied(part, name) for part in condition.arguments]
        if condition.name == "or":
            return _TRUE if _TRUE in parts else Call("or", tuple(parts))
        kept = tuple(part for part in parts if part != _TRUE)
        return Call("and", kept) if len(kept) > 1 else kept[0] if kept else _TRUE
    if isinstance(condition, Call) and condition.name == "not":
        inner = condition.arguments[0]
        if isinstance(inner, Call) and inner.name in ("and", "or"):
            other = "or" if inner.name == "and" else "and"
            return implied(Call(other, tuple(Call("not", (part,)) for part in inner.arguments)), name)
    return _TRUE


def _compared(condition: Call) -> tuple[str, Expression, Any] | None:
    """Returns (relation, expression, constant) of a comparison with a constant."""
    if condition.name not in _SWAPPED:
        return None
    left, right = condition.arguments
    if isinstance(right, Literal) and right.value is not None:
        return condition.name, left, literal(right.value)
    if isinstance(left, Literal) and left.value is not None:
        return _SWAPPED[condition.name], right, literal(left.value)
    return None


def limits(condition: Expression, known: Facts) -> tuple[Bound, Bound]:
    """Returns the interval of a leaf in rows that meet a condition over it alone."""
    if not isinstance(condition, Call) or known.kind in ("text", "bool"):
        return None, None
    if condition.name in ("and", "or"):
        parts = [limits(part, known) for part in condition.arguments]
        if condition.name == "or":
            return hull(parts)
        return _later(*(part[0] for part in parts)), _earlier(*(part[1] for part in parts))
    if condition.name == "in_list":
        each = [Call("eq", (condition.arguments[0], choice)) for choice in condition.arguments[1:]]
        return limits(Call("or", tuple(each)), known)
    compared = _compared(condition)
    return (None, None) if compared is None else _limit(*compared, known)


def _limit(relation: str, inner: Expression, constant: Any, known: Facts) -> tuple[Bound, Bound]:
    if isinstance(inner, Call) and inner.name == "year" and isinstance(inner.arguments[0], Column):
        return _year_limit(relation, constant, known)
    if not isinstance(inner, Column) or isinstance(constant, bool):
        return None, None
    if isinstance(constant, (int, float)):
        if not known.numeric or not abs(constant) < _EXACT:
            return None, None
        place = Fraction(constant)
    elif isinstance(constant, datetime.date) and known.kind in ("date", "timestamp"):
        place = day_number(constant)
    else:
        return None, None
    below, above = _next(place, known)
    whole = known.kind in ("int", "date")
    low = {"gt": above, "ge": Fraction(math.ceil(place)) if whole else place, "eq": place}.get(relation)
    high = {"lt": below, "le": Fraction(math.floor(place)) if whole else place, "eq": place}.get(relation)
    return low, high


def _next(place: Fraction, known: Facts) -> tuple[Fraction, Fraction]:
    """Returns the last value below a place and the first above it."""
    if known.kind in ("int", "date"):
        return Fraction(math.ceil(place) - 1), Fraction(math.floor(place) + 1)
    if known.kind == "timestamp":
        return place - _TICK, place + _TICK
    near = float(place)
    return Fraction(math.nextafter(near, -math.inf)), Fraction(math.nextafter(near, math.inf))


def _year_limit(relation: str, year: Any, known: Facts) -> tuple[Bound, Bound]:
    """Returns the interval of dates whose year is compared with a constant."""
    if not isinstance(year, int) or not 1 <= year < datetime.MAXYEAR or known.kind not in ("date", "timestamp"):
        return None, None
    first, after = day_number(datetime.date(year, 1, 1)), day_number(datetime.date(year + 1, 1, 1))
    gap = Fraction(1) if known.kind == "date" else _TICK
    low = {"eq": first, "ge": first, "gt": after}.get(relation)
    high = {"eq": after - gap, "le": after - gap, "lt": first - gap}.get(relation)
    return low, high


def choices(condition: Expression, known: Facts) -> tuple[Key, ...] | None:
    """Returns the values that a leaf must have one of in rows that meet the condition; None if any."""
    if not isinstance(condition, Call) or known.kind not in ("int", "text", "date"):
        return None
    if condition.name == "and":
        found = [choices(part, known) for part in condition.arguments]
        return next((part for part in found if part is not None), None)
    if condition.name == "or":
        found = [choices(part, known) for part in condition.arguments]
        listed = [part for part in found if part is not None]
        return _ordered(value for part in listed for value in part) if len(listed) == len(found) else None
    if condition.name == "in_list":
        each = [Call("eq", (condition.arguments[0], choice)) for choice in condition.arguments[1:]]
        return choices(Call("or", tuple(each)), known)
    compared = _compared(condition)
    if compared is None or compared[0] != "eq" or not isinstance(compared[1], Column):
        return () if condition.name == "eq" and Literal(None) in condition.arguments else None
    if isinstance(compared[2], float) and not abs(compared[2]) < _EXACT:
        return None  # several whole numbers are the same double
    key = _as_key(compared[2], known.kind)
    return () if key is None else (key,)


def _as_key(constant: Any, kind: str) -> Key:
    """Returns a constant as a value of a column; None if no value of this kind equals it."""
    if kind == "int" and isinstance(constant, (int, float)):
        return int(constant) if constant == math.trunc(constant) else None
    if kind == "date" and isinstance(constant, datetime.datetime):
        return constant.date() if day_number(constant).denominator == 1 else None
    right: Key = constant
    return right


def _ordered(values: Iterable[Any]) -> tuple[Key, ...]:
    return tuple(sorted(set(values)))
