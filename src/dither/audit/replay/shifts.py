"""Computes how far the noise must move so that D′ gives the output of D, and what that move costs.

    output = g(D, n),  output = g(D′, n′)      loss = ln p(n) - ln p′(n′) + ln |det dg′/dn′| - ln |det dg/dn|

The loss is the log ratio of the two densities at one output. For a pure claim it is a lower bound on epsilon, without any
sampling. It needs every draw to be visible: as many independent outputs as draws in each group of outputs that share draws. A
group that hides draws (the place of a noisy maximum, a noisy sum over a noisy count) is left out with a note; the bound stays
true. Slopes are measured by running, at the output itself and on both sides.

With delta > 0 one output proves nothing, so the probability of many outputs is counted: the far half of each Laplace draw
(probability 1/2, loss |shift| / scale), all outputs of Gaussian draws by the analytic formula (Balle and Wang, ICML 2018), and
the tails of a single draw whose scale depends on data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dither.audit.replay.observe import Observation, Side
from dither.audit.replay.tape import ADDITIVE, CHOICE, GAUSSIAN, GEOMETRIC, RAW, UNIFORM, Tape

_STEPS = (0.0, 0.5, *(float(k) for k in range(1, 11)), 14.0, 20.0, 30.0, 45.0, 60.0)
_SAME = 1e-9  # relative: scales and shifts that differ by less are equal


def log_density(kind: str, noise: float, scale: float) -> float:
    """Returns the log density of a draw, or the log probability of whole-number noise."""
    if kind == GAUSSIAN:
        return -0.5 * (noise / scale) ** 2 - math.log(scale) - 0.5 * math.log(2 * math.pi)
    if kind == GEOMETRIC:
        return -abs(noise) / scale + math.log(math.tanh(0.5 / scale))
    return -abs(noise) / scale - math.log(2 * scale)


def tail_probability(kind: str, noise: float, scale: float) -> float:
    """Returns Pr[draw >= noise]."""
    if kind == GAUSSIAN:
        return 0.5 * math.erfc(noise / scale / math.sqrt(2))
    if kind == GEOMETRIC:
        # Not math.ceil: 3.0000000001 means 3.
        whole, ratio = round(noise), math.exp(-1 / scale)
        tail = ratio ** abs(whole if whole > 0 else 1 - whole) / (1 + ratio)
        return tail if whole > 0 else 1 - tail
    half = 0.5 * math.exp(-abs(noise) / scale)
    return half if noise >= 0 else 1 - half


@dataclass(frozen=True)
class Move:
    """How far one draw must move to give the same output on D′. `stretch` is the ratio of the scales on D′ and D."""

    kind: str
    scale: float
    shift: float
    stretch: float = 1.0

    @property
    def size(self) -> float:
        return abs(self.shift) / self.scale

    @property
    def stretches(self) -> bool:
        return abs(self.stretch - 1) >= _SAME


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Returns the delta of two normal laws that are mu standard deviations apart.

    >>> round(gaussian_delta(4.3771780957, 1.0), 8)
    1e-05
    """
    if mu <= 0:
        return max(0.0, -math.expm1(epsilon)) if epsilon < 0 else 0.0
    first = 0.5 * math.erfc((epsilon / mu - mu / 2) / math.sqrt(2))
    other = 0.5 * math.erfc((epsilon / mu + mu / 2) / math.sqrt(2))
    return max(0.0, first - (math.exp(min(epsilon, 700.0)) * other if other else 0.0))


def delta_at(moves: Sequence[Move], epsilon: float) -> float:
    """Returns a lower bound on the true delta at that epsilon, if all outputs are visible."""
    same = [move for move in moves if not move.stretches]
    mu = math.sqrt(math.fsum(move.size**2 for move in same if move.kind == GAUSSIAN))
    sizes = sorted((move.size for move in same if move.kind != GAUSSIAN), reverse=True)
    best, loss = gaussian_delta(epsilon, mu), 0.0
    for count, size in enumerate(sizes, 1):
        loss += size
        best = max(best, 0.5**count * gaussian_delta(epsilon - loss, mu))
    real = max((move.size for move in same if move.kind not in (GAUSSIAN, GEOMETRIC)), default=0.0)
    best = max(best, -math.expm1((epsilon - real) / 2))  # exact for a single Laplace draw
    return max([best, *(_tails(move, epsilon) for move in moves if abs(move.stretch - 1) >= 1e-9)])


def _tails(move: Move, epsilon: float) -> float:
    """Returns the best delta of one draw over tails beyond t scales, on either side, for either dataset."""
    if move.kind == GEOMETRIC:
        return 0.0  # its tails lie on a grid that a stretched law does not share
    best = 0.0
    for sign in (1, -1):
        for step in (*_STEPS, *(-step for step in _STEPS)):
            here = step * move.scale
            there = here / move.stretch + sign * move.shift
            first, other = (tail_probability(move.kind, at, move.scale) for at in (here, there))
            factor = math.exp(min(epsilon, 700.0))
            best = max(best, first - factor * other, other - factor * first)
    return best


def largest_epsilon(holds: Callable[[float], bool], top: float = 60.0) -> float:
    """Returns the largest epsilon up to `top` for which `holds`, by bisection; 0 if there is none.

    >>> round(largest_epsilon(lambda x: x < 1.25), 6)
    1.25
    """
    if not holds(0.0):
        return 0.0
    low, high = 0.0, top
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


Cell = tuple[int, int]  # one value of a draw: the draw's place in the run, and the value's place in the draw
MOST_CELLS = 40
_TIGHT = 1e-6  # relative: slopes on both sides of an output that differ by less are one slope
_MISSED = 1e-3  # in scales: an output of D′ that stays farther away than this was not reached


class Known(NamedTuple):
    """One value of a draw whose law is known."""

    kind: str
    scale: float
    noise: float

    @property
    def log_density(self) -> float:
        return log_density(self.kind, self.noise, self.scale)


@dataclass(frozen=True)
class Group:
    """Outputs that share draws. `slopes[path][cell]` is the change of the output per unit of noise."""

    paths: tuple[str, ...]
    cells: tuple[Cell, ...]
    slopes: NDArray[np.float64]  # a row for each path, a column for each cell

    @cached_property
    def pivots(self) -> list[int]:
        """As many rows of the slopes as there are cells, each independent of those before it."""
        if len(self.cells) == 1:
            return [int(abs(self.slopes[:, 0]).argmax())]
        chosen: list[int] = []
        for place in range(len(self.slopes)):
            if np.linalg.matrix_rank(self.slopes[[*chosen, place]]) > len(chosen):
                chosen.append(place)
        return chosen[: len(self.cells)]


@dataclass(frozen=True)
class Response:
    """One run, its noise, and how each output responds to each draw."""

    observed: Observation
    noise: Mapping[Cell, float]
    groups: tuple[Group, ...]
    hidden: tuple[str, ...]  # why outputs were left out


@dataclass(frozen=True)
class Point:
    """The noise to run with: a seed, and the values and choices that are set."""

    seed: int
    noise: Mapping[Cell, float] = field(default_factory=dict)
    chosen: Mapping[int, int] = field(default_factory=dict)

    def tape(self, moved: Mapping[Cell, float] | None = None, redraw: frozenset[int] = frozenset()) -> Tape:
        return Tape(self.seed, moved={**self.noise, **(moved or {})}, chosen=self.chosen, redraw=redraw)


def known_draws(observed: Observation) -> dict[Cell, Known]:
    """Returns every value with noise of a known law."""
    return {
        (place, index): Known(draw.kind, scale, draw.noise[index])
        for place, draw in enumerate(observed.draws)
        if draw.kind in ADDITIVE
        for index, scale in enumerate(draw.scales)
        if 0 < scale < math.inf
    }


# --- how outputs respond to noise ------------------------------------------------------------------------------


def measure_response(side: Side, point: Point) -> Response:
    """Runs the side at that point, then with each draw moved once up and once down."""
    observed = side.run(point.tape())
    known = known_draws(observed)
    noise = {cell: draw.noise for cell, draw in known.items()}
    if len(known) > MOST_CELLS:
        return Response(observed, noise, (), (f"{len(known)} draws are too many to try one by one",))
    fixed = Point(point.seed, noise, point.chosen)
    slopes: dict[str, dict[Cell, float]] = {path: {} for path in observed.numbers}
    unclear: dict[str, str] = {}  # outputs whose slope is not known, and why
    for cell, draw in known.items():
        step = max(1.0, float(round(draw.scale))) if _is_whole(observed) else draw.scale
        up, down = (side.run(fixed.tape({cell: draw.noise + sign * step})) for sign in (1, -1))
        for path in observed.numbers:
            slope, why = _slope(path, observed, up, down, step)
            slopes[path] |= {cell: slope} if slope or why else {}
            unclear |= {path: why} if why else {}
    unclear |= _unknown_laws(side, fixed, observed)
    return Response(observed, noise, *_groups(slopes, unclear))


def _is_whole(observed: Observation) -> bool:
    return bool(observed.numbers) and all(value.denominator == 1 for value in observed.numbers.values())


def _slope(path: str, observed: Observation, up: Observation, down: Observation, step: float) -> tuple[float, str]:
    """Returns the slope of one output, and why it is not known if so."""
    if path not in up.numbers or path not in down.numbers:
        return 1.0, "noise decides whether it is present"
    low, value, high = down.numbers[path], observed.numbers[path], up.numbers[path]
    over, under = float(high - value) / step, float(value - low) / step
    if not over and not under:
        return 0.0, ""
    rounding = 8 * _ulp(value, high, low) / step
    straight = abs(over - under) <= _TIGHT * abs(over) + rounding and over
    return over, "" if straight else "it is not linear in the noise"


def _unknown_laws(side: Side, fixed: Point, observed: Observation) -> dict[str, str]:
    """Returns the outputs that depend on a draw of unknown law: those that change when it is drawn anew."""
    unclear: dict[str, str] = {}
    for place, draw in enumerate(observed.draws):
        if draw.kind in (RAW, UNIFORM):
            other = side.run(fixed.tape(redraw=frozenset({place})))
            changed = [path for path, value in observed.numbers.items() if other.numbers.get(path) != value]
            unclear.update(dict.fromkeys(changed, f"it depends on a draw of unknown law ({draw.name})"))
    return unclear


def _ulp(*values: Fraction) -> float:
    return max(math.ulp(float(value)) for value in values)


def _groups(slopes: dict[str, dict[Cell, float]], unclear: dict[str, str]) -> tuple[tuple[Group, ...], tuple[str, ...]]:
    """Returns the groups whose draws are all visible, and why the other outputs are left out."""
    groups, hidden = [], [f"output{path}: {why}" for path, why in unclear.items() if not slopes[path]]
    for paths, cells in _connected(slopes):
        group = Group(paths, cells, np.array([[slopes[path].get(cell, 0.0) for cell in cells] for path in paths]))
        why = next((f"output{path}: {unclear[path]}" for path in paths if path in unclear), "")
        if not why and len(group.pivots) < len(cells):
            why = f"output{paths[0]}: {len(cells)} draws behind {len(paths)} numbers"
        if why:
            hidden.append(why)
        else:
            groups.append(group)
    return tuple(groups), tuple(hidden)


def _connected(slopes: dict[str, dict[Cell, float]]) -> Iterator[tuple[tuple[str, ...], tuple[Cell, ...]]]:
    """Yields outputs that share draws, directly or through other outputs, with these draws."""
    left = {path: set(cells) for path, cells in slopes.items() if cells}
    while left:
        path, cells = left.popitem()
        paths = [path]
        while joined := [other for other, more in left.items() if more & cells]:
            for other in joined:
                cells |= left.pop(other)
                paths.append(other)
        yield tuple(sorted(paths)), tuple(sorted(cells))


# --- from D to D′ ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Match:
    """The same outputs on D and on D′: the loss, the rounding error of the loss, and how the noise moved.

    `impossible` says why no noise on D′ gives the outputs of D; the loss is then infinite.
    """

    group: Group
    loss: float
    slack: float
    moves: tuple[Move, ...]
    impossible: str = ""


@dataclass(frozen=True)
class _Aligned:
    """One group of outputs on both sides, after the noise on D′ was moved to `noise`."""

    one: Group
    two: Group
    observed: tuple[Observation, Observation]
    noise: Mapping[Cell, float]

    @cached_property
    def draws(self) -> list[Known]:
        known = known_draws(self.observed[0])
        return [known[cell] for cell in self.one.cells]

    @cached_property
    def other_draws(self) -> list[Known]:
        """Draws on D′ with the noise that was set; empty if one of them is missing."""
        known = known_draws(self.observed[1])
        present = all(cell in known for cell in self.two.cells)
        return [known[cell]._replace(noise=self.noise[cell]) for cell in self.two.cells] if present else []

    @cached_property
    def gaps(self) -> NDArray[np.float64]:
        return np.abs(_gaps(*self.observed, self.one))


def match(one: Response, two: Side, point: Point) -> tuple[list[Match], list[str]]:
    """Moves the noise on D′ until it gives the outputs of D. Returns the matches, and why other groups have none.

    All groups move together, because one release may decide the scale of the next: scales are compared at equal releases.
    """
    other = measure_response(two, point)
    by_paths = {group.paths: group for group in other.groups}
    pairs = [(group, by_paths[group.paths]) for group in one.groups if group.paths in by_paths]
    why = f"on D′, {other.hidden[0]}" if other.hidden else "the outputs share draws in another way on D′"
    notes = [why for group in one.groups if group.paths not in by_paths]
    aligned = _align(one, other, pairs, two, point)
    if aligned is None:
        return [], [*notes, "moving the noise on D′ made an output disappear"]
    results = [_compare(group) for group in aligned]
    return [each for each in results if isinstance(each, Match)], notes + [each for each in results if isinstance(each, str)]


def _align(one: Response, other: Response, pairs: list[tuple[Group, Group]], two: Side, point: Point) -> list[_Aligned] | None:
    """Solves for the noise on D′, by three Newton steps at most; None if an output vanishes on the way."""
    noise, observed = dict(other.noise), other.observed
    for _ in range(3):
        moved = False
        for group, twin in pairs:
            rows = twin.pivots
            step = np.linalg.solve(twin.slopes[rows], _gaps(one.observed, observed, group)[rows])
            moved = moved or bool(step.any())
            noise.update({cell: noise[cell] + float(move) for cell, move in zip(twin.cells, step, strict=True)})
        if not moved:
            break
        observed = two.run(Point(point.seed, noise, point.chosen).tape())
        if any(path not in observed.numbers for group, _ in pairs for path in group.paths):
            return None
    return [_Aligned(group, twin, (one.observed, observed), noise) for group, twin in pairs]


def _gaps(one: Observation, two: Observation, group: Group) -> NDArray[np.float64]:
    return np.array([float(one.numbers[path] - two.numbers[path]) for path in group.paths])


def _compare(pair: _Aligned) -> Match | str:
    """Returns the loss of one group, or why it cannot be stated."""
    if not pair.other_draws or len(pair.draws) != len(pair.other_draws):
        return "D and D′ draw a different number of times for one output"
    reachable = np.abs(pair.two.slopes) @ np.array([draw.scale for draw in pair.other_draws])
    missed = [place for place, gap in enumerate(pair.gaps) if gap > _MISSED * reachable[place]]
    discrete = {draw.kind == GEOMETRIC for draw in (*pair.other_draws, *pair.draws)}
    if missed:
        return _unreached(pair, missed, discrete == {True})
    if len(discrete) > 1:
        return "whole-number and real noise in one output"
    real = discrete == {False}
    return Match(pair.one, _loss(pair, real), _slack(pair, real), _moves(pair))


def _loss(pair: _Aligned, real: bool) -> float:
    """The formula in the header. Whole-number noise has probabilities and no determinant."""
    loss = math.fsum(draw.log_density for draw in pair.draws) - math.fsum(draw.log_density for draw in pair.other_draws)
    if real:
        after, before = (float(np.linalg.slogdet(group.slopes[pair.two.pivots])[1]) for group in (pair.two, pair.one))
        loss += after - before
    return loss


def _slack(pair: _Aligned, real: bool) -> float:
    """Bounds the error of the loss: what rounding moves the noise, in scales of the narrowest draw."""
    one, two = pair.observed
    ulps = max(_ulp(one.numbers[path], two.numbers[path]) for path in pair.one.paths)
    least = min(abs(group.slopes[group.slopes != 0]).min() for group in (pair.two, pair.one))
    narrow = min(draw.scale for draw in (*pair.other_draws, *pair.draws))
    grain = 1.0 if real and _is_whole(one) else 0.0
    return float(len(pair.one.cells) * (float(pair.gaps.max()) + 8 * ulps + grain) / (least * narrow))


def _unreached(pair: _Aligned, missed: list[int], discrete: bool) -> Match | str:
    """Outputs that no noise on D′ can give: noise used twice, or whole-number noise on another grid."""
    first = pair.one.paths[missed[0]]
    if not set(missed) & set(pair.two.pivots):
        why = f"output{first} shares its noise with other outputs, and differs when they agree"
        return Match(pair.one, math.inf, 0.0, (), why)
    drawn = known_draws(pair.observed[1])
    if discrete and all(drawn[cell].noise == round(pair.noise[cell]) for cell in pair.two.cells):
        return Match(pair.one, math.inf, 0.0, (), f"output{first} lies on another grid of whole-number noise")
    return "no noise was found that gives the same output on D′"


def _moves(pair: _Aligned) -> tuple[Move, ...]:
    """How each draw moved; empty if several draws change their scales together."""
    single = len(pair.draws) == 1
    if pair.one.cells != pair.two.cells or not (single or _same_scales(pair)):
        return ()
    moves = []
    for draw, other in zip(pair.draws, pair.other_draws, strict=True):
        # In units of D's noise: an output that moves less for the same noise has less noise.
        stretch = other.scale / draw.scale * (abs(pair.two.slopes[0, 0] / pair.one.slopes[0, 0]) if single else 1.0)
        at_zero = other.noise - (draw.noise / stretch * (other.scale / draw.scale) if single else draw.noise)
        moves.append(Move(draw.kind, draw.scale, at_zero * draw.scale / other.scale, stretch))
    return tuple(moves)


def _same_scales(pair: _Aligned) -> bool:
    draws = zip(pair.draws, pair.other_draws, strict=True)
    same = all(abs(other.scale / draw.scale - 1) < _SAME for draw, other in draws)
    return same and np.allclose(pair.one.slopes, pair.two.slopes, rtol=_SAME)


def choices(observed: Observation) -> dict[int, tuple[float, ...]]:
    """Returns the log probabilities of the candidates of each choice, by the choice's place in the run."""
    return {place: draw.chances for place, draw in enumerate(observed.draws) if draw.kind == CHOICE}
