"""Answers that were given before: found, checked against their signature, and shown again."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dither.errors import LedgerError
from dither.ledger import admission, state
from dither.ledger.asked import Request
from dither.ledger.entries import Committed, Entry, Replayed, Reserved, hash_of, parse, shown_to
from dither.ledger.keys import entry_message, signed
from dither.ledger.receipts import Receipt, stored
from dither.ledger.state import Identity
from dither.ledger.store import Row
from dither.privacy.filters import Caps, Charge, Sums


class Kept(NamedTuple):
    """An answer that was given before, with the receipt it was given with."""

    payload: str
    receipt: Receipt
    analyst: str  # who asked first
    time: str
    charged: bool  # whether it counted for this analyst's quota now
    caps: Caps
    total: Sums  # what was spent in all when it was shown again


class Again(NamedTuple):
    """What showing an answer again comes to: its price counts, once, in the quota of whoever had not seen it."""

    kept: Kept
    loss: Charge
    used: Sums | None  # by this analyst with that price in it; None if the answer is not new to them


def again(books: admission.Books, identity: Identity, request: Request, row: Row) -> Again:
    """The answer of this row, if the declaration in force and the quota allow it to be shown to this analyst."""
    reserved, asked, payload, receipt = stored_answer(books.entry, identity, row, request.digest)
    terms, caps = admission.declared(books, request, asked.loss)
    analyst = request.analyst
    seen = books.latest(shown_to(row.number, analyst)) if asked.analyst != analyst else None
    known = asked.analyst == analyst or (seen is not None and is_shown(seen, identity, row.number, analyst))
    used = None if known else admission.quota(caps, terms.per_analyst, books.used(analyst), analyst, asked.loss)
    total = state.sums(books.get("total"))
    return Again(Kept(payload, receipt, asked.analyst, reserved.time, not known, caps, total), asked.loss, used)


def stored_answer(
    entry: Callable[[int], Row | None], identity: Identity, row: Row, digest: str
) -> tuple[Entry, Reserved, str, Receipt]:
    """The reservation, the answer and its receipt, if the signature still holds and it answers the question with this digest:
    what a row is found by is not signed, so an edited answer is never shown, nor another question's."""
    committed = parse(row)
    answer = committed.record
    if not isinstance(answer, Committed) or answer.digest != digest or not 0 < answer.reserved < row.number:
        raise _damaged(row)
    before = entry(answer.reserved)
    if before is None or hash_of(before.body) != before.hash:
        raise _damaged(row)
    reserved = parse(before)
    asked = reserved.record
    if not isinstance(asked, Reserved) or asked.digest != answer.digest or committed.hash != row.hash:
        raise _damaged(row)
    receipt = stored(identity.ledger, reserved, committed, row.signature)
    if not receipt.verify(identity.public_key):
        raise _damaged(row)
    return reserved, asked, answer.payload, receipt


def is_shown(row: Row, identity: Identity, committed: int, analyst: str) -> bool:
    """True: a signed row says that this answer was shown to this analyst, and counted, before. Any other row is damage."""
    found = parse(row)
    if not isinstance(found.record, Replayed) or (found.record.committed, found.record.analyst) != (committed, analyst):
        raise _damaged(row)
    if found.hash != row.hash or not signed(identity.public_key, entry_message(row.hash), row.signature):
        raise _damaged(row)
    return True


def _damaged(row: Row) -> LedgerError:
    return LedgerError(f"Entry {row.number} of the ledger was changed after it was written.", fix="run `dither verify`.")
