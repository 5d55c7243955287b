"""What a plan costs, stated both ways, and which noise it is the price of: for ledgers and receipts.

Everything here is read off the objects that draw: a price of its own, kept beside them, could come apart from the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dither.planning.plan import Plan
from dither.privacy.filters import Charge
from dither.privacy.losses import Approx, Pure, total


def charge(plans: Sequence[Plan]) -> Charge:
    """The charge of plans that are run together. A question is one plan; a proposal of bounds has several."""
    losses, concentrated = [plan.loss for plan in plans], [plan.zcdp for plan in plans]
    stated = total(losses)
    if not isinstance(stated, (Pure, Approx)):
        raise TypeError("a plan's loss is pure or (epsilon, delta)")
    return Charge.of(stated, total(concentrated).zcdp())


def mechanisms(plans: Sequence[Plan]) -> tuple[dict[str, Any], ...]:
    """One record for each noise that will be drawn: its name and its exact parameters, in plain values."""
    found = []
    for plan in plans:
        for noise in plan.noises:
            found.append({**noise.record, "on": noise.of.words, "groups": noise.groups, "steps": noise.steps})
        found += [{**plan.threshold.record(), "on": "keys", "groups": 1, "steps": 1}] if plan.threshold else []
    return tuple(found)
