"""What the ledger is asked: what a price means, what it is told of a question, and whether it would refuse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from dither.errors import ArgumentError, BudgetError, ClosedError, Fix, LedgerError
from dither.exact.numbers import Number, between, not_negative, positive
from dither.ledger import admission, state
from dither.ledger.entries import Committed, Reserved, parse, shown_to
from dither.ledger.ledger import Declaration, Ledger, Request
from dither.ledger.sealed import keys_of
from dither.planning.charges import charge, mechanisms
from dither.planning.choose import Price
from dither.planning.identity import Identity
from dither.planning.plan import Plan
from dither.privacy.filters import Caps, Charge

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
    identity: Identity,
    tables: Sequence[str],
    text: str,
    analyst: str | None,
    fresh: bool,
) -> Request:
    """What the ledger is told of plans that are run together. It sees the question, the catalog and the price: no rows."""
    if analyst is None and declared.analysts is not None and ANYONE not in declared.analysts:
        # No name is offered: names are not proved, and another's would spend another's quota.
        fix = Fix("name yourself as the curator declared you: {analyst}.", analyst="YOUR-NAME")
        raise ArgumentError("It is not said who asks, and this catalog names who may.", fix=fix)
    units = dict.fromkeys(f"one value of {plan.unit}" if plan.work.by_unit else "one row" for plan in plans)
    return Request(
        question=text,
        plan=identity.text,
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


def before(ledger: Ledger, asked: Request) -> int | None:
    """The entry of the answer that asking this would give again, if there is one."""
    found = ledger.store.latest(asked.digest)
    return None if found is None else found.number


def refusal(ledger: Ledger, declared: Declaration, before: str | None, asked: Request, again: int | None = None) -> str:
    """Why the ledger would refuse to be charged for this now, by the very rules it goes by; empty if it would not.

    `again` is the entry of an answer that would be given again: that costs no more than the quota of whoever has not seen it.
    A name that may not ask is an ArgumentError here as it is for asking: another price would not help.
    """
    place = keys_of(asked.analyst)[0]
    found = ledger.store.several("catalog", "caps", "total", "fuse", place)
    analyst = state.sums(found.get(place))
    try:
        mine = state.Terms.of(declared)
        admission.expected(found.get("catalog"), (before, mine.text()))
        caps = state.caps(found["caps"]) if "caps" in found else Caps.of(declared.epsilon, declared.delta)
        terms = admission.in_force(mine, caps, asked, asked.charge)
        if again is None:
            if state.Fuse.parse(found.get("fuse")).closed:
                raise ClosedError
            admission.charged(caps, state.sums(found.get("total")), asked)
        if again is None or not _saw(ledger, again, asked.analyst):
            admission.quota(caps, terms.per_analyst, analyst, asked.analyst, asked.charge)
    except (BudgetError, LedgerError) as error:
        return error.what
    return ""


def _saw(ledger: Ledger, answer: int, analyst: str) -> bool:
    """Whether this analyst was given the answer of this entry before: asked for it, or shown it again."""
    if ledger.store.latest(shown_to(answer, analyst)) is not None:
        return True
    row = ledger.store.entry(answer)
    record = parse(row).record if row else None
    asked = ledger.store.entry(record.reserved) if isinstance(record, Committed) else None
    reserved = parse(asked).record if asked else None
    return isinstance(reserved, Reserved) and reserved.analyst == analyst


def words(charged: Charge) -> str:
    """A charge in words."""
    return str(Price(charged.epsilon, charged.delta))
