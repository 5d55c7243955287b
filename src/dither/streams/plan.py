"""Plans a running sum over a table of a catalog: what counts in each step, what one unit can change, and the price.

The steps are public: `horizon` days (or weeks, numbers, ...) from a public start on. A step is read once, when the stream is
advanced past it, from the data as it is then. Advancing from step a to step b reads

    1. the rows within steps 1 ... b;
    2. of those, each unit's rows in its first k steps (dense_rank over the unit's own rows, in stream order);
    3. of those, the rows of steps a+1 ... b: at most `max_rows` rows' worth of each unit in each step.

Lemma. Over the whole horizon and all snapshots, one unit is counted in at most k steps, if snapshots only append.
Proof. Let S_b be the unit's steps among 1 ... b in the data from which the stream is advanced to b, and C_b its counted ones:
those of a+1 ... b that are among the k smallest of S_b. Take the last counted step d of all, counted when advancing to b. Every
counted step c <= d was counted at b or before, when it was a step of the unit, so it is in S_b: rows are only added, and a row
that is in the relation stays in it (`_check_appending`). So all counted steps are in S_b and at most d. As d is among the k
smallest of S_b, there are at most k of them.

Late rows, those of a step that was read before, are not counted. They are in S_b, so they can use up a place among the first
k: that can leave a later step out, and never adds one. Nobody has to remember who was counted, and what was released never
changes. Rows of steps after b are not in S_b, so they change nothing before their time.

So between two histories of snapshots that differ in all rows of one unit, at most k steps change, each by at most `max_rows`
times the largest row: sensitivity follows from these limits alone. What the other units add is the same in both, since every
operator is unit-local. Replacing one unit changes at most 2 k steps; each by at most one unit's worth if no row is negative,
else by two.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from dither.catalog.values import Catalog, Key
from dither.errors import Argument, ArgumentError, Fix, Name, QueryError
from dither.exact.numbers import Number, parse_number, whole
from dither.planning.bounds import Bound, bounded, check_bound
from dither.planning.price import Price
from dither.planning.records import Forms, encode
from dither.planning.releases.base import not_null
from dither.planning.sensitivity import bounds, running_grid
from dither.privacy.conversion import epsilon_of_zcdp
from dither.privacy.filters import Caps, Charge
from dither.privacy.losses import Approx, Pure
from dither.privacy.neighbours import BY_NAME
from dither.query.functions.base import Facts
from dither.query.functions.dates import from_day_number
from dither.query.functions.representatives import unit_starts
from dither.query.nodes import (
    Aggregate,
    Call,
    Column,
    Compute,
    Expression,
    Filter,
    Join,
    Literal,
    Named,
    Relation,
    Scan,
    Semi,
    Sort,
    Union,
    Window,
    WithinUnit,
    fresh,
    sources,
)
from dither.query.resolve.relations import Resolved
from dither.query.show import show_expression
from dither.query.work import UNIT, Cell, Sums, Work
from dither.streams.terms import Terms

FORMAT = 1  # ledgers keep these identities: any change to them needs a new number
LATE = "rows that came after their step was read"
_DIGITS = 10**30


@dataclass(frozen=True)
class StreamPlan:
    """A running sum over a table: its rows, its steps, its bounds, and the noise and price of the whole horizon."""

    source: Relation
    key: Named
    steps: tuple[Any, ...]  # the public value of each step, in order
    by_unit: bool
    max_rows: int
    max_steps: int  # the most steps in which one unit counts
    cell: Cell
    worth: Fraction  # what 1 in the running sum stands for
    terms: Terms
    stated: Price
    tables: tuple[str, ...]
    unit: str  # the column that names it
    words: str
    by: str  # the key as it was asked for
    notes: tuple[str, ...] = ()

    def work(self, start: int, end: int) -> Work:
        """Returns the exact query for steps start+1 ... end."""
        key, first, last = self.key.expression, Literal(self.steps[0]), Literal(self.steps[end - 1])
        within = Filter(self.source, Call("and", (Call("ge", (key, first)), Call("le", (key, last)))))
        counted: Relation = within
        if self.by_unit:
            rank = fresh("rank")
            window = Window(rank, "dense_rank", partition=(Column(UNIT),), order=(Sort(key),))
            counted = Filter(WithinUnit(within, (window,)), Call("le", (Column(rank), Literal(self.max_steps))))
        measure = Sums((self.cell,), self.max_rows)
        return Work(counted, (self.key,), (self.steps[start:end],), self.by_unit, None, (measure,))

    @cached_property
    def identity(self) -> str:
        """The text that says which streams are the same: over all snapshots, and without the steps that were released."""
        measure = Sums((self.cell,), self.max_rows)
        forms = Forms.over(self.source, self.by_unit, (self.key,), (measure,))
        return json.dumps(
            {
                "format": FORMAT,
                "purpose": "stream",
                "source": encode(forms.source),
                "unit": forms.unit,
                "key": encode(self.key.expression, forms),
                "measure": encode(measure, forms),
                "worth": encode(self.worth),
                "max_steps": self.max_steps,
                "steps": self._spelled_steps(),
                "terms": self.terms.record(),
                "price": {"epsilon": encode(self.stated.epsilon), "delta": encode(self.stated.delta)},
            },
            sort_keys=True,
            separators=(",", ":"),
        )

    def _spelled_steps(self) -> dict[str, Any]:
        """Spells the steps: the first, the last, and a digest of all, since declared values may have gaps."""
        each = [encode(Literal(step)) for step in self.steps]
        digest = hashlib.sha256(json.dumps(each, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()
        return {"first": each[0], "last": each[-1], "digest": digest}

    @cached_property
    def charge(self) -> Charge:
        """The price of the whole horizon, read from the object that draws."""
        loss = self.terms.loss()
        if isinstance(loss, Pure):
            return Charge.of(loss, loss.zcdp())
        return Charge.of(Approx(self.stated.epsilon, self.stated.delta), loss.zcdp())

    @cached_property
    def mechanisms(self) -> tuple[Mapping[str, Any], ...]:
        design = self.terms.segment(0)
        record = {**design.noise.record(), "on": f"running sum of {self.words}", "groups": 1, "steps": self.terms.steps}
        return ({**record, "running": {**design.record(), **self.terms.record()}},)

    @property
    def unit_words(self) -> str:
        return f"one value of {self.unit}" if self.by_unit else "one row"

    def place(self, until: Any) -> int:
        """Returns how many steps end with this one. Refuses what is no step."""
        found = _as_key(until, self.steps[0])
        if found not in self.steps:
            raise ArgumentError(
                f"until must be one of the steps {self.steps[0]} to {self.steps[-1]}, and it is {str(until)[:40]}.",
                fix=Fix("write {until}.", until=str(self.steps[0])),
            )
        return self.steps.index(found) + 1


def plan_stream(
    question: Resolved,
    catalog: Catalog,
    caps: Caps,
    *,
    by: str,
    horizon: int,
    start: Any,
    price: tuple[Number | None, Number | None, Number | None],
    max_rows: Bound,
    max_groups: Bound,
) -> StreamPlan:
    """Plans a stream. Reads the question and the catalog only. `price`: epsilon, delta and rho, as given."""
    aggregate = _check_shape(question)
    given = {"max_rows": max_rows, "max_groups": max_groups}
    query = bounded(question, catalog, *(None if each is None else check_bound(each, name) for name, each in given.items()))
    rows, most = _limits(query)
    steps = _steps(query, by, whole(horizon, "horizon", least=1), start)
    lowered = query.operands().aggregates[0]
    counted, cell, worth, row, signed = _cell(query, lowered, aggregate, rows)
    changes = BY_NAME[catalog.neighbours].changes
    contributions = min(most * changes, len(steps))
    largest = rows * row * (changes if signed else 1)
    terms, stated = _terms(len(steps), price, caps, contributions, largest)
    return StreamPlan(
        counted,
        query.query.keys[0],
        steps,
        query.by_unit,
        rows,
        most,
        cell,
        worth,
        terms,
        stated,
        query.tables,
        query.unit,
        _words(aggregate),
        by,
        tuple(_notes(query, by, rows, most, cell)),
    )


# --- the question -----------------------------------------------------------------------------------------------


def _check_shape(question: Resolved) -> Aggregate:
    """Returns the one aggregate. Refuses questions that are not a running COUNT or SUM."""
    query = question.query
    if len(query.keys) != 1 or query.sets:
        raise QueryError("A stream has one key, its steps.", fix=Fix("leave GROUP BY out, and write {by}.", by="day"))
    plain = query.having is None and not query.order and query.limit is None and not query.offset and not query.above
    shown = [each for each in query.outputs if isinstance(each.expression, Column)]
    if len(query.aggregates) != 1 or not plain or len(shown) != len(query.outputs):
        raise QueryError(
            "A stream adds up one COUNT or SUM.", fix="ask SELECT COUNT(*) FROM …, or SUM(x), one stream for each."
        )
    aggregate = query.aggregates[0]
    if aggregate.function not in ("count", "sum"):
        raise QueryError(
            f"A stream adds up COUNT or SUM, and this is {aggregate.function.upper()}.",
            span=aggregate.span,
            fix=Fix("ask for COUNT(*) or SUM(x). For people per step, ask COUNT(*) with {max_rows}.", max_rows=1),
        )
    _check_appending(query.source)
    return aggregate


def _check_appending(relation: Relation) -> None:
    """Refuses relations from which a row can vanish when others are added: the lemma needs that rows stay."""
    stays = isinstance(relation, (Scan, Filter, Compute, Union))
    stays |= isinstance(relation, Join) and relation.kind == "inner"
    stays |= isinstance(relation, Semi) and not relation.negated
    if not stays:
        raise QueryError(
            "A stream continues over new data, and here added rows can change or remove earlier ones.",
            fix="leave out NOT IN, outer joins, windows and aggregates inside; WHERE, JOIN and UNION ALL may stay.",
        )
    for each in sources(relation):
        _check_appending(each)


def _limits(query: Resolved) -> tuple[int, int]:
    """Returns the most rows of one unit in a step, and the most steps."""
    if not query.by_unit:
        return 1, 1
    if query.max_rows is None or query.max_groups is None:
        name = "max_groups" if query.max_groups is None else "max_rows"
        what = "steps in which one person counts" if name == "max_groups" else "rows of one person that count in one step"
        raise ArgumentError(
            f"{name}, the most {what}, is neither declared nor given; a stream does not choose it.",
            fix=Fix("write {it}.", it=Argument(name, 1)),
        )
    return query.max_rows, query.max_groups


def _cell(query: Resolved, lowered: Aggregate, aggregate: Aggregate, rows: int) -> tuple[Relation, Cell, Fraction, int, bool]:
    """Returns the rows that count, the whole number of a row, what 1 of it is worth, the largest one, and whether some are
    negative."""
    source, argument = query.query.source, lowered.argument
    if argument is not None:
        source = Filter(source, not_null(argument))
    if aggregate.function == "count":
        return source, Cell(constant=1), Fraction(1), 1, False
    if argument is None:
        raise TypeError("a SUM has an argument")
    facts = query.operands().arguments[argument]
    bounds(facts, aggregate)
    grid = running_grid(argument, facts, aggregate, fine=query.by_unit and not query.one_row)
    worth = _common(grid.low, grid.step)
    first, step = int(grid.low / worth), int(grid.step / worth)
    last = first + step * grid.steps
    return source, Cell(grid, constant=first, linear=step), worth, max(abs(first), abs(last)), first < 0


def _common(low: Fraction, step: Fraction) -> Fraction:
    """Returns the largest number of which both are multiples.

    >>> _common(Fraction(1, 2), Fraction(1, 3)), _common(Fraction(0), Fraction(4))
    (Fraction(1, 6), Fraction(4, 1))
    """
    bottom = math.lcm(low.denominator, step.denominator)
    return Fraction(math.gcd(int(low * bottom), int(step * bottom)), bottom)


def _words(aggregate: Aggregate) -> str:
    inner = "*" if aggregate.argument is None else show_expression(aggregate.argument)
    condition = "" if aggregate.where is None else f" FILTER (WHERE {show_expression(aggregate.where)})"
    return f"{aggregate.function.upper()}({inner}){condition}"


def _notes(query: Resolved, by: str, rows: int, most: int, cell: Cell) -> list[str]:
    """Returns what the numbers leave out."""
    notes = [LATE, f"rows with other values of {by}"]
    if query.by_unit and not query.one_row:
        notes.append(f"a person's rows beyond {rows} in one step" if rows > 1 else "all but one row of a person in one step")
    if query.by_unit and not query.one_group:
        notes.append(f"a person's rows after the first {most} steps" if most > 1 else "a person's rows after the first step")
    if cell.argument is not None:
        low, high = cell.argument.low, cell.argument.low + cell.argument.step * cell.argument.steps
        notes.append(f"{show_expression(cell.argument.expression)} is clipped to [{float(low):g}, {float(high):g}]")
    return notes


# --- steps ------------------------------------------------------------------------------------------------------


def _steps(query: Resolved, by: str, horizon: int, start: Any) -> tuple[Key, ...]:
    """Returns the public values of the steps: `horizon` of them, from `start` or the declared low end on."""
    key = query.query.keys[0]
    facts = query.operands().keys[0]
    if facts.kind not in ("int", "date"):
        raise QueryError(
            f"The steps of a stream are days or whole numbers, and {by} is {facts.kind}.",
            fix=Fix("write {by}.", by="DATE_TRUNC('day', at)"),
        )
    first = _first(facts, start, by)
    found = _from(key.expression, facts, first, horizon)
    if len(found) < horizon:
        raise ArgumentError(
            f"{by} has {len(found)} public values from {first} on, and the horizon is {horizon}.",
            fix=Fix("give {horizon} fewer steps, or declare a later upper bound.", horizon=Name("horizon")),
        )
    return tuple(found[:horizon])


def _first(facts: Facts, start: Any, name: str) -> Any:
    """Returns the first step."""
    listed = [value for value in facts.values or () if value is not None]
    if start is not None:
        given = _as_key(start, datetime.date.min if facts.kind == "date" else 0)
        if given is None:
            raise ArgumentError(
                f"start must be a step of {name}, and it is {str(start)[:40]}.", fix="give its first day or number."
            )
        return given
    if listed:
        return listed[0]
    if facts.low is None:
        raise ArgumentError(
            f"{name} has no public first value.",
            fix=Fix("write {start}, or declare its bounds in the catalog.", start="2026-01-01"),
        )
    return from_day_number(facts.low) if facts.kind == "date" else math.ceil(facts.low)


def _from(key: Expression, facts: Facts, first: Any, horizon: int) -> list[Any]:
    """Returns the public values from the first on; where none are listed, as many as are needed."""
    if facts.values is not None:
        return [value for value in facts.values if value is not None and value >= first]
    if isinstance(key, Call) and key.name == "date_trunc" and isinstance(key.arguments[0], Literal):
        unit = str(key.arguments[0].value)
        far = min(first.toordinal() + 367 * horizon, datetime.date.max.toordinal())
        return [day for day in unit_starts(unit, first, datetime.date.fromordinal(far)) or () if day >= first]
    if facts.kind == "date":
        last = min(first.toordinal() + horizon - 1, datetime.date.max.toordinal())
        return [datetime.date.fromordinal(day) for day in range(first.toordinal(), last + 1)]
    if not isinstance(key, Column):
        return []
    return list(range(first, first + horizon))


def _as_key(value: Any, like: Any) -> Any:
    """Returns a step as its column has it: a date, or a whole number; None if it is neither."""
    if isinstance(like, datetime.date):
        if isinstance(value, str):
            try:
                return datetime.date.fromisoformat(value)
            except ValueError:
                return None
        return value.date() if isinstance(value, datetime.datetime) else value if isinstance(value, datetime.date) else None
    exact = None if isinstance(value, bool) else parse_number(value)
    return int(exact) if exact is not None and exact.denominator == 1 else None


# --- the price --------------------------------------------------------------------------------------------------


def _terms(
    horizon: int, price: tuple[Number | None, Number | None, Number | None], caps: Caps, contributions: int, largest: int
) -> tuple[Terms, Price]:
    """Returns the terms of the running sum, and the price as (epsilon, delta)."""
    epsilon, delta, rho = price

    def made(**stated: Any) -> Terms:
        given = {"epsilon": None, "delta": None, "rho": None} | stated
        return Terms.of(horizon, given["epsilon"], given["delta"], given["rho"], contributions, largest)

    if (delta or rho) and not caps.delta:
        raise ArgumentError("This catalog is pure: its budget has no delta.", fix="give epsilon alone.")
    if rho is not None:
        terms = made(epsilon=epsilon, delta=delta, rho=rho)
        share = caps.delta_sums * min(terms.gaussian_rho() / caps.rho_max, Fraction(1)) if caps.rho_max else caps.delta_sums
        allowed = Fraction(math.ceil(share * _DIGITS), _DIGITS)
        return terms, Price(epsilon_of_zcdp(terms.gaussian_rho(), allowed), allowed)
    pure = made(epsilon=epsilon) if not delta else None
    if delta is None and caps.delta and pure is not None and pure.epsilon is not None:
        share = caps.delta_sums * min(pure.epsilon / caps.epsilon, Fraction(1))
        delta = Fraction(math.floor(share * _DIGITS), _DIGITS)
        try:
            smooth = made(epsilon=epsilon, delta=delta)
        except ArgumentError:  # no Gaussian within range at this (epsilon, delta)
            return pure, Price(pure.epsilon)
        better = _worst(smooth) < _worst(pure)
        return (smooth, Price(pure.epsilon, delta)) if better else (pure, Price(pure.epsilon))
    terms = pure or made(epsilon=epsilon, delta=delta)
    return terms, Price(terms.epsilon or Fraction(0), terms.delta or Fraction(0))


def _worst(terms: Terms) -> float:
    return float(terms.segment(0).deviations.max())
