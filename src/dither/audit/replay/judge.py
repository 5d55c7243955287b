"""Judges one pair of neighbouring datasets: what differs, how large a loss was seen, and what could not be concluded.

A pair counts as compared only if noise was drawn on both sides and aligned: an output of D was reached on D′ by noise of a
known law, or the candidates of a choice were compared. It counts as compared in full if, besides, nothing else that noise moves
is left over. An output that noise moves and no alignment covers (a truth value, the place of a maximum, a median) is noted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from dither.audit.replay.observe import NO_END, Difference, FirstRuns, Observation, Side, find_difference, first_runs
from dither.audit.replay.shifts import (
    Cell,
    Group,
    Match,
    Move,
    Point,
    Response,
    choices,
    delta_at,
    known_draws,
    largest_epsilon,
    match,
    measure_response,
)
from dither.audit.replay.tape import ADDITIVE, GAUSSIAN, UNSEEN, Tape

HIDDEN = "two runs with the same noise differ: there is randomness that the adapter does not see"
NO_NOISE = "no noise was drawn on one side or on both"
NO_RESPONSE = "noise was drawn, but no output was seen to depend on it"
ROUNDING = 1e-6  # of epsilon: losses are computed in floating point
# Scales away from zero at which densities are compared. Odd numbers: an output that is whole there was rounded.
_NEAR, _DISTANT = 2.236067977, 1001.234567
_MOST_CHOICES = 16
_PROBES = ("random", "zero", "high", "low", "wild", "wild")  # noise that shows which outputs depend on it


@dataclass
class Judgement:
    """`epsilon` is a lower bound on the true one from this pair alone; `notes` say what could not be concluded."""

    difference: Difference | None = None
    epsilon: float = 0.0
    moved: float = 0.0  # sum of |moved location| / scale over releases at a location: declared against observed sensitivity
    notes: list[str] = field(default_factory=list)
    aligned: bool = False  # noise was drawn on both sides, and the same output was found on both


def judge(one: Side, two: Side, epsilon: float, delta: float, seed: int, beyond: float = 0.0) -> Judgement:
    """Compares the two sides in everything. Losses up to `beyond` are known already and are not searched for."""
    runs = first_runs(one, two, seed)
    obstacle = _obstacle(one, two, runs, seed)
    if obstacle:
        return Judgement(notes=[obstacle])
    difference = find_difference(one, two, runs, seed, (epsilon, delta))
    if difference is not None and _breaks(difference.epsilon, epsilon):
        return Judgement(difference, difference.epsilon)
    if difference is not None:
        return Judgement(None, difference.epsilon, notes=[f"{difference.event}; too few runs to tell at this epsilon"])
    result = Judgement()
    _compare_releases(two, runs.one[0], result, seed)
    _search_losses(one, two, (epsilon, delta, beyond), seed, result)
    if not result.aligned and not result.notes:
        drawn = all(any(observed.draws for observed in side) for side in (runs.one, runs.two))
        result.notes.append(NO_RESPONSE if drawn else NO_NOISE)
    return result


def _obstacle(one: Side, two: Side, runs: FirstRuns, seed: int) -> str:
    """Returns why nothing can be concluded from replaying these two sides, or ""."""
    every = (*runs.one, *runs.two)
    if runs.have(UNSEEN):
        names = {draw.name for observed in every for draw in observed.draws if draw.kind == UNSEEN}
        return f"draws that cannot be set: {', '.join(sorted(names))}"
    if any(observed.facts["outcome"] == NO_END for observed in every):
        return "a run never stops drawing when its noise is set"
    repeats = all(side.run(Tape(seed)).all == run.all for side, run in ((one, runs.one[0]), (two, runs.two[0])))
    return "" if repeats else HIDDEN


def _breaks(shown: float, claimed: float) -> bool:
    return shown > claimed + ROUNDING * max(1.0, claimed)


def _compare_releases(two: Side, observed: Observation, result: Judgement, seed: int) -> None:
    """Runs D′ with the releases of D, and notes how far locations moved and what still differs."""
    placed = [draw for draw in observed.draws if draw.at is not None]
    if not placed:
        return
    other = two.run(Tape(seed, like=observed.draws))
    if [draw.kind for draw in other.draws] != [draw.kind for draw in observed.draws]:
        result.notes.append("D and D′ draw a different number of times")
        return
    result.moved += _location_moves(observed, other)
    if len(placed) == len(observed.draws) and other.all != observed.all:
        names = [name for name, text in observed.all.items() if other.all.get(name) != text]
        result.notes.append(f"equal releases, but different: {', '.join(names[:4])}; try the black box on this")


def _location_moves(observed: Observation, other: Observation) -> float:
    """Returns how far the locations of all releases moved, in scales."""
    total = 0.0
    for left, right in zip(observed.draws, other.draws, strict=True):
        if left.kind in ADDITIVE and left.at is not None and right.at is not None and len(left.at) == len(right.at):
            for a, b, scale in zip(left.at, right.at, left.scales, strict=True):
                total += abs(float(a) - float(b)) / scale if scale and a != b else 0.0
    return total


# --- losses --------------------------------------------------------------------------------------------------


def _search_losses(one: Side, two: Side, claim: tuple[float, float, float], seed: int, result: Judgement) -> None:
    """Records the largest loss over both directions, from choices and from numbers."""
    epsilon, delta, beyond = claim
    for sign in (1, -1):
        chosen, gained, compared = _best_choices(one, two, sign, seed, result)
        base = measure_response(one, Point(seed, {}, chosen))
        result.notes += base.hidden
        point = Point(seed, base.noise, chosen)
        matches = list(_matches(one, two, point, base, delta, result))
        impossible = next((each for at_output in matches for each in at_output if each.impossible), None)
        if impossible is not None and _is_one_to_one(one, point, base, [impossible.group]):
            result.difference, result.epsilon = Difference("shared noise", impossible.impossible, math.inf), math.inf
            return
        possible = [[each for each in at_output if not each.impossible] for at_output in matches]
        result.aligned = result.aligned or compared or any(possible)
        result.notes += _uncovered(one, two, Point(seed, {}, chosen), possible[0])
        loss, groups = _pure_loss(possible, sign, gained) if delta == 0 else _approximate_loss(possible, delta)
        if loss > max(result.epsilon, beyond):
            if not _is_one_to_one(one, point, base, groups):
                result.notes.append("an output is not a one-to-one function of its own noise")
                continue
            result.epsilon = loss
            if _breaks(loss, epsilon):
                result.difference = Difference("loss", _event(groups, loss, epsilon, delta, bool(gained)), loss)
        if not choices(base.observed):
            return  # without choices the two directions are the same search


def _uncovered(one: Side, two: Side, point: Point, matched: list[Match]) -> list[str]:
    """Returns what noise moves on either side although no alignment covers it. Choices are held fixed."""
    covered = {path for each in matched for path in each.group.paths}
    seen: dict[str, set[str]] = {}
    for side in (one, two):
        for turn, mode in enumerate(_PROBES):
            observed = side.run(Tape(point.seed + turn, mode, chosen=point.chosen))
            for name, text in observed.facts.items():
                seen.setdefault(name, set()).add(text)
            for path, value in observed.numbers.items():
                if path not in covered:
                    seen.setdefault(f"output{path}", set()).add(str(value))
    moved = [name for name, values in seen.items() if len(values) > 1]
    more = f" and {len(moved) - 4} more" if len(moved) > 4 else ""
    return [f"noise influences: {', '.join(moved[:4])}{more}"] if moved else []


def _best_choices(one: Side, two: Side, sign: int, seed: int, result: Judgement) -> tuple[dict[int, int], float, bool]:
    """Returns the choices with the largest loss, one after the other, that loss, and whether all choices were compared."""
    chosen: dict[int, int] = {}
    gained = 0.0
    places = list(choices(one.run(Tape(seed))))
    if len(places) > _MOST_CHOICES:
        result.notes.append(f"{len(places)} choices are too many to try")
    for place in places[:_MOST_CHOICES]:
        point = Point(seed, {}, chosen)
        here, there = (choices(side.run(point.tape())).get(place) for side in (one, two))
        if here is None or there is None or len(here) != len(there) or len(here) > _MOST_CHOICES:
            result.notes.append("candidates of a choice depend on data, or are too many to try")
            return chosen, 0.0, False
        ratios = [sign * (a - b) if max(a, b) > -math.inf else 0.0 for a, b in zip(here, there, strict=True)]
        best = max(range(len(ratios)), key=lambda candidate: ratios[candidate])
        outputs = [str(one.run(Point(seed, {}, {**chosen, place: pick}).tape()).all) for pick in range(len(here))]
        if len(set(outputs)) < len(outputs):
            result.notes.append("the output does not show which candidate was chosen")
            return chosen, 0.0, False
        chosen[place] = best
        gained += ratios[best]
    return chosen, gained, bool(places)


def _matches(one: Side, two: Side, point: Point, base: Response, delta: float, result: Judgement) -> Iterator[list[Match]]:
    """Yields the matches at one output after the other, the recorded one first."""
    first, notes = match(base, two, point)
    result.notes += notes
    result.notes += [
        f"output{each.group.paths[0]}: rounded, so its loss is not known exactly" for each in first if each.slack > 0.001
    ]
    yield first
    for noise in _further_noise(base, first, delta):
        response = measure_response(one, Point(point.seed, noise, point.chosen))
        yield match(response, two, Point(point.seed, response.noise, point.chosen))[0]


def _further_noise(base: Response, first: list[Match], delta: float) -> Iterator[dict[Cell, float]]:
    """Yields noise farther out, where losses are larger: each draw in the direction in which moving it costs most."""
    pairs = [(cell, move) for each in first for cell, move in zip(each.group.cells, each.moves, strict=False)]
    signs = {cell: -1.0 if move.shift < 0 else 1.0 for cell, move in pairs}
    scales = {cell: draw.scale for cell, draw in known_draws(base.observed).items()}
    uneven = any(not each.moves or any(abs(move.stretch - 1) > 1e-9 for move in each.moves) for each in first)
    pure_gaussian = delta == 0 and any(draw.kind == GAUSSIAN for draw in base.observed.draws)
    far = uneven or pure_gaussian or len(first) < len(base.groups) or bool(base.hidden)
    for times in (_NEAR, _DISTANT) if far else (_NEAR,):
        for flip in (1, -1) if far else (1,):
            yield {cell: flip * signs.get(cell, 1.0) * times * scale for cell, scale in scales.items()}


def _pure_loss(matches: list[list[Match]], direction: int, gained: float) -> tuple[float, list[Group]]:
    """Returns the largest sum of losses at one output, in the direction of the choices if there are any."""
    best: tuple[float, list[Group]] = (gained, [])
    for at_output in matches:
        for sign in (direction,) if gained else (1, -1):
            total = gained + math.fsum(sign * each.loss - each.slack for each in at_output)
            if total > best[0]:
                best = (total, [each.group for each in at_output])
    return best


def _approximate_loss(matches: list[list[Match]], delta: float) -> tuple[float, list[Group]]:
    """Returns the largest epsilon at which more than delta is left over, from how far each draw moves.

    Takes only groups whose draws move alike at every output that was tried: a delta is about all outputs together.
    """
    alike: dict[tuple[str, ...], Match] = {}
    for each in (each for at_output in reversed(matches) for each in at_output):
        known = alike.setdefault(each.group.paths, each)
        if not _move_alike(known.moves, each.moves):
            alike[each.group.paths] = replace(known, moves=())
    usable = [each for each in alike.values() if each.moves]
    moves = [move for each in usable for move in each.moves if move.size > 1e-9 or abs(move.stretch - 1) > 1e-9]
    level = largest_epsilon(lambda level: delta_at(moves, level) > delta * (1 + ROUNDING)) if moves else 0.0
    return level, [each.group for each in usable]


def _move_alike(one: tuple[Move, ...], two: tuple[Move, ...]) -> bool:
    return len(one) == len(two) and not any(
        abs(a.shift / a.scale - b.shift / b.scale) > ROUNDING or abs(a.stretch - b.stretch) > ROUNDING
        for a, b in zip(one, two, strict=True)
    )


def _is_one_to_one(one: Side, point: Point, base: Response, groups: list[Group]) -> bool:
    """Tells whether outputs follow their own draws everywhere and no others: |x + noise| and a maximum do not.

    Slopes hold near one output only. So each draw is moved far to both sides, to see whether other noise gives the same
    output. A draw that no output shows must not decide the scale of one that is shown, either.
    """
    known = known_draws(base.observed)
    owner = {cell: group for group in groups for cell in group.cells}
    if any(cell not in known for cell in owner):
        return False
    for cell, draw in known.items():
        ends = [one.run(point.tape({cell: times * draw.scale})) for times in (-100, -1, 1, 100)]
        if not _others_stay(ends, [group for group in groups if group is not owner.get(cell)], groups):
            return False
        if cell in owner and not _is_monotone(ends, owner[cell], owner[cell].cells.index(cell)):
            return False
        if cell not in owner and not _scales_stay(ends, {own: known[own].scale for own in owner}):
            return False
    return True


def _others_stay(ends: list[Observation], others: list[Group], groups: list[Group]) -> bool:
    """Tells whether all outputs are there at each of the ends, and those of other groups do not change."""
    if any(path not in end.numbers for end in ends for group in groups for path in group.paths):
        return False
    return all(end.numbers[path] == ends[0].numbers[path] for end in ends for group in others for path in group.paths)


def _scales_stay(ends: list[Observation], scales: dict[Cell, float]) -> bool:
    draws = [known_draws(end) for end in ends]
    return all(cell in known and known[cell].scale == scale for known in draws for cell, scale in scales.items())


def _is_monotone(ends: list[Observation], group: Group, column: int) -> bool:
    """Tells whether the output that the draw moves most goes one way only."""
    row = int(abs(group.slopes[:, column]).argmax())
    values = [end.numbers[group.paths[row]] for end in ends]
    steps = [float(b - a) for a, b in pairwise(values)]
    return any(steps) and all((step > 0) == (group.slopes[row, column] > 0) for step in steps if step)


def _event(groups: list[Group], loss: float, epsilon: float, delta: float, chosen: bool) -> str:
    names = [f"output{path}" for group in groups for path in group.paths] + (["the choice"] if chosen else [])
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    left = f" at delta = {delta:g}" if delta else ""
    return f"{shown}: the same output has a loss of {loss:.6g}{left}, and {epsilon:.6g} was claimed"
