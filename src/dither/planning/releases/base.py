"""Defines what all kinds of release share.

    Release     one noisy quantity: what the engine adds up for it, and how far one row moves that
    Noise       a release with its mechanism: its price, and the draw of all noise on numbers
    Reading     how one aggregate is read from released integers: value, margin, words; post-processing, free
    Linear      a reading that is a weighted sum of cells: counts, sums, and means over a public number of rows
    Collection  the releases of one question; aggregates share a release where they can
    Kind        the functions that a file of this folder reads; `__init__.py` lists the kinds

`noises` are a plan's noises, and noisy[i][g, c] is cell c of noise i in group g.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError, QueryError
from dither.exact.numbers import show_decimal, show_rounded
from dither.mechanisms import Exponential, Gaussian, Geometric
from dither.planning import margins
from dither.planning.sensitivity import NARROW, Bounding, Norm, fits
from dither.privacy.conversion import largest_rho
from dither.privacy.losses import ZCDP, Loss
from dither.query.functions.base import Facts, double
from dither.query.functions.domains import facts as infer
from dither.query.nodes import Aggregate, Call, Expression
from dither.query.resolve.relations import Operands
from dither.query.show import show_expression
from dither.query.work import Measure, Quantised, Sums

Cells = Sequence[NDArray[Any]]
Number = int | float
Bounds = tuple[NDArray[np.float64], NDArray[np.float64]]  # lower and upper bound of the truth in each group


class Release(ABC):
    """A noisy quantity before it has a price."""

    allows_gaussian: ClassVar[bool] = True  # whether Gaussian noise can hide it

    @property
    @abstractmethod
    def measure(self) -> Measure:
        """The measure that the engine adds up."""

    @property
    @abstractmethod
    def row(self) -> int:
        """The most one row moves all cells together."""

    @property
    @abstractmethod
    def words(self) -> str:
        """The noisy quantity, in words for people."""

    @property
    def cells(self) -> int:
        """The number of integers in each group."""
        return 1

    @property
    def signed(self) -> bool:
        """Whether a cell can fall when a unit is added."""
        return False

    @property
    def weight(self) -> float:
        """The weight of its error in the objective of price.py; does not depend on how many outputs read it."""
        return 1.0

    @property
    def empty_value(self) -> Any:
        """The exact value of a group without rows."""
        return 0

    @property
    def parameters(self) -> Mapping[str, Fraction | tuple[Fraction, ...]]:
        """The parameters beside the measure, by their names in stored texts. Releases equal in both are one."""
        return {}

    @property
    @abstractmethod
    def rows_per_unit(self) -> int:
        """How many rows one unit counts for at most in one group of this measure; the engine enforces it."""

    def pure(self, epsilon: Fraction, bounding: Bounding) -> Noise:
        """Returns geometric noise at this share of epsilon."""
        limits = bounding.with_max_rows(self.rows_per_unit)
        shape = (self.row, self.cells, self.signed)
        return self.within_range(
            lambda: Geometric(epsilon=epsilon, sensitivity=limits.l1(*shape)), lambda: limits.total(*shape) > epsilon
        )

    def l2(self, bounding: Bounding) -> Norm:
        """Returns how far one unit moves this release, for Gaussian noise."""
        return bounding.with_max_rows(self.rows_per_unit).l2(self.row, self.cells, self.signed)

    def gaussian(self, rho: Fraction, bounding: Bounding) -> Noise:
        """Returns discrete Gaussian noise at this share of rho."""
        norm = self.l2(bounding)
        return self.within_range(lambda: Gaussian(rho=rho, sensitivity=norm), lambda: norm.squares(None) > 2 * rho)

    def on_own_curve(self, epsilon: Fraction, delta: Fraction, bounding: Bounding) -> Noise:
        """Returns discrete Gaussian noise calibrated on its own privacy curve."""
        norm = self.l2(bounding)
        return self.within_range(
            lambda: Gaussian(epsilon=epsilon, delta=delta, sensitivity=norm),
            lambda: norm.squares(None) > 2 * largest_rho(epsilon, delta),
        )

    def draw(self, noise: Noise, exact: Sequence[Any]) -> NDArray[Any]:
        """Draws the noisy integers, one row per group."""
        values = [value for group in exact for value in (group if isinstance(group, tuple) else (group,))]
        if fits(self.row):
            clipped = np.array([min(max(value, -NARROW), NARROW) for value in values], dtype=np.int64)
            noisy: NDArray[Any] = np.asarray(noise.mechanism.release(clipped))
        else:
            noisy = np.array([noise.mechanism.release(value) for value in values], dtype=object)
        return noisy.reshape(-1, self.cells)

    def relative(self, noise: Noise) -> float:
        """Returns the noise's variance in units of what one row moves."""
        return noise.variance / self.row**2

    @property
    def about(self) -> str:
        """The mechanism's input, in words for people."""
        return self.words

    def within_range(self, build: Callable[[], Geometric | Gaussian], is_wide: Callable[[], bool]) -> Noise:
        """Builds the noise. Refuses a scale outside the mechanism's range, and says whether it is too large or too small."""
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

    Where noise is drawn per group, as for quantiles, the price counts `groups` groups, each moved by up to `steps`
    sensitivities. Under replacement `steps` is two, because one unit may leave the group that the other enters. That costs
    more than two groups moved by one each: the same epsilon, twice the rho.
    """

    of: Release
    mechanism: Geometric | Gaussian | Exponential
    groups: int = 1
    steps: int = 1

    @property
    def times(self) -> int:
        """The number of groups that one unit may change: under replacement those it leaves and those it enters."""
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

    @property
    def fitted(self) -> bool:
        """Whether numbers of different groups have noise in common, because they were fitted together."""
        return False

    def running(self, confidence: Fraction) -> float | None:
        """Returns how far a running sum over groups is off, if the noise is made for running sums."""
        return None

    def running_words(self, confidence: Fraction) -> tuple[str, ...]:
        """Returns what a quote says about running sums."""
        return ()

    def margin(self, confidence: Fraction) -> Number | Fraction:
        """Returns how far one cell's noise reaches with this confidence."""
        return self.mechanism.margin(confidence)

    @cached_property
    def record(self) -> dict[str, Any]:
        """The mechanism's tag and exact parameters, for ledgers."""
        return self.mechanism.record()

    @cached_property
    def variance(self) -> float:
        """The variance of one cell's noise, close enough for weights."""
        return self.mechanism.noise_variance

    def explain(self, who: str) -> str:
        """Shows the noise: its law, what it is on, how far one unit moves that, and its price."""
        return self.mechanism.words(self.of.about, who)

    @property
    def error(self) -> float:
        """Its part of the objective of price.py: its weight times its variance, in units of what one row moves."""
        return self.of.weight * self.of.relative(self)

    def release(self, exact: Sequence[Any]) -> NDArray[Any]:
        """Draws the noisy integers, one row per group.

        >>> from dither.planning.releases.count import Rows
        >>> Noise(Rows(1), Geometric(epsilon=1000, sensitivity=1)).release([(3,), (0,)]).tolist()
        [[3], [0]]
        """
        return self.of.draw(self, exact)


class Reading(ABC):
    """How one aggregate is read from released integers.

    A margin is wrong about its own number with probability at most 1 - confidence. The truth is the bounded
    one: the answer without noise, after clipping and bounding. Where no margin can be stated, it is None.
    """

    aggregate: Aggregate
    whole: bool = False  # the value is a whole number
    label: ClassVar[bool] = False  # the value is one of public values, not a number: it has no margin
    by_rows: ClassVar[bool] = False  # the margin depends on the rows in the group
    sign: ClassVar[str] = "±"  # in front of an expected margin

    @property
    def name(self) -> str:
        return self.aggregate.name

    @property
    def title(self) -> str:
        """The aggregate as people write it, and the quantile used in its place, if any."""
        return title_of(self.aggregate)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks that an answer shows beside the margin."""
        return ()

    @abstractmethod
    def values(self, noises: Sequence[Noise], noisy: Cells) -> list[Number]:
        """Returns the value in each group."""

    @abstractmethod
    def margins(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> list[float | None]:
        """Returns how far each value may be off; None where that cannot be stated."""

    @abstractmethod
    def bounds(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> Bounds:
        """Returns an interval that holds the truth, for outputs computed from it."""

    @abstractmethod
    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        """Returns the margin to expect with so many rows in a group; None if it depends on more than that."""

    def linear(self, noises: Sequence[Noise]) -> Linear | None:
        """Returns the reading as a weighted sum of cells, if it is one."""
        return None

    def quotient(self, noises: Sequence[Noise]) -> tuple[Linear, Linear] | None:
        """Returns the reading as a quotient of two weighted sums of cells, if it is one."""
        return None

    def unsure(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> NDArray[np.bool_]:
        """Returns the groups that may be too small for the truth to exist: a mean of no rows is undefined."""
        return np.zeros(len(noisy[0]) if noisy else 1, dtype=bool)

    def smallest(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> NDArray[np.float64]:
        """Returns the least the truth can be if it is not 0, by its grid; minus infinity where it may be negative."""
        return np.full(len(noisy[0]) if noisy else 1, -math.inf)

    def largest(self, noises: Sequence[Noise], rows: int) -> Fraction:
        """Returns a bound that a whole value exceeds with negligible probability, with so many rows."""
        return Fraction(0)

    def rank(self, noises: Sequence[Noise], confidence: Fraction) -> float | None:
        """Returns how many rows' worth the value's rank may be off; None if the margin is not a rank."""
        return None

    def expected(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> str:
        """Shows the margin to expect."""
        margin = self.predicted(noises, rows, confidence)
        if margin is not None:
            given = f" at {rows} rows in the group" if rows and self.by_rows else ""
            return f"{self.sign} {show_rounded(margin)}{given}"
        thousand = self.predicted(noises, 1000, confidence)
        return f"{self.sign} {show_rounded(thousand or 0.0)} in a group of 1000 rows (less in larger ones)"


def title_of(aggregate: Aggregate, form: str = "") -> str:
    """Shows an aggregate as people write it, in `form` (by default the function's name, as in "SUM({})")."""
    where = "" if aggregate.where is None else f" FILTER (WHERE {show_expression(aggregate.where)})"
    argument = "*" if aggregate.argument is None else show_expression(aggregate.argument)
    return (form or f"{aggregate.function.upper()}({{}})").format(argument) + where


SPREADS = ("var_samp", "var_pop", "stddev_samp", "stddev_pop")
_ADDED = frozenset(("count", "sum", "avg", "clipped", "geomean", *SPREADS))  # their measures add up rows
_DOUBT_PARTS = 64  # one part of 1 - confidence goes to the number of rows
_TINY = 10**12
_FAR = 64  # scales of noise: beyond them lies less than e^-64 of the probability


class Term(NamedTuple):
    """`weight` times cell `cell` of noise `noise`."""

    noise: int
    cell: int
    weight: Fraction


@dataclass(frozen=True)
class Linear(Reading):
    """A constant plus a weighted sum of cells.

    Margin: by the exact law of the noise if there is one term, else by the law of the weighted sum (margins.py).
    `whole`: the truth is a whole number, so the value and the margin are rounded to whole numbers. `step`: the same for
    multiples of a declared step. `parted`: units beyond max_rows add a part of their sum, so the truth is not a multiple, and
    rounding may move it by half of one. Values are computed exactly and rounded once, to the nearest double.
    `slack`: how far the grid may have moved the value. If that grows by `each` with every row, the number of rows is read from
    the terms `counted`, which take a small part of 1 - confidence (union bound).
    """

    aggregate: Aggregate
    terms: tuple[Term, ...]
    constant: Fraction = Fraction(0)
    whole: bool = False
    slack: Fraction = Fraction(0)
    each: Fraction = Fraction(0)
    counted: tuple[Term, ...] = ()
    step: Fraction | None = None
    parted: bool = False

    @property
    def unit(self) -> Fraction | None:
        """The value is shown as a multiple of it."""
        return Fraction(1) if self.whole else self.step

    def linear(self, noises: Sequence[Noise]) -> Linear:
        return self

    def values(self, noises: Sequence[Noise], noisy: Cells) -> list[Number]:
        below = math.lcm(self.constant.denominator, *(term.weight.denominator for term in self.terms))
        totals = exact_sum(self.terms, self.constant, below, noisy)
        if self.unit is None:
            return list(totals) if below == 1 else [double(Fraction(total, below)) for total in totals]
        up, down = self.unit.denominator, below * self.unit.numerator
        nearest = [(2 * total * up + down) // (2 * down) for total in totals]
        return [each * self.unit.numerator if up == 1 else double(each * self.unit) for each in nearest]

    def smallest(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> NDArray[np.float64]:
        below = math.lcm(self.constant.denominator, *(term.weight.denominator for term in self.terms))
        unit = math.gcd(*(int(each * below) for each in (self.constant, *(term.weight for term in self.terms)))) / below
        signed = self.constant < 0 or any(term.weight < 0 or noises[term.noise].of.signed for term in self.terms)
        moved = self.slack or self.each  # off its grid the truth may be anything
        return np.full(len(noisy[0]) if noisy else 1, -math.inf if signed or moved else unit)

    def half(self, noises: Sequence[Noise], confidence: Fraction) -> float:
        """Returns the margin without the grid's part; the same in every group."""
        reach = noise_reach(self.terms, noises, confidence)
        if self.unit is None:
            return reach
        return double(math.floor(reach / float(self.unit) + (1 if self.parted else 0.5)) * self.unit)

    def margins(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> list[float | None]:
        groups = len(noisy[0]) if noisy else 1
        if not self.counted:
            return [self.half(noises, confidence) + float(self.slack)] * groups
        doubt = (1 - confidence) / _DOUBT_PARTS
        rows = weighted_sum(self.counted, noisy) + noise_reach(self.counted, noises, 1 - doubt)
        wide = self.half(noises, confidence + doubt) + float(self.slack) + float(self.each) * np.maximum(rows, 0.0)
        return [float(m) for m in wide]

    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        """Returns the margin to expect; without `rows` it leaves out the part that grows with them."""
        return self.half(noises, confidence) + float(self.slack) + float(self.each) * (rows or 0)

    def largest(self, noises: Sequence[Noise], rows: int) -> Fraction:
        cells = ((abs(term.weight), noises[term.noise]) for term in self.terms)
        most = (weight * (noise.of.row * rows + math.ceil(_FAR * noise.scale)) for weight, noise in cells)
        return sum(most, abs(self.constant))

    def expected(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> str:
        each = Fraction(0) if rows else self.each  # with `rows` the grid's part is in the margin already
        grows = f", and {show_rounded(float(each))} for each row" if each else ""
        return super().expected(noises, rows, confidence) + grows

    def bounds(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> Bounds:
        value, wide = np.array(self.values(noises, noisy), float), np.array(self.margins(noises, noisy, confidence), float)
        return value - wide, value + wide


def exact_sum(terms: Sequence[Term], constant: Fraction, below: int, noisy: Cells) -> list[int]:
    """Returns `below` times the constant plus the weighted sum of cells, in each group: whole numbers."""
    totals = [int(constant * below)] * (len(noisy[0]) if noisy else 1)
    for term in terms:
        times = int(term.weight * below)
        totals = [total + times * int(v) for total, v in zip(totals, noisy[term.noise][:, term.cell].tolist(), strict=True)]
    return totals


_FEW = 6  # variables whose sum has a closed form; a step for each is little


def weighted_sum(terms: Sequence[Term], noisy: Cells) -> NDArray[np.float64]:
    """Returns the weighted sum of cells in each group."""
    total = np.zeros(len(noisy[0]) if noisy else 1)
    for term in terms:
        total += noisy[term.noise][:, term.cell].astype(np.float64) * float(term.weight)
    return total


def noise_reach(terms: Sequence[Term], noises: Sequence[Noise], confidence: Fraction) -> float:
    """Returns how far the noise of a weighted sum of cells reaches."""
    if not terms:
        return 0.0
    if len(terms) == 1:
        return float(noises[terms[0].noise].margin(confidence) * abs(terms[0].weight))
    scales = tuple(sorted(abs(float(t.weight)) * noises[t.noise].scale for t in terms))
    gaussian = noises[terms[0].noise].gaussian
    steps, law = sum(abs(float(t.weight)) for t in terms), margins.normal if gaussian else margins.laplace
    if len(terms) <= _FEW:
        return law(scales, float(confidence)) + steps
    weights, each = np.array([float(t.weight) for t in terms]), np.array([noises[t.noise].scale for t in terms])
    wide = margins.many(weights, each, float(confidence), gaussian)
    return min(wide, margins.normal(scales, float(confidence)) + steps) if gaussian else wide


@dataclass
class Collection:
    """The releases that the aggregates of one question are read from.

    `public_rows`: the number of rows if it is public; `least_rows`: a public minimum of rows in every group (1 without one).
    """

    aggregates: tuple[Aggregate, ...]
    operands: Operands
    scope: Mapping[str, Facts]
    max_rows: int
    one_row: bool = False  # each unit has one row at most
    public_rows: int | None = None
    least_rows: int = 1
    releases: list[Release] = field(default_factory=list)
    joint: dict[Expression, int] = field(default_factory=dict)  # the places of releases that hold a column's sum and count
    split: dict[Expression, tuple[int, int]] = field(default_factory=dict)  # a part's release of sums, and its first cell
    quantiles: dict[Expression, dict[Fraction, Fraction]] = field(
        default_factory=dict
    )  # columns whose quantiles are one release
    parts: dict[str, tuple[int, tuple[int, ...]]] = field(default_factory=dict)  # a count's release of parts, and its cells
    notes: list[Note] = field(default_factory=list)  # what margins leave out

    def __post_init__(self) -> None:
        names = [each.name for each in self.aggregates]
        self._lowered = dict(zip(names, self.operands.aggregates, strict=True))
        self._facts = dict(self.operands.arguments)

    @property
    def may_be_cut(self) -> bool:
        """Whether a unit may have more rows than count, so that it adds a part of its sum."""
        return not self.one_row

    def rows_that_count(self, own: Expression | None) -> Expression | None:
        """Returns the rows by whose number a unit is cut (None: all), for a measure of the rows `own`.

        They are those that any aggregate adds up. So a unit with k of them adds max_rows / k of its sum to every measure:
        quotients are cut above and below by the same factor. A row that is not in `own` counts, and adds nothing.
        """
        return self._added_rows if self.may_be_cut else own

    @cached_property
    def _added_rows(self) -> Expression | None:
        added = [self.lower(one).argument for one in self.aggregates if one.function in _ADDED]
        if any(self.counts_every_row(x) for x in added):
            return None
        return either({not_null(x) for x in added if x is not None})

    def lower(self, aggregate: Aggregate) -> Aggregate:
        """Returns the aggregate with its FILTER moved into the argument."""
        return self._lowered[aggregate.name]

    def facts(self, x: Expression) -> Facts:
        """Returns the facts of an expression."""
        if x not in self._facts:
            self._facts[x] = infer(x, self.scope)
        return self._facts[x]

    def argument(self, aggregate: Aggregate) -> Expression:
        """Returns the argument of the aggregate, with its FILTER inside."""
        argument = self.lower(aggregate).argument
        if argument is None:
            raise TypeError(f"{aggregate.function} has no argument: legality should have refused it")
        return argument

    def counts_every_row(self, x: Expression | None) -> bool:
        """Whether COUNT(x) counts every row: x is `*`, or never NULL."""
        return x is None or not self.facts(x).nullable

    def add(self, release: Release) -> int:
        """Adds the release unless an equal one is there, and returns its place among the plan's noises."""
        for place, other in enumerate(self.releases):
            if other.measure == release.measure and other.parameters == release.parameters:
                return place
        self.releases.append(release)
        return len(self.releases) - 1

    def note_bounds(self, x: Expression) -> None:
        """Notes that values are clipped to the bounds of x."""
        facts = self.facts(x)
        if facts.low is not None and facts.high is not None:
            self.note(Clipped(x, facts.low, facts.high, None if facts.whole else facts.step))

    def note(self, note: Note) -> None:
        if note not in self.notes:
            self.notes.append(note)


@dataclass(frozen=True)
class Clipped:
    """A note: values are clipped to their bounds and rounded to their declared step."""

    x: Expression
    low: Fraction
    high: Fraction
    step: Fraction | None

    def __str__(self) -> str:
        tiny = (self.high - self.low) / _TINY  # LN(x + 1) begins at 0, rounded outwards
        low, high = (show_decimal(end if abs(end) >= tiny else Fraction(0)) for end in (self.low, self.high))
        text = f"{show_expression(self.x)} is clipped to [{low}, {high}]"
        return text if self.step is None else f"{text} and rounded to steps of {show_decimal(self.step)}"


@dataclass(frozen=True)
class Rounded:
    """A note: values are rounded to a step of the planner's choice, and no count is released that would bound the error."""

    x: Expression
    step: Fraction
    moved: Fraction

    def __str__(self) -> str:
        steps, each = show_decimal(self.step), show_decimal(self.moved)
        return f"{show_expression(self.x)} is rounded to steps of {steps}, which moves a sum by at most {each} for each row"


Note = Clipped | Rounded
Reader = Callable[[Aggregate, Collection], Reading]


@dataclass(frozen=True)
class Kind:
    """A kind of release: a reader for each of its functions, and a step before all readers that finds what they can share."""

    readers: Mapping[str, Reader]
    share: Callable[[Collection], None] | None = None


def collect(kinds: Sequence[Kind], collection: Collection) -> tuple[Reading, ...]:
    """Returns the readings of all aggregates, and puts the releases they read from into the collection."""
    for kind in kinds:
        if kind.share is not None:
            kind.share(collection)
    readers = {name: reader for kind in kinds for name, reader in kind.readers.items()}
    return tuple(readers[aggregate.function](aggregate, collection) for aggregate in collection.aggregates)


def not_null(x: Expression) -> Expression:
    """Returns the condition that x is not NULL."""
    return Call("not", (Call("is_null", (x,)),))


def either(conditions: Iterable[Expression]) -> Expression:
    """Returns the condition that one of these is true, whatever their order."""
    ordered = sorted(conditions, key=show_expression)
    return Call("or", tuple(ordered)) if len(ordered) > 1 else ordered[0]


def is_whole(q: Quantised, facts: Facts) -> bool:
    """Whether sums of rows on this grid are whole numbers."""
    return facts.whole and q.low.denominator == 1 and 1 in (q.step.denominator, q.step.numerator)
