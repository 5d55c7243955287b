"""Questions that wait for a curator: above a price, or about chosen tables.

    policy       which questions need an approval; in force from its entry on
    requested    a question that needs one and was asked without it. Nothing is charged
    approved     a curator allows it: once, for this analyst, at this price, until a time. If the charge is cancelled before any
                 row is read, the approval may be used again
    denied       a curator refuses it

The policy is enforced where the price is charged, so it holds for every way to ask, and verification proves that nothing was
answered without the approval that it needed. The text under the key `approvals` follows from these entries:

    {"above": "1/10", "tables": ["people"], "open": {"12": [digest, analyst]}, "allowed": {"14": [digest, analyst, until]}}
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple

from dither.errors import ApprovalError, ArgumentError, LedgerError
from dither.exact.numbers import show_about
from dither.ledger.records import Request, canonical, decode_rational, encode_rational, load_json

MOST_OPEN = 20  # requests of one analyst that wait
LONGEST_WORDS = 2000


class Approval(NamedTuple):
    """An approval that a question uses: the entry of its request, and until when it may be used."""

    request: int
    until: str


@dataclass(frozen=True)
class Approvals:
    """The policy, the requests that wait, and the approvals that were not used yet, by the entries of their requests."""

    above: Fraction | None = None
    tables: tuple[str, ...] = ()
    open: dict[int, tuple[str, str]] = field(default_factory=dict)
    allowed: dict[int, tuple[str, str, str]] = field(default_factory=dict)

    def text(self) -> str:
        return canonical(
            {
                "above": None if self.above is None else encode_rational(self.above),
                "tables": list(self.tables),
                "open": {str(number): list(each) for number, each in self.open.items()},
                "allowed": {str(number): list(each) for number, each in self.allowed.items()},
            }
        )

    @classmethod
    def parse(cls, text: str | None) -> Approvals:
        if text is None:
            return cls()
        try:
            data = load_json(text)
            made = cls(
                None if data["above"] is None else decode_rational(data["above"]),
                tuple(data["tables"]),
                {int(number): (str(digest), str(who)) for number, (digest, who) in data["open"].items()},
                {int(number): (str(digest), str(who), str(until)) for number, (digest, who, until) in data["allowed"].items()},
            )
            if made.text() == text:
                return made
        except (ValueError, TypeError, KeyError, AttributeError):
            pass
        raise LedgerError("The ledger's approvals cannot be read.", fix="run `dither verify`.")

    def why(self, request: Request) -> str:
        """Says why a question needs an approval; empty if it needs none."""
        if not request.charge.epsilon:
            return ""
        if self.above is not None and request.charge.epsilon > self.above:
            return f"it costs more than ε = {show_about(self.above, up=False)}"
        named = next((name for name in request.tables if name in self.tables), None)
        return "" if named is None else f"it is about {named}"

    def approval(self, request: Request, now: str) -> Approval | None:
        """Returns the approval that a question uses; None if it needs none. Refuses if it has none."""
        why = self.why(request)
        if not why:
            return None
        same = (request.digest, request.analyst)
        for number, (digest, analyst, until) in sorted(self.allowed.items()):
            if (digest, analyst) == same and now <= until:
                return Approval(number, until)
        raise ApprovalError(why)

    def used(self, approval: Approval) -> Approvals:
        """Returns what is left when an approval was used."""
        return replace(self, allowed={each: kept for each, kept in self.allowed.items() if each != approval.request})

    def returned(self, approval: Approval, request: Request) -> Approvals:
        """Returns what holds when the question that used an approval was cancelled."""
        return replace(self, allowed=self.allowed | {approval.request: (request.digest, request.analyst, approval.until)})

    def request_of(self, request: Request) -> int | None:
        """Returns the entry of the request that waits for this question already. Refuses if too many wait."""
        same, own = (request.digest, request.analyst), 0
        for number, each in self.open.items():
            if each == same:
                return number
            own += each[1] == request.analyst
        if own >= MOST_OPEN:
            raise LedgerError(
                f"{MOST_OPEN} questions of {request.analyst} wait for a curator already.", fix="wait until they are decided."
            )
        return None

    def requested(self, number: int, request: Request) -> Approvals:
        return replace(self, open=self.open | {number: (request.digest, request.analyst)})

    def decided(self, number: int, until: str | None, now: str) -> Approvals:
        """Returns what holds after a decision: approved `until` a time, or denied. Forgets approvals that ended unused."""
        waiting = {each: kept for each, kept in self.open.items() if each != number}
        allowed = {each: kept for each, kept in self.allowed.items() if now <= kept[2]}
        if until is not None:
            allowed[number] = (*self.open[number], until)
        return replace(self, open=waiting, allowed=allowed)

    def check_decision(self, number: int, by: str, words: str) -> None:
        """Refuses a decision on what does not wait, or on one's own question."""
        if number not in self.open:
            raise ArgumentError(f"Entry {number} is no request that waits.", fix="look at the list of requests again.")
        if self.open[number][1] == by:
            raise ArgumentError("Nobody decides on their own question.", fix="ask another curator.")
        if len(words) > LONGEST_WORDS:
            raise ArgumentError(f"A reason has at most {LONGEST_WORDS} characters.", fix="write less.")
