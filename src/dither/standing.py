"""Shows how the budget stands: total, spent and left, for everyone together or for one analyst.

A question is admitted while one of two rules holds: plain sums of epsilon and delta, or in catalogs with a delta the sum of
rho. Each rule is a `Line` of sums and their caps. A quota is a share of the budget, under the same rules.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dither.catalog.values import Budget
from dither.display import show_bars
from dither.errors import ArgumentError
from dither.exact.numbers import show, show_about
from dither.ledger import state
from dither.ledger.ledger import Ledger
from dither.ledger.records import analyst_name
from dither.planning.price import Price
from dither.privacy.filters import GRID, Caps, Sums

_NONE, _ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True)
class Part:
    """A sum and its cap."""

    name: str  # for programs
    sign: str  # for people
    spent: Fraction
    total: Fraction

    @property
    def left(self) -> Fraction:
        return max(self.total - self.spent, _NONE)

    @property
    def share(self) -> Fraction:
        return self.spent / self.total if self.total else Fraction(bool(self.spent))

    def words(self) -> str:
        spent, total = show_about(self.spent, up=True), show_about(self.total, up=False)
        if self.spent > self.total:  # not overdrawn: a question needs only one of the rules
            return f"{self.sign} = {spent}, above {total}: this sum admits no more, the other one may"
        return f"{self.sign} = {spent} of {total} spent, {show_about(self.left, up=False)} left"

    def as_data(self) -> dict[str, str]:
        """Returns exact numbers as text."""
        return {"total": str(self.total), "spent": str(self.spent), "left": str(self.left)}


@dataclass(frozen=True)
class Line:
    """The sums of one rule, which must all stay within their caps."""

    rule: str  # "sum" or "zcdp"
    parts: tuple[Part, ...]

    @property
    def fullest(self) -> Part:
        return max(self.parts, key=lambda part: part.share)


@dataclass(frozen=True, repr=False)
class Standing:
    """The caps and the sums spent so far, for everyone together or for one analyst, by both rules."""

    caps: Caps
    sums: Sums
    analyst: str = ""  # of the quota; empty for everyone's budget

    @classmethod
    def of(cls, ledger: Ledger, caps: Caps) -> Standing:
        """Reads the budget from the ledger; before the first question the caps are the catalog's."""
        values = ledger.store.several("caps", "total")
        return cls(state.decode_caps(values["caps"]) if "caps" in values else caps, state.decode_sums(values.get("total")))

    @property
    def rule(self) -> str | None:
        """The rule that admits more questions: "sum", "zcdp", or None."""
        return self.caps.rule(self.sums)

    @property
    def total(self) -> Price:
        return Price(self.caps.epsilon, self.caps.delta)

    @property
    def spent(self) -> Price:
        """The plain sums. They may exceed the total where the sum of rho admits questions."""
        return Price(_part(self.sums.epsilon), _part(self.sums.delta))

    @property
    def left(self) -> Price:
        """What is left by plain sums: never below 0."""
        spent = self.spent
        return Price(max(self.caps.epsilon - spent.epsilon, _NONE), max(self.caps.delta_sums - spent.delta, _NONE))

    @property
    def rho(self) -> tuple[Fraction, Fraction]:
        """The sum of rho, and its cap (0 in pure catalogs)."""
        return _part(self.sums.rho), self.caps.rho_max

    @property
    def lines(self) -> tuple[Line, ...]:
        """The plain sums, and the sum of rho if the budget has one and every charge states it."""
        epsilon = Part("epsilon", "ε", _part(self.sums.epsilon), self.caps.epsilon)
        if not self.caps.rho_max:
            return (Line("sum", (epsilon,)),)
        plain = Line("sum", (epsilon, Part("delta", "δ", _part(self.sums.delta), self.caps.delta_sums)))
        if self.sums.unstated:
            return (plain,)
        rho = Part("rho", "ρ", _part(self.sums.rho), self.caps.rho_max)
        slack = Part("delta_of_keys", "δ of keys", _part(self.sums.slack), self.caps.delta_keys)
        return plain, Line("zcdp", (rho, slack))

    @property
    def share(self) -> Fraction:
        """The share of the budget that is used, from 0 to 1, by the rule that has used less."""
        return min(*(max(part.share for part in line.parts) for line in self.lines), _ONE)

    @property
    def remaining(self) -> str:
        """Shows briefly what is left."""
        if self.rule != "zcdp":
            return f"left {_few(self.left)}"
        used, most = self.rho
        return f"left ρ = {show_about(most - used, up=False)} of {show_about(most, up=False)}"

    def as_data(self) -> dict[str, Any]:
        """Returns the fields that `to_json` writes."""
        rules = {line.rule: {part.name: part.as_data() for part in line.parts} for line in self.lines}
        return {"rules": rules, "admits": self.rule}

    def to_json(self) -> str:
        """Returns JSON: each sum with its cap, exact numbers as text, and the rule that admits more questions (null: none)."""
        return json.dumps(self.as_data(), indent=2)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return show_bars(str(self), ((line.fullest.words(), float(line.fullest.share)) for line in self.lines))

    def __str__(self) -> str:
        if not self.caps.rho_max:
            return f"total {self.total}; spent {self.spent}; left {self.left}"
        used, most = self.rho
        ways = {"sum": "plain sums admit more", "zcdp": "the sum of ρ admits more", None: "nothing more is admitted"}
        slack = f" and δ = {_rounded(_part(self.sums.slack))} of {show(self.caps.delta_keys)}"
        return (
            f"total {self.total}; by plain sums ε = {_rounded(self.spent.epsilon)} of {show(self.caps.epsilon)} and "
            f"δ = {_rounded(self.spent.delta)} of {show(self.caps.delta_sums)}; by zCDP ρ = {_rounded(used)} of "
            f"{_rounded(most)}{slack}; {ways[self.rule]}; {100 * float(self.share):.3g} % used"
        )


def quota(ledger: Ledger, caps: Caps, declared: state.Terms | Budget, analyst: str) -> Standing | None:
    """Returns the quota of one analyst; None if there are no quotas. Refuses a name that may not ask."""
    name = analyst_name(analyst)
    if declared.analysts is not None and name not in declared.analysts:
        raise ArgumentError(f"{name} is none of the catalog's analysts.", fix="name one whom the curator declared.")
    if declared.per_analyst is None:
        return None
    return Standing(caps.share(declared.per_analyst), ledger.quota(name), name)


def _part(sum_: int) -> Fraction:
    return Fraction(sum_, GRID)


def _few(left: Price) -> str:
    """Shows what is left, rounded down so that it does not promise too much."""
    epsilon = f"ε = {show_about(left.epsilon, up=False)}"
    return epsilon + (f", δ = {show_about(left.delta, up=False)}" if left.delta else "")


def _rounded(value: Fraction) -> str:
    """Shows a value exactly if that is short, else with six digits."""
    text = show(value)
    return text if len(text) <= 8 else f"{float(value):.6g}"
