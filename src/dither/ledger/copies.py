"""Backs up a ledger into a file, and restores a ledger from a backup.

A backup has another application id, so nobody can spend from it. Restoring appends a `restored` entry with a nonce of its own.
From there the restored ledger and the original differ, so every later head, receipt or witness line belongs to only one of
them. Questions asked after the backup was made are missing from the restored ledger. So restoring first compares the backup
with the evidence: heads, receipts and a witness kept elsewhere.

The marks of the data (marks.py) are copied into a file beside the backup, and from there to the key's.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from dither.errors import ArgumentError, Fix, LedgerError, NoLedgerError, Shell
from dither.ledger import opening
from dither.ledger.ledger import Ledger
from dither.ledger.marks import copy_marks, marks_beside
from dither.ledger.opening import Where
from dither.ledger.receipts import Key, Keys, Receipt
from dither.ledger.state import Head, Identity
from dither.ledger.stores.base import Row, Store
from dither.ledger.stores.sqlite import SQLite
from dither.ledger.verify.report import verify
from dither.ledger.witness import LOGS, Witness

MOST_SHOWN = 3  # problems listed when a backup is refused


class Evidence(NamedTuple):
    """What is known about a ledger from elsewhere: heads and receipts, by a name to show, and a witness."""

    heads: Mapping[str, str] = {}
    receipts: Mapping[str, Receipt] = {}
    witness: Witness | None = None


class Restoration(NamedTuple):
    head: Head  # of the new ledger
    backup: int  # the last entry of the backup
    checked: str  # the newest head that the backup was compared with, or empty
    marked: bool = False  # whether there are marks of the data, so that data replaced since is noticed


def back_up(where: Where, path: Path, key: Where | None = None) -> Head:
    """Copies a ledger as it is now into a new file and returns its head. Questions may run meanwhile.

    `key`: where the key file is, beside which the marks of the data are. It is not read.
    """
    if path.name.endswith(LOGS):
        raise ArgumentError(f"{path.name} would be taken for a database's log.", fix="give the backup another name.")
    for file in (path, marks_beside(path)):
        if os.path.lexists(file):
            raise ArgumentError(f"{file} is there already.", fix="name a new file: a backup replaces none.")
    with closing(opening.open_readonly(where)) as store:
        texts, last = store.state()  # one snapshot; entries up to `last` never change
        head = Head.parse(texts.get("head"))
        if not last:
            raise LedgerError(
                f"The ledger {store.name} has no entries yet, so there is nothing to back up.",
                fix="back it up after the first question.",
            )
        if head.number != last:
            raise LedgerError(
                f"The entries of {store.name} do not end where its head says they do.", fix="run `dither verify`."
            )
        identity = Identity.parse(texts.get("ledger"), store.name)
        SQLite.create(path, texts, store.rows(1, last), backup=True).close()
    if key is not None or not opening.is_address(where):
        copy_marks(marks_beside(opening.key_path(where, key)), marks_beside(path), identity.ledger)
    return head


def restore(
    backup: Path,
    where: Where,
    key: Where | None = None,
    evidence: Evidence = Evidence(),  # noqa: B008 - immutable
    *,
    unchecked: bool = False,
    beside: Sequence[Where] = (),
) -> Restoration:
    """Creates a ledger from a backup, where there is none. Refuses a backup that lacks what the evidence names.

    `unchecked` allows restoring without evidence. `beside` lists places where the ledger itself may still exist.
    """
    _check_vacant(where)
    signing = Key.read(opening.key_path(where, key))
    with closing(_open_backup(backup)) as store:
        identity = Identity.parse(store.get("ledger"), store.name)
        _check_lost(identity, [*beside, *_ledgers_beside(opening.key_path(where, key))])
        heads = _heads(evidence, identity, unchecked)
        _check_backup(store, heads, evidence.receipts)
        _check_key(store, identity, signing, opening.key_path(where, key))
        checked = _newest(heads, evidence.receipts)
        texts, last = store.state()
        head, texts, row = _continue(store, texts, last, signing, checked)
        opening.make(where, texts, chain(store.rows(1, last), [row])).close()
    _add_to_witness(evidence.witness, identity, head)
    marked = copy_marks(marks_beside(backup), marks_beside(opening.key_path(where, key)), identity.ledger)
    return Restoration(head, last, checked, marked)


def _check_vacant(where: Where) -> None:
    taken = LedgerError(
        "There is a ledger in that place already, and a second one from its backup would be a second budget.",
        fix="go on with the ledger that is there; if it is damaged, move it away first.",
    )
    if not opening.is_address(where) and where != opening.MEMORY:
        if os.path.lexists(where):
            raise taken
        opening.check_new(Path(where))
        return
    try:
        opening.find(where).close()
    except NoLedgerError:
        return
    raise taken


def _open_backup(path: Path) -> SQLite:
    store = SQLite.open(path, readonly=True)
    if store.backup:
        return store
    store.close()
    raise LedgerError(
        f"{path.name} is a ledger and no backup.",
        fix=Fix("use it as it is with {ledger}, or make a backup of it: dither backup.", ledger=Shell("--ledger")),
    )


def _check_lost(identity: Identity, places: Sequence[Where]) -> None:
    """Refuses if the backup's ledger still exists in one of these places."""
    for place in places:
        try:
            with closing(opening.open_readonly(place)) as store:
                living = Identity.parse(store.get("ledger"), store.name) == identity
        except LedgerError:
            continue
        if living:
            raise LedgerError(
                f"The ledger of this backup is still there: {Path(place).name}. Two of them would be two budgets.",
                fix="go on with the one that is there; if it is damaged, move it away first.",
            )


def _ledgers_beside(key: Path) -> list[Path]:
    """Returns the path of the ledger that a key was created beside."""
    return [key.with_name(key.name.removesuffix(".key"))] if key.name.endswith(".key") else []


def _heads(evidence: Evidence, identity: Identity, unchecked: bool) -> dict[str, str]:
    heads = dict(evidence.heads)
    if evidence.witness is not None:
        seen = evidence.witness.newest(identity.ledger)
        if seen is not None:
            heads[f"the witness {evidence.witness.path.name}"] = str(seen)
    if not heads and not evidence.receipts and not unchecked:
        raise LedgerError(
            "Nothing shows whether questions were answered after this backup was made. Their budget could be spent twice.",
            fix=Fix(
                "name what you have: {witness}, {head} or the newest {receipt}. If you have none, add {unchecked}.",
                **{option: Shell(f"--{option}") for option in ("witness", "head", "receipt", "unchecked")},
            ),
        )
    return heads


def _check_backup(store: Store, heads: Mapping[str, str], receipts: Mapping[str, Receipt]) -> None:
    report = verify(store, heads, receipts)
    if report.problems:
        more = [f"and {len(report.problems) - MOST_SHOWN} more."] if len(report.problems) > MOST_SHOWN else []
        raise LedgerError(
            f"{store.name} is not restored: it is damaged, or lacks what is known from elsewhere.",
            where="\n".join([*report.problems[:MOST_SHOWN], *more]),
            fix="restore a newer backup; docs/ledger.md says what can be done if there is none.",
        )


def _check_key(store: Store, identity: Identity, key: Key, file: Path) -> None:
    """Refuses a key that was not in force when the backup was made, and finds the one that was among the retired ones."""
    right = Keys.parse(store.get("keys"), *identity).in_force
    if key.public == right:
        return
    beside = file.parent.glob(f"{glob.escape(file.name)}.until-*")
    if retired := next((each for each in sorted(beside) if _is_key(each, right)), None):
        raise LedgerError(
            f"{store.name} has another public key than {file.name}: it was made before the key was rotated.",
            fix=Fix(f"add {{key}} {retired}, the key that was in force then.", key=Shell("--key")),
        )
    fix = "name the key that was in force with {key}; after a rotation the old one ends in .until-N."
    raise LedgerError(f"{store.name} has another public key than {file.name}.", fix=Fix(fix, key=Shell("--key")))


def _is_key(file: Path, public: str) -> bool:
    try:
        return Key.read(file).public == public
    except (LedgerError, ArgumentError, OSError):
        return False


def _newest(heads: Mapping[str, str], receipts: Mapping[str, Receipt]) -> str:
    """Returns the latest entry that the evidence names, as a head."""
    entries = [entry for receipt in receipts.values() for entry in receipt.answers]
    named = [*(head.strip() for head in heads.values()), *(f"{entry['number']}:{entry['hash']}" for entry in entries)]
    return max(named, key=lambda head: int(head.partition(":")[0]), default="")


def _continue(store: Store, texts: dict[str, str], last: int, key: Key, checked: str) -> tuple[Head, dict[str, str], Row]:
    """Returns the head, texts and entry that follow the last one. A ledger in memory that ends like this store writes them."""
    end = [row for row in (store.entry(last),) if row is not None]
    with closing(Ledger(SQLite.memory(texts, end), key)) as ledger:
        head = ledger.record_restore(checked)
        (row,) = ledger.store.rows(last + 1)
        return head, ledger.store.state()[0], row


def _add_to_witness(witness: Witness | None, identity: Identity, head: Head) -> None:
    if witness is None:
        return
    try:
        witness.add(identity.ledger, head)
    except LedgerError as error:
        raise LedgerError(
            f"The ledger is restored. {error.what}", fix="make it usable, and run dither witness before the first question."
        ) from None
