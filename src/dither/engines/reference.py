"""The reference engine: slow, obvious, pure Python. It is the specification; other engines must give its integers.

Only groups that have a row are delivered, also where keys are known (filling in the empty ones is finishing, not
counting); without keys the one group there is is always delivered.
Engines need not agree on the keyed hash, so whoever compares two of them uses questions where no choice is
needed, or hands both the same `choose`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dither.engines.prepare import check
from dither.engines.reference_rows import Bag, Row, plain, rows_of
from dither.query.catalog import Key
from dither.query.facts import double
from dither.query.functions import Cell, as_key, evaluator, kind_of
from dither.query.nodes import Expression
from dither.query.work import SCALE, UNIT, Bins, Distinct, Group, Measure, Quantised, Sums, Work
from dither.query.work import Cell as Amount

GroupKey = tuple[Key, ...]
# Which of the candidates one unit keeps: (secret, unit, candidates, how many at most) -> those kept.
Choose = Callable[[bytes, Cell, list[Any], int], list[Any]]


def keyed_choice(secret: bytes, unit: Cell, candidates: list[Any], most: int) -> list[Any]:
    """Those with the smallest keyed hash: depends on the unit's own candidates and the secret, on nothing else.

    >>> kept = keyed_choice(b"secret", 7, ["a", "b", "c"], 2)
    >>> kept == keyed_choice(b"secret", 7, ["c", "b", "a"], 2), len(kept)
    (True, 2)
    """
    key = hashlib.blake2b(secret, digest_size=32).digest()

    def place(candidate: Any) -> tuple[bytes, bytes]:
        written = repr((unit, candidate)).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(written, key=key, digest_size=16).digest(), written

    return sorted(candidates, key=place)[:most]


@dataclass(frozen=True)
class Reference:
    """Runs a Work on tables given as lists of dict rows.

    `kinds`: for each table its columns and their kinds; where left out, the columns are those of the first row.
    """

    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    kinds: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    choose: Choose = keyed_choice
    name: str = "reference"

    def schema(self, table: str) -> Mapping[str, str]:
        """Columns and kinds."""
        if table in self.kinds:
            return self.kinds[table]
        first = next(iter(self.tables[table]), {})
        return {name: kind_of(value).replace("null", "text") for name, value in first.items()}

    def prepare(self, work: Work) -> None:
        """Refuses what would fail on any rows."""
        check(work)

    def run(self, work: Work, secret: bytes) -> list[Group]:
        """The groups and their integers, in the order of first appearance."""
        bags = {name: Bag(tuple(self.schema(name)), list(rows)) for name, rows in self.tables.items()}
        members = _members(work, rows_of(work.source, bags).rows)
        if work.by_unit and work.max_groups is not None:
            members = _bounded(members, work.max_groups, secret, self.choose)
        measures = [_measure(measure, work.by_unit, secret, self.choose) for measure in work.measures]
        return [
            Group(key, len(units) if work.count_units else None, tuple(measure(units) for measure in measures))
            for key, units in members.items()
        ]


# --- who is in which group --------------------------------------------------------------------------------------

Units = dict[Any, list[Row]]


def _members(work: Work, rows: list[Row]) -> dict[GroupKey, Units]:
    """Each group's rows by unit. Without units every row is its own."""
    keys = [evaluator(key.expression) for key in work.keys]
    known = None if work.known is None else [frozenset(values) for values in work.known]
    members: dict[GroupKey, Units] = {} if work.keys else {(): {}}
    for number, row in enumerate(rows):
        unit = plain(row[UNIT]) if work.by_unit else number
        key = tuple(as_key(value(row)) for value in keys)
        if unit is None or not _is_known(key, known):
            continue
        members.setdefault(key, {}).setdefault(unit, []).append(row)
    return members


def _is_known(key: GroupKey, known: list[frozenset[Key]] | None) -> bool:
    return known is None or all(part in values for part, values in zip(key, known, strict=True))


def _bounded(members: dict[GroupKey, Units], most: int, secret: bytes, choose: Choose) -> dict[GroupKey, Units]:
    """Each unit in at most so many groups."""
    groups_of: dict[Any, list[GroupKey]] = {}
    for key, units in members.items():
        for unit in units:
            groups_of.setdefault(unit, []).append(key)
    kept: dict[GroupKey, Units] = {(): {}} if () in members else {}
    for unit, keys in groups_of.items():
        for key in choose(secret, unit, keys, most):
            kept.setdefault(key, {})[unit] = members[key][unit]
    return kept


# --- measures ---------------------------------------------------------------------------------------------------


def quantise(number: Quantised) -> Callable[[Row], int | None]:
    """q = floor((min(max(x, low), high) - low) / step + 1/2), every step in doubles, and never outside 0..steps."""
    value = evaluator(number.expression)
    low, high = double(number.low), double(number.low + number.steps * number.step)
    step = double(number.step)

    def compute(row: Row) -> int | None:
        x: Any = value(row)
        if x is None:
            return None
        clipped = min(max(double(x), low), high)
        return min(max(math.floor((clipped - low) / step + 0.5), 0), number.steps)

    return compute


def _amount(cell: Amount) -> Callable[[Row], int]:
    if cell.argument is None:
        return lambda row: cell.constant
    q_of = quantise(cell.argument)

    def compute(row: Row) -> int:
        q = q_of(row)
        return cell.null if q is None else cell.constant + cell.linear * q + cell.square * q * q

    return compute


def _measure(measure: Measure, by_unit: bool, secret: bytes, choose: Choose) -> Callable[[Units], Any]:
    if isinstance(measure, Sums):
        return _sums(measure, by_unit)
    if isinstance(measure, Bins):
        return _bins(measure, by_unit)
    return _distinct(measure, by_unit, secret, choose)


def _counted(where: Expression | None) -> Callable[[list[Row]], list[Row]]:
    if where is None:
        return list
    holds = evaluator(where)
    return lambda rows: [row for row in rows if holds(row) is True]


def _sums(measure: Sums, by_unit: bool) -> Callable[[Units], tuple[int, ...]]:
    amounts = [_amount(cell) for cell in measure.cells]
    counted = _counted(measure.where)

    def compute(units: Units) -> tuple[int, ...]:
        totals = [0] * len(amounts)
        for rows in map(counted, units.values()):
            for place, amount in enumerate(amounts):
                share = sum(map(amount, rows))
                heavy = by_unit and len(rows) > measure.max_rows
                totals[place] += math.trunc(Fraction(share * measure.max_rows, len(rows))) if heavy else share
        return tuple(totals)

    return compute


def _distinct(measure: Distinct, by_unit: bool, secret: bytes, choose: Choose) -> Callable[[Units], int]:
    value = evaluator(measure.expression)

    def compute(units: Units) -> int:
        kept: set[Cell] = set()
        for unit, rows in units.items():
            own = {plain(found) for found in map(value, rows) if found is not None}
            kept |= set(choose(secret, unit, list(own), measure.max_values)) if by_unit else own
        return len(kept)

    return compute


def _bins(measure: Bins, by_unit: bool) -> Callable[[Units], dict[int, int]]:
    q_of, counted = quantise(measure.argument), _counted(measure.where)

    def compute(units: Units) -> dict[int, int]:
        weights: dict[int, int] = {}
        for rows in map(counted, units.values()):
            found = [q for q in map(q_of, rows) if q is not None]
            heavy = by_unit and len(found) > measure.max_rows
            for q in set(found):
                share = found.count(q) * SCALE
                weights[q] = weights.get(q, 0) + (share * measure.max_rows // len(found) if heavy else share)
        return {q: weight for q, weight in sorted(weights.items()) if weight}

    return compute
