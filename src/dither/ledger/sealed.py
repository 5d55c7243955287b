"""What the next question is checked against, sealed: only the holder of the curator's key can change it unnoticed.

    seal      signature and MAC over the ledger's name and all of HELD as they stand: the latest only, never in an entry
    rolls     by group of analysts: the digest of the group's roll. Part of what is sealed
    roll:NNN  by analyst of one group: the digest of what stands under analyst:NAME

So a sum that was edited, deleted or put back alone is found before anything is written, and an ask reads one small group,
however many analysts there are. The head is under the seal, so entries cannot be cut off either. All of it put back
together, entries and seal included, is an older copy: see docs/known-limits.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

from dither.errors import LedgerError
from dither.ledger import state
from dither.ledger.keys import Key
from dither.ledger.store import Row, Transaction
from dither.ledger.text import canonical, digest
from dither.privacy.filters import Sums

HELD = ("head", "caps", "catalog", "total", "history", "rolls", "leases", "fuse")
BOOKS = (*HELD, "seal")
GROUPS = 128


@lru_cache(maxsize=256)
def keys_of(analyst: str) -> tuple[str, str]:
    """Where an analyst's sums stand, and the roll of the analyst's group."""
    return f"analyst:{analyst}", f"roll:{_group(analyst)}"


def ends_at(inside: Transaction, head: state.Head, name: str) -> None:
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
        return state.sums(text)

    def use(self, analyst: str, sums: Sums) -> None:
        place, text = keys_of(analyst)[0], state.sums_text(sums)
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


def first_texts(identity: state.Identity, key: Key) -> dict[str, str]:
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
