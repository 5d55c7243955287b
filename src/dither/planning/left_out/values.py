"""How much of a sum clipping leaves out: people, or rows, with values outside the bounds, by class of how far outside.

Classes are powers of two of the width of the bounds, up to a public far bound: 16 widths for one row, 1024 for all rows of a
person. Beyond it a value counts as the far bound. In each class the sum of how far is released jointly with the number.

The share is that of all rows. The sum in the answer is that of the rows that count; what is clipped is scaled down alike, by
the estimate of rows that are not counted. The interval covers all that they may be; an estimate that noise hides is not used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dither.errors import QueryError
from dither.exact.numbers import show_decimal
from dither.planning.contributions import among, by_class, class_facts, into_classes, one_bin, spelling
from dither.planning.left_out.base import PLACE, Kept, LeftOut, Part, laplace_scale, place_cells, whole_key
from dither.planning.left_out.estimate import Cells, Floats, share
from dither.planning.outputs import Noisy
from dither.planning.plan import Plan
from dither.planning.releases.parts import Split
from dither.planning.releases.sums import Joint, Total
from dither.query.functions.base import Facts
from dither.query.functions.domains import facts
from dither.query.nodes import Aggregate, Call, Column, Compute, Expression, Filter, Literal, Named, PerUnit, Relation
from dither.query.resolve.relations import Resolved
from dither.query.show import show_expression
from dither.query.work import UNIT, Work

_FINE, _FAR = 6, 4  # doublings of the width of the bounds: from 1/64 of it to 16 times it in one row
_MANY = 10  # and to 1024 times it in all rows of a person
_LOST, _SIDE, _CLASS = "#lost", "#side", "#class"


@dataclass(frozen=True)
class ValuesPart(Part):
    """People, or rows, with values of `x` outside its bounds, by side and class of how far. Classes are in widths."""

    name: str
    x: Expression
    low: Fraction
    high: Fraction
    sides: tuple[int, ...]  # 1: above the upper bound, -1: below the lower one
    ends: tuple[Fraction, ...]

    def read(self, main: tuple[Plan, Noisy], own: tuple[Plan, Noisy], confidence: Fraction, kept: Kept) -> list[LeftOut]:
        places, scales = place_cells(*own)
        level = np.array([whole_key(key[-1]) for key in own[1].keys])
        side = np.array([self.sides[whole_key(key[0])] if len(self.sides) > 1 else self.sides[0] for key in own[1].keys])
        whole = _sum_of(self.x, *main) if self.low >= 0 or self.high <= 0 else None
        each = 1 - (1 - confidence) / len(self.sides)
        found = []
        for one in self.sides:
            here = side == one
            own_cells = places[0][here], scales[0][here], level[here]
            usual, *ends = (self._cells(*own_cells, part, one * self._sign) for part in (kept.usual, kept.least, kept.most))
            found.append(self._read(one, usual, (ends[0], ends[1]), whole, each))
        return found

    @property
    def _sign(self) -> int:
        """The sign of the sum, if it can have only one."""
        return 1 if self.low >= 0 else -1

    def _cells(self, places: Floats, scales: Floats, level: NDArray[np.int64], kept: float, grows: int) -> Cells:
        """Returns the cells of one side. `grows`: 1 if the sum would be farther from zero without the bound."""
        mass = np.array([*self.ends, self.ends[-1]], dtype=np.float64)[level] * kept
        mass = np.stack([mass, 0 * mass], axis=1).ravel()
        total = mass if grows > 0 else -mass
        return Cells(places.ravel(), scales.ravel(), np.repeat(level, 2), mass, total, np.ones(len(mass)))

    def _read(self, side: int, own: Cells, ends: tuple[Cells, Cells], whole: Cells | None, confidence: Fraction) -> LeftOut:
        """Estimates one side. `ends`: the same cells with as few rows, and as many, as may have counted."""
        amount = whole is None
        cells, low, high = (_of(each, whole) for each in (own, *ends))
        most = math.inf if amount or side != self._sign else 1.0
        found = share(cells, [most] * (len(self.ends) + 1), 0, confidence, most, (low, high))
        bound, name = (self.high, "above") if side > 0 else (self.low, "below")
        beyond = show_decimal(self.ends[min(found.level, len(self.ends) - 1)])
        bounds = ((name, show_decimal(bound), found.estimate),)
        return LeftOut(self.name, found.estimate, found.low, found.high, bounds, beyond, True, amount)


def _of(own: Cells, whole: Cells | None) -> Cells:
    """Returns the cells of a share of the whole sum; of an amount, if it was not released."""
    return replace(own, total=0 * own.total).with_cells(_constant()) if whole is None else own.with_cells(whole)


def _constant() -> Cells:
    """Returns one cell without noise, whose value is 1: shares of it are amounts."""
    one, none = np.ones(1), np.zeros(1)
    return Cells(one, none, np.full(1, -1), none, one, none)


def _sum_of(x: Expression, made: Plan, noisy: Noisy) -> Cells | None:
    """Returns the cells of the released sum of x over all groups; None if it was not released."""
    for noise, cells in zip(made.noises, noisy.cells, strict=True):
        release = noise.of
        if isinstance(release, Total) and release.x == x:
            weights = [float(release.grid.step)]
        elif isinstance(release, Joint) and release.x == x and not release.alone:
            low = float(release.grid.low / release.grid.steps)
            weights = [float(release.grid.step) + low, low, 0.0][: release.cells]
        elif isinstance(release, Split) and x in release.columns:
            low = float(release.grid.low / release.grid.steps)
            weights = [0.0] * release.cells
            first = release.columns.index(x) * release.width
            weights[first] = float(release.grid.step) + (low if release.counted else 0.0)
            if release.counted:
                weights[first + 1] = low
        else:
            continue
        values = cells.astype(np.float64).ravel()
        total = np.tile(np.array(weights), len(cells))
        none = np.zeros(len(values))
        return Cells(values, np.full(len(values), laplace_scale(noise)), np.full(len(values), -1), none, total, none)
    return None


def values(question: Resolved, work: Work) -> Iterator[Part]:
    """Returns a question for each column that is added up and may have values outside its bounds."""
    operands = question.operands()
    added = {each.argument for each in operands.aggregates if each.function in ("sum", "avg") and each.argument is not None}
    for x in sorted(added, key=lambda each: spelling(work, each)):
        (low, high), raw = (operands.arguments[x].low, operands.arguments[x].high), _unclamped(x)
        if low is None or high is None or high <= low:
            continue
        sides = _sides(raw, low, high, question)
        if sides:
            yield _beyond_bounds(question, work, x, raw, low, high, sides)


def _unclamped(x: Expression) -> Expression:
    """Returns the values before the question's own CLAMP, inside a FILTER too."""
    if isinstance(x, Call) and x.name == "clamp":
        return x.arguments[0]
    if isinstance(x, Call) and x.name == "case" and len(x.arguments) == 3 and x.arguments[2] == Literal(None):
        return replace(x, arguments=(x.arguments[0], _unclamped(x.arguments[1]), x.arguments[2]))
    return x


def _sides(raw: Expression, low: Fraction, high: Fraction, question: Resolved) -> tuple[int, ...]:
    """Returns the sides on which values may lie outside: those that follow from declared bounds alone."""
    free = freed(raw, question)
    sides = (1, free.high is None or free.high > high), (-1, free.low is None or free.low < low)
    return tuple(side for side, may in sides if may)


def freed(x: Expression, question: Resolved) -> Facts:
    """Returns the facts of an expression that do not rest on the declared bounds and values of columns."""
    free = {name: replace(known, low=None, high=None, values=None) for name, known in question.scope.items()}
    scope = dict(free)
    expanded = _expanded(x, question.query.source, scope)
    if isinstance(expanded, Column) and scope[expanded.name].kind == "bool":
        return replace(scope[expanded.name], values=(False, True))
    try:
        return facts(expanded, scope)
    except QueryError:  # a column inside a subquery is not the number it is taken for
        return facts(x, free)


def _expanded(x: Expression, source: Relation, scope: dict[str, Facts]) -> Expression:
    """Returns the expression over the columns of tables, as far as it is computed from them row by row."""
    while isinstance(source, (Filter, Compute)):
        if isinstance(source, Compute):
            x = _replaced(x, {each.name: each.expression for each in source.columns})
            for each in source.columns:
                if isinstance(each.expression, Column) and each.name in scope:
                    scope.setdefault(each.expression.name, scope[each.name])
        source = source.source
    for name in _column_names(x):
        scope.setdefault(name, Facts("real"))
    return x


def _replaced(x: Expression, by_name: Mapping[str, Expression]) -> Expression:
    if isinstance(x, Column):
        return by_name.get(x.name, x)
    return replace(x, arguments=tuple(_replaced(each, by_name) for each in x.arguments)) if isinstance(x, Call) else x


def _column_names(x: Expression) -> Iterator[str]:
    if isinstance(x, Column):
        yield x.name
    elif isinstance(x, Call):
        for each in x.arguments:
            yield from _column_names(each)


def _beyond_bounds(
    question: Resolved, work: Work, x: Expression, raw: Expression, low: Fraction, high: Fraction, sides: tuple[int, ...]
) -> Part:
    """Returns the question about values of x outside [low, high]."""
    powers = range(-_FINE, (_MANY if question.by_unit else _FAR) + 1)
    ends = [_whole(Fraction(2) ** (_MANY + power)) for power in powers]
    beyond, far = _outside(question, work, raw, low, high, sides)
    size = Call("abs", (far,))
    places: list[Expression] = [Call("div", (size, Literal(end))) for end in (*ends, ends[-1])]
    columns = [Named(_CLASS, into_classes(size, ends)), Named(_LOST, by_class(size, ends, places))]
    scope = {_CLASS: class_facts(len(ends) + 1), _LOST: PLACE}
    if len(sides) > 1:
        columns = [Named(_SIDE, Call("case", (Call("gt", (far, Literal(0))), Literal(0), Literal(1)))), *columns]
        scope = {_SIDE: class_facts(2), **scope}
    name = show_expression(raw)
    mean = Aggregate("mean", "avg", Column(_LOST, words=f"{name} beyond its bounds"))
    asked = one_bin(question, beyond, columns, (mean,), scope)
    widths = tuple((high - low) * Fraction(2) ** power for power in powers)
    return ValuesPart(asked, f"how much of {name} was clipped", name, x, low, high, sides, widths)


def _outside(
    question: Resolved, work: Work, raw: Expression, low: Fraction, high: Fraction, sides: tuple[int, ...]
) -> tuple[Relation, Expression]:
    """Returns the rows, or people, with values outside, and how far: in whole steps, so that a person's sum is exact.

    Rows inside the bounds are dropped first, and most rows are.
    """
    over, under = Call("gt", (raw, _number(high))), Call("lt", (raw, _number(low)))
    tests: list[Expression] = [over] if sides == (1,) else [under] if sides == (-1,) else [Call("or", (over, under))]
    domains = work.known or ()
    public = (among(key.expression, values) for key, values in zip(work.keys, domains, strict=False))
    tests += [test for test in public if test is not None]
    tests += [Call("not", (Call("is_null", (Column(UNIT),)),))] if question.by_unit else []
    outside = Filter(question.query.source, Call("and", tuple(tests)) if len(tests) > 1 else tests[0])
    far = Call("case", (over, Call("sub", (raw, _number(high))), Call("sub", (raw, _number(low)))))
    steps, most = Call("div", (far, _number((high - low) / 2**_MANY))), 2 ** (_MANY + _FAR)
    held = Call("clamp", (steps, Literal(-most), Literal(most)))
    whole = Named("#far", Call("floor", (Call("add", (held, Literal(Fraction(1, 2)))),)))
    if not question.by_unit:
        return Compute(outside, (whole,)), Column("#far")
    unit = Named(UNIT, Column(UNIT))
    return PerUnit(Compute(outside, (whole, unit)), (unit,), (Aggregate("#sum", "sum", Column("#far")),)), Column("#sum")


def _number(value: Fraction) -> Literal:
    return Literal(_whole(value))


def _whole(value: Fraction) -> int | Fraction:
    return int(value) if value.denominator == 1 else value
