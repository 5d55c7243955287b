"""Rotates the key of a ledger: the files, in an order in which a crash at any point leaves a ledger that opens.

    1  the new key is written beside the old one, as KEY.next, and synced
    2  one transaction of the ledger: the entry that both keys sign, the list of keys, the seal of the new key
    3  the old key gets the name KEY.until-57 (the number of that entry), and KEY.next the name KEY

Before 2 the old key opens the ledger, and the new one is not used. After 2 the new one does: whoever opens the ledger with the
old key in its place finds KEY.next and does step 3 (`opening.read_key`).
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from dither.errors import LedgerError
from dither.ledger import opening
from dither.ledger.opening import Where, next_key
from dither.ledger.receipts import Key
from dither.ledger.state import Head


class Rotation(NamedTuple):
    head: Head
    public_key: str  # the new one
    retired: Path  # the file of the old key
    resumed: bool  # whether an interrupted rotation was finished, and no other one begun


def rotate(where: Where, key: Where | None, by: str, words: str = "", witness: Where | None = None) -> Rotation:
    """Rotates the key of a ledger and the key's file. If a rotation was interrupted, finishes that one instead."""
    file = opening.key_path(where, key)
    before = Key.read(file)
    with closing(opening.open(where, key, witness)) as ledger:  # finishes an interrupted one
        if ledger.public_key != before.public:
            number, _ = ledger.keys().terms[-1]
            return Rotation(ledger.head(), ledger.public_key, opening.retired_key(file, number), True)
        new = Key.create(next_key(file))
        head = ledger.rotate(new, by, words)
        try:
            retired = opening.replace_key(file, head.number)
        except OSError:
            raise LedgerError(
                f"The key is rotated, and {next_key(file).name} is the new one. It could not be renamed to {file.name}.",
                fix="rename it, and keep the old one under another name.",
            ) from None
        return Rotation(head, new.public, retired, False)
