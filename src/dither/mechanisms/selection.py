"""Reads the scores of a selection. Checks type and shape, never values.

Scores are whole numbers or Fractions, in a sequence or in an integer array. Neighbouring candidates of equal score may be
given as runs: the mechanism chooses among all their members. Scores that rise and fall along a line are given as a peak, for
any number of candidates. `weight(epsilon, sensitivity, monotone)` is
how strongly a score counts: a score may move up while another moves down, so the distance between two scores
moves by 2 * sensitivity, or by `sensitivity` if all scores of neighbours move the same way (monotone).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError, Blank, Fix, Python
from dither.exact import numbers
from dither.exact.balls import above, ball
from dither.exact.numbers import Number
from dither.mechanisms.base import check_confidence, refuse_masked


@dataclass(frozen=True, eq=False)
class Runs:
    """Scores of many candidates: the first counts[0] have scores[0], the next counts[1] have scores[1], and so on.

    >>> Runs(np.array([5, 7]), np.array([1, 3])).expanded().tolist()
    [5, 7, 7, 7]
    """

    scores: NDArray[np.integer[Any]]
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        whole_array(self.scores)
        if whole_array(self.counts).shape != self.scores.shape or self.counts.size == 0 or int(self.counts.min()) < 1:
            raise ArgumentError("counts must be one positive number for each score.", fix="leave out runs without candidates.")

    def expanded(self) -> NDArray[np.integer[Any]]:
        """Returns one score per candidate."""
        return np.repeat(self.scores, self.counts)


@dataclass(frozen=True)
class Peak:
    """Scores of `count` candidates along a line: -|start + slope u| for u = 0, 1, ...

    >>> Peak(-3, 2, 4).expanded()
    [-3, -1, -1, -3]
    """

    start: int
    slope: int
    count: int

    def __post_init__(self) -> None:
        if not all(type(each) is int for each in (self.start, self.slope, self.count)) or self.slope < 0 or self.count < 1:
            raise ArgumentError(
                "a peak has a whole start, a whole slope of at least 0 and candidates.", fix="give three ints such as 5, 2, 10."
            )

    def expanded(self) -> list[int]:
        """Returns one score per candidate."""
        return [-abs(self.start + self.slope * u) for u in range(self.count)]


Scores = Sequence[int | Fraction] | NDArray[np.integer[Any]] | Runs | Peak


def labels(candidates: Sequence[Hashable] | None) -> tuple[Hashable, ...] | None:
    """Returns the candidates' public names, or None if they are numbered from 0."""
    if candidates is None:
        return None
    letters = list(candidates) if isinstance(candidates, str) else candidates  # "ab" names two
    names = tuple(numbers.items(letters, "candidates", fix='name them in a list, as in ["red", "blue"].'))
    if not names:
        raise ArgumentError("candidates must not be empty.", fix="name at least one candidate, or leave candidates out.")
    return names


def read_scores(scores: Scores, candidates: tuple[Hashable, ...] | None, *, fractions: bool = True) -> list[int | Fraction]:
    """Returns the scores as exact numbers, one per candidate."""
    if isinstance(scores, (Runs, Peak)):
        scores = scores.expanded()
    if isinstance(scores, np.ndarray):
        exact = whole_array(scores).tolist()
    else:
        given = numbers.items(scores, "scores", fix="give one score per candidate, in a list.")
        exact = [_score(score, fractions) for score in given]
    check_size(len(exact), candidates)
    return list(exact)


def whole_array(scores: NDArray[Any]) -> NDArray[Any]:
    """Returns an array of scores. Refuses arrays without whole numbers or with more than one axis."""
    refuse_masked(scores, "scores")
    if scores.ndim != 1 or scores.dtype.kind not in "iu":
        raise ArgumentError(
            f"scores must be whole numbers on one axis, and they are {scores.dtype} on {scores.ndim}.",
            fix="give an integer array with one axis, or a list of ints and Fractions.",
        )
    return scores


def _score(score: Any, fractions: bool) -> int | Fraction:
    if isinstance(score, (bool, np.bool_)) or not isinstance(score, (int, np.integer, Fraction)):
        raise ArgumentError(f"scores must be ints or Fractions, and one is a {type(score).__name__}.", fix="round the scores.")
    if isinstance(score, Fraction):
        if not fractions:
            raise ArgumentError("scores must be ints here, and one is a Fraction.", fix="scale the scores to whole numbers.")
        return score
    return int(score)


def outcome(k: int, candidates: tuple[Hashable, ...] | None) -> Any:
    """Returns the k-th candidate's name, or k if candidates have no names."""
    place = numbers.whole(k, "k")
    if candidates is None:
        return place
    if not 0 <= place < len(candidates):
        raise ArgumentError(f"k must be one of the {len(candidates)} candidates, from 0.", fix="give a smaller k.")
    return candidates[place]


def check_size(count: int, candidates: tuple[Hashable, ...] | None) -> None:
    """Refuses an empty list of scores, and one that does not fit the candidates."""
    if count == 0:
        raise ArgumentError("scores must not be empty.", fix="give one score per candidate.")
    if candidates is not None and count != len(candidates):
        raise ArgumentError(f"scores must be one per candidate: {count} for {len(candidates)}.", fix="match the candidates.")


def weight(epsilon: Fraction, sensitivity: Fraction, monotone: bool) -> Fraction:
    """Returns what one point of score adds to the log weight."""
    return epsilon / (sensitivity if monotone else 2 * sensitivity)


def utility(confidence: Number, per_point: Fraction, candidates: int | None, best: int) -> Fraction:
    """Returns (ln(candidates / best) + t) / per_point with confidence = 1 - e^-t, rounded up."""
    chance = check_confidence(confidence)
    if candidates is None:
        raise ArgumentError(
            "candidates must say how many there are.",
            fix=Fix("give {candidates}, as in {call}.", candidates=Blank(), call=Python("margin(0.95, candidates=4)")),
        )
    n, tops = numbers.whole(candidates, "candidates", least=1), numbers.whole(best, "best", least=1)
    if tops > n:
        raise ArgumentError("best must be at most candidates, and it is more.", fix="give a smaller best.")
    odds = Fraction(n, tops) / (1 - chance)
    return above(lambda: ball(odds).log() / ball(per_point))
