"""What a draw's law says about two runs that gave the same output: log densities, and lower bounds on delta.

For pure claims the log ratio of the two densities at one output is a lower bound on the true epsilon. With delta > 0 one
output proves nothing, so the probability of many is counted: of Laplace draws the far half of each (probability 1/2, loss
|shift| / scale), of Gaussian ones all, by the analytic formula (Balle and Wang, ICML 2018), and of a single draw whose scale
depends on data the tails.

How the noise of a run must move so that D′ gives the output that D gave, and what that move costs.

    output = g(D, n),  output = g(D′, n′)      loss = ln p(n) - ln p′(n′) + ln |det dg′/dn′| - ln |det dg/dn|

This is the log ratio of the two densities at that output: a lower bound on epsilon, with no sampling. It needs every draw to
be visible: as many independent outputs as draws in a group of outputs that share draws. A group that hides draws (the place
of a noisy maximum, a noisy sum over a noisy count) is left out, which keeps the bound true, and it is said. Slopes are
measured by running, at the output itself and on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.audit.replay.observe import Seen, Side
from dither.audit.replay.tape import ADDITIVE, CHOICE, GAUSSIAN, GEOMETRIC, RAW, UNIFORM, Tape

_STEPS = (0.0, 0.5, *(float(k) for k in range(1, 11)), 14.0, 20.0, 30.0, 45.0, 60.0)


def log_density(kind: str, noise: float, scale: float) -> float:
    """Natural logarithm; of the probability for whole-number noise."""
    if kind == GAUSSIAN:
        return -0.5 * (noise / scale) ** 2 - math.log(scale) - 0.5 * math.log(2 * math.pi)
    if kind == GEOMETRIC:
        return -abs(noise) / scale + math.log(math.tanh(0.5 / scale))
    return -abs(noise) / scale - math.log(2 * scale)


def above(kind: str, noise: float, scale: float) -> float:
    """Pr[draw >= noise]."""
    if kind == GAUSSIAN:
        return 0.5 * math.erfc(noise / scale / math.sqrt(2))
    if kind == GEOMETRIC:
        # math.ceil would turn 2.9999999999 into 3 and 3.0000000001 into 4: whole numbers are meant.
        whole, ratio = round(noise), math.exp(-1 / scale)
        tail = ratio ** abs(whole if whole > 0 else 1 - whole) / (1 + ratio)
        return tail if whole > 0 else 1 - tail
    half = 0.5 * math.exp(-abs(noise) / scale)
    return half if noise >= 0 else 1 - half


@dataclass(frozen=True)
class Move:
    """How far one draw's noise must move to give the same output on D′; `stretch` is the scale's ratio, 1 if it stays."""

    kind: str
    scale: float
    shift: float
    stretch: float = 1.0

    @property
    def size(self) -> float:
        return abs(self.shift) / self.scale


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Of two normal laws mu standard deviations apart.

    >>> round(gaussian_delta(4.3771780957, 1.0), 8)
    1e-05
    """
    if mu <= 0:
        return max(0.0, -math.expm1(epsilon)) if epsilon < 0 else 0.0
    first = 0.5 * math.erfc((epsilon / mu - mu / 2) / math.sqrt(2))
    other = 0.5 * math.erfc((epsilon / mu + mu / 2) / math.sqrt(2))
    return max(0.0, first - (math.exp(min(epsilon, 700.0)) * other if other else 0.0))


def delta_at(moves: Sequence[Move], epsilon: float) -> float:
    """A lower bound on the true delta at that epsilon, given all outputs are seen."""
    same = [move for move in moves if abs(move.stretch - 1) < 1e-9]
    mu = math.sqrt(math.fsum(move.size**2 for move in same if move.kind == GAUSSIAN))
    sizes = sorted((move.size for move in same if move.kind != GAUSSIAN), reverse=True)
    best, loss = gaussian_delta(epsilon, mu), 0.0
    for count, size in enumerate(sizes, 1):
        loss += size
        best = max(best, 0.5**count * gaussian_delta(epsilon - loss, mu))
    real = max((move.size for move in same if move.kind not in (GAUSSIAN, GEOMETRIC)), default=0.0)
    best = max(best, -math.expm1((epsilon - real) / 2))  # a single Laplace draw, exactly
    return max([best, *(_tails(move, epsilon) for move in moves if abs(move.stretch - 1) >= 1e-9)])


def _tails(move: Move, epsilon: float) -> float:
    """The best tail for one draw: beyond t scales, on either side, for either dataset."""
    if move.kind == GEOMETRIC:
        return 0.0  # its tails lie on a grid that a stretched law does not share
    best = 0.0
    for sign in (1, -1):
        for step in (*_STEPS, *(-step for step in _STEPS)):
            here = step * move.scale
            there = here / move.stretch + sign * move.shift
            first, other = above(move.kind, here, move.scale), above(move.kind, there, move.scale)
            grown = math.exp(min(epsilon, 700.0))
            best = max(best, first - grown * other, other - grown * first)
    return best


def largest(holds: Callable[[float], bool], top: float = 60.0) -> float:
    """The largest epsilon up to `top` for which `holds`, given that it stops holding once and for all; 0 if none.

    >>> round(largest(lambda x: x < 1.25), 6)
    1.25
    """
    if not holds(0.0):
        return 0.0
    low, high = 0.0, top
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


Cell = tuple[int, int]  # a value of a draw: the draw's place in the run, and the place in the draw
MOST_CELLS = 40
_TIGHT = 1e-6


@dataclass(frozen=True)
class Group:
    """Outputs that share draws. `slopes[path][cell]` is how the output moves with the noise."""

    paths: tuple[str, ...]
    cells: tuple[Cell, ...]
    slopes: NDArray[np.float64]  # a row for each path, a column for each cell


@dataclass(frozen=True)
class Reach:
    """A run with all its noise known, and which output moves with which draw."""

    seen: Seen
    noise: Mapping[Cell, float]
    groups: tuple[Group, ...]
    hidden: tuple[str, ...]  # why outputs were left out


@dataclass(frozen=True)
class Point:
    """Where to look: a seed, noise that is set, and choices that are set."""

    seed: int
    noise: Mapping[Cell, float] = field(default_factory=dict)
    chosen: Mapping[int, int] = field(default_factory=dict)

    def tape(self, moved: Mapping[Cell, float] | None = None, again: frozenset[int] = frozenset()) -> Tape:
        return Tape(self.seed, moved={**self.noise, **(moved or {})}, chosen=self.chosen, again=again)


def cells_of(seen: Seen) -> dict[Cell, tuple[str, float, float]]:
    """Kind, scale and noise of every value of known law that has noise at all."""
    return {
        (place, index): (draw.kind, scale, draw.noise[index])
        for place, draw in enumerate(seen.draws)
        if draw.kind in ADDITIVE
        for index, scale in enumerate(draw.scales)
        if 0 < scale < math.inf
    }


def reach(side: Side, point: Point) -> Reach:
    """Runs the side at that point and once up and once down for each draw."""
    seen = side.run(point.tape())
    cells = cells_of(seen)
    noise = {cell: value for cell, (_, _, value) in cells.items()}
    if len(cells) > MOST_CELLS:
        return Reach(seen, noise, (), (f"{len(cells)} draws are more than are tried one by one",))
    fixed = Point(point.seed, noise, point.chosen)
    slopes: dict[str, dict[Cell, float]] = {path: {} for path in seen.numbers}
    blurred: dict[str, str] = {}
    for cell, (_, scale, value) in cells.items():
        step = max(1.0, float(round(scale))) if _whole(seen) else scale
        up, down = (side.run(fixed.tape({cell: value + sign * step})) for sign in (1, -1))
        _note(seen, up, down, cell, step, slopes, blurred)
    for place, draw in enumerate(seen.draws):
        if draw.kind in (RAW, UNIFORM):
            other = side.run(fixed.tape(again=frozenset({place})))
            changed = [path for path, value in seen.numbers.items() if other.numbers.get(path) != value]
            blurred.update(dict.fromkeys(changed, f"it depends on a draw of unknown law ({draw.name})"))
    groups, hidden = _groups(slopes, blurred)
    return Reach(seen, noise, groups, hidden)


def _whole(seen: Seen) -> bool:
    return bool(seen.numbers) and all(value.denominator == 1 for value in seen.numbers.values())


def _note(
    seen: Seen, up: Seen, down: Seen, cell: Cell, step: float, slopes: dict[str, dict[Cell, float]], blurred: dict[str, str]
) -> None:
    for path, value in seen.numbers.items():
        if path not in up.numbers or path not in down.numbers:
            blurred[path] = "noise decides whether it is there"
            slopes[path][cell] = 1.0
            continue
        over, under = float(up.numbers[path] - value) / step, float(value - down.numbers[path]) / step
        if over or under:
            slopes[path][cell] = over
            rounding = 8 * _ulp(value, up.numbers[path], down.numbers[path]) / step
            if abs(over - under) > _TIGHT * abs(over) + rounding or not over:
                blurred[path] = "it is not a straight function of the noise there"


def _ulp(*values: Fraction) -> float:
    return max(math.ulp(float(value)) for value in values)


def _groups(slopes: dict[str, dict[Cell, float]], blurred: dict[str, str]) -> tuple[tuple[Group, ...], tuple[str, ...]]:
    """Outputs that share draws, directly or through others; those whose draws are all visible."""
    left = {path: set(cells) for path, cells in slopes.items() if cells}
    groups, hidden = [], [f"output{path}: {why}" for path, why in blurred.items() if not slopes[path]]
    while left:
        path, cells = left.popitem()
        paths, grown = [path], True
        while grown:
            joined = [other for other, more in left.items() if more & cells]
            grown = bool(joined)
            for other in joined:
                cells |= left.pop(other)
                paths.append(other)
        order = tuple(sorted(cells))
        matrix = np.array([[slopes[path].get(cell, 0.0) for cell in order] for path in sorted(paths)])
        why = next((f"output{path}: {blurred[path]}" for path in sorted(paths) if path in blurred), "")
        if not why and len(_pivots(matrix)) < len(order):
            why = f"output{sorted(paths)[0]}: {len(order)} draws behind {len(paths)} numbers"
        if why:
            hidden.append(why)
        else:
            groups.append(Group(tuple(sorted(paths)), order, matrix))
    return tuple(groups), tuple(hidden)


# --- from D to D′ ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Match:
    """D′ gave the same output: at what loss, how exactly that is known, and how the noise moved.

    `shared` says why no noise at all does it, which is an infinite loss.
    """

    group: Group
    loss: float
    slack: float
    moves: tuple[Move, ...]
    shared: str = ""


def match(one: Reach, two: Side, point: Point) -> tuple[list[Match], list[str]]:
    """The same output on D′ for all groups at once, and why there is none to be had of some.

    At once, because what one release shows may decide the scale of the next: scales are compared at equal releases.
    """
    there = reach(two, point)
    known = {group.paths: group for group in there.groups}
    pairs = [(group, known[group.paths]) for group in one.groups if group.paths in known]
    why = next(iter(there.hidden), "the outputs hang together in another way on D′")
    notes = [f"output{group.paths[0]}: {why}" for group in one.groups if group.paths not in known]
    noise, seen = dict(there.noise), there.seen
    for _ in range(3):
        moved = False
        for group, other in pairs:
            rows = _pivots(other.slopes)
            step = np.linalg.solve(other.slopes[rows], _gaps(one.seen, seen, group)[rows])
            moved = moved or bool(step.any())
            noise.update({cell: noise[cell] + float(move) for cell, move in zip(other.cells, step, strict=True)})
        if not moved:
            break
        seen = two.run(Point(point.seed, noise, point.chosen).tape())
        if any(path not in seen.numbers for group, _ in pairs for path in group.paths):
            return [], [*notes, "moving the noise on D′ made an output vanish"]
    judged = [_judged(one, group, other, _pivots(other.slopes), noise, seen) for group, other in pairs]
    return [each for each in judged if isinstance(each, Match)], notes + [each for each in judged if isinstance(each, str)]


def _gaps(one: Seen, two: Seen, group: Group) -> NDArray[np.float64]:
    return np.array([float(one.numbers[path] - two.numbers[path]) for path in group.paths])


def _judged(one: Reach, group: Group, other: Group, rows: list[int], noise: dict[Cell, float], seen: Seen) -> Match | str:
    here, there = cells_of(one.seen), cells_of(seen)
    if any(cell not in there for cell in other.cells) or len(group.cells) != len(other.cells):
        return "D and D′ draw a different number of times for one output"
    reachable = np.abs(other.slopes) @ np.array([there[cell][1] for cell in other.cells])
    gaps = np.abs(_gaps(one.seen, seen, group))
    whole = {there[cell][0] == GEOMETRIC for cell in other.cells} | {here[cell][0] == GEOMETRIC for cell in group.cells}
    apart = [place for place in range(len(gaps)) if gaps[place] > 1e-3 * reachable[place]]
    if apart:
        return _no_noise(group, rows, apart, noise, there, other, whole)
    if len(whole) > 1:
        return "whole-number and real noise in one output"
    ulps = max(_ulp(one.seen.numbers[path], seen.numbers[path]) for path in group.paths)
    least = min(abs(other.slopes[other.slopes != 0]).min(), abs(group.slopes[group.slopes != 0]).min())
    narrow = min(value[1] for value in (*(there[cell] for cell in other.cells), *(here[cell] for cell in group.cells)))
    grain = 1.0 if whole == {False} and _whole(one.seen) else 0.0
    slack = len(group.cells) * (float(gaps.max()) + 8 * ulps + grain) / (least * narrow)
    loss = math.fsum(log_density(kind, value, scale) for kind, scale, value in (here[cell] for cell in group.cells))
    loss -= math.fsum(log_density(there[cell][0], noise[cell], there[cell][1]) for cell in other.cells)
    if whole == {False}:
        loss += _log_det(other.slopes[rows]) - _log_det(group.slopes[rows])
    return Match(group, loss, slack, _moves(group, other, here, there, noise))


def _no_noise(
    group: Group, rows: list[int], apart: list[int], noise: Any, there: Any, other: Group, whole: set[bool]
) -> Match | str:
    """Outputs that no noise on D′ can give: noise used twice, or whole-number noise on another grid."""
    odd = [group.paths[place] for place in apart]
    if all(place not in rows for place in apart):
        words = f"output{odd[0]} shares its noise with other outputs, and differs when they agree"
        return Match(group, math.inf, 0.0, (), words)
    if whole == {True} and all(there[cell][2] == round(noise[cell]) for cell in other.cells):
        return Match(group, math.inf, 0.0, (), f"output{odd[0]} lies on another grid of whole-number noise")
    return "no noise was found that gives the same output on D′"


def _moves(group: Group, other: Group, here: Any, there: Any, noise: Mapping[Cell, float]) -> tuple[Move, ...]:
    """How each draw moved; nothing where several draws change their scales together."""
    alone = len(group.cells) == 1
    steady = all(abs(there[cell][1] / here[cell][1] - 1) < 1e-9 for cell in group.cells if cell in there)
    if group.cells != other.cells or not (alone or (steady and np.allclose(group.slopes, other.slopes, rtol=1e-9))):
        return ()
    found = []
    for cell in group.cells:
        kind, scale, value = here[cell]
        # Seen in units of D's noise: an output that moves less for the same noise has less noise.
        stretch = there[cell][1] / scale * (abs(other.slopes[0, 0] / group.slopes[0, 0]) if alone else 1.0)
        at_zero = noise[cell] - value / stretch * (there[cell][1] / scale) if alone else noise[cell] - value
        found.append(Move(kind, scale, at_zero * scale / there[cell][1], stretch))
    return tuple(found)


def _pivots(matrix: NDArray[np.float64]) -> list[int]:
    """As many rows as there are columns, each independent of those before it."""
    if matrix.shape[1] == 1:
        return [int(abs(matrix[:, 0]).argmax())]
    chosen: list[int] = []
    for place in range(len(matrix)):
        if np.linalg.matrix_rank(matrix[[*chosen, place]]) > len(chosen):
            chosen.append(place)
    return chosen[: matrix.shape[1]]


def _log_det(matrix: NDArray[np.float64]) -> float:
    return float(np.linalg.slogdet(matrix)[1])


def choices(seen: Seen) -> dict[int, tuple[float, ...]]:
    return {place: draw.chances for place, draw in enumerate(seen.draws) if draw.kind == CHOICE}
