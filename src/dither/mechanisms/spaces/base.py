"""A space of outputs that are too many to list: what an output scores, and how one is drawn.

    Pr[output] = e^(rate score(output)) / Z        Z = the sum of e^(rate score) over all outputs

An output is made in steps, and each step is a choice among few ways to go on. The weight of a way is the sum of e^(rate score)
over all outputs that it leads to, a ball that is made smaller until the choice is decided. So the product of the steps'
probabilities is Pr[output] exactly. `walk` makes one output with a given chooser: `draw` chooses by random bits, `explore`
goes every way and returns the probability of each output that follows from the very steps that `draw` takes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Protocol

from flint import arb

from dither.errors import ArgumentError
from dither.exact import balls
from dither.exact.samplers.uniform import Uniform

Weights = Callable[[], Sequence[arb]]
Output = tuple[Any, ...]
LARGEST = 4096  # the most outputs that are listed


class Chooser(Protocol):
    """Chooses a way to go on, from weights at the working precision. `estimates` are probabilities within 2^-31, if known."""

    def __call__(self, weights: Weights, estimates: Sequence[float] | None = None) -> int: ...


class Space(ABC):
    """Public outputs with scores that add up from private numbers."""

    tag: ClassVar[str]
    rounds: int = 1  # choices that are priced separately

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of outputs."""

    @abstractmethod
    def read(self, exact: Any) -> Any:
        """Returns the private numbers. Refuses by type and shape, never by value."""

    @abstractmethod
    def score(self, numbers: Any, output: Output) -> int | Fraction:
        """Returns the score of one output."""

    @abstractmethod
    def listed(self) -> Iterator[Output]:
        """Yields every output."""

    @abstractmethod
    def walk(self, numbers: Any, rate: Fraction, choose: Chooser) -> Output:
        """Makes one output, step by step."""

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """Returns the space in plain values, for records of mechanisms."""

    def log_weight(self, numbers: Any, rate: Fraction, output: Output) -> Fraction:
        return rate * self.score(numbers, output)

    def outputs(self) -> tuple[Output, ...]:
        """Returns every output of a small space."""
        if self.size > LARGEST:
            raise ArgumentError(
                f"The law of {self.size} outputs is too long to write down.", fix="ask for the law of a smaller space."
            )
        return _listed(self)

    def draw(self, numbers: Any, rate: Fraction) -> Output:
        return self.walk(numbers, rate, pick)


@lru_cache(maxsize=16)
def _listed(space: Space) -> tuple[Output, ...]:
    return tuple(space.listed())


def pick(weights: Weights, estimates: Sequence[float] | None = None) -> int:
    """Draws an index with probability proportional to its weight. No float decides: balls do where an estimate is close."""
    if estimates is None:
        with balls.working(64):
            possible = [i for i, weight in enumerate(weights()) if not weight.is_zero()]
    else:
        possible = list(range(len(estimates)))
    u, low, high = Uniform(), 0, len(possible) - 1
    while low < high:
        middle = (low + high) // 2
        share = _share(weights, possible[: middle + 1])
        if estimates is None:
            below = u.below(share)
        else:
            below = u.below_about(sum(estimates[i] for i in possible[: middle + 1]), share)
        low, high = (low, middle) if below else (middle + 1, high)
    return possible[low]


def _share(weights: Weights, chosen: Sequence[int]) -> balls.Real:
    def share() -> arb:
        every = weights()
        return sum((every[i] for i in chosen), arb(0)) / sum(every, arb(0))

    return share


class _OpenError(Exception):
    """Raised where a script ends and a choice is left."""

    def __init__(self, shares: Sequence[arb]) -> None:
        self.shares = shares


def explore(space: Space, numbers: Any, rate: Fraction, bits: int = 256) -> dict[Output, arb]:
    """Returns the probability of every output, as the product of the steps' probabilities along every way of `walk`."""
    found: dict[Output, arb] = {}
    waiting: list[tuple[tuple[int, ...], arb]] = [((), arb(1))]
    with balls.working(bits):
        while waiting:
            script, chance = waiting.pop()
            try:
                output = space.walk(numbers, rate, _scripted(script))
            except _OpenError as more:
                waiting += [((*script, i), chance * part) for i, part in enumerate(more.shares) if not part.is_zero()]
            else:
                found[output] = found.get(output, arb(0)) + chance
    return found


def _scripted(script: tuple[int, ...]) -> Chooser:
    places = iter(script)

    def choose(weights: Weights, estimates: Sequence[float] | None = None) -> int:
        place = next(places, None)
        if place is not None:
            return place
        every = weights()
        total = sum(every, arb(0))
        raise _OpenError([each / total for each in every])

    return choose
