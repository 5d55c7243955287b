"""What was spent and what is left, as bars, as a table and as JSON.

With a delta there are two sums, and a question is admitted while one of them holds; each has its bar. An analyst's quota has
the same sums and the same bars as everything.
"""

from __future__ import annotations

from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dither.cli.screen import bar, by_words, harmless
from dither.ledger.state import Head
from dither.standing import Line, Part, Standing

COLUMNS = ("rule", "part", "total", "spent", "left", "analyst")
_NAME = 20  # letters of an analyst's name beside a bar
_BAR, _WORDS = 8, 28  # the least room for a bar, and for the words beside it


def show(console: Console, budget: Standing, quota: Standing | None = None) -> None:
    """Bars, one below the other, as wide as the window allows."""
    found = _labelled("budget", "", budget.lines)
    if quota is not None:
        name = f"{_short(harmless(quota.analyst))}'s quota"
        found += _labelled(name, f"{name} ", quota.lines)
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


def as_rows(budget: Standing, quota: Standing | None = None) -> list[tuple[str, ...]]:
    """Every sum under COLUMNS, exact: those of everyone together, and with its name those of an analyst's quota."""
    kept = [budget, *([quota] if quota is not None else [])]
    return [
        (line.rule, part.sign, *part.as_data().values(), each.analyst)
        for each in kept
        for line in each.lines
        for part in line.parts
    ]


def as_data(budget: Standing, head: Head, quota: Standing | None = None) -> dict[str, Any]:
    """Exact numbers as text, for programs. A quota has the same rules as the total; its epsilon stands alone as well."""
    found: dict[str, Any] = budget.as_data() | {"entries": head.number, "head": str(head)}
    if quota is not None:
        own = quota.as_data()
        found["analyst"] = {"name": quota.analyst, "epsilon": own["rules"]["sum"]["epsilon"]} | own
    return found
