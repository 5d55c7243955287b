"""Finds the whole numbers that an expression can have where its columns have too many values to be tried: their bounds, and the
steps between them.

    FLOOR(k / 50) * 50                     0, 50, 100, ...
    LEAST(FLOOR(k / 50) * 50, 510)         0, 50, 100, ..., 500 and 510
    k - k % 50                             the multiples of 50

A grid contains every value that the expression can have, and perhaps more. Expressions are computed in doubles, where large
numbers are rounded and leave their grid; so a grid holds only for values up to its `limit`, and lists none beyond.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dither.query.functions.base import Bound, Facts
from dither.query.functions.registry import known, literal
from dither.query.functions.representatives import MOST_VALUES
from dither.query.nodes import Call, Column, Expression, Literal

_EXACT = 2**53  # whole numbers up to here are doubles
_ROUNDINGS = ("floor", "ceil", "round", "trunc", "to_int")


@dataclass(frozen=True)
class Grid:
    """The numbers `offset` + n * `step` between `low` and `high`, and `others`. Holds for values of at most `limit` in size."""

    step: int
    offset: int
    low: Bound
    high: Bound
    others: frozenset[int] = frozenset()
    limit: int = _EXACT

    def holds(self, value: int) -> bool:
        """Whether the expression may have this value."""
        inside = (self.low is None or self.low <= value) and (self.high is None or value <= self.high)
        return abs(value) > self.limit or value in self.others or (inside and (value - self.offset) % self.step == 0)

    def values(self) -> tuple[int, ...] | None:
        """Returns all values in order; None if they are too many, or beyond the limit."""
        if self.low is None or self.high is None:
            return None
        far = max(-self.low, self.high, *(Fraction(abs(number)) for number in self.others))
        if far > self.limit:
            return None
        first, last = (math.ceil((self.low - self.offset) / self.step), math.floor((self.high - self.offset) / self.step))
        if last - first + 1 + len(self.others) > MOST_VALUES:
            return None
        return tuple(sorted({*(self.offset + n * self.step for n in range(first, last + 1)), *self.others}))


def grid(expression: Expression, scope: Mapping[str, Facts]) -> Grid | None:
    """Returns the grid of a whole-number expression; None if none is known."""
    if isinstance(expression, Literal):
        return None
    if isinstance(expression, Column):
        return _every(scope[expression.name])
    if expression.name in _ROUNDINGS and len(expression.arguments) == 2:
        return _to_digits(expression, scope)
    if expression.name in _ROUNDINGS:
        inner = grid(expression.arguments[0], scope)
        return inner or _every(known(expression, scope))
    rule = _RULES.get(expression.name)
    return None if rule is None else rule(expression, scope)


def _every(facts: Facts) -> Grid | None:
    return Grid(1, 0, facts.low, facts.high) if facts.whole and facts.numeric else None


def _whole(expression: Expression) -> int | None:
    """Returns the value of a whole constant."""
    value = literal(expression.value) if isinstance(expression, Literal) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return int(value) if value == int(value) and abs(value) <= _EXACT else None


def _bucket(expression: Call, scope: Mapping[str, Facts]) -> Grid | None:
    width, facts = _whole(expression.arguments[1]), known(expression, scope)
    return None if not width or width < 0 else Grid(width, 0, facts.low, facts.high)


def _to_digits(expression: Call, scope: Mapping[str, Facts]) -> Grid | None:
    """Returns the grid of ROUND(x, -2): the multiples of 100. With digits after the point it has fractions."""
    digits, facts = _whole(expression.arguments[1]), known(expression, scope)
    return None if digits is None or digits > 0 else Grid(10**-digits, 0, facts.low, facts.high)


# --- arithmetic -------------------------------------------------------------------------------------------------


def _product(expression: Call, scope: Mapping[str, Facts]) -> Grid | None:
    x, y = expression.arguments
    factor, other = (_whole(y), x) if isinstance(y, Literal) else (_whole(x), y)
    found = grid(other, scope)
    return None if not factor or found is None else _scaled(found, Fraction(factor))


def _quotient(expression: Call, scope: Mapping[str, Facts]) -> Grid | None:
    """Returns the grid of a quotient without remainders. It is exact in doubles."""
    x, y = expression.arguments
    divisor, found = _whole(y), grid(x, scope)
    if not divisor or found is None or any(number % divisor for number in (found.step, found.offset, *found.others)):
        return None
    return replace(_scaled(found, Fraction(1, divisor)), limit=found.limit // abs(divisor))


def _scaled(found: Grid, factor: Fraction) -> Grid:
    ends = [None if end is None else end * factor for end in (found.low, found.high)]
    low, high = ends if factor > 0 else ends[::-1]
    others = frozenset(int(number * factor) for number in found.others)
    return replace(
        found, step=int(found.step * abs(factor)), offset=int(found.offset * factor), low=low, high=high, others=others
    )


def _negative(expression: Call, scope: Mapping[str, Facts]) -> Grid | None:
    found = grid(expression.arguments[0], scope)
    return None if found is None else _scaled(found, Fraction(-1))


def _sum(expression: Call, scope: Mapping[str, Facts]) -> Grid | None:
    x, y = expression.arguments
    constant = _whole(x) if isinstance(x, Literal) else _whole(y)
    if constant is not None:
        return _moved(grid(y if isinstance(x, Literal) else x, scope), constant)
    return _added(grid(x, scope), grid(y, scope))


def _difference(expression: Call, scope: Mapping[str, Facts]) -> Grid | None:
    x, y = expression.arguments
    if isinstance(y, Call) and y.name == "mod" and y.arguments[0] == x:
        return _whole_part(x, _whole(y.arguments[1]), scope)
    if isinstance(y, Literal):
        constant = _whole(y)
        return None if constant is None else _moved(grid(x, scope), -constant)
    negative = Call("neg", (y,))
    constant = _whole(x)
    return _added(grid(x, scope), grid(negative, scope)) if constant is None else _moved(grid(negative, scope), constant)


def _whole_part(x: Expression, width: int | None, scope: Mapping[str, Facts]) -> Grid | None:
    """Returns the grid of x - x % width: the multiples of the width, from x towards zero."""
    found = grid(x, scope)
    if not width or abs(width) > 2**40 or found is None:
        return None
    width = abs(width)
    low, high = (None if end is None else Fraction(math.trunc(end / width) * width) for end in (found.low, found.high))
    others = frozenset(math.trunc(Fraction(number, width)) * width for number in found.others)
    # Up to 2^52 each step of the remainder is exact. Beyond, x less its remainder stays within a few widths of x.
    return Grid(width, 0, low, high, others, min(found.limit, 2**52) - 2**44)


def _moved(found: Grid | None, constant: int) -> Grid | None:
    if found is None or abs(constant) >= found.limit:
        return None
    low, high = (None if end is None else end + constant for end in (found.low, found.high))
    others = frozenset(number + constant for number in found.others)
    return replace(found, offset=found.offset + constant, low=low, high=high, others=others, limit=found.limit - abs(constant))


def _added(x: Grid | None, y: Grid | None) -> Grid | None:
    """Returns the grid of a sum of two grids, if both are within what doubles hold exactly."""
    if x is None or y is None or x.others or y.others:
        return None
    if x.low is None or x.high is None or y.low is None or y.high is None:
        return None
    if max(map(abs, (x.low, x.high))) > x.limit or max(map(abs, (y.low, y.high))) > y.limit:
        return None
    return Grid(math.gcd(x.step, y.step), x.offset + y.offset, x.low + y.low, x.high + y.high)


def _remainder(expression: Call, scope: Mapping[str, Facts]) -> Grid | None:
    x, y = expression.arguments
    divisor, found, facts = _whole(y), grid(x, scope), known(expression, scope)
    if not divisor or found is None or found.others or facts.low is None or facts.high is None:
        return None
    if found.low is None or found.high is None or max(abs(found.low), abs(found.high)) >= min(found.limit, 2**52):
        return None
    return Grid(math.gcd(found.step, divisor), found.offset, facts.low, facts.high)


# --- choosing ---------------------------------------------------------------------------------------------------


def _cut(found: Grid, end: int, pick: Callable[..., int]) -> Grid:
    """Returns the grid with all values beyond the end moved to it. `pick`: min for an upper end, max for a lower one."""
    others = frozenset(pick(number, end) for number in found.others)
    bound = found.high if pick is min else found.low
    if bound is None or pick(bound, end) != bound:
        bound = Fraction(end)
        cut = replace(found, high=bound) if pick is min else replace(found, low=bound)
        return replace(cut, others=others if replace(cut, others=frozenset()).holds(end) else others | {end})
    return replace(found, others=others)


def _extreme(pick: Callable[..., int]) -> Callable[[Call, Mapping[str, Facts]], Grid | None]:
    def rule(expression: Call, scope: Mapping[str, Facts]) -> Grid | None:
        inner = [part for part in expression.arguments if not isinstance(part, Literal)]
        ends = [_whole(part) for part in expression.arguments if isinstance(part, Literal)]
        found = grid(inner[0], scope) if len(inner) == 1 else None
        for end in ends:
            found = None if found is None or end is None else _cut(found, end, pick)
        return found

    return rule


def _skipping(pick: Callable[..., int]) -> Callable[[Call, Mapping[str, Facts]], Grid | None]:
    """Returns the rule of LEAST or GREATEST without NULL: where the rest is NULL, a constant is left."""

    def rule(expression: Call, scope: Mapping[str, Facts]) -> Grid | None:
        kept = tuple(part for part in expression.arguments if not isinstance(part, Literal) or part.value is not None)
        found = _extreme(pick)(replace(expression, arguments=kept), scope)
        ends = [end for end in map(_whole, kept) if end is not None]
        return found if found is None or not ends else replace(found, others=found.others | {pick(ends)})

    return rule


def _clamped(expression: Call, scope: Mapping[str, Facts]) -> Grid | None:
    x, low, high = expression.arguments
    found, bottom, top = grid(x, scope), _whole(low), _whole(high)
    return None if found is None or bottom is None or top is None else _cut(_cut(found, bottom, max), top, min)


def _either(choices: Sequence[Expression], scope: Mapping[str, Facts]) -> Grid | None:
    """Returns a grid for a value that is one of these; those that are constants stand beside it."""
    constants = [_whole(part) for part in choices if isinstance(part, Literal) and part.value is not None]
    grids = [grid(part, scope) for part in choices if not isinstance(part, Literal)]
    if not grids or None in grids or None in constants:
        return None
    first, *rest = [each for each in grids if each is not None]
    for each in rest:
        low, high = (None if a is None or b is None else pick(a, b) for a, b, pick in _ends(first, each))
        step = math.gcd(first.step, each.step, first.offset - each.offset)
        first = Grid(step, first.offset, low, high, first.others | each.others, min(first.limit, each.limit))
    return replace(first, others=first.others | {number for number in constants if number is not None})


def _ends(x: Grid, y: Grid) -> tuple[tuple[Bound, Bound, Callable[..., Fraction]], ...]:
    return (x.low, y.low, min), (x.high, y.high, max)


_RULES: dict[str, Callable[[Call, Mapping[str, Facts]], Grid | None]] = {
    "bucket": _bucket,
    "mul": _product,
    "div": _quotient,
    "neg": _negative,
    "add": _sum,
    "sub": _difference,
    "mod": _remainder,
    "least": _extreme(min),
    "greatest": _extreme(max),
    "smallest": _skipping(min),
    "largest": _skipping(max),
    "whole_quotient": lambda expression, scope: _every(known(expression, scope)),
    "clamp": _clamped,
    "case": lambda expression, scope: _either([*expression.arguments[1::2], expression.arguments[-1]], scope),
    "coalesce": lambda expression, scope: _either(expression.arguments, scope),
}
