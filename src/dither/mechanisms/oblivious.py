"""Oblivious mechanisms: the noise sees a statistic of the data and nothing else of it.

    K(data) = H(f(data))        f: the statistic, exact       H: a mechanism

Why it is private: neighbouring data have answers at most `sensitivity` apart, and H hides such a step. What `release` returns
depends on the data through f alone, so data with equal answers have equal output distributions.

Totality. An error would tell more than the price covers: `release` never raises and never checks because of the data. If f
fails, gives another shape than `otherwise`, or a value that the mechanism does not take, the answer is `otherwise`. That is
part of f: it may move by more than the sensitivity there, and `check` sees it like any other move.

`check(pairs)` is for the desk, on made-up data: it tells whether f keeps the declared sensitivity on these neighbours, and
whether another mechanism depends on more than f. It proves nothing about other pairs, and its result may be shown to nobody
if the pairs are private.
Reference: Ghosh, Roughgarden and Sundararajan, STOC 2009 (oblivious mechanisms lose nothing for one count).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dither.errors import ArgumentError
from dither.exact.laws.base import Law
from dither.exact.numbers import items, show
from dither.mechanisms.compose import check_releasing
from dither.mechanisms.norms import L1, L2, PerCoordinate
from dither.privacy.losses import ZCDP, Curve, Loss
from dither.privacy.proof import verify

Move = Fraction | float  # infinite between an infinity and any other answer


@dataclass(frozen=True)
class Checked:
    """What `check` found. `keeps` is None if the mechanism declares no sensitivity, and `depends` if no other was given.

    `moves` are the coordinates' moves on `pair`, the first pair that breaks the sensitivity, or else the farthest.
    `otherwise` counts the data on which f has no answer. `agreeing` are data with equal answers, for an auditor.
    """

    keeps: bool | None
    moves: tuple[Move, ...]
    pair: tuple[Any, Any]
    otherwise: int
    agreeing: tuple[tuple[Any, Any], ...]
    depends: bool | None = None
    witness: tuple[Any, Any] | None = None

    def __str__(self) -> str:
        moved = ", ".join(show(move) if isinstance(move, Fraction) else "∞" for move in self.moves)
        kept = {True: "keeps its sensitivity", False: "breaks its sensitivity", None: "declares no sensitivity"}[self.keeps]
        lines = [f"f {kept} on these pairs: it moves by {moved} between {self.pair[0]!r} and {self.pair[1]!r}"]
        if self.otherwise:
            lines.append(f"f has no answer on {self.otherwise} of these data: they count as `otherwise`")
        if self.depends is not None:
            tells = f"depends on more than f: see {self.witness}" if self.depends else "depends on f alone on these data"
            lines.append(f"the other mechanism {tells}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Oblivious:
    """Answers `function(data)` through the mechanism. `otherwise` is the answer where the function has none.

    Guarantee: the mechanism's loss, between data whose answers are within its sensitivity.
    Relies on: the function keeping that sensitivity (`check` looks for counterexamples), and `otherwise` having its shape.

    >>> from dither.mechanisms.geometric import Geometric
    >>> old = Oblivious(lambda ages: sum(age >= 65 for age in ages), Geometric(epsilon=1, sensitivity=1))
    >>> type(old.release([70, 20])), type(old.release("no ages")), old.loss()
    (<class 'int'>, <class 'int'>, Pure(epsilon=Fraction(1, 1)))
    """

    function: Callable[[Any], Any]
    mechanism: Any
    otherwise: Any = 0

    def __post_init__(self) -> None:
        check_releasing(self.mechanism)
        function: Any = self.function
        if not callable(function):
            what = f"function must be callable, and it is a {type(function).__name__}."
            raise ArgumentError(what, fix="pass a function of the data.")
        if isinstance(self.otherwise, list):
            object.__setattr__(self, "otherwise", tuple(self.otherwise))
        self.mechanism.release(self.otherwise)  # refuses an answer that the mechanism does not take, before there are data

    def answer(self, data: Any) -> Any:
        """Returns the exact answer, which is secret, or `otherwise`."""
        try:
            value = self.function(data)
            return value if _shape(value) == _shape(self.otherwise) else self.otherwise
        except Exception:  # whatever it is: the data must not decide whether there is an answer
            return self.otherwise

    def release(self, data: Any) -> Any:
        return self._on(self.mechanism.release, data)

    def law(self, data: Any) -> Law:
        """Returns the exact law of the release on these data."""
        law: Law = self._on(self.mechanism.law, data)
        return law

    def _on(self, method: Callable[[Any], Any], data: Any) -> Any:
        answer = self.answer(data)
        try:
            return method(answer)
        except Exception:  # a value of a type that the mechanism refuses
            return method(self.otherwise)

    def outcome(self, k: int) -> Any:
        return self.mechanism.outcome(k)

    def loss(self) -> Loss:
        loss: Loss = self.mechanism.loss()
        return loss

    def zcdp(self) -> ZCDP:
        stated: ZCDP = self.mechanism.zcdp() if hasattr(self.mechanism, "zcdp") else self.loss().zcdp()
        return stated

    def curve(self) -> Curve:
        curve: Curve = self.mechanism.curve()
        return curve

    def check(self, pairs: Iterable[tuple[Any, Any]], other: Any = None) -> Checked:
        """Checks on pairs of neighbouring data whether f keeps the declared sensitivity; `other` for a mechanism of the data.

        `other` depends on more than f if its law differs between two of these data with equal answers.

        >>> from dither.mechanisms.geometric import Geometric
        >>> from dither.privacy.neighbours import AddRemove
        >>> total = Oblivious(sum, Geometric(epsilon=1, sensitivity=1))
        >>> total.check(AddRemove().pairs([0, 1], rows=3)).keeps, total.check(AddRemove().pairs([0, 2], rows=3)).keeps
        (True, False)
        """
        listed = [(pair[0], pair[1]) for pair in items(pairs, "pairs", fix=_FIX) if _is_pair(pair)]
        if not listed:
            raise ArgumentError("pairs must hold pairs of neighbouring data, and it holds none.", fix=_FIX)
        moved = [(self._moves(one, two), (one, two)) for one, two in listed]
        broken = [(moves, pair) for moves, pair in moved if not self._keeps(moves)]
        moves, pair = broken[0] if broken else max(moved, key=lambda each: _far(each[0]))
        declared = getattr(self.mechanism, "sensitivity", None) is not None
        data = [each for pair in listed for each in pair]
        lost = sum(self._is_lost(each) for each in data)
        agreeing = tuple(self._agreeing(data))
        witness = None if other is None else _witness(check_releasing(other, "other"), agreeing)
        return Checked(
            not broken if declared else None,
            tuple(moves),
            pair,
            lost,
            agreeing,
            None if other is None else witness is not None,
            witness,
        )

    def _is_lost(self, data: Any) -> bool:
        """Returns whether f has no answer on these data that the mechanism takes."""
        try:
            value = self.function(data)
            self.mechanism.release(value)
        except Exception:
            return True
        return _shape(value) != _shape(self.otherwise)

    def _vector(self, data: Any) -> list[Move]:
        value = self.otherwise if self._is_lost(data) else self.answer(data)
        return [_exact(each) for each in (np.ravel(np.array(value, dtype=object)))]

    def _moves(self, one: Any, two: Any) -> list[Move]:
        return [_difference(a, b) for a, b in zip(self._vector(one), self._vector(two), strict=True)]

    def _keeps(self, moves: Sequence[Move]) -> bool:
        norm = getattr(self.mechanism, "sensitivity", None)
        if norm is None:
            return True
        exact = [move for move in moves if isinstance(move, Fraction)]
        if len(exact) < len(moves):
            return False
        if isinstance(norm, (L1, L2, PerCoordinate)):
            return norm.covers(exact)
        apart = getattr(self.mechanism, "monotone", False) and min(exact) < 0 < max(exact)
        return all(abs(move) <= norm for move in exact) and not apart

    def _agreeing(self, data: list[Any]) -> Iterable[tuple[Any, Any]]:
        """Yields pairs of different data with equal answers."""
        first: dict[str, Any] = {}
        for each in data:
            known = first.setdefault(repr(self._vector(each)), each)
            if repr(known) != repr(each):
                yield known, each


_FIX = "give a list of pairs, such as AddRemove().pairs([0, 1], 3)."


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, (tuple, list)) and len(pair) == 2


def _shape(value: Any) -> tuple[int, ...]:
    if isinstance(value, np.ndarray):
        return tuple(value.shape)
    return (len(value),) if isinstance(value, (list, tuple)) else ()


def _exact(value: Any) -> Move:
    """Returns a number as mechanisms read it: NaN and what is no number count as 0."""
    try:
        if isinstance(value, (float, np.floating)) and not math.isfinite(value):
            return Fraction(0) if math.isnan(value) else float(value)
        return Fraction(value)
    except (TypeError, ValueError, OverflowError):
        return Fraction(0)


def _difference(one: Move, two: Move) -> Move:
    if isinstance(one, Fraction) and isinstance(two, Fraction):
        return two - one
    return Fraction(0) if one == two else math.inf


def _far(moves: Sequence[Move]) -> Move:
    exact = [abs(move) for move in moves if isinstance(move, Fraction)]
    return sum(exact, Fraction(0)) if len(exact) == len(moves) else math.inf


def _witness(other: Any, agreeing: Iterable[tuple[Any, Any]]) -> tuple[Any, Any] | None:
    """Returns two data with equal answers on which the other mechanism's laws differ, or None."""
    return next((pair for pair in agreeing if not verify(other, [pair], 0).holds), None)
