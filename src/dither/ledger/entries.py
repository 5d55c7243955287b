"""The kinds of entries, a closed list. A kind that was ever written keeps its name, its fields and its text for ever.

    opened      the ledger's identity and its caps: the first entry
    catalog     the declaration that is in force from here on
    reserved    a question and its price, written before any row is read
    committed   the noisy answer to a reserved question
    cancelled   a reserved question that never reached the engine; its price is given back
    failed      a reserved question that ended without an answer: the engine failed, or the asker interrupted it
    lapsed      a reserved question whose process died
    replayed    a committed answer shown to another analyst, and counted in that analyst's quota
    reopened    the curator lets new questions in again, after failures closed the catalog
    restored    the ledger goes on from a backup: what was asked after it was made is not in this ledger

A change of fields is a new version ("reserved/2"), read beside the old one. tests/ledger/kinds.txt holds the exact text of
each. Nothing in an entry depends on rows, except the noisy answer itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from dither.errors import DitherError, LedgerError
from dither.ledger.store import Row
from dither.ledger.text import canonical, digest, plain, read, written
from dither.privacy.filters import Caps, Charge

START = "0" * 64  # what the first entry names as the hash before it


class _Written:
    """What all records have: their fields as JSON says them, written once, so that it can be done before others wait."""

    @cached_property
    def written(self) -> dict[str, Any]:
        return {name: codec.write(getattr(self, name)) for name, codec in _SHAPES[type(self)].items()}


@dataclass(frozen=True)
class Opened(_Written):
    KIND: ClassVar[str] = "opened/1"
    ledger: str  # 128 random bits: the ledger's name in receipts
    public_key: str
    caps: Caps


@dataclass(frozen=True)
class Declared(_Written):
    KIND: ClassVar[str] = "catalog/1"
    catalog: str  # its hash
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


@dataclass(frozen=True)
class Reserved(_Written):
    KIND: ClassVar[str] = "reserved/1"
    question: str  # as it was asked
    digest: str  # of the plan, the catalog's hash and the snapshot: what makes two questions the same
    plan: str
    catalog: str
    snapshot: str
    analyst: str
    loss: Charge
    rule: str
    tables: tuple[str, ...]
    unit: str
    neighbours: str
    mechanisms: tuple[Mapping[str, Any], ...]
    fresh: bool
    token: str  # the digest of a secret that only the reserving object has

    def under(self, rule: str) -> Reserved:
        """The same, admitted by this rule."""
        made = replace(self, rule=rule)
        made.__dict__["written"] = {**self.written, "rule": rule}
        return made


@dataclass(frozen=True)
class Committed(_Written):
    KIND: ClassVar[str] = "committed/1"
    reserved: int
    reserved_hash: str
    digest: str
    token: str  # the secret itself: whoever wrote this is who reserved
    payload: str

    @property
    def found_by(self) -> str:
        return self.digest


@dataclass(frozen=True)
class Cancelled(_Written):
    KIND: ClassVar[str] = "cancelled/1"
    reserved: int
    reserved_hash: str
    token: str


@dataclass(frozen=True)
class Failed(_Written):
    KIND: ClassVar[str] = "failed/1"
    reserved: int
    reserved_hash: str
    token: str
    why: str  # ENGINE closes the catalog; INTERRUPT and LEDGER do not


@dataclass(frozen=True)
class Lapsed(_Written):
    """Written by whoever finds the lease of a dead process, so it has no token."""

    KIND: ClassVar[str] = "lapsed/1"
    reserved: int
    reserved_hash: str


@dataclass(frozen=True)
class Replayed(_Written):
    KIND: ClassVar[str] = "replayed/1"
    committed: int
    committed_hash: str
    digest: str
    analyst: str
    loss: Charge

    @property
    def found_by(self) -> str:
        return shown_to(self.committed, self.analyst)


@dataclass(frozen=True)
class Reopened(_Written):
    KIND: ClassVar[str] = "reopened/1"
    closed: int  # the entry that closed the catalog; 0 if only dead processes are acknowledged


@dataclass(frozen=True)
class Restored(_Written):
    KIND: ClassVar[str] = "restored/1"
    backup: int  # the last entry of the backup
    checked: str  # a later head ("number:hash") the backup was compared with, or empty


ENGINE, INTERRUPT, LEDGER = "engine", "interrupt", "ledger"
Record = Opened | Declared | Reserved | Committed | Cancelled | Failed | Lapsed | Replayed | Reopened | Restored
_ALL: tuple[type[Record], ...] = (
    Opened,
    Declared,
    Reserved,
    Committed,
    Cancelled,
    Failed,
    Lapsed,
    Replayed,
    Reopened,
    Restored,
)
KINDS: dict[str, type[Record]] = {kind.KIND: kind for kind in _ALL}


@dataclass(frozen=True)
class Entry:
    """A record and its place in the chain."""

    number: int
    previous: str
    nonce: str
    time: str
    record: Record

    @property
    def kind(self) -> str:
        return self.record.KIND

    @property
    def body(self) -> str:
        own = {"kind": self.kind, "number": self.number, "previous": self.previous, "nonce": self.nonce, "time": self.time}
        return canonical(own | self.record.written)

    @property
    def hash(self) -> str:
        return hash_of(self.body)


def hash_of(body: str) -> str:
    return digest("ledger entry 1", body)


def token_of(secret: str) -> str:
    return digest("ledger token 1", secret)


def question_digest(plan: str, catalog: str, snapshot: str) -> str:
    """Equal for questions that have the same plan, price included, on the same catalog and snapshot."""
    return digest("ledger question 1", canonical([plan, catalog, snapshot]))


def shown_to(committed: int, analyst: str) -> str:
    """What a replay is looked up by: the answer and who saw it."""
    return digest("ledger replay 1", canonical([committed, analyst]))


def found_by(record: Record) -> str:
    """The row's `question` column."""
    return record.found_by if isinstance(record, Committed | Replayed) else ""


def parse(row: Row) -> Entry:
    """The entry of a row. An unknown kind, a missing field or another spelling is an error, never skipped."""
    try:
        found = json.loads(row.body)
        number = _CODECS["int"].read(found.pop("number"))
        previous, nonce, time = (_TEXT.read(found.pop(name)) for name in ("previous", "nonce", "time"))
        entry = Entry(number, previous, nonce, time, _record(KINDS[found.pop("kind")], found))
        if (entry.number, entry.kind, entry.body) == (row.number, row.kind, row.body):
            return entry
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, DitherError):
        pass
    raise LedgerError(
        f"Entry {row.number} cannot be read by this version of dither.",
        fix="run `dither verify`; if a newer version wrote it, update dither.",
    )


# --- fields to JSON and back, by the type that is written beside the field ------------------------------------------


class _Codec(NamedTuple):
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def _is(kind: type) -> _Codec:
    def check(value: Any) -> Any:
        if type(value) is not kind:
            raise ValueError(f"no {kind.__name__}")
        return value

    return _Codec(check, check)


def _or_null(codec: _Codec) -> _Codec:
    return _Codec(
        lambda value: None if value is None else codec.write(value), lambda value: None if value is None else codec.read(value)
    )


def _list(codec: _Codec) -> _Codec:
    return _Codec(
        lambda value: [codec.write(part) for part in value], lambda value: tuple(codec.read(p) for p in _A_LIST(value))
    )


def _rationals(made: type, names: tuple[str, ...]) -> _Codec:
    def back(value: Any) -> Any:
        if type(value) is not dict or set(value) != set(names):
            raise ValueError("wrong parts")
        return made(**{name: _RATIONAL.read(value[name]) for name in names})

    return _Codec(lambda value: {name: _RATIONAL.write(getattr(value, name)) for name in names}, back)


_TEXT, _A_LIST, _MAPPING = _is(str), _is(list).read, _is(dict)
_RATIONAL = _or_null(_Codec(written, read))
_CODECS = {
    "str": _TEXT,
    "int": _is(int),
    "bool": _is(bool),
    "Fraction": _Codec(written, read),
    "Fraction | None": _RATIONAL,
    "tuple[str, ...]": _list(_TEXT),
    "tuple[str, ...] | None": _or_null(_list(_TEXT)),
    "Mapping[str, str]": _Codec(lambda value: {key: _TEXT.write(text) for key, text in value.items()}, _MAPPING.read),
    "tuple[Mapping[str, Any], ...]": _list(_Codec(lambda value: plain(value, "mechanisms"), _MAPPING.read)),
    "Charge": _rationals(Charge, ("epsilon", "delta", "rho", "slack")),
    "Caps": _rationals(Caps, ("epsilon", "delta_sums", "delta_keys", "delta_conversion", "rho_max")),
}
_SHAPES: dict[type, dict[str, _Codec]] = {
    kind: {each.name: _CODECS[str(each.type)] for each in fields(kind)} for kind in KINDS.values()
}


def _record(kind: type[Record], found: dict[str, Any]) -> Record:
    shape = _SHAPES[kind]
    if set(shape) != set(found):
        raise ValueError("wrong fields")
    return kind(**{name: shape[name].read(value) for name, value in found.items()})
