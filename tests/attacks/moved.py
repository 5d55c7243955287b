"""How far the integers of two tables lie apart, held against what the plan's noise was priced for."""

from __future__ import annotations

from typing import Any

import numpy as np

from attacks.paths import Seen, empty
from dither.mechanisms import Gaussian, PerCoordinate
from dither.planning.noises import Noise, rank_scores
from dither.planning.plan import Plan
from dither.query.work import SCALE, Bins

Pairs = list[tuple[Any, Any]]


def complaints(before: Seen, after: Seen) -> list[str]:
    """Everything in which the two differ by more than one unit may move it. Both were planned alike."""
    plan = before.plan
    if plan is None or after.plan != plan:
        return ["the plans differ"]
    left, right = before.integers(), after.integers()
    keys = sorted(left.keys() | right.keys(), key=repr)
    found: list[str] = []
    touched: set[Any] = set()
    for place, noise in enumerate(plan.noises):
        nothing = empty(noise.draft.measure)
        pairs = [
            (left[k].measures[place] if k in left else nothing, right[k].measures[place] if k in right else nothing)
            for k in keys
        ]
        touched |= {key for key, (a, b) in zip(keys, pairs, strict=True) if a != b}
        check = _histograms if isinstance(noise.draft.measure, Bins) else _sums
        found += [f"{noise.draft.words}: {text}" for text in check(plan, noise, pairs)]
    if len(touched) > plan.bounding.touched:
        found.append(f"{len(touched)} groups moved")
    return found + _units(plan, [(left[k].units if k in left else 0, right[k].units if k in right else 0) for k in keys])


def _sums(plan: Plan, noise: Noise, pairs: Pairs) -> list[str]:
    moves = [abs(y - x) for a, b in pairs for x, y in zip(_cells(a), _cells(b), strict=True)]
    draft, norm, bounding = noise.draft, noise.mechanism.sensitivity, plan.bounding
    total, squares = sum(moves), sum(move * move for move in moves)
    checks = {
        "sum of moves": total <= bounding.total(draft.row, draft.cells, draft.signed),
        "squares of moves": squares <= bounding.squares(draft.row, draft.cells, draft.signed),
        "what was priced": squares <= norm.squares(None)
        if isinstance(noise.mechanism, Gaussian)
        else total <= norm.total(None),
    }
    if isinstance(norm, PerCoordinate):
        checks["one coordinate"] = max(moves, default=0) <= norm.each
        checks["coordinates"] = sum(move > 0 for move in moves) <= norm.count
    return [name for name, holds in checks.items() if not holds]


def _cells(value: Any) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,)


def _histograms(plan: Plan, noise: Noise, pairs: Pairs) -> list[str]:
    """In each group: weights by what one unit may weigh, scores by their sensitivity; twice that if one is replaced."""
    measure, p, found = noise.draft.measure, noise.draft.p, []
    assert isinstance(measure, Bins)
    assert p is not None
    times = 2 if plan.bounding.replace else 1
    for a, b in pairs:
        weights = sum(abs(a.get(bin, 0) - b.get(bin, 0)) for bin in a.keys() | b.keys())
        if weights > times * plan.bounding.max_rows * SCALE:
            found.append("weights")
        first, second = (rank_scores(histogram, measure.argument.steps + 1, p) for histogram in (a, b))
        if int(np.abs(first - second).max()) > times * noise.mechanism.sensitivity:
            found.append("scores")
    moved = sum(a != b for a, b in pairs)
    if moved > noise.times:
        found.append("groups")
    return found


def _units(plan: Plan, pairs: Pairs) -> list[str]:
    """What decides on keys: a unit is one in each of at most `keys_per_unit` groups."""
    if plan.threshold is None:
        return []
    moves = [abs(b - a) for a, b in pairs]
    found = ["a unit counts more than once for a key"] if max(moves, default=0) > 1 else []
    return found + (["a unit counts for too many keys"] if sum(moves) > plan.threshold.keys_per_unit else [])


def channels(before: Seen, after: Seen) -> list[str]:
    """Everything that must be the same for both, given the same dice: all that is not a noisy number."""
    checks = {
        "status": before.status == after.status,
        "charge": before.charge == after.charge,
    }
    one, two = before.answer, after.answer
    if one is None or two is None:
        return [name for name, same in checks.items() if not same]
    plan = one.plan
    checks["columns"] = one.columns == two.columns
    checks["margins"] = one.margins().keys() == two.margins().keys()
    if plan.threshold is None:
        checks["keys"] = one.noisy.keys == two.noisy.keys
        checks["noise"] = _same_noise(before, after)
        if plan.query.having is None and plan.query.limit is None:
            checks["shape"] = len(one) == len(two)
            checks["holes"] = _holes(one.rows) == _holes(two.rows)
    return [name for name, same in checks.items() if not same]


def _holes(rows: Any) -> set[Any]:
    """How many values of each column are missing or not a number (rows may have been put into another order)."""
    columns = zip(*rows, strict=True)
    return {(place, sum(v is None or v != v for v in column)) for place, column in enumerate(columns)}


def _same_noise(before: Seen, after: Seen) -> bool:
    """Released minus exact is the same: noise never looks at the answer. (Choices draw as their scores want: it ends there.)"""
    assert before.plan is not None
    for place, noise in enumerate(before.plan.noises):
        if isinstance(noise.draft.measure, Bins):
            return True
        if not np.array_equal(_noise(before, place), _noise(after, place)):
            return False
    return True


def _noise(seen: Seen, place: int) -> Any:
    assert seen.answer is not None
    integers, nothing = seen.integers(), empty(seen.answer.plan.noises[place].draft.measure)
    exact = [_cells(integers[key].measures[place] if key in integers else nothing) for key in seen.answer.noisy.keys]
    return seen.answer.noisy.cells[place].astype(object) - np.array(exact, dtype=object)
