"""What a question would cost, before it is asked."""

from __future__ import annotations

import html
import json
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dither.planning.explain import explain, pair, plan_price
from dither.planning.outputs import predicted, ranks
from dither.planning.plan import Plan
from dither.planning.schema import Field


@dataclass(frozen=True, repr=False)
class Quote:
    """What a question would cost, and the margins to expect. Nothing was read and nothing charged."""

    plan: Plan
    confidence: Fraction
    assumed_rows: int | None
    refusal: str = ""  # why the budget would not pay for it now
    again: int | None = None  # the entry of the answer that asking would give again, for nothing
    counted: bool = False  # though its price would count in the asker's quota: they have not seen it yet

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

    @property
    def schema(self) -> tuple[Field, ...]:
        """Name and kind of each column that the answer would have."""
        return self.plan.schema

    def margins(self) -> dict[str, float | None]:
        """For each noisy output its predicted margin: None where it depends on rows that nobody assumed, or is a rank.

        That of a variance or a standard deviation is a typical one: it depends on where between the bounds the values lie.
        """
        return predicted(self.plan, self.assumed_rows, self.confidence)

    def as_data(self) -> dict[str, Any]:
        """What `to_json` writes."""
        return {
            "columns": [field.name for field in self.schema],
            "kinds": [field.kind for field in self.schema],
            "margins": {
                name: None if margin is None or math.isinf(margin) else margin for name, margin in self.margins().items()
            },
            "ranks": ranks(self.plan, self.confidence),
            "confidence": str(self.confidence),
            "assumed_rows": self.assumed_rows,
            "price": {"epsilon": str(self.epsilon), "delta": str(self.delta)},
            "refused": self.refusal or None,
            "entry": self.again,
            "plan": explain(self.plan, self.confidence, self.assumed_rows),
        }

    def to_json(self) -> str:
        """Columns, margins to expect, price, and what asking now would do: `refused` says why it would be refused, `entry`
        is that of the answer which would be given again. Prices are exact rationals as text."""
        return json.dumps(self.as_data(), ensure_ascii=False, indent=2, allow_nan=False)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def __str__(self) -> str:
        told = explain(self.plan, self.confidence, self.assumed_rows)
        if self.refusal:
            return f"{told}\nasked now      it would be refused: {self.refusal}"
        if self.again is None:
            return told
        counts = "; its price counts in the quota of whoever has not seen it" if self.counted else ""
        return f"{told}\nasked now      it is the answer of entry {self.again} again: charged nothing{counts}"
