"""What an engine is asked for: exact whole numbers per group, after each unit was bounded. No noise, no price.

The relation in a Work is *resolved*: every private relation carries the unit as an ordinary column named UNIT, joins and
per-unit aggregations name it like any other column, and every expression is total and typed. An engine needs to know
nothing of privacy to run it.

What is computed, for every group g (a tuple of key values):

1. rows of `source` whose UNIT is NULL are dropped (if `by_unit`); rows whose key is not among `known` are dropped;
2. each unit keeps at most `max_groups` groups: those with the smallest keyed hash of (secret, unit, group), any ties broken
   in a way that depends on the unit's own rows and the secret only (None: no bound needed);
3. each measure is summed over units, every unit's share in one group being bounded as the measure says.

With by_unit False every row is its own unit: k is 1, nothing is bounded, one pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dither.catalog.values import Key
from dither.query.nodes import Expression, Named, Relation

UNIT = "#unit"


@dataclass(frozen=True)
class Quantised:
    """A number on a public grid: q = floor((min(max(x, low), high) - low) / step + 1/2), a whole number from 0 to `steps`.

    x is computed in IEEE doubles; NaN counts as NULL; -inf and inf clip. high = low + steps * step.
    """

    expression: Expression
    low: Fraction
    step: Fraction
    steps: int


@dataclass(frozen=True)
class Cell:
    """A whole number per row: constant + linear q + square q^2, or `null` where q is NULL. No argument: the constant."""

    argument: Quantised | None = None
    constant: int = 0
    linear: int = 0
    square: int = 0
    null: int = 0


@dataclass(frozen=True)
class Sums:
    """For each cell the sum over units. A unit with k counted rows in the group and row sums S gives S if k <= max_rows,
    else trunc(S * max_rows / k) (towards zero, in exact integers). Counted are the rows where `where` is true (None: all).
    """

    cells: tuple[Cell, ...]
    max_rows: int
    where: Expression | None = None


@dataclass(frozen=True)
class Distinct:
    """How many different non-NULL values the group has, each unit keeping at most `max_values` of its own by keyed hash."""

    expression: Expression
    max_values: int


@dataclass(frozen=True)
class Bins:
    """A histogram of q over 0..steps: a unit with c_b of its k counted (non-NULL) rows in bin b gives c_b * SCALE if
    k <= max_rows, else floor(c_b * max_rows * SCALE / k). Zero weights are left out.
    """

    argument: Quantised
    max_rows: int
    where: Expression | None = None


SCALE = 1 << 16
Measure = Sums | Distinct | Bins


@dataclass(frozen=True)
class Work:
    """One exact query. `known`: for each key its public values (None: keys are whatever the data has)."""

    source: Relation
    keys: tuple[Named, ...]
    known: tuple[tuple[Key, ...], ...] | None
    by_unit: bool
    max_groups: int | None
    measures: tuple[Measure, ...]
    count_units: bool = False  # also deliver the number of distinct units per group (for choosing keys)


@dataclass(frozen=True)
class Group:
    """One group's integers: for Sums a tuple with one int per cell, for Distinct an int, for Bins {bin: weight}."""

    key: tuple[Key, ...]
    units: int | None
    measures: tuple[tuple[int, ...] | int | dict[int, int], ...]
