"""What is audited: something that can be run on data, with what it claims and the neighbouring inputs to try.

    run(data) draws its own noise and answers      the claim: Pr[run(D) in S] <= e^epsilon Pr[run(D') in S] + delta

The claim is checked on every pair and in both directions. Neighbours are the owner's matter: a pair that is not
neighbouring under the claim makes every verdict worthless.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dither.errors import ArgumentError
from dither.exact.numbers import rational


@dataclass(frozen=True)
class Target:
    """One claim about one callable. `batch(data, n)` gives n outputs at once, of the same law as `run`, and is optional.

    >>> Target("nothing", run=lambda data: 0, epsilon=Fraction(1), pairs=(([0], [1]),)).delta
    Fraction(0, 1)
    """

    name: str
    run: Callable[[Any], Any]
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    pairs: tuple[tuple[Any, Any], ...] = ()
    note: str = ""
    batch: Callable[[Any, int], Any] | None = None  # a sequence of outputs, or an array with one row for each

    def __post_init__(self) -> None:
        run: Any = self.run
        if not callable(run):
            what = f"run must be callable, and it is a {type(run).__name__}."
            raise ArgumentError(what, fix="pass a function from data to an output.")
        object.__setattr__(self, "epsilon", rational(self.epsilon, "epsilon"))
        object.__setattr__(self, "delta", rational(self.delta, "delta"))
        if self.epsilon < 0 or not 0 <= self.delta < 1:
            what = f"a claim needs epsilon >= 0 and 0 <= delta < 1, and it is ({self.epsilon}, {self.delta})."
            raise ArgumentError(what, where=self.name, fix="state the epsilon and delta that the code promises.")
        object.__setattr__(self, "pairs", tuple((one, other) for one, other in self.pairs))

    def sample(self, data: Any, size: int) -> Any:
        """Outputs on `data`, through `batch` where there is one. Errors pass through: black-box callers catch them."""
        if self.batch is not None:
            return self.batch(data, size)
        return [self.run(data) for _ in range(size)]
