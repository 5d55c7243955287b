"""The exponential mechanism over outputs that cannot be listed: subsets, intervals, paths, trees, orders.

    Pr[output] = e^(epsilon score / (2 sensitivity)) / Z

Why it is private: as for `Exponential`, of which this is the same law; only the way to draw differs (spaces/base.py). One unit
moves the score of each *whole* output by at most `sensitivity`. If it moves each of k items' scores by 1, a set of k items
moves by up to k: that is the sensitivity to state.
TopK makes k choices, each an exponential mechanism at epsilon / k on the items' own scores: their losses add up, and so
do their rho = (epsilon / k)^2 / 8. A choice depends on earlier ones, so the curve is that of k adaptive pure releases.
Reference: McSherry and Talwar, FOCS 2007; bounded range: Dong, Durfee and Rogers, ICML 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

from dither.errors import ArgumentError, Fix, Python
from dither.exact.laws.base import Law
from dither.exact.laws.categorical import Categorical
from dither.exact.laws.derived import Finite
from dither.exact.numbers import Number, flag, positive, show, whole
from dither.mechanisms import selection
from dither.mechanisms.base import Example, Mechanism, check_confidence, epsilon_words
from dither.mechanisms.norms import bound
from dither.mechanisms.spaces import Intervals, Orders, Paths, Space, SpanningTrees, Subsets, TopK
from dither.privacy.losses import ZCDP, Curve, Pure
from dither.privacy.parts import BoundedRange, Response


@dataclass(frozen=True)
class Structured(Mechanism):
    """Chooses one output of a public space by private numbers.

    Guarantee: epsilon-DP, where one unit moves the score of every whole output by at most `sensitivity` (for TopK: the score
    of every item), and all of them the same way if `monotone` is set.
    Relies on: the space being public.

    >>> best = Structured(Subsets(items=40, k=3), epsilon=1, sensitivity=3)
    >>> best.release([0] * 37 + [10**6] * 3)
    (37, 38, 39)
    """

    tag: ClassVar[str] = "Structured"
    space: Space
    epsilon: Fraction
    sensitivity: Fraction
    monotone: bool

    def __init__(self, space: Space, *, epsilon: Number, sensitivity: Number, monotone: bool = False) -> None:
        if not isinstance(space, Space):
            raise ArgumentError(
                f"space must be a space of outputs, and it is a {type(space).__name__}.",
                fix=Fix("write {call}, or another space.", call=Python("dt.spaces.Subsets(items=10, k=3)")),
            )
        object.__setattr__(self, "space", space)
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "sensitivity", bound(sensitivity))
        object.__setattr__(self, "monotone", flag(monotone, "monotone"))

    @property
    def _rate(self) -> Fraction:
        """Returns what one point of score adds to the log weight of a choice."""
        return selection.weight(self.epsilon / self.space.rounds, self.sensitivity, self.monotone)

    def release(self, exact: Any) -> tuple[Any, ...]:
        return self.space.draw(self.space.read(exact), self._rate)

    def loss(self) -> Pure:
        rounds = self.space.rounds
        return Pure(self.epsilon, rho=self.epsilon**2 / (8 if rounds == 1 else 2 * rounds))

    def zcdp(self) -> ZCDP:
        return ZCDP(self.epsilon**2 / (8 * self.space.rounds))

    def curve(self) -> Curve:
        # Bounded range has a curve for releases fixed in advance only, and TopK's choices depend on earlier ones.
        rounds = self.space.rounds
        return Curve.of(BoundedRange(self.epsilon)) if rounds == 1 else Curve.of(Response(self.epsilon / rounds), rounds)

    def law(self, exact: Any) -> Law:
        """Returns the law over `space.outputs()`, for a small space."""
        numbers, rate, outputs = self.space.read(exact), self._rate, self.space.outputs()
        if isinstance(self.space, TopK):
            return Finite(tuple(partial(self.space.probability, numbers, rate, output) for output in outputs))
        return Categorical(tuple(rate * self.space.score(numbers, output) for output in outputs))

    def outcome(self, k: int) -> tuple[Any, ...]:
        outputs, place = self.space.outputs(), whole(k, "k", least=0)
        if place >= len(outputs):
            raise ArgumentError(f"k must be one of the {len(outputs)} outputs, from 0.", fix="give a smaller k.")
        return outputs[place]

    def margin(self, confidence: Number, *, best: int = 1) -> Fraction:
        """Returns how far below the best score the chosen output's may lie: the utility theorem, rounded up.

        For TopK: how far each chosen item may lie below the best one that was left, all k of them with this confidence.
        """
        rounds = self.space.rounds
        chance = 1 - (1 - check_confidence(confidence)) / rounds
        count = self.space.items if isinstance(self.space, TopK) else self.space.size
        return selection.utility(chance, self._rate, count, best)

    def parameters(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "sensitivity": self.sensitivity,
            "space": self.space,
            "monotone": self.monotone or None,
        }

    def words(self, on: str = "the answer", who: str = "person") -> str:
        moved = f"one {who} changes each score by at most {show(self.sensitivity)}"
        return f"a choice among {self.space.size} {self.space.tag}, on {on}: {moved}, {epsilon_words(self.epsilon)}"

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        subsets, top = Subsets(items=4, k=2), TopK(items=3, k=2)
        square = [(0, 1), (1, 3), (0, 2), (2, 3), (1, 2)]
        votes = ((0, 2, 1), (1, 0, 0), (0, 3, 0))
        moved = ((0, 3, 1), (0, 0, 0), (1, 3, 0))
        return (
            Example(cls(subsets, epsilon=1, sensitivity=2), (3, 0, 1, 1), ((4, 1, 0, 0), (4, 1, 2, 2))),
            Example(cls(subsets, epsilon=1, sensitivity=2, monotone=True), (3, 0, 1, 1), ((4, 1, 2, 2), (4, 0, 1, 1))),
            Example(cls(Intervals(cells=4), epsilon=2, sensitivity=1), (2, -1, 3, -4), ((2, 0, 3, -4), (2, -1, 3, -5))),
            Example(cls(Paths(square, 0, 3), epsilon=1, sensitivity=2), (5, 1, 2, 2, 0), ((6, 2, 1, 1, 0), (5, 1, 2, 2, 1))),
            Example(cls(SpanningTrees(square), epsilon=1, sensitivity=3), (5, 1, 2, 2, 0), ((6, 2, 3, 1, 0), (6, 2, 3, 2, 0))),
            Example(cls(top, epsilon=1, sensitivity=1), (2, 0, 1), ((3, 1, 0), (1, 1, 2))),
            Example(cls(Orders(items=3), epsilon=1, sensitivity=3), votes, (moved,)),
        )
