"""What a release returned: public numbers that remember that they differ from run to run.

Arithmetic with them is free (post-processing). Two things are noted, because the price of the run may then depend on its noise:
- a noisy value leaves the trace as a plain bool, number, text or array, so that the program may branch on it;
- a noisy value without declared bounds is combined with a private one, so that bounds and moves depend on it.
`clip(low, high, step)` declares bounds: the price then counts with the bounds, whatever the value is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.exact.laws.base import Integers
from dither.exact.numbers import Number, positive, rational
from dither.mechanisms import base


class Watching(Protocol):
    """The part of a run that noisy values report to."""

    def left(self, why: str) -> None: ...

    def summed(self, terms: int) -> None: ...


class Declared(NamedTuple):
    """The values as whole numbers of steps, with their public bounds."""

    whole: Integers
    low: int
    high: int
    step: Fraction


@dataclass(frozen=True, eq=False, repr=False)
class Noisy(NDArrayOperatorsMixin):
    """A noisy number or array. `terms`: how many releases it adds up, at most."""

    values: NDArray[Any]
    run: Watching
    declared: Declared | None = None
    terms: int = 1

    def _wrapped(self, values: Any, terms: int = 1) -> Noisy:
        self.run.summed(terms)
        return Noisy(np.asarray(values), self.run, terms=terms)

    # --- free -------------------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if options.get("out") is not None:
            return NotImplemented  # noisy values do not change in place
        plain = [each.values if isinstance(each, Noisy) else each for each in inputs]
        try:
            with np.errstate(all="ignore"):
                result = getattr(ufunc, method)(*plain, **options)
        except Exception:
            self.run.left("arithmetic with a noisy value failed")
            raise
        adds = ufunc in (np.add, np.subtract) and method == "__call__"
        terms = sum(each.terms for each in inputs if isinstance(each, Noisy)) if adds else 1
        return tuple(map(self._wrapped, result)) if isinstance(result, tuple) else self._wrapped(result, terms)

    def __getitem__(self, key: Any) -> Noisy:
        return self._wrapped(self.values[key], self.terms)

    def sum(self) -> Noisy:
        """Returns the sum of all numbers."""
        return self._wrapped(self.values.sum(), self.values.size * self.terms)

    def cumsum(self) -> Noisy:
        """Returns the sums of the first number, the first two, and so on."""
        return self._wrapped(np.cumsum(self.values), self.values.size * self.terms)

    def clip(self, low: Number, high: Number, step: Number) -> Noisy:
        """Rounds to multiples of a step within public bounds, which then stand for the values in the price."""
        grid = positive(step, "step")
        bottom, top = -(-rational(low, "low") // grid), rational(high, "high") // grid
        if bottom > top:
            raise ArgumentError("low must not be above high, with a multiple of step between them.", fix="give low and high.")
        whole = np.clip(np.asarray(base.steps(np.atleast_1d(self.values), grid), dtype=np.int64), bottom, top)
        values = (whole * float(grid)).reshape(self.values.shape)
        return Noisy(values, self.run, Declared(whole, int(bottom), int(top), grid))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Noisy]:
        return iter([self[place] for place in range(len(self.values))])

    # --- leaving ----------------------------------------------------------------------------------------------------

    def _left(self, what: str) -> Any:
        self.run.left(f"a noisy value became {what}")
        return self.values

    def __bool__(self) -> bool:
        return bool(self._left("a condition"))

    def __int__(self) -> int:
        return int(self._left("a plain number"))

    def __float__(self) -> float:
        return float(self._left("a plain number"))

    def __index__(self) -> int:
        return self._left("a plain number").item().__index__()  # type: ignore[no-any-return]

    def __array__(self, *args: Any, **options: Any) -> NDArray[Any]:
        return np.array(self._left("a plain array"), *args, **options)

    def __repr__(self) -> str:
        return f"noisy {self._left('text')}"

    def __hash__(self) -> int:
        return hash(self._left("a key").tobytes())


def plain(result: Any) -> Any:
    """Returns what a program returned with noisy values as plain numbers and arrays, also within lists, tuples and dicts."""
    if isinstance(result, Noisy):
        return result.values.item() if result.values.ndim == 0 else result.values
    if isinstance(result, dict):
        return {key: plain(value) for key, value in result.items()}
    if type(result) in (list, tuple):
        return type(result)(plain(each) for each in result)
    return result
