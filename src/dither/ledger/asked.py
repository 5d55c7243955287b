"""What the ledger is told: a catalog's declaration, and a question with its price. Checked here, whoever sends them."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any

from dither.errors import ArgumentError, Fix, Name, Python
from dither.ledger.entries import Reserved, question_digest, token_of
from dither.ledger.text import plain, written
from dither.privacy.filters import Charge
from dither.text import folded

LONGEST_NAME = 200
_FREE = Charge(Fraction(0), Fraction(0), Fraction(0))


@dataclass(frozen=True)
class Declaration:
    """What a catalog declares, as far as a budget depends on it. `text` is the whole of it, without sources.

    The names in `units` are folded: tables are told apart as questions tell them apart."""

    catalog_hash: str
    text: str
    epsilon: Fraction
    delta: Fraction
    per_analyst: Fraction | None
    per_query: Fraction | None
    least_epsilon: Fraction
    analysts: tuple[str, ...] | None
    neighbours: str
    snapshot: str
    units: Mapping[str, str]

    def __post_init__(self) -> None:
        _texts(self, "catalog_hash", "text", "neighbours", "snapshot")
        for name in ("epsilon", "per_analyst", "per_query"):
            value = getattr(self, name)
            if not (name != "epsilon" and value is None):
                _above_zero(value, name)
        _above_zero(self.least_epsilon, "least_epsilon")
        if self.least_epsilon > self.epsilon:
            raise ArgumentError("least_epsilon must be at most epsilon.", fix="state what one question costs at least.")
        if not isinstance(self.delta, Fraction) or not 0 <= self.delta < 1:
            raise ArgumentError("delta must be a Fraction from 0 to below 1.", fix="declare a delta such as 1e-6.")
        if self.analysts is not None:
            object.__setattr__(self, "analysts", tuple(analyst_name(name) for name in self.analysts))
        object.__setattr__(self, "units", MappingProxyType(_units(self.units)))


@dataclass(frozen=True)
class Request:
    """A planned question: what it is, who asks, and what it may cost."""

    question: str
    plan: str
    catalog_hash: str
    snapshot: str
    analyst: str
    charge: Charge
    tables: tuple[str, ...]
    unit: str
    neighbours: str
    mechanisms: tuple[Mapping[str, Any], ...]
    fresh: bool = False

    def __post_init__(self) -> None:
        _texts(self, "question", "plan", "catalog_hash", "snapshot", "unit", "neighbours")
        object.__setattr__(self, "analyst", analyst_name(self.analyst))
        if not isinstance(self.charge, Charge):
            raise ArgumentError("charge must be a Charge.", fix="state what the release may cost: Charge(epsilon, delta).")
        if self.mechanisms or self.charge != _FREE:  # only what is public anyway, and so needs no noise, has no price
            _above_zero(self.charge.epsilon, "epsilon")
        for part in (self.charge.epsilon, self.charge.delta, self.charge.rho or Fraction(0), self.charge.slack):
            written(part)
        if not isinstance(self.fresh, bool):
            raise ArgumentError("fresh must be True or False.", fix=Fix("write {fresh}.", fresh=True))
        if not all(isinstance(name, str) for name in self.tables):
            raise ArgumentError("tables must be names.", fix=Fix("write {it}.", it=Python('tables=("people",)')))
        object.__setattr__(self, "tables", tuple(dict.fromkeys(map(folded, self.tables))))
        object.__setattr__(self, "mechanisms", tuple(plain(list(self.mechanisms), "mechanisms")))

    @cached_property
    def digest(self) -> str:
        """Equal for the same question at the same price on the same catalog and snapshot, whoever asks."""
        return question_digest(self.plan, self.catalog_hash, self.snapshot)

    def reserved(self, secret: str) -> Reserved:
        """The entry that charges for it; which rule admits it is decided when it is written."""
        names = ("question", "plan", "snapshot", "analyst", "tables", "unit", "neighbours", "digest", "mechanisms", "fresh")
        same = {name: getattr(self, name) for name in names}
        return Reserved(**same, catalog=self.catalog_hash, loss=self.charge, rule="", token=token_of(secret))


def _units(units: Mapping[str, str]) -> dict[str, str]:
    """The unit of each table, all names folded; two tables of one name could have two units."""
    if not all(isinstance(part, str) for pair in units.items() for part in pair):
        raise ArgumentError("units must name each table's unit in words.", fix='write {"people": "person_id"}.')
    found = {folded(table): folded(unit) for table, unit in units.items()}
    if len(found) < len(units):
        raise ArgumentError("Two tables in units differ only in capitals, which are one name.", fix="rename one.")
    return found


def analyst_name(name: Any) -> str:
    """A name that prints as itself: names are told apart by what is stored, and people by what they see. One spelling (NFC)
    for what looks the same."""
    name = unicodedata.normalize("NFC", name) if isinstance(name, str) else name
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise ArgumentError(
            f"analyst must be a name of 1 to {LONGEST_NAME} printable characters without spaces around it.",
            fix=Fix("write {analyst}.", analyst="ada"),
        )
    return name


def _above_zero(value: Any, name: str) -> None:
    if not isinstance(value, Fraction) or value <= 0:
        raise ArgumentError(f"{name} must be a Fraction above 0.", fix=Fix("write {it}.", it=Python(f'{name}=Fraction("0.1")')))
    written(value)


def _texts(asked: Any, *names: str) -> None:
    for name in names:
        if not isinstance(getattr(asked, name), str):
            given = type(getattr(asked, name)).__name__
            raise ArgumentError(f"{name} must be a text, and it is a {given}.", fix=Fix("give {it} as a str.", it=Name(name)))
