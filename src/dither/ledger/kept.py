"""Answers that were given before: found, checked against their signature, and shown again."""

from __future__ import annotations

from typing import NamedTuple

from dither.errors import LedgerError
from dither.ledger.entries import Committed, Entry, Replayed, Reserved, hash_of, parse
from dither.ledger.receipts import Receipt, stored
from dither.ledger.state import Identity
from dither.ledger.store import Row, Store


class Kept(NamedTuple):
    """An answer that was given before, with the receipt it was given with."""

    payload: str
    receipt: Receipt
    analyst: str  # who asked first
    time: str
    charged: bool  # whether it counted for this analyst's quota now


def stored_answer(store: Store, identity: Identity, row: Row) -> tuple[Entry, Reserved, str, Receipt]:
    """The reservation, the answer and its receipt, if the signature still holds: an edited answer is never shown."""
    committed = parse(row)
    answer = committed.record
    before = store.entry(answer.reserved) if isinstance(answer, Committed) else None
    if not isinstance(answer, Committed) or before is None or hash_of(before.body) != before.hash:
        raise _damaged(row)
    reserved = parse(before)
    asked = reserved.record
    if not isinstance(asked, Reserved) or asked.digest != answer.digest or committed.hash != row.hash:
        raise _damaged(row)
    receipt = stored(identity.ledger, reserved, committed, row.signature)
    if not receipt.verify(identity.public_key):
        raise _damaged(row)
    return reserved, asked, answer.payload, receipt


def paid_by(row: Row) -> int:
    """The entry that charged an analyst for the answer that was shown in this row."""
    found = parse(row).record
    if not isinstance(found, Replayed):
        raise _damaged(row)
    return found.paid


def _damaged(row: Row) -> LedgerError:
    return LedgerError(f"Entry {row.number} of the ledger was changed after it was written.", fix="run `dither verify`.")
