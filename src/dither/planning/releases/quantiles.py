"""Several quantiles of one column in one release: they never fall, and the price grows with the logarithm of their number.

The middle quantile is chosen first, among all rows. It cuts the rows into two parts, and the quantiles below and above it are
chosen in these, and so on: k quantiles need ceil(log2(k + 1)) levels. In the part between the quantiles of the shares l and h,
the quantile p is the one of the share (p - l) / (h - l).

    value   every step of the grid between the ends of the part, by the score of ranks.py, among the rows of the part
    cut     M of M + 1 places in the chosen step: the cut u moves floor(w u / M) of the step's weight w to the lower part, and
            the rest to the upper one; score -|d (W(<v) + w u / M) - a W|, 0 where the lower part has its share of the rows.
            Without it, all rows of one value would lie on one side, and every further quantile would be off by them

Price. Given what was chosen on earlier levels, a part's weights are whole numbers, and none falls if a unit is added: with
w the weight of a step, floor((w + e) u / M) - floor(w u / M) lies between 0 and e, and so does what is left of e. So the unit
adds m_i to part i, and the m_i of a level add up to at most m, what the unit may add to the group. That moves the scores of
part i by at most m_i max(a, d - a) (ranks.py), and the log ratios of its choice lie in a range of epsilon m_i / m. The choices
of one level are independent of each other, so their ranges add up to epsilon at most: a level costs as much as one choice,
epsilon and epsilon^2 / 8. Levels add up (adaptive composition). Replacing a unit is two such steps: one leaves, and one enters.

Margins. Each width is chosen as for a single quantile, around the chosen value, among all rows of the group. So it holds as
often.

Ranks. Let the ends of a part be off by e and f rows from the ranks of their shares. Then the rank of a value v that is off by r
rows within the part is off by at most r + (1 - p) e + p f in the group, p the share within the part: the rows of v in
the part are among all rows of v. The best cut is at most r rows off too if the target is not in v, and else half a place. The
cut is t rows worse than the best one with probability at most e^(-rate (t - a place)): the places of a step are evenly spaced,
so on each side of the best one those beyond weigh at most that share of the side. A place is at most a row, for 2^40 rows.
A value is off by more than (ln N + t) / rate with probability at most e^-t, N the number of steps. So each choice, whatever
came before it, is off by at most a number and an exponential variable, and a rank by a weighted sum of those.

Half of the price chooses widths, the same for each. Of the rest, a level gets VALUE parts for its values, and CUT parts for its
cuts unless it is the last.
Reference: Kaplan, Schnapp and Stemmer, ICML 2022, for distinct values and without margins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dither.exact.numbers import show_decimal, show_percent
from dither.mechanisms import Exponential
from dither.mechanisms.base import epsilon_words
from dither.mechanisms.selection import Peak, Runs
from dither.planning.margins import exponentials
from dither.planning.releases.base import Noise, Release
from dither.planning.releases.quantile import COVERED, FOR_MARGIN, Choice
from dither.planning.releases.ranks import rank_runs, rank_sensitivity
from dither.planning.sensitivity import Bounding
from dither.privacy.losses import ZCDP, Loss, total
from dither.query.nodes import Expression
from dither.query.show import show_expression
from dither.query.work import SCALE, Bins, Histogram, Quantised

PLACES = 1 << 40  # M
VALUE, CUT = 3, 1


@dataclass(frozen=True)
class Node:
    """One quantile: its place in the list, its level, its share within its part, and the quantiles at the part's ends."""

    place: int
    level: int
    p: Fraction
    below: int | None
    above: int | None
    lower: Node | None
    upper: Node | None

    @property
    def cuts(self) -> bool:
        """Whether its part is cut for further quantiles."""
        return self.lower is not None or self.upper is not None

    def way(self, place: int) -> Iterator[Node]:
        """Yields the nodes above the one of this place, from here on."""
        child = self.lower if place < self.place else self.upper
        if child is not None and place != self.place:
            yield self
            yield from child.way(place)

    def all(self) -> Iterator[Node]:
        """Yields this node and those under it, a node after the one above it."""
        yield self
        for child in (self.lower, self.upper):
            if child is not None:
                yield from child.all()


def tree(shares: Sequence[Fraction]) -> Node:
    """Returns the order in which the quantiles of these rising shares are chosen.

    >>> [(node.place, node.level, str(node.p)) for node in tree([Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)]).all()]
    [(1, 0, '1/2'), (0, 1, '1/5'), (2, 1, '4/5')]
    """
    ends = [*shares, Fraction(1), Fraction(0)]  # ends[len] is above all, ends[-1] below all

    def node(first: int, last: int, level: int) -> Node | None:
        if first == last:
            return None
        middle = (first + last) // 2
        low, high = ends[first - 1], ends[last]
        p = (shares[middle] - low) / (high - low)
        below, above = first - 1 if first else None, last if last < len(shares) else None
        return Node(middle, level, p, below, above, node(first, middle, level + 1), node(middle + 1, last, level + 1))

    root = node(0, len(shares), 0)
    if root is None:
        raise TypeError("a list of quantiles is not empty")
    return root


@dataclass(frozen=True, eq=False)
class Part:
    """The rows of a part, by bin, and its first and last value."""

    rows: Histogram
    low: int
    high: int

    def runs(self, p: Fraction) -> Runs:
        """Returns the scores of all values of the part."""
        return rank_runs(Histogram(self.rows.bins - self.low, self.rows.weights), p, self.high - self.low)

    def peak(self, p: Fraction, value: int) -> Peak:
        """Returns the scores of all cuts in the value, times PLACES."""
        before, own, _ = self._around(value)
        off = p.denominator * int(before.weights.sum()) - p.numerator * int(self.rows.weights.sum())
        return Peak(PLACES * off, p.denominator * own, PLACES + 1)

    def split(self, value: int, cut: int) -> tuple[Part, Part]:
        """Returns the parts below and above a cut in the value; both have rows of the value."""
        before, own, after = self._around(value)
        down = own * cut // PLACES
        lower = Histogram(np.append(before.bins, value), np.append(before.weights, down))
        upper = Histogram(np.append(value, after.bins), np.append(own - down, after.weights))
        return Part(lower, self.low, value), Part(upper, value, self.high)

    def _around(self, value: int) -> tuple[Histogram, int, Histogram]:
        bins, weights = self.rows.bins, self.rows.weights
        first, last = (int(np.searchsorted(bins, value, side=side)) for side in ("left", "right"))
        return Histogram(bins[:first], weights[:first]), int(weights[first:last].sum()), Histogram(bins[last:], weights[last:])


@dataclass(frozen=True)
class Several(Release):
    """The value of each quantile, and the width of an interval around it, in steps."""

    x: Expression
    grid: Quantised
    shares: tuple[Fraction, ...]  # rising
    max_rows: int
    allows_gaussian = False
    row = 0

    @property
    def cells(self) -> int:
        return 2 * len(self.shares)

    @property
    def empty_value(self) -> dict[int, int]:
        return {}

    @cached_property
    def root(self) -> Node:
        return tree(self.shares)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes of the tree in the order of the shares."""
        return tuple(sorted(self.root.all(), key=lambda node: node.place))

    @property
    def levels(self) -> int:
        return len(self.shares).bit_length()

    @cached_property
    def members(self) -> tuple[Choice, ...]:
        """Each quantile on its own."""
        return tuple(Choice(self.x, self.grid, p, self.max_rows) for p in self.shares)

    @property
    def _parts(self) -> Fraction:
        """What the values cost, as a multiple of one level's."""
        return Fraction(self.levels * (VALUE + CUT) - CUT, VALUE)

    @property
    def weight(self) -> float:
        """The sum of its quantiles' weights, at a price at which each level costs as much as one quantile."""
        return sum(each.weight for each in self.members) * float(self._parts) ** 2

    @cached_property
    def measure(self) -> Bins:
        return Bins(self.grid, self.max_rows)

    @property
    def parameters(self) -> dict[str, Fraction | tuple[Fraction, ...]]:
        return {"shares": self.shares, "covered": COVERED}

    @property
    def rows_per_unit(self) -> int:
        return self.max_rows

    @property
    def words(self) -> str:
        *first, last = map(show_percent, self.shares)
        return f"the {', '.join(first)} and {last} quantiles of {show_expression(self.x)}"

    @property
    def about(self) -> str:
        return f"{self.grid.steps + 1} candidates for {self.words}, in steps of {show_decimal(self.grid.step)}"

    def pure(self, epsilon: Fraction, bounding: Bounding) -> Noise:
        changes = bounding.neighbours.changes
        each = epsilon / (bounding.max_groups * changes)
        value = each * (1 - FOR_MARGIN) / self._parts
        of_widths = each * FOR_MARGIN / len(self.shares)
        own = [rank_sensitivity(node.p, self.max_rows) for node in self.nodes]
        values = tuple(Exponential(epsilon=value, sensitivity=most) for most in own)
        cuts = tuple(Exponential(epsilon=value * Fraction(CUT, VALUE), sensitivity=PLACES * most) for most in own)
        widths = tuple(Exponential(epsilon=of_widths, sensitivity=rank_sensitivity(p, self.max_rows)) for p in self.shares)
        root = values[self.root.place]
        return Levels(self, root, bounding.max_groups, changes, values=values, cuts=cuts, widths=widths)

    def gaussian(self, rho: Fraction, bounding: Bounding) -> Noise:
        raise TypeError("no noise is added to a choice")

    def draw(self, noise: Noise, exact: Sequence[Any]) -> NDArray[Any]:
        """Chooses the values in each group, and the width of an interval around each."""
        own, cells = levels(noise), []
        widths = [(member, width, member.slack(width)) for member, width in zip(self.members, own.widths, strict=True)]
        for rows in exact:
            chosen = sorted(self._choose(own, self.root, Part(Histogram.of(rows), 0, self.grid.steps)))
            for (_, value), (member, width, slack) in zip(chosen, widths, strict=True):
                cells += [value, member.draw_width(width, rows, value, slack)]
        return np.array(cells, dtype=np.int64).reshape(-1, self.cells)

    def _choose(self, noise: Levels, node: Node, part: Part) -> Iterator[tuple[int, int]]:
        """Yields the place and the value of each quantile in the part."""
        value = part.low + int(noise.values[node.place].release(part.runs(node.p)))
        yield node.place, value
        if node.cuts:
            lower, upper = part.split(value, int(noise.cuts[node.place].release(part.peak(node.p, value))))
            if node.lower is not None:
                yield from self._choose(noise, node.lower, lower)
            if node.upper is not None:
                yield from self._choose(noise, node.upper, upper)

    def relative(self, noise: Noise) -> float:
        return 2 / float(levels(noise).mechanism.epsilon * self._parts) ** 2

    def rank(self, noise: Noise, place: int, confidence: Fraction) -> float:
        """Returns how many rows the rank of one quantile may be off: by its own choice, and by those of its part's ends."""
        own, ends = levels(noise), dict[int | None, Off]()
        for node in self.root.way(place):
            off = self._off(own, node, ends)
            scale = float(own.cuts[node.place].scale / (PLACES * SCALE * node.p.denominator))
            # Two rows: a place beyond the bound, half a place, and rounding.
            ends[node.place] = Off(off.fixed + 2, {**off.means, (node.place, "cut"): scale})
        off = self._off(own, self.nodes[place], ends)
        return off.fixed + exponentials(tuple(off.means.values()), float(confidence))

    def _off(self, noise: Levels, node: Node, ends: Mapping[int | None, Off]) -> Off:
        """Returns how far the rank of a value may be off, given how far the ends of its part are."""
        scale = float(noise.values[node.place].scale / (SCALE * node.p.denominator))
        fixed, means = scale * math.log(self.grid.steps + 1), {(node.place, "value"): scale}
        for end, part in ((node.below, float(1 - node.p)), (node.above, float(node.p))):
            if end is not None:
                fixed += part * ends[end].fixed
                means |= {key: means.get(key, 0.0) + part * mean for key, mean in ends[end].means.items()}
        return Off(fixed, means)


class Off(NamedTuple):
    """How many rows a rank may be off: at most `fixed` and a sum of exponential variables, by the choices they bound."""

    fixed: float
    means: Mapping[tuple[int, str], float]


@dataclass(frozen=True)
class Levels(Noise):
    """The choices of a list of quantiles, by their places. All values of a level cost as much as one, and so do all cuts."""

    mechanism: Exponential
    values: tuple[Exponential, ...] = field(kw_only=True)
    cuts: tuple[Exponential, ...] = field(kw_only=True)
    widths: tuple[Exponential, ...] = field(kw_only=True)

    @property
    def paid(self) -> tuple[Exponential, ...]:
        """The mechanisms that are paid for: a value for each level, a cut for each but the last, and every width."""
        count = len(self.values).bit_length()
        return (self.mechanism,) * count + (self.cuts[0],) * (count - 1) + self.widths

    @cached_property
    def loss(self) -> Loss:
        return total([each.loss() for each in self.paid]).group(self.steps).repeat(self.groups)

    @cached_property
    def zcdp(self) -> ZCDP:
        return total([each.zcdp() for each in self.paid]).zcdp().group(self.steps).repeat(self.groups)

    @cached_property
    def record(self) -> dict[str, Any]:
        count = len(self.values).bit_length()
        return {**self.mechanism.record(), "levels": count, "cut": self.cuts[0].record(), "width": self.widths[0].record()}

    def explain(self, who: str) -> str:
        count = len(self.values).bit_length()
        value, cut, width = (epsilon_words(each[0].epsilon) for each in (self.values, self.cuts, self.widths))
        each = f"in each group {value} for each of {count} levels, {cut} for each cut between them"
        return f"exponential mechanism over {self.of.about}, {each}, {width} for each of {len(self.widths)} margins"


def levels(noise: Noise) -> Levels:
    if not isinstance(noise, Levels):
        raise TypeError("a list of quantiles is chosen level by level")
    return noise
