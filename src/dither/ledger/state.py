"""What the ledger keeps beside its entries, so that an ask never re-adds history. All of it follows from the entries,
and verification adds it up again.

    ledger        format, identity, public key: written when the store is made
    head          number, hash and time of the last entry
    caps          from the first entry
    catalog       the declaration in force, without its text
    total         sums for everyone together
    analyst:NAME  sums of one analyst, replays included
    history       the neighbour relation, and the unit of each table that was ever asked about
"""

from __future__ import annotations

import json
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from dither.errors import LedgerError
from dither.ledger.asked import Declaration
from dither.ledger.entries import START
from dither.ledger.text import canonical, read, written
from dither.privacy.either import Caps, Sums

FORMAT = 1


class Identity(NamedTuple):
    ledger: str
    public_key: str

    def text(self) -> str:
        return canonical({"format": FORMAT, "ledger": self.ledger, "public_key": self.public_key})

    @classmethod
    def parse(cls, text: str | None, name: str) -> Identity:
        found = json.loads(text) if text else {}
        if found.get("format") != FORMAT:
            raise LedgerError(f"{name} is no ledger this version of dither can read.", fix="name the ledger, or update dither.")
        return cls(found["ledger"], found["public_key"])


class Head(NamedTuple):
    """Where the chain ends. Its text, kept elsewhere, is what a rollback is detected against."""

    number: int = 0
    hash: str = START
    time: str = ""

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"

    def text(self) -> str:
        return canonical(self._asdict())

    @classmethod
    def parse(cls, text: str | None) -> Head:
        return cls(**json.loads(text)) if text else cls()


class Terms(NamedTuple):
    """The declaration in force."""

    catalog: str
    epsilon: Fraction
    delta: Fraction
    per_analyst: Fraction | None
    per_query: Fraction | None
    analysts: tuple[str, ...] | None
    neighbours: str
    snapshot: str
    units: dict[str, str]

    @classmethod
    def of(cls, declared: Declaration) -> Terms:
        rest = {name: getattr(declared, name) for name in cls._fields[1:-1]}
        return cls(catalog=declared.catalog_hash, units=dict(declared.units), **rest)

    def text(self) -> str:
        return canonical({name: written(v) if isinstance(v, Fraction) else v for name, v in self._asdict().items()})

    @classmethod
    @lru_cache(maxsize=16)
    def parse(cls, text: str) -> Terms:
        found: dict[str, Any] = json.loads(text)
        for name in ("epsilon", "delta", "per_analyst", "per_query"):
            found[name] = None if found[name] is None else read(found[name])
        found["analysts"] = None if found["analysts"] is None else tuple(found["analysts"])
        return cls(**found)


class History(NamedTuple):
    neighbours: str
    tables: dict[str, str]

    def text(self) -> str:
        return canonical(self._asdict())

    @classmethod
    def parse(cls, text: str | None) -> History | None:
        return cls(**json.loads(text)) if text else None


def sums_text(sums: Sums) -> str:
    return canonical(vars(sums))


def sums(text: str | None) -> Sums:
    return Sums(**json.loads(text)) if text else Sums()


def caps_text(caps: Caps) -> str:
    return canonical({name: written(value) for name, value in vars(caps).items()})


@lru_cache(maxsize=16)
def caps(text: str) -> Caps:
    return Caps(**{name: read(value) for name, value in json.loads(text).items()})


def shown(value: Fraction, *, up: bool) -> str:
    """Six digits for a message: a cost rounded up, what is left rounded down, so that neither promises too much.

    >>> shown(Fraction(1, 3), up=True), shown(Fraction(1, 10), up=False)
    ('0.333334', '0.1')
    """
    way = Context(prec=6, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    found = way.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize()
    return f"{found:f}" if found == 0 or abs(found.adjusted()) < 6 else f"{found:e}"
