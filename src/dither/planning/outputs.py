"""The columns of an answer: keys, aggregates, and what is computed from them. Every loop over outputs goes through here.

An output knows its margins once there are noisy numbers, the margin to expect before that, and its words.

Margins of computed outputs, such as SUM(x) / COUNT(*) or 100 * AVG(x): each of the k aggregates in an expression lies in its
interval with confidence 1 - (1 - c)/k, so all of them do at once with confidence c (union bound). The function registry's
interval rules carry the intervals through the expression: whatever the true aggregates are within them, the true output lies
in what comes out. No margin is stated (None) where that has no end, or where the true output may be NULL: a divisor that may be
zero does both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dither.exact.numbers import rounded
from dither.planning.finish import Noisy, Table
from dither.planning.plan import Plan
from dither.planning.releases.base import Reading
from dither.query.aggregates import FUNCTIONS
from dither.query.facts import Facts
from dither.query.functions import columns
from dither.query.infer import constant, known
from dither.query.nodes import Call, Column, Expression, Literal


@dataclass(frozen=True)
class Output:
    """A column without a margin: a key, a constant, a text."""

    name: str
    words: str

    @property
    def readings(self) -> tuple[Reading, ...]:
        """The noisy numbers it is read from."""
        return ()

    def margins(
        self, plan: Plan, noisy: Noisy, values: Mapping[int, object], confidence: Fraction
    ) -> Mapping[int, float | None]:
        """The margin of each value, by the place of its group in the release."""
        return {}

    def predicted(self, plan: Plan, rows: int | None, confidence: Fraction) -> float | None:
        """The margin to expect; None if it depends on what is not known yet."""
        return None

    def rank(self, plan: Plan, confidence: Fraction) -> float | None:
        """For a quantile: how many rows' worth its rank may be off."""
        return None

    def explain(self, plan: Plan, rows: int | None, confidence: Fraction) -> str:
        """What it is, and its predicted margin."""
        return self.words


@dataclass(frozen=True)
class AsRead(Output):
    """An aggregate as it stands."""

    reading: Reading

    @property
    def readings(self) -> tuple[Reading, ...]:
        return (self.reading,)

    def margins(
        self, plan: Plan, noisy: Noisy, values: Mapping[int, object], confidence: Fraction
    ) -> Mapping[int, float | None]:
        each = self.reading.margins(plan.noises, noisy.cells, confidence) if values else []
        return {place: each[place] for place in values}

    def predicted(self, plan: Plan, rows: int | None, confidence: Fraction) -> float | None:
        return self.reading.predicted(plan.noises, rows, confidence)

    def rank(self, plan: Plan, confidence: Fraction) -> float | None:
        return self.reading.rank(plan.noises, confidence)

    def explain(self, plan: Plan, rows: int | None, confidence: Fraction) -> str:
        return f"{self.words} {self.reading.expected(plan.noises, rows, confidence)}"


@dataclass(frozen=True)
class Computed(Output):
    """A number computed from aggregates, all noisy."""

    expression: Expression
    used: tuple[Reading, ...]

    @property
    def readings(self) -> tuple[Reading, ...]:
        return self.used

    def margins(
        self, plan: Plan, noisy: Noisy, values: Mapping[int, object], confidence: Fraction
    ) -> Mapping[int, float | None]:
        each = self._each(confidence)
        bounds = {one.asked: one.bounds(plan.noises, noisy.cells, each) for one in self.used} if values else {}
        found: dict[int, float | None] = {}
        for place, value in values.items():
            scope = {
                one.name: _fact(one.function, float(low[place]), float(high[place])) for one, (low, high) in bounds.items()
            }
            scope |= {key.name: constant(noisy.keys[place][i]) for i, key in enumerate(plan.query.keys)}
            found[place] = _around(value, known(self.expression, scope))
        return found

    def predicted(self, plan: Plan, rows: int | None, confidence: Fraction) -> float | None:
        """For a weighted sum of aggregates; None where it depends on the values themselves or on rows unknown."""
        weighed = weights(self.expression)
        readings = {one.name: one for one in self.used}
        if weighed is None or set(weighed) - set(readings):
            return None
        each, total = self._each(confidence), 0.0
        for name, weight in weighed.items():
            part = readings[name].predicted(plan.noises, rows, each)
            if part is None:
                return None
            total += abs(float(weight)) * part
        return total

    def explain(self, plan: Plan, rows: int | None, confidence: Fraction) -> str:
        margin = self.predicted(plan, rows, confidence)
        if margin is not None:
            return f"{self.words}, ± {rounded(margin)}"
        return f"{self.words}; its margin depends on them and comes with the answer"

    def _each(self, confidence: Fraction) -> Fraction:
        return 1 - (1 - confidence) / len(self.used)


def outputs(plan: Plan) -> tuple[Output, ...]:
    """The columns of the plan's answer, in order."""
    keys = {key.name for key in plan.query.keys}
    readings = {reading.name: reading for reading in plan.readings}
    return tuple(_output(output.name, output.expression, keys, readings) for output in plan.query.outputs)


def _output(name: str, expression: Expression, keys: set[str], readings: Mapping[str, Reading]) -> Output:
    if isinstance(expression, Column) and expression.name in keys:
        return Output(name, "key")
    if isinstance(expression, Column) and expression.name in readings:
        reading = readings[expression.name]
        return AsRead(name, reading.title, reading)
    named = columns(expression)
    used = tuple(readings[each] for each in sorted(named & set(readings)))
    free = {one.name: _fact(one.asked.function, -math.inf, math.inf) for one in used}
    if not used or (not named & keys and not known(expression, free).numeric):
        return Output(name, "computed from the noisy result")
    return Computed(name, "computed from the noisy numbers", expression, used)


def margins(plan: Plan, noisy: Noisy, finished: Table, confidence: Fraction) -> dict[str, list[float | None]]:
    """A margin for each output that is an aggregate or a number computed from aggregates; None where none can be stated."""
    found = {}
    for column, output in enumerate(outputs(plan)):
        if output.readings:
            values = {place: row[column] for place, row in zip(finished.places, finished.rows, strict=True)}
            wide = output.margins(plan, noisy, values, confidence)
            found[output.name] = [wide[place] for place in finished.places]
    return found


def predicted(plan: Plan, rows: int | None, confidence: Fraction) -> dict[str, float | None]:
    """The margin to expect of each output that will have one."""
    return {each.name: each.predicted(plan, rows, confidence) for each in outputs(plan) if each.readings}


def ranks(plan: Plan, confidence: Fraction) -> dict[str, float]:
    """For outputs that are quantiles: how many rows' worth the rank may be off."""
    found = {each.name: each.rank(plan, confidence) for each in outputs(plan)}
    return {name: rank for name, rank in found.items() if rank is not None}


def _fact(function: str, low: float, high: float) -> Facts:
    """What is known of the true aggregate. Counts are whole and never below zero."""
    if FUNCTIONS[function].counts:
        top = None if math.isinf(high) else Fraction(math.floor(high))
        return Facts("int", Fraction(max(0, math.ceil(low)) if math.isfinite(low) else 0), top, False, whole=True)
    bottom, top = (None if math.isinf(end) else Fraction(end) for end in (low, high))
    return Facts("real", bottom, top, nullable=False)


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
