"""What was spent and what is left, as bars, as a table and as JSON.

With a delta there are two sums, and a question is admitted while one of them holds; each has its bar. An analyst's quota is
a share of everything, held to the same rule: it has the same sums and the same bars.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dither.cli.screen import bar, by_words, harmless
from dither.ledger.asked import analyst_name
from dither.ledger.ledger import Ledger
from dither.ledger.state import Head, Terms, shown
from dither.privacy.filters import GRID, Caps, Sums
from dither.query.catalog import Budget

COLUMNS = ("rule", "part", "total", "spent", "left", "analyst")
_NAMES = {"ε": "epsilon", "δ": "delta", "ρ": "rho", "δ of keys": "delta_of_keys"}
_NAME = 20  # letters of an analyst's name beside a bar
_BAR, _WORDS = 8, 28  # the least room for a bar, and for the words beside it


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
    caps: Caps
    used: Sums


@dataclass(frozen=True)
class Line:
    """What has to hold together; the fullest part is drawn."""

    name: str
    parts: tuple[Part, ...]

    @property
    def fullest(self) -> Part:
        return max(self.parts, key=lambda part: part.share)


def quota(ledger: Ledger, caps: Caps, declared: Terms | Budget, analyst: str | None) -> Quota | None:
    """Of one analyst, where one is named and the catalog has quotas: what `Curator.quota` says."""
    if analyst is None:
        return None
    from dither import curator  # which is slow to import, and a budget without an analyst needs none of it

    found = curator.quota(ledger, caps, declared, analyst)
    return None if found is None else Quota(analyst_name(analyst), found.caps, found.sums)


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
    found = _labelled("budget", "", lines(caps, sums))
    if quota is not None:
        name = f"{_short(harmless(quota.analyst))}'s quota"
        found += _labelled(name, f"{name} ", lines(quota.caps, quota.used))
    rows = [
        (label, line.fullest, "; ".join(p.words() for p in line.parts if p.spent or p is line.parts[0]))
        for label, line in found
    ]
    labels, told = max(cell_len(label) for label, _, _ in rows), max(cell_len(words) for _, _, words in rows)
    if console.width - labels - _BAR - 4 < min(told, _WORDS):
        _below(console, rows)
        return
    width = max(_BAR, min(30, console.width - labels - told - 4))
    grid = Table.grid(padding=(0, 2))
    for label, part, words in rows:
        beside = by_words(words, console.width - labels - width - 4)
        grid.add_row(Text(label, style="bold", no_wrap=True), bar(part.spent, part.total, width), Text(beside))
    console.print(grid)


def _below(console: Console, rows: list[tuple[str, Part, str]]) -> None:
    """In a window without room beside the bars."""
    for label, part, words in rows:
        console.print(Text(by_words(label, console.width), style="bold"), soft_wrap=True)
        console.print(Text("  ") + bar(part.spent, part.total, min(30, max(1, console.width - 2))), soft_wrap=True)
        console.print(Text(by_words(f"  {words}", console.width, "  ")), soft_wrap=True)


def _labelled(alone: str, before: str, found: tuple[Line, ...]) -> list[tuple[str, Line]]:
    """One sum has a name of its own; of two that are an either-or each says what it adds up."""
    if not any(part.sign == "δ" for part in found[0].parts):
        return [(alone, found[0])]
    return list(zip((f"{before}by ε", "or by ρ"), found, strict=False))


def _short(name: str) -> str:
    """A name may have 200 letters, and a bar is beside it."""
    return name if len(name) <= _NAME else name[: _NAME - 1] + "…"


def as_rows(caps: Caps, sums: Sums, quota: Quota | None = None) -> list[tuple[str, ...]]:
    """Every sum under COLUMNS, exact: those of everyone together, and with its name those of an analyst's quota."""
    kept = [("", lines(caps, sums)), *([(quota.analyst, lines(quota.caps, quota.used))] if quota is not None else [])]
    return [(line.name, part.sign, *part.plain().values(), who) for who, found in kept for line in found for part in line.parts]


def as_json(caps: Caps, sums: Sums, head: Head, quota: Quota | None = None) -> dict[str, Any]:
    """Exact numbers as text, for programs. A quota has the same rules as the total; its epsilon stands alone as well."""
    found: dict[str, Any] = {"rules": _rules(lines(caps, sums)), "entries": head.number, "head": str(head)}
    if quota is not None:
        rules = _rules(lines(quota.caps, quota.used))
        found["analyst"] = {"name": quota.analyst, "epsilon": rules["sum"]["epsilon"], "rules": rules}
    return found


def _rules(found: tuple[Line, ...]) -> dict[str, dict[str, dict[str, str]]]:
    return {line.name: {_NAMES[part.sign]: part.plain() for part in line.parts} for line in found}
