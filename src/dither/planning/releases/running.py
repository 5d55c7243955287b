"""Running and moving counts over groups in order: measured by a strategy, because added-up noisy groups have too much noise.

    x exact groups, in order ─▶ A x, whole numbers ─▶ noise ─▶ least squares ─▶ groups whose running sums have the least error

`SUM(COUNT(*)) OVER (ORDER BY key)` of n groups adds up to n noises. A is the strategy of workloads/ for thresholds, or for the
windows of a frame (`ROWS BETWEEN 29 PRECEDING AND CURRENT ROW`): a public matrix of whole numbers, found without data. Its
numbers get the noise, and the groups are computed from them: that is post-processing, and so is rounding. Running sums are
rounded to whole numbers, and groups are their differences.

Persons. A unit has at most L groups of m rows' worth. Columns of A are not orthogonal, so it moves the numbers by up to
L m (largest column sum) in all, and their squares by what workloads/blocks.py proves: up to (L m)^2 S. A unit may also be in no
group at all, so a replaced unit counts as one that leaves and one that enters.

The noise of different groups is correlated. Margins come from its covariance C: a weighted sum w of groups has variance w'Cw,
and the rounding moves it by at most half the sum of |w_i - w_(i+1)|.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.exact.numbers import Number, between, show_rounded
from dither.mechanisms import L1, L2, Geometric
from dither.planning.releases.base import Noise, Release
from dither.planning.sensitivity import NARROW, Bounding, Norm, fits
from dither.privacy.neighbours import Replace
from dither.query.nodes import Column, Frame, Query
from dither.query.work import Measure, Sums
from dither.workloads.blocks import Coefficients, Moves, Person
from dither.workloads.factors import Floats, Integers
from dither.workloads.strategy import Flat
from dither.workloads.workload import Workload

Frames = tuple[tuple[int | None, int | None], ...]  # how many groups from the current one a window begins and ends
RUNNING: Frames = ((None, 0),)
FEWEST, MOST = 4, 256  # groups
_BETTER = 0.95  # times the error of added-up groups, or less


@lru_cache(maxsize=32)
def strategy(groups: int, gaussian: bool, frames: Frames = RUNNING) -> Flat | None:
    """Returns the strategy for running sums of so many groups, or for sums over frames."""
    from dither.workloads.choose import strategies  # loads SciPy, which other questions do not need

    asked = Workload.thresholds(groups) if frames == RUNNING else Workload.matrix(windows(groups, frames).tolist())
    return next((each for each in strategies(asked, gaussian) if isinstance(each, Flat)), None)


def windows(groups: int, frames: Frames) -> Integers:
    """Returns a row for each sum that is asked for: 1 for the groups that it adds up. Sums of no group are left out."""
    places = np.arange(groups)
    rows = [
        (places >= (0 if start is None else place + start)) & (places <= (groups if end is None else place + end))
        for start, end in frames
        for place in range(groups)
    ]
    return np.array([row for row in rows if row.any()], dtype=np.int64)


@dataclass(frozen=True)
class Running(Release):
    """A count whose sums over `frames` of groups are asked for. `matrix`: the strategy, a row for each number measured."""

    of: Release
    matrix: Integers = field(repr=False, compare=False, hash=False)
    name: str
    frames: Frames = RUNNING

    @property
    def measure(self) -> Measure:
        return self.of.measure

    @property
    def row(self) -> int:
        return self.of.row

    @property
    def words(self) -> str:
        kind = "running" if self.frames == RUNNING else "moving"
        return f"{kind} sums of {self.of.words} over {self.matrix.shape[1]} groups"

    @property
    def empty_value(self) -> Any:
        return self.of.empty_value

    @property
    def rows_per_unit(self) -> int:
        return self.of.rows_per_unit

    @property
    def parameters(self) -> Mapping[str, Fraction | tuple[Fraction, ...]]:
        """The strategy is a part of the question's identity, by its digest."""
        text = repr(self.matrix.shape).encode() + np.ascontiguousarray(self.matrix, dtype="<i8").tobytes()
        return {**self.of.parameters, "strategy": Fraction(int(hashlib.sha256(text).hexdigest(), 16))}

    def moves(self, bounding: Bounding) -> Moves:
        """Returns how far one unit moves the numbers."""
        person = Person(bounding.max_groups, self.rows_per_unit * self.row)
        return Coefficients((self.matrix,)).moves(person, isinstance(bounding.neighbours, Replace))

    def pure(self, epsilon: Fraction, bounding: Bounding) -> Noise:
        total = self.moves(bounding).total
        made = self.within_range(lambda: Geometric(epsilon=epsilon, sensitivity=L1(total)), lambda: total > epsilon)
        return Correlated(self, made.mechanism)

    def l2(self, bounding: Bounding) -> Norm:
        return L2.of_squares(self.moves(bounding).squares)

    def on_own_curve(self, epsilon: Fraction, delta: Fraction, bounding: Bounding) -> Noise:
        return Correlated(self, super().on_own_curve(epsilon, delta, bounding).mechanism)

    def draw(self, noise: Noise, exact: Sequence[Any]) -> NDArray[Any]:
        """Measures the strategy with noise. Returns the groups that follow from it, one row each."""
        largest = NARROW // (self.matrix.shape[1] * int(np.abs(self.matrix).max()))
        values = [value for group in exact for value in (group if isinstance(group, tuple) else (group,))]
        clipped = np.array([min(max(value, -largest), largest) for value in values], dtype=np.int64)
        noisy = np.asarray(noise.mechanism.release(self.matrix @ clipped)).astype(float)
        sums = [round(each) for each in np.cumsum(self.solver @ noisy).tolist()]
        return np.diff(np.array([0, *sums], dtype=np.int64)).reshape(-1, 1)

    @cached_property
    def solver(self) -> Floats:
        """Least squares: estimates of the groups from the numbers that are measured."""
        real = self.matrix.astype(float)
        return np.asarray(np.linalg.solve(real.T @ real, real.T))

    @cached_property
    def sums(self) -> Floats:
        """The sums that are asked for, a row each."""
        return windows(self.matrix.shape[1], self.frames).astype(float)

    @cached_property
    def covariance(self) -> Floats:
        """The covariance of the groups, for noise of variance 1."""
        return np.asarray(self.solver @ self.solver.T)


@dataclass(frozen=True)
class Correlated(Noise):
    """Noise of a strategy, as groups have it: the same bound for all of them, and a law for weighted sums."""

    of: Running
    plain: float = 0.0  # the mean variance of running sums that are added up from noisy groups, at the same price

    @property
    def fitted(self) -> bool:
        return True

    @cached_property
    def variance(self) -> float:
        return self.mechanism.noise_variance * float(self.of.covariance.diagonal().max())

    @property
    def scale(self) -> float:
        return math.sqrt(self.variance if self.gaussian else self.variance / 2)

    def margin(self, confidence: Number) -> int:
        """Returns how far any group is off: the rounding of two running sums included."""
        return math.floor(self._reach(confidence) * math.sqrt(self.variance) + 1)

    def weighted(self, weights: Floats, confidence: Number) -> float:
        """Returns how far a weighted sum of groups is off. `weights`: one for each group, in order."""
        spread = self.mechanism.noise_variance * float(weights @ self.of.covariance @ weights)
        return self._reach(confidence) * math.sqrt(max(spread, 0.0)) + float(np.abs(np.diff([*weights, 0.0])).sum()) / 2

    def running(self, confidence: Number) -> float | None:
        """Returns how far any sum that is asked for is off."""
        return float(max(math.floor(self.weighted(row, confidence)) for row in self.of.sums))

    def _reach(self, confidence: Number) -> float:
        """Returns the margin in standard deviations: of a sum of geometric noises, the wider of a normal and a Laplace law."""
        doubt = float(1 - between(confidence, "confidence", 0, 1, open_low=True, open_high=True))
        normal = NormalDist().inv_cdf(1 - doubt / 2)
        return normal if self.gaussian else max(normal, -math.log(doubt) / math.sqrt(2))

    @property
    def sums(self) -> float:
        """The mean variance of the sums that are asked for."""
        whole = np.einsum("ij,jk,ik->i", self.of.sums, self.of.covariance, self.of.sums)
        return self.mechanism.noise_variance * float(whole.mean())

    def running_words(self, confidence: Fraction) -> tuple[str, ...]:
        """Returns the margin of running sums, and what the strategy is worth."""
        ratio = math.sqrt(self.sums / self.plain) if self.plain else math.nan
        strategy = f"measured by {self.of.name}, {len(self.of.matrix)} numbers for {self.of.matrix.shape[1]} groups"
        worth = f"{show_rounded(ratio)} times the error of adding up noisy groups"
        return (f"± {show_rounded(self.running(confidence) or 0.0)} or less; {strategy}: {worth}",)


def asked_frames(query: Query) -> Frames:
    """Returns the frames, if all noisy numbers that are shown are sums of one count over frames of all groups, in the order of
    the key; none otherwise."""
    if len(query.above) != 1 or len(query.keys) != 1 or query.having or query.limit is not None or query.offset:
        return ()
    (outer,), key, names = query.above, query.keys[0].name, {each.name: each.expression for each in query.outputs}
    keys = {name for name, each in names.items() if each == Column(key)}
    counts = {name for name, each in names.items() if isinstance(each, Column) and each.name != key}
    if outer.where or outer.folds is not None or outer.having or outer.lookups or len(query.aggregates) != 1:
        return ()
    found = {
        each.name: _ends(each.frame)
        for each in outer.windows
        if (each.function, each.where, each.partition) == ("sum", None, ())
        and _ends(each.frame) is not None
        and each.arguments[:1] in [(Column(name),) for name in counts]
        and [(order.expression, order.descending, order.nulls_first) for order in each.order]
        in [[(Column(name), False, False)] for name in keys]
    }
    shown = [each.expression for each in outer.outputs]
    plain = all(isinstance(each, Column) and each.name in found.keys() | keys for each in shown)
    whole = plain and len(found) == len(outer.windows) > 0
    return tuple(sorted({each for each in found.values() if each is not None}, key=str)) if whole else ()


def _ends(frame: Frame | None) -> tuple[int | None, int | None] | None:
    """Returns where a frame begins and ends, in groups; None if that depends on values, or if it is all groups."""
    if frame is None or frame in (Frame(None, 0, "groups"), Frame(None, 0, "range")):
        return None, 0
    counted = frame.kind in ("rows", "groups") and frame.first is None and frame.last is None
    return (frame.start, frame.end) if counted and (frame.start, frame.end) != (None, None) else None


def running(query: Query, groups: int, releases: Sequence[Release], gaussian: bool) -> Running | None:
    """Returns the release that is best for running sums of a count, if these are what is asked for."""
    frames = asked_frames(query) if FEWEST <= groups <= MOST and len(releases) == 1 else ()
    if not frames or not len(windows(groups, frames)):
        return None
    only, found = releases[0], strategy(groups, gaussian, frames)
    simple = isinstance(only.measure, Sums) and type(only).pure is Release.pure and not only.signed and only.cells == 1
    if found is None or not simple or not fits(only.row * int(np.abs(found.matrix).max())):
        return None
    return Running(only, found.matrix, found.name, frames)


def compared(noise: Noise, plain: Noise) -> Correlated | None:
    """Returns the noise of a strategy, with what it is compared to; None if added-up noisy groups are about as good."""
    if not isinstance(noise, Correlated):
        return None
    found = replace(noise, plain=plain.variance * float(noise.of.sums.sum(axis=1).mean()))
    return found if found.sums <= found.plain * _BETTER**2 else None
