"""Measures the tables of a list together: which of them least squares puts together, and what share of the price each has.

    a plan for each question, at its share ─▶ the same plans, with the noise that is best for all of them together

Tables of the same rows that differ in their keys only, such as histograms by r and by s and a total, know parts of each other,
like grouping sets. They are a *bundle*: least squares puts them together (workloads/combined.py), and the price is divided so
that they are best then: that the sum over tables of their variance, over the variance at an even share alone, is smallest. Two
ways are tried. The list stays as it was if that is as good, or if one of its answers would have 1 % more error:

    pure       each bundle divides the epsilon of its tables anew; other questions keep theirs
    gaussian   (epsilon, delta) lists only: all tables of the list, in bundles or not, are one vector of Gaussian noise, each
               with a share of rho. k tables have the noise of sqrt(k) prices, not of k. The price is that of the whole; it
               stands in the first plan, and 0 in the others

What is drawn, charged and stored are plain tables, each with noise for what one unit moves it by: privacy does not depend on
who is in a bundle. That they add up does, so a bundle has questions of one source with the same measures only, where each unit
has one row: then bounds cut nothing. A declared key may have other values, whose rows are in no group by that key and yet in a
total. So such a key gets one more group, for all other values, if some table of the bundle lacks the key. It is measured and
not shown.

Not put together are questions with a SELECT around them, and parts of a UNION: what is computed across groups needs noise that
is independent from group to group (symbols.py). They may be in the vector.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from dither.catalog.values import Key
from dither.errors import ArgumentError, QueryError
from dither.exact.numbers import show_rounded
from dither.planning.auto import Auto
from dither.planning.fitted import Fitted
from dither.planning.free.stored import text_of
from dither.planning.left_out.values import freed
from dither.planning.outputs import Noisy
from dither.planning.plan import Plan
from dither.planning.price import Price, choose, gaussian_together, shares
from dither.planning.program import Batch
from dither.planning.records import Forms, encode
from dither.planning.releases.base import Noise, Release
from dither.planning.releases.keys import with_others
from dither.privacy.losses import Approx, Loss, Pure
from dither.query.nodes import Named
from dither.query.resolve.relations import Resolved
from dither.query.work import Sums
from dither.workloads.combined import COARSE, best_shares, combine, variance, versions
from dither.workloads.factors import Floats
from dither.workloads.residuals import in_shares

Axes = tuple[int, ...]
Program = Batch | Auto
MOST_TABLES = 64  # in one bundle
MOST_PARTS = 4096  # that least squares takes one by one
MOST_OTHERS = 256  # values of a key that gets a group for all others
_BETTER = 0.995  # times the error of a plain split, or less
_LEAST = 1e-30  # a variance: below, there is nothing to gain
_NO_WORSE = 1.02  # times the variance of any question alone: 1 % of its error


@dataclass(frozen=True)
class Bundle:
    """Tables that are put together. `places`: of the questions that they are of; `sets`: the axes of each table, ascending;
    `keys`: the place of each axis among the question's keys; `values`: of each axis; `measures`: the place of each of the
    bundle's measures in the plan of each question."""

    places: tuple[int, ...]
    sets: tuple[Axes, ...]
    keys: tuple[Axes, ...]
    values: tuple[tuple[Key, ...], ...]
    measures: tuple[tuple[int, ...], ...]

    @property
    def sizes(self) -> Axes:
        return tuple(map(len, self.values))

    def variances(self, plans: Sequence[Plan], measure: int) -> list[float]:
        """Returns the variance of each table's noise. `plans`: of the questions in the bundle."""
        return [plan.noises[own[measure]].variance for plan, own in zip(plans, self.measures, strict=True)]

    def noises(self, plans: Sequence[Plan]) -> list[tuple[Noise, ...]]:
        """Returns the noise that the numbers of each table have once they are put together."""
        found = [list(plan.noises) for plan in plans]
        for measure in range(len(self.measures[0])):
            parts = versions(self.sizes, self.sets, self.variances(plans, measure))
            for own, axes, places in zip(found, self.sets, self.measures, strict=True):
                noise = own[places[measure]]
                spread = math.sqrt(variance(self.sizes, parts, axes))
                own[places[measure]] = Fitted(noise.of, noise.mechanism, noise.groups, noise.steps, spread)
        return [tuple(each) for each in found]

    def fit(self, plans: Sequence[Plan], released: Sequence[Noisy], shown: Sequence[Plan]) -> list[Noisy]:
        """Returns the numbers of the groups that are shown of each table, by least squares from all tables."""
        groups = [plan.public_groups() if plan.query.keys else [()] for plan in shown]
        cells = [[np.zeros((len(own), n.of.cells)) for n in plan.noises] for plan, own in zip(shown, groups, strict=True)]
        rows = [[self._index(place, key) for key in own] for place, own in enumerate(groups)]
        for measure, first in enumerate(self.measures[0]):
            noise = self.variances(plans, measure)
            for cell in range(plans[0].noises[first].of.cells):
                tables = [
                    self._table(place, noisy, self.measures[place][measure], cell) for place, noisy in enumerate(released)
                ]
                for place, table in enumerate(combine(self.sizes, self.sets, tables, noise, self.sets)):
                    own = cells[place][self.measures[place][measure]]
                    own[:, cell] = [round(float(table[row])) for row in rows[place]]
        kinds = [[each.dtype for each in noisy.cells] for noisy in released]
        return [
            Noisy(tuple(keys), tuple(_whole(each, kind) for each, kind in zip(own, of, strict=True)))
            for keys, own, of in zip(groups, cells, kinds, strict=True)
        ]

    def _table(self, place: int, noisy: Noisy, measure: int, cell: int) -> Floats:
        """Returns the numbers of one cell as an array with an axis for each key."""
        table = np.zeros([self.sizes[axis] for axis in self.sets[place]])
        for key, value in zip(noisy.keys, noisy.cells[measure][:, cell].tolist(), strict=True):
            table[self._index(place, key)] = value
        return table

    def _index(self, place: int, key: tuple[Key, ...]) -> tuple[int, ...]:
        pairs = zip(self.sets[place], self.keys[place], strict=True)
        return tuple(self._places[axis][type(key[own]), key[own]] for axis, own in pairs)

    @cached_property
    def _places(self) -> list[dict[tuple[type, Key], int]]:
        """The place of each value. TRUE is not 1."""
        return [{(type(value), value): i for i, value in enumerate(values)} for values in self.values]


def _whole(cells: Floats, kind: np.dtype[np.generic]) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    return np.array([[int(value) for value in row] for row in cells], dtype=kind).reshape(cells.shape)


@dataclass(frozen=True)
class Bundled:
    """A list with the noise that is best for all of it. `questions`: what is charged and run; `shown`: the same with the noise
    of fitted numbers; `prices`: the share of the price of each question that changed, and `ratios` its error over that at this
    share alone. `vector`: how many tables are one vector of Gaussian noise. `ratio`: the root mean square error of all tables,
    over that of a plain split."""

    questions: tuple[Program, ...]
    shown: tuple[Program, ...]
    bundles: tuple[Bundle, ...]
    prices: Mapping[int, Price]
    ratios: Mapping[int, float]
    vector: int
    ratio: float

    def words(self, place: int) -> tuple[tuple[str, str], ...]:
        """Returns what a quote says about one question."""
        if place not in self.ratios:
            return ()
        return (("together", f"{self._how(place)}: {show_rounded(self.ratios[place])} times the error of asking it alone"),)

    def _how(self, place: int) -> str:
        identity = self.questions[place].identity
        own = [b for b in self.bundles if any(self.questions[other].identity == identity for other in b.places)]
        fitted = f"put together with {_counted(len(own[0].places) - 1)} by least squares" if own else ""
        vector = f"one vector of Gaussian noise with {_counted(self.vector - 1)}" if self.vector else ""
        return " and ".join(each for each in (vector, fitted) if each)

    @property
    def summary(self) -> str:
        """What a quote says about the whole list."""
        reasons = [
            f"{self.vector} tables are one vector of Gaussian noise, so that noise grows with the square root of their number"
        ]
        reasons = reasons if self.vector else []
        if self.bundles:
            number = sum(len(bundle.places) for bundle in self.bundles)
            reasons.append(f"{number} tables are of the same rows, and put together by least squares")
        return f"{'; '.join(reasons)}: {show_rounded(self.ratio)} times the error of a plain split"


def _counted(tables: int) -> str:
    return f"{tables} other table{'' if tables == 1 else 's'}"


# --- which tables are put together ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Table:
    """A question whose table may be measured with others: its place in the list, and its plan at its own share.

    Sources, keys and measures are compared by their texts in normal form, as for the identity of a question. The text of the
    source is None if tables of it cannot be put together.
    """

    place: int
    query: Resolved = field(repr=False)
    batch: Batch = field(repr=False)
    source: str | None
    keys: tuple[str, ...]
    measures: tuple[str, ...]

    @classmethod
    def of(cls, place: int, query: Resolved, batch: Batch) -> _Table:
        plan = batch.plans[0]
        whole = query.query.source if query.whole is None else query.whole
        forms = Forms.over(whole, query.by_unit, plan.work.keys, [noise.of.measure for noise in plan.noises])
        keys = tuple(text_of(encode(key.expression, forms)) for key in plan.work.keys)
        adds_up = not query.joint and not plan.together and (query.one_row or not query.by_unit) and not query.query.above
        source = text_of([encode(forms.source), forms.unit]) if adds_up else None
        return cls(place, query, batch, source, keys, tuple(measure_text(noise.of, forms) for noise in plan.noises))

    @property
    def plan(self) -> Plan:
        return self.batch.plans[0]

    @property
    def known(self) -> tuple[tuple[Key, ...], ...]:
        return self.plan.work.known or ()

    @cached_property
    def spread(self) -> float:
        """Its error at its own share alone."""
        return spread(self.plan.noises)

    @property
    def order(self) -> tuple[int, ...]:
        """The places of its measures in the order of their texts."""
        return tuple(sorted(range(len(self.measures)), key=lambda place: self.measures[place]))

    @property
    def alike(self) -> tuple[object, ...]:
        """What the tables of one bundle have in common."""
        if self.source is None:
            return (self.place,)
        return self.source, self.plan.bounding.max_rows, tuple(sorted(self.measures))

    def with_noises(self, other: _Table, noises: Sequence[Noise]) -> Batch:
        """Returns its program with the noises of an equal question."""
        found = dict(zip(other.measures, noises, strict=True))
        plan = replace(self.plan, noises=tuple(found[text] for text in self.measures))
        return replace(self.batch, plans=(plan, *self.batch.plans[1:]))

    def drawn(self, other: _Table, plan: Plan, others: set[str]) -> Batch:
        """Returns its program with noise, price and loss of the plan of an equal question."""
        own = self.with_noises(other, plan.noises)
        first = replace(_with_others(own.plans[0], self.keys, others), price=plan.price, loss=plan.loss)
        return replace(own, plans=(first, *own.plans[1:]))

    @property
    def open_keys(self) -> set[str]:
        """The keys that may have other values than the public ones."""
        found = set()
        for text, key, known in zip(self.keys, self.plan.work.keys, self.known, strict=False):
            facts = freed(key.expression, self.query)
            found |= {text} if facts.values is None or (facts.nullable and None not in known) else set()
        return found


def measure_text(release: Release, forms: Forms) -> str:
    """Returns the one text of what a release adds up."""
    return text_of([encode(release.measure, forms), {name: encode(each) for name, each in release.parameters.items()}])


def _table(place: int, query: Resolved, program: Program) -> _Table | None:
    """Returns a question as a table of sums with public keys; None for others."""
    if not isinstance(program, Batch) or program.levels is not None or not program.plans[0].noises:
        return None
    plan = program.plans[0]
    if plan.threshold is not None or (plan.work.keys and plan.work.known is None):
        return None
    sums = all(isinstance(noise.of.measure, Sums) and type(noise.of).pure is Release.pure for noise in plan.noises)
    found = _Table.of(place, query, program) if sums else None
    return None if found is None or len(set(found.measures)) < len(found.measures) else found


def _groups(tables: Sequence[_Table]) -> list[list[_Table]]:
    """Returns the tables that are put together, and each other table alone. It does not depend on the order of the list."""
    found: dict[object, list[_Table]] = {}
    for table in tables:
        found.setdefault(table.alike, []).append(table)
    result = []
    for group in found.values():
        sets = {frozenset(each.keys) for each in group}
        parts = sum(1 << len(each) for each in sets)
        few = len(sets) == len(group) <= MOST_TABLES and parts <= MOST_PARTS
        result += [group] if few and len(group) > 1 and _others(group) is not None else [[each] for each in group]
    return result


def _others(group: Sequence[_Table]) -> set[str] | None:
    """Returns the keys that get a group for other values: open ones that some table lacks. None if one cannot get it."""
    every = [set(each.keys) for each in group]
    found = set()
    for table in group:
        for text, known in zip(table.keys, table.known, strict=False):
            if text in table.open_keys and not all(text in own for own in every):
                if None in known or len(known) > MOST_OTHERS:
                    return None
                found.add(text)
    return found


def _bundle(group: Sequence[_Table]) -> tuple[Bundle, list[Plan]]:
    """Returns the bundle of some tables, and their plans with a group for other values where they need it."""
    others = _others(group) or set()
    plans = [_with_others(table.plan, table.keys, others) for table in group]
    known: dict[str, tuple[Key, ...]] = {}
    for table, plan in zip(group, plans, strict=True):
        known |= dict(zip(table.keys, plan.work.known or (), strict=False))
    axes = sorted(known)
    own = [sorted((axes.index(text), place) for place, text in enumerate(table.keys)) for table in group]
    sets = tuple(tuple(axis for axis, _ in each) for each in own)
    keys = tuple(tuple(place for _, place in each) for each in own)
    values, orders = tuple(known[axis] for axis in axes), tuple(table.order for table in group)
    return Bundle(tuple(table.place for table in group), sets, keys, values, orders), plans


def _with_others(plan: Plan, texts: Sequence[str], others: set[str]) -> Plan:
    """Returns the plan with one more group for the other values of some keys, as NULL."""
    if not others & set(texts):
        return plan
    keys, known = [], []
    for text, key, values in zip(texts, plan.work.keys, plan.work.known or (), strict=True):
        keys.append(Named(key.name, with_others(key.expression, values)) if text in others else key)
        known.append((*values, None) if text in others else values)
    work = replace(plan.work, keys=tuple(keys), known=tuple(known))
    return replace(plan, work=work, bounding=replace(plan.bounding, groups=math.prod(map(len, known))))


# --- the noise of each table ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Group:
    """Tables that are put together, or one alone, with their plans."""

    tables: tuple[_Table, ...]
    plans: tuple[Plan, ...]
    bundle: Bundle | None

    def parts(self, *, gaussian: bool) -> tuple[Fraction, ...]:
        """Returns the best shares of the group's price, and the error at a price of 1. They do not depend on the order."""
        if self.bundle is None:
            return (Fraction(1),)
        sizes, sets = self.bundle.sizes, self.bundle.sets
        order = sorted(range(len(sets)), key=lambda place: sets[place])
        alone = [table.spread for table in self.tables]
        weights = {axes: 1 / own / math.prod(sizes[axis] for axis in axes) for axes, own in zip(sets, alone, strict=True)}
        costs = [self._cost(place, gaussian) for place in order]
        found = in_shares(best_shares(sizes, [sets[i] for i in order], costs, weights, gaussian), COARSE)
        return tuple(found[order.index(place)] for place in range(len(sets)))

    def _cost(self, place: int, gaussian: bool) -> float:
        bounding = self.plans[place].bounding
        return 0.5 * bounding.squares(1, 1, False) if gaussian else 2.0 * bounding.total(1, 1, False) ** 2

    def errors(self, noises: Sequence[Sequence[Noise]]) -> list[float]:
        """Returns the variance of each table over that at its own share alone."""
        plans = [replace(plan, noises=tuple(own)) for plan, own in zip(self.plans, noises, strict=True)]
        final = [plan.noises for plan in plans] if self.bundle is None else self.bundle.noises(plans)
        return [spread(own) / table.spread for own, table in zip(final, self.tables, strict=True)]


def spread(noises: Sequence[Noise]) -> float:
    """Returns the weighted sum of variances, each in units of what one row moves."""
    return math.fsum(noise.of.weight * noise.variance / noise.of.row**2 for noise in noises)


Noises = list[list[tuple[Noise, ...]]]  # of each table of each group
Paid = list[list[tuple[Price, Loss]]]
Way = tuple[Noises, Paid, int]


def _pure(groups: Sequence[_Group]) -> tuple[Noises, Paid]:
    """Returns geometric noise for bundles, with the epsilon of their tables divided anew. Others stay as they are."""
    noises: Noises = []
    prices: Paid = []
    for group in groups:
        if group.bundle is None:
            noises.append([group.plans[0].noises])
            prices.append([(group.plans[0].price, group.plans[0].loss)])
            continue
        epsilon = sum((plan.price.epsilon for plan in group.plans), Fraction(0))
        made = [
            choose([noise.of for noise in plan.noises], plan.bounding, Price(epsilon * part), False, False)
            for plan, part in zip(group.plans, group.parts(gaussian=False), strict=True)
        ]
        noises.append([each.noises for each in made])
        prices.append(
            [(Price(epsilon * part), each.loss) for each, part in zip(made, group.parts(gaussian=False), strict=True)]
        )
    return noises, prices


def _gaussian(groups: Sequence[_Group], price: Price) -> tuple[Noises, Paid]:
    """Returns Gaussian noise for all tables as one vector. The order of groups and tables is that of their texts."""
    inside = [group.parts(gaussian=True) for group in groups]
    roots = [math.sqrt(_at_one(group, parts)) for group, parts in zip(groups, inside, strict=True)]
    outside = in_shares([root / max(roots) for root in roots], COARSE)
    every = []
    for group, parts, whole in zip(groups, inside, outside, strict=True):
        for plan, part in zip(group.plans, parts, strict=True):
            releases = [noise.of for noise in plan.noises]
            slices = shares(Fraction(1), [each.weight for each in releases], squared=True)
            every += [(each, plan.bounding, whole * part * own) for each, own in zip(releases, slices, strict=True)]
    drawn = iter(gaussian_together(every, price.epsilon, price.delta))
    noises = [[tuple(next(drawn) for _ in plan.noises) for plan in group.plans] for group in groups]
    losses = iter([Approx(price.epsilon, price.delta), *([Pure(0)] * sum(len(group.plans) for group in groups))])
    return noises, [[(price, next(losses)) for _ in group.plans] for group in groups]


def _at_one(group: _Group, parts: Sequence[Fraction]) -> float:
    """Returns the error of a group with rho = 1 for all of it."""
    found = []
    for plan, part in zip(group.plans, parts, strict=True):
        releases = [noise.of for noise in plan.noises]
        slices = shares(Fraction(1), [each.weight for each in releases], squared=True)
        found.append([each.gaussian(part * own, plan.bounding) for each, own in zip(releases, slices, strict=True)])
    return math.fsum(group.errors(found))


# --- the list -------------------------------------------------------------------------------------------------------


def bundled(
    queries: Sequence[Resolved], made: Sequence[Program], prices: Sequence[Price], parts: Sequence[bool]
) -> Bundled | None:
    """Returns the list with the noise that is best for all of it; None if a plain split is as good. `prices`: the share of each
    question; `parts`: whether it is a part of a UNION."""
    first = {program.identity: place for place, program in reversed(list(enumerate(made)))}
    places = [first[text] for text in sorted(first)]
    tables = [found for place in places if (found := _table(place, queries[place], made[place])) is not None]
    delta = sum((prices[table.place].delta for table in tables), Fraction(0))
    groups = []
    apart = {made[place].identity for place, part in enumerate(parts) if part}
    tables = [replace(each, source=None) if each.batch.identity in apart else each for each in tables]
    for each in _groups(tables):
        bundle, plans = _bundle(each) if len(each) > 1 else (None, [each[0].plan])
        groups.append(_Group(tuple(each), tuple(plans), bundle))
    exact = any(table.spread < _LEAST for table in tables)
    if exact or len(tables) < 2 or (not delta and all(group.bundle is None for group in groups)):
        return None
    best, ratio = None, _BETTER**2
    for way in _ways(groups, delta):
        errors = [error for group, own in zip(groups, way[0], strict=True) for error in group.errors(own)]
        if max(errors) <= _NO_WORSE and math.fsum(errors) / len(errors) <= ratio:
            best, ratio = way, math.fsum(errors) / len(errors)
    return None if best is None else _with_noise(queries, made, groups, best, math.sqrt(ratio), prices)


def _ways(groups: Sequence[_Group], delta: Fraction) -> list[Way]:
    """Returns the ways to add noise to all tables, with how many of them are one vector."""
    epsilon = sum((plan.price.epsilon for group in groups for plan in group.plans), Fraction(0))
    tables = sum(len(group.plans) for group in groups)
    tried: list[Callable[[], Way]] = [lambda: (*_pure(groups), 0)]
    if delta:
        tried.append(lambda: (*_gaussian(groups, Price(epsilon, delta)), tables))
    ways = []
    for way in tried:
        try:
            ways.append(way())
        except (ArgumentError, QueryError):  # no noise within range at this price
            continue
    return ways


def _with_noise(
    queries: Sequence[Resolved],
    made: Sequence[Program],
    groups: Sequence[_Group],
    chosen: Way,
    ratio: float,
    prices: Sequence[Price],
) -> Bundled:
    """Returns the list with the chosen noise. Equal questions get the same."""
    noises, paid, vector = chosen
    equal: dict[str, list[int]] = {}
    for place, program in enumerate(made):
        equal.setdefault(program.identity, []).append(place)
    run, shown, stated, ratios = list(made), list(made), dict[int, Price](), dict[int, float]()
    for group, own, losses in zip(groups, noises, paid, strict=True):
        if group.bundle is None and not vector:
            continue
        plans = [
            replace(plan, noises=each, price=price, loss=loss)
            for plan, each, (price, loss) in zip(group.plans, own, losses, strict=True)
        ]
        final = own if group.bundle is None else group.bundle.noises(plans)
        others = set() if group.bundle is None else _others(group.tables) or set()
        for table, plan, each in zip(group.tables, plans, final, strict=True):
            for place in equal[table.batch.identity]:
                asked = _table(place, queries[place], made[place]) or table
                run[place] = asked.drawn(table, plan, others)
                shown[place] = asked.with_noises(table, each)
                stated[place] = prices[place] if vector else Price(prices[place].epsilon)
                ratios[place] = math.sqrt(spread(each) / table.spread)
    bundles = tuple(group.bundle for group in groups if group.bundle)
    return Bundled(tuple(run), tuple(shown), bundles, stated, ratios, vector, ratio)
