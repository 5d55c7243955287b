"""Makes the counts of an answer consistent, for tables that are published: whole, never negative, adding up to the same total.

Among all such tables, COUNT(*) of the groups becomes the one nearest to the noisy counts (least squares): a number is taken
from every count, and what would be negative is 0. Fractions are rounded so that the total stays. A count of some of the rows
(COUNT(x), FILTER, DISTINCT) is then held between 0 and COUNT(*) of its group. Everything else is computed from these counts;
sums, means and quantiles stay as they are.

It is post-processing, and free. Margins: the truth lies within the margin of the noisy count, and is not negative. The new
margin is the distance to the farther end of that interval, so it holds with the same confidence. It is wider where a count was
moved; what is computed from counts has none. Counts near 0 come out larger on average, and large ones smaller.

Where tables are put together (grouping sets, UNION), each is made consistent by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dither.planning.intervals import is_number
from dither.planning.outputs import AsRead, Noisy, Output, Table, Value, outputs, table
from dither.planning.plan import Plan
from dither.planning.releases.base import Reading
from dither.planning.rows import Group, Source
from dither.query.nodes import FUNCTIONS


def consistent_table(plan: Plan, noisy: Noisy) -> Table:
    """Returns the answer's table computed from consistent counts."""
    return table(plan, noisy, {name: list(values) for name, values in counts(plan, noisy).items()})


def counts(plan: Plan, noisy: Noisy) -> dict[str, list[int]]:
    """Returns the consistent counts of each group, by the names of their aggregates."""
    if not noisy.keys:
        return {}
    counting = [reading for reading in plan.readings if FUNCTIONS[reading.aggregate.function].counts]
    every = next((reading for reading in counting if _counts_all(reading)), None)
    found = {} if every is None else {every.name: nearest(_whole(plan, noisy, every))}
    most = None if every is None else found[every.name]
    for reading in counting:
        if reading is not every:
            values = [max(value, 0) for value in _whole(plan, noisy, reading)]
            found[reading.name] = values if most is None else [min(pair) for pair in zip(values, most, strict=True)]
    return found


def _counts_all(reading: Reading) -> bool:
    one = reading.aggregate
    return one.function == "count" and one.argument is None and one.where is None


def _whole(plan: Plan, noisy: Noisy, reading: Reading) -> list[int]:
    return [round(value) for value in reading.values(plan.noises, noisy.cells) if isinstance(value, (int, float))]


def nearest(values: Sequence[int]) -> list[int]:
    """Returns the whole numbers, not negative and with the same sum, that are nearest to these (rounded from the nearest).

    >>> nearest([10, 5, -3]), nearest([3, 3, -1]), nearest([-1, -2])
    ([9, 3, 0], [3, 2, 0], [0, 0])
    """
    total = max(sum(values), 0)
    if not total:
        return [0] * len(values)
    taken, rest = Fraction(0), Fraction(0)
    for place, value in enumerate(sorted(values, reverse=True), start=1):
        rest += value
        if value - (rest - total) / place > 0:
            taken = (rest - total) / place
    moved = [max(value - taken, Fraction(0)) for value in values]
    found = [int(value) for value in moved]
    missing = total - sum(found)
    for place in sorted(range(len(moved)), key=lambda i: found[i] - moved[i])[:missing]:
        found[place] += 1
    return found


def consistent_margins(
    plan: Plan, noisy: Noisy, shown: Table, plain: dict[str, list[float | None]], confidence: Fraction
) -> dict[str, list[float | None]]:
    """Returns the margins of a consistent table. `plain`: the margins of the same columns as they were released."""
    margins = Consistent(plan, noisy, confidence)
    result: dict[str, list[float | None]] = {}
    for column, name in enumerate(shown.columns):
        if name not in plain:
            continue
        result[name] = []
        for place, row in enumerate(shown.rows):
            source = shown.sources[place][column] if plan.query.above else Group(column, shown.places[place])
            result[name].append(margins.of(source, row[column]))
    return result


@dataclass(frozen=True)
class Consistent:
    """The margins of values that are read from the consistent counts of a release."""

    plan: Plan
    noisy: Noisy
    confidence: Fraction

    @cached_property
    def _moved(self) -> dict[str, list[int]]:
        return counts(self.plan, self.noisy)

    @cached_property
    def _outputs(self) -> tuple[Output, ...]:
        return outputs(self.plan)

    def of(self, source: Source | None, value: Value) -> float | None:
        """Returns the margin of a value; None if it is computed from others."""
        output = self._outputs[source.output] if isinstance(source, Group) else None
        if not isinstance(output, AsRead) or not isinstance(source, Group):
            return None
        if output.reading.name in self._moved:
            return self._around(output, source.place, value)
        return output.margins(self.plan, self.noisy, {source.place: value}, self.confidence)[source.place]

    def _around(self, output: AsRead, place: int, value: Value) -> float | None:
        """Returns how far a consistent count may be from the truth: the farther end of the noisy count's interval above 0."""
        noisy_value = output.reading.values(self.plan.noises, self.noisy.cells)[place]
        wide = output.reading.margins(self.plan.noises, self.noisy.cells, self.confidence)[place]
        if wide is None or not is_number(value) or not is_number(noisy_value):
            return None
        return max(noisy_value + wide - value, value - max(noisy_value - wide, 0.0), 0.0)
