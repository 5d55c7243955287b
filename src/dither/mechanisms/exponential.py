"""The exponential mechanism: chooses a candidate, better ones more often.

    Pr[i] proportional to exp(epsilon * score_i / (2 * sensitivity))

Why it is private: one unit moves each score by at most `sensitivity`, so each weight moves by a factor within
e^(+-epsilon/2) and so does their sum; together e^epsilon. The log ratios of all candidates even lie in one interval of
length epsilon (bounded range), which composes better: rho = epsilon^2 / 8. If all scores of neighbours move the same
way (`monotone`), that holds with half the noise: weights move within [1, e^epsilon] or its inverse.

Utility: Pr[score <= OPT - (2 sensitivity / epsilon) (ln(|R| / |R_OPT|) + t)] <= e^-t, with R the candidates and R_OPT
the best of them: the bad ones weigh at most |R| e^(their exponent), the best |R_OPT| e^(theirs).
Reference: McSherry and Talwar, FOCS 2007; bounded range: Dong, Durfee and Rogers, ICML 2020.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dither.exact.laws.base import Law
from dither.exact.laws.categorical import Categorical
from dither.exact.numbers import Number, flag, positive
from dither.exact.samplers.choice import draw_among, draw_index, draw_run
from dither.exact.samplers.peak import draw_peak
from dither.mechanisms import selection
from dither.mechanisms.base import Example, Mechanism, epsilon_words
from dither.mechanisms.norms import bound
from dither.mechanisms.selection import Peak, Runs, Scores
from dither.privacy.losses import Curve, Pure
from dither.privacy.parts import BoundedRange


@dataclass(frozen=True)
class Exponential(Mechanism):
    """Chooses one of finitely many public candidates by private scores. Releases its label, or its index without labels.

    Guarantee: epsilon-DP, with range epsilon, where one unit moves each score by at most `sensitivity`.
    Relies on: the list of candidates being public, and all scores moving the same way if `monotone` is set.

    >>> Exponential(epsilon=1, sensitivity=1, candidates=("north", "south")).release([0, 10**9])
    'south'
    """

    tag: ClassVar[str] = "Exponential"
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
    ) -> Exponential:
        """Builds it from the noise: a lead of `scale` points makes a candidate e times as likely."""
        moved = bound(sensitivity) * (1 if flag(monotone, "monotone") else 2)
        return cls(epsilon=moved / positive(scale, "scale"), sensitivity=sensitivity, candidates=candidates, monotone=monotone)

    @property
    def scale(self) -> Fraction:
        """Returns the lead, in points, that makes a candidate e times as likely."""
        return 1 / self._weight

    @property
    def _weight(self) -> Fraction:
        return selection.weight(self.epsilon, self.sensitivity, self.monotone)

    def release(self, exact: Scores) -> Any:
        # Draws from the law of `law`, without a Fraction for each of a million scores.
        if isinstance(exact, Runs):
            ends = np.cumsum(exact.counts)
            selection.check_size(int(ends[-1]), self.candidates)
            run, place = draw_run(exact.scores, exact.counts, self._weight)
            return self.outcome(int(ends[run] - exact.counts[run]) + place)
        if isinstance(exact, Peak):
            selection.check_size(exact.count, self.candidates)
            return self.outcome(draw_peak(exact.start, exact.slope, exact.count, self._weight))
        if isinstance(exact, np.ndarray):
            array = selection.whole_array(exact)
            selection.check_size(len(array), self.candidates)
            return self.outcome(draw_index(array, self._weight))
        return self.outcome(draw_among(selection.read_scores(exact, self.candidates), self._weight))

    def outcome(self, k: int) -> Any:
        return selection.outcome(k, self.candidates)

    def loss(self) -> Pure:
        return Pure(self.epsilon, rho=self.epsilon**2 / 8)

    def curve(self) -> Curve:
        return Curve.of(BoundedRange(self.epsilon))

    def law(self, exact: Scores) -> Law:
        scores = selection.read_scores(exact, self.candidates)
        per_point = self._weight
        # Equal scores share one Fraction: a million scores have far fewer distinct values.
        weights = {score: per_point * score for score in set(scores)}
        return Categorical(tuple(weights[score] for score in scores))

    def margin(self, confidence: Number, *, candidates: int | None = None, best: int = 1) -> Fraction:
        """Returns how far below the best score the chosen one may lie: the utility theorem, rounded up.

        `candidates` is their number (known if they are labelled), `best` the least number that share the top score.
        """
        count = len(self.candidates) if candidates is None and self.candidates is not None else candidates
        return selection.utility(confidence, self._weight, count, best)

    @property
    def noise_scale(self) -> float:
        """Returns the scale of a score's weight, for margins."""
        return float(self.scale)

    @property
    def noise_variance(self) -> float:
        """Returns about the variance of a score's noise, for weights."""
        return 2 * self.noise_scale**2

    def parameters(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "sensitivity": self.sensitivity,
            "candidates": self.candidates,
            "monotone": self.monotone or None,
        }

    def words(self, on: str = "the answer", who: str = "person") -> str:
        return f"exponential mechanism over {on}, {epsilon_words(self.epsilon)} in each group"

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            Example(cls(epsilon=1, sensitivity=1), (3, 0, 1, 1), ((2, 1, 0, 2), (4, 1, 2, 2), (2, 1, 2, 2))),
            Example(
                cls(epsilon="1/2", sensitivity=1, candidates=("a", "b", "c"), monotone=True),
                (10, 10, 0),
                ((11, 10, 0), (10, 11, 1), (11, 11, 1)),
            ),
            Example(
                cls(epsilon=2, sensitivity="1/2"), (Fraction(1, 3), 1000), ((Fraction(5, 6), Fraction(1999, 2)), (0, 1000))
            ),
            Example(cls(epsilon=1, sensitivity=2), _runs((3, 4), (0, 1), (-2, 2)), (_runs((1, 4), (2, 1), (-4, 2)),)),
            Example(cls(epsilon=1, sensitivity=2), Peak(-5, 3, 4), (Peak(-6, 3, 4), Peak(-7, 3, 4), Peak(-3, 3, 4))),
        )


def _runs(*pairs: tuple[int, int]) -> Runs:
    scores, counts = np.array(pairs, dtype=np.int64).T
    return Runs(scores, counts)
