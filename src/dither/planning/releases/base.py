"""What every kind of release has in common.

    Release   one noisy quantity: what the engine adds up for it, and how far one row moves that
    Noise     a release with its mechanism: what it costs, and the one place of a plan where noise is drawn
    Reading   how one aggregate is read from released integers: its value, its margin, its words; post-processing, free

A file of this folder is one kind of release: the releases, their readings, and under which functions they are asked for
(`__init__.py` lists them). `noises` are a plan's noises, and noisy[i][g, c] is cell c of noise i in group g.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError, QueryError
from dither.exact.numbers import rounded
from dither.mechanisms import Exponential, Gaussian, Geometric
from dither.planning.grids import NARROW, fits
from dither.planning.sensitivity import Bounding
from dither.privacy.losses import ZCDP, Loss
from dither.query.nodes import Aggregate
from dither.query.show import show_expression
from dither.query.work import Measure, Sums

Cells = Sequence[NDArray[Any]]
Number = int | float
Bounds = tuple[NDArray[np.float64], NDArray[np.float64]]  # between which the truth lies, group by group


class Release(ABC):
    """A noisy quantity before it has a price."""

    smooth: ClassVar[bool] = True  # whether Gaussian noise can hide it

    @property
    @abstractmethod
    def measure(self) -> Measure:
        """What the engine adds up."""

    @property
    @abstractmethod
    def row(self) -> int:
        """The most one row moves all cells together."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What the noise is on, for people."""

    @property
    def cells(self) -> int:
        """How many integers there are in each group."""
        return 1

    @property
    def signed(self) -> bool:
        """Whether a cell can fall when a unit is added."""
        return False

    @property
    def weight(self) -> float:
        """How much its error counts in the objective of split.py: the same for a release however many outputs it serves."""
        return 1.0

    @property
    def nothing(self) -> Any:
        """The exact value of a group without rows."""
        return 0

    @property
    def parameters(self) -> Mapping[str, Fraction]:
        """What else is asked of the measure, by the names that stored texts use. Releases that agree in both are one."""
        return {}

    @property
    @abstractmethod
    def worth(self) -> int:
        """How many rows' worth the engine lets one unit give to this measure in one group."""

    def pure(self, epsilon: Fraction, bounding: Bounding) -> Noise:
        """Geometric noise at this share of epsilon."""
        held = bounding.worth(self.worth)
        shape = (self.row, self.cells, self.signed)
        return self._within_range(
            lambda: Geometric(epsilon=epsilon, sensitivity=held.l1(*shape)), lambda: held.total(*shape) > epsilon
        )

    def gaussian(self, rho: Fraction, bounding: Bounding) -> Noise:
        """Discrete Gaussian noise at this share of rho."""
        held = bounding.worth(self.worth)
        shape = (self.row, self.cells, self.signed)
        return self._within_range(
            lambda: Gaussian(rho=rho, sensitivity=held.l2(*shape)), lambda: held.squares(*shape) > 2 * rho
        )

    def one_moves(self, bounding: Bounding) -> int | None:
        """How far one unit moves the only number of this release that it moves; None if it may move more than one."""
        moves = bounding.worth(self.worth).l2(self.row, self.cells, self.signed).separate(None)
        return moves[1] if moves is not None and moves[0] == 1 else None

    def on_own_curve(self, epsilon: Fraction, delta: Fraction, bounding: Bounding) -> Noise:
        """Discrete Gaussian noise calibrated on its own privacy curve, where one number moves."""
        norm = bounding.worth(self.worth).l2(self.row, self.cells, self.signed)
        return Noise(self, Gaussian(epsilon=epsilon, delta=delta, sensitivity=norm))

    def draw(self, mechanism: Geometric | Gaussian | Exponential, exact: Sequence[Any]) -> NDArray[Any]:
        """The noisy integers, one row per group."""
        values = [value for group in exact for value in (group if isinstance(group, tuple) else (group,))]
        if fits(self.row):
            held = np.array([min(max(value, -NARROW), NARROW) for value in values], dtype=np.int64)
            noisy: NDArray[Any] = np.asarray(mechanism.release(held))
        else:
            noisy = np.array([mechanism.release(value) for value in values], dtype=object)
        return noisy.reshape(-1, self.cells)

    def relative(self, noise: Noise) -> float:
        """The noise's variance in units of what one row moves."""
        return noise.variance / self.row**2

    @property
    def about(self) -> str:
        """What the mechanism works on, for people."""
        return self.words

    def _within_range(self, build: Callable[[], Geometric | Gaussian], is_wide: Callable[[], bool]) -> Noise:
        try:
            return Noise(self, build())
        except ArgumentError:
            pass
        measure, wide = self.measure, is_wide()
        on_a_grid = isinstance(measure, Sums) and any(cell.argument is not None for cell in measure.cells)
        declared = "a coarser step for the column, or smaller max_rows or max_groups"
        off = "more than 10^12 steps" if wide else "less than a thousandth of a step"
        larger = f"spend a larger epsilon, or declare {declared if on_a_grid else 'smaller max_rows or max_groups'}."
        raise QueryError(
            f"The noise for the {self.words} is out of range: {off}.",
            fix=larger if wide else "spend a smaller epsilon.",
        )


@dataclass(frozen=True)
class Noise:
    """A release and the mechanism that hides it.

    Where noise is drawn per group, as for quantiles, one unit pays in `groups` of them, and moves each by up to `steps`
    sensitivities: by two where it is replaced, because one may leave the group that the other enters. That is dearer than two
    groups moved by one each: the same epsilon, twice the rho.
    """

    of: Release
    mechanism: Geometric | Gaussian | Exponential
    groups: int = 1
    steps: int = 1

    @property
    def times(self) -> int:
        """In how many groups one unit may be seen: under replacement those it leaves and those it enters."""
        return self.groups * self.steps

    @cached_property
    def loss(self) -> Loss:
        return self.mechanism.loss().group(self.steps).repeat(self.groups)

    @cached_property
    def zcdp(self) -> ZCDP:
        """The loss stated a second way."""
        return self.mechanism.zcdp().group(self.steps).repeat(self.groups)

    @property
    def gaussian(self) -> bool:
        return self.mechanism.gaussian

    @property
    def scale(self) -> float:
        """The scale of one cell's noise: the Laplace scale, or the standard deviation."""
        return self.mechanism.noise_scale

    @cached_property
    def record(self) -> dict[str, Any]:
        """The mechanism by its tag and exact parameters: for ledgers."""
        return self.mechanism.record()

    @cached_property
    def variance(self) -> float:
        """Of one cell's noise, near enough for weighing."""
        return self.mechanism.noise_variance

    def explain(self, who: str) -> str:
        """The noise in words: its law, what it is on, how far one unit moves that, and its price."""
        return self.mechanism.words(self.of.about, who)

    @property
    def error(self) -> float:
        """What it adds to the objective of split.py: its weight times its variance, in units of what one row moves."""
        return self.of.weight * self.of.relative(self)

    def release(self, exact: Sequence[Any]) -> NDArray[Any]:
        """The noisy integers, one row per group. The only place of a plan where noise is drawn.

        >>> from dither.planning.releases.count import Rows
        >>> Noise(Rows(1), Geometric(epsilon=1000, sensitivity=1)).release([(3,), (0,)]).tolist()
        [[3], [0]]
        """
        return self.of.draw(self.mechanism, exact)


class Reading(ABC):
    """How one aggregate is read.

    A margin is wrong about its own number no more often than the confidence leaves, against the bounded truth: what the same
    question would give without noise, after clipping and bounding. None is a margin that is not stated, and is not wrong.
    """

    asked: Aggregate
    whole: bool = False  # the value is a whole number
    by_rows: ClassVar[bool] = False  # the margin depends on how many rows the group has
    sign: ClassVar[str] = "±"  # how a margin that is expected is written

    @property
    def name(self) -> str:
        return self.asked.name

    @property
    def title(self) -> str:
        """The aggregate as people write it, saying so where it is only nearly that."""
        return called(self.asked)

    @property
    def notes(self) -> tuple[str, ...]:
        """What an answer says of it beside its margin."""
        return ()

    @abstractmethod
    def values(self, noises: Sequence[Noise], noisy: Cells) -> list[Number]:
        """The value in each group."""

    @abstractmethod
    def margins(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> list[float | None]:
        """How far each value may be off; None where that cannot be stated."""

    @abstractmethod
    def bounds(self, noises: Sequence[Noise], noisy: Cells, confidence: Fraction) -> Bounds:
        """Between which numbers the truth lies, for what is computed from it."""

    @abstractmethod
    def predicted(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> float | None:
        """The margin to expect with so many rows in a group; None if it depends on more than is known."""

    def largest(self, noises: Sequence[Noise], rows: int) -> Fraction:
        """What no whole value exceeds with so many rows, but for noise so large that nobody will see it."""
        return Fraction(0)

    def rank(self, noises: Sequence[Noise], confidence: Fraction) -> float | None:
        """How many rows' worth the value's rank may be off, where that is what is known of it."""
        return None

    def expected(self, noises: Sequence[Noise], rows: int | None, confidence: Fraction) -> str:
        """The margin to expect, in words."""
        margin = self.predicted(noises, rows, confidence)
        if margin is not None:
            given = f" at {rows} rows in the group" if rows and self.by_rows else ""
            return f"{self.sign} {rounded(margin)}{given}"
        thousand = self.predicted(noises, 1000, confidence)
        return f"{self.sign} {rounded(thousand or 0.0)} in a group of 1000 rows (less in larger ones)"


def called(asked: Aggregate, form: str = "") -> str:
    """An aggregate as people write it: in the form "SUM({})" of its function unless another is given."""
    where = "" if asked.where is None else f" FILTER (WHERE {show_expression(asked.where)})"
    argument = "*" if asked.argument is None else show_expression(asked.argument)
    return (form or f"{asked.function.upper()}({{}})").format(argument) + where
