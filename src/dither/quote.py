"""What a question would cost, before it is asked."""

from __future__ import annotations

import html
from dataclasses import dataclass
from fractions import Fraction

from dither.planning.explain import explain, pair, plan_price
from dither.planning.outputs import predicted
from dither.planning.plan import Plan


@dataclass(frozen=True, repr=False)
class Quote:
    """What a question would cost, and the margins to expect. Nothing was read and nothing charged."""

    plan: Plan
    confidence: Fraction
    assumed_rows: int | None
    refusal: str = ""  # why the budget would not pay for it now
    again: int | None = None  # the entry of the answer that asking would give again, for nothing

    @property
    def price(self) -> str:
        """What would be charged, in words."""
        return plan_price(self.plan)

    @property
    def epsilon(self) -> Fraction:
        """What would be charged."""
        return pair(self.plan)[0]

    @property
    def delta(self) -> Fraction:
        return pair(self.plan)[1]

    def margins(self) -> dict[str, float | None]:
        """For each noisy output its predicted margin: None where it depends on rows that nobody assumed, or is a rank.

        That of a variance or a standard deviation is a typical one: it depends on where between the bounds the values lie.
        """
        return predicted(self.plan, self.assumed_rows, self.confidence)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def __str__(self) -> str:
        told = explain(self.plan, self.confidence, self.assumed_rows)
        if self.refusal:
            return f"{told}\nasked now      it would be refused: {self.refusal}"
        return (
            told
            if self.again is None
            else f"{told}\nasked now      it is the answer of entry {self.again} again: charged nothing"
        )
