"""The releases of one question, collected aggregate by aggregate: aggregates that can share a release do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from dither.exact.numbers import decimal
from dither.planning.releases.base import Reading, Release
from dither.query.facts import Facts
from dither.query.infer import facts as infer
from dither.query.nodes import Aggregate, Call, Expression
from dither.query.resolve import Operands
from dither.query.show import show_expression
from dither.query.work import Quantised


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
