"""Makes a plan of numbers that were released earlier: the noise of each was drawn then, and nothing is charged.

    question ─▶ its groups and aggregates in normal form ─▶ earlier releases that give them ─▶ a plan over their noisy numbers

Which releases. Those whose groups (groups.py) and cells (numbers.py) make up what is asked. Several estimates of one number
are combined by inverse variance if they are about the same bounded rows: where bounds can cut a unit, those whose groups were
bounded alike. Otherwise the one with the least variance is taken. A mean is read from one release. All noise of a plan is of
one family, as in every plan, because margins of sums need one law. Only plans and mechanisms decide, never noisy numbers.

Truth. The noisy numbers estimate sums over the earlier groups, each unit bounded there. That is not what the same question
would estimate if it were asked alone and bounded in its own groups: `notes` say so where bounds can cut. People are not added
up over groups unless each is in one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.catalog.values import Catalog, Key
from dither.planning.bounds import bounded, cap_of
from dither.planning.free.groups import Asked, Slots, in_one_group, serving
from dither.planning.free.numbers import Function, Reader, solve, weighted
from dither.planning.free.readings import MergedLinear, MergedRatio, noises_of, renumbered, within
from dither.planning.free.stored import Rows, StoredPart, StoredRelease, StoredSums, same_text, sums
from dither.planning.left_out import Cuts
from dither.planning.outputs import Noisy, Table, margins, outputs, predicted_margins
from dither.planning.plan import Plan, bounding_of, clipped_inside, measured, schema
from dither.planning.price import Price
from dither.planning.program import Batch
from dither.planning.records import Forms, decode_noisy, encode
from dither.planning.releases.base import Collection, Linear, Noise, Reading, Term
from dither.planning.releases.count import Combined, People
from dither.planning.releases.keys import combinations, dependent, public_keys, with_others
from dither.planning.releases.sums import GeometricMean, Ratio
from dither.planning.sensitivity import Bounding
from dither.planning.terms import Terms
from dither.privacy.losses import Pure
from dither.privacy.neighbours import BY_NAME
from dither.query.functions.domains import facts
from dither.query.functions.registry import columns
from dither.query.nodes import Call, Column, Expression
from dither.query.normal import form
from dither.query.resolve.relations import Resolved
from dither.query.show import show_expression
from dither.query.work import Sums, Work

MOST_COMBINED = 16  # earlier releases in one number
MOST_NUMBERS = 200_000  # noisy numbers side by side
_STEPS = 16  # of shares


@dataclass(frozen=True)
class Wanted:
    """A question to be answered from earlier numbers: its groups, and its aggregates before they have a price."""

    question: Resolved
    asked: Asked
    bounding: Bounding
    collected: Collection
    readings: tuple[Reading, ...]
    functions: tuple[tuple[Function, ...] | None, ...]  # of the cells of each release; None where they do not add up
    reader: Reader
    names: Mapping[str, str]  # of columns in normal form, as the question knows them

    def shown(self, key: Expression) -> str:
        """Shows an earlier key with the names of the question."""
        return show_expression(_renamed(key, self.names))

    def function(self, terms: Sequence[Term]) -> Function | None:
        """Returns a weighted sum of its cells as a function of a row."""
        each = [self.functions[term.noise] for term in terms]
        cells = [cells[term.cell] for cells, term in zip(each, terms, strict=True) if cells is not None]
        return weighted(cells, [term.weight for term in terms]) if len(cells) == len(terms) else None


def wanted(query: Resolved, catalog: Catalog, terms: Terms) -> Wanted | str:
    """Reads what is asked, or returns why no earlier answer can give it. Refuses bounds that the question may not name."""
    question = bounded(query, catalog, terms.max_rows, terms.max_groups)
    if question.query.sets:
        return "grouping sets are answered together, each with noise of its own"
    known = public_keys(question.query.keys, question.operands().keys)
    if known is None:
        return f"the keys of GROUP BY {', '.join(key.name for key in question.query.keys)} are not declared"
    if question.by_unit and question.max_rows is None:
        return "its max_rows is chosen when it is asked"
    question = replace(question, max_rows=question.max_rows or 1, max_groups=question.max_groups or 1)
    bounding = bounding_of(question, known, BY_NAME[catalog.neighbours])
    collected, readings = measured(question, bounding)
    can_cut = question.by_unit and not question.one_row
    measures = [release.measure for release in collected.releases]
    forms = Forms.over(question.query.source, question.by_unit, question.query.keys, measures)
    names = _names(question)
    scope = {new: question.scope[old] for old, new in names.items() if old in question.scope}
    asked = Asked(
        Rows.of(encode(forms.source)),
        forms.unit,
        tuple(forms.expressions[key.expression] for key in question.query.keys),
        tuple(combinations(known, dependent(question.query.keys, known, question.joint))),
        scope,
        can_cut,
        _max_groups(query, catalog, terms),
        frozenset(names[old] for old in question.per_unit if old in names),
    )
    reader = Reader(lambda x: not columns(x) <= set(scope) or facts(x, scope).nullable, can_cut)
    each = (sums(encode(measure, forms)) if isinstance(measure, Sums) else None for measure in measures)
    functions = tuple(None if one is None else tuple(reader.functions(one)) for one in each)
    return Wanted(question, asked, bounding, collected, readings, functions, reader, {new: old for old, new in names.items()})


def _renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    if isinstance(expression, Column):
        return replace(expression, name=names.get(expression.name, expression.name))
    if isinstance(expression, Call):
        return replace(expression, arguments=tuple(_renamed(each, names) for each in expression.arguments))
    return expression


def _names(question: Resolved) -> dict[str, str]:
    """Returns the names of the source's columns in normal form: of all, if leaving some out does not change the form."""
    pruned = form(question.query.source)
    every = None if question.whole is None else form(question.whole)
    source = every if every is not None and every.relation == pruned.relation else pruned
    known = [
        name for name in question.scope if name in source.names or any(name.startswith(f"{a}.") for a, _ in source.aliases)
    ]
    return {name: source.column(name) for name in known}


def _max_groups(query: Resolved, catalog: Catalog, terms: Terms) -> int | None:
    """Returns the bound on groups that the question names, or the catalog's; None if there is none."""
    if terms.max_groups is not None:
        return terms.max_groups if isinstance(terms.max_groups, int) else None
    cap = cap_of(query, catalog, "max_groups")
    declared = query.declared_groups
    return declared if declared is None or cap is None else min(declared, cap[0])


@dataclass(frozen=True)
class Source:
    """An earlier release that gives something asked. `slots`: its groups in each group of the question."""

    part: StoredPart
    release: StoredRelease
    slots: Slots
    functions: tuple[Function, ...]

    @cached_property
    def most(self) -> int:
        """The most earlier groups in one group."""
        return max(map(len, self.slots))

    @cached_property
    def noise(self) -> Noise:
        return Noise(StoredSums(self.release.sums, self.most), self.release.mechanism)


@dataclass(frozen=True)
class Estimate:
    """A number asked, as a weighted sum of the cells of one earlier release."""

    source: Source
    weights: tuple[Fraction, ...]

    @property
    def variance(self) -> float:
        return self.source.most * float(sum(w * w for w in self.weights)) * self.source.noise.variance

    def terms(self, noise: int, share: Fraction = Fraction(1)) -> tuple[Term, ...]:
        """Returns its cells in all earlier groups, as cells of this noise."""
        each = [(cell, weight * share) for cell, weight in enumerate(self.weights) if weight]
        width = len(self.weights)
        return tuple(Term(noise, slot * width + cell, weight) for slot in range(self.source.most) for cell, weight in each)


def sources(want: Wanted, stored: Iterable[StoredPart]) -> Iterator[Source]:
    """Yields the earlier releases whose groups make up those of the question."""
    for part in stored:
        slots = serving(want.asked, part)
        if slots is not None:
            for release in part.releases:
                found = Source(part, release, slots, tuple(want.reader.functions(release.sums)))
                if found.most * len(slots) * len(release.sums.cells) <= MOST_NUMBERS:
                    yield found


@dataclass(frozen=True)
class _Builder:
    """Builds the readings over one family of noise, numbered like the sources. `combine`: several may make up one number."""

    want: Wanted
    sources: tuple[Source, ...]
    combine: bool
    confidence: Fraction

    def reading(self, reading: Reading) -> Reading | None:
        """Returns the reading over earlier numbers; None if they do not give it."""
        if isinstance(reading, GeometricMean):
            inner = self.reading(reading.logarithm)
            return None if inner is None else replace(reading, logarithm=inner)
        if isinstance(reading, Ratio):
            return self._mean(reading)
        linear = _linear(reading, self.want.collected)
        if linear is None or not linear.terms:
            return linear
        adds = self._adds_up if isinstance(reading, People) else _always
        alike: dict[tuple[str, tuple[str, ...]], list[Estimate]] = {}
        for each in self._estimates(linear.terms):
            if adds(each.source):  # the same bounded rows, and the same rows that have no group
                truth = each.source.part.truth if self.want.asked.can_cut else ""
                alike.setdefault((truth, tuple(_open_keys(self.want, each.source.part))), []).append(each)
        noises = tuple(source.noise for source in self.sources)
        found = []
        for (_, missing), own in alike.items():
            options = [made for chosen in self._choices(own) if (made := self._merged(linear, chosen)) is not None]
            found += [(bool(missing), made.half(noises, self.confidence), made) for made in options]
        return min(found, key=lambda each: each[:2], default=(True, 0.0, None))[2]  # complete ones first

    def _choices(self, estimates: list[Estimate]) -> list[list[Estimate]]:
        """Returns the best estimate alone, and the best together. Which is taken depends on its margin."""
        ordered = sorted(estimates, key=lambda each: each.variance)
        together = ordered[:MOST_COMBINED] if self.combine else []
        return [ordered[:1], together] if len(together) > 1 else [ordered[:1]]

    def _merged(self, linear: Linear, chosen: Sequence[Estimate]) -> MergedLinear | None:
        terms = self._terms(chosen)
        counted = self._counted(linear, chosen[0].source)
        if counted is None:
            return None
        # The bounded rows of two releases may differ, and their mean is then no whole number.
        parted = linear.parted or (len(chosen) > 1 and self.want.asked.can_cut)
        kept = (linear.aggregate, terms, linear.constant, linear.whole, linear.slack, linear.each)
        return MergedLinear(*kept, counted, linear.step, parted)

    def _terms(self, chosen: Sequence[Estimate]) -> tuple[Term, ...]:
        """Returns the earlier cells of a number, combined by inverse variance."""
        shares = _shares([each.variance for each in chosen])
        made = [one.terms(self._place(one.source), share) for one, share in zip(chosen, shares, strict=True)]
        return tuple(term for own in made for term in own)

    def _counted(self, linear: Linear, source: Source) -> tuple[Term, ...] | None:
        """Returns the cells that count the rows a grid may have moved, of the same source if it has them."""
        if not linear.counted:
            return ()
        found = self._estimates(linear.counted)
        own = [each for each in found if each.source is source] or sorted(found, key=lambda each: each.variance)[:1]
        return self._terms(own) if own else None

    def _adds_up(self, source: Source) -> bool:
        """Whether people add up over the groups of a source: each is in one group, or nothing is added."""
        alone = source.most == 1 and source.part.keys == source.part.finest
        return alone or in_one_group(self.want.asked, source.part)

    def _estimates(self, terms: Sequence[Term]) -> list[Estimate]:
        function = self.want.function(terms)
        if function is None:
            return []
        found = ((source, solve(function, source.functions)) for source in self.sources)
        return [Estimate(source, weights) for source, weights in found if weights is not None]

    def _mean(self, reading: Ratio) -> Reading | None:
        a, b = (self._estimates([Term(reading.noise, cell, Fraction(1))]) for cell in (reading.first, reading.first + 1))
        by_source = {id(each.source): each for each in b}
        pairs = [(each, by_source[id(each.source)]) for each in a if id(each.source) in by_source]
        if not pairs:
            return None
        above, below = min(pairs, key=lambda pair: pair[0].variance)
        place = self._place(above.source)
        shown = (reading.aggregate, place, reading.grid, reading.least, reading.slack)
        return MergedRatio(*shown, a=above.terms(place), b=below.terms(place))

    def _place(self, source: Source) -> int:
        return next(place for place, each in enumerate(self.sources) if each is source)


def _always(source: Source) -> bool:
    return True


def _linear(reading: Reading, collected: Collection) -> Linear | None:
    """Returns a reading as a weighted sum of cells, if it is one. A count that several releases have is read from the first."""
    if isinstance(reading, Combined):
        release = collected.releases[reading.places[0]]
        cells = range(release.cells if reading.nulls else 2)
        terms = tuple(Term(reading.places[0], cell, Fraction(1, release.row)) for cell in cells)
        return Linear(reading.aggregate, terms, whole=True)
    return reading if isinstance(reading, Linear) else None


def _shares(variances: Sequence[float]) -> list[Fraction]:
    """Returns shares by inverse variance that add up to 1 exactly, in few steps: the law of the sum is computed on its grid."""
    inverse = [max(1, round(min(variances) / v * _STEPS)) for v in variances]
    return [Fraction(each, sum(inverse)) for each in inverse]


def derive(want: Wanted, every: Sequence[Source], terms: Terms, *, combine: bool = True) -> Derived | None:
    """Returns the question over earlier numbers; None if they do not give it. Of two families of noise, that with the smaller
    margins is taken."""
    found = []
    for gaussian in (False, True):
        own = tuple(each for each in every if each.release.mechanism.gaussian == gaussian)
        builder = _Builder(want, own, combine, terms.confidence)
        readings = [builder.reading(reading) for reading in want.readings]
        made = [reading for reading in readings if reading is not None]
        used = sorted(set[int]().union(*map(noises_of, made)))
        if len(made) == len(readings) and used:
            places = {place: new for new, place in enumerate(used)}
            moved = tuple(renumbered(reading, places) for reading in made)
            found.append(_derived(want, tuple(own[place] for place in used), moved, terms))
    return min(found, key=lambda each: each.size, default=None)


def _derived(want: Wanted, used: tuple[Source, ...], readings: tuple[Reading, ...], terms: Terms) -> Derived:
    question, noises = want.question, tuple(source.noise for source in used)
    query, known = question.query, public_keys(question.query.keys, question.operands().keys)
    work = Work(query.source, query.keys, known if query.keys else None, question.by_unit, None, ())
    plan = Plan(
        query,
        work,
        want.bounding,
        noises,
        readings,
        None,
        Price(Fraction(0)),
        Pure(0),
        question.unit,
        tuple(dict.fromkeys((*want.collected.notes, *clipped_inside(query.source)))),
        schema=schema(query, question.operands().keys, known, readings, noises, {}),
        together=dependent(query.keys, known or (), question.joint),
    )
    keys = dict.fromkeys(name for source in used for name in _open_keys(want, source.part))
    left = Cuts(rows=False, keys=tuple(keys))
    batch = Batch((plan,), question.tables, "derived", terms.rows(question), cuts=left)
    return Derived(batch, used, tuple(dict.fromkeys(_cut(want, source.part) for source in used if want.asked.can_cut)))


def _open_keys(want: Wanted, part: StoredPart) -> Iterator[str]:
    """Yields the earlier keys that rows may have other values of: these rows are in no group, so in no sum of groups."""
    free = {name: replace(known, low=None, high=None, values=None) for name, known in want.asked.scope.items()}
    for key, known in zip(part.finest, part.declared, strict=True):
        if not columns(key) <= set(free):
            yield want.shown(key)
            continue
        if _holds_others(key, known):
            continue
        own = facts(key, free)
        boolean = own.kind == "bool" and isinstance(key, Column)
        missing = own.nullable and None not in known
        if missing or (own.values is None and not boolean):
            yield want.shown(key) + (" (NULL too)" if missing else "")


def _holds_others(key: Expression, known: Sequence[Key]) -> bool:
    """Whether rows with other values than declared have a group too, that of NULL: in lists that are put together."""
    if None not in known or not isinstance(key, Call) or key.name != "case" or len(key.arguments) != 3:
        return False
    listed = [value for value in known if value is not None]
    return same_text(with_others(key.arguments[1], listed)) == same_text(key)


def _cut(want: Wanted, part: StoredPart) -> str:
    """Says how units were bounded in the earlier groups."""
    rows = sorted({release.sums.max_rows for release in part.releases})[-1]
    each = f"at most {'1 row' if rows == 1 else f'{rows} rows worth'} in each group".replace("rows worth", "rows' worth")
    if not part.finest:
        return f"each person counts {each.removesuffix(' in each group')}"
    by = ", ".join(map(want.shown, part.finest))
    most = part.max_groups or part.all_groups
    within_groups = "" if in_one_group(want.asked, part) or most >= part.all_groups else f", in at most {most} of them"
    alone = want.asked.keys == part.keys == part.finest
    return f"each person counts {each} by {by}{within_groups}" + (
        "" if alone else "; asked alone, the bounds would be on its own groups"
    )


@dataclass(frozen=True)
class Derived:
    """A question over earlier numbers: its plan, the releases that are its noises, and how units were bounded in them."""

    batch: Batch
    sources: tuple[Source, ...]
    cut: tuple[str, ...]

    @property
    def plan(self) -> Plan:
        return self.batch.plans[0]

    @property
    def entries(self) -> tuple[int, ...]:
        """The entries of the answers that it is made of."""
        return tuple(sorted({source.part.entry for source in self.sources}))

    @property
    def size(self) -> float:
        """The variance of its aggregates together, on a scale of factors: to choose between two."""
        noises = self.plan.noises
        return sum(math.log(_variance(reading, noises)) for reading in self.plan.readings)

    def predicted(self, confidence: Fraction) -> dict[str, float | None]:
        """Returns the margin to expect of each noisy output: the largest, if groups differ. It depends on no noisy number."""
        return predicted_margins(self.plan, self.batch.rows, confidence)

    @cached_property
    def widths(self) -> tuple[tuple[int, ...], ...]:
        """How many cells of each noise are filled in each group."""
        each = [[len(slots) * len(source.functions) for slots in source.slots] for source in self.sources]
        return tuple(zip(*each, strict=True))

    @property
    def uneven(self) -> bool:
        """Whether some groups are made of more earlier groups than others."""
        return len(set(self.widths)) > 1

    def numbers(self, payloads: Mapping[int, str]) -> Noisy:
        """Returns the earlier numbers side by side, from the stored answers by their entries."""
        keys = tuple(combinations(self.plan.work.known or (), self.plan.together))
        return Noisy(keys, tuple(_beside(source, decode_noisy(payloads[source.part.entry])) for source in self.sources))

    def margins(self, noisy: Noisy, table: Table, confidence: Fraction) -> dict[str, list[float | None]]:
        """Returns the margins of a finished table, by the number of earlier groups in each group."""
        if self.plan.query.above or not self.uneven:
            return margins(self.plan, noisy, table, confidence)
        found: dict[str, list[float | None]] = {
            each.name: [None] * len(table.rows) for each in outputs(self.plan) if each.readings
        }
        for widths in set(self.widths):
            rows = [row for row, place in enumerate(table.places) if self.widths[place] == widths]
            part = replace(self.plan, readings=tuple(within(each, widths) for each in self.plan.readings))
            own = Table(table.columns, tuple(table.rows[row] for row in rows), tuple(table.places[row] for row in rows))
            for name, wide in margins(part, noisy, own, confidence).items():
                for row, margin in zip(rows, wide, strict=True):
                    found[name][row] = margin
        return found


def _variance(reading: Reading, noises: Sequence[Noise]) -> float:
    inner = reading.logarithm if isinstance(reading, GeometricMean) else reading
    terms = inner.a if isinstance(inner, MergedRatio) else inner.terms if isinstance(inner, Linear) else ()
    return sum(float(term.weight) ** 2 * noises[term.noise].variance for term in terms) or 1.0


def _beside(source: Source, released: Sequence[Noisy]) -> NDArray[Any]:
    """Returns the cells of the earlier groups of each group, side by side; zeros where a group has fewer than others."""
    own = released[source.part.place]
    cells, places = own.cells[source.release.place], {key: place for place, key in enumerate(own.keys)}
    order = [places[key] for key in source.part.groups]
    each = cells.shape[1]
    found = np.zeros((len(source.slots), source.most * each), dtype=cells.dtype)
    for group, slots in enumerate(source.slots):
        found[group, : len(slots) * each] = cells[[order[slot] for slot in slots]].ravel()
    return found
