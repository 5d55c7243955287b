"""A channel: a mechanism given by the table of its probabilities, for small examples and for what others publish.

    Pr[output = k | input = x] = rows[x][k]        exact rationals, each row adds up to 1

Why it is private: that is read from the table. Between any two inputs the loss is the largest log ratio of a column, rounded
up. Where an output is possible on one input and impossible on another there is no such epsilon, and the price is
(0, delta) with delta the largest total variation distance of two rows: the most that any set of outputs shifts.
Reference: Alvim et al., The Science of Quantitative Information Flow, 2020 (channels and what they leak).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import combinations
from typing import Any, ClassVar

from dither.errors import ArgumentError
from dither.exact import balls
from dither.exact.laws.base import Law
from dither.exact.laws.derived import Finite
from dither.exact.numbers import Number, items, not_negative, show_about
from dither.mechanisms import base
from dither.mechanisms.base import Example, Mechanism, check_confidence
from dither.privacy.losses import Approx, Loss, Pure

_MOST_CELLS = 1 << 16
_FIX = "give one row of probabilities for each input, as in [['3/4', '1/4'], ['1/4', '3/4']]."


@dataclass(frozen=True)
class Channel(Mechanism):
    """Answers with the probabilities of a table. Inputs are 0, 1, ..., and so are outputs.

    Guarantee: its loss, between any two inputs.
    Relies on: the table being public. An input outside the table becomes the nearest one.

    >>> Channel([["2/3", "1/3"], ["1/3", "2/3"]]).loss().epsilon() > Fraction("0.6931")
    True
    >>> Channel([[1, 0], [0, 1]]).loss()
    Approx(epsilon=0, delta=1)
    """

    tag: ClassVar[str] = "Channel"
    rows: tuple[tuple[Fraction, ...], ...]

    def __init__(self, rows: Iterable[Iterable[Number]]) -> None:
        table = tuple(
            tuple(not_negative(cell, "rows") for cell in items(row, "rows", _FIX)) for row in items(rows, "rows", _FIX)
        )
        if not table or not table[0] or any(len(row) != len(table[0]) or sum(row) != 1 for row in table):
            raise ArgumentError("rows must be of equal length, and each must add up to 1.", fix=_FIX)
        if len(table) * len(table[0]) > _MOST_CELLS:
            raise ArgumentError(f"rows must hold at most {_MOST_CELLS} probabilities.", fix="use a mechanism with a formula.")
        object.__setattr__(self, "rows", table)

    def _input(self, exact: base.Whole) -> int:
        return min(max(base.single(exact), 0), len(self.rows) - 1)

    def release(self, exact: int) -> int:
        return self.law(exact).draw()

    def law(self, exact: int) -> Law:
        return _law(self.rows[self._input(exact)])

    def loss(self) -> Loss:
        pairs = list(combinations(self.rows, 2))
        if any((p == 0) != (q == 0) for one, other in pairs for p, q in zip(one, other, strict=True)):
            return Approx(0, max(_distance(one, other) for one, other in pairs))
        ratios = [max(p / q, q / p) for one, other in pairs for p, q in zip(one, other, strict=True) if p]
        largest = max(ratios, default=Fraction(1))
        return Pure(0) if largest == 1 else Pure(balls.above(lambda: balls.ball(largest).log()))

    def margin(self, confidence: Number) -> int:
        """Returns the smallest m such that, for every input, the output is within m of it with this confidence."""
        chance, columns = check_confidence(confidence), len(self.rows[0])
        for m in range(columns + len(self.rows)):
            if all(sum(row[max(x - m, 0) : x + m + 1], Fraction(0)) >= chance for x, row in enumerate(self.rows)):
                return m
        return columns + len(self.rows)

    def parameters(self) -> dict[str, Any]:
        return {"rows": tuple(" ".join(map(str, row)) for row in self.rows)}

    def words(self, on: str = "the answer", who: str = "person") -> str:
        loss, size = self.loss(), f"{len(self.rows)} inputs and {len(self.rows[0])} outputs"
        shift = show_about(loss.delta(0), up=True)
        price = f"ε = {show_about(loss.epsilon(), up=True)}" if isinstance(loss, Pure) else f"ε = 0, δ = {shift}"
        return f"a channel of {size}, on {on}: one {who} may have any input, {price}"

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            Example(cls([["3/4", "1/4"], ["1/4", "3/4"]]), 0, (1,)),
            Example(cls([["1/2", "1/3", "1/6"], ["1/3", "1/3", "1/3"], ["1/4", "1/4", "1/2"]]), 1, (0, 2)),
            Example(cls([["9/10", "1/10", 0], ["9/10", 0, "1/10"]]), 0, (1,)),
            Example(cls([["1/4", "3/4"]] * 2), 0, (1,)),
        )


def _distance(one: tuple[Fraction, ...], other: tuple[Fraction, ...]) -> Fraction:
    """Returns the total variation distance of two rows."""
    return sum((max(p - q, Fraction(0)) for p, q in zip(one, other, strict=True)), Fraction(0))


@lru_cache(maxsize=256)  # the table is public
def _law(row: tuple[Fraction, ...]) -> Finite:
    # Equal probabilities share a name, so that equal rows are known to be equal.
    names = tuple((("rational", p), Fraction(0)) for p in row)
    return Finite(tuple(partial(balls.ball, p) for p in row), names)
