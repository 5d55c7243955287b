"""How many rows chosen bounds leave out, read from the noisy count of people that chose them (auto.py): free.

A bin has people by class of G, the number of their groups, and of M, their most rows in one of them. A person keeps at most
max_rows rows in each of max_groups groups, which are chosen at random. So of a group of k rows the person loses on average

    f(k) = k - min(k, max_rows) min(1, max_groups / G)

which grows with k and with G. One group has M rows, each other one at least `least` and at most M. So a person loses

    at least  f(M) + (G - 1) f(least)      at the lower ends of both classes
    at most   G f(M)                       at the upper ends

and keeps at least and at most what follows alike. Let L be what all people lose and K what they keep. The share L / (L + K) is
smallest where everyone loses the least and keeps the most, and largest the other way round: the interval has the lower end of
the one and the upper end of the other (estimate.py). Classes end at the candidates, so nobody up to the bounds loses anything.
Where the answer counts its rows, K is that count.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dither.planning.contributions import Classes, counted, read
from dither.planning.left_out.base import Kept, LeftOut, Part
from dither.planning.left_out.estimate import Cells, Floats, share
from dither.planning.left_out.rows import Bounds, Count, count_cells, count_of, counts_people, cutting
from dither.planning.outputs import Noisy
from dither.planning.plan import Plan
from dither.query.nodes import Aggregate
from dither.query.resolve.relations import Resolved
from dither.query.work import Work

_EXACT = Fraction(1, 10)  # of the doubt: for counts that are taken as they are
_WORTH = 4  # times the bound: "at most" is worth saying if it leaves out only people with more


class Ends(NamedTuple):
    """The lower and upper ends of each bin's classes. An open class has its lower end twice: it is beyond all bounds."""

    groups: tuple[Floats, Floats]
    rows: tuple[Floats, Floats]
    open: NDArray[np.bool_]


class Mass(NamedTuple):
    """What a person of each bin loses, and keeps."""

    lost: Floats
    kept: Floats


@dataclass(frozen=True)
class BinsPart(Part):
    """The count of people that chose the bounds, read again. `ways`: in how many ways the answer counts rows."""

    free: ClassVar[bool] = True
    classes: Classes
    last: int | None  # the number of public groups
    of: str
    bounds: Bounds
    max_rows: int
    max_groups: int
    ways: int
    least: int  # the fewest rows in a group that a person is in
    count: Count | None

    def read(self, main: tuple[Plan, Noisy], own: tuple[Plan, Noisy], confidence: Fraction, kept: Kept) -> list[LeftOut]:
        bins = read(own[1], self.classes)
        ends = self._ends([each.groups for each in bins], [each.rows for each in bins])
        few, usual, many = self._least(ends), self._middle(ends), self._most(ends)
        levels = _levels(many.lost if self.count is not None else np.where(many.lost > 0, many.lost + many.kept, 0))
        people = np.array([each.people for each in bins], dtype=np.float64)
        scale, confidence = _certain(own[0].noises[0].scale, len(people), confidence)
        scales = np.full(len(people), scale)
        counts = None if self.count is None else count_cells(self.count, *main)
        cells = [_cells(people, scales, levels, mass, counts) for mass in (few, usual, many)]
        found = share(cells[1], self._floors(levels, few), 0, confidence, ends=(cells[0], cells[2]))
        parts = self._bounds(ends, np.where(levels <= found.level, people, 0), found.estimate)
        aside = self._aside(ends, (levels > found.level) | ends.open)
        high, beyond = found.high, None
        if aside is not None:
            beyond = f"{aside} {'row' if self.of == 'rows' else 'group'}{'' if aside == 1 else 's'}"
            high = 1.0 if found.low <= 0 and aside < _WORTH * self._bound else high
        return [LeftOut(self.of, found.estimate, found.low, high, parts, beyond)]

    def _ends(self, groups: Sequence[int], rows: Sequence[int]) -> Ends:
        by_groups, open_groups = spans(self.classes.groups, self.last, 1)
        by_rows, open_rows = spans(self.classes.rows, None if self.classes.rows else 1, self.least)
        open_bins = (open_groups & (np.array(groups) == len(by_groups) - 1)) | (
            open_rows & (np.array(rows) == len(by_rows) - 1)
        )
        low_groups, high_groups = np.array([by_groups[place] for place in groups], dtype=np.float64).T
        low_rows, high_rows = np.array([by_rows[place] for place in rows], dtype=np.float64).T
        return Ends((low_groups, high_groups), (low_rows, high_rows), open_bins)

    def _mass(self, groups: Floats, most: Floats, other: Floats) -> Mass:
        """Returns the mass of people with so many groups, most rows in one of them, and other rows in the others."""
        others = groups * self.ways - 1
        kept = np.minimum(most, self.max_rows) + others * np.minimum(other, self.max_rows)
        kept = kept * np.minimum(1, self.max_groups / groups)
        return Mass(most + others * other - kept, kept)

    def _least(self, ends: Ends) -> Mass:
        """Returns the least that people lose and the most that they keep."""
        low = self._mass(ends.groups[0], ends.rows[0], np.minimum(ends.rows[0], self.least))
        groups, rows = np.minimum(ends.groups[1], self.max_groups), np.minimum(ends.rows[1], self.max_rows)
        return Mass(low.lost, groups * rows * self.ways)

    def _most(self, ends: Ends) -> Mass:
        """Returns the most that people lose and the least that they keep."""
        lowest = np.minimum(ends.rows[0], self.least)
        kept = [self._mass(groups, ends.rows[0], lowest).kept for groups in ends.groups]
        return Mass(self._mass(ends.groups[1], ends.rows[1], ends.rows[1]).lost, np.minimum(*kept))

    def _middle(self, ends: Ends) -> Mass:
        return self._mass(*self._usual(ends))

    def _usual(self, ends: Ends) -> tuple[Floats, Floats, Floats]:
        """Returns middles of the classes: most people are at the light end."""
        groups, rows = (np.sqrt(np.maximum(low, 1) * high) for low, high in (ends.groups, ends.rows))
        return groups, rows, (self.least + rows) / 2

    def _floors(self, levels: NDArray[np.int64], few: Mass) -> list[float]:
        """Returns the least share that people beyond each level lost. Any share, where the answer has the rest."""
        if self.count is not None:
            return [1.0] * (int(levels.max()) + 1)
        shares = few.lost / np.maximum(few.lost + few.kept, 1)
        return [float(shares[levels > level].min(initial=1.0)) for level in range(int(levels.max()) + 1)]

    @property
    def _bound(self) -> int:
        return self.max_rows if self.of == "rows" else self.max_groups

    def _aside(self, ends: Ends, aside: NDArray[np.bool_]) -> int | None:
        """Returns what all the people have more of whom the upper end leaves out; None if it leaves out nobody."""
        if not aside.any():
            return None
        fewest = ends.rows[0] + (ends.groups[0] * self.ways - 1) * self.least if self.of == "rows" else ends.groups[0]
        return int(fewest[aside].min()) - 1

    def _bounds(self, ends: Ends, people: Floats, estimate: float) -> tuple[tuple[str, str, float], ...]:
        """Returns each bound with its part of the estimate."""
        groups, most, other = self._usual(ends)
        whole = most + (groups * self.ways - 1) * other
        held = np.minimum(most, self.max_rows) + (groups * self.ways - 1) * np.minimum(other, self.max_rows)
        lost = {"max_rows": whole - held, "max_groups": held * (1 - np.minimum(1, self.max_groups / groups))}
        each = [max(0.0, float(lost[name] @ people)) for name, _ in self.bounds]
        total = sum(each) or 1.0
        return tuple((name, str(bound), estimate * part / total) for (name, bound), part in zip(self.bounds, each, strict=True))


def spans(ends: Sequence[int], last: int | None, least: int) -> tuple[list[tuple[int, int]], bool]:
    """Returns the lower and upper end of each class, and whether the last one is open. `last`: nobody has more.

    >>> spans((1, 2, 4), 12, 1), spans((1, 2, 4), None, 0)
    (([(1, 1), (2, 2), (3, 4), (5, 12)], False), ([(0, 1), (2, 2), (3, 4), (5, 5)], True))
    """
    whole = [(low + 1, high) for low, high in itertools.pairwise((0, *ends))]
    low = ends[-1] + 1 if ends else 1
    (first, high), *others = [*whole, (low, low if last is None else last)]
    return [(min(first, least), high), *others], last is None


def _certain(scale: float, counts: int, confidence: Fraction) -> tuple[float, Fraction]:
    """Returns no noise where all of so many counts are exact, for a tenth of the doubt; otherwise the noise as it is.

    A count with geometric noise is exact but with chance 2a / (1 + a), where a = exp(-1 / scale).

    >>> _certain(0.01, 50, Fraction(19, 20)), _certain(0.5, 50, Fraction(19, 20))
    ((0.0, Fraction(191, 200)), (0.5, Fraction(19, 20)))
    """
    less, doubt = math.exp(-1 / scale), 1 - confidence
    exact = counts * 2 * less / (1 + less) <= doubt * _EXACT
    return (0.0, confidence + doubt * _EXACT) if exact else (scale, confidence)


def _levels(size: Floats) -> NDArray[np.int64]:
    """Returns the level of each bin, from light to heavy in powers of two; -1 where nothing is lost."""
    powers = np.where(size > 0, np.ceil(np.log2(np.maximum(size, 1))), -1).astype(np.int64)
    ranks = {power: rank for rank, power in enumerate(sorted(set(powers.tolist()) - {-1}))}
    return np.array([ranks.get(power, -1) for power in powers.tolist()])


def _cells(people: Floats, scales: Floats, levels: NDArray[np.int64], mass: Mass, counts: Cells | None) -> Cells:
    ones = np.ones(len(people))
    if counts is None:
        return Cells(people, scales, levels, mass.lost, mass.lost + mass.kept, ones)
    return Cells(people, scales, levels, mass.lost, mass.lost, ones).with_cells(counts)


def bins(question: Resolved, work: Work, classes: Classes, last: int | None) -> tuple[BinsPart, ...]:
    """Returns how the count of people is read for these bounds; nothing if they cannot leave anything out."""
    bounds = cutting(question, work)
    if not bounds:
        return ()
    people = counts_people(question)
    ways = counted(work)
    of, max_rows = ("people in groups", 1) if people else ("rows", question.max_rows or 1)
    least = 1 if people or ways == (Aggregate("", "count"),) else 0
    count = count_of(question, work, max_rows)
    sizes = (max_rows, max(1, work.max_groups or 1), 1 if people else len(ways), least, count)
    last = 1 if question.one_group else last
    return (BinsPart(question, f"how many {of} were not counted", classes, last, of, bounds, *sizes),)
