"""Declarations, requests and entries, and the canonical text that is hashed and signed.

Canonical text is JSON with sorted keys, ASCII only, no spaces. A rational is a text such as "1/10" in lowest terms; there are
no floats. Each value has exactly one spelling, which never changes.

`Declaration` (a catalog) and `Request` (a question with its price) check their own fields.

The kinds of entries are a closed list. A kind never changes its name, its fields or its text.

    opened      the ledger's identity and its caps: the first entry
    catalog     the declaration that is in force from here on
    reserved    a question and its price, written before any row is read
    committed   the noisy answer to a reserved question
    cancelled   a reserved question that never reached the engine; its price is given back, and its approval if it used one
    failed      a reserved question that ended without an answer: the engine failed, or the analyst interrupted it
    lapsed      a reserved question whose process died
    replayed    a committed answer shown to another analyst, counted in that analyst's quota
    reopened    the curator allows new questions again, after failures closed the catalog
    restored    the ledger continues from a backup; questions asked after the backup are missing
    policy      which questions need a curator's approval from here on
    requested   a question that needs an approval and has none
    approved    a curator allows a requested question, once
    denied      a curator refuses a requested question
    closed      the curator closes the catalog to new questions, until it is reopened
    rotated     another key signs from here on; both keys sign this entry

A change of fields is a new version ("reserved/2"), read beside the old one. tests/ledger/kinds.txt holds the exact text of
each. Nothing in an entry depends on rows, except the noisy answer itself.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from dither.errors import ArgumentError, DitherError, Fix, LedgerError, Name, Python
from dither.ledger.stores.base import Row
from dither.privacy.filters import Caps, Charge
from dither.text import folded

_encode = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode
_RATIONAL_TEXT = re.compile(r"(0|[1-9][0-9]*)(/[1-9][0-9]*)?", re.ASCII)
_DIGITS = 1000  # of a numerator or denominator; longer ones would only cost time to read
_TOO_LONG = 10**_DIGITS


def canonical(value: Any) -> str:
    """Returns the canonical JSON text of a value.

    >>> canonical({"b": [1, None], "a": "ε"})
    '{"a":"\\\\u03b5","b":[1,null]}'
    """
    return _encode(value)


def load_json(text: Any) -> Any:
    """Decodes JSON. Raises ValueError for repeated names, NaN, infinities and too deep nesting."""
    if not isinstance(text, str):
        raise ValueError("no text")
    try:
        return json.loads(text, object_pairs_hook=_refuse_repeated, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("too deep") from None


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name stands twice")
    return members


def _no_number(name: str) -> None:
    raise ValueError(name)  # NaN and the infinities


def digest(purpose: str, text: str) -> str:
    """Returns SHA-256 in hex. The purpose separates domains: a hash of one kind never equals one of another."""
    return hashlib.sha256(f"dither {purpose}\n{text}".encode("ascii")).hexdigest()


def encode_rational(value: Fraction) -> str:
    """Encodes a rational. Refuses negative and very long ones.

    >>> encode_rational(Fraction(2, 20)), encode_rational(Fraction(3))
    ('1/10', '3')
    """
    if not 0 <= value.numerator < _TOO_LONG or value.denominator >= _TOO_LONG:
        raise ArgumentError(
            f"A rational in a ledger is not negative and has at most {_DIGITS} digits above and below the line.",
            fix="round the price up to fewer digits.",
        )
    return str(value)


def decode_rational(text: Any) -> Fraction:
    """Decodes a rational. Raises ValueError unless the text is canonical."""
    if not isinstance(text, str) or len(text) > 2 * _DIGITS + 1 or not _RATIONAL_TEXT.fullmatch(text):
        raise ValueError("no rational")
    value = Fraction(text)
    if str(value) != text:
        raise ValueError("not in lowest terms")
    return value


def plain(value: Any, name: str) -> Any:
    """Returns the value as JSON data: texts, integers, booleans, null, lists and mappings. Refuses anything else."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, (list, tuple)):
        return [plain(part, name) for part in value]
    if isinstance(value, (dict, Mapping)) and all(isinstance(key, str) for key in value):  # dict: abstract classes are slow
        return {str(key): plain(part, name) for key, part in value.items()}
    if isinstance(value, Fraction):
        return str(value)
    raise ArgumentError(
        f"{name} may hold texts, whole numbers, rationals and lists of them, and there is a {type(value).__name__} in it.",
        fix="write a float as the decimal text that is meant.",
    )


LONGEST_NAME = 200
_FREE = Charge(Fraction(0), Fraction(0), Fraction(0))


@dataclass(frozen=True)
class Declaration:
    """The part of a catalog that the budget depends on. `text` is the whole catalog, without sources.

    The names in `units` are case-folded, as table names in questions are."""

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
        _check_texts(self, "catalog_hash", "text", "neighbours", "snapshot")
        for name in ("epsilon", "per_analyst", "per_query"):
            value = getattr(self, name)
            if not (name != "epsilon" and value is None):
                _check_positive(value, name)
        _check_positive(self.least_epsilon, "least_epsilon")
        if self.least_epsilon > self.epsilon:
            raise ArgumentError("least_epsilon must be at most epsilon.", fix="state what one question costs at least.")
        if not isinstance(self.delta, Fraction) or not 0 <= self.delta < 1:
            raise ArgumentError("delta must be a Fraction from 0 to below 1.", fix="declare a delta such as 1e-6.")
        if self.analysts is not None:
            object.__setattr__(self, "analysts", tuple(analyst_name(name) for name in self.analysts))
        object.__setattr__(self, "units", MappingProxyType(_units(self.units)))

    @cached_property
    def caps(self) -> Caps:
        """The caps that this budget is split into."""
        return Caps.of(self.epsilon, self.delta)


class StreamStep(NamedTuple):
    """The stream that a request opens, or continues from a step (streams.py)."""

    key: str
    at: int | None = None  # None: opens it


@dataclass(frozen=True)
class Request:
    """A planned question: its text and plan, its analyst, and its price. `stream`: the stream that it is a part of."""

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
    stream: StreamStep | None = None

    def __post_init__(self) -> None:
        _check_texts(self, "question", "plan", "catalog_hash", "snapshot", "unit", "neighbours")
        object.__setattr__(self, "analyst", analyst_name(self.analyst))
        if not isinstance(self.charge, Charge):
            raise ArgumentError("charge must be a Charge.", fix="state what the release may cost: Charge(epsilon, delta).")
        if self.mechanisms or self.charge != _FREE:  # only public values, which need no noise, are free
            _check_positive(self.charge.epsilon, "epsilon")
        for part in (self.charge.epsilon, self.charge.delta, self.charge.rho or Fraction(0), self.charge.slack):
            encode_rational(part)
        if self.stream is not None and (self.stream.at is None) != (self.charge != _FREE):
            raise ArgumentError("A stream is charged when it is opened, and only then.", fix="charge for its opening.")
        if not isinstance(self.fresh, bool):
            raise ArgumentError("fresh must be True or False.", fix=Fix("write {fresh}.", fresh=True))
        if not all(isinstance(name, str) for name in self.tables):
            raise ArgumentError("tables must be names.", fix=Fix("write {it}.", it=Python('tables=("people",)')))
        object.__setattr__(self, "tables", tuple(dict.fromkeys(map(folded, self.tables))))
        object.__setattr__(self, "mechanisms", tuple(plain(list(self.mechanisms), "mechanisms")))

    @cached_property
    def digest(self) -> str:
        """The same for every analyst who asks this question at this price on this catalog and snapshot."""
        return question_digest(self.plan, self.catalog_hash, self.snapshot)

    def reserved(self, secret: str) -> Reserved:
        """Returns the entry that charges for the question. Its rule is filled in when it is written."""
        names = ("question", "plan", "snapshot", "analyst", "tables", "unit", "neighbours", "digest", "mechanisms", "fresh")
        same = {name: getattr(self, name) for name in names}
        return Reserved(**same, catalog=self.catalog_hash, loss=self.charge, rule="", token=token_of(secret))


def _units(units: Mapping[str, str]) -> dict[str, str]:
    """Returns the unit of each table, with case-folded names. Refuses two tables of one name: their units could differ."""
    if not all(isinstance(part, str) for pair in units.items() for part in pair):
        raise ArgumentError("units must name each table's unit in words.", fix='write {"people": "person_id"}.')
    by_table = {folded(table): folded(unit) for table, unit in units.items()}
    if len(by_table) < len(units):
        raise ArgumentError("Two tables in units differ only in capitals, which are one name.", fix="rename one.")
    return by_table


def analyst_name(name: Any) -> str:
    """Returns the name in NFC. Refuses what is not printable: two different names must look different."""
    name = unicodedata.normalize("NFC", name) if isinstance(name, str) else name
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise ArgumentError(
            f"analyst must be a name of 1 to {LONGEST_NAME} printable characters without spaces around it.",
            fix=Fix("write {analyst}.", analyst="ada"),
        )
    return name


def _check_positive(value: Any, name: str) -> None:
    if not isinstance(value, Fraction) or value <= 0:
        raise ArgumentError(f"{name} must be a Fraction above 0.", fix=Fix("write {it}.", it=Python(f'{name}=Fraction("0.1")')))
    encode_rational(value)


def _check_texts(values: Any, *names: str) -> None:
    for name in names:
        if not isinstance(getattr(values, name), str):
            given = type(getattr(values, name)).__name__
            raise ArgumentError(f"{name} must be a text, and it is a {given}.", fix=Fix("give {it} as a str.", it=Name(name)))


START = "0" * 64  # the previous hash of the first entry


class _Encoded:
    """A record whose fields are encoded once, so that it can be done before the store is locked."""

    @cached_property
    def encoded(self) -> dict[str, Any]:
        return {name: codec.write(getattr(self, name)) for name, codec in _FIELD_CODECS[type(self)].items()}


@dataclass(frozen=True)
class Opened(_Encoded):
    KIND: ClassVar[str] = "opened/1"
    ledger: str  # 128 random bits: the ledger's name in receipts
    public_key: str
    caps: Caps


@dataclass(frozen=True)
class Declared(_Encoded):
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
class Reserved(_Encoded):
    KIND: ClassVar[str] = "reserved/1"
    question: str  # as the analyst wrote it
    digest: str  # of the plan, the catalog's hash and the snapshot: the question's identity
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
    token: str  # the digest of a secret that only the Reservation object has

    def with_rule(self, rule: str) -> Reserved:
        """Returns the record with the rule that admits it."""
        made = replace(self, rule=rule)
        made.__dict__["encoded"] = {**self.encoded, "rule": rule}
        return made


@dataclass(frozen=True)
class Committed(_Encoded):
    KIND: ClassVar[str] = "committed/1"
    reserved: int
    reserved_hash: str
    digest: str
    token: str  # the secret itself: proves that the writer made the reservation
    payload: str

    @property
    def lookup_key(self) -> str:
        return self.digest


@dataclass(frozen=True)
class Advanced(_Encoded):
    """Steps of a stream, in place of `Committed`: see streams.py."""

    KIND: ClassVar[str] = "advanced/1"
    reserved: int
    reserved_hash: str
    digest: str
    token: str
    payload: str  # the noisy numbers of these steps
    stream: str  # its key
    step: int  # the steps released so far, these included
    before: int  # the advanced entry before it; 0 for the first
    state: str  # the digest of the encrypted state after them


@dataclass(frozen=True)
class Cancelled(_Encoded):
    KIND: ClassVar[str] = "cancelled/1"
    reserved: int
    reserved_hash: str
    token: str


@dataclass(frozen=True)
class CancelledApproved(_Encoded):
    """A cancelled question that had used an approval: the approval may be used again, until it ends."""

    KIND: ClassVar[str] = "cancelled/2"
    reserved: int
    reserved_hash: str
    token: str
    approval: int  # the entry of its request


@dataclass(frozen=True)
class Failed(_Encoded):
    KIND: ClassVar[str] = "failed/1"
    reserved: int
    reserved_hash: str
    token: str
    why: str  # ENGINE closes the catalog; INTERRUPT and LEDGER do not


@dataclass(frozen=True)
class Lapsed(_Encoded):
    """Written by another process, which found the lease of a dead one; so it has no token."""

    KIND: ClassVar[str] = "lapsed/1"
    reserved: int
    reserved_hash: str


@dataclass(frozen=True)
class Replayed(_Encoded):
    KIND: ClassVar[str] = "replayed/1"
    committed: int
    committed_hash: str
    digest: str
    analyst: str
    loss: Charge

    @property
    def lookup_key(self) -> str:
        return replay_key(self.committed, self.analyst)


@dataclass(frozen=True)
class Reopened(_Encoded):
    KIND: ClassVar[str] = "reopened/1"
    closed: int  # the entry that closed the catalog; 0 if it was not closed and only dead processes are forgiven


@dataclass(frozen=True)
class Restored(_Encoded):
    KIND: ClassVar[str] = "restored/1"
    backup: int  # the last entry of the backup
    checked: str  # a later head ("number:hash") the backup was compared with, or empty


@dataclass(frozen=True)
class Policy(_Encoded):
    """See approvals.py, also for the three kinds below."""

    KIND: ClassVar[str] = "policy/1"
    above: Fraction | None  # questions of a higher epsilon need an approval
    tables: tuple[str, ...]  # questions about these tables need an approval


@dataclass(frozen=True)
class Requested(_Encoded):
    KIND: ClassVar[str] = "requested/1"
    question: str
    digest: str
    catalog: str
    snapshot: str
    analyst: str
    loss: Charge
    tables: tuple[str, ...]


@dataclass(frozen=True)
class Approved(_Encoded):
    KIND: ClassVar[str] = "approved/1"
    requested: int
    requested_hash: str
    by: str
    words: str
    until: str  # the last moment in which it may be used


@dataclass(frozen=True)
class Denied(_Encoded):
    KIND: ClassVar[str] = "denied/1"
    requested: int
    requested_hash: str
    by: str
    words: str


@dataclass(frozen=True)
class Closed(_Encoded):
    KIND: ClassVar[str] = "closed/1"
    by: str
    words: str


@dataclass(frozen=True)
class Rotated(_Encoded):
    """See Keys in receipts.py. The row has the signatures of both keys."""

    KIND: ClassVar[str] = "rotated/1"
    ledger: str  # its name, so that it is a rotation of no other ledger with the same key
    old: str  # public keys
    new: str
    secrets: str  # the digest of what the old key hands over, encrypted for the new one
    by: str
    words: str


ENGINE, INTERRUPT, LEDGER = "engine", "interrupt", "ledger"
Settled = Committed | Advanced | Cancelled | CancelledApproved | Failed | Lapsed  # how a reservation ends
_Asked = Opened | Declared | Reserved | Settled | Replayed
Record = _Asked | Reopened | Restored | Policy | Requested | Approved | Denied | Closed | Rotated
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
    Advanced,
    Policy,
    Requested,
    Approved,
    Denied,
    Closed,
    Rotated,
    CancelledApproved,
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
        place = {"kind": self.kind, "number": self.number, "previous": self.previous, "nonce": self.nonce, "time": self.time}
        return canonical(place | self.record.encoded)

    @property
    def hash(self) -> str:
        return hash_of(self.body)


def hash_of(body: str) -> str:
    return digest("ledger entry 1", body)


def token_of(secret: str) -> str:
    return digest("ledger token 1", secret)


def question_digest(plan: str, catalog: str, snapshot: str) -> str:
    """Returns the identity of a question: its plan (price included), catalog and snapshot."""
    return digest("ledger question 1", canonical([plan, catalog, snapshot]))


def replay_key(committed: int, analyst: str) -> str:
    """Returns the key to look up a replay by: the answer and the analyst who saw it."""
    return digest("ledger replay 1", canonical([committed, analyst]))


def lookup_key(record: Record) -> str:
    """Returns the `question` column of the record's row."""
    return record.lookup_key if isinstance(record, Committed | Replayed) else ""


def parse(row: Row) -> Entry:
    """Decodes the entry of a row. Refuses unknown kinds, missing fields and text that is not canonical."""
    try:
        data = json.loads(row.body)
        number = _CODECS["int"].read(data.pop("number"))
        previous, nonce, time = (_TEXT.read(data.pop(name)) for name in ("previous", "nonce", "time"))
        entry = Entry(number, previous, nonce, time, _record(KINDS[data.pop("kind")], data))
        if (entry.number, entry.kind, entry.body) == (row.number, row.kind, row.body):
            return entry
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, DitherError):
        pass
    raise LedgerError(
        f"Entry {row.number} cannot be read by this version of dither.",
        fix="run `dither verify`; if a newer version wrote it, update dither.",
    )


# --- fields to JSON and back, by the field's type annotation -----------------------------------------------------


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
_RATIONAL = _or_null(_Codec(encode_rational, decode_rational))
_CODECS = {
    "str": _TEXT,
    "int": _is(int),
    "bool": _is(bool),
    "Fraction": _Codec(encode_rational, decode_rational),
    "Fraction | None": _RATIONAL,
    "tuple[str, ...]": _list(_TEXT),
    "tuple[str, ...] | None": _or_null(_list(_TEXT)),
    "Mapping[str, str]": _Codec(lambda value: {key: _TEXT.write(text) for key, text in value.items()}, _MAPPING.read),
    "tuple[Mapping[str, Any], ...]": _list(_Codec(lambda value: plain(value, "mechanisms"), _MAPPING.read)),
    "Charge": _rationals(Charge, ("epsilon", "delta", "rho", "slack")),
    "Caps": _rationals(Caps, ("epsilon", "delta_sums", "delta_keys", "delta_conversion", "rho_max")),
}
_FIELD_CODECS: dict[type, dict[str, _Codec]] = {
    kind: {each.name: _CODECS[str(each.type)] for each in fields(kind)} for kind in KINDS.values()
}


def _record(kind: type[Record], data: dict[str, Any]) -> Record:
    shape = _FIELD_CODECS[kind]
    if set(shape) != set(data):
        raise ValueError("wrong fields")
    return kind(**{name: shape[name].read(value) for name, value in data.items()})
