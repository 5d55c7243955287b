"""What the ledger keeps beside its entries, so that an ask never re-adds history. All of it follows from the entries,
and verification adds it up again.

    ledger        format, identity, public key: written when the store is made
    head          number, hash and time of the last entry
    caps          from the first entry
    catalog       the declaration in force, without its text
    total         sums for everyone together
    analyst:NAME  sums of one analyst, replays included
    history       the neighbour relation, and the unit of each table that was ever asked about
    leases        the questions that are being answered: see leases.py
    fuse          whether failures closed the catalog to new questions
    rolls, roll:NNN, seal    what finds a change of the above by anyone without the key: see sealed.py

What the next question is checked against, sealed: only the holder of the curator's key can change it unnoticed.

    seal      signature and MAC over the ledger's name and all of HELD as they stand: the latest only, never in an entry
    rolls     by group of analysts: the digest of the group's roll. Part of what is sealed
    roll:NNN  by analyst of one group: the digest of what stands under analyst:NAME

So a sum that was edited, deleted or put back alone is found before anything is written, and an ask reads one small group,
however many analysts there are. The head is under the seal, so entries cannot be cut off either. All of it put back
together, entries and seal included, is an older copy: see docs/known-limits.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from dither.errors import LedgerError
from dither.ledger.receipts import Key
from dither.ledger.records import START, Declaration, canonical, digest, parsed, read, written
from dither.ledger.stores.base import Row, Transaction
from dither.privacy.filters import Caps, Sums

FORMAT = 2
# What is read and written while others wait is taken apart by its canonical text; any other spelling cannot be read.
_HEAD = re.compile(
    r'\{"hash":"([0-9a-f]{64})","number":([1-9]\d{0,17}),"time":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)"\}', re.ASCII
)
_NUMBER = r"(0|[1-9]\d{0,999})"
_FUSE = re.compile(r'\{"closed":(0|[1-9]\d{0,17}),"dead":(0|[1-9]\d{0,17})\}', re.ASCII)
MOST_DEAD = 3  # the death that closes the catalog
_SUMS = re.compile(
    rf'\{{"delta":{_NUMBER},"epsilon":{_NUMBER},"rho":{_NUMBER},"slack":{_NUMBER},"unstated":{_NUMBER}\}}', re.ASCII
)


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Anything may stand in a file that somebody edited; whoever reads it is told, and told the same."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError):
        raise LedgerError(f"The ledger's {what} cannot be read.", fix="run `dither verify`.") from None


def _checked(right: bool) -> None:
    if not right:
        raise ValueError


def _parts(form: re.Pattern[str], text: str) -> tuple[str, ...]:
    found = form.fullmatch(text)
    if found is None:
        raise ValueError
    return found.groups()


def _texts(found: object) -> bool:
    return isinstance(found, dict) and all(isinstance(value, str) for value in found.values())


class Identity(NamedTuple):
    ledger: str
    public_key: str

    def text(self) -> str:
        return canonical({"format": FORMAT, "ledger": self.ledger, "public_key": self.public_key})

    @classmethod
    def parse(cls, text: str | None, name: str) -> Identity:
        try:
            found = parsed(text)
            if found["format"] == FORMAT and set(found) == {"format", *cls._fields} and _texts(found | {"format": ""}):
                return cls(found["ledger"], found["public_key"])
        except (ValueError, TypeError, KeyError):
            pass
        raise LedgerError(f"{name} is no ledger this version of dither can read.", fix="name the ledger, or update dither.")


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
        if text is None:
            return cls()
        with _reading("head"):
            hash, number, time = _parts(_HEAD, text)
            return cls(int(number), hash, time)


class Terms(NamedTuple):
    """The declaration in force."""

    catalog: str
    epsilon: Fraction
    delta: Fraction
    per_analyst: Fraction | None
    per_query: Fraction | None
    least_epsilon: Fraction
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
        with _reading("catalog"):
            found: dict[str, Any] = parsed(text)
            for name in ("epsilon", "delta", "per_analyst", "per_query", "least_epsilon"):
                found[name] = None if found[name] is None and name.startswith("per") else read(found[name])
            found["analysts"] = None if found["analysts"] is None else tuple(found["analysts"])
            _checked(_texts(found["units"]))
            return cls(**found)


class History(NamedTuple):
    neighbours: str
    tables: dict[str, str]

    def text(self) -> str:
        return canonical(self._asdict())

    @classmethod
    @lru_cache(maxsize=16)
    def parse(cls, text: str | None) -> History | None:
        if text is None:
            return None
        with _reading("history"):
            found = cls(**parsed(text))
            _checked(_texts(found.tables))
            return found


class Fuse(NamedTuple):
    """What failures leave behind until the curator reopens the catalog.

    A failure after a charge is an answer that nobody priced. So one failure of the engine, or the third death of a process
    that had been charged, closes the catalog to new questions.
    """

    closed: int = 0  # the entry that closed it
    dead: int = 0  # processes that died with a question charged

    def text(self) -> str:
        return canonical(self._asdict())

    @classmethod
    def parse(cls, text: str | None) -> Fuse:
        if text is None:
            return cls()
        with _reading("fuse"):
            closed, dead = _parts(_FUSE, text)
            return cls(int(closed), int(dead))

    def failed(self, entry: int) -> Fuse:
        return Fuse(self.closed or entry, self.dead)

    def died(self, entry: int) -> Fuse:
        return Fuse(self.closed or (entry if self.dead + 1 >= MOST_DEAD else 0), self.dead + 1)


def sums_text(sums: Sums) -> str:
    return canonical(vars(sums))


def sums(text: str | None) -> Sums:
    if text is None:
        return Sums()
    with _reading("sums"):
        delta, epsilon, rho, slack, unstated = map(int, _parts(_SUMS, text))
        return Sums(epsilon, delta, rho, slack, unstated)


def caps_text(caps: Caps) -> str:
    return canonical({name: written(value) for name, value in vars(caps).items()})


@lru_cache(maxsize=16)
def caps(text: str) -> Caps:
    with _reading("caps"):
        found = Caps(**{name: read(value) for name, value in parsed(text).items()})
        _checked(found.epsilon > 0)
        return found


HELD = ("head", "caps", "catalog", "total", "history", "rolls", "leases", "fuse")
BOOKS = (*HELD, "seal")
GROUPS = 128


@lru_cache(maxsize=256)
def keys_of(analyst: str) -> tuple[str, str]:
    """Where an analyst's sums stand, and the roll of the analyst's group."""
    return f"analyst:{analyst}", f"roll:{_group(analyst)}"


def ends_at(inside: Transaction, head: Head, name: str) -> None:
    """The entries themselves are not under the seal: those that were cut off, or added, are found by where they end."""
    last = inside.entry(head.number) if head.number else None
    if head.number and (last is None or last.hash != head.hash or inside.entry(head.number + 1) is not None):
        raise LedgerError(
            f"The entries of {name} do not end where its head says they do: some were cut off or added.",
            fix="`dither verify` tells where; restore the newest backup, and write nothing to this ledger.",
        )


class Sealed:
    """A transaction of the ledger: what it reads was sealed, and what it leaves is sealed again by `close`."""

    def __init__(self, inside: Transaction, key: Key, ledger: str) -> None:
        self._inside = inside
        self._key = key
        self._ledger = ledger
        self._held = {name: inside.get(name) for name in HELD}
        self._changed = False
        self.writes = 0  # so that a refusal can be told from a failure half-way
        found = inside.get("seal")
        if not isinstance(found, str) or not key.sealed(self._text(), found):
            raise _broken()
        self._rolls: dict[str, str] = json.loads(self._held["rolls"] or "{}")

    def get(self, key: str) -> str | None:
        return self._held[key]

    def put(self, key: str, value: str) -> None:
        self.writes += 1
        self._inside.put(key, value)
        self._held[key] = value
        self._changed = True

    def used(self, analyst: str) -> Sums:
        """One analyst's sums. Somebody new has none; somebody whose sums were taken away is not new."""
        text, (_, roll) = self._inside.get(keys_of(analyst)[0]), self._roll(analyst)
        if roll.get(analyst) != (None if text is None else _mark(text)):
            raise _broken()
        return sums(text)

    def use(self, analyst: str, sums: Sums) -> None:
        place, text = keys_of(analyst)[0], sums_text(sums)
        name, roll = self._roll(analyst)
        kept = canonical(roll | {analyst: _mark(text)})
        self._rolls[_group(analyst)] = _mark(kept)
        self._inside.put(place, text)
        self._inside.put(name, kept)
        self.put("rolls", canonical(self._rolls))

    def append(self, row: Row) -> None:
        self.writes += 1
        self._inside.append(row)

    def latest(self, question: str) -> Row | None:
        return self._inside.latest(question)

    def entry(self, number: int) -> Row | None:
        return self._inside.entry(number)

    def close(self) -> None:
        if self._changed:
            self._inside.put("seal", self._key.seal(self._text()))

    def _roll(self, analyst: str) -> tuple[str, dict[str, str]]:
        name = keys_of(analyst)[1]
        text = self._inside.get(name)
        if self._rolls.get(_group(analyst)) != (None if text is None else _mark(text)):
            raise _broken()
        return name, json.loads(text or "{}")

    def _text(self) -> str:
        try:
            return sealed_text(self._ledger, self._held)
        except (TypeError, ValueError):  # no text at all stands there, or none of ours
            raise _broken() from None


def first_texts(identity: Identity, key: Key) -> dict[str, str]:
    """What a new ledger begins with. Its emptiness is sealed, or a ledger that somebody emptied would pass for a new one."""
    return {"ledger": identity.text(), "seal": key.seal(sealed_text(identity.ledger, {}))}


def sealed_text(ledger: str, held: Mapping[str, str | None]) -> str:
    """What is sealed: each text with its length before it, so that no part of one can pass for part of another."""
    parts = ["-" if (text := held.get(name)) is None else f"{len(text)} {text}" for name in HELD]
    text = "\n".join([ledger, *parts])
    text.encode("ascii")
    return text


@lru_cache(maxsize=256)
def _group(analyst: str) -> str:
    return f"{int(digest('ledger group 1', canonical(analyst))[:8], 16) % GROUPS:03d}"


def _mark(text: str) -> str:
    try:
        return digest("ledger roll 1", text)[:32]
    except ValueError:
        raise _broken() from None


def _broken() -> LedgerError:
    return LedgerError("The ledger's sums were changed by someone without its key.", fix="run `dither verify`.")
