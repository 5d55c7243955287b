"""The releases of one question, collected aggregate by aggregate: aggregates that can share a release do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from dither.planning import grids
from dither.planning.releases.base import Reading, Release
from dither.query.facts import Facts
from dither.query.infer import facts as infer
from dither.query.nodes import Aggregate, Call, Expression
from dither.query.show import show_expression
from dither.query.work import Quantised


@dataclass
class Collection:
    """What the aggregates of one question are read from.

    `known`: a public number of rows, or None; `least`: a public minimum of rows in every group (1 without one).
    """

    aggregates: tuple[Aggregate, ...]
    scope: Mapping[str, Facts]
    max_rows: int
    known: int | None = None
    least: int = 1
    releases: list[Release] = field(default_factory=list)
    joint: dict[Expression, int] = field(default_factory=dict)  # the places of releases that hold a column's sum and count
    notes: list[str] = field(default_factory=list)  # what margins leave out

    def facts(self, x: Expression) -> Facts:
        return infer(x, self.scope)

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
        known = self.facts(x)
        if known.low is not None and known.high is not None:
            text = f"{show_expression(x)} is clipped to [{grids.plain(known.low)}, {grids.plain(known.high)}]"
            on_steps = known.step is not None and not known.whole
            self.note(f"{text} and rounded to steps of {grids.plain(known.step)}" if on_steps and known.step else text)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


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
