"""Verifies a ledger: chain, signatures, sums and rules, independently of the code that wrote it.

With the public key alone it finds: entries that were edited, removed, added, repeated, moved or cut off the end; charges that
the rules did not allow; sums that differ from the entries or were not signed with the curator's key; changed tables and
triggers. It cannot find a rollback of the whole ledger, because the older copy was valid. Only a head kept elsewhere, a
witness or a receipt detects a rollback.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from dither.errors import DitherError, LedgerError
from dither.ledger.receipts import Receipt, entry_message, is_signed
from dither.ledger.stores.base import Row, Store
from dither.ledger.verify.entries import EntryError, entry, load_json, sha256, text_of
from dither.ledger.verify.walk import GRID, Walk

MOST = 100  # problems listed one by one
START = "0" * 64
HEAD = re.compile(r"([1-9][0-9]{0,18}):([0-9a-f]{64})", re.ASCII)
SEALED = ("head", "caps", "catalog", "total", "history", "rolls", "leases", "fuse")
LATER = ("streams", "approvals", "keys")  # sealed where they exist
LOWEST = -(2**63)  # so that a row moved below 1 is found as well


class Report(NamedTuple):
    """The result of verification. Without problems, every entry and sum of the ledger is as it was written."""

    problems: tuple[str, ...]
    entries: int
    head: str
    kinds: dict[str, int]
    open: int  # reservations without an answer: running questions, or those of a process that died
    closed: int  # the entry that closed the catalog to new questions, or 0
    restored: int  # how often the ledger was restored from a backup
    spent: dict[str, Fraction]

    @property
    def ok(self) -> bool:
        return not self.problems

    def as_data(self) -> dict[str, Any]:
        """Returns the verdict as JSON data, with exact numbers as text."""
        count: dict[str, int] = {}
        for kind, number in self.kinds.items():
            count[kind.partition("/")[0]] = count.get(kind.partition("/")[0], 0) + number
        return {
            "ok": self.ok,
            "problems": list(self.problems),
            "entries": self.entries,
            "answered": count.get("committed", 0),
            "shown_again": count.get("replayed", 0),
            "cancelled": count.get("cancelled", 0),
            "open": self.open,
            "closed": self.closed or None,
            "restored": self.restored,
            "spent": {part: str(value) for part, value in self.spent.items()},
            "head": self.head,
        }


def verify(
    store: Store,
    head: str | Mapping[str, str] | None = None,
    receipt: Receipt | Mapping[str, Receipt] | None = None,
    public_key: str | None = None,
) -> Report:
    """Verifies the whole ledger. Compares it with a `head` ("number:hash"), `receipt` and `public_key` kept elsewhere.

    Pass several heads or receipts as a mapping from a name to show, such as the file's.
    """
    state, last = store.state()
    heads = {"the head": head} if isinstance(head, str) else head or {}
    receipts = {"the receipt": receipt} if isinstance(receipt, Receipt) else receipt or {}
    check = _Check(store, state, _marks(heads, receipts), public_key)
    for problem in store.faults():
        check.report(problem)
    for row in store.rows(LOWEST, last):
        check.row(row)
    return check.end(receipts)


def _marks(heads: Mapping[str, str], receipts: Mapping[str, Receipt]) -> dict[int, list[tuple[str, str]]]:
    """Returns the hashes that entries must have, by number, each with its source."""
    marks: dict[int, list[tuple[str, str]]] = {}
    for source, head in heads.items():
        match = HEAD.fullmatch(head.strip())
        if match is None:
            raise LedgerError(
                "A head is written as number:hash, from number 1 on.", fix="give it as `dither verify` printed it."
            )
        marks.setdefault(int(match[1]), []).append((match[2], source))
    for source, receipt in receipts.items():
        for place in receipt.places:
            marks.setdefault(place["number"], []).append((place["hash"], source))
    return marks


class _Check:
    """Checks numbers, hashes, times and signatures. `Walk` checks what the entries mean."""

    def __init__(
        self, store: Store, state: dict[str, str], marks: dict[int, list[tuple[str, str]]], public_key: str | None
    ) -> None:
        self.store = store
        self.state = state
        self.marks = marks
        self.problems: list[str] = []
        self.unlisted = 0
        self.last = Row(0, "", "", "", START, "")
        self.time = ""
        self.kinds: dict[str, int] = {}
        self.named = public_key
        self.identity = self._identity()
        self.walk = Walk(store, self.identity)

    def report(self, problem: str) -> None:
        if len(self.problems) < MOST:
            self.problems.append(problem)
        else:
            self.unlisted += 1

    def row(self, row: Row) -> None:
        if row.number != self.last.number + 1:
            self.report(f"after entry {self.last.number} comes entry {row.number}: something was dropped, doubled or moved.")
        for hash, source in self.marks.pop(row.number, ()):
            if hash != row.hash:
                self.report(f"entry {row.number} is not the one that {source} names: this is another ledger, or another past.")
        try:
            fields = entry(row)
            self._check_place(row, fields)
            for wrong in self.walk.step(row, fields):
                self.report(f"entry {row.number} {wrong}.")
        except EntryError as wrong:
            self.report(f"entry {row.number} {wrong}.")
        except (ValueError, ArithmeticError, TypeError, DitherError):  # such as caps that are not valid
            self.report(f"entry {row.number} cannot be checked.")
        self.last = row

    def _check_place(self, row: Row, fields: dict[str, Any]) -> None:
        self.kinds[fields["kind"]] = self.kinds.get(fields["kind"], 0) + 1
        if fields["previous"] != self.last.hash:
            self.report(f"entry {row.number} does not follow the entry before it.")
        if fields["time"] < self.time:
            self.report(f"entry {row.number} is earlier than the entry before it.")
        self.time = max(self.time, fields["time"])
        if fields["kind"] == "replayed/1":
            right = is_signed(self.walk.key, entry_message(row.hash), row.signature)
        else:  # an answer has its receipt's signature, and a rotation two, which the walk checks; the seal covers the others
            right = fields["kind"] in ("committed/1", "advanced/1", "rotated/1") or not row.signature
        if not right:
            self.report(f"entry {row.number} is not signed with the ledger's key.")

    def end(self, receipts: Mapping[str, Receipt]) -> Report:
        for number, marks in sorted(self.marks.items()):
            for _, source in marks:
                self.report(
                    f"entry {number}, which {source} names, is not there: an older copy was put in this ledger's place."
                )
        for source, receipt in receipts.items():
            self._receipt(source, receipt)
        self._state()
        if self.named is not None and self.named not in [key for _, key in self.walk.keys]:
            self.report("the ledger has another public key than the one that was named.")
        more = [f"and {self.unlisted} more problems."] if self.unlisted else []
        spent = {part: Fraction(units, GRID) for part, units in self.walk.total.items() if part != "unstated"}
        head = f"{self.last.number}:{self.last.hash}"
        walk = self.walk
        problems = (*self.problems, *more)
        return Report(problems, self.last.number, head, self.kinds, len(walk.pending), walk.closed, walk.restored, spent)

    def _receipt(self, source: str, receipt: Receipt) -> None:
        if receipt.body["ledger"] != self.identity["ledger"]:
            self.report(f"{source} is of another ledger.")
        if not any(receipt.verify(key) for key in self._keys_of(receipt)):
            self.report(f"{source} is not signed with the ledger's key, or was edited.")
        if receipt.derived:
            for place in receipt.answers:
                if wrong := self._made_of(receipt, place["number"]):
                    self.report(f"{source} is of an answer made of entry {place['number']}, which {wrong}.")

    def _keys_of(self, receipt: Receipt) -> list[str]:
        """Returns the key that was in force at a receipt's entry; for a free answer, which has none, all keys since then."""
        newest = max(place["number"] for place in receipt.answers)
        later = [key for start, key in self.walk.keys if start > newest] if receipt.derived else []
        return [self.walk.key_at(newest), *later]

    def _made_of(self, receipt: Receipt, at: int) -> str:
        """Returns why a free answer cannot have been made of this entry: it is no answer under the same catalog and snapshot,
        or its analyst had not got it. Empty if it can; an entry that is not there was reported already."""
        row = self.store.entry(at)
        if row is None:
            return ""
        try:
            answer = entry(row)
            before = self.store.entry(answer["reserved"]) if answer["kind"] == "committed/1" else None
            reserved = entry(before) if before is not None else None
        except EntryError:
            return "cannot be read"
        if reserved is None:
            return "is no answer"
        if any(reserved[name] != receipt.body[name] for name in ("catalog", "snapshot", "neighbours")):
            return "is about another catalog or snapshot"
        analyst = receipt.body["analyst"]
        shown = sha256("ledger replay 1", text_of([at, analyst]))
        return "" if reserved["analyst"] == analyst or self.store.latest(shown) is not None else "its analyst had not got"

    def _state(self) -> None:
        """Checks that the stored state follows from the entries and is sealed."""
        expected = self.walk.state()
        if self.last.number and isinstance(self.last.hash, str):
            expected["head"] = text_of({"number": self.last.number, "hash": self.last.hash, "time": self.time})
        for key in sorted(self.walk.states):
            if not self._is_state(key):
                what = "what the key before handed over" if key == "secrets" else "the state after the last steps of its stream"
                self.report(f"the stored {_show_key(key)} is not {what}.")
        for key in sorted(set(expected) | set(self.state) - set(self.walk.states), key=ascii):
            if key not in ("ledger", "seal", "leases") and self.state.get(key) != expected.get(key):
                self.report(f"the stored {_show_key(key)} is not what the entries add up to.")
        if not self.walk.leases_match(self.state.get("leases")):
            self.report("the stored leases are not those of the open reservations.")
        if not self._sealed():
            self.report("the stored sums are not signed with the ledger's key: they, or the last entries, were changed.")

    def _is_state(self, key: str) -> bool:
        """Returns whether an encrypted text is the one whose digest the last entry about it has."""
        text, use = self.state.get(key), "ledger secrets 1" if key == "secrets" else "ledger stream state 1"
        return isinstance(text, str) and text.isascii() and sha256(use, text) == self.walk.states[key]

    def _sealed(self) -> bool:
        """Returns whether the seal's signature covers the stored state."""
        seal = self.state.get("seal")
        texts = [self.state.get(name) for name in (*SEALED, *LATER)]
        if not isinstance(seal, str) or not all(text is None or isinstance(text, str) for text in texts):
            return False
        parts = ["-" if text is None else f"{len(text)} {text}" for text in texts[: len(SEALED)]]
        parts += [f"{name} {len(self.state[name])} {self.state[name]}" for name in LATER if name in self.state]
        text = "\n".join(["dither ledger state 1 signature", self.identity["ledger"], *parts])
        return text.isascii() and is_signed(self.walk.key, text, seal.partition(" ")[0])

    def _identity(self) -> dict[str, str]:
        """Returns the ledger's identity, as stored."""
        try:
            stored = load_json(self.state.get("ledger", ""))
            right = isinstance(stored, dict) and set(stored) == {"format", "ledger", "public_key"} and stored["format"] == 2
        except ValueError:
            stored, right = {}, False
        stored = stored if isinstance(stored, dict) else {}
        if not right or text_of(stored) != self.state.get("ledger"):
            self.report("the ledger's identity cannot be read.")
        return {name: str(stored.get(name, "")) for name in ("ledger", "public_key")}


def _show_key(key: Any) -> str:
    """Shows a key in a message. Anyone may have written it, so unprintable characters are escaped."""
    return key if isinstance(key, str) and key.isprintable() and len(key) < 300 else ascii(key)[:300]
