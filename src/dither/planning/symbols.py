"""States the margins of values that a SELECT around the question computes across groups: shares, differences, running totals.

Each group has noise of its own, independent of the others', and so has each of several results that are put together. So the
noises of the groups that a value reads are put side by side, as if they were releases of one group, and the forms of forms.py
give the margin of weighted sums and quotients: a share of the total, a difference to the group before, a running total. Other
expressions get the interval rules of outputs.py: every aggregate that the value reads lies in its interval at once (union
bound), however their noises depend on each other. That covers MAX(n): the largest true value lies between the largest lower
end and the largest upper end.

Constant factors around a form do not widen it, and a rounding does by less than a unit of its last place: ROUND(x, 1) lies
between the rounded ends of x.

A value that reads more than MOST_TERMS noisy numbers together with others has no margin: it would take too long.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dither.catalog.values import Key
from dither.planning import forms
from dither.planning.forms import Form
from dither.planning.intervals import divisors, fact, farthest, is_number
from dither.planning.plan import Plan
from dither.planning.releases.base import Noise, Reading
from dither.planning.releases.running import Correlated
from dither.planning.roundings import peel, through
from dither.planning.rows import Extreme, Group, Made, Part, Source, Total, Unknown
from dither.query.functions.base import Cell
from dither.query.functions.registry import evaluate, known
from dither.query.nodes import Call, Column, Expression, Literal

if TYPE_CHECKING:
    from dither.planning.outputs import Noisy, Output

MOST_TERMS = 50_000  # noisy numbers read by all values of an answer
_MOST_PARTS = 2_000  # noisy numbers of one value, by intervals
_MOST_QUOTIENTS = 8  # quotients in one value; with more, intervals are as good
Place = tuple[int, int]  # a release, and a group of it


def leaves(source: Part) -> Iterator[Group]:
    """Returns the noisy outputs that a value reads, possibly repeated."""
    if isinstance(source, Group):
        yield source
    elif isinstance(source, Made):
        for inner in source.parts.values():
            yield from leaves(inner)
    elif isinstance(source, (Total, Extreme)):
        for part in source.parts[source.start : source.stop]:
            yield from leaves(part)


def terms(source: Part) -> int:
    """Returns how many noisy outputs a value reads, without listing them."""
    if isinstance(source, Made):
        return sum(map(terms, source.parts.values()))
    return source.stop - source.start if isinstance(source, (Total, Extreme)) else 1


@dataclass(frozen=True)
class Release:
    """A noisy result that values are made from. `columns` are the outputs of the question itself. `noise`: releases with the
    same number are the same noisy numbers, read twice. `program`: those with the same number may share noise otherwise."""

    plan: Plan
    noisy: Noisy
    columns: Sequence[Output]
    noise: int = 0
    program: int = 0

    @cached_property
    def forms(self) -> Mapping[int, Form | None]:
        """The form of each output of the question in one group."""
        named = {each.name: each.expression for each in self.plan.query.outputs}
        readings = {reading.name: reading for reading in self.plan.readings}
        every = enumerate(self.columns)
        return {i: forms.read(named[each.name], readings, self.plan.noises) for i, each in every if each.readings}


@dataclass(frozen=True)
class _Side:
    """The noises of several groups side by side: where those of each group begin, all of them, whose each is, and the cells."""

    starts: Mapping[Place, int]
    noises: tuple[Noise, ...]
    owners: tuple[int, ...]
    cells: Sequence[NDArray[Any]]
    by_unit: bool

    @classmethod
    def of(cls, places: Mapping[Place, Release]) -> _Side:
        """Puts the noises of groups side by side, in the order of the places."""
        noises: list[Noise] = []
        starts, owners, cells = {}, [], []
        for number, (place, release) in enumerate(places.items()):
            starts[place] = len(noises)
            noises += release.plan.noises
            owners += [number] * len(release.plan.noises)
            cells += [each[place[1] : place[1] + 1] for each in release.noisy.cells]
        by_unit = any(release.plan.work.by_unit for release in places.values())
        return cls(starts, tuple(noises), tuple(owners), cells, by_unit)

    def one_group(self, quotient: forms.Quotient) -> bool:
        """Whether a quotient reads one group. Only there are the rows above some of those below."""
        return len({self.owners[noise] for noise, _ in quotient.places}) == 1

    def one_family(self, form: Form) -> bool:
        """Whether all noise of a form is of one kind, so that it has a joint law."""
        used = {term.noise for term in form.total.terms} | {noise for _, one in form.quotients for noise, _ in one.places}
        return len({self.noises[each].gaussian for each in used}) <= 1


@dataclass(frozen=True)
class Margins:
    """The margins of values over the groups of one release, or of several that are put together."""

    releases: Sequence[Release]
    confidence: Fraction
    _totals: dict[tuple[int, int, int, tuple[Place, ...]], Form | None] = field(
        default_factory=dict
    )  # of sums that many values share

    def all(
        self, sources: Sequence[Sequence[Source | None]], rows: Sequence[Sequence[object]], width: int
    ) -> list[list[float | None]]:
        """Returns the margins of each column, of which there are `width`."""
        if not rows:
            return [[] for _ in range(width)]
        short = sum(terms(each) for row in sources for each in row if each is not None) <= MOST_TERMS
        passed = self._passed_on(sources, rows)
        return [
            [
                passed[source] if isinstance(source, Group) else self.of(source, value) if short else None
                for source, value in zip(made, shown, strict=True)
            ]
            for made, shown in zip(zip(*sources, strict=True), zip(*rows, strict=True), strict=True)
        ]

    def _passed_on(
        self, sources: Sequence[Sequence[Source | None]], rows: Sequence[Sequence[object]]
    ) -> dict[Source, float | None]:
        """Returns the margins of values that are numbers of the question itself."""
        values: dict[tuple[int, int], dict[int, object]] = {}
        for made, shown in zip(sources, rows, strict=True):
            for source, value in zip(made, shown, strict=True):
                if isinstance(source, Group):
                    values.setdefault((source.release, source.output), {})[source.place] = value
        found: dict[Source, float | None] = {}
        for (number, output), each in values.items():
            release = self.releases[number]
            wide = release.columns[output].margins(release.plan, release.noisy, each, self.confidence)
            found |= {Group(output, place, number): margin for place, margin in wide.items()}
        return found

    def of(self, source: Source | None, value: object) -> float | None:
        """Returns the margin of a value that is computed from the question's numbers; None if none can be stated."""
        if source is None or isinstance(source, (Group, Unknown)) or not is_number(value):
            return None
        by_form = self._by_form(source, float(value))
        return self._by_intervals(source, float(value)) if by_form is None else by_form

    # --- weighted sums and quotients ------------------------------------------------------------------------------

    def _by_form(self, source: Source, shown: float) -> float | None:
        if isinstance(source, Made) and (peeled := peel(source.expression)) is not None:
            around, inner = peeled
            middle = self._value(replace(source, expression=inner))
            wide = None if middle is None else self._by_form(replace(source, expression=inner), middle)
            return through(around, shown, middle, wide)
        correlated = self._by_covariance(source)
        if correlated is not None:
            return correlated
        side = self._side(source)
        form = None if side is None else self._form(source, side.starts)
        if side is None or form is None or not side.one_family(form):
            return None
        if len(form.quotients) > _MOST_QUOTIENTS or (form.quotients and len(self._read(source)) == 1):
            return None
        quotients = tuple((weight, replace(one, one_group=side.one_group(one))) for weight, one in form.quotients)
        whole = replace(form, quotients=quotients)
        (found,) = whole.margins(side.noises, side.by_unit, side.cells, np.array([shown]), self.confidence)
        return float(found) if math.isfinite(found) else None

    def _by_covariance(self, source: Source) -> float | None:
        """Returns the margin of a weighted sum of groups whose noise is that of one strategy; None for other values."""
        release = self.releases[0]
        noise = release.plan.noises[0] if len(self.releases) == len(release.plan.noises) == 1 else None
        if not isinstance(noise, Correlated):
            return None
        groups = len(release.noisy.keys)
        form = self._form(source, {(release.noise, place): place for place in range(groups)})
        if form is None or form.quotients or form.total.slack or form.total.growing or form.total.rounded:
            return None
        weights = np.zeros(groups)
        for term in form.total.terms:
            weights[term.noise] += float(term.weight)
        wide, unit = noise.weighted(weights, self.confidence), form.total.unit
        return float(math.floor(wide / float(unit) + 1e-9) * unit) if unit else wide

    def _side(self, source: Source) -> _Side | None:
        """Returns the noises that a value reads, side by side; None if several may have noise in common: the same in another
        order, or because they were fitted together."""
        read = {(self.releases[leaf.release].noise, leaf.place): self.releases[leaf.release] for leaf in leaves(source)}
        if len(read) > 1 and any(each.fitted for release in read.values() for each in release.plan.noises):
            return None
        programs = {each.noise: each.program for each in read.values()}
        if len(set(programs.values())) < len(programs):
            return None
        return _Side.of({place: read[place] for place in sorted(read)})

    def _value(self, source: Made) -> float | None:
        """Returns the value of an expression inside a rounding, from the noisy outputs that it reads."""
        value = evaluate(self._expression(source), self._shown(source))
        return float(value) if is_number(value) else None

    def _form(self, source: Part, places: Mapping[Place, int]) -> Form | None:
        """Returns the form of a value over the noises of several groups; `places`: where those of each group begin."""
        if isinstance(source, (int, float)):
            return forms.of_number(Fraction(source)) if math.isfinite(source) else None
        if isinstance(source, Group):
            release = self.releases[source.release]
            form = release.forms.get(source.output)
            return None if form is None else form.moved_by(places[release.noise, source.place])
        if isinstance(source, Total):
            key = (id(source.parts), source.start, source.stop, tuple(places))
            if key not in self._totals:
                parts = [self._form(part, places) for part in source.parts[source.start : source.stop]]
                self._totals[key] = None if None in parts else _added([part for part in parts if part is not None])
            return self._totals[key]
        if isinstance(source, Made):
            return forms.combine(source.expression, lambda name: self._column(source, name, places))
        return None

    def _column(self, source: Made, name: str, places: Mapping[Place, int]) -> Form | None:
        if name in source.parts:
            return self._form(source.parts[name], places)
        value = source.public[name]
        return forms.of_number(Fraction(value)) if is_number(value) else None

    # --- intervals ------------------------------------------------------------------------------------------------

    def _read(self, source: Part) -> dict[tuple[str, Place], Reading]:
        """Returns the aggregates that a value reads, each in its group."""
        found = {}
        for leaf in set(leaves(source)):
            for reading in self.releases[leaf.release].columns[leaf.output].readings:
                found[reading.name, (leaf.release, leaf.place)] = reading
        return found

    def _expression(self, source: Part) -> Expression:
        """Returns a value as one expression over the aggregates of all groups."""
        if isinstance(source, (int, float)):
            return _literal(source)
        if isinstance(source, Group):
            release, place = self.releases[source.release], (source.release, source.place)
            keys = dict(zip((key.name for key in release.plan.query.keys), release.noisy.keys[source.place], strict=True))
            named = {each.name: each.expression for each in release.plan.query.outputs}
            return _replaced(named[release.columns[source.output].name], lambda name: _in_group(name, keys, place))
        if isinstance(source, Made):
            parts = {name: self._expression(part) for name, part in source.parts.items()}
            return _replaced(source.expression, lambda name: parts[name] if name in parts else _literal(source.public[name]))
        if isinstance(source, Unknown):
            raise TypeError("a value without a known source has no expression")
        each = [self._expression(part) for part in source.parts[source.start : source.stop]]
        return _tree(each) if isinstance(source, Total) else Call(source.function, tuple(each))

    def _shown(self, source: Part) -> dict[str, object]:
        """Returns the noisy values of the aggregates that a value reads."""
        values: dict[tuple[str, int], Sequence[object]] = {}
        found = {}
        for (name, (number, place)), reading in self._read(source).items():
            release = self.releases[number]
            if (name, number) not in values:
                values[name, number] = reading.values(release.plan.noises, release.noisy.cells)
            found[_label(name, (number, place))] = values[name, number][place]
        return found

    def _by_intervals(self, source: Source, shown: float) -> float | None:
        read = self._read(source)
        if not read or len(read) > _MOST_PARTS:
            return None
        expression = self._expression(source)
        nonzero = divisors(expression)
        each = 1 - (1 - self.confidence) / (len(read) + len(nonzero))
        scope, bounds = {}, {}
        for (name, (number, place)), reading in read.items():
            noises, cells = self.releases[number].plan.noises, self.releases[number].noisy.cells
            if (name, number) not in bounds:
                bounds[name, number] = reading.bounds(noises, cells, each)
            low, high = (float(end[place]) for end in bounds[name, number])
            label = _label(name, (number, place))
            if label in nonzero:
                low = max(low, float(reading.smallest(noises, cells, each)[place]))
            scope[label] = fact(reading.aggregate.function, low, high)
        return farthest(shown, known(expression, scope))


def _added(parts: Sequence[Form]) -> Form:
    quotients = [pair for part in parts for pair in part.quotients]
    if not quotients:
        return Form(forms.Sum.total([part.total for part in parts]))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _label(name: str, place: Place) -> str:
    return f"{name}#{place[0]}#{place[1]}"


def _literal(value: Cell) -> Literal:
    if isinstance(value, float):
        return Literal(Fraction(value) if math.isfinite(value) else None)
    return Literal(value)


def _in_group(name: str, keys: Mapping[str, Key], place: Place) -> Expression:
    return Literal(keys[name]) if name in keys else Column(_label(name, place))


def _replaced(expression: Expression, of: Callable[[str], Expression]) -> Expression:
    if isinstance(expression, Column):
        return of(expression.name)
    if isinstance(expression, Literal):
        return expression
    return replace(expression, arguments=tuple(_replaced(each, of) for each in expression.arguments))


def _tree(parts: Sequence[Expression]) -> Expression:
    """Returns a sum as a tree of small depth."""
    while len(parts) > 1:
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        parts = [Call("add", tuple(pair)) if len(pair) == 2 else pair[0] for pair in pairs]
    return parts[0]
