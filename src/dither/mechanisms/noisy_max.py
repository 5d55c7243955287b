"""Noisy max: add noise to every score and report which is the largest, never how large.

    release = lowest i with the largest score_i + noise_i        noise two-sided geometric of scale 2 * sensitivity / epsilon

Why it is private: hold the others' noise fixed. Candidate i wins if its own noise is at least some whole number; moving
from data to neighbouring data moves score_i by at most `sensitivity` and the others' best by as much, so that number moves
by at most 2 * sensitivity (by `sensitivity` if all scores move the same way). Pr[noise >= m + d] >= e^(-d / scale)
Pr[noise >= m] for whole d. Ties are settled by index, a rule that does not look at data.
Reporting the winner's noisy score as well costs n * epsilon / 2 instead: a known bug.
Reference: Dwork and Roth 2014, section 3.3 (report noisy max).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dither.errors import ArgumentError, Blank, Fix, Python
from dither.exact import numbers
from dither.exact.balls import Real, certainly_at_most
from dither.exact.law import Law, search
from dither.exact.laws import Finite, TwoSided
from dither.exact.numbers import Number, flag, positive, rounded, show
from dither.mechanisms import answers, race
from dither.mechanisms import scores as reading
from dither.mechanisms.base import Example, Mechanism, epsilon_words, sure
from dither.mechanisms.norms import L1
from dither.mechanisms.scores import Scores
from dither.privacy.losses import Pure

_MOST = 10**6  # candidates that a margin lists one by one


@dataclass(frozen=True)
class NoisyMax(Mechanism):
    """Chooses one of finitely many public candidates by whole-number scores. Releases its label, or its index.

    Guarantee: epsilon-DP where one unit moves each score by at most `sensitivity`.
    Relies on: the list of candidates being public, and `monotone` being true if it is said.

    >>> NoisyMax(epsilon=1, sensitivity=1).margin("0.95", candidates=4)
    9
    """

    tag: ClassVar[str] = "NoisyMax"
    epsilon: Fraction
    sensitivity: Fraction
    candidates: tuple[Hashable, ...] | None
    monotone: bool
    noise: TwoSided = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        *,
        epsilon: Number,
        sensitivity: Number,
        candidates: Sequence[Hashable] | None = None,
        monotone: bool = False,
    ) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "sensitivity", Fraction(L1(sensitivity).total(None)))
        object.__setattr__(self, "candidates", reading.labels(candidates))
        object.__setattr__(self, "monotone", flag(monotone, "monotone"))
        object.__setattr__(self, "noise", TwoSided(self.scale))  # refuses a scale out of range

    @classmethod
    def with_scale(
        cls, scale: Number, *, sensitivity: Number, candidates: Sequence[Hashable] | None = None, monotone: bool = False
    ) -> NoisyMax:
        """From the noise: each score gets noise of this scale, at the price that follows."""
        moved = L1(sensitivity).total(None) * (1 if flag(monotone, "monotone") else 2)
        return cls(epsilon=moved / positive(scale, "scale"), sensitivity=sensitivity, candidates=candidates, monotone=monotone)

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on each score."""
        return 1 / reading.weight(self.epsilon, self.sensitivity, self.monotone)

    def release(self, exact: Scores) -> Any:
        if isinstance(exact, np.ndarray):
            reading.size(len(reading.whole_array(exact)), self.candidates)
            start = answers.whole(exact)
            return self.outcome(int(np.argmax(answers.add(np.asarray(start), self.noise.draw(len(exact))))))
        noisy = [score + self.noise.draw() for score in reading.read(exact, self.candidates, fractions=False)]
        return self.outcome(noisy.index(max(noisy)))

    def outcome(self, k: int) -> Any:
        return reading.outcome(k, self.candidates)

    def loss(self) -> Pure:
        return Pure(self.epsilon)

    def law(self, exact: Scores) -> Law:
        found = [int(score) for score in reading.read(exact, self.candidates, fractions=False)]

        def probability(index: int) -> Real:
            return lambda: race.winner(self.scale, found, index)

        return Finite(tuple(probability(i) for i in range(len(found))))

    def margin(self, confidence: Number, *, candidates: int | None = None) -> int:
        """The smallest m such that, whatever the scores, the chosen one is at least OPT - m with this confidence.

        The worst case for m: one best candidate, last in the list, and all others m + 1 points behind. For candidates
        more than m behind to win, the largest of their noises must exceed the best one's noise by more than m.
        """
        wanted = sure(confidence)
        count = len(self.candidates) if candidates is None and self.candidates is not None else candidates
        if count is None:
            raise ArgumentError(
                "candidates must say how many there are.",
                fix=Fix("give {candidates}, as in {call}.", candidates=Blank(), call=Python("margin(0.95, candidates=4)")),
            )
        others = numbers.whole(count, "candidates", least=1) - 1
        if others >= _MOST:
            raise ArgumentError(f"candidates must be at most {_MOST} for a margin.", fix="give a smaller number.")

        def holds(m: int) -> bool:
            worst = [-m - 1] * others + [0]
            return certainly_at_most(lambda: 1 - race.winner(self.scale, worst, others), 1 - wanted)

        return search(holds, 0, None) if others else 0

    def parameters(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "sensitivity": self.sensitivity,
            "candidates": self.candidates,
            "monotone": self.monotone or None,
        }

    def words(self, on: str = "the answer", who: str = "person") -> str:
        moved, scale = show(self.sensitivity), rounded(float(self.scale))
        noise = f"largest noisy score, noise of scale {scale}, over {on}"
        return f"{noise}: one {who} changes each score by at most {moved}, {epsilon_words(self.epsilon)}"

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            Example(cls(epsilon=1, sensitivity=1), (3, 0, 1, 1), ((2, 1, 0, 2), (4, 1, 2, 2), (2, 1, 2, 2))),
            Example(
                cls(epsilon="1/2", sensitivity=1, candidates=("a", "b", "c"), monotone=True),
                (10, 10, 0),
                ((11, 10, 0), (10, 11, 1), (11, 11, 1)),
            ),
            Example(cls(epsilon=2, sensitivity=3), (0, 10), ((3, 7), (-3, 13), (2, 12))),
        )
