"""Margins of computed outputs, such as SUM(x) / COUNT(*) or 100 * AVG(x). Post-processing, free.

Each of the k aggregates in an expression lies in its interval with confidence 1 - (1 - c)/k, so all of them do at once with
confidence c (union bound). The function registry's interval rules carry the intervals through the expression: whatever the
true aggregates are within them, the true output lies in what comes out. No margin is stated (None) where that has no end, or
where the true output may be NULL: a divisor that may be zero does both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dither.planning.plan import Plan
from dither.planning.readings import Bounds, Cells
from dither.query.catalog import Key
from dither.query.facts import Facts
from dither.query.functions import columns
from dither.query.infer import constant, known
from dither.query.nodes import Call, Column, Expression, Literal

_COUNTS = ("count", "count_distinct", "count_units")


@dataclass(frozen=True)
class Computed:
    """An output that is computed from the aggregates it names, all noisy."""

    expression: Expression
    aggregates: tuple[str, ...]


def computed(plan: Plan, expression: Expression) -> Computed | None:
    """The expression as a computed number; None if it is an aggregate as it stands, names none, or is no number."""
    named = columns(expression)
    functions = {asked.name: asked.function for asked in plan.query.aggregates}
    used = tuple(sorted(named & set(functions)))
    if not used or isinstance(expression, Column):
        return None
    keys = {key.name for key in plan.query.keys}
    free = {name: _fact(functions[name], -math.inf, math.inf) for name in used}
    if not named & keys and not known(expression, free).numeric:
        return None
    return Computed(expression, used)


def _fact(function: str, low: float, high: float) -> Facts:
    """What is known of the true aggregate. Counts are whole and never below zero."""
    if function in _COUNTS:
        top = None if math.isinf(high) else Fraction(math.floor(high))
        return Facts("int", Fraction(max(0, math.ceil(low)) if math.isfinite(low) else 0), top, False, whole=True)
    bottom, top = (None if math.isinf(end) else Fraction(end) for end in (low, high))
    return Facts("real", bottom, top, nullable=False)


def reach(
    plan: Plan,
    asked: Computed,
    cells: Cells,
    keys: Sequence[tuple[Key, ...]],
    values: Mapping[int, object],
    confidence: Fraction,
) -> dict[int, float | None]:
    """The margin of each value, by the place of its group in the release."""
    each = 1 - (1 - confidence) / len(asked.aggregates)
    functions = {one.name: one.function for one in plan.query.aggregates}
    bounds: dict[str, Bounds] = {}
    for name in asked.aggregates:
        reading = plan.reading(name)
        if reading is None:
            raise TypeError(f"{name} has no reading")
        bounds[name] = reading.bounds(plan.noises, cells, each)
    found: dict[int, float | None] = {}
    for place, value in values.items():
        scope = {name: _fact(functions[name], float(low[place]), float(high[place])) for name, (low, high) in bounds.items()}
        scope |= {key.name: constant(keys[place][i]) for i, key in enumerate(plan.query.keys)}
        found[place] = _around(value, known(asked.expression, scope))
    return found


def _around(value: object, truth: Facts) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    if truth.low is None or truth.high is None or truth.nullable:
        return None
    return max(float(truth.high) - value, value - float(truth.low), 0.0)


def weights(expression: Expression) -> dict[str, Fraction] | None:
    """The weight of each column, if the expression is a weighted sum of columns and constants: its margin can be foretold.

    >>> weights(Call("sub", (Call("mul", (Literal(100), Column("a"))), Column("b"))))
    {'a': Fraction(100, 1), 'b': Fraction(-1, 1)}
    """
    if isinstance(expression, Column):
        return {expression.name: Fraction(1)}
    if isinstance(expression, Literal):
        return {} if _number(expression) is not None else None
    parts = [weights(argument) for argument in expression.arguments]
    if any(part is None for part in parts):
        return None
    return _combined(expression, [part for part in parts if part is not None])


def _combined(call: Call, parts: list[dict[str, Fraction]]) -> dict[str, Fraction] | None:
    if call.name in ("neg", "to_real"):
        factor = Fraction(-1 if call.name == "neg" else 1)
        return {name: factor * weight for name, weight in parts[0].items()}
    if call.name in ("add", "sub"):
        sign = 1 if call.name == "add" else -1
        names = dict.fromkeys([*parts[0], *parts[1]])
        return {name: parts[0].get(name, Fraction(0)) + sign * parts[1].get(name, Fraction(0)) for name in names}
    if call.name in ("mul", "div"):
        left, right = (_number(argument) for argument in call.arguments)
        if right:
            return {name: weight * right if call.name == "mul" else weight / right for name, weight in parts[0].items()}
        if call.name == "mul" and left is not None:
            return {name: weight * left for name, weight in parts[1].items()}
    return None


def _number(expression: Expression) -> Fraction | None:
    if isinstance(expression, Literal) and isinstance(expression.value, (int, Fraction)) and expression.kind != "bool":
        return Fraction(expression.value)
    return None


def foretold(plan: Plan, asked: Computed, rows: int | None, confidence: Fraction) -> float | None:
    """The margin to expect before anything is released; None if it depends on the values themselves or on rows unknown."""
    weighed = weights(asked.expression)
    if weighed is None or set(weighed) - set(asked.aggregates):
        return None
    each = 1 - (1 - confidence) / len(asked.aggregates)
    total = 0.0
    for name, weight in weighed.items():
        reading = plan.reading(name)
        part = None if reading is None else reading.predicted(plan.noises, rows, each)
        if part is None:
            return None
        total += abs(float(weight)) * part
    return total
