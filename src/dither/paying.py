"""What the ledger is asked: what a price means, and what it is told of a question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from dither.errors import ArgumentError
from dither.exact.numbers import Number, between, not_negative, positive
from dither.ledger.ledger import Declaration, Request
from dither.planning.canonical import canonical
from dither.planning.charges import charge, mechanisms
from dither.planning.choose import Price
from dither.planning.plan import Plan
from dither.privacy.either import Caps, Charge

_DIGITS = 10**30  # a delta that nobody wrote is rounded down to this many parts
ANYONE = "anyone"  # who asks where nobody says so: all of them share one quota


def price(caps: Caps, epsilon: Number, delta: Number | None) -> Price:
    """What is meant by a price. Without a delta: the share of the plain sum's delta that epsilon is of all epsilon."""
    spend = positive(epsilon, "epsilon")
    if delta is None:
        share = caps.delta_sums * min(spend / caps.epsilon, Fraction(1))
        return Price(spend, Fraction(math.floor(share * _DIGITS), _DIGITS))
    allowed = not_negative(delta, "delta")
    if allowed and not caps.delta:
        raise ArgumentError("This catalog is pure: its budget has no delta.", fix="leave delta out.")
    return Price(spend, between(allowed, "delta", 0, 1, open_high=True))


def request(
    declared: Declaration,
    plans: Sequence[Plan],
    tables: Sequence[str],
    text: str,
    purpose: str,
    analyst: str | None,
    fresh: bool,
) -> Request:
    """What the ledger is told of plans that are run together. It sees the question, the catalog and the price: no rows."""
    if analyst is None and declared.analysts is not None and ANYONE not in declared.analysts:
        # No name is offered: names are not proved, and another's would spend another's quota.
        fix = 'name yourself as the curator declared you: analyst="YOUR-NAME".'
        raise ArgumentError("It is not said who asks, and this catalog names who may.", fix=fix)
    units = dict.fromkeys(f"one value of {plan.unit}" if plan.work.by_unit else "one row" for plan in plans)
    return Request(
        question=text,
        plan=canonical(plans, purpose),
        catalog_hash=declared.catalog_hash,
        snapshot=declared.snapshot,
        analyst=ANYONE if analyst is None else analyst,
        charge=charge(plans).rounded_up(Caps.of(declared.epsilon, declared.delta).least_rho),
        tables=tuple(dict.fromkeys(tables)),
        unit=" and ".join(units),
        neighbours=declared.neighbours,
        mechanisms=mechanisms(plans),
        fresh=fresh,
    )


def words(charged: Charge) -> str:
    """A charge in words."""
    return str(Price(charged.epsilon, charged.delta))
