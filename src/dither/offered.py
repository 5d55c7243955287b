"""An answer that follows from earlier ones, as a quote offers it: its margins, never its values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dither.exact.numbers import show_rounded


@dataclass(frozen=True)
class Offered:
    """An answer that follows from earlier ones, as a quote shows it: its margins, never its values.

    `nominal`: this analyst has seen numbers that it is made of; `counted`: their price would count in the analyst's quota;
    `cut`: how people were bounded in the earlier groups, and which rows are in none of them.
    """

    margins: Mapping[str, float | None]
    entries: tuple[int, ...]
    nominal: bool
    counted: bool
    uneven: bool = False  # margins differ from group to group; these are the largest
    cut: tuple[str, ...] = ()

    def words(self, new: Mapping[str, float | None], price: str) -> list[str]:
        """Shows it beside the new answer that the quote is for. Margins that depend on unknown rows are left out."""
        known = [name for name, margin in self.margins.items() if margin is not None] or list(self.margins)
        own, other = ({name: each.get(name) for name in known} for each in (self.margins, new))
        free = _margins(own, "up to " if self.uneven else "") + (" (nominal)" if self.nominal else "")
        counts = "; their price counts in the quota of an analyst who has not seen them" if self.counted else ""
        seen = ", which you have seen" if self.nominal else ""
        made_of = f"made of {entries_in_words(self.entries)}{seen}{counts}; ask with free=True, in a shell with --free"
        return [f"free from earlier answers: {free}; new: {price} for {_margins(other)}", made_of, *self.cut]

    def as_data(self) -> dict[str, Any]:
        """Returns the fields as JSON writes them."""
        margins = {name: finite(margin) for name, margin in self.margins.items()}
        return {"margins": margins, "made_of": list(self.entries), "nominal": self.nominal, "counted": self.counted}


def _margins(margins: Mapping[str, float | None], most: str = "") -> str:
    """Shows margins to expect; without names if there is only one."""
    each = [(name, f"{most}± {'?' if margin is None else show_rounded(margin)}") for name, margin in margins.items()]
    return each[0][1] if len(each) == 1 else ", ".join(f"{name} {text}" for name, text in each)


def entries_in_words(entries: Sequence[int]) -> str:
    """Shows the numbers of entries.

    >>> entries_in_words([4]), entries_in_words([4, 6, 9])
    ('entry 4', 'entries 4, 6 and 9')
    """
    if len(entries) == 1:
        return f"entry {entries[0]}"
    return f"entries {', '.join(map(str, entries[:-1]))} and {entries[-1]}"


def finite(margin: float | None) -> float | None:
    """Returns a margin for JSON, which has no infinity."""
    return None if margin is None or math.isinf(margin) else margin
