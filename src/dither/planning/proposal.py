"""A proposal: lines for the catalog that were found privately, how reliable they are, and what they cost.

Everything here is read from noisy numbers and from the catalog: post-processing, which is free.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from html import escape
from typing import Any

from dither.catalog.text import key, quoted
from dither.exact.numbers import encode_toml, show

TAIL = Fraction(1, 100)  # the share of values beyond each bound
COVERED = 0.95  # the share of people whose rows or groups all count
_SPARE, _MUCH = 1.25, 10.0  # factors on the price that is just enough, and on the price paid if that cannot be computed
End = int | float | datetime.date


@dataclass(frozen=True)
class Proposal:
    """Lines to paste into the catalog, and their price. `low` and `high`, or `values` for text."""

    table: str
    column: str
    low: End | None
    high: End | None
    max_rows: int | None
    max_groups: int | None
    rank: float
    price: str
    rows: int = 0  # the estimated number of rows' worth; 0 if noise hides it
    epsilon: Fraction = Fraction(0)  # the price of all plans
    step: Fraction | None = None  # as declared
    values: tuple[str, ...] | None = None  # the frequent values of a text column
    people: int = 0  # how many people a value needs to be found with 95 %
    settings: tuple[str, ...] = ()  # what else is declared of the column, as TOML

    @property
    def enough(self) -> Fraction | None:
        """An epsilon that would be enough, or None if this one was: a rank's error is inversely proportional to epsilon."""
        if self.values is not None:
            return None
        tail = float(TAIL) * self.rows
        if self.rank <= tail:
            return None
        more = _SPARE * self.rank / tail if tail else _MUCH
        return Fraction(Context(prec=2, rounding=ROUND_CEILING).create_decimal_from_float(float(self.epsilon) * more))

    @property
    def toml(self) -> str:
        """The lines for the catalog file."""
        lines = [f"[tables.{key(self.table)}]"]
        lines += [f"max_rows = {self.max_rows}"] if self.max_rows else []
        lines += [f"max_groups = {self.max_groups}"] if self.max_groups else []
        return "\n".join([*lines, f"[tables.{key(self.table)}.columns]", f"{key(self.column)} = {self._facts()}"])

    def _facts(self) -> str:
        """Returns the facts of the column, as TOML."""
        found = [self._between()] if self.values is None else [f"values = [{', '.join(map(quoted, self.values))}]"]
        parts = [*self.settings, *(found if self.values != () else [])]
        return f"{{ {', '.join(parts)} }}" if parts else "{}"

    def _between(self) -> str:
        if self.step is None or isinstance(self.low, datetime.date):
            return f"between = [{self.low}, {self.high}]"
        low = Fraction(str(self.low))
        high = low + self.step * round((Fraction(str(self.high)) - low) / self.step)  # `high` may be a rounded float
        return f"between = [{encode_toml(low)}, {encode_toml(high)}], step = {encode_toml(self.step)}"

    def as_data(self) -> dict[str, Any]:
        """Returns the fields that `to_json` writes."""
        enough = self.enough
        return {
            "table": self.table,
            "column": self.column,
            "between": None if self.values is not None else _plain((self.low, self.high)),
            "step": None if self.step is None else str(self.step),
            "values": None if self.values is None else list(self.values),
            "people": self.people,
            "settings": list(self.settings),
            "max_rows": self.max_rows,
            "max_groups": self.max_groups,
            "rows": self.rows,
            "rank": self.rank,
            "epsilon": str(self.epsilon),
            "enough": None if enough is None else str(enough),
            "charged": self.price,
            "toml": self.toml,
        }

    def to_json(self) -> str:
        """Returns the proposal as JSON, with the lines for the catalog. `rank`: how many rows' worth the bounds may be off;
        `enough`: an epsilon that would be enough, null if this one was. Prices are exact rationals as text."""
        return json.dumps(self.as_data(), ensure_ascii=False, indent=2, allow_nan=False)

    def __str__(self) -> str:
        worth = self._found() if self.values is not None else self._reliability()
        notes = [f"# proposed privately, charged {self.price}: {worth}"]
        if self.max_rows:
            covers = "covers" if self.enough is None else "may be far off, too: it is meant to cover"
            notes.append(f"# max_rows {covers} about {100 * COVERED:g} % of people; heavier ones are scaled down, not dropped")
        return "\n".join([*notes, self.toml])

    def _repr_html_(self) -> str:
        lines = str(self).split("\n")
        notes = [line.removeprefix("# ") for line in lines if line.startswith("# ")]
        doubtful = self.enough is not None or self.values == ()
        shown = [f"<strong>{escape(notes[0])}</strong>" if doubtful else escape(notes[0]), *map(escape, notes[1:])]
        return f"<p>{'<br>'.join(shown)}</p><pre>{escape(self.toml)}</pre>"

    def _found(self) -> str:
        """Shows how common a value is that was found."""
        needed = f"a value that {self.people} people have is found with 95 %"
        if not self.values:
            return f"NO VALUE is common enough ({needed})\n# a larger ε or δ finds rarer ones"
        return f"the common values ({needed})\n# rarer ones are missing: ADD those that everyone knows"

    def _reliability(self) -> str:
        """Shows how reliable the bounds are."""
        off = f"ranks within {self.rank:.0f} rows, 95 % confidence"
        if self.enough is None:
            return f"about {2 * float(100 * TAIL):g} % of values would be clipped ({off})"
        if not self.rows:
            known = "noise hides even how many rows there are"
        else:
            known = f"{float(100 * TAIL):g} % of about {self.rows} rows is {float(TAIL) * self.rows:.0f}"
        return (
            f"TOO NOISY, the bounds may lie far outside the data or deep inside it\n"
            f"# {off}, and {known}; ε = {show(self.enough)} {'is worth a try' if not self.rows else 'or more would do'}"
        )


def _plain(ends: Sequence[End | None]) -> list[Any]:
    """Returns bounds as JSON writes them: dates as text."""
    return [end.isoformat() if isinstance(end, datetime.date) else end for end in ends]
