"""Permute and flip: chooses a candidate with less expected error than the exponential mechanism, at the same epsilon.

Takes the candidates in random order and flips a coin for each, heads with probability q_i; the first head wins.

    q_i = exp(epsilon * (score_i - OPT) / (2 * sensitivity))
    p_i = q_i * integral over u in [0, 1] of the product over j != i of (1 - u q_j)

A best candidate has q = 1, so one always wins. u is the place of i in the order: each other candidate comes before i
with probability u, and must then have shown tails.

Why it is private: it is the same as adding one-sided exponential noise to each score and reporting the largest. Given
the others' noise, i wins if its own noise exceeds a bound that moves by at most 2 * sensitivity (or `sensitivity` if
all scores move the same way), and an exponential tail falls by exactly e^(-x) over a distance x.
Its log ratios do *not* have bounded range: it composes at rho = epsilon^2 / 2, not at the exponential mechanism's / 8.
Reference: McKenna and Sheldon, NeurIPS 2020; the equivalence: Ding, Kifer, Saghaian, Steinke, Wang, Xiao and Zhang, 2021.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from flint import arb, arb_poly

from dither.exact.balls import Real, exp, one_minus_exp, precision, working
from dither.exact.laws.base import Law
from dither.exact.laws.coins import ExpCoin, Flat
from dither.exact.laws.derived import Finite
from dither.exact.numbers import Number, flag, positive, show
from dither.mechanisms import selection
from dither.mechanisms.base import Example, Mechanism, epsilon_words
from dither.mechanisms.norms import bound
from dither.mechanisms.selection import Scores
from dither.privacy.losses import Pure


@dataclass(frozen=True)
class PermuteAndFlip(Mechanism):
    """Chooses one of finitely many public candidates by private scores. Releases its label, or its index without labels.

    Guarantee: epsilon-DP where one unit moves each score by at most `sensitivity`.
    Relies on: the list of candidates being public, and all scores moving the same way if `monotone` is set.

    >>> PermuteAndFlip(epsilon=1, sensitivity=1, candidates=("north", "south")).release([0, 10**9])
    'south'
    """

    tag: ClassVar[str] = "PermuteAndFlip"
    epsilon: Fraction
    sensitivity: Fraction
    candidates: tuple[Hashable, ...] | None
    monotone: bool

    def __init__(
        self,
        *,
        epsilon: Number,
        sensitivity: Number,
        candidates: Sequence[Hashable] | None = None,
        monotone: bool = False,
    ) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "sensitivity", bound(sensitivity))
        object.__setattr__(self, "candidates", selection.labels(candidates))
        object.__setattr__(self, "monotone", flag(monotone, "monotone"))

    @classmethod
    def with_scale(
        cls, scale: Number, *, sensitivity: Number, candidates: Sequence[Hashable] | None = None, monotone: bool = False
    ) -> PermuteAndFlip:
        """Builds it from the noise: a candidate `scale` points behind the best shows heads with probability 1/e."""
        moved = bound(sensitivity) * (1 if flag(monotone, "monotone") else 2)
        return cls(epsilon=moved / positive(scale, "scale"), sensitivity=sensitivity, candidates=candidates, monotone=monotone)

    @property
    def scale(self) -> Fraction:
        """Returns how many points behind the best a candidate shows heads with probability 1/e."""
        return 1 / self._weight

    @property
    def _weight(self) -> Fraction:
        return selection.weight(self.epsilon, self.sensitivity, self.monotone)

    def _behind(self, exact: Scores) -> list[Fraction]:
        """Returns -ln q_i: how far each candidate is behind the best."""
        scores = selection.read_scores(exact, self.candidates)
        best, per_point = max(scores), self._weight
        return [per_point * (best - score) for score in scores]

    def release(self, exact: Scores) -> Any:
        scores = selection.read_scores(exact, self.candidates)
        best, per_point = max(scores), self._weight
        order = list(range(len(scores)))
        for left in range(len(order), 0, -1):  # a shuffle that stops at the winner
            place = Flat(left).draw()
            order[place], order[left - 1] = order[left - 1], order[place]
            if ExpCoin(per_point * (best - scores[order[left - 1]])).draw():
                break
        return self.outcome(order[left - 1])

    def outcome(self, k: int) -> Any:
        return selection.outcome(k, self.candidates)

    def loss(self) -> Pure:
        return Pure(self.epsilon)

    def law(self, exact: Scores) -> Law:
        behind = self._behind(exact)
        counts = Counter(behind)
        shared = {x: _probability(x, counts) for x in counts}
        # p_i = q_i times a real that depends on the others alone: their multiset names it.
        names = {x: (("permute and flip", *sorted((counts - Counter([x])).items())), -x) for x in counts}
        return Finite(tuple(shared[x] for x in behind), tuple(names[x] for x in behind))

    def margin(self, confidence: Number, *, candidates: int | None = None, best: int = 1) -> Fraction:
        """Returns how far below the best score the chosen one may lie, rounded up.

        It is never worse than the exponential mechanism, so the utility theorem of that mechanism holds.
        """
        count = len(self.candidates) if candidates is None and self.candidates is not None else candidates
        return selection.utility(confidence, self._weight, count, best)

    def parameters(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "sensitivity": self.sensitivity,
            "candidates": self.candidates,
            "monotone": self.monotone or None,
        }

    def words(self, on: str = "the answer", who: str = "person") -> str:
        moved = show(self.sensitivity)
        return f"permute and flip over {on}: one {who} changes each score by at most {moved}, {epsilon_words(self.epsilon)}"

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            Example(cls(epsilon=1, sensitivity=1), (3, 0, 1, 1), ((2, 1, 0, 2), (4, 1, 2, 2), (2, 1, 2, 2))),
            Example(
                cls(epsilon="1/2", sensitivity=1, candidates=("a", "b", "c"), monotone=True),
                (10, 10, 0),
                ((11, 10, 0), (10, 11, 1), (11, 11, 1)),
            ),
            Example(cls(epsilon=2, sensitivity="1/2"), (Fraction(1, 3), 9), ((Fraction(5, 6), Fraction(17, 2)), (0, 9))),
        )


def _probability(x: Fraction, counts: Counter[Fraction]) -> Real:
    """Returns p_i for a candidate with q_i = e^-x. With v = 1 - u each factor is (1 - q) + q v: all terms are positive."""
    known: dict[int, arb] = {}  # by precision: equal candidates share this function

    def real() -> arb:
        bits = precision()
        if bits not in known:
            with working(bits + 32):
                product = arb_poly([1])
                for other, count in counts.items():
                    product *= arb_poly([one_minus_exp(other), exp(-other)]) ** (count - (other == x))
                area = sum((c / (power + 1) for power, c in enumerate(product.coeffs())), arb(0))
                known[bits] = exp(-x) * area
        return known[bits]

    return real
