"""The reference engine: slow, simple, pure Python. It is the specification; other engines must return its integers.

Relations are bags of rows: duplicates count, and the order has no meaning. A row is a dict from column name to value.

Only groups that have a row are returned, even if keys are public (empty groups are added when the answer is finished). Without
keys the single group is always returned. Groups and values are chosen by the hash of sql/choice.py. An engine may use another
hash; to compare it, use questions that need no choice, or give both the same `choose`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from dither.catalog.values import Key
from dither.engines.base import check
from dither.engines.sql.choice import keyed_choice
from dither.query.functions.base import Cell, double, nan_to_null
from dither.query.functions.casts import as_key
from dither.query.functions.logic import comparison
from dither.query.functions.registry import evaluator, kind_of
from dither.query.nodes import (
    Aggregate,
    Compute,
    Expression,
    Filter,
    Join,
    Named,
    PerUnit,
    Relation,
    Scan,
    Semi,
    Sort,
    Union,
    Window,
    WithinUnit,
)
from dither.query.sample import is_sampled, sample_key
from dither.query.work import (
    SCALE,
    UNIT,
    Bins,
    Distinct,
    EdgeList,
    Ends,
    Group,
    Measure,
    NodeColumn,
    NodeRange,
    Quantised,
    Sums,
    Work,
)
from dither.query.work import Cell as Amount

Row = Mapping[str, Any]
Pairs = Sequence[tuple[Expression, Expression]]
_equal = comparison(operator.eq)


@dataclass(frozen=True)
class Bag:
    """Rows and the names of their columns (needed if there are no rows)."""

    columns: tuple[str, ...]
    rows: list[Row]


def rows_of(relation: Relation, tables: Mapping[str, Bag]) -> Bag:
    """Returns all rows of a relation."""
    if isinstance(relation, Scan):
        return _scan(relation, tables[relation.table])
    if isinstance(relation, Filter):
        source, holds = rows_of(relation.source, tables), evaluator(relation.condition)
        return Bag(source.columns, [row for row in source.rows if holds(row) is True])
    if isinstance(relation, Compute):
        source, parts = rows_of(relation.source, tables), _evaluators(relation.columns)
        return Bag(tuple(parts), [{name: value(row) for name, value in parts.items()} for row in source.rows])
    if isinstance(relation, Union):
        bags = [rows_of(part, tables) for part in relation.parts]
        return Bag(bags[0].columns, [row for bag in bags for row in bag.rows])
    if isinstance(relation, PerUnit):
        return _per_unit(relation, rows_of(relation.source, tables))
    if isinstance(relation, WithinUnit):
        return _within_unit(relation, rows_of(relation.source, tables))
    if isinstance(relation, Semi):
        return _semi(relation, rows_of(relation.source, tables), rows_of(relation.other, tables))
    return _join(relation, rows_of(relation.left, tables), rows_of(relation.right, tables))


def _scan(scan: Scan, table: Bag) -> Bag:
    names = {name: f"{scan.alias}.{name}" for name in table.columns}
    rows: list[Row] = [{new: nan_to_null(row[old]) for old, new in names.items()} for row in table.rows]
    return Bag(tuple(names.values()), rows)


def _evaluators(named: Sequence[Named]) -> dict[str, Callable[[Row], Cell]]:
    return {part.name: evaluator(part.expression) for part in named}


# --- partners ---------------------------------------------------------------------------------------------------


def _join(join: Join, left: Bag, right: Bag) -> Bag:
    """Pairs each left row with each of its partners; a left join pairs a row without partners with NULLs, a full one both."""
    nothing, nobody = dict.fromkeys(right.columns), dict.fromkeys(left.columns)
    rows: list[Row] = []
    matched: set[int] = set()
    for row, partners in zip(left.rows, _partners(left, right, join.equal), strict=True):
        rows += [{**row, **partner} for partner in partners]
        matched |= {id(partner) for partner in partners}
        if not partners and join.kind in ("left", "full"):
            rows.append({**row, **nothing})
    if join.kind == "full":
        rows += [{**nobody, **partner} for partner in right.rows if id(partner) not in matched]
    return Bag((*left.columns, *right.columns), rows)


def _semi(semi: Semi, source: Bag, other: Bag) -> Bag:
    matches = zip(source.rows, _partners(source, other, semi.equal), strict=True)
    if semi.listed is not None and semi.negated:
        x, y = map(evaluator, semi.listed)
        return Bag(source.columns, [row for row, partners in matches if _in_none(x(row), map(y, partners))])
    return Bag(source.columns, [row for row, partners in matches if bool(partners) != semi.negated])


def _in_none(x: Cell, others: Iterable[Cell]) -> bool:
    """Whether x NOT IN (others) is true in SQL: x and all others are not NULL, and x differs from each."""
    return all(x is not None and y is not None and not _equal(x, y) for y in others)


def _partners(left: Bag, right: Bag, equal: Pairs) -> list[list[Row]]:
    """Returns, for each left row, the right rows with which all pairs are equal. NULL equals nothing."""
    left_values = [evaluator(a) for a, _ in equal]
    right_values = [evaluator(b) for _, b in equal]
    sides = [([value(row) for value in right_values], row) for row in right.rows]
    partners = []
    for row in left.rows:
        side = [value(row) for value in left_values]
        partners.append([partner for other, partner in sides if all(map(_same, side, other))])
    return partners


def _same(x: Cell, y: Cell) -> bool:
    return x is not None and y is not None and _equal(x, y)


# --- aggregation inside one unit --------------------------------------------------------------------------------


def _per_unit(node: PerUnit, source: Bag) -> Bag:
    """Returns one row for each value of the keys, the unit among them. NULL is a value like any other here."""
    keys = _evaluators(node.keys)
    groups: dict[tuple[Cell, ...], list[Row]] = {}
    for row in source.rows:
        groups.setdefault(tuple(plain(value(row)) for value in keys.values()), []).append(row)
    rows: list[Row] = []
    for key, members in groups.items():
        sums = {aggregate.name: _aggregate(aggregate, members) for aggregate in node.aggregates}
        rows.append({**dict(zip(keys, key, strict=True)), **sums})
    return Bag((*keys, *(aggregate.name for aggregate in node.aggregates)), rows)


def plain(value: Cell) -> Cell:
    """Returns 0.0 for -0.0, so that equal values are one value."""
    return 0.0 if isinstance(value, float) and value == 0 else value


def _aggregate(aggregate: Aggregate, rows: list[Row]) -> Cell:
    if aggregate.argument is None:
        return len(rows)
    compute = evaluator(aggregate.argument)
    values = [plain(value) for value in map(compute, rows) if value is not None]
    return AGGREGATES[aggregate.function](values)


def _sum(values: list[Any]) -> Cell:
    """Returns the double nearest to the exact sum of whole numbers: it does not depend on the order."""
    whole = [number for number in map(as_key, values) if number is not None]
    return double(sum(whole)) if whole else None  # type: ignore[arg-type]


def _average(values: list[Any]) -> Cell:
    whole = [number for number in map(as_key, values) if number is not None]
    return double(sum(whole)) / len(whole) if whole else None  # type: ignore[arg-type]


AGGREGATES: Mapping[str, Callable[[list[Any]], Cell]] = {
    "count": len,
    "count_distinct": lambda values: len(set(values)),
    "sum": _sum,
    "avg": _average,
    "min": lambda values: min(values, default=None),
    "max": lambda values: max(values, default=None),
    "bool_or": lambda values: any(values) if values else None,
    "bool_and": lambda values: all(values) if values else None,
}


# --- window functions -------------------------------------------------------------------------------------------


def _within_unit(node: WithinUnit, source: Bag) -> Bag:
    """Adds the values of window functions. -0.0 becomes 0.0 first, so that rows that sort alike are alike."""
    rows: list[Row] = [{name: plain(value) for name, value in row.items()} for row in source.rows]
    found = [_window(each, rows) for each in node.windows]
    names = [each.name for each in node.windows]
    added = [{**row, **dict(zip(names, values, strict=True))} for row, *values in zip(rows, *found, strict=True)]
    return Bag((*source.columns, *names), list(added))


def _window(window: Window, rows: list[Row]) -> list[Cell]:
    """Returns the value of a window function for each row."""
    keys = [evaluator(part) for part in window.partition]
    partitions: dict[tuple[Cell, ...], list[int]] = {}
    for place, row in enumerate(rows):
        partitions.setdefault(tuple(plain(nan_to_null(key(row))) for key in keys), []).append(place)
    arguments = [evaluator(argument) for argument in window.arguments]
    values: list[Cell] = [None] * len(rows)
    for members in partitions.values():
        places = _sorted(members, [Sort(tie) for tie in window.ties], rows)
        places = _sorted(places, window.order, rows)
        orders = [_sort_key(key, rows) for key in window.order]
        peers = [tuple(order(place) for order in orders) for place in places]
        inputs = [[plain(nan_to_null(argument(rows[place]))) for argument in arguments] for place in places]
        for index, place in enumerate(places):
            values[place] = _value(window, index, inputs, peers)
    return values


def _sort_key(key: Sort, rows: list[Row]) -> Callable[[int], tuple[bool, Any]]:
    value = evaluator(key.expression)

    def order(place: int) -> tuple[bool, Any]:
        found = plain(nan_to_null(value(rows[place])))
        return ((found is None) != (key.nulls_first != key.descending), 0 if found is None else found)

    return order


def _sorted(places: list[int], order: Sequence[Sort], rows: list[Row]) -> list[int]:
    for key in reversed(order):
        places = sorted(places, key=_sort_key(key, rows), reverse=key.descending)
    return places


def _value(window: Window, index: int, inputs: list[list[Any]], peers: list[Any]) -> Any:
    first, function = peers.index(peers[index]), window.function
    if function == "row_number":
        return index + 1
    if function in ("rank", "dense_rank"):
        return first + 1 if function == "rank" else len(set(peers[: index + 1]))
    if function == "ntile":
        most, rest = divmod(len(peers), inputs[index][0])
        return index // (most + 1) + 1 if index < rest * (most + 1) else rest + (index - rest * (most + 1)) // most + 1
    if function in ("lag", "lead"):
        _, offset, default = inputs[index]
        other = index - offset if function == "lag" else index + offset
        return inputs[other][0] if 0 <= other < len(inputs) else default
    seen = inputs[_seen(window, index, peers)]
    if function in ("first_value", "last_value"):
        return None if not seen else seen[0 if function == "first_value" else -1][0]
    if not window.arguments:
        return len(seen)
    return AGGREGATES[function]([value for (value,) in seen if value is not None])


def _seen(window: Window, index: int, peers: list[Any]) -> slice:
    """Returns the places of the rows that an aggregate sees; without `rows`, all of the partition."""
    rows, size = window.rows, len(peers)
    if rows is None:
        return slice(0, size)
    first, last = index, index
    if rows.peers:
        first, last = peers.index(peers[index]), size - 1 - peers[::-1].index(peers[index])
    start = 0 if rows.start is None else max(first + rows.start, 0)
    end = size if rows.end is None else max(last + rows.end + 1, 0)
    return slice(start, max(start, end))


GroupKey = tuple[Any, ...]
# Chooses what one unit keeps: (secret, unit, candidates, how many at most) -> candidates. A candidate is a group's key, or the
# key and a value.
Choose = Callable[[bytes, Cell, list[Any], int], list[Any]]


@dataclass(frozen=True)
class Reference:
    """Runs a Work on tables given as lists of dict rows.

    `kinds`: the columns of each table and their kinds; by default those of its first row.
    """

    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    kinds: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    choose: Choose = keyed_choice
    name: str = "reference"

    def schema(self, table: str) -> Mapping[str, str]:
        """Returns columns and kinds."""
        if table in self.kinds:
            return self.kinds[table]
        first = next(iter(self.tables[table]), {})
        return {name: kind_of(value).replace("null", "text") for name, value in first.items()}

    def prepare(self, work: Work) -> None:
        """Refuses a Work that would fail on any rows."""
        check(work)

    def run(self, work: Work, secret: bytes) -> list[Group]:
        """Returns the groups and their integers, in the order of first appearance."""
        bags = {name: Bag(tuple(self.schema(name)), list(rows)) for name, rows in self.tables.items()}
        if work.edges is not None:
            return [Group((), None, (_edge_list(work.edges, rows_of(work.source, bags), bags),))]
        members = _members(work, rows_of(work.source, bags).rows, "" if work.sample is None else sample_key(secret))
        if work.by_unit and work.max_groups is not None:
            members = _bound_groups(members, work.max_groups, secret, self.choose)
        measures = [_measure(measure, work.by_unit, secret, self.choose) for measure in work.measures]
        return [
            Group(key, len(units) if work.count_units else None, tuple(measure(key, units) for measure in measures))
            for key, units in members.items()
        ]


# --- who is in which group --------------------------------------------------------------------------------------

Units = dict[Any, list[Row]]


def _members(work: Work, rows: list[Row], coins: str) -> dict[GroupKey, Units]:
    """Returns each group's rows by unit. Without units, each row is its own unit. `coins`: the key of the sample."""
    keys = [evaluator(key.expression) for key in work.keys]
    known = None if work.known is None else [frozenset(values) for values in work.known]
    members: dict[GroupKey, Units] = {} if work.keys else {(): {}}
    for number, row in enumerate(rows):
        unit = plain(row[UNIT]) if work.by_unit else number
        key = tuple((plain if work.plain else as_key)(value(row)) for value in keys)
        if unit is None or not _is_known(key, known):
            continue
        if work.sample is not None and not is_sampled(coins, unit, work.sample):
            continue
        members.setdefault(key, {}).setdefault(unit, []).append(row)
    return members


def _is_known(key: GroupKey, known: list[frozenset[Key]] | None) -> bool:
    return known is None or all(part in values for part, values in zip(key, known, strict=True))


def _bound_groups(members: dict[GroupKey, Units], most: int, secret: bytes, choose: Choose) -> dict[GroupKey, Units]:
    """Keeps each unit in at most `most` groups."""
    groups_of: dict[Any, list[GroupKey]] = {}
    for key, units in members.items():
        for unit in units:
            groups_of.setdefault(unit, []).append(key)
    bounded: dict[GroupKey, Units] = {(): {}} if () in members else {}
    for unit, keys in groups_of.items():
        for key in choose(secret, unit, keys, most):
            bounded.setdefault(key, {})[unit] = members[key][unit]
    return bounded


# --- measures ---------------------------------------------------------------------------------------------------


def quantise(number: Quantised) -> Callable[[Row], int | None]:
    """Returns q = floor((min(max(x, low), high) - low) / step + 1/2), computed in doubles and cut to 0..steps."""
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


def _measure(measure: Measure, by_unit: bool, secret: bytes, choose: Choose) -> Callable[[GroupKey, Units], Any]:
    if isinstance(measure, Sums):
        return _sums(measure, by_unit)
    if isinstance(measure, Bins):
        return _bins(measure, by_unit)
    return _distinct(measure, by_unit, secret, choose)


def _edge_list(measure: EdgeList, rows: Bag, tables: Mapping[str, Bag]) -> Ends:
    """Returns the nodes in order, and the edges between them."""
    labels: list[Any]
    group_of: dict[Any, Any] | None = None
    if isinstance(measure.nodes, NodeColumn):
        listed = [row for row in tables[measure.nodes.table].rows if row[measure.nodes.column] is not None]
        labels = sorted({row[measure.nodes.column] for row in listed})
        if measure.nodes.group is not None:
            group_of = {row[measure.nodes.column]: row[measure.nodes.group] for row in listed}
    elif isinstance(measure.nodes, NodeRange):
        labels = list(range(measure.nodes.low, measure.nodes.high + 1))
    else:
        labels = sorted(measure.nodes.labels)
    place = {label: number for number, label in enumerate(labels)}
    ends = [tuple(place.get(row[end], -1) for end in measure.ends) for row in rows.rows]
    pairs = sorted({(min(a, b), max(a, b)) for a, b in ends if min(a, b) >= 0 and a != b})
    known = list(measure.nodes.groups) if isinstance(measure.nodes, NodeColumn) else []
    groups = (
        [known.index(group_of[label]) if group_of[label] in known else -1 for label in labels] if group_of is not None else None
    )
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Ends(len(labels), array, None if groups is None else np.array(groups, dtype=np.int64))


def _row_filter(where: Expression | None) -> Callable[[list[Row]], list[Row]]:
    """Returns a function that keeps the rows for which `where` is true."""
    if where is None:
        return list
    holds = evaluator(where)
    return lambda rows: [row for row in rows if holds(row) is True]


def _sums(measure: Sums, by_unit: bool) -> Callable[[GroupKey, Units], tuple[int, ...]]:
    amounts = [_amount(cell) for cell in measure.cells]
    counted = _row_filter(measure.where)

    def compute(key: GroupKey, units: Units) -> tuple[int, ...]:
        totals = [0] * len(amounts)
        for rows in map(counted, units.values()):
            for place, amount in enumerate(amounts):
                share = sum(map(amount, rows))
                heavy = by_unit and len(rows) > measure.max_rows
                totals[place] += math.trunc(Fraction(share * measure.max_rows, len(rows))) if heavy else share
        return tuple(totals)

    return compute


def _distinct(measure: Distinct, by_unit: bool, secret: bytes, choose: Choose) -> Callable[[GroupKey, Units], int]:
    value = evaluator(measure.expression)

    def compute(key: GroupKey, units: Units) -> int:
        values: set[Cell] = set()
        for unit, rows in units.items():
            own = {plain(one) for one in map(value, rows) if one is not None}
            kept = choose(secret, unit, [(*key, one) for one in own], measure.max_values) if by_unit else []
            values |= {one for *_, one in kept} if by_unit else own
        return len(values)

    return compute


def _bins(measure: Bins, by_unit: bool) -> Callable[[GroupKey, Units], dict[int, int]]:
    q_of, counted = quantise(measure.argument), _row_filter(measure.where)

    def compute(key: GroupKey, units: Units) -> dict[int, int]:
        weights: dict[int, int] = {}
        for rows in map(counted, units.values()):
            bins = [q for q in map(q_of, rows) if q is not None]
            heavy = by_unit and len(bins) > measure.max_rows
            for q in set(bins):
                share = bins.count(q) * SCALE
                weights[q] = weights.get(q, 0) + (share * measure.max_rows // len(bins) if heavy else share)
        return {q: weight for q, weight in sorted(weights.items()) if weight}

    return compute
