"""What the analyst keeps: what was asked and what it cost, tied to one place in one ledger by the curator's signature.

A receipt names the entries it stands on. Held against a ledger it proves that the ledger still has them: a copy from before
the answer does not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dither.errors import LedgerError
from dither.ledger.entries import Committed, Entry, Reserved
from dither.ledger.keys import Key, signed
from dither.ledger.text import canonical, parsed, plain

FIELDS = {"receipt", "ledger", "question", "catalog", "snapshot", "unit", "neighbours", "analyst", "mechanisms", "loss", "rule"}
FIELDS |= {"time", "reserved", "entry"}


@dataclass(frozen=True)
class Receipt:
    """The signed facts of one answer. `body["entry"]` is the committed entry, whose hash covers the answer too."""

    body: Mapping[str, Any]
    signature: str

    def verify(self, public_key: str) -> bool:
        """Whether the holder of this key signed exactly these facts. Whether a ledger has them: `dither verify --receipt`."""
        return signed(public_key, message(self.body), self.signature)

    def to_json(self) -> str:
        return json.dumps({"body": plain(self.body, "receipt"), "signature": self.signature}, indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Receipt:
        try:
            found = parsed(text)
            body, signature = found["body"], found["signature"]
            right = set(found) == {"body", "signature"} and set(body) == FIELDS and body["receipt"] == 1
            if right and isinstance(signature, str) and all(_place(body[name]) for name in ("reserved", "entry")):
                message(body)
                return cls(body, signature)
        except (ValueError, TypeError, KeyError, RecursionError):
            pass
        raise LedgerError("This is no receipt of dither.", fix="name the file that was saved with the answer.")


def _place(found: Any) -> bool:
    return set(found) == {"number", "hash"} and type(found["number"]) is int and isinstance(found["hash"], str)


def message(body: Mapping[str, Any]) -> str:
    """What is signed."""
    return f"dither receipt 1\n{canonical(body)}"


def facts(ledger: str, reserved: Entry, reserved_hash: str, number: int, hash: str) -> dict[str, Any]:
    """A receipt's body, from the reservation and the place of the committed entry."""
    asked = reserved.record
    if not isinstance(asked, Reserved):
        raise LedgerError(f"Entry {reserved.number} is no reservation.", fix="run `dither verify`.")
    return {
        "receipt": 1,
        "ledger": ledger,
        "question": asked.question,
        "catalog": asked.catalog,
        "snapshot": asked.snapshot,
        "unit": asked.unit,
        "neighbours": asked.neighbours,
        "analyst": asked.analyst,
        "mechanisms": asked.written["mechanisms"],
        "loss": asked.written["loss"],
        "rule": asked.rule,
        "time": reserved.time,
        "reserved": {"number": reserved.number, "hash": reserved_hash},
        "entry": {"number": number, "hash": hash},
    }


def issue(key: Key, ledger: str, reserved: Entry, reserved_hash: str, number: int, hash: str) -> Receipt:
    body = facts(ledger, reserved, reserved_hash, number, hash)
    return Receipt(body, key.sign(message(body)))


def stored(ledger: str, reserved: Entry, committed: Entry, signature: str) -> Receipt:
    """The receipt of an answer in the ledger, as it was given out."""
    if not isinstance(committed.record, Committed):
        raise LedgerError(f"Entry {committed.number} is no answer.", fix="run `dither verify`.")
    return Receipt(facts(ledger, reserved, reserved.hash, committed.number, committed.hash), signature)
