"""dt.trace: runs a program on private records and says what it costs, record by record.

Neighbours replace one record; how many there are and where they stand is public. Records of different data sets are different
records: if one person has records in two, put them into the columns of one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError, DitherError, Fix, PriceError, Python
from dither.exact.laws.base import Integers
from dither.exact.numbers import Number, between, positive, rational, show
from dither.mechanisms import SparseVector, base
from dither.mechanisms.base import Mechanism, refuse_masked
from dither.privacy.filters import Filter
from dither.privacy.losses import Curve, Loss, Pure, total
from dither.process import Origin
from dither.tracing import charges
from dither.tracing.bounded import Bounded, on_step
from dither.tracing.charges import Charges, Release
from dither.tracing.influence import LIMIT, Influence, Load, too_large
from dither.tracing.noisy import Noisy, plain
from dither.tracing.private import Private
from dither.tracing.refusals import Place, Secret, place, refused
from dither.tracing.report import report_text
from dither.tracing.rows import Rows


@dataclass(frozen=True)
class Records:
    """One data set with declared bounds: a vector, or a table with a row per record and bounds per column."""

    exact: Integers = field(repr=False)
    low: Integers
    high: Integers
    step: Fraction


def records(values: Any, low: Any, high: Any, step: Number | None = None) -> Records:
    """Declares private records: numbers from `low` to `high`, in multiples of `step`.

    Values outside are clipped. Whole numbers need no step; floats do, and are rounded to it. NaN counts as 0, and so does an
    object that is no number. A table has two axes and a row per record; `low` and `high` are then one number, or one per
    column. The array is copied.

    >>> records([3, 4, 200], low=0, high=120)
    Records(low=array([0]), high=array([120]), step=Fraction(1, 1))
    """
    if isinstance(values, np.ndarray):
        refuse_masked(values, "values")
    try:
        array = np.array(values)
    except ValueError:
        raise ArgumentError(
            "The rows of values have different lengths.", fix="give a list of numbers, or rows of one length."
        ) from None
    if array.ndim not in (1, 2) or array.dtype.kind not in "iufOb" or not array.size:
        raise ArgumentError("values must be numbers on one axis, or on two: rows and columns.", fix="give a list or an array.")
    if array.dtype.kind == "f" and step is None:
        raise ArgumentError("Numbers that are not whole need a grid.", fix=Fix("give {step}.", step="1/100"))
    grid = Fraction(1) if step is None else positive(step, "step")
    columns = array.shape[1] if array.ndim == 2 else 1
    bottom, top = _ends(low, "low", grid, columns, up=True), _ends(high, "high", grid, columns, up=False)
    if bool((bottom > top).any()):
        raise ArgumentError("low must not be above high, with a multiple of step between them.", fix="give low and high.")
    flat = array.astype(np.int64) if array.dtype.kind == "b" else array
    whole = np.asarray(base.steps(flat.ravel(), grid), dtype=np.int64).reshape(array.shape)
    return Records(np.clip(whole, *((bottom, top) if array.ndim == 2 else (bottom[0], top[0]))), bottom, top, grid)


def _ends(ends: Any, name: str, grid: Fraction, columns: int, *, up: bool) -> Integers:
    listed = list(ends) if isinstance(ends, (list, tuple, np.ndarray)) else [ends] * columns
    if len(listed) != columns:
        raise ArgumentError(f"{name} must be one number, or one for each of {columns} columns.", fix="give as many.")
    exact = [rational(end, name) / grid for end in listed]
    whole = [-(-each // 1) if up else each // 1 for each in exact]
    if any(abs(each) > LIMIT for each in whole):
        raise too_large()
    return np.array(whole, dtype=np.int64)


class Run:
    """One run of a program: its charges, and whether its price may depend on its noise."""

    def __init__(self, count: int, limit: Filter | None) -> None:
        self.records = count
        self.charges = Charges(count, limit)
        self.releases: list[Release] = []
        self.depends: dict[Place, str] = {}
        self.terms = 1
        self._open, self._guard, self._origin = True, threading.Lock(), Origin()

    def close(self) -> None:
        self._open = False

    def left(self, why: str) -> None:
        """Notes that the price of this run may depend on its noise."""
        if self._open:
            self.depends.setdefault(place(), why)

    def summed(self, terms: int) -> None:
        """Notes that noisy values were added up."""
        self.terms = max(self.terms, terms)

    def release(self, value: Bounded, mechanism: Mechanism, scalar: bool) -> Any:
        """Charges every record, then draws."""
        if not self._open:
            raise refused("This run has ended, and its report is written.", "release within the program.")
        self._origin.check("This run is a copy made by a fork.", "release in the process that began the run.")
        with self._guard:
            if isinstance(mechanism, charges.CHOOSING):
                return self._choose(value, mechanism)
            one, grid = charges.of_one_step(mechanism), charges.noise_grid(mechanism)
            fitted = _on_grid(value, grid)
            load = fitted.load()
            largest = int(fitted.influence.move.max()) if len(fitted.influence.move) else 0
            worst = charges.at_worst(one, load, value.outputs, largest)
            if worst is not None:
                here = place()
                self.charges.charge(one.loss(), load, here)
                spans = _spans(fitted.influence)
                self.releases.append(Release(here, worst, worst.loss(), value.outputs, load.records(), grid, spans))
            drawn = (worst or one).release(np.array(fitted.exact))
            values = base.values(np.asarray(drawn), grid)
            return Noisy(values[0:1].reshape(()) if scalar else values, self)

    def _choose(self, value: Bounded, mechanism: charges.Choosing) -> Any:
        fitted = _on_grid(value, Fraction(1))
        each = fitted.influence.largest()
        groups = np.array([charges.steps_apart(mechanism, int(move)) for move in each.move], dtype=object)
        load = Load(each.start, each.stop, groups, groups * groups, np.ones(len(groups), dtype=np.int64))
        if len(groups):
            here = place()
            one = mechanism.loss()
            self.charges.charge(one, load, here)
            worst = one.group(int(groups.max()))
            self.releases.append(Release(here, mechanism, worst, value.outputs, load.records()))
        chosen = mechanism.release(np.array(fitted.exact))
        if isinstance(mechanism, SparseVector):  # questions after the last yes count as no, so that the length is public
            chosen = np.array([*chosen, *[False] * (value.outputs - len(chosen))])
        elif mechanism.candidates is not None:
            self.left("a mechanism chose a label")
            return chosen
        return Noisy(np.array(chosen), self)


def _on_grid(value: Bounded, grid: Fraction) -> Bounded:
    """Returns the value in steps of the noise. Refuses a value between them."""
    if (value.step / grid).denominator != 1:
        raise ArgumentError(
            f"The value is in steps of {show(value.step)}, and the noise in steps of {show(grid)}.",
            where=str(place()),
            fix="use Laplace or Gaussian noise with this grid, or round first: x.floor(step).",
        )
    return on_step(value, grid)


def _spans(influence: Influence) -> tuple[Integers, Integers, Integers] | None:
    whole = len(influence.output) == influence.outputs and influence.one_run_each
    return (influence.start, influence.stop, influence.move) if whole else None


@dataclass(frozen=True)
class Trace:
    """What a program returned, and what it cost. `paid` is about what each record paid (epsilon, or else rho), for pictures."""

    name: str
    result: Any
    releases: tuple[Release, ...]
    depends: tuple[tuple[Place, str], ...]
    limit: Loss | None
    records: int
    summed: int
    paid: NDArray[np.float64] = field(repr=False, compare=False)
    _loss: Loss

    def loss(self) -> Loss:
        """Returns the price of this run: what the record that paid most has paid."""
        return self._loss

    @property
    def fixed(self) -> bool:
        """Whether every run of the program makes the same releases, as far as a trace can see."""
        return not self.depends

    def guarantee(self) -> Loss:
        """Returns a price that every run of the program keeps: its own if it is fixed, else its limit."""
        if self.fixed:
            return self._loss
        if self.limit is None:
            why = "; ".join(f"{why} ({where})" for where, why in self.depends[:3])
            raise PriceError(
                f"This is the price of this run; another run of the program may cost more: {why}.",
                fix=Fix("give a filter, which refuses what would exceed it: {call}.", call=Python("limit=dt.PureFilter(1)")),
            )
        return self.limit

    def curve(self) -> Curve:
        """Returns the loss curve of the program, every release at the record that moves most in it.

        The releases must be the same in every run. Then each is covered by its curve whatever came before, and so are all
        together, although later values depend on earlier noise.
        """
        if not self.fixed:
            raise PriceError("The releases of this program depend on its noise, so it has no curve.", fix="use guarantee().")
        found = total([Curve(()), *(release.curve for release in self.releases)])
        return found if isinstance(found, Curve) else found.curve()

    def epsilon(self, delta: Number = 0) -> Fraction:
        """Returns the smallest epsilon known for the program at this delta: record by record, or by the curve."""
        allowed = between(delta, "delta", 0, 1)
        least = self.guarantee().epsilon(allowed)
        if not allowed or not self.fixed or len({release.records for release in self.releases}) != 1:
            return least
        return min(least, self.curve().epsilon(allowed))

    @property
    def report(self) -> str:
        """The releases with lines, prices and records, the rule by which they add up, and cheaper ways."""
        return report_text(self)

    def __str__(self) -> str:
        return self.report

    def plot(self, path: str | PathLike[str], *others: Trace) -> Path:
        """Draws what each record paid, also beside other programs."""
        from dither.plots import paid_picture  # matplotlib is an extra

        every = (self, *others)
        pure = {isinstance(each.loss(), Pure) for each in every}
        if len(pure) > 1:
            raise ArgumentError("One picture shows epsilon or rho, not both.", fix="draw them one by one.")
        return paid_picture({each.name: each.paid for each in every}, "ε" if pure == {True} else "ρ", path)


def trace(program: Callable[..., Any], *data: Records, limit: Filter | None = None) -> Trace:
    """Runs a program on private records, and returns its result with its price.

    The program gets a private vector for each of `data` (for a table: rows). It computes with them, and calls
    `value.release(mechanism)` where it needs noise. It cannot look at private values. `limit`: a filter that refuses the
    release that would exceed it, for programs that choose their releases by earlier noise.

    >>> import dither as dt
    >>> run = trace(lambda x: x.sum().release(dt.Geometric(epsilon=1, sensitivity=1)), dt.records([0, 1, 1], 0, 1))
    >>> type(run.result), run.loss()
    (<class 'int'>, Pure(epsilon=Fraction(1, 1)))
    """
    if not callable(program) or not data or not all(isinstance(each, Records) for each in data):
        raise ArgumentError(
            "trace takes a program and its records.",
            fix=Fix("write {call}.", call=Python("dt.trace(program, dt.records(values, 0, 1))")),
        )
    count = sum(len(each.exact) for each in data)
    run = Run(count, limit)
    try:
        result = program(*_private(run, data))
        _refuse_private(result)
        return Trace(
            getattr(program, "__name__", "program"),
            plain(result),
            tuple(run.releases),
            tuple(run.depends.items()),
            run.charges.promised,
            count,
            run.terms,
            run.charges.paid(),
            run.charges.loss(),
        )
    except Exception as error:
        spent = run.charges.loss()
        if run.releases and not isinstance(error, DitherError):
            error.add_note(f"dt.trace: the run has cost {spent} before this.")
        raise
    finally:
        run.close()


def _private(run: Run, data: tuple[Records, ...]) -> list[Private | Rows]:
    first, found = 0, list[Private | Rows]()
    for each in data:
        count = len(each.exact)
        if each.exact.ndim == 2:
            found.append(Rows(run, each.exact, each.low, each.high, each.step, first))
        else:
            low, high = np.full(count, each.low[0]), np.full(count, each.high[0])
            moved = Influence.own(run.records, first, high - low)
            found.append(Private(run, Bounded(each.exact.copy(), low, high, each.step, moved), scalar=False))
        first += count
    return found


def _refuse_private(result: Any) -> None:
    parts = result.values() if isinstance(result, dict) else result if isinstance(result, (list, tuple)) else [result]
    for each in parts:
        if isinstance(each, Secret):
            raise DitherError("The program returns a private value.", fix="release it with a mechanism, and return that.")
        if isinstance(each, (dict, list, tuple)):
            _refuse_private(each)
