"""One pair of neighbouring datasets under replay: what was found, how large a loss was seen, and what could not be said."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from dither.audit.replay.observe import NO_END, Found, Seen, Side, first_runs, uncovered
from dither.audit.replay.shifts import Group, Match, Point, Reach, cells_of, choices, delta_at, largest, match, reach
from dither.audit.replay.tape import ADDITIVE, GAUSSIAN, UNSEEN, Tape

HIDDEN = "two runs with the same noise differ: there is randomness that the adapter does not see"
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
            result.notes.append(HIDDEN)
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
        differ = [name for name, text in runs.one[0].facts.items() if runs.two[0].facts.get(name) != text]
        result.notes.append(f"noise takes part in deciding: {', '.join(differ)}")
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
        point = Point(seed, base.noise, chosen)
        found = list(_looked(one, two, point, base, delta, result))
        shared = next((each for matches in found for each in matches if each.shared), None)
        if shared is not None and _one_to_one(one, point, base, [shared.group]):
            result.found, result.epsilon = Found("shared noise", shared.shared, math.inf), math.inf
            return
        kept = [[each for each in matches if not each.shared] for matches in found]
        loss, groups = _pure(kept, sign, gained) if delta == 0 else _approximate(kept, delta)
        if loss > max(result.epsilon, beyond):
            if not _one_to_one(one, point, base, groups):
                result.notes.append("an output is no one-to-one function of its own noise alone")
                continue
            result.epsilon = loss
            if _breaks(loss, epsilon):
                result.found = Found("loss", _event(groups, loss, epsilon, delta, bool(gained)), loss)
        if not choices(base.seen):
            return  # without choices the two directions are the same search


def _signs(matches: list[Match]) -> dict[tuple[int, int], float]:
    """For each draw the direction in which moving it costs most."""
    pairs = [(cell, move) for each in matches for cell, move in zip(each.group.cells, each.moves, strict=False)]
    return {cell: -1.0 if move.shift < 0 else 1.0 for cell, move in pairs}


def _looked(one: Side, two: Side, point: Point, base: Reach, delta: float, result: Judgement) -> Iterator[list[Match]]:
    """Matches at one output after the other; where noise is far out the loss is largest."""
    first, notes = match(base, two, point)
    result.notes += notes
    result.notes += [
        f"output{each.group.paths[0]}: rounded, so its loss is not known exactly" for each in first if each.slack > 0.001
    ]
    yield first
    signs = _signs(first)
    uneven = any(not each.moves or any(abs(move.stretch - 1) > 1e-9 for move in each.moves) for each in first)
    pure_gaussian = delta == 0 and any(draw.kind == GAUSSIAN for draw in base.seen.draws)
    far = uneven or pure_gaussian or len(first) < len(base.groups) or bool(base.hidden)
    scales = {cell: scale for cell, (_, scale, _) in cells_of(base.seen).items()}
    for times in (_NEAR, _DISTANT) if far else (_NEAR,):
        for flip in (1, -1) if far else (1,):
            noise = {cell: flip * signs.get(cell, 1.0) * times * scale for cell, scale in scales.items()}
            at = reach(one, Point(point.seed, noise, point.chosen))
            yield match(at, two, Point(point.seed, at.noise, point.chosen))[0]


def _pure(found: list[list[Match]], direction: int, gained: float) -> tuple[float, list[Group]]:
    """The largest sum of losses at one output, in the direction of the choices if there are any."""
    best: tuple[float, list[Group]] = (gained, [])
    for matches in found:
        for sign in (direction,) if gained else (1, -1):
            total = gained + math.fsum(sign * each.loss - each.slack for each in matches)
            if total > best[0]:
                best = (total, [each.group for each in matches])
    return best


def _approximate(found: list[list[Match]], delta: float) -> tuple[float, list[Group]]:
    """With delta: the largest epsilon at which more than delta is left over, from how far each draw moves.

    Only groups whose draws move alike at every output that was looked at: a delta is about all outputs together.
    """
    alike: dict[tuple[str, ...], Match] = {}
    for each in (each for matches in reversed(found) for each in matches):
        known = alike.setdefault(each.group.paths, each)
        if len(known.moves) != len(each.moves) or any(
            abs(a.shift / a.scale - b.shift / b.scale) > ROUNDING or abs(a.stretch - b.stretch) > ROUNDING
            for a, b in zip(known.moves, each.moves, strict=False)
        ):
            alike[each.group.paths] = replace(known, moves=())
    kept = [each for each in alike.values() if each.moves]
    every = [move for each in kept for move in each.moves if move.size > 1e-9 or abs(move.stretch - 1) > 1e-9]
    level = largest(lambda level: delta_at(every, level) > delta * (1 + ROUNDING)) if every else 0.0
    return level, [each.group for each in kept]


def _one_to_one(one: Side, point: Point, base: Reach, groups: list[Group]) -> bool:
    """Whether outputs follow their own draws everywhere and no others: |x + noise| and a maximum do not.

    What was measured holds near one output; each draw is thrown far to both sides to see whether another one could give it.
    A draw that no output shows must not decide the scale of one that is shown, either.
    """
    cells = cells_of(base.seen)
    owner = {cell: group for group in groups for cell in group.cells}
    if any(cell not in cells for cell in owner):
        return False
    for cell, (_, scale, _) in cells.items():
        ends = [one.run(point.tape({cell: times * scale})) for times in (-100, -1, 1, 100)]
        if any(path not in end.numbers for end in ends for group in groups for path in group.paths):
            return False
        strangers = [group for group in groups if group is not owner.get(cell)]
        if any(end.numbers[path] != ends[0].numbers[path] for end in ends for group in strangers for path in group.paths):
            return False
        if cell in owner:
            if not _rises(ends, owner[cell], owner[cell].cells.index(cell)):
                return False
        elif any(cells_of(end).get(own, ("", 0.0, 0.0))[1] != cells[own][1] for end in ends for own in owner):
            return False
    return True


def _rises(ends: list[Seen], group: Group, column: int) -> bool:
    """Whether the output that the draw moves most goes one way only."""
    row = int(abs(group.slopes[:, column]).argmax())
    values = [end.numbers[group.paths[row]] for end in ends]
    steps = [float(b - a) for a, b in pairwise(values)]
    return any(steps) and all((step > 0) == (group.slopes[row, column] > 0) for step in steps if step)


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
