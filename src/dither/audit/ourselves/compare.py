"""Compares two runs of one question: their integers against what the noise was priced for, and all the rest for equality."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.answer import Answer
from dither.audit.ourselves.observe import Observation, empty
from dither.mechanisms import Exponential, PerCoordinate
from dither.planning.plan import Plan
from dither.planning.releases.base import Noise
from dither.planning.releases.mode import Mode
from dither.planning.releases.quantile import Choice, Choices
from dither.planning.releases.quantiles import PLACES, Levels, Node, Part, Several
from dither.planning.releases.ranks import rank_scores, width_runs
from dither.planning.releases.running import Running
from dither.query.work import SCALE, Bins, Group, Histogram
from dither.stacked import Stacked

Pairs = list[tuple[Any, Any]]
Groups = Mapping[tuple[Any, ...], Group]
Number = int | Fraction


@dataclass(frozen=True)
class Move:
    """A quantity that one unit moves: how far it moved and how far it may."""

    words: str
    by: Number
    most: Number

    @property
    def share(self) -> float:
        """The move as a share of what was priced."""
        return float(Fraction(self.by) / Fraction(self.most)) if self.most else (float("inf") if self.by else 0.0)


def complaints(before: Observation, after: Observation) -> list[str]:
    """Returns the names of quantities that moved farther than one unit may move them."""
    if before.plan is None or after.plan != before.plan:
        return ["the plans differ"]
    return [moved.words for moved in moves(before, after) if moved.by > moved.most]


def moves(before: Observation, after: Observation) -> Iterator[Move]:
    """Yields every distance between the integers of two runs of one question, plan by plan."""
    if before.plan is None:
        return
    runs = zip(
        ((before.plan, before.groups), *before.others), (after.groups, *(each for _, each in after.others)), strict=False
    )
    for (plan, first), second in runs:
        yield from _plan_moves(plan, {group.key: group for group in first}, {group.key: group for group in second})


def _plan_moves(plan: Plan, left: Groups, right: Groups) -> Iterator[Move]:
    keys = list(left.keys() | right.keys())
    touched: set[Any] = set()
    for place, noise in enumerate(plan.noises):
        nothing = empty(noise.of.measure)
        pairs = [
            (left[k].measures[place] if k in left else nothing, right[k].measures[place] if k in right else nothing)
            for k in keys
        ]
        touched |= {key for key, (a, b) in zip(keys, pairs, strict=True) if a != b}
        check = _histograms if isinstance(noise.of.measure, Bins) else _sums
        yield from check(plan, noise, pairs)
        if isinstance(noise.of, Running):
            yield from _strategy(
                noise.of, noise, [dict(zip(keys, side, strict=True)) for side in zip(*pairs, strict=True)], plan
            )
    yield Move("groups moved", len(touched), plan.bounding.touched)
    units = [(left[k].units if k in left else 0, right[k].units if k in right else 0) for k in keys]
    yield from _units(plan, units)


def _sums(plan: Plan, noise: Noise, pairs: Pairs) -> Iterator[Move]:
    steps = [abs(y - x) for a, b in pairs if a != b for x, y in zip(_cells(a), _cells(b), strict=True)]
    draft, norm, bounding = noise.of, noise.mechanism.sensitivity, plan.bounding.with_max_rows(noise.of.rows_per_unit)
    if isinstance(norm, Fraction):
        raise TypeError("sums have a norm")
    total, squares = sum(steps), sum(step * step for step in steps)
    yield Move(f"{draft.words}: sum of moves", total, bounding.total(draft.row, draft.cells, draft.signed))
    yield Move(f"{draft.words}: squares of moves", squares, bounding.squares(draft.row, draft.cells, draft.signed))
    if noise.mechanism.gaussian:
        yield Move(f"{draft.words}: what was priced", squares, norm.squares(None))
    else:
        yield Move(f"{draft.words}: what was priced", total, norm.total(None))
    if isinstance(norm, PerCoordinate):
        yield Move(f"{draft.words}: one coordinate", max(steps, default=0), norm.each)
        yield Move(f"{draft.words}: coordinates", sum(step > 0 for step in steps), norm.count)


def _strategy(draft: Running, noise: Noise, sides: Sequence[Mapping[Any, Any]], plan: Plan) -> Iterator[Move]:
    """Yields the moves of the numbers that a strategy measures: noise is added to these, not to groups."""
    exact = [np.array([_cells(side.get(key, 0))[0] for key in plan.public_groups()], dtype=object) for side in sides]
    if not exact:
        return
    steps = [abs(int(each)) for each in draft.matrix.astype(object) @ (exact[0] - exact[1])]
    norm = noise.mechanism.sensitivity
    if isinstance(norm, Fraction):
        raise TypeError("sums have a norm")
    if noise.mechanism.gaussian:
        yield Move(f"{draft.words}: squares that were priced", sum(step * step for step in steps), norm.squares(None))
    else:
        yield Move(f"{draft.words}: moves that were priced", sum(steps), norm.total(None))


def _cells(value: Any) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,)


def _histograms(plan: Plan, noise: Noise, pairs: Pairs) -> Iterator[Move]:
    """Yields the moves of weights and scores in each group. Replacing a unit may move them twice as far."""
    draft, times = noise.of, plan.bounding.neighbours.changes
    if isinstance(draft, Mode):
        yield from _modes(noise, pairs, times)
        return
    if isinstance(draft, Several) and isinstance(noise, Levels):
        yield from list_moves(draft, noise, pairs, times)
        return
    if not isinstance(draft, Choice) or not isinstance(noise, Choices):
        raise TypeError("a histogram has bins, and a quantile to be asked for")
    different = [(a, b) for a, b in pairs if a != b]
    for a, b in different:
        weights = sum(abs(a.get(bin, 0) - b.get(bin, 0)) for bin in a.keys() | b.keys())
        yield Move(f"{draft.words}: weights", weights, times * draft.rows_per_unit * SCALE)
        places = _places(draft.grid.steps, a, b)
        first, second = (rank_scores(histogram, draft.p, places) for histogram in (a, b))
        yield Move(f"{draft.words}: scores", int(np.abs(first - second).max()), times * noise.mechanism.sensitivity)
        moved = _widths(draft, noise.width, a, b, places)
        yield Move(f"{draft.words}: widths", moved, times * noise.width.sensitivity)
    yield Move(f"{draft.words}: groups", len(different), noise.times)


def list_moves(draft: Several, noise: Levels, pairs: Pairs, times: int) -> Iterator[Move]:
    """Yields the moves of a list of quantiles: on each level, all parts together as far as one of them was priced for."""
    different = [(a, b) for a, b in pairs if a != b]
    for a, b in different:
        weights = sum(abs(a.get(bin, 0) - b.get(bin, 0)) for bin in a.keys() | b.keys())
        yield Move(f"{draft.words}: weights", weights, times * draft.rows_per_unit * SCALE)
        places = _places(draft.grid.steps, a, b)
        for member, width in zip(draft.members, noise.widths, strict=True):
            yield Move(f"{member.words}: widths", _widths(member, width, a, b, places), times * width.sensitivity)
        sides = [Part(Histogram.of(histogram), 0, draft.grid.steps) for histogram in (a, b)]
        for turn in range(4):
            moved: dict[tuple[str, int], Fraction] = {}
            for what, level, share in _levels(noise, draft.root, sides[0], sides[1], places, turn):
                moved[what, level] = moved.get((what, level), Fraction(0)) + share
            for (what, level), share in moved.items():
                yield Move(f"{draft.words}: {what} of level {level + 1}", share, times)
    yield Move(f"{draft.words}: groups", len(different), noise.times)


def _levels(
    noise: Levels, node: Node, one: Part, two: Part, places: NDArray[np.int64], turn: int
) -> Iterator[tuple[str, int, Fraction]]:
    """Yields the moves of each part's scores, as shares of what was priced, if values and cuts were chosen by `turn`: first a
    value whose weight moved, if there is one, then others."""
    within = places[(places >= one.low) & (places <= one.high)]
    first, second = (rank_scores(part.rows, node.p, within) for part in (one, two))
    yield "values", node.level, int(np.abs(first - second).max()) / noise.values[node.place].sensitivity
    if node.cuts:
        moved = [] if turn else [bin for bin in within.tolist() if one.rows.get(bin, 0) != two.rows.get(bin, 0)]
        value = moved[len(moved) // 2] if moved else int(within[(node.place + turn) * len(within) // (len(noise.values) + 4)])
        peaks, cut = (one.peak(node.p, value), two.peak(node.p, value)), PLACES * (turn + 1) // 5
        ends = [abs(abs(x.start + x.slope * u) - abs(y.start + y.slope * u)) for x, y in (peaks,) for u in (0, cut, PLACES)]
        yield "cuts", node.level, max(ends) / noise.cuts[node.place].sensitivity
        halves = zip((node.lower, node.upper), one.split(value, cut), two.split(value, cut), strict=True)
        for child, left, right in halves:
            if child is not None:
                yield from _levels(noise, child, left, right, places, turn)


def _modes(noise: Noise, pairs: Pairs, times: int) -> Iterator[Move]:
    """Yields the moves of the weights that choose a mode. One unit moves all of them the same way."""
    draft, norm = noise.of, noise.mechanism.sensitivity
    if not isinstance(draft, Mode) or not isinstance(norm, Fraction):
        raise TypeError("a mode is chosen by the exponential mechanism")
    different = [(draft.scores(a), draft.scores(b)) for a, b in pairs if a != b]
    for first, second in different:
        moved = second - first
        yield Move(f"{draft.words}: weights", int(np.abs(moved).sum()), times * draft.rows_per_unit * SCALE)
        yield Move(f"{draft.words}: scores", int(np.abs(moved).max()), times * norm)
        yield Move(f"{draft.words}: both ways", int(min((moved > 0).sum(), (moved < 0).sum())), draft.count if times > 1 else 0)
    yield Move(f"{draft.words}: groups", len(different), noise.times)


def _places(steps: int, a: Mapping[int, int], b: Mapping[int, int]) -> NDArray[np.int64]:
    """Returns the values between which no score changes: the occupied bins, those beside them, and both ends."""
    found = {0, steps} | {bin + beside for bin in a.keys() | b.keys() for beside in (-1, 0, 1)}
    return np.array(sorted(place for place in found if 0 <= place <= steps), dtype=np.int64)


def _widths(draft: Choice, width: Exponential, a: Mapping[int, int], b: Mapping[int, int], places: NDArray[np.int64]) -> int:
    """Returns how far the scores of widths moved, around some of the values that may have been chosen."""
    steps, slack = draft.grid.steps, draft.slack(width)
    sides = (
        [width_runs(histogram, draft.p, int(value), steps, slack).scores.tolist() for histogram in (a, b)]
        for value in places[:: max(1, len(places) // 5)]
    )
    return int(max(abs(x - y) for first, second in sides for x, y in zip(first, second, strict=True)))


def _units(plan: Plan, pairs: Pairs) -> Iterator[Move]:
    """Yields the moves of the counts that decide on keys: a unit is 1 in at most `keys_per_unit` groups."""
    if plan.threshold is not None:
        steps = [abs(b - a) for a, b in pairs]
        yield Move("a unit counts more than once for a key", max(steps, default=0), 1)
        yield Move("a unit counts for too many keys", sum(steps), plan.threshold.keys_per_unit)


# --- everything that is not a noisy number ----------------------------------------------------------------------


def channels(before: Observation, after: Observation) -> list[str]:
    """Returns the names of what differs although it must not, with the same randomness: all but the noisy numbers."""
    checks = {
        "status": before.status == after.status,
        "charge": before.charge == after.charge,
        "ledger": _unnoised(before) == _unnoised(after),
    }
    one, two = before.answer, after.answer
    if one is None or two is None:
        return [name for name, same in checks.items() if not same]
    plans = [part.plan for part in parts_of(one)]
    checks["columns"] = one.columns == two.columns
    checks["margins"] = one.margins().keys() == two.margins().keys()
    if all(plan.threshold is None for plan in plans):
        checks["keys"] = one.noisy.keys == two.noisy.keys
        checks["noise"] = before.trace.same_noise(after.trace)
        plain = all(plan.query.having is None and plan.query.limit is None and not plan.query.above for plan in plans)
        if plain and not drops_rows(one):
            checks["shape"] = len(one) == len(two)
            checks["holes"] = _holes(one.rows) == _holes(two.rows)
    return [name for name, same in checks.items() if not same]


def parts_of(answer: Answer) -> tuple[Answer, ...]:
    """Returns the answers that an answer was put together from."""
    return tuple(each for part in answer.parts for each in parts_of(part)) if isinstance(answer, Stacked) else (answer,)


def drops_rows(answer: Answer) -> bool:
    """Returns whether rows of the parts are missing: by LIMIT, or because UNION drops equal ones."""
    return isinstance(answer, Stacked) and len(answer) < sum(map(len, parts_of(answer)))


def _holes(rows: Any) -> set[Any]:
    """Counts missing values and NaN in each column, because rows may come in another order."""
    columns = zip(*rows, strict=True)
    return {(place, sum(v is None or v != v for v in column)) for place, column in enumerate(columns)}


def _unnoised(observed: Observation) -> list[dict[str, Any]]:
    """Returns the ledger entries without the noisy answer."""
    return [{name: part for name, part in body.items() if name != "payload"} for body in observed.entries]


def leaks(first: Observation, other: Observation) -> list[str]:
    """Returns the names of what differs with all mechanisms frozen to the first run. Nothing may."""
    checks = {
        "status": first.status == other.status,
        "plan": first.plan == other.plan and [plan for plan, _ in first.others] == [plan for plan, _ in other.others],
        "charge": first.charge == other.charge,
        "ledger": first.entries == other.entries,
        "noise": first.trace.same_noise(other.trace),
        "what is drawn": not other.trace.diverged,
    }
    one, two = first.answer, other.answer
    if one is not None and two is not None:
        checks["columns"] = one.columns == two.columns
        checks["keys"] = one.noisy.keys == two.noisy.keys
        checks["rows"] = _same(one.rows, two.rows)
        checks["price"] = one.price == two.price
    return [name for name, same in checks.items() if not same]


def _same(one: Any, two: Any) -> bool:
    """Tells whether two values are equal; NaN equals itself and -0 does not equal 0."""
    return repr(one) == repr(two)
