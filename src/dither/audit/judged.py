"""One pair of neighbouring datasets under replay: what was found, how large a loss was seen, and what could not be said."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from dither.audit.adapters import Tape
from dither.audit.adapters.tape import ADDITIVE, GAUSSIAN, UNSEEN
from dither.audit.losses import Move, delta_at, largest
from dither.audit.observed import NO_END, Seen, Side
from dither.audit.shifts import Group, Match, Point, Reach, cells_of, choices, match, reach
from dither.audit.steady import Found, first_runs, uncovered

ROUNDING = 1e-6  # of epsilon: losses are computed in floating point
# Scales away from zero at which densities are compared; crooked, so that an output that is whole there was rounded.
_NEAR, _DISTANT = 2.236067977, 1001.234567
_MOST_CHOICES = 16


@dataclass
class Judgement:
    """`epsilon` is a lower bound on the true one from this pair alone; `notes` say what could not be concluded."""

    found: Found | None = None
    epsilon: float = 0.0
    moved: float = 0.0  # sum of |moved location| / scale over releases at a location: declared against observed sensitivity
    notes: list[str] = field(default_factory=list)


def judge(one: Side, two: Side, epsilon: float, delta: float, seed: int, beyond: float = 0.0) -> Judgement:
    """Compares two runs in everything. Losses up to `beyond` are known already and not looked into."""
    result, runs = Judgement(), first_runs(one, two, seed)
    if runs.draws(UNSEEN):
        names = {draw.name for seen in (*runs.one, *runs.two) for draw in seen.draws if draw.kind == UNSEEN}
        result.notes.append(f"draws that cannot be set: {', '.join(sorted(names))}")
        return result
    if any(seen.facts["outcome"] == NO_END for seen in (*runs.one, *runs.two)):
        result.notes.append("a run asks for noise without end when its noise is set")
        return result
    for side, seen in ((one, runs.one[0]), (two, runs.two[0])):
        if side.run(Tape(seed)).all != seen.all:
            result.notes.append("two runs with the same noise differ: there is randomness that the adapter does not see")
            return result
    result.found = uncovered(one, two, runs, seed, (epsilon, delta))
    if result.found is not None:
        result.epsilon = result.found.epsilon
        if not _breaks(result.epsilon, epsilon):
            result.notes.append(f"{result.found.event}; too few runs to tell at this epsilon")
            result.found = None
        return result
    _frozen(one, two, runs.one[0], result, seed)
    if runs.one[0].facts != runs.two[0].facts:
        names = [name for name, text in runs.one[0].facts.items() if runs.two[0].facts.get(name) != text]
        result.notes.append(f"noise takes part in deciding: {', '.join(names)}")
    _numbers(one, two, (epsilon, delta, beyond), seed, result)
    return result


def _breaks(seen: float, claimed: float) -> bool:
    return seen > claimed + ROUNDING * max(1.0, claimed)


def _frozen(one: Side, two: Side, seen: Seen, result: Judgement, seed: int) -> None:
    """With the releases of D passed on in D′: what moved inside them, and what still differs after them."""
    placed = [draw for draw in seen.draws if draw.at is not None]
    if not placed:
        return
    other = two.run(Tape(seed, like=seen.draws))
    if [draw.kind for draw in other.draws] != [draw.kind for draw in seen.draws]:
        result.notes.append("D and D′ draw a different number of times")
        return
    for left, right in zip(seen.draws, other.draws, strict=True):
        if left.kind in ADDITIVE and left.at is not None and right.at is not None and len(left.at) == len(right.at):
            for a, b, scale in zip(left.at, right.at, left.scales, strict=True):
                result.moved += abs(float(a) - float(b)) / scale if scale and a != b else 0.0
    if len(placed) == len(seen.draws) and other.all != seen.all:
        names = [name for name, text in seen.all.items() if other.all.get(name) != text]
        result.notes.append(f"equal releases, and yet different: {', '.join(names[:4])}; try the black box on this")


# --- losses --------------------------------------------------------------------------------------------------


def _numbers(one: Side, two: Side, claim: tuple[float, float, float], seed: int, result: Judgement) -> None:
    """The largest loss over both directions, from choices and from numbers."""
    epsilon, delta, beyond = claim
    for sign in (1, -1):
        chosen, gained = _chosen(one, two, sign, seed, result)
        base = reach(one, Point(seed, {}, chosen))
        result.notes += base.hidden
        pointed = Point(seed, base.noise, chosen)
        matches = _matched(base, two, pointed, result)
        signs = _signs(matches)
        found = list(_looked(one, two, pointed, base, signs, matches, delta))
        shared = next((each for each in found if each.shared), None)
        if shared is not None and _one_to_one(one, pointed, base, shared.group):
            result.found, result.epsilon = Found("shared noise", shared.shared, math.inf), math.inf
            return
        kept = [each for each in found if not each.shared]
        loss, groups = (_pure if delta == 0 else _approximate)(kept, gained, delta)
        if loss > max(result.epsilon, beyond):
            if not all(_one_to_one(one, pointed, base, group) for group in groups):
                result.notes.append("an output is no one-to-one function of its own noise alone")
                continue
            result.epsilon = loss
            if _breaks(loss, epsilon):
                result.found = Found("loss", _event(groups, loss, epsilon, delta, bool(gained)), loss)
        if not choices(base.seen):
            return  # without choices the two directions are the same search


def _matched(at: Reach, two: Side, point: Point, result: Judgement | None) -> list[Match]:
    """Matches for all groups of one run, all with the same run on D′ to start from."""
    if not at.groups:
        return []
    there, found = reach(two, point), []
    for group in at.groups:
        other = match(at, group, two, there, point)
        if isinstance(other, Match):
            found.append(other)
        elif result is not None:
            result.notes.append(f"output{group.paths[0]}: {other}")
    return found


def _signs(matches: list[Match]) -> dict[tuple[int, int], float]:
    """For each draw the direction in which moving it costs most."""
    pairs = [(cell, move) for each in matches for cell, move in zip(each.group.cells, each.moves, strict=False)]
    return {cell: -1.0 if move.shift < 0 else 1.0 for cell, move in pairs}


def _looked(
    one: Side,
    two: Side,
    point: Point,
    base: Reach,
    signs: Mapping[tuple[int, int], float],
    first: list[Match],
    delta: float,
) -> Iterator[Match]:
    """Matches at outputs where noise is far out: there the loss is largest."""
    yield from first
    uneven = any(not each.moves or any(abs(move.stretch - 1) > 1e-9 for move in each.moves) for each in first)
    pure_gaussian = delta == 0 and any(draw.kind == GAUSSIAN for draw in base.seen.draws)
    far = uneven or pure_gaussian or len(first) < len(base.groups) or bool(base.hidden)
    for times in (_NEAR, _DISTANT) if far else (_NEAR,):
        for flip in (1, -1) if far else (1,):
            scales = {cell: scale for cell, (_, scale, _) in cells_of(base.seen).items()}
            noise = {cell: flip * signs.get(cell, 1.0) * times * scale for cell, scale in scales.items()}
            at = reach(one, Point(point.seed, noise, point.chosen))
            yield from _matched(at, two, Point(point.seed, at.noise, point.chosen), None)


def _pure(matches: list[Match], gained: float, delta: float) -> tuple[float, list[Group]]:
    """The sum over groups of the largest loss each, for the direction that has more of it."""
    totals: list[tuple[float, list[Group]]] = []
    for sign in (1, -1):
        best: dict[tuple[str, ...], tuple[float, Group]] = {}
        for each in matches:
            value = sign * each.loss - each.slack
            if value > best.get(each.group.paths, (0.0, each.group))[0]:
                best[each.group.paths] = (value, each.group)
        total = math.fsum(value for value, _ in best.values())
        totals.append((total + gained if sign > 0 or total == 0 else total, [group for _, group in best.values()]))
    return max(totals, key=lambda total: total[0])


def _approximate(matches: list[Match], gained: float, delta: float) -> tuple[float, list[Group]]:
    """With delta: the largest epsilon at which more than delta is left over, from how far each draw moves."""
    moves: dict[tuple[str, ...], tuple[Match, tuple[Move, ...]]] = {}
    for each in matches:
        if each.moves:
            moves.setdefault(each.group.paths, (each, each.moves))
    every = [move for _, group in moves.values() for move in group if move.size > 1e-9 or abs(move.stretch - 1) > 1e-9]
    found = largest(lambda level: delta_at(every, level) > delta * (1 + ROUNDING)) if every else 0.0
    return found, [each.group for each, _ in moves.values()]


def _one_to_one(one: Side, point: Point, base: Reach, group: Group) -> bool:
    """Whether the group's outputs follow their own draws everywhere and no others: |x + noise| and a maximum do not.

    What was measured holds near one output; each draw is thrown far to both sides to see whether another one could give it.
    """
    cells = cells_of(base.seen)
    if any(cell not in cells for cell in group.cells):
        return False
    for cell, (_, scale, _) in cells.items():
        ends = [one.run(point.tape({cell: times * scale})).numbers for times in (-100, -1, 1, 100)]
        if any(path not in end for end in ends for path in group.paths):
            return False
        column = group.cells.index(cell) if cell in group.cells else None
        row = 0 if column is None else int(abs(group.slopes[:, column]).argmax())
        steps = [float(b[group.paths[row]] - a[group.paths[row]]) for a, b in pairwise(ends)]
        if column is None:
            if any(end[path] != ends[0][path] for end in ends for path in group.paths):
                return False
        elif not any(steps) or any((step > 0) != (group.slopes[row, column] > 0) for step in steps if step):
            return False
    return True


def _event(groups: list[Group], loss: float, epsilon: float, delta: float, chosen: bool) -> str:
    names = [f"output{path}" for group in groups for path in group.paths] + (["the choice"] if chosen else [])
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    left = f" at delta = {delta:g}" if delta else ""
    return f"{shown}: equal noise gives outputs that cost {loss:.6g}{left} to align, and {epsilon:.6g} was claimed"


def _chosen(one: Side, two: Side, sign: int, seed: int, result: Judgement) -> tuple[dict[int, int], float]:
    """The choices that tell most, made one after the other, and the loss they bring; 0 where the output hides them."""
    chosen: dict[int, int] = {}
    gained = 0.0
    left = list(choices(one.run(Tape(seed))))[:_MOST_CHOICES]
    for place in left:
        point = Point(seed, {}, chosen)
        here, there = (choices(side.run(point.tape())).get(place) for side in (one, two))
        if here is None or there is None or len(here) != len(there) or len(here) > _MOST_CHOICES:
            result.notes.append("candidates of a choice depend on data, or are too many to try")
            return chosen, 0.0
        ratios = [sign * (a - b) if max(a, b) > -math.inf else 0.0 for a, b in zip(here, there, strict=True)]
        best = max(range(len(ratios)), key=lambda place: ratios[place])
        outputs = [str(one.run(Point(seed, {}, {**chosen, place: pick}).tape()).all) for pick in range(len(here))]
        if len(set(outputs)) < len(outputs):
            result.notes.append("the output does not tell which candidate was chosen")
            return chosen, 0.0
        chosen[place] = best
        gained += ratios[best]
    return chosen, gained
