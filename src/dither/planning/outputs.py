"""Adds the noise and finishes the answer: its columns, values and margins, and the plan in words.

`release` draws the noise, once. Everything after it is post-processing: `table` reads the values and applies HAVING, ORDER BY,
LIMIT and the outputs to noisy numbers. An `Output` is one column of the answer. It states the margin to expect before the
release and the margin of each value after it. `explain` prints a plan for people.

Margins of computed outputs. Weighted sums of aggregates, their quotients, and weighted sums of quotients have margins from the
joint law of all noise in them (forms.py). Other expressions, such as products: each of the k aggregates lies in its interval
with confidence 1 - (1 - c)/k, so all of them do at once with confidence c (union bound). The function registry's interval
rules carry the intervals through the expression: whatever the true aggregates are within them, the true output lies in what
comes out, if it is not NULL. A divisor that is an aggregate is not 0 then, so it is at least the least it can be (`divisors` in
intervals.py). No margin is stated (None) where the interval is unbounded all the same, as for LN(a - b).

If there is a SELECT around the question, outer.py computes it from the table, and symbols.py states its margins.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.catalog.values import Key
from dither.exact.numbers import show, show_percent, show_rounded
from dither.planning import forms
from dither.planning.intervals import divisors, fact, farthest, is_number
from dither.planning.levels import rolled
from dither.planning.outer import compute_all, opened
from dither.planning.plan import Plan
from dither.planning.price import Price
from dither.planning.releases.base import Noise, Reading
from dither.planning.releases.keys import key_names, keys_to_show
from dither.planning.roundings import peel, through
from dither.planning.rows import Group as Cell
from dither.planning.rows import Row, Source
from dither.planning.symbols import Margins, Release, leaves
from dither.query.functions.registry import columns, constant, evaluate, evaluate_all, evaluator, known
from dither.query.nodes import Column, Expression, Outer
from dither.query.work import Group


@dataclass(frozen=True)
class Output:
    """A column without a margin: a key, a constant, a text."""

    name: str
    words: str

    @property
    def readings(self) -> tuple[Reading, ...]:
        """The readings of the aggregates it uses."""
        return ()

    def margins(
        self, plan: Plan, noisy: Noisy, values: Mapping[int, object], confidence: Fraction
    ) -> Mapping[int, float | None]:
        """Returns the margin of each value, by the place of its group in the release."""
        return {}

    def predicted(self, plan: Plan, rows: int | None, confidence: Fraction) -> float | None:
        """Returns the margin to expect, or None if it depends on numbers that are not known yet."""
        return None

    def rank(self, plan: Plan, confidence: Fraction) -> float | None:
        """Returns how many rows the rank of a quantile may be off; None for other outputs."""
        return None

    def unsure(self, plan: Plan, noisy: Noisy, confidence: Fraction) -> set[int]:
        """Returns the places of groups that may be too small for the truth to exist."""
        each = (reading.unsure(plan.noises, noisy.cells, confidence) for reading in self.readings) if noisy.keys else ()
        return {place for one in each for place in one.nonzero()[0].tolist()}

    def explain(self, plan: Plan, rows: int | None, confidence: Fraction) -> str:
        """Shows what it is, and its predicted margin."""
        return self.words


@dataclass(frozen=True)
class AsRead(Output):
    """A single aggregate, unchanged."""

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
class Label(Output):
    """A chosen value, unchanged. It has no margin."""

    reading: Reading

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
        form = self.form(plan)
        shown = {place: value for place, value in values.items() if is_number(value)}
        if form is None and shown and len(self.used) > 1 and (peeled := peel(self.expression)) is not None:
            wide = self._rounded(peeled, plan, noisy, shown, confidence)
        elif form is None or not shown or (form.quotients and len(self.used) == 1):  # a multiple of a mean has its interval
            wide = self._by_intervals(plan, noisy, shown, confidence)
        else:
            all_values = np.array([shown.get(place, 0.0) for place in range(len(noisy.keys))], dtype=np.float64)
            each = form.margins(plan.noises, plan.work.by_unit, noisy.cells, all_values, confidence)
            wide = {place: float(each[place]) for place in shown}
        return {place: wide.get(place) for place in values}

    def _rounded(
        self, peeled: tuple[Expression, Expression], plan: Plan, noisy: Noisy, values: Mapping[int, float], confidence: Fraction
    ) -> dict[int, float | None]:
        """Returns the margins of a rounding, from those of what is rounded."""
        around, inside = peeled
        keys = {key.name: [each[i] for each in noisy.keys] for i, key in enumerate(plan.query.keys)}
        read: dict[str, Sequence[Any]] = {**keys, **{one.name: one.values(plan.noises, noisy.cells) for one in self.used}}
        middle = {place: evaluate(inside, {name: each[place] for name, each in read.items()}) for place in values}
        wide = replace(self, expression=inside).margins(plan, noisy, middle, confidence)
        return {place: through(around, value, middle[place], wide[place]) for place, value in values.items()}

    def _by_intervals(
        self, plan: Plan, noisy: Noisy, values: Mapping[int, float], confidence: Fraction
    ) -> dict[int, float | None]:
        nonzero = divisors(self.expression)
        each = 1 - (1 - confidence) / (len(self.used) + len(nonzero))
        bounds = {one.name: one.bounds(plan.noises, noisy.cells, each) for one in self.used} if values else {}
        least = {one.name: one.smallest(plan.noises, noisy.cells, each) for one in self.used if one.name in nonzero and values}
        wide: dict[int, float | None] = {}
        for place, value in values.items():
            scope = {key.name: constant(noisy.keys[place][i]) for i, key in enumerate(plan.query.keys)}
            for one in self.used:
                low, high = (float(end[place]) for end in bounds[one.name])
                low = max(low, float(least[one.name][place])) if one.name in least else low
                scope[one.name] = fact(one.aggregate.function, low, high)
            wide[place] = farthest(value, known(self.expression, scope))
        return wide

    def form(self, plan: Plan) -> forms.Form | None:
        """Returns the form whose joint law gives the margin, if it has one."""
        return forms.read(self.expression, {one.name: one for one in self.used}, plan.noises)

    def predicted(self, plan: Plan, rows: int | None, confidence: Fraction) -> float | None:
        """Returns the margin to expect; None where it depends on noisy values or on unknown rows."""
        form = self.form(plan)
        return None if form is None else form.predicted(plan.noises, plan.work.by_unit, rows, confidence)

    def explain(self, plan: Plan, rows: int | None, confidence: Fraction) -> str:
        margin = self.predicted(plan, rows, confidence)
        if margin is not None:
            return f"{self.words}, ± {show_rounded(margin)}"
        return f"{self.words}; its margin depends on them and comes with the answer"


def outputs(plan: Plan) -> tuple[Output, ...]:
    """Returns the columns of the question itself, in order: those of the answer, unless there is a SELECT around it."""
    keys = {key.name for key in plan.query.keys}
    readings = {reading.name: reading for reading in plan.readings}
    return tuple(_output(output.name, output.expression, keys, readings) for output in plan.query.outputs)


def unshown(plan: Plan) -> tuple[Reading, ...]:
    """Returns the aggregates that are paid for and in no column: they only decide which rows are shown, and their order."""
    if plan.query.above:
        return () if any(each.noisy for each in plan.schema) else plan.readings
    used = frozenset[str]().union(*(columns(each.expression) for each in plan.query.outputs))
    return tuple(each for each in plan.readings if each.name not in used)


def _output(name: str, expression: Expression, keys: set[str], readings: Mapping[str, Reading]) -> Output:
    if isinstance(expression, Column) and expression.name in keys:
        return Output(name, "key")
    if isinstance(expression, Column) and expression.name in readings:
        reading = readings[expression.name]
        return (Label if reading.label else AsRead)(name, reading.title, reading)
    named = columns(expression)
    used = tuple(readings[each] for each in sorted(named & set(readings)))
    if any(one.label for one in used):
        return Output(name, "computed from the noisy result")
    free = {one.name: fact(one.aggregate.function, -math.inf, math.inf) for one in used}
    if not used or (not named & keys and not known(expression, free).numeric):
        return Output(name, "computed from the noisy result")
    return Computed(name, "computed from the noisy numbers", expression, used)


def passed_on(plan: Plan) -> dict[str, Output]:
    """Returns the columns of the answer that the question itself has, by their names in the answer."""
    own = {each.name: each for each in outputs(plan)}
    return {name: own[inner] for name, inner in passed_names(plan.query.above, tuple(own)).items()}


def passed_names(above: Sequence[Outer], names: Sequence[str]) -> dict[str, str]:
    """Returns the columns of the last SELECT around a table that are columns of it, with their names there."""
    found: dict[str, str | None] = {name: name for name in names}
    for outer in above:
        inside = dict(zip(outer.fields, found.values(), strict=True))
        keys = {key.name: key.expression for key in outer.keys} if outer.folds is not None else None
        found = {each.name: _passed(each.expression, inside, keys) for each in outer.outputs}
    return {name: inner for name, inner in found.items() if inner is not None}


def _passed(value: Expression, inside: Mapping[str, str | None], keys: Mapping[str, Expression] | None) -> str | None:
    """Returns the column that an output passes on."""
    if keys is not None and isinstance(value, Column):
        value = keys.get(value.name, value)
    return inside.get(value.name) if isinstance(value, Column) else None


def margins(plan: Plan, noisy: Noisy, finished: Table, confidence: Fraction) -> dict[str, list[float | None]]:
    """Returns the margins of each output that depends on aggregates; None where none can be stated."""
    if plan.query.above:
        around = Margins([Release(plan, noisy, outputs(plan))], confidence)
        every = around.all(finished.sources, finished.rows, len(plan.schema))
        return {each.name: every[column] for column, each in enumerate(plan.schema) if each.noisy}
    result = {}
    for column, output in enumerate(outputs(plan)):
        if output.readings:
            values = {place: row[column] for place, row in zip(finished.places, finished.rows, strict=True)}
            wide = output.margins(plan, noisy, values, confidence)
            result[output.name] = [wide[place] for place in finished.places]
    return result


def may_be_empty(plan: Plan, noisy: Noisy, finished: Table, confidence: Fraction) -> dict[str, list[bool]]:
    """Returns for each output that depends on aggregates whether its group may be too small: a mean of no rows is undefined."""
    if plan.query.above:
        doubtful = [each.unsure(plan, noisy, confidence) for each in outputs(plan)]
        return {
            each.name: [_is_doubtful(sources[column], doubtful) for sources in finished.sources]
            for column, each in enumerate(plan.schema)
            if each.noisy
        }
    result = {}
    for output in outputs(plan):
        if output.readings:
            places = output.unsure(plan, noisy, confidence)
            result[output.name] = [place in places for place in finished.places]
    return result


def _is_doubtful(source: Source | None, doubtful: Sequence[set[int]]) -> bool:
    return source is not None and any(leaf.place in doubtful[leaf.output] for leaf in leaves(source))


def predicted_margins(plan: Plan, rows: int | None, confidence: Fraction) -> dict[str, float | None]:
    """Returns the margin to expect of each output that will have one."""
    if not plan.query.above:
        return {each.name: each.predicted(plan, rows, confidence) for each in outputs(plan) if each.readings}
    same = passed_on(plan)
    shown = [each.name for each in plan.schema if each.noisy]
    sums = plan.noises[0].running(confidence) if len(plan.noises) == 1 else None  # then all columns are running sums
    return {name: same[name].predicted(plan, rows, confidence) if name in same else sums for name in shown}


def ranks(plan: Plan, confidence: Fraction) -> dict[str, float]:
    """Returns how many rows the rank may be off, for outputs that are quantiles."""
    by_name = {name: each.rank(plan, confidence) for name, each in passed_on(plan).items()}
    return {name: rank for name, rank in by_name.items() if rank is not None}


Value = None | bool | int | float | str | datetime.date | datetime.datetime


@dataclass(frozen=True)
class Noisy:
    """Released numbers: keys in order, and the noisy integers of each noise. Public from here on."""

    keys: tuple[tuple[Key, ...], ...]
    cells: tuple[NDArray[Any], ...] = field(compare=False)


@dataclass(frozen=True)
class Table:
    """The finished table. For margins: `places` is the place of each row's group in the release. If there is a SELECT around
    the question, `sources` says instead how each value was made (None: it is public)."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    places: tuple[int, ...]
    sources: tuple[tuple[Source | None, ...], ...] = field(default=(), compare=False)


def choose_keys(plan: Plan, groups: Mapping[tuple[Key, ...], Group]) -> list[tuple[Key, ...]]:
    """Returns the keys to show: the public ones, or those that pass the threshold."""
    if not plan.query.keys:
        return [()]
    return keys_to_show(plan.public_groups(), plan.threshold, {key: group.units or 0 for key, group in groups.items()})


@dataclass(frozen=True)
class Draw:
    """The two places where a plan draws at random. An auditor may pass others."""

    keys: Callable[[Plan, Mapping[tuple[Key, ...], Group]], list[tuple[Key, ...]]] = choose_keys
    noise: Callable[[Noise, Sequence[Any]], NDArray[Any]] = Noise.release


DRAW = Draw()


def release(plan: Plan, groups: Sequence[Group], draw: Draw = DRAW) -> Noisy:
    """Adds the noise. The groups are public, or chosen by the threshold. `groups` are those of the plan's work."""
    groups = plan.possible(groups)
    groups = groups if plan.level is None else rolled(groups, plan.level)
    by_key = {group.key: group for group in groups}
    keys = draw.keys(plan, by_key)
    cells = []
    for place, noise in enumerate(plan.noises):
        empty = noise.of.empty_value
        cells.append(draw.noise(noise, [by_key[key].measures[place] if key in by_key else empty for key in keys]))
    return Noisy(tuple(keys), tuple(cells))


def table(plan: Plan, noisy: Noisy, instead: Mapping[str, list[Value]] | None = None) -> Table:
    """Reads the values, applies HAVING, ORDER BY, OFFSET and LIMIT, and computes the outputs. `instead`: the values of some
    aggregates, if they are not to be read from the release."""
    query, rows = plan.query, rows_of(plan, noisy, instead)
    places = list(range(len(rows)))
    if query.having is not None:
        holds = evaluator(query.having)
        places = [i for i in places if holds(rows[i]) is True]
    for order in reversed(query.order):
        value = evaluator(order.expression)
        places = arranged(places, [value(rows[i]) for i in places], order.descending, order.nulls_first)
    places = places[query.offset :]
    if query.limit is not None:
        places = places[: query.limit]
    finished = tuple(evaluate_all([output.expression for output in query.outputs], [rows[i] for i in places]))
    result = Table(tuple(output.name for output in query.outputs), finished, tuple(places))
    return _around(plan, result) if query.above else result


def _around(plan: Plan, inner: Table) -> Table:
    """Computes the SELECTs around the question from its own table."""
    noisy = [bool(each.readings) for each in outputs(plan)]
    rows = []
    for place, values in zip(inner.places, inner.rows, strict=True):
        sources = {name: Cell(i, place) for i, name in enumerate(inner.columns) if noisy[i]}
        rows.append(Row(dict(zip(inner.columns, values, strict=True)), dict(sources)))
    finished = compute_all(plan.query.above, inner.columns, opened(plan.query, plan.threshold is not None, rows)).rows
    names = tuple(each.name for each in plan.query.above[-1].outputs)
    shown = tuple(tuple(row.values[name] for name in names) for row in finished)
    return Table(names, shown, (), tuple(tuple(row.sources.get(name) for name in names) for row in finished))


def rows_of(plan: Plan, noisy: Noisy, instead: Mapping[str, list[Value]] | None = None) -> list[dict[str, Value]]:
    """Returns the keys and aggregates of each group, by name; the aggregates of `instead` with its values."""
    keys = plan.query.keys
    columns: dict[str, list[Value]] = {key.name: [values[i] for values in noisy.keys] for i, key in enumerate(keys)}
    for reading in plan.readings:
        columns[reading.name] = list(reading.values(plan.noises, noisy.cells)) if noisy.keys else []
    columns |= instead or {}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def arranged(places: Sequence[Any], values: Sequence[Any], descending: bool, nulls_first: bool = False) -> list[Any]:
    """Returns the places in the order of their values; NULLs come last, or first."""
    known = [pair for pair in zip(places, values, strict=True) if pair[1] is not None]
    known.sort(key=lambda pair: _sortable(pair[1]), reverse=descending)
    unknown = [place for place, value in zip(places, values, strict=True) if value is None]
    return [*unknown, *(place for place, _ in known)] if nulls_first else [*(place for place, _ in known), *unknown]


def _sortable(value: Any) -> Any:
    return value.isoformat() if isinstance(value, (datetime.date, datetime.datetime)) else value


_WIDTH = 14


def explain(
    plan: Plan,
    confidence: Fraction,
    rows: int | None = None,
    price: Price | str | None = None,
    further: Sequence[tuple[str, str]] = (),
) -> str:
    """Shows the plan as text. `rows`: the assumed rows of a group, for the margins of means. `price`: what is charged
    in all, if that is more than this plan's, or words for it; `further`: lines about the rest."""
    if not plan.noises and plan.threshold is None and not plan.query.aggregates:
        return "\n".join(
            f"{left:<{_WIDTH}} {right}" for left, right in (("price", listed_words(plan)), ("groups", _groups(plan)))
        )
    if not isinstance(price, str):
        price = f"{show_price(plan) if price is None else price}{least(plan)}, charged before any row is read"
    lines = [("price", price), ("each person", _unit(plan)), *_sample(plan), *further]
    lines.append(("groups", _groups(plan)))
    who = "person" if plan.work.by_unit else "row"
    noises = (noise.explain(who) for noise in plan.noises)
    lines += [("noise" if i == 0 else "", text) for i, text in enumerate(noises)]
    lines += [(f"  {output.name}", output.explain(plan, rows, confidence)) for output in outputs(plan)]
    if plan.query.above:
        lines.append(("then", f"{', '.join(each.name for each in plan.schema)}: computed from these numbers, free"))
        lines += [("running sums", text) for noise in plan.noises for text in noise.running_words(confidence)]
    if hidden := unshown(plan):
        texts = [f"{each.title} {each.expected(plan.noises, rows, confidence)}" for each in hidden]
        lines.append(("not shown", f"{', '.join(texts)}: paid for; decides which rows are shown, or their order"))
    lines.append(
        ("margins", f"hold for each number with {show_percent(confidence)} confidence, clipping and bounding not included")
    )
    lines += [("not included", text) for text in plan.margin_notes]
    lines += [("note", text) for text in plan.query.unlisted]
    return "\n".join(f"{left:<{_WIDTH}} {right}".rstrip() for left, right in lines)


def listed_words(plan: Plan) -> str:
    """Says what a list of public values is, and that it is free."""
    if plan.work.known is None:
        return "free: read from public tables"
    return "free: declared values, whether or not anybody has them; no private row was read"


def show_price(plan: Plan) -> str:
    """Shows the loss that will be charged."""
    epsilon, delta = epsilon_delta(plan)
    return f"ε = {show(epsilon)}" + (f", δ = {show(delta)}" if delta else "")


def least(plan: Plan) -> str:
    """Returns the remark for a price that was raised to the catalog's least; empty for other plans."""
    return " (the least price of a question; less would give this margin)" if plan.rounded_up and epsilon_delta(plan)[0] else ""


def epsilon_delta(plan: Plan) -> tuple[Fraction, Fraction]:
    """Returns (epsilon, delta) of the plan's loss."""
    method = getattr(plan.loss, "pair", None)
    if method is None:
        raise TypeError("a plan's loss is pure or (epsilon, delta)")
    result: tuple[Fraction, Fraction] = method()
    return result


def _unit(plan: Plan) -> str:
    kind = plan.bounding.neighbours.words
    if not plan.work.by_unit:
        return f"is one row, {kind}"
    return f"is one value of {plan.unit}, {kind}; counts {plan.bounding}"


def _sample(plan: Plan) -> list[tuple[str, str]]:
    """Returns the line on the sample that a plan looks at."""
    if plan.sample is None:
        return []
    chance = f"each person is in it with probability {plan.sample.q}, by a secret coin"
    return [("sample", f"{chance}; noise at {plan.sample.inside} on the sample, charged {show_price(plan)}")]


def _groups(plan: Plan) -> str:
    if not plan.query.keys:
        return "one: no GROUP BY"
    if plan.work.known is None and plan.threshold is None:
        return f"the values of {key_names(plan.query.keys)} in public tables"
    if plan.threshold is None:
        return f"{len(plan.public_groups())} public values of {key_names(plan.query.keys)}, empty ones shown"
    rule = plan.threshold
    return (
        f"found in the data: a value of {key_names(plan.query.keys)} is shown if enough people have it "
        f"(at ε = {show(rule.epsilon)}, δ = {show(rule.delta)}; {plan.people_shown} people are shown with 95 %)"
    )
