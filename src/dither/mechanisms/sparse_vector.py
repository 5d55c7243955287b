"""Sparse vector: answers "is this count above the threshold?" many times; only the few yes answers cost privacy.

    T' = threshold + noise(2 * sensitivity / epsilon)              drawn once
    yes if  exact_i + noise(4 * cutoff * sensitivity / epsilon) >= T'        stops after `cutoff` yes answers

both noises two-sided geometric. Why it is private: compare T' = t on the data with T' = t + sensitivity on neighbouring
data, which costs epsilon/2 once. Then every no is at least as likely there (the bound rose by at least as much as the
count could), and each yes needs its noise 2 * sensitivity higher, which costs epsilon / (2 * cutoff), at most cutoff times.
Noise that ignores the cutoff, noise on the threshold only, no cutoff at all, or releasing the values: all known bugs.
Reference: Lyu, Su and Li, VLDB 2017, Algorithm 1; Dwork and Roth 2014, section 3.6.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NoReturn

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dither.errors import ArgumentError, DitherError
from dither.exact import numbers
from dither.exact.balls import Real, certainly_at_most
from dither.exact.laws.base import Law, search
from dither.exact.laws.derived import Finite
from dither.exact.laws.geometric import TwoSided
from dither.exact.numbers import Number, positive
from dither.mechanisms import base
from dither.mechanisms.base import Example, Mechanism, check_confidence, epsilon_words
from dither.mechanisms.noisy_max import Race
from dither.mechanisms.norms import L1
from dither.privacy.losses import Pure
from dither.process import Origin

_MOST_QUESTIONS = 12


@dataclass(frozen=True)
class SparseVector(Mechanism):
    """Answers yes or no about whole-number counts until it has answered yes `cutoff` times.

    Guarantee: epsilon-DP for a whole session, for any number of adaptively chosen questions, where one unit moves
    each count by at most `sensitivity`.
    Relies on: the threshold being public. `loss` is the price of one session; each `start` is another.

    >>> session = SparseVector(epsilon=1, sensitivity=1, threshold=1000).start()
    >>> session.ask(0), session.ask(2000), session.open
    (False, True, False)
    """

    tag: ClassVar[str] = "SparseVector"
    epsilon: Fraction
    sensitivity: int
    threshold: int
    cutoff: int

    def __init__(self, *, epsilon: Number, sensitivity: Number, threshold: int, cutoff: int = 1) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "sensitivity", L1(sensitivity).total(None))
        object.__setattr__(self, "threshold", numbers.whole(threshold, "threshold"))
        object.__setattr__(self, "cutoff", numbers.whole(cutoff, "cutoff", least=1))
        self.threshold_noise()
        self.question_noise()

    @classmethod
    def with_scale(cls, scale: Number, *, sensitivity: Number, threshold: int, cutoff: int = 1) -> SparseVector:
        """Builds it from the noise on the threshold, at the resulting price. Questions get 2 * cutoff times as much."""
        price = 2 * L1(sensitivity).total(None) / positive(scale, "scale")
        return cls(epsilon=price, sensitivity=sensitivity, threshold=threshold, cutoff=cutoff)

    @property
    def scale(self) -> Fraction:
        """Returns the scale of the noise on the threshold."""
        return self.threshold_noise().scale

    def threshold_noise(self) -> TwoSided:
        """Returns the law of the noise on the threshold, drawn once per session."""
        return TwoSided(2 * self.sensitivity / self.epsilon)

    def question_noise(self) -> TwoSided:
        """Returns the law of the noise on a count, drawn for each question."""
        return TwoSided(4 * self.cutoff * self.sensitivity / self.epsilon)

    def start(self) -> Session:
        """Starts a new session, to be charged once at `loss()`."""
        return Session(self)

    def release(self, exact: Sequence[int] | NDArray[Any]) -> tuple[bool, ...]:
        """Returns the answers of one session to these questions in order, up to the one that reaches the cutoff."""
        counts = _counts(exact)
        session, answers = self.start(), []
        for count in counts:
            if not session.open:
                break
            answers.append(session.ask(count))
        return tuple(answers)

    def loss(self) -> Pure:
        return Pure(self.epsilon)

    def outcome(self, k: int) -> tuple[bool, ...]:
        """Returns the transcript whose answers are k's binary digits after the leading one."""
        return tuple(digit == "1" for digit in f"{numbers.whole(k, 'k'):b}"[1:])

    def probability(self, exact: Sequence[int] | NDArray[Any], transcript: Sequence[bool]) -> arb:
        """Returns Pr[the session's answers begin with this transcript], exactly, at the working precision."""
        counts = _counts(exact)
        answers = [
            numbers.flag(answer, "transcript") for answer in numbers.items(transcript, "transcript", fix="give True or False.")
        ]
        if len(answers) > len(counts):
            raise ArgumentError("transcript must not be longer than exact.", fix="give one count per answer.")
        pairs = list(zip(counts, answers, strict=False))
        # At threshold noise k: no means noise_i <= k + (threshold - exact_i - 1), yes means the opposite.
        centres = [(count - self.threshold + 1, answer) for count, answer in pairs]
        refused = tuple(c for c, yes in centres if not yes)
        accepted = tuple(c for c, yes in centres if yes)
        return Race(self.question_noise().scale, 0, 2 * self.cutoff, refused, accepted).probability()

    def law(self, exact: Sequence[int] | NDArray[Any]) -> Law:
        """Returns the law on whole numbers that encode transcripts in binary, as `outcome` decodes them."""
        counts = _counts(exact)
        if len(counts) > _MOST_QUESTIONS:
            raise ArgumentError(
                f"law lists every transcript of at most {_MOST_QUESTIONS} questions, and exact has {len(counts)}.",
                fix="ask `probability` for single transcripts.",
            )
        return Finite(tuple(self._real(counts, self.outcome(k)) for k in range(2 << len(counts))))

    def _real(self, counts: list[int], transcript: tuple[bool, ...]) -> Real:
        whole = sum(transcript) == self.cutoff and transcript[-1]
        stopped = len(transcript) == len(counts) and sum(transcript) < self.cutoff
        return (lambda: self.probability(counts, transcript)) if whole or stopped else (lambda: arb(0))

    def margin(self, confidence: Number) -> int:
        """Returns the smallest m such that counts from threshold + m on get a yes, and below threshold - m a no.

        Each with this confidence, for one question, by the exact law of the noise on both sides of the comparison.
        """
        allowed = 1 - check_confidence(confidence)
        # The difference of the two noises is symmetric, so both sides have the same m.
        return search(lambda m: certainly_at_most(lambda: self.probability([self.threshold + m], [False]), allowed), 0, None)

    def parameters(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "sensitivity": Fraction(self.sensitivity),
            "threshold": self.threshold,
            "cutoff": self.cutoff,
        }

    def words(self, on: str = "the answer", who: str = "person") -> str:
        until = "1 count is" if self.cutoff == 1 else f"{self.cutoff} counts are"
        rule = f"sparse vector on {on}, until {until} above {self.threshold}"
        return f"{rule}: one {who} changes each count by at most {self.sensitivity}, {epsilon_words(self.epsilon)}"

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            Example(cls(epsilon=1, sensitivity=1, threshold=5), (4, 4, 6), ((5, 3, 5), (3, 5, 7), (5, 5, 7))),
            Example(cls(epsilon=2, sensitivity=2, threshold=0, cutoff=2), (0, 1, -1), ((2, -1, -3), (-2, 3, 1))),
        )


class Session:
    """One run of sparse vector. Refuses to be copied, also by a fork: copies would answer yes more often than `cutoff`."""

    def __init__(self, mechanism: SparseVector) -> None:
        self._mechanism = mechanism
        self._noise = mechanism.question_noise()
        self._bound = mechanism.threshold + mechanism.threshold_noise().draw()
        self._left = mechanism.cutoff
        self._lock = threading.Lock()
        self._origin = Origin()

    @property
    def open(self) -> bool:
        """Returns whether another question may be asked."""
        return self._left > 0

    def ask(self, exact: int) -> bool:
        """Returns whether the noisy count is above the noisy threshold."""
        count = base.single(exact)
        self._origin.check(
            "This session is a copy made by a fork, and each copy would say yes as often as the session may.",
            "ask in the process that started the session, or start and pay for another.",
        )
        with self._lock:
            if not self._left:
                raise DitherError(
                    f"This session has said yes {self._mechanism.cutoff} times and is over.",
                    fix="start and pay for another session.",
                )
            yes = count + self._noise.draw() >= self._bound
            self._left -= yes
        return yes

    def __reduce__(self) -> NoReturn:
        raise TypeError("a session cannot be copied or stored: a copy would ask the same noisy threshold again")


def _listed(exact: Sequence[int]) -> list[int]:
    return [base.single(count) for count in numbers.items(exact, "exact", fix="give the counts of the questions in a list.")]


def _counts(exact: Sequence[int] | NDArray[Any]) -> list[int]:
    counts = base.whole(exact) if isinstance(exact, np.ndarray) else _listed(exact)
    if len(counts) == 0:  # type: ignore[arg-type]
        raise ArgumentError("exact must hold at least one count.", fix="give the counts of the questions.")
    return [int(count) for count in counts]  # type: ignore[union-attr]
