"""Proposes bounds privately. Guessed bounds cost users more accuracy than noise does.

    between      the 1 % and the 99 % quantile by the exponential mechanism, on a public grid. A number x is placed at
                 sign(x) ln(1 + |x|) between -32 and 32, in steps of 1/64, so neighbouring candidates differ by 2 %;
                 a day in spans of 32 days between 1800 and 2150
    values       of a text column: the values that enough people have, by the threshold; this needs a delta
    max_rows     a noisy histogram of rows per person in powers of two; the smallest power that covers 95 % of people
    max_groups   the same for the number of different values of a key per person

Each is an ordinary plan with an ordinary price; reading a bound from a noisy histogram is post-processing. So is the estimate
of the number of rows. If 1 % of the rows is less than the error of the ranks, a bound may lie anywhere outside the data; the
proposal then says so, and names a price that is enough.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dither.catalog.declare import date_of, days
from dither.catalog.rules import listed
from dither.catalog.text import kept_settings
from dither.catalog.values import Catalog, ColumnFacts
from dither.errors import DitherError, QueryError
from dither.planning.outputs import Noisy, Table, table
from dither.planning.plan import Plan, plan
from dither.planning.price import Price, shares
from dither.planning.proposal import COVERED, TAIL, Proposal
from dither.query import fluent
from dither.query.fluent import FluentQuestion
from dither.query.functions.registry import typed
from dither.query.nodes import Aggregate, Call, Column, Expression, Literal, Named
from dither.query.resolve.relations import Resolved
from dither.text import did_you_mean

_FAR = 32
_DAYS, _FIRST, _LAST = 32, datetime.date(1800, 1, 1), datetime.date(2150, 1, 1)
_DATES = ("date", "timestamp")
_EPOCH = datetime.date(1970, 1, 1)
POWER = "CLAMP(FLOOR(LN(c + 0.5) / 0.6931471805599453), 0, 20)"  # floor(log2 c), on the safe side of rounding


@dataclass(frozen=True)
class Asked:
    """A column, what is declared of it, and the questions about it: its values, then rows per person, then groups.

    `catalog` bounds everyone, and declares nothing of the column but its kind: limits must not limit the proposal."""

    catalog: Catalog
    table: str
    column: str
    declared: ColumnFacts
    questions: tuple[FluentQuestion, ...]


def ask_about(catalog: Catalog, column: str, by: str | None) -> Asked:
    """Returns the questions about "table.column". `by`: a column or another key of the table, for max_groups."""
    name, _, field = column.partition(".") if isinstance(column, str) else ("", "", "")
    if name not in catalog.tables or field not in catalog.tables[name].columns:
        named = column if isinstance(column, str) else f"A {type(column).__name__}"
        raise DitherError(f"{named} is not a column of this catalog.", fix=_column_fix(catalog, named, name, field))
    declared = catalog.tables[name].columns[field]
    catalog = _bounded(catalog, name, field)
    table, start, x = catalog.tables[name], fluent.table(catalog, name), fluent.quoted(field)
    kind = declared.kind
    if kind == "bool":
        raise QueryError(f"Bounds are for numbers, and {field} is bool.", fix="it needs no bounds: group by it as it is.")
    values = start.group_by(value=x).agg(n=fluent.count()) if kind == "text" else start.agg(n=fluent.count(x))
    if table.unit is None:
        if by is not None:
            what = f"Every row of {name} is its own person, and in one group."
            raise DitherError(what, fix="leave by out: max_groups is 1.")
        return Asked(catalog, name, field, declared, (values, start.agg(n=fluent.count(x))))
    counts = [fluent.count()] + ([] if by is None else [fluent.count_distinct(_key(catalog, name, by))])
    histograms = (start.per_unit(c=each).group_by(k=POWER).agg(n=fluent.count()) for each in counts)
    return Asked(catalog, name, field, declared, (values, *histograms))


def _bounded(catalog: Catalog, name: str, field: str) -> Catalog:
    """Returns the catalog with one row and one group for each person where nothing is declared: enough for a proposal. Declares
    neither bounds nor values of the column."""
    table = catalog.tables[name]
    free = replace(table.columns[field], low=None, high=None, values=None, step=None)
    bounded = replace(table, columns={**table.columns, field: free})
    if table.unit is not None:
        bounded = replace(bounded, max_rows=table.max_rows or 1, max_groups=table.max_groups or 1)
    return replace(catalog, tables={**catalog.tables, name: bounded})


def _key(catalog: Catalog, name: str, by: object) -> str:
    """Returns the key to count: a column by its name, or another expression as it is written."""
    columns = catalog.tables[name].columns
    if isinstance(by, str) and by in columns:
        return fluent.quoted(by)
    if not isinstance(by, str) or by.isidentifier():
        near = did_you_mean(by, columns) if isinstance(by, str) else ""
        fix = f"{near}name a declared column of {name}, or write a key such as DATE_TRUNC('month', day)."
        raise DitherError(f"{by} is not a column of {name}, so it cannot be grouped by.", fix=fix)
    return by


def _column_fix(catalog: Catalog, named: str, name: str, field: str) -> str:
    """Returns the fix for an unknown column: the columns of the table if it exists, else a column of this name elsewhere."""
    if name in catalog.tables and catalog.tables[name].columns:
        columns = catalog.tables[name].columns
        near = did_you_mean(field, columns, f"{name}.")
        return f"{near}The columns of {name} are: {listed(columns)}."
    known = [f"{table}.{each}" for table, facts in catalog.tables.items() for each in facts.columns]
    alone = [each for each in known if each.partition(".")[2] in (named, field)]
    near = f"did you mean {alone[0]}? " if alone else did_you_mean(named, known)
    return f'{near}write "table.column", as in "{known[0] if known else "people.income"}".'


def plans(asked: Asked, resolved: Sequence[Resolved], price: Price) -> tuple[Plan, ...]:
    """Returns a plan for the values and one for each count. `resolved` are the questions asked, in their order."""
    values, *counts = resolved
    found = asked.declared.kind == "text"
    if found and not price.delta:
        raise _no_delta(asked)
    # Shares go by the cube root: values get twice the share of each count of persons, and eight times the share of a count of
    # rows, which only shows whether the bounds are usable.
    weight = 8.0 if any(each.query.keys for each in counts) else 512.0
    parts = shares(price.epsilon, [weight, *(1.0 for _ in counts)])
    # Common values need the delta; counts do not.
    deltas = [price.delta, *(Fraction(0) for _ in counts)] if found else [price.delta * part / price.epsilon for part in parts]
    questions = [values if found else _tails(values, asked.declared), *counts]
    return tuple(
        plan(each, asked.catalog, Price(part, delta)) for each, part, delta in zip(questions, parts, deltas, strict=True)
    )


def _no_delta(asked: Asked) -> QueryError:
    declare = f"declare the `values` of {asked.column} that everyone knows"
    budget = asked.catalog.budget
    fix = f"ask with a delta; or {declare}." if budget.delta else f"declare a delta in the budget of the catalog; or {declare}."
    return QueryError(f"Common values of {asked.column} can be found only with a delta, and there is none.", fix=fix)


def _tails(bounds: Resolved, declared: ColumnFacts) -> Resolved:
    """Returns the question for both tails. `bounds` counts the column over the whole table."""
    (counted,) = bounds.query.aggregates
    if counted.argument is None:
        raise TypeError("the question about bounds counts the column they are for")
    place = _day_place(counted.argument) if declared.kind in _DATES else _grid_place(counted.argument)
    x = typed(place, bounds.scope)
    low, high = (Aggregate(name, "quantile", x, p) for name, p in (("low", TAIL), ("high", 1 - TAIL)))
    query = replace(bounds.query, aggregates=(low, high), outputs=tuple(Named(name, Column(name)) for name in ("low", "high")))
    return replace(bounds, query=query)


def _grid_place(x: Expression) -> Expression:
    """Returns the place of a number on the geometric grid."""
    size = Call("ln", (Call("add", (Call("abs", (x,)), Literal(1))),))
    return Call("clamp", (Call("mul", (Call("sign", (x,)), size)), Literal(-_FAR), Literal(_FAR)))


def _day_place(x: Expression) -> Expression:
    """Returns the number of the span of days in which a date or timestamp lies."""
    since = Call("days_between", (Literal(_EPOCH), x))
    ends = (Literal(math.floor(days(end) / _DAYS)) for end in (_FIRST, _LAST))
    return Call("clamp", (Call("floor", (Call("div", (since, Literal(_DAYS))),)), *ends))


def read(asked: Asked, made: Sequence[Plan], released: Sequence[Noisy], price: str) -> Proposal:
    """Reads a proposal from noisy results, in the order of the questions."""
    tables = [table(one, noisy) for one, noisy in zip(made, released, strict=True)]
    least_shown = [5 * one.noises[0].scale if one.noises else 0.0 for one in made[1:]]
    histograms = [(each, noise) for each, noise in zip(tables[1:], least_shown, strict=True) if len(each.columns) == 2]
    counts = [covering(each, noise) for each, noise in histograms] + [None, None]
    spent = sum((one.price.epsilon for one in made), Fraction(0))
    rows = _rows(tables[1], least_shown[0], made[0].bounding.max_rows)
    blank = Proposal(asked.table, asked.column, None, None, counts[0], counts[1], 0.0, price, rows, spent)
    blank = replace(blank, settings=kept_settings(asked.declared))
    if asked.declared.kind == "text":
        threshold = made[0].threshold
        found = tuple(str(value) for value, *_ in tables[0].rows if value is not None)
        return replace(blank, values=found, people=threshold.margin("0.95") if threshold else 0)
    return _with_bounds(blank, asked.declared, made[0], tables[0])


def _with_bounds(blank: Proposal, declared: ColumnFacts, made: Plan, tails: Table) -> Proposal:
    low, high = (float(value) for value in tails.rows[0])  # type: ignore[arg-type]
    reading = made.reading("high")
    rank = (reading.rank(made.noises, Fraction(19, 20)) if reading else None) or 0.0
    if declared.kind in _DATES:
        first, last = sorted((round(low), round(high)))
        bottom, top = _whole_months(date_of(Fraction(first * _DAYS)), date_of(Fraction((last + 1) * _DAYS - 1)))
        # Bounds alone would say that it is a date.
        named = ('kind = "timestamp"',) if declared.kind == "timestamp" and declared.implied else ()
        return replace(blank, low=bottom, high=top, rank=rank, settings=(*named, *blank.settings))
    half = 1 / 32
    least, most = sorted((_from_grid(low - half), _from_grid(high + half)))
    ends = _round_outward(least, most, declared.kind == "int")
    if declared.step is not None:
        ends = ends[0], _whole_steps(*ends, declared.step)
    return replace(blank, low=ends[0], high=ends[1], rank=rank, step=declared.step)


def _whole_months(first: datetime.date, last: datetime.date) -> tuple[datetime.date, datetime.date]:
    """Moves both dates out to whole years, or to whole months if they are less than three years apart.

    >>> [str(day) for day in _whole_months(datetime.date(2009, 11, 26), datetime.date(2011, 12, 12))]
    ['2009-11-01', '2011-12-31']
    >>> [str(day) for day in _whole_months(datetime.date(1947, 3, 1), datetime.date(2011, 12, 12))]
    ['1947-01-01', '2011-12-31']
    """
    if last - first > datetime.timedelta(days=3 * 365):
        return first.replace(month=1, day=1), last.replace(month=12, day=31)
    following = (last.replace(day=28) + datetime.timedelta(days=4)).replace(day=1)
    return first.replace(day=1), following - datetime.timedelta(days=1)


def _whole_steps(low: int | float, high: int | float, step: Fraction) -> int | float:
    """Returns the upper bound moved out until the range is a whole number of steps, as a catalog requires.

    >>> _whole_steps(17, 120, Fraction(5)), _whole_steps(0.5, 18.0, Fraction(1, 5))
    (122, 18.1)
    """
    bottom, top = Fraction(str(low)), Fraction(str(high))
    end = bottom + step * max(math.ceil((top - bottom) / step), 1)
    return int(end) if end.denominator == 1 and isinstance(high, int) else float(end)


def _rows(counted: Table, least: float, max_rows: int) -> int:
    """Estimates the number of rows' worth. Counts below `least` may be only noise, and are left out."""
    if len(counted.columns) == 1:
        many = float(counted.rows[0][0])  # type: ignore[arg-type]
        return round(many) if many >= least else 0
    rows_each = [min((3 * 2.0**power - 1) / 2, max_rows) for power in range(len(counted.rows))]  # the middle of each class
    people = [float(row[1]) for row in counted.rows]  # type: ignore[arg-type]
    return round(sum(rows * many for rows, many in zip(rows_each, people, strict=True) if many >= max(least, 0.0)))


def _from_grid(place: float) -> float:
    return math.copysign(math.expm1(abs(place)), place)


def _round_outward(low: float, high: float, whole: bool) -> tuple[int | float, int | float]:
    """Rounds both to two significant digits, away from each other; a bound within one step of zero is zero.

    >>> _round_outward(-0.03, 108_765.0, True), _round_outward(17.2, 17.9, False)
    ((0, 110000), (17.0, 18.0))
    """
    ends = []
    for end, rounded in ((low, math.floor), (high, math.ceil)):
        unit = 10.0 ** (math.floor(math.log10(abs(end))) - 1) if abs(end) > 0.05 else 0.0
        value = rounded(end / unit) * unit if unit else 0.0
        ends.append(rounded(float(f"{value:.6g}")) if whole else float(f"{value:.6g}"))
    return ends[0], ends[1]


def covering(histogram: Table, least: float = 0.0) -> int:
    """Returns the end of the first power-of-two class that covers nearly all people. Leaves out counts below `least`."""
    counts = [float(row[1]) for row in histogram.rows]  # type: ignore[arg-type]
    counts = [count if count >= max(least, 0.0) else 0.0 for count in counts]
    reached = 0.0
    for power, count in enumerate(counts):
        reached += count
        if reached >= COVERED * sum(counts):
            return int(2 ** (power + 1) - 1)
    return 1
