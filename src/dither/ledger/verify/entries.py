"""Decodes entries for verification: a second implementation, written from their description.

An entry is a JSON object in canonical text; its hash is SHA-256 over "dither ledger entry 1", a line break and that text.
Each kind has exactly the fields listed here.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dither.ledger.stores.base import Row

HEX32, HEX64 = re.compile(r"[0-9a-f]{32}", re.ASCII), re.compile(r"[0-9a-f]{64}", re.ASCII)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
NUMBER = re.compile(r"(0|[1-9][0-9]*)(/[1-9][0-9]*)?", re.ASCII)
LOSS = ("epsilon", "delta", "rho", "slack")
CAPS = ("epsilon", "delta_sums", "delta_keys", "delta_conversion", "rho_max")


class EntryError(Exception):
    """A problem of an entry. Its text continues "entry 7 ..."."""


def text_of(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def load_json(text: Any) -> Any:
    """Decodes JSON. Raises ValueError for repeated names and anything that is not JSON."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) < len(pairs):
            raise ValueError
        return dict(pairs)

    if not isinstance(text, str):
        raise ValueError
    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=_no_number)
    except RecursionError:
        raise ValueError from None


def _no_number(name: str) -> None:
    raise ValueError(name)  # NaN and the infinities


def sha256(purpose: str, text: str) -> str:
    return hashlib.sha256(f"dither {purpose}\n".encode() + text.encode("ascii")).hexdigest()


def number(value: Any) -> Fraction:
    """Decodes a rational. Refuses one that is not in lowest terms."""
    if isinstance(value, str) and len(value) <= 2001 and NUMBER.fullmatch(value):
        top, _, bottom = value.partition("/")
        ratio = Fraction(int(top), int(bottom or "1"))
        if value == (str(ratio.numerator) if ratio.denominator == 1 else f"{ratio.numerator}/{ratio.denominator}"):
            return ratio
    raise EntryError("a number is not in lowest terms")


def _matches(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return type(value) is int and value > 0


def _is_zero_or_more(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_number(value: Any) -> bool:
    return number(value) >= 0


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(part, str) for part in value.values())


def _is_mechanisms(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, dict) for part in value)


def _maybe(rule: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or rule(value)


def _numbers(names: tuple[str, ...]) -> Callable[[Any], bool]:
    def rule(value: Any) -> bool:
        if not isinstance(value, dict) or set(value) != set(names):
            return False
        return all(part is None if name == "rho" and part is None else _is_number(part) for name, part in value.items())

    return rule


COMMON = {"kind": _is_text, "number": _is_count, "previous": _matches(HEX64), "nonce": _matches(HEX32), "time": _matches(TIME)}
SHAPES: dict[str, dict[str, Callable[[Any], bool]]] = {
    "opened/1": {"ledger": _matches(HEX32), "public_key": _matches(HEX64), "caps": _numbers(CAPS)},
    "catalog/1": {
        "catalog": _is_text,
        "text": _is_text,
        "epsilon": _is_number,
        "delta": _is_number,
        "per_analyst": _maybe(_is_number),
        "per_query": _maybe(_is_number),
        "least_epsilon": _is_number,
        "analysts": _maybe(_is_texts),
        "neighbours": _is_text,
        "snapshot": _is_text,
        "units": _is_mapping,
    },
    "reserved/1": {
        **dict.fromkeys(("question", "plan", "catalog", "snapshot", "analyst", "rule", "unit", "neighbours"), _is_text),
        "digest": _matches(HEX64),
        "loss": _numbers(LOSS),
        "tables": _is_texts,
        "mechanisms": _is_mechanisms,
        "fresh": lambda value: isinstance(value, bool),
        "token": _matches(HEX64),
    },
    "committed/1": {
        "reserved": _is_count,
        **dict.fromkeys(("reserved_hash", "digest", "token"), _matches(HEX64)),
        "payload": _is_text,
    },
    "advanced/1": {
        "reserved": _is_count,
        **dict.fromkeys(("reserved_hash", "digest", "token", "stream", "state"), _matches(HEX64)),
        "payload": _is_text,
        **dict.fromkeys(("step", "before"), _is_zero_or_more),
    },
    "cancelled/1": {"reserved": _is_count, "reserved_hash": _matches(HEX64), "token": _matches(HEX64)},
    "cancelled/2": {
        **dict.fromkeys(("reserved", "approval"), _is_count),
        **dict.fromkeys(("reserved_hash", "token"), _matches(HEX64)),
    },
    "failed/1": {
        "reserved": _is_count,
        **dict.fromkeys(("reserved_hash", "token"), _matches(HEX64)),
        "why": lambda value: value in ("engine", "interrupt", "ledger"),
    },
    "lapsed/1": {"reserved": _is_count, "reserved_hash": _matches(HEX64)},
    "replayed/1": {
        "committed": _is_count,
        "committed_hash": _matches(HEX64),
        "digest": _matches(HEX64),
        "analyst": _is_text,
        "loss": _numbers(LOSS),
    },
    "reopened/1": {"closed": _is_zero_or_more},
    "policy/1": {"above": _maybe(_is_number), "tables": _is_texts},
    "requested/1": {
        **dict.fromkeys(("question", "catalog", "snapshot", "analyst"), _is_text),
        "digest": _matches(HEX64),
        "loss": _numbers(LOSS),
        "tables": _is_texts,
    },
    "approved/1": {
        "requested": _is_count,
        "requested_hash": _matches(HEX64),
        **dict.fromkeys(("by", "words"), _is_text),
        "until": _matches(TIME),
    },
    "denied/1": {"requested": _is_count, "requested_hash": _matches(HEX64), **dict.fromkeys(("by", "words"), _is_text)},
    "closed/1": dict.fromkeys(("by", "words"), _is_text),
    "rotated/1": {
        "ledger": _matches(HEX32),
        **dict.fromkeys(("old", "new", "secrets"), _matches(HEX64)),
        **dict.fromkeys(("by", "words"), _is_text),
    },
    "restored/1": {"backup": _is_count, "checked": _matches(re.compile(r"([1-9][0-9]{0,17}:[0-9a-f]{64})?", re.ASCII))},
}


def entry(row: Row) -> dict[str, Any]:
    """Returns the fields of a row's body. Refuses an unknown kind, wrong fields or a wrong hash."""
    if type(row.number) is not int or not all(isinstance(part, str) for part in row[1:]):
        raise EntryError("is not made of texts")
    try:
        matches = sha256("ledger entry 1", row.body) == row.hash
        fields: dict[str, Any] = load_json(row.body)
        canonical = isinstance(fields, dict) and text_of(fields) == row.body
    except (ValueError, RecursionError):
        raise EntryError("is not readable") from None
    if not matches:
        raise EntryError("does not have the hash that is beside it")
    if not canonical:
        raise EntryError("is not in canonical text")
    shape = SHAPES.get(str(fields.get("kind")))
    if shape is None:
        raise EntryError("is of an unknown kind")
    rules = COMMON | shape
    if set(rules) != set(fields):
        raise EntryError("has other fields than its kind")
    for name, rule in rules.items():
        if not rule(fields[name]):
            raise EntryError(f"has no right {name}")
    if (fields["kind"], fields["number"]) != (row.kind, row.number):
        raise EntryError("is stored under another kind or number")
    return fields
