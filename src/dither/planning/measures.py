"""From aggregates to exact measures: what is added up for each, and how its value is read back.

COUNT(*), COUNT(x), SUM(x) and AVG(x) come from one joint release. With x on its grid as q = 0..R:

    A = sum of q        B = sum of R - q        C = sum of R where x is NULL (only if COUNT(*) is asked and x may be NULL)

A row moves the three by exactly R together, so they cost what one count costs:
COUNT(x) = (A + B)/R, COUNT(*) = (A + B + C)/R, SUM = low COUNT(x) + step A, AVG = low + range A/(A + B).
Several columns bring several counts of the same rows; they are combined by inverse variance. Where x cannot be NULL by the
catalog, COUNT(*) and COUNT(x) are the same number. A SUM alone is one cell that a row moves by max(|low|, |high|).
VAR and STDDEV add D = sum of 2 z^2 - 1 with z in [-1, 1], the centred second moment.

With a public number of rows n (replace neighbours) COUNT(*) is n, and A alone gives SUM and AVG.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dither.errors import QueryError
from dither.planning import grids
from dither.planning.noises import Draft
from dither.query.facts import Facts
from dither.query.infer import facts as infer
from dither.query.nodes import Aggregate, Call, Expression, Literal
from dither.query.show import show_expression
from dither.query.work import Bins, Cell, Distinct, Quantised, Sums

EXTREME = {"min": Fraction(1, 100), "max": Fraction(99, 100), "median": Fraction(1, 2)}
OUTERMOST = Fraction(1, 1000)  # shares nearer to 0 or 1 are moved here, and plans and answers say so
_SPREADS = {"var_samp", "var_pop", "stddev_samp", "stddev_pop"}
_JOINT = {"avg", "clipped", *_SPREADS}


@dataclass(frozen=True)
class Need:
    """What one aggregate is read from, before noises have numbers: the drafts by their place in `Measures.drafts`."""

    asked: Aggregate
    shape: str  # "count", "sum", "mean", "spread", "quantile", "cell", "known"
    places: tuple[int, ...]
    grid: Quantised | None = None
    squares: Quantised | None = None
    whole: bool = False
    full: bool = False  # the argument cannot be NULL
    moved: Fraction = Fraction(0)  # how far the grid may move one value
    rounded: bool = False  # whether the grid of the squares moves values
    p: Fraction | None = None  # the quantile that is chosen
    nulls: bool = False  # COUNT(*) from a joint release with a NULL cell


@dataclass
class Measures:
    """The drafts of one question, collected aggregate by aggregate. `known`: a public number of rows, or None."""

    aggregates: tuple[Aggregate, ...]
    scope: Mapping[str, Facts]
    max_rows: int
    known: int | None
    drafts: list[Draft] = field(default_factory=list)
    needs: list[Need] = field(default_factory=list)
    joint: dict[Expression, tuple[int, Quantised, bool]] = field(default_factory=dict)
    clipped: list[str] = field(default_factory=list)
    wanted: dict[Expression, set[str]] = field(default_factory=dict)

    def collect(self) -> Measures:
        """All of them; means first, so that counts can be read from their releases."""
        rewritten = [_without_clipped(a.lowered(), self.scope) for a in self.aggregates]
        wanted = self.wanted
        for asked, written in zip(rewritten, self.aggregates, strict=True):
            if asked.argument is not None and asked.function in {"sum", *_JOINT}:
                wanted.setdefault(asked.argument, set()).add(written.function)
        everyone = any(asked.function == "count" and self._all_rows(asked) for asked in rewritten)
        counted = {a.argument for a in rewritten if a.function == "count" and a.argument is not None}
        for asked in rewritten:
            x = asked.argument
            if x is None or x not in wanted or x in self.joint:
                continue
            if wanted[x] & _JOINT or everyone or x in counted or self.known is not None:
                self._joint(x, asked, everyone)
        for asked, written in zip(rewritten, self.aggregates, strict=True):
            self.needs.append(self._need(asked, written))
        return self

    def _facts(self, x: Expression) -> Facts:
        return infer(x, self.scope)

    def _all_rows(self, asked: Aggregate) -> bool:
        return asked.argument is None or not self._facts(asked.argument).nullable

    def _add(self, draft: Draft) -> int:
        self.drafts.append(draft)
        return len(self.drafts) - 1

    def _joint(self, x: Expression, asked: Aggregate, everyone: bool) -> None:
        known = self._facts(x)
        q = grids.summed(x, known, asked)
        nulls = everyone and known.nullable and self.known is None
        rising, falling = Cell(q, linear=1), Cell(q, constant=q.steps, linear=-1)
        alone = self.known is not None and not known.nullable and not self.wanted[x] & _SPREADS
        cells = (rising,) if alone else (rising, falling)
        if nulls:
            cells = (*cells, Cell(q, null=q.steps))
        where = _present(x) if known.nullable and not nulls else None
        place = self._add(Draft(Sums(cells, self.max_rows, where), q.steps, False, 0.0, self._words(x, q, len(cells), nulls)))
        self.joint[x] = (place, q, nulls)
        if self.wanted[x] != {"clipped"}:
            self._note(x, known)

    def _words(self, x: Expression, q: Quantised, cells: int, nulls: bool) -> str:
        if self.wanted[x] == {"clipped"}:
            return "counts of values outside and inside the bounds" + (", and of NULLs" if nulls else "")
        about = f"{show_expression(x)} and what is missing to its upper bound" if cells > 1 else show_expression(x)
        return f"sums of {about}{', and NULLs' if nulls else ''}, in steps of {grids.plain(q.step)}"

    def _need(self, asked: Aggregate, written: Aggregate) -> Need:
        if asked.function == "count":
            return self._count(asked, written)
        if asked.function == "count_units":
            place = self._cell(Sums((Cell(constant=1),), 1), 1, False, "one for each person")
            return Need(asked, "cell", (place,), whole=True)
        x = asked.argument
        if x is None:
            raise TypeError(f"{asked.function} has no argument: legality should have refused it")
        known = self._facts(x)
        if asked.function == "count_distinct":
            place = self._cell(Distinct(x, self.max_rows), 1, False, f"different values of {show_expression(x)}")
            return Need(asked, "cell", (place,), whole=True)
        if asked.function in {"median", "quantile", "min", "max"}:
            return self._quantile(asked, x, known)
        if asked.function in _SPREADS:
            return self._spread(asked, x, known)
        if x in self.joint:
            place, q, _ = self.joint[x]
            self._weigh(place)
            shape = "mean" if asked.function == "avg" else "sum"
            moved = grids.moved(q, known)
            return Need(asked, shape, (place,), q, whole=_on_whole(q, known), full=not known.nullable, moved=moved)
        return self._sum(asked, x, known)

    def _count(self, asked: Aggregate, written: Aggregate) -> Need:
        if self.known is not None and self._all_rows(asked):
            return Need(asked, "known", (), whole=True)
        same = self._all_rows(asked)
        if same:
            places = [p for x, (p, _, nulls) in self.joint.items() if nulls or not self._facts(x).nullable]
        else:
            places = [p for x, (p, _, _) in self.joint.items() if x == asked.argument]
        if places:
            for place in places:
                self._weigh(place, 1 / len(places))
            return Need(asked, "count", tuple(places), whole=True, nulls=same)
        where = None if same or asked.argument is None else _present(asked.argument)
        words = "rows"
        if where is not None and written.where is not None and written.argument is None:
            words = f"rows where {show_expression(written.where)}"
        elif where is not None and asked.argument is not None:
            words = f"rows where {show_expression(asked.argument)} is not NULL"
        return Need(asked, "cell", (self._cell(Sums((Cell(constant=1),), self.max_rows, where), 1, False, words),), whole=True)

    def _sum(self, asked: Aggregate, x: Expression, known: Facts) -> Need:
        """A SUM alone: one cell in steps from zero, if zero is on the grid; else the joint release."""
        q = grids.summed(x, known, asked)
        offset = q.low / q.step
        if offset.denominator != 1:
            self._joint(x, asked, False)
            return Need(asked, "sum", (self.joint[x][0],), q, whole=_on_whole(q, known), moved=grids.moved(q, known))
        first, last = int(offset), int(offset) + q.steps
        cell = Cell(q, constant=first, linear=1)
        row = max(abs(first), abs(last), 1)
        where = _present(x) if known.nullable else None
        words = f"sum of {show_expression(x)}, in steps of {grids.plain(q.step)}"
        place = self._cell(Sums((cell,), self.max_rows, where), row, first < 0, words)
        self._note(x, known)
        moved = grids.moved(q, known)
        if moved:  # no count is released with a SUM alone, so what grows with the rows cannot be part of its margin
            self._say(
                f"{show_expression(x)} is rounded to steps of {grids.plain(q.step)}, which moves a sum by at most "
                f"{grids.plain(moved)} for each row"
            )
        return Need(asked, "cell", (place,), q, whole=_on_whole(q, known))

    def _spread(self, asked: Aggregate, x: Expression, known: Facts) -> Need:
        place, q, nulls = self.joint[x]
        squares = grids.coarse(x, known, asked, grids.SQUARES)
        r = squares.steps
        # 2 z^2 - 1 with z = 2q/R - 1, times R^2 to be whole: 8 q^2 - 8 R q + R^2, from -R^2 to R^2.
        cell = Cell(squares, constant=r * r, linear=-8 * r, square=8)
        where = _present(x) if known.nullable and not nulls else None
        second = self._cell(Sums((cell,), self.max_rows, where), r * r, True, f"centred squares of {show_expression(x)}")
        self._weigh(place)
        moved, rounded = grids.moved(q, known), grids.moved(squares, known) > 0
        return Need(asked, "spread", (place, second), q, squares, full=not known.nullable, moved=moved, rounded=rounded)

    def _quantile(self, asked: Aggregate, x: Expression, known: Facts) -> Need:
        p = asked.parameter if asked.function == "quantile" else EXTREME[asked.function]
        if p is None or not 0 < p < 1:
            raise QueryError(
                "The share of a quantile lies between 0 and 1, and is neither.",
                span=asked.span,
                fix="write a share such as 0.01, or MIN(x) and MAX(x) for the 1 % and the 99 % quantile.",
            )
        p = held(p)
        q = grids.coarse(x, known, asked, grids.BINS)
        # Its rank margin over a count's at the same price and 95 %: (2 max(p, 1-p) (ln bins + 3) / 3), squared.
        weight = (2 * float(max(p, 1 - p)) * (math.log(q.steps + 1) + 3) / 3) ** 2
        words = f"the {percent(p)} quantile of {show_expression(x)}"
        place = self._add(Draft(Bins(q, self.max_rows), 0, False, weight, words, p))
        self._note(x, known)
        return Need(asked, "quantile", (place,), q, whole=_on_whole(q, known), p=p)

    def _cell(self, measure: Sums | Distinct, row: int, signed: bool, words: str) -> int:
        """A measure of one cell; the same one asked twice is released once."""
        for place, draft in enumerate(self.drafts):
            if draft.measure == measure:
                self._weigh(place)
                return place
        return self._add(Draft(measure, row, signed, 1.0, words))

    def _weigh(self, place: int, more: float = 1.0) -> None:
        old = self.drafts[place]
        self.drafts[place] = Draft(old.measure, old.row, old.signed, old.weight + more, old.words, old.p)

    def _note(self, x: Expression, known: Facts) -> None:
        if known.low is not None and known.high is not None:
            text = f"{show_expression(x)} is clipped to [{grids.plain(known.low)}, {grids.plain(known.high)}]"
            on_steps = known.step is not None and not known.whole
            self._say(f"{text} and rounded to steps of {grids.plain(known.step)}" if on_steps and known.step else text)

    def _say(self, text: str) -> None:
        if text not in self.clipped:
            self.clipped.append(text)


def held(p: Fraction) -> Fraction:
    """The share that is asked for instead: not nearer to 0 or 1 than OUTERMOST, with a denominator of at most 1000.

    Scores and their sensitivity grow with the denominator: a share of sixteen digits would bring all scores of noises.py
    to the end of 64 bits, where they are cut and say nothing.

    >>> held(Fraction("0.3333333333333333")), held(Fraction("0.995")), held(Fraction(1, 10**9))
    (Fraction(1, 3), Fraction(199, 200), Fraction(1, 1000))
    """
    return min(max(p, OUTERMOST), 1 - OUTERMOST).limit_denominator(1000)


def _present(x: Expression) -> Expression:
    return Call("not", (Call("is_null", (x,)),))


def _on_whole(q: Quantised, known: Facts) -> bool:
    """Whether sums of it are whole numbers."""
    return known.whole and q.low.denominator == 1 and q.step.denominator == 1


def _without_clipped(asked: Aggregate, scope: Mapping[str, Facts]) -> Aggregate:
    """CLIPPED(x), the share of values outside the bounds, is the mean of a 0/1 expression: two complementary counts."""
    x = asked.argument
    if asked.function != "clipped" or x is None:
        return asked
    low, high = grids.bounds(infer(x, scope), asked)
    least, most = (int(end) if end.denominator == 1 else end for end in (low, high))
    outside = Call("or", (Call("lt", (x, Literal(least))), Call("gt", (x, Literal(most)))))
    share = Call("case", (outside, Literal(1), Call("is_null", (x,)), Literal(None), Literal(0)))
    return Aggregate(asked.name, "avg", share, span=asked.span)


def percent(p: Fraction) -> str:
    """0.5 as "50 %"; what is less than everything is never rounded to 100 %.

    >>> percent(Fraction(19, 20)), percent(1 - Fraction(1, 10**18))
    ('95 %', '99.9999 %')
    """
    text = f"{float(100 * p):g}"
    return f"{text if text != '100' or p >= 1 else '99.9999'} %"
