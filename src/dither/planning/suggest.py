"""Proposes bounds privately. Guessed bounds cost users more accuracy than noise does.

    between      the 1 % and the 99 % quantile by the exponential mechanism, on a public geometric grid: x is placed at
                 sign(x) ln(1 + |x|) between -32 and 32, in steps of 1/16, so neighbouring candidates differ by 6 %
    max_rows     a noisy histogram of rows per person in powers of two; the smallest power that covers 95 % of people
    max_groups   the same for the number of different values of a column per person

Each is an ordinary plan with an ordinary price; reading a bound from a noisy histogram is post-processing. So is the estimate
of the number of rows. If 1 % of the rows is less than the error of the ranks, a bound may lie anywhere outside the data; the
proposal then says so, and names a price that is enough.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import Any

from dither.catalog.rules import listed
from dither.catalog.values import Catalog, ColumnFacts
from dither.errors import DitherError, QueryError
from dither.exact.numbers import encode_toml, show
from dither.planning.outputs import Noisy, Table, table
from dither.planning.plan import Plan, plan
from dither.planning.price import Price, shares
from dither.query import fluent
from dither.query.fluent import FluentQuestion
from dither.query.functions.registry import facts as infer
from dither.query.nodes import Aggregate, Call, Column, Expression, Literal, Named
from dither.query.resolve.relations import Resolved
from dither.text import did_you_mean

_FAR = 32
_TAIL = Fraction(1, 100)
_COVERED = 0.95
_SPARE, _MUCH = 1.25, 10.0  # factors on the price that is just enough, and on the price paid if that cannot be computed
_OTHER_BOUNDS = {
    "date": "declare dates that anyone may know: between = [1900-01-01, 2030-12-31].",
    "timestamp": 'read it as days, between dates that anyone may know: kind = "date", between = [1900-01-01, 2030-12-31].',
    "bool": "it needs no bounds: group by it as it is.",
}
POWER = "CLAMP(FLOOR(LN(c + 0.5) / 0.6931471805599453), 0, 20)"  # floor(log2 c), on the safe side of rounding


@dataclass(frozen=True)
class Proposal:
    """Lines to paste into the catalog, and their price."""

    table: str
    column: str
    low: int | float
    high: int | float
    max_rows: int | None
    max_groups: int | None
    rank: float
    price: str
    rows: int = 0  # the estimated number of rows' worth; 0 if noise hides it
    epsilon: Fraction = Fraction(0)  # the price of all plans
    step: Fraction | None = None  # as declared

    @property
    def enough(self) -> Fraction | None:
        """An epsilon that would be enough, or None if this one was: a rank's error is inversely proportional to epsilon."""
        tail = float(_TAIL) * self.rows
        if self.rank <= tail:
            return None
        more = _SPARE * self.rank / tail if tail else _MUCH
        return Fraction(Context(prec=2, rounding=ROUND_CEILING).create_decimal_from_float(float(self.epsilon) * more))

    @property
    def toml(self) -> str:
        """The lines for the catalog file."""
        lines = [f"[tables.{self.table}]"]
        lines += [f"max_rows = {self.max_rows}"] if self.max_rows else []
        lines += [f"max_groups = {self.max_groups}"] if self.max_groups else []
        return "\n".join([*lines, f"[tables.{self.table}.columns]", f"{self.column} = {{ {self._between()} }}"])

    def _between(self) -> str:
        if self.step is None:
            return f"between = [{self.low}, {self.high}]"
        low = Fraction(str(self.low))
        high = low + self.step * round((Fraction(str(self.high)) - low) / self.step)  # `high` may be a rounded float
        return f"between = [{encode_toml(low)}, {encode_toml(high)}], step = {encode_toml(self.step)}"

    def as_data(self) -> dict[str, Any]:
        """Returns the fields that `to_json` writes."""
        enough = self.enough
        return {
            "table": self.table,
            "column": self.column,
            "between": [self.low, self.high],
            "step": None if self.step is None else str(self.step),
            "max_rows": self.max_rows,
            "max_groups": self.max_groups,
            "rows": self.rows,
            "rank": self.rank,
            "epsilon": str(self.epsilon),
            "enough": None if enough is None else str(enough),
            "charged": self.price,
            "toml": self.toml,
        }

    def to_json(self) -> str:
        """Returns the proposal as JSON, with the lines for the catalog. `rank`: how many rows' worth the bounds may be off;
        `enough`: an epsilon that would be enough, null if this one was. Prices are exact rationals as text."""
        return json.dumps(self.as_data(), ensure_ascii=False, indent=2, allow_nan=False)

    def __str__(self) -> str:
        notes = [f"# proposed privately, charged {self.price}: {self._reliability()}"]
        if self.max_rows:
            covers = "covers" if self.enough is None else "may be far off, too: it is meant to cover"
            notes.append(f"# max_rows {covers} about {100 * _COVERED:g} % of people; heavier ones are scaled down, not dropped")
        return "\n".join([*notes, self.toml])

    def _reliability(self) -> str:
        """Shows how reliable the bounds are."""
        off = f"ranks within {self.rank:.0f} rows, 95 % confidence"
        if self.enough is None:
            return f"about {2 * float(100 * _TAIL):g} % of values would be clipped ({off})"
        if not self.rows:
            known = "noise hides even how many rows there are"
        else:
            known = f"{float(100 * _TAIL):g} % of about {self.rows} rows is {float(_TAIL) * self.rows:.0f}"
        return (
            f"TOO NOISY, the bounds may lie far outside the data or deep inside it\n"
            f"# {off}, and {known}; ε = {show(self.enough)} {'is worth a try' if not self.rows else 'or more would do'}"
        )


def questions(catalog: Catalog, column: str, by: str | None) -> tuple[str, str, list[FluentQuestion]]:
    """Returns the table, the column and the questions about them: the values, then rows per person, then groups."""
    name, _, field = column.partition(".") if isinstance(column, str) else ("", "", "")
    if name not in catalog.tables or field not in catalog.tables[name].columns:
        named = column if isinstance(column, str) else f"A {type(column).__name__}"
        raise DitherError(f"{named} is not a column of this catalog.", fix=_column_fix(catalog, named, name, field))
    if by is not None and (not isinstance(by, str) or by not in catalog.tables[name].columns):
        near = did_you_mean(by, catalog.tables[name].columns) if isinstance(by, str) else ""
        raise DitherError(
            f"{by} is not a column of {name}, so it cannot be grouped by.", fix=f"{near}name a declared column of {name}."
        )
    start = fluent.table(catalog, name)
    values = start.agg(n=fluent.count(_quoted(field)))
    if catalog.tables[name].unit is None:
        return name, field, [values, values]  # the second one counts the values
    counts = ["COUNT(*)"] + ([f"COUNT(DISTINCT {_quoted(by)})"] if by else [])
    return name, field, [values, *(start.per_unit(c=each).group_by(k=POWER).agg(n=fluent.count()) for each in counts)]


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


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def plans(bounds: Resolved, column: str, counts: Sequence[Resolved], catalog: Catalog, price: Price) -> tuple[Plan, ...]:
    """Returns a plan for the bounds and one for each count. `bounds` is the question COUNT(column) over the whole table."""
    (counted,) = bounds.query.aggregates
    x = counted.argument
    if x is None:
        raise TypeError("the question about bounds counts the column they are for")
    kind = infer(x, bounds.scope).kind
    if kind not in ("int", "real"):
        fix = _OTHER_BOUNDS.get(str(kind), f"to group by it, declare its public values: {column} = {{ values = [...] }}.")
        raise QueryError(f"Bounds are for numbers, and {column} is {kind}.", fix=fix)
    # Shares go by the cube root: bounds get twice the share of each count of persons, and eight times the share of a count of
    # rows, which only shows whether the bounds are usable.
    weight = 8.0 if any(each.query.keys for each in counts) else 512.0
    parts = shares(price.epsilon, [weight, *(1.0 for _ in counts)])
    deltas = [price.delta * part / price.epsilon for part in parts]
    low, high = (Aggregate(name, "quantile", _grid_place(x), p) for name, p in (("low", _TAIL), ("high", 1 - _TAIL)))
    query = replace(bounds.query, aggregates=(low, high), outputs=tuple(Named(name, Column(name)) for name in ("low", "high")))
    rows = bounds.max_rows or 1  # a proposal needs no declared bound: everyone counts for one row
    first = plan(replace(bounds, query=query, max_rows=rows), catalog, Price(parts[0], deltas[0]))
    rest = (plan(each, catalog, Price(part, delta)) for each, part, delta in zip(counts, parts[1:], deltas[1:], strict=True))
    return (first, *rest)


def _grid_place(x: Expression) -> Expression:
    """Returns the place of a number on the geometric grid."""
    size = Call("ln", (Call("add", (Call("abs", (x,)), Literal(1))),))
    return Call("clamp", (Call("mul", (Call("sign", (x,)), size)), Literal(-_FAR), Literal(_FAR)))


def read(
    name: str, column: str, made: Sequence[Plan], released: Sequence[Noisy], declared: ColumnFacts, price: str
) -> Proposal:
    """Reads a proposal from noisy results. `made` and `released` have the bounds first, then rows, then groups."""
    tables = [table(one, noisy) for one, noisy in zip(made, released, strict=True)]
    low, high = (float(value) for value in tables[0].rows[0])  # type: ignore[arg-type]
    half = 1 / 32
    least, most = sorted((_from_grid(low - half), _from_grid(high + half)))
    least_shown = [5 * one.noises[0].scale if one.noises else 0.0 for one in made[1:]]
    histograms = [(each, noise) for each, noise in zip(tables[1:], least_shown, strict=True) if len(each.columns) == 2]
    counts = [covering(each, noise) for each, noise in histograms] + [None, None]
    reading = made[0].reading("high")
    rank = (reading.rank(made[0].noises, Fraction(19, 20)) if reading else None) or 0.0
    bottom, top = _round_outward(least, most, declared.kind == "int")
    if declared.step is not None:
        top = _whole_steps(bottom, top, declared.step)
    rows = _rows(tables[1], least_shown[0], made[0].bounding.max_rows)
    spent = sum((one.price.epsilon for one in made), Fraction(0))
    return Proposal(name, column, bottom, top, counts[0], counts[1], rank, price, rows, spent, declared.step)


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
        if reached >= _COVERED * sum(counts):
            return int(2 ** (power + 1) - 1)
    return 1
