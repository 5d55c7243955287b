"""What every kind of release has in common.

    Release   one noisy quantity: what the engine adds up for it, and how far one row moves that
    Noise     a release with its mechanism: what it costs, and the one place of a plan where noise is drawn
    Reading   how one aggregate is read from released integers: its value, its margin, its words; post-processing, free

A file of this folder is one kind of release: the releases, their readings, and under which functions they are asked for
(`__init__.py` lists them). `noises` are a plan's noises, and noisy[i][g, c] is cell c of noise i in group g.

Readings that are weighted sums of cells: counts, sums, and means over a public number of rows.

The releases of one question, collected aggregate by aggregate: aggregates that can share a release do.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError, QueryError
from dither.exact.numbers import decimal, rounded
from dither.mechanisms import Exponential, Gaussian, Geometric
from dither.planning import margins
from dither.planning.sensitivity import NARROW, Bounding, fits
from dither.privacy.losses import ZCDP, Loss
from dither.query.functions.base import Facts
from dither.query.functions.registry import facts as infer
from dither.query.nodes import Aggregate, Call, Expression
from dither.query.resolve.relations import Operands
from dither.query.show import show_expression
from dither.query.work import Measure, Quantised, Sums

Cells = Sequence[NDArray[Any]]
Number = int | float
Bounds = tuple[NDArray[np.float64], NDArray[np.float64]]  # between which the truth lies, group by group


class Release(ABC):
    """A noisy quantity before it has a price."""

    smooth: ClassVar[bool] = True  # whether Gaussian noise can hide it

    @property
    @abstractmethod
    def measure(self) -> Measure:
        """What the engine adds up."""

    @property
    @abstractmethod
    def row(self) -> int:
        """The most one row moves all cells together."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What the noise is on, for people."""

    @property
    def cells(self) -> int:
        """How many integers there are in each group."""
        return 1

    @property
    def signed(self) -> bool:
        """Whether a cell can fall when a unit is added."""
        return False

    @property
    def weight(self) -> float:
        """How much its error counts in the objective of split.py: the same for a release however many outputs it serves."""
        return 1.0

    @property
    def nothing(self) -> Any:
        """The exact value of a group without rows."""
        return 0

    @property
    def parameters(self) -> Mapping[str, Fraction]:
        """What else is asked of the measure, by the names that stored texts use. Releases that agree in both are one."""
        return {}

    @property
    @abstractmethod
    def worth(self) -> int:
        """How many rows' worth the engine lets one unit give to this measure in one group."""

    def pure(self, epsilon: Fraction, bounding: Bounding) -> Noise:
        """Geometric noise at this share of epsilon."""
        held = bounding.worth(self.worth)
        shape = (self.row, self.cells, self.signed)
        return self._within_range(
            lambda: Geometric(epsilon=epsilon, sensitivity=held.l1(*shape)), lambda: held.total(*shape) > epsilon
        )

    def gaussian(self, rho: Fraction, bounding: Bounding) -> Noise:
        """Discrete Gaussian noise at this share of rho."""
        held = bounding.worth(self.worth)
        shape = (self.row, self.cells, self.signed)
        return self._within_range(
            lambda: Gaussian(rho=rho, sensitivity=held.l2(*shape)), lambda: held.squares(*shape) > 2 * rho
        )

    def one_moves(self, bounding: Bounding) -> int | None:
        """How far one unit moves the only number of this release that it moves; None if it may move more than one."""
        moves = bounding.worth(self.worth).l2(self.row, self.cells, self.signed).separate(None)
        return moves[1] if moves is not None and moves[0] == 1 else None

    def on_own_curve(self, epsilon: Fraction, delta: Fraction, bounding: Bounding) -> Noise:
        """Discrete Gaussian noise calibrated on its own privacy curve, where one number moves."""
        norm = bounding.worth(self.worth).l2(self.row, self.cells, self.signed)
        return Noise(self, Gaussian(epsilon=epsilon, delta=delta, sensitivity=norm))

    def draw(self, mechanism: Geometric | Gaussian | Exponential, exact: Sequence[Any]) -> NDArray[Any]:
        """The noisy integers, one row per group."""
        values = [value for group in exact for value in (group if isinstance(group, tuple) else (group,))]
        if fits(self.row):
            held = np.array([min(max(value, -NARROW), NARROW) for value in values], dtype=np.int64)
            noisy: NDArray[Any] = np.asarray(mechanism.release(held))
        else:
            noisy = np.array([mechanism.release(value) for value in values], dtype=object)
        return noisy.reshape(-1, self.cells)

    def relative(self, noise: Noise) -> float:
        """The noise's variance in units of what one row moves."""
        return noise.variance / self.row**2

    @property
    def about(self) -> str:
        """What the mechanism works on, for people."""
        return self.words

    def _within_range(self, build: Callable[[], Geometric | Gaussian], is_wide: Callable[[], bool]) -> Noise:
        try:
            return Noise(self, build())
        except ArgumentError:
            pass
        measure, wide = self.measure, is_wide()
        on_a_grid = isinstance(measure, Sums) and any(cell.argument is not None for cell in measure.cells)
        declared = "a coarser step for the column, or smaller max_rows or max_groups"
        off = "more than 10^12 steps" if wide else "less than a thousandth of a step"
        larger = f"spend a larger epsilon, or declare {declared if on_a_grid else 'smaller max_rows or max_groups'}."
        raise QueryError(
            f"The noise for the {self.words} is out of range: {off}.",
            fix=larger if wide else "spend a smaller epsilon.",
        )


@dataclass(frozen=True)
class Noise:
    """A release and the mechanism that hides it.

    Where noise is drawn per group, as for quantiles, one unit pays in `groups` of them, and moves each by up to `steps`
    sensitivities: by two where it is replaced, because one may leave the group that the other enters. That is dearer than two
    groups moved by one each: the same epsilon, twice the rho.
    """

    of: Release
    mechanism: Geometric | Gaussian | Exponential
    groups: int = 1
    steps: int = 1

    @property
    def times(self) -> int:
        """In how many groups one unit may be seen: under replacement those it leaves and those it enters."""
        return self.groups * self.steps

    @cached_property
    def loss(self) -> Loss:
        return self.mechanism.loss().group(self.steps).repeat(self.groups)

    @cached_property
    def zcdp(self) -> ZCDP:
        """The loss stated a second way."""
        return self.mechanism.zcdp().group(self.steps).repeat(self.groups)

    @property
    def gaussian(self) -> bool:
        return self.mechanism.gaussian

    @property
    def scale(self) -> float:
        """The scale of one cell's noise: the Laplace scale, or the standard deviation."""
        return self.mechanism.noise_scale

    @cached_property
    def record(self) -> dict[str, Any]:
        """The mechanism by its tag and exact parameters: for ledgers."""
        return self.mechanism.record()

    @cached_property
    def variance(self) -> float:
        """Of one cell's noise, near enough for weighing."""
        return self.mechanism.noise_variance

    def explain(self, who: str) -> str:
        """The noise in words: its law, what it is on, how far one unit moves that, and its price."""
        return self.mechanism.words(self.of.about, who)

    @property
    def error(self) -> float:
        """What it adds to the objective of split.py: its weight times its variance, in units of what one row moves."""
        return self.of.weight * self.of.relative(self)

    def release(self, exact: Sequence[Any]) -> NDArray[Any]:
        """The noisy integers, one row per group. The only place of a plan where noise is drawn.

        >>> from dither.planning.releases.count import Rows
        >>> Noise(Rows(1), Geometric(epsilon=1000, sensitivity=1)).release([(3,), (0,)]).tolist()
        [[3], [0]]
        """
        return self.of.draw(self.mechanism, exact)


class Reading(ABC):
    """How one aggregate is read.

    A margin is wrong about its own number no more often than the confidence leaves, against the bounded truth: what the same
    question would give without noise, after clipping and bounding. None is a margin that is not stated, and is not wrong.
    """

    asked: Aggregate
    whole: bool = False  # the value is a whole number
    by_rows: ClassVar[bool] = False  # the margin depends on how many rows the group has
    sign: ClassVar[str] = "±"  # how a margin that is expected is written

    @property
    def name(self) -> str:
        return self.asked.name

    @property
    def title(self) -> str:
        """The aggregate as people write it, saying so where it is only nearly that."""
        return called(self.asked)

    @property
    def notes(self) -> tuple[str, ...]:
        """What an answer says of it beside its margin."""
        return ()

    @abstractmethod
    def values(self, noises: Sequence[Noise], noisy: Cells) -> list[Number]:
        """The value in each group."""

    @abstractmethod
    def margins(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> list[float | None]:
        """How far each value may be off; None where that cannot be stated."""

    @abstractmethod
    def bounds(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> Bounds:
        """Between which numbers the truth lies, for what is computed from it."""

    @abstractmethod
    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        """The margin to expect with so many rows in a group; None if it depends on more than is known."""

    def largest(self, noises: Sequence[Noise], rows: int) -> Fraction:
        """What no whole value exceeds with so many rows, but for noise so large that nobody will see it."""
        return Fraction(0)

    def rank(self, noises: Sequence[Noise], confidence: Fraction) -> float | None:
        """How many rows' worth the value's rank may be off, where that is what is known of it."""
        return None

    def expected(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> str:
        """The margin to expect, in words."""
        margin = self.predicted(noises, rows, confidence)
        if margin is not None:
            given = f" at {rows} rows in the group" if rows and self.by_rows else ""
            return f"{self.sign} {rounded(margin)}{given}"
        thousand = self.predicted(noises, 1000, confidence)
        return f"{self.sign} {rounded(thousand or 0.0)} in a group of 1000 rows (less in larger ones)"


def called(asked: Aggregate, form: str = "") -> str:
    """An aggregate as people write it: in the form "SUM({})" of its function unless another is given."""
    where = "" if asked.where is None else f" FILTER (WHERE {show_expression(asked.where)})"
    argument = "*" if asked.argument is None else show_expression(asked.argument)
    return (form or f"{asked.function.upper()}({{}})").format(argument) + where


_KEPT = 64  # the part of the doubt that is kept for a number of rows
_FAR = 64  # scales of noise: beyond them there is less than e^-64


class Term(NamedTuple):
    """weight times cell `cell` of noise `noise`."""

    noise: int
    cell: int
    weight: Fraction


@dataclass(frozen=True)
class Linear(Reading):
    """constant + sum of weighted cells.

    Margin: exact law of the one noise if there is just one term, else the law of the weighted sum (margins.py).
    `whole`: the truth is a whole number, so the value is rounded to one, and the margin with it.
    `slack` is what the grid may have moved the value by. Where that grows by `each` with every row, the rows are read from the
    terms `counted`: a small part of the doubt is kept for them (union bound).
    """

    asked: Aggregate
    terms: tuple[Term, ...]
    constant: Fraction = Fraction(0)
    whole: bool = False
    slack: Fraction = Fraction(0)
    each: Fraction = Fraction(0)
    counted: tuple[Term, ...] = ()

    def values(self, noises: Sequence[Noise], noisy: Cells) -> list[Number]:
        if len(self.terms) == 1 and self.terms[0].weight.denominator == 1 and self.constant.denominator == 1:
            term = self.terms[0]
            return [int(v) * int(term.weight) + int(self.constant) for v in noisy[term.noise][:, term.cell]]
        total = weighed(self.terms, noisy) + float(self.constant)
        return [round(v) for v in total.tolist()] if self.whole else total.tolist()

    def half(self, noises: Sequence[Noise], confidence: Fraction) -> float:
        """The margin without the grid's part, the same in every group."""
        reach = reached(self.terms, noises, confidence)
        return float(math.floor(reach + 0.5)) if self.whole else reach

    def margins(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> list[float | None]:
        groups = len(noisy[0]) if noisy else 1
        if not self.counted:
            return [self.half(noises, confidence) + float(self.slack)] * groups
        doubt = (1 - confidence) / _KEPT
        rows = weighed(self.counted, noisy) + reached(self.counted, noises, 1 - doubt)
        wide = self.half(noises, confidence + doubt) + float(self.slack) + float(self.each) * np.maximum(rows, 0.0)
        return [float(m) for m in wide]

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        """Without rows, leaving out what grows with them."""
        return self.half(noises, confidence) + float(self.slack) + float(self.each) * (rows or 0)

    def largest(self, noises: Sequence[Noise], rows: int) -> Fraction:
        cells = ((abs(term.weight), noises[term.noise]) for term in self.terms)
        most = (weight * (noise.of.row * rows + math.ceil(_FAR * noise.scale)) for weight, noise in cells)
        return sum(most, abs(self.constant))

    def expected(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> str:
        each = Fraction(0) if rows else self.each  # the grid's part, unless it is included
        grows = f", and {rounded(float(each))} for each row" if each else ""
        return super().expected(noises, rows, confidence) + grows

    def bounds(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> Bounds:
        value, wide = np.array(self.values(noises, noisy), float), np.array(self.margins(noises, noisy, confidence), float)
        return value - wide, value + wide


def weighed(terms: Sequence[Term], noisy: Cells) -> NDArray[np.float64]:
    """The weighted sum of cells in each group."""
    total = np.zeros(len(noisy[0]) if noisy else 1)
    for term in terms:
        total += noisy[term.noise][:, term.cell].astype(np.float64) * float(term.weight)
    return total


def reached(terms: Sequence[Term], noises: Sequence[Noise], confidence: Fraction) -> float:
    """How far the noise of a weighted sum of cells reaches."""
    if not terms:
        return 0.0
    if len(terms) == 1:
        return float(noises[terms[0].noise].mechanism.margin(confidence) * abs(terms[0].weight))
    scales = tuple(sorted(abs(float(t.weight)) * noises[t.noise].scale for t in terms))
    law = margins.normal if noises[terms[0].noise].gaussian else margins.laplace
    return law(scales, float(confidence)) + sum(abs(float(t.weight)) for t in terms)


@dataclass
class Collection:
    """What the aggregates of one question are read from.

    `known`: a public number of rows, or None; `least`: a public minimum of rows in every group (1 without one).
    """

    aggregates: tuple[Aggregate, ...]
    operands: Operands
    scope: Mapping[str, Facts]
    max_rows: int
    known: int | None = None
    least: int = 1
    releases: list[Release] = field(default_factory=list)
    joint: dict[Expression, int] = field(default_factory=dict)  # the places of releases that hold a column's sum and count
    notes: list[Note] = field(default_factory=list)  # what margins leave out

    def __post_init__(self) -> None:
        names = [each.name for each in self.aggregates]
        self._lowered = dict(zip(names, self.operands.aggregates, strict=True))
        self._facts = dict(self.operands.arguments)

    def lowered(self, asked: Aggregate) -> Aggregate:
        """The aggregate with its FILTER inside."""
        return self._lowered[asked.name]

    def facts(self, x: Expression) -> Facts:
        """What is known of an expression."""
        if x not in self._facts:
            self._facts[x] = infer(x, self.scope)
        return self._facts[x]

    def argument(self, asked: Aggregate) -> Expression:
        """What the aggregate is over, FILTER inside; legality has refused those that need one and have none."""
        found = self.lowered(asked).argument
        if found is None:
            raise TypeError(f"{asked.function} has no argument: legality should have refused it")
        return found

    def everywhere(self, x: Expression | None) -> bool:
        """Whether COUNT(x) counts every row: there is no x, or it is never NULL."""
        return x is None or not self.facts(x).nullable

    def add(self, release: Release) -> int:
        """The place of the release among the plan's noises; what measures the same is released once."""
        for place, known in enumerate(self.releases):
            if known.measure == release.measure and known.parameters == release.parameters:
                return place
        self.releases.append(release)
        return len(self.releases) - 1

    def note_bounds(self, x: Expression) -> None:
        """Values are clipped to the bounds of x."""
        known = self.facts(x)
        if known.low is not None and known.high is not None:
            self.note(Clipped(x, known.low, known.high, None if known.whole else known.step))

    def note(self, note: Note) -> None:
        if note not in self.notes:
            self.notes.append(note)


@dataclass(frozen=True)
class Clipped:
    """Values are moved into their bounds, and onto their declared grid."""

    x: Expression
    low: Fraction
    high: Fraction
    step: Fraction | None

    def __str__(self) -> str:
        text = f"{show_expression(self.x)} is clipped to [{decimal(self.low)}, {decimal(self.high)}]"
        return text if self.step is None else f"{text} and rounded to steps of {decimal(self.step)}"


@dataclass(frozen=True)
class Rounded:
    """Values are moved onto a grid that was not declared, and no number of rows is released that would say how far in all."""

    x: Expression
    step: Fraction
    moved: Fraction

    def __str__(self) -> str:
        steps, each = decimal(self.step), decimal(self.moved)
        return f"{show_expression(self.x)} is rounded to steps of {steps}, which moves a sum by at most {each} for each row"


Note = Clipped | Rounded
Reader = Callable[[Aggregate, Collection], Reading]


@dataclass(frozen=True)
class Kind:
    """A kind of release: how the aggregates of its functions are read; and before any is read, what they can share."""

    readers: Mapping[str, Reader]
    share: Callable[[Collection], None] | None = None


def collect(kinds: Sequence[Kind], question: Collection) -> tuple[Reading, ...]:
    """The readings of all aggregates; the releases they are read from are in the collection."""
    for kind in kinds:
        if kind.share is not None:
            kind.share(question)
    readers = {name: reader for kind in kinds for name, reader in kind.readers.items()}
    return tuple(readers[asked.function](asked, question) for asked in question.aggregates)


def present(x: Expression) -> Expression:
    """The condition that x is not NULL."""
    return Call("not", (Call("is_null", (x,)),))


def on_whole(q: Quantised, known: Facts) -> bool:
    """Whether sums of it are whole numbers."""
    return known.whole and q.low.denominator == 1 and q.step.denominator == 1
