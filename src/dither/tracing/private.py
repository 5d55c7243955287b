"""Private values: what a traced program computes with. They show their bounds, and nothing of their value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.exact.laws.base import Integers
from dither.exact.numbers import Number, parse_number, positive, rational, show
from dither.mechanisms.base import Mechanism
from dither.tracing import bounded
from dither.tracing.bounded import Bounded
from dither.tracing.influence import LIMIT, too_large
from dither.tracing.noisy import Noisy
from dither.tracing.refusals import Secret, refused


class Running(Protocol):
    """The part of a run that private values need."""

    records: int

    def release(self, value: Bounded, mechanism: Mechanism, scalar: bool) -> Any: ...

    def left(self, why: str) -> None: ...

    def summed(self, terms: int) -> None: ...


class Private(Secret):
    """A private number, or a vector of them: whole steps of a grid within declared bounds.

    `+`, `-`, `*`, `@`, division by public numbers, `clip`, `minimum`, `maximum`, `floor`, `apply`, `sum`, `cumsum`, `min`,
    `max`, `concat`, and public positions in brackets. Everything else needs a `release`.
    """

    __slots__ = ("_inside", "_scalar", "run")
    run: Running
    _inside: Bounded
    _scalar: bool

    def __init__(self, run: Running, inside: Bounded, scalar: bool) -> None:
        object.__setattr__(self, "run", run)
        object.__setattr__(self, "_inside", inside)
        object.__setattr__(self, "_scalar", scalar)

    def __setattr__(self, name: str, value: object) -> None:
        raise refused("Private values do not change in place.", "compute a new value, such as x + y.")

    def __repr__(self) -> str:
        inside = self._inside
        what = "a private number" if self._scalar else f"{inside.outputs} private numbers"
        if not inside.outputs:
            return what
        low, high = inside.step * int(inside.low.min()), inside.step * int(inside.high.max())
        grid = "" if inside.step == 1 else f" in steps of {show(inside.step)}"
        return f"<{what} from {show(low)} to {show(high)}{grid}>"

    # --- arithmetic -------------------------------------------------------------------------------------------------

    def _with(self, other: Any, how: Callable[[Bounded, Bounded], Bounded]) -> Any:
        read = as_private(self.run, other)
        return (
            NotImplemented
            if read is None
            else Private(self.run, how(self._inside, inside(read)), self._scalar and is_scalar(read))
        )

    def __add__(self, other: Any) -> Any:
        return self._with(other, bounded.plus)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: bounded.plus(a, bounded.negative(b)))

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: bounded.plus(bounded.negative(a), b))

    def __mul__(self, other: Any) -> Any:
        return self._with(other, bounded.times)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        """Divides by a public number: the grid becomes finer, and nothing is rounded."""
        if isinstance(other, Private):
            raise refused("Nothing is divided by a private value: it may be 0.", "release it, and divide by what comes back.")
        by = parse_number(other)
        if by is None or not by:
            raise ArgumentError(
                "A private value is divided by public numbers other than 0.", fix="multiply by a public vector."
            )
        return self * (1 / by)

    def __neg__(self) -> Private:
        return self._made(bounded.negative(self._inside))

    def __pos__(self) -> Private:
        return self

    def __abs__(self) -> Private:
        return self.maximum(-self)

    def __matmul__(self, other: Any) -> Private:
        product = self * other
        return product.sum() if isinstance(product, Private) else NotImplemented

    __rmatmul__ = __matmul__

    def _made(self, inside: Bounded) -> Private:
        return Private(self.run, inside, self._scalar)

    def clip(self, low: Number | Noisy, high: Number | Noisy, step: Number | None = None) -> Private:
        """Moves numbers into public bounds; with `step`, rounds them down to multiples of it."""
        return self._made(bounded.clipped(self._inside, self._public(low), self._public(high), step))

    def _public(self, end: Any) -> Any:
        if isinstance(end, Noisy):
            self.run.left("bounds were chosen by a noisy value")
            return rational(end.values.item(), "a bound")
        return end

    def floor(self, step: Number) -> Private:
        """Rounds down to multiples of a coarser step."""
        return self._made(bounded.floored(self._inside, positive(step, "step")))

    def apply(self, function: Callable[[Fraction], float | Fraction], step: Number) -> Private:
        """Replaces each number by a public function of it, in multiples of `step`.

        The function is called with every number within the bounds (at most 2^16 of them), never with a private one.
        """
        return self._made(bounded.looked_up(self._inside, function, step))

    def minimum(self, other: Any) -> Private:
        """Returns the smaller of two, number by number."""
        return self._either(other, np.minimum)

    def maximum(self, other: Any) -> Private:
        """Returns the larger of two, number by number."""
        return self._either(other, np.maximum)

    def _either(self, other: Any, how: Callable[..., Integers]) -> Private:
        found = self._with(other, lambda a, b: bounded.either(a, b, how))
        if found is NotImplemented:
            raise ArgumentError(f"A private value is not combined with a {type(other).__name__}.", fix="give numbers.")
        return found  # type: ignore[no-any-return]

    # --- vectors ----------------------------------------------------------------------------------------------------

    def sum(self) -> Private:
        """Returns the sum of all numbers."""
        return Private(self.run, bounded.added(self._inside), scalar=True)

    def cumsum(self) -> Private:
        """Returns the sums of the first number, the first two, and so on."""
        return self._made(bounded.cumulated(self._inside))

    def concat(self, *others: Any) -> Private:
        """Returns one vector of this value and others, for one release of them all."""
        whole = self._inside
        for other in others:
            read = as_private(self.run, other)
            if read is None:
                raise ArgumentError(f"A private value is not combined with a {type(other).__name__}.", fix="give numbers.")
            whole = bounded.concatenated(whole, inside(read))
        return Private(self.run, whole, scalar=False)

    def min(self) -> Private:
        """Returns the smallest number."""
        return Private(self.run, bounded.extreme(self._inside, np.minimum), scalar=True)

    def max(self) -> Private:
        """Returns the largest number."""
        return Private(self.run, bounded.extreme(self._inside, np.maximum), scalar=True)

    def __len__(self) -> int:
        if self._scalar:
            raise refused("A private number has no length.", "use a vector.")
        return self._inside.outputs

    def __iter__(self) -> Iterator[Private]:
        return iter([self[place] for place in range(len(self))])

    def __getitem__(self, key: Any) -> Private:
        """Returns the number at a public position, or those of a slice, a list of positions or a mask."""
        if isinstance(key, Secret):
            raise refused("A private value cannot choose a position.", "choose positions by public or noisy values.")
        places = np.arange(len(self))
        try:
            found = np.asarray(places[key.__index__() if isinstance(key, Noisy) else key])
        except (IndexError, TypeError, ValueError, OverflowError):
            raise ArgumentError(
                f"There is no such position in {len(self)} numbers.", fix="give a position from 0 on."
            ) from None
        chosen = np.atleast_1d(found).ravel()
        once = isinstance(key, slice) or found.ndim == 0
        return Private(self.run, bounded.taken(self._inside, chosen, once=once), scalar=found.ndim == 0)

    # --- noise ------------------------------------------------------------------------------------------------------

    def release(self, mechanism: Mechanism) -> Any:
        """Charges every record for what it can move, and returns the noisy value, or the mechanism's choice.

        The mechanism's own sensitivity only says how much noise there is; the price follows from the traced moves.
        """
        return self.run.release(self._inside, mechanism, self._scalar)


def inside(value: Private) -> Bounded:
    """Returns what a private value is inside, for the other files of this package."""
    return value._inside


def is_scalar(value: Private) -> bool:
    return value._scalar


def as_private(run: Running, other: Any) -> Private | None:
    """Returns a private value of this run, or a public or noisy one in the same form; None if it is no number.

    Refuses values of another run: their records are charged there.
    """
    if isinstance(other, Private):
        if other.run is not run:
            raise refused("Values of two different runs of dt.trace are combined.", "give all data to one run.")
        return other
    if isinstance(other, Noisy):
        return _from_noisy(run, other)
    single = parse_number(other)
    if single is not None:
        step = Fraction(1, single.denominator)
        return Private(run, bounded.constant(_wholes([single], step), step, run.records), scalar=True)
    return _from_array(run, other)


def _from_noisy(run: Running, value: Noisy) -> Private | None:
    if value.declared is not None:
        whole, low, high, step = value.declared
        ends = (np.full(len(whole), end, dtype=np.int64) for end in (low, high))
        return Private(run, bounded.constant(whole, step, run.records, *ends), scalar=value.values.ndim == 0)
    run.left("a noisy value without declared bounds was combined with a private one")
    return as_private(run, value.values.item() if value.values.ndim == 0 else value.values)


def _from_array(run: Running, other: Any) -> Private | None:
    if not isinstance(other, (np.ndarray, list, tuple)) or any(isinstance(each, (Secret, Noisy)) for each in other):
        return None
    try:
        array = np.asarray(other)
    except ValueError:  # rows of different lengths
        raise ArgumentError(
            "A public vector has one axis, and this has rows of different lengths.", fix="give one axis."
        ) from None
    if array.ndim != 1:
        raise ArgumentError(f"A public vector has one axis, and this has {array.ndim}.", fix="give one axis.")
    if array.dtype.kind == "i":
        return Private(run, bounded.constant(_fitting(array), Fraction(1), run.records), scalar=False)
    numbers = [rational(each, "a number of the vector") for each in array.tolist()]
    step = Fraction(1, int(np.lcm.reduce([each.denominator for each in numbers], dtype=object)) if numbers else 1)
    return Private(run, bounded.constant(_wholes(numbers, step), step, run.records), scalar=False)


def _wholes(numbers: list[Fraction], step: Fraction) -> Integers:
    return _fitting(np.array([int(each / step) for each in numbers], dtype=object))


def _fitting(whole: NDArray[Any]) -> Integers:
    """Returns public whole numbers in 64 bits. Refuses larger ones."""
    if any(abs(int(end)) > LIMIT for end in ((whole.min(), whole.max()) if len(whole) else ())):
        raise too_large()
    return np.array(whole, dtype=np.int64)
