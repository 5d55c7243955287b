"""What was spent and what is left, as bars, as a table and as JSON.

With a delta there are two sums, and a question is admitted while one of them holds; each has its bar.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dither.cli.screen import bar, harmless
from dither.ledger.ledger import Ledger
from dither.ledger.state import Head, Terms, shown
from dither.privacy.either import GRID, Caps, Sums


@dataclass(frozen=True)
class Part:
    """One sum against its cap."""

    sign: str  # ε, δ or ρ
    spent: Fraction
    total: Fraction

    @property
    def left(self) -> Fraction:
        return max(self.total - self.spent, Fraction(0))

    @property
    def share(self) -> Fraction:
        return self.spent / self.total if self.total else Fraction(bool(self.spent))

    def words(self) -> str:
        spent, total, left = shown(self.spent, up=True), shown(self.total, up=False), shown(self.left, up=False)
        if self.spent > self.total:  # nothing is overdrawn: a question needs only one of the sums
            return f"{self.sign} = {spent}, above {total}: this sum admits no more, the other one may"
        return f"{self.sign} = {spent} of {total} spent, {left} left"

    def plain(self) -> dict[str, str]:
        return {"total": str(self.total), "spent": str(self.spent), "left": str(self.left)}


@dataclass(frozen=True)
class Quota:
    """What one analyst may use, and used."""

    analyst: str
    most: Fraction
    used: Sums

    @property
    def part(self) -> Part:
        return Part("ε", Fraction(self.used.epsilon, GRID), self.most)


@dataclass(frozen=True)
class Line:
    """What has to hold together; the fullest part is drawn."""

    name: str
    parts: tuple[Part, ...]

    @property
    def fullest(self) -> Part:
        return max(self.parts, key=lambda part: part.share)


def quota(ledger: Ledger, analyst: str | None) -> Quota | None:
    """Of one analyst, where the catalog in force has quotas."""
    text = ledger.store.get("catalog")
    most = Terms.parse(text).per_analyst if text else None
    return None if analyst is None or most is None else Quota(analyst, most, ledger.quota(analyst))


def lines(caps: Caps, sums: Sums) -> tuple[Line, ...]:
    """The plain sum, and beside it the sum of ρ where the budget has one and every charge states it."""
    plain = Line("sum", (Part("ε", Fraction(sums.epsilon, GRID), caps.epsilon),))
    if not caps.rho_max:
        return (plain,)
    plain = Line("sum", (*plain.parts, Part("δ", Fraction(sums.delta, GRID), caps.delta_sums)))
    if sums.unstated:
        return (plain,)
    rho = Part("ρ", Fraction(sums.rho, GRID), caps.rho_max)
    return plain, Line("zcdp", (rho, Part("δ of keys", Fraction(sums.slack, GRID), caps.delta_keys)))


def show(console: Console, caps: Caps, sums: Sums, quota: Quota | None = None) -> None:
    """Bars, one below the other, as wide as the window allows."""
    names = ("budget",) if not caps.rho_max else ("by ε", "or by ρ")
    found = list(zip(names, lines(caps, sums), strict=False))
    if quota is not None:
        found.append((f"{harmless(quota.analyst)}'s quota", Line("quota", (quota.part,))))
    rows = [
        (label, line.fullest, "; ".join(p.words() for p in line.parts if p.spent or p is line.parts[0]))
        for label, line in found
    ]
    taken = max(len(label) for label, _, _ in rows) + max(len(words) for _, _, words in rows)
    width = max(8, min(30, console.width - taken - 4))
    grid = Table.grid(padding=(0, 2))
    for label, part, words in rows:
        grid.add_row(Text(label, style="bold"), bar(part.spent, part.total, width), Text(words))
    console.print(grid)


def as_json(caps: Caps, sums: Sums, head: Head, quota: Quota | None = None) -> dict[str, Any]:
    """Exact numbers as text, for programs."""
    names = {"ε": "epsilon", "δ": "delta", "ρ": "rho", "δ of keys": "delta_of_keys"}
    found: dict[str, Any] = {
        "rules": {line.name: {names[p.sign]: p.plain() for p in line.parts} for line in lines(caps, sums)},
        "entries": head.number,
        "head": str(head),
    }
    if quota is not None:
        found["analyst"] = {"name": quota.analyst, "epsilon": quota.part.plain()}
    return found
