"""The margin that a question asks for, and the smallest price that gives it: a search over plans, which reads no rows.

A margin is a number (`50`), or a share of a public number (`"2 %"`). What it is a share of must be public before the price is
known, because the price follows from it:

    an earlier answer     of=answer: the smallest size in the column of the same name. It is noisy, hence public; a pilot
                          is such an answer, asked at a small price and charged by itself
    a number              of=12000: the analyst's own
    rows in the catalog   for COUNT(*) of a whole table, and for ranks of quantiles: there are at least so many rows
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dither.catalog.values import Rows
from dither.errors import ArgumentError, Blank, DitherError, Fix, Python, QueryError
from dither.exact.laws.base import search
from dither.exact.numbers import Number, parse_number, positive, rational, show, show_percent, show_rounded
from dither.planning.outputs import AsRead, Computed, Output, outputs
from dither.planning.plan import Plan

_LOWEST = -6  # the first price tried is 10^-6
_DECADE = 900  # prices with three digits from one power of ten to the next


@dataclass(frozen=True)
class Earlier:
    """An earlier answer: its columns, and the entry that recorded it."""

    columns: Mapping[str, Sequence[object]]
    entry: int


@dataclass(frozen=True)
class Aim:
    """A margin to reach: `size`, or with `relative` that share of a public number. `rows`: the public number of rows."""

    size: Fraction
    relative: bool = False
    of: Fraction | Earlier | None = None
    rows: Rows | None = None

    @classmethod
    def read(cls, margin: Number, of: Number | Earlier | None) -> Aim:
        """Checks a margin, such as 50 or "2 %", and what it is relative to."""
        text = margin.strip() if isinstance(margin, str) else ""
        if not text.endswith("%"):
            if of is not None:
                raise ArgumentError(
                    "A margin that is a number is not relative to anything.",
                    fix=Fix("leave {of} out, or ask for a share such as {margin}.", of=Blank(), margin="2 %"),
                )
            return cls(positive(margin, "margin"))
        share = positive(text[:-1].strip(), "margin") / 100
        if of is None or isinstance(of, Earlier):
            return cls(share, True, of)
        size = abs(rational(of, "of"))
        if not size:
            raise ArgumentError("A share of 0 is 0.", fix=Fix("give {of} another number.", of=Blank()))
        return cls(share, True, size)

    def target(self, output: Output, plan: Plan, confidence: Fraction) -> Fraction:
        """Returns the margin that the output may have. Refuses a share of nothing."""
        return self.size if not self.relative else self.size * self._whole(output, plan, confidence)[0]

    def words(self, plan: Plan, confidence: Fraction) -> str:
        """Says what a relative margin is relative to; empty for other margins."""
        if not self.relative:
            return ""
        found = [(each, *self._whole(each, plan, confidence)) for each in outputs(plan) if each.readings]
        parts = [
            f"{each.name} ± {show_rounded(float(self.size * whole))}, {show_percent(self.size)} of {w}"
            for each, whole, w in found
        ]
        return "; ".join(parts)

    def _whole(self, output: Output, plan: Plan, confidence: Fraction) -> tuple[Fraction, str]:
        """Returns what the output's margin is a share of, and says what that is."""
        ranked = output.rank(plan, confidence) is not None
        if isinstance(self.of, Fraction):
            return self.of, f"{show(self.of)}, as given"
        if isinstance(self.of, Earlier):
            size = _smallest(self.of.columns.get(output.name, ())) if not ranked else None
            if size:
                return size, f"{show_rounded(float(size))}, the smallest {output.name} of the answer of entry {self.of.entry}"
        rows = self.rows and (self.rows.public or self.rows.at_least)
        if self.of is None and rows and (ranked or _counts_all(output)):
            return Fraction(rows), f"{rows} rows, as the catalog declares"
        raise self._refusal(output, plan)

    def _refusal(self, output: Output, plan: Plan) -> DitherError:
        what = f"A margin of {show_percent(self.size)} of {output.name} needs a public number that it is a share of."
        if isinstance(self.of, Earlier):
            what = f"The answer of entry {self.of.entry} has no {output.name} other than 0 that a margin can be a share of."
        pilot = Python("of=ask(question, epsilon=…)", shell="--of with what a question at a small --epsilon returned")
        words = "ask it at a small price first and pass its answer: {pilot}; or pass a number: {of}; or ask for {margin}."
        if _counts_all(output) and not plan.query.keys:
            words = "declare rows = {{ at_least = … }} for the table, or " + words
        return DitherError(what, fix=Fix(words, pilot=pilot, of=12000, margin=50))


def _smallest(values: Sequence[object]) -> Fraction | None:
    numbers = [abs(number) for number in map(parse_number, values) if number]
    return min(numbers) if numbers and len(numbers) == len(values) else None


def _counts_all(output: Output) -> bool:
    """Whether the output is COUNT(*)."""
    one = output.reading.aggregate if isinstance(output, AsRead) else None
    return one is not None and one.function == "count" and one.argument is None and one.where is None


def cheapest(
    build: Callable[[Fraction], Plan], least: Fraction, most: Fraction, aim: Aim, confidence: Fraction, rows: int | None
) -> Plan:
    """Returns the plan with the smallest epsilon (three digits, from `least` to `most`) whose margins are within the aim."""
    count = 0
    while _price(count) < most:
        count += _DECADE
    last = search(lambda i: _price(i) >= most, 0, count)

    top = _highest(build, most, last)
    highest = min(_price(top), most)
    _refuse_unpredictable(build(highest), rows, confidence)
    if not _within(build, highest, aim, confidence, rows):
        why = "which is all there is" if top == last else "and its noise cannot be finer"
        asked = f"{show_percent(aim.size)} of what was named" if aim.relative else show(aim.size)
        raise DitherError(
            f"A margin of {asked} needs more than ε = {show(highest)}, {why}.",
            fix="ask for a wider margin, fewer outputs or a lower confidence.",
        )
    found = search(lambda i: _within(build, min(_price(i), most), aim, confidence, rows), 0, top)
    epsilon = min(_price(found), most)
    return build(epsilon) if epsilon >= least else replace(build(least), rounded_up=True)


def _price(index: int) -> Fraction:
    """Returns the index-th number with three significant digits, from 10^-6 upwards.

    >>> [str(_price(i)) for i in (0, 900)]
    ['1/1000000', '1/100000']
    """
    decade, digits = divmod(index, _DECADE)
    return Fraction(100 + digits, 100) * Fraction(10) ** (_LOWEST + decade)


def _highest(build: Callable[[Fraction], Plan], most: Fraction, last: int) -> int:
    """Returns the highest of the prices up to `last` that has a plan: above it, noise would be finer than mechanisms draw."""

    def refused(index: int) -> bool:
        try:
            build(min(_price(index), most))
        except (ArgumentError, QueryError):
            return True
        return False

    if not refused(last):
        return last
    below = next((i for i in range(last - _DECADE, -1, -_DECADE) if not refused(i)), None)
    return last if below is None else search(refused, below, min(below + _DECADE, last)) - 1


def _within(build: Callable[[Fraction], Plan], epsilon: Fraction, aim: Aim, confidence: Fraction, rows: int | None) -> bool:
    """Whether the margins at this price are within the aim; for a quantile the margin is a rank, in rows."""
    try:
        plan = build(epsilon)
    except QueryError:  # noise wider than mechanisms draw
        return False
    for output in outputs(plan):
        wide = output.rank(plan, confidence) or output.predicted(plan, rows, confidence)
        if wide and wide > aim.target(output, plan, confidence):
            return False
    return True


def _refuse_unpredictable(plan: Plan, rows: int | None, confidence: Fraction) -> None:
    """Refuses a plan whose margins cannot be predicted."""
    columns = outputs(plan)
    for output in columns:
        if isinstance(output, Computed) and output.predicted(plan, rows or 1, confidence) is None:
            raise DitherError(
                f"The margin of {output.name} depends on the noisy numbers it is computed from, and cannot be predicted.",
                fix=Fix(
                    "ask with {epsilon} instead of {margin}, or ask for the numbers themselves.",
                    epsilon=Blank(),
                    margin=Blank(),
                ),
            )
    readings = [reading for output in columns for reading in output.readings]
    computed = [output for output in columns if isinstance(output, Computed)]
    by_rows = [reading for reading in readings if reading.by_rows]
    if rows is None and (by_rows or any(output.predicted(plan, None, confidence) is None for output in computed)):
        raise DitherError(
            "The margin of a mean depends on how many rows it is taken over, and no row is read to find out.",
            fix=Fix("say how many rows a group has at least: {assume_rows}, or declare rows in the catalog.", assume_rows=1000),
        )
    if not readings:
        raise DitherError(
            "No output of this question has a margin.",
            fix=Fix("ask with {epsilon} instead of {margin}.", epsilon=Blank(), margin=Blank()),
        )
