"""Chooses the bounds of a question from the data, privately: `max_rows`, `max_groups` or both are "auto".

    noisy histogram of people ─▶ choose one candidate ─▶ its answer        one program, charged as one

The candidates are public: powers of two up to a cap. Each is a whole plan, made and prepared before the charge. A share of
epsilon buys the histogram of people by class of contributions (contributions.py): each person is in one bin. The choice reads
that noisy histogram and public facts alone, so it is post-processing; then the chosen plan runs at the rest of the price. All
candidates have the same family of noise and the same epsilon and delta. The charge is the histogram, what runs beside it, and
the largest candidate in every component, which holds for adaptive choice (program.py).

The choice minimises the predicted error: noise, plus what the bounds would leave out. In counts and sums that weighs more,
because a margin does not cover it; in means it weighs less. A class at the heavy end counts as empty where noise could look
like it, so that on small data noise does not choose large bounds.

The same histogram says what the chosen bounds left out (left_out/bins.py), which is free. Its classes go on beyond the
candidates for that. Values outside the bounds of a column are the same for all candidates: questions about them run beside.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from dither.catalog.values import Catalog
from dither.errors import ArgumentError, Fix, QueryError
from dither.exact.numbers import show, show_percent
from dither.planning import outputs
from dither.planning.bounds import cap_of
from dither.planning.contributions import Bin, Classes, histogram, read
from dither.planning.fitted import fitted_plans
from dither.planning.left_out import Part, clipped, counts_people, cuts_of_chosen, ends_below, plans, reserved
from dither.planning.levels import bounded_groups, finest, levels_of, plan_levels
from dither.planning.outputs import Draw, Noisy
from dither.planning.plan import Plan, plan
from dither.planning.price import Price
from dither.planning.program import Batch, Run, charge, distinct_works, mechanisms
from dither.planning.records import Identity, Order, decode_noisy, encode_noisy, identity, unreadable
from dither.privacy.filters import Charge
from dither.query.resolve.relations import Resolved
from dither.query.work import Work

SHARE = Fraction(1, 10)  # of epsilon, for the histogram
MOST_ROWS, MOST_GROUPS = 256, 64  # the largest candidates where the catalog has no caps
MOST_CANDIDATES = 64
_LIKELY, _CERTAIN = 2.5, 4.0  # standard deviations of noise that people must exceed: in a window of classes, in one bin
_WINDOWS = (1, 2, 4)  # classes that are looked at together, besides all that follow
_LEFT_OUT = 3.0  # the weight of rows that are left out of a count or a sum, against noise
_MEAN_LEFT_OUT = 0.25  # and of a mean: what is left out resembles the rest
_ALL = 0.99  # a mean of nothing has no error to compare
_FURTHER = 4  # classes beyond the candidates, each four times as wide as the one before
_ADDED = ("count", "count_distinct", "count_units", "sum")


class Candidates(NamedTuple):
    """The public lists of bounds to choose from; a list of one is no choice."""

    rows: tuple[int, ...]
    groups: tuple[int, ...]

    @property
    def one(self) -> bool:
        """Whether there is no choice."""
        return len(self.rows) == len(self.groups) == 1


def powers(most: int) -> tuple[int, ...]:
    """Returns the powers of two below `most`, and `most`.

    >>> powers(12), powers(1)
    ((1, 2, 4, 8, 12), (1,))
    """
    return (*(1 << place for place in range((most - 1).bit_length())), most)


def candidates(query: Resolved, catalog: Catalog, groups: int | None) -> Candidates:
    """Returns the candidates of a question. `groups`: the number of its public groups, if they are public."""

    def listed(name: str, bound: int | None, most: int) -> tuple[int, ...]:
        if bound is not None or query.one_row:
            return (bound or 1,)
        cap = cap_of(query, catalog, name)
        return powers(most if cap is None else cap[0])

    rows = listed("max_rows", query.max_rows, MOST_ROWS)
    few = listed("max_groups", query.max_groups, MOST_GROUPS)
    if len(few) > 1 and groups is not None:
        few = powers(max(1, min(groups, few[-1])))
    while len(rows) * len(few) > MOST_CANDIDATES:
        longer = rows if len(rows) >= len(few) else few
        thinned = (*longer[:-1:2], longer[-1])
        rows, few = (thinned, few) if longer is rows else (rows, thinned)
    return Candidates(rows, few)


def classes(query: Resolved, listed: Candidates, groups: int | None) -> Classes:
    """Returns the classes of the histogram: they end at the candidates and go on beyond them, as far as there are groups.

    A bound that is not chosen has classes too, for what it leaves out.
    """

    def ends(bounds: tuple[int, ...], last: int | None) -> tuple[int, ...]:
        known = bounds if len(bounds) > 1 else ends_below(bounds[0])
        further = (known[-1] << 2 * place for place in range(1, _FURTHER + 1))
        return tuple(end for end in (*known, *further) if last is None or end < last)

    most = 1 if query.one_group else groups
    return Classes(() if counts_people(query) else ends(listed.rows, None), ends(listed.groups, most))


def choices(query: Resolved, catalog: Catalog, price: Price) -> Candidates:
    """Returns the candidates of a question that names not all bounds, without bounds that do not matter."""
    first = plan(replace(query, max_rows=1, max_groups=1), catalog, price)
    listed = candidates(query, catalog, first.bounding.groups)
    if len(listed.rows) > 1 and plan(replace(query, max_rows=2, max_groups=1), catalog, price).work == first.work:
        listed = listed._replace(rows=listed.rows[:1])  # it counts people: rows do not matter
    return listed


def plan_auto(query: Resolved, catalog: Catalog, price: Price, listed: Candidates, rows: int | None, *, estimate: bool) -> Auto:
    """Plans the histogram, every candidate, and with `estimate` the questions about values outside their bounds."""
    by_all = finest(query)
    first = plan(replace(by_all, max_rows=1, max_groups=1), catalog, price)
    parts = clipped(by_all, first.work) if estimate else ()
    beside = plans(parts, catalog, reserved(price.epsilon)) if parts else ()
    spent = sum((each.price.epsilon for each in beside), price.epsilon * SHARE)
    rest = Price(price.epsilon - spent, price.delta)
    pairs = [(m, g) for m in listed.rows for g in listed.groups]
    levels = levels_of(query, catalog)
    if levels is not None and not levels.together:
        raise _refuse_choice()
    family = next(_all_planned(query, catalog, rest, pairs[len(pairs) // 2 :: -1]))
    each = _all_planned(query, catalog, rest, pairs, any(noise.gaussian for one in family for noise in one.noises))
    made = tuple(Batch(one, query.tables, rows=rows, levels=levels) for one in each)
    known = classes(by_all, listed, first.bounding.groups)
    counted = plan(histogram(by_all, first.work, known), catalog, Price(price.epsilon * SHARE))
    return Auto(counted, made, listed, query.tables, by_all, known, beside, parts if beside else ())


def _refuse_choice() -> ArgumentError:
    return ArgumentError(
        "Bounds cannot be chosen for grouping sets that do not add up: each set has groups of its own.",
        fix=Fix("name both bounds, as in {max_rows} and {max_groups}.", max_rows=10, max_groups=5),
    )


def _all_planned(
    query: Resolved, catalog: Catalog, price: Price, pairs: Sequence[tuple[int, int]], gaussian: bool | None = None
) -> Iterator[tuple[Plan, ...]]:
    """Plans the candidates with these bounds. Leaves out those whose noise would be out of range, but not the smallest."""
    for rows, groups in pairs:
        try:
            yield plan_levels(replace(query, max_rows=rows, max_groups=groups), catalog, price, gaussian)
        except (ArgumentError, QueryError):
            if (rows, groups) == min(pairs):
                raise


@dataclass(frozen=True)
class Auto:
    """A question whose bounds are chosen: the plan of the histogram, and the plans for each pair of bounds.

    `classes`: of the histogram. `beside`: plans that run whatever is chosen, for the `parts` of what is left out.
    """

    histogram: Plan
    candidates: tuple[Batch, ...]
    listed: Candidates
    tables: tuple[str, ...]
    query: Resolved = field(repr=False, compare=False)
    classes: Classes
    beside: tuple[Plan, ...] = ()
    parts: tuple[Part, ...] = field(default=(), repr=False, compare=False)
    works: tuple[Work, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "works", distinct_works(self.plans))

    @property
    def size(self) -> int:
        """How many releases it has: the histogram, the bounds, the answer, and what runs beside."""
        return 2 + self.candidates[0].size + len(self.beside)

    @cached_property
    def plans(self) -> tuple[Plan, ...]:
        """Every plan that may run: the histogram first, then those beside the answer."""
        return (self.histogram, *self.beside, *(each for one in self.candidates for each in one.plans))

    @cached_property
    def total(self) -> Price:
        """The price of everything, as (epsilon, delta)."""
        return Price(self.charge.epsilon, self.charge.delta)

    @cached_property
    def quoted(self) -> Batch:
        """The plans that a quote shows: those with the largest bounds."""
        return self._shown(self.candidates[-1])

    def _shown(self, chosen: Batch) -> Batch:
        """Returns a candidate together with the plans that say what it leaves out."""
        own = chosen.plans[0]
        question = replace(self.query, max_rows=own.bounding.max_rows, max_groups=own.bounding.max_groups)
        cuts = cuts_of_chosen(question, own.work, self.classes, bounded_groups(own), self.parts)
        cuts = replace(cuts, chosen=self._chosen(own))
        counted = (self.histogram,) if len(cuts.parts) > len(self.parts) else ()
        return replace(chosen, plans=(*chosen.plans, *counted, *self.beside), cuts=cuts)

    def _chosen(self, own: Plan) -> tuple[tuple[str, int], ...]:
        """Returns the bounds that were chosen among several, by name."""
        lists = (("max_rows", self.listed.rows), ("max_groups", self.listed.groups))
        return tuple((name, getattr(own.bounding, name)) for name, listed in lists if len(listed) > 1)

    @property
    def further(self) -> tuple[tuple[str, str], ...]:
        """Further lines of a quote: what is chosen, from which candidates, and for which share."""
        lists = (("max_rows", self.listed.rows), ("max_groups", self.listed.groups))
        choices = [f"{name} from {_short(each)}" for name, each in lists if len(each) > 1]
        price = show(self.histogram.price.epsilon)
        words = f"chosen by a noisy count of people, for {show_percent(SHARE)} of the price (ε = {price}): {'; '.join(choices)}"
        return ("bounds", words), ("", "this plan has the largest bounds; smaller ones have less noise")

    def answer(self, released: Sequence[Noisy]) -> tuple[Batch, Sequence[Noisy], str]:
        """Returns the candidate that was chosen with what says what it left out, their noisy numbers, and what was chosen."""
        counted, bounds, *rest = released
        chosen = self._shown(self.candidates[self._place(bounds)])
        own, beside = rest[: chosen.own], rest[chosen.own :]
        noisy = [*own, *([counted] if len(chosen.plans) > len(rest) else []), *beside]
        named = " and ".join(f"{name} = {bound}" for name, bound in self._chosen(chosen.plans[0]))
        return chosen, noisy, f"{named}, chosen for {show_percent(SHARE)} of ε"

    @cached_property
    def _identity(self) -> Identity:
        return identity(self.plans, "auto")

    @property
    def identity(self) -> str:
        return self._identity.text

    @cached_property
    def charge(self) -> Charge:
        """What always runs and, in every component, the largest candidate: the choice is adaptive."""
        first, each = charge([self.histogram, *self.beside]), [one.charge for one in self.candidates]
        rhos = [one.rho for one in (first, *each) if one.rho is not None]
        return Charge(
            first.epsilon + max(one.epsilon for one in each),
            first.delta + max(one.delta for one in each),
            rhos[0] + max(rhos[1:]) if len(rhos) == len(each) + 1 else None,
            first.slack + max(one.slack for one in each),
        )

    @cached_property
    def mechanisms(self) -> tuple[Mapping[str, Any], ...]:
        return mechanisms(self.plans)

    @property
    def unit(self) -> str:
        return self.quoted.unit

    def release(self, run: Run, draw: Draw) -> tuple[Noisy, ...]:
        """Returns the noisy histogram, the bounds chosen, the noisy answer within them, and what runs beside."""
        counted = outputs.release(self.histogram, run(self.histogram.work), draw)
        chosen = self.choose(counted)
        answer = chosen.release(run, draw)
        beside = (outputs.release(each, run(each.work), draw) for each in self.beside)
        return counted, Noisy((_bounds(chosen),), ()), *answer, *beside

    def choose(self, counted: Noisy) -> Batch:
        """Chooses a candidate from the noisy histogram alone."""
        groups = 1 if self.query.one_group else bounded_groups(self.candidates[0].plans[0])
        people = believed(read(counted, self.classes), self.classes, groups, self.histogram.noises[0].scale)
        return min(self.candidates, key=lambda each: _error(each, people))

    def write(self, released: Sequence[Noisy]) -> str:
        """Encodes the answer with the bounds chosen, so that nothing is ever chosen again."""
        counted, bounds, *answer = released
        first, rest, places = self._orders(bounds)
        stored = [order.stored(each) for order, each in zip(rest, answer, strict=True)]
        return encode_noisy([first.stored(counted), bounds, *(stored[place] for place in places)])

    def read(self, stored: str) -> tuple[Noisy, ...]:
        counted, bounds, *answer = decode_noisy(stored)
        first, rest, places = self._orders(bounds)
        own = (answer[places.index(place)] for place in range(len(places)))
        return first.planned(counted), bounds, *(order.planned(each) for order, each in zip(rest, own, strict=True))

    def _orders(self, bounds: Noisy) -> tuple[Order, tuple[Order, ...], list[int]]:
        """Returns the order of the histogram, those of the chosen candidate's plans and of those beside it, and the places of
        these plans in the order of the text."""
        first, *rest = self._identity.orders
        before, size = 1 + len(self.beside), self.candidates[0].size
        start = before + self._place(bounds) * size
        own = sorted(range(size), key=lambda place: self._identity.plans.index(start + place))
        orders = (*rest[start - 1 : start - 1 + size], *rest[: len(self.beside)])
        return first, orders, [*own, *range(size, len(orders))]

    def _place(self, bounds: Noisy) -> int:
        """Returns the place of the candidate with the bounds that were released."""
        for place, each in enumerate(self.candidates):
            if bounds.keys == (_bounds(each),):
                return place
        raise unreadable()


def _bounds(candidate: Batch) -> tuple[int, int]:
    bounding = candidate.plans[0].bounding
    return bounding.max_rows, bounding.max_groups


def _short(bounds: Sequence[int]) -> str:
    """Lists candidates in short.

    >>> _short((1, 2, 4, 8, 12)), _short((1, 2))
    ('1, 2, 4, …, 12', '1, 2')
    """
    return ", ".join(map(str, bounds if len(bounds) < 5 else (*bounds[:3], "…", bounds[-1])))


# --- the choice: post-processing of noisy counts -----------------------------------------------------------------


class Kind(NamedTuple):
    """People of one kind: their groups, the most rows in one of them, and how many they are (noisy, may be negative)."""

    groups: float
    rows: float
    people: float


def believed(bins: Sequence[Bin], classes: Classes, last: int | None, scale: float) -> tuple[Kind, ...]:
    """Returns the people of each class, without the last classes in which noise may be all there is. `last`: of all groups."""
    groups = _end(bins, [each.groups for each in bins], scale)
    rows = _end(bins, [each.rows for each in bins], scale)
    middle_groups, middle_rows = _middles(classes.groups, last), _middles(classes.rows, None)
    return tuple(
        Kind(middle_groups[each.groups], middle_rows[each.rows], each.people)
        for each in bins
        if each.groups < groups and each.rows < rows
    )


def _end(bins: Sequence[Bin], places: Sequence[int], scale: float) -> int:
    """Returns the first class that is not believed to have people, nor those after it.

    From light to heavy, a class is believed if a window of classes that begins with it holds more people than noise would
    show; after a gap, more than noise would show in any of the classes. So is a bin in which noise is out of the question.
    """
    count = max(places) + 1
    own = [[each.people for each, at in zip(bins, places, strict=True) if at == place] for place in range(count)]
    far = [at + 1 for each, at in zip(bins, places, strict=True) if each.people > scale * (math.log(len(bins)) + _CERTAIN)]
    end = 0
    for place in range(count):
        windows = [list(itertools.chain(*own[place : place + width])) for width in (*_WINDOWS, count)]
        size = max(sum(people) / (scale * math.sqrt(2 * len(people))) for people in windows)  # in standard deviations
        if size > _LIKELY + (math.sqrt(2 * math.log(count)) if place > end else 0):
            end = place + 1
    return max(end, *far, 0)


def _middles(ends: tuple[int, ...], last: int | None) -> list[float]:
    """Returns the middle of each class; the last one, if nothing ends it, is taken to end at twice the last end.

    >>> _middles((1, 2, 4, 8), None), _middles((1, 2, 4), 8), _middles((), 1)
    ([1.0, 2.0, 3.5, 6.5, 12.5], [1.0, 2.0, 3.5, 6.5], [1.0])
    """
    whole = (0, *ends, last or (2 * ends[-1] if ends else 1))
    return [(low + 1 + high) / 2 for low, high in itertools.pairwise(whole)]


def _error(candidate: Batch, people: Sequence[Kind]) -> tuple[float, float]:
    """Returns the mean predicted error of a candidate's plans: one, or one for each grouping set."""
    own = candidate.plans[: candidate.own]
    if candidate.levels is not None and candidate.levels.fitted:
        own = fitted_plans(own)
    each = [predicted_error(plan, people) for plan in own]
    return sum(error for error, _ in each) / len(each), sum(noise for _, noise in each) / len(each)


def predicted_error(candidate: Plan, people: Sequence[Kind]) -> tuple[float, float]:
    """Returns the predicted error as a share of the answer, and the noise in rows, which decides among equals.

    With n rows of noise in a group of N rows, of which the bounds leave out k, a count or a sum is off by (n + k) / N. A mean
    is off by n / (N - k) of its range, and by k / N only as far as what is left out differs from the rest.
    """
    bounding, total = candidate.bounding, _rows(people)
    noise, groups = _noise(candidate), _groups(candidate, people)
    if total <= 0:
        return 0.0, noise
    missing = min(left_out(people, bounding.max_rows, bounding.max_groups), total * _ALL)
    added = noise * groups / total + _LEFT_OUT * missing / total
    mean = noise * groups / (total - missing) + _MEAN_LEFT_OUT * missing / total
    adds = [reading.aggregate.function in _ADDED for reading in candidate.readings]
    return sum(added if each else mean for each in adds) / max(1, len(adds)), noise


def _rows(people: Sequence[Kind]) -> float:
    """Returns the rows of all people."""
    return sum(many * (rows + (groups - 1) * (1 + rows) / 2) for groups, rows, many in people)


def left_out(people: Sequence[Kind], max_rows: int, max_groups: int) -> float:
    """Returns the rows that these bounds leave out, in all groups together.

    Of a person's groups one has the most rows; the others are taken to have half as many on average.

    >>> left_out([Kind(4, 1, 100), Kind(1, 9, 10)], 1, 2), left_out([Kind(4, 1, 100), Kind(1, 9, 10)], 9, 4)
    (280.0, 0.0)
    """
    total = 0.0
    for groups, rows, many in people:
        other = (1 + rows) / 2
        kept = min(rows, max_rows) + (groups - 1) * min(other, max_rows)
        total += many * (rows + (groups - 1) * other - kept * min(1.0, max_groups / groups))
    return max(total, 0.0)


def _noise(candidate: Plan) -> float:
    """Returns the noise of one group in rows, on average over what is released."""
    sizes = [math.sqrt(noise.of.relative(noise)) for noise in candidate.noises if noise.of.allows_gaussian]
    ranks = (reading.rank(candidate.noises, Fraction(1, 2)) for reading in candidate.readings)
    sizes += [rank for rank in ranks if rank is not None]
    return sum(sizes) / len(sizes) if sizes else 0.0


def _groups(candidate: Plan, people: Sequence[Kind]) -> float:
    """Returns how many groups share what is left out: the public ones, or as many as could be shown."""
    if candidate.bounding.groups is not None:
        return float(candidate.bounding.groups)
    shown = candidate.threshold.margin("0.95") if candidate.threshold else 1
    return max(1.0, sum(each.groups * each.people for each in people) / (2 * float(shown)))
