"""The sums and other state that the ledger stores beside its entries, sealed with the curator's key.

The state follows from the entries, and verification recomputes it. With it, a question costs the same time in a long ledger.

    ledger        format, identity, public key: written when the store is made
    head          number, hash and time of the last entry
    caps          from the first entry
    catalog       the declaration in force, without its text
    total         sums for everyone together
    analyst:NAME  sums of one analyst, replays included
    history       the neighbour relation, and the unit of each table asked about so far
    leases        the questions being answered: see reservations.py
    fuse          whether failures closed the catalog to new questions
    streams       where each stream is, and stream:KEY, its encrypted state: see streams.py
    approvals     which questions need an approval, and which have one: see approvals.py
    keys          rotations of the key: see Keys in receipts.py; and secrets, what the key before handed over, encrypted
    rolls, roll:NNN, seal    a two-level digest tree with a signature and MAC at its root

Only the holder of the curator's key can change the state unnoticed.

    roll:NNN  for each analyst of one group: the digest of the text under analyst:NAME
    rolls     for each group: the digest of its roll. Sealed
    seal      signature and MAC over the ledger's name and the texts of SEALED_KEYS. Only the latest is stored, not in an entry

An edited, deleted or rolled-back sum is found before anything is written. A question reads one small group, however many
analysts there are. The head is sealed too, so entries cannot be cut off. Everything rolled back together, entries and seal
included, is an older copy: see docs/known-limits.md.
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
from dither.ledger.records import START, Declaration, canonical, decode_rational, digest, encode_rational, load_json
from dither.ledger.stores.base import Row, Transaction
from dither.privacy.filters import Caps, Sums

FORMAT = 2
# Texts read under the store's lock are parsed with regular expressions; only the canonical text matches.
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
    """Refuses a text that cannot be decoded: anyone may have edited the file."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError):
        raise LedgerError(f"The ledger's {what} cannot be read.", fix="run `dither verify`.") from None


def _require(right: bool) -> None:
    if not right:
        raise ValueError


def _parts(form: re.Pattern[str], text: str) -> tuple[str, ...]:
    match = form.fullmatch(text)
    if match is None:
        raise ValueError
    return match.groups()


def _are_texts(fields: object) -> bool:
    return isinstance(fields, dict) and all(isinstance(value, str) for value in fields.values())


class Identity(NamedTuple):
    ledger: str
    public_key: str

    def text(self) -> str:
        return canonical({"format": FORMAT, "ledger": self.ledger, "public_key": self.public_key})

    @classmethod
    def parse(cls, text: str | None, name: str) -> Identity:
        try:
            fields = load_json(text)
            if fields["format"] == FORMAT and set(fields) == {"format", *cls._fields} and _are_texts(fields | {"format": ""}):
                return cls(fields["ledger"], fields["public_key"])
        except (ValueError, TypeError, KeyError):
            pass
        raise LedgerError(f"{name} is no ledger this version of dither can read.", fix="name the ledger, or update dither.")


class Head(NamedTuple):
    """The end of the chain. Keep its text elsewhere to detect a rollback."""

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
        return canonical({name: encode_rational(v) if isinstance(v, Fraction) else v for name, v in self._asdict().items()})

    @classmethod
    @lru_cache(maxsize=16)
    def parse(cls, text: str) -> Terms:
        with _reading("catalog"):
            fields: dict[str, Any] = load_json(text)
            for name in ("epsilon", "delta", "per_analyst", "per_query", "least_epsilon"):
                fields[name] = None if fields[name] is None and name.startswith("per") else decode_rational(fields[name])
            fields["analysts"] = None if fields["analysts"] is None else tuple(fields["analysts"])
            _require(_are_texts(fields["units"]))
            return cls(**fields)


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
            history = cls(**load_json(text))
            _require(_are_texts(history.tables))
            return history


class Fuse(NamedTuple):
    """Counts failures until the curator reopens the catalog.

    A failure after a charge reveals something about the data that was not priced. So one failure of the engine, or the third
    death of a process with a charged question, closes the catalog to new questions.
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


def encode_sums(sums: Sums) -> str:
    return canonical(vars(sums))


def decode_sums(text: str | None) -> Sums:
    if text is None:
        return Sums()
    with _reading("sums"):
        delta, epsilon, rho, slack, unstated = map(int, _parts(_SUMS, text))
        return Sums(epsilon, delta, rho, slack, unstated)


def encode_caps(caps: Caps) -> str:
    return canonical({name: encode_rational(value) for name, value in vars(caps).items()})


@lru_cache(maxsize=16)
def decode_caps(text: str) -> Caps:
    with _reading("caps"):
        caps = Caps(**{name: decode_rational(value) for name, value in load_json(text).items()})
        _require(caps.epsilon > 0)
        return caps


SEALED_KEYS = ("head", "caps", "catalog", "total", "history", "rolls", "leases", "fuse")
LATER_KEYS = ("streams", "approvals", "keys")  # sealed where they exist, so that the seals of older ledgers stay as they are
STATE_KEYS = (*SEALED_KEYS, *LATER_KEYS, "seal")
GROUPS = 128


@lru_cache(maxsize=256)
def keys_of(analyst: str) -> tuple[str, str]:
    """Returns the key of an analyst's sums, and the key of the roll of the analyst's group."""
    return f"analyst:{analyst}", f"roll:{_group(analyst)}"


def ends_at(inside: Transaction, head: Head, name: str) -> None:
    """Refuses entries that do not end at the head. The seal covers the head, not the entries themselves."""
    last = inside.entry(head.number) if head.number else None
    if head.number and (last is None or last.hash != head.hash or inside.entry(head.number + 1) is not None):
        raise LedgerError(
            f"The entries of {name} do not end where its head says they do: some were cut off or added.",
            fix="`dither verify` tells where; restore the newest backup, and write nothing to this ledger.",
        )


class Sealed:
    """A transaction that checks the seal of what it reads. `close` seals what it wrote."""

    def __init__(self, inside: Transaction, key: Key, ledger: str) -> None:
        self._inside = inside
        self._key = key
        self._ledger = ledger
        self._texts = {name: inside.get(name) for name in (*SEALED_KEYS, *LATER_KEYS)}
        self._changed = False
        self.writes = 0  # shows whether an error came before anything was written
        seal = inside.get("seal")
        if not isinstance(seal, str) or not key.is_sealed(self._text(), seal):
            raise _broken()
        self._rolls: dict[str, str] = json.loads(self._texts["rolls"] or "{}")

    def get(self, key: str) -> str | None:
        return self._texts[key]

    def put(self, key: str, value: str) -> None:
        self.writes += 1
        self._inside.put(key, value)
        self._texts[key] = value
        self._changed = True

    def used(self, analyst: str) -> Sums:
        """Returns one analyst's sums; none for a new analyst. Refuses sums that were changed or deleted."""
        text, (_, roll) = self._inside.get(keys_of(analyst)[0]), self._roll(analyst)
        if roll.get(analyst) != (None if text is None else _mark(text)):
            raise _broken()
        return decode_sums(text)

    def use(self, analyst: str, sums: Sums) -> None:
        place, text = keys_of(analyst)[0], encode_sums(sums)
        name, roll = self._roll(analyst)
        roll_text = canonical(roll | {analyst: _mark(text)})
        self._rolls[_group(analyst)] = _mark(roll_text)
        self._inside.put(place, text)
        self._inside.put(name, roll_text)
        self.put("rolls", canonical(self._rolls))

    def put_aside(self, key: str, value: str) -> None:
        """Stores a text that the seal does not cover: it is authenticated by itself."""
        self.writes += 1
        self._inside.put(key, value)

    def append(self, row: Row) -> None:
        self.writes += 1
        self._inside.append(row)

    def latest(self, question: str) -> Row | None:
        return self._inside.latest(question)

    def entry(self, number: int) -> Row | None:
        return self._inside.entry(number)

    def reseal_with(self, key: Key) -> None:
        """Has another key seal what was written."""
        self._key = key
        self._changed = True

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
            return sealed_text(self._ledger, self._texts)
        except (TypeError, ValueError):  # not a text, or not ASCII
            raise _broken() from None


def first_texts(identity: Identity, key: Key) -> dict[str, str]:
    """Returns the texts of a new ledger. The empty state is sealed too, so an emptied ledger does not pass for a new one."""
    return {"ledger": identity.text(), "seal": key.seal(sealed_text(identity.ledger, {}))}


def sealed_text(ledger: str, texts: Mapping[str, str | None]) -> str:
    """Returns the text to seal. Each part has its length before it, so no part can pass for another."""
    parts = ["-" if (text := texts.get(name)) is None else f"{len(text)} {text}" for name in SEALED_KEYS]
    later = [f"{name} {len(text)} {text}" for name in LATER_KEYS if (text := texts.get(name)) is not None]
    text = "\n".join([ledger, *parts, *later])
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
