"""Making and finding ledgers: a file's path, a postgresql:// address, or ":memory:" by name."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from dither.errors import DitherError, LedgerError, extra
from dither.ledger.keys import Key
from dither.ledger.ledger import Ledger
from dither.ledger.sqlite import SQLite
from dither.ledger.state import Identity
from dither.ledger.store import Row, Store
from dither.ledger.witness import Witness

if TYPE_CHECKING:
    from dither.ledger.postgres import Postgres

MEMORY = ":memory:"
Where = str | PathLike[str]


def create(where: Where, key: Where | None = None) -> Ledger:
    """A new ledger, never in place of one that is there. Its key file is made with it, or taken if it is there already."""
    if where == MEMORY:
        return memory()
    if not is_address(where) and Path(where).exists():
        raise LedgerError(f"There is a ledger {Path(where).name} already.", fix="open it, or name another file.")
    made = Key.create(key_path(where, key))
    return Ledger(make(where, {"ledger": _identity(made)}), made)


def make(where: Where, first: Mapping[str, str], rows: Iterable[Row] = ()) -> Store:
    """A new store with these texts and rows. It appears whole, or not at all; never replaces one."""
    return _postgres().create(str(where), first, rows) if is_address(where) else SQLite.create(Path(where), first, rows)


def open(where: Where, key: Where | None = None, witness: Where | None = None) -> Ledger:
    """A ledger that is there, with its key; `witness` is a file of heads that it is compared with (witness.py)."""
    store = find(where)
    try:
        seen = None if witness is None else Witness(Path(witness))
        return Ledger(store, Key.read(key_path(where, key)), witness=seen)
    except DitherError:
        store.close()
        raise


def view(where: Where) -> Ledger:
    """A ledger to be read: nothing can be reserved without its key, and nobody needs to be able to write its file."""
    return Ledger(readable(where), None)


def readable(where: Where, *, backup: bool = True) -> Store:
    """The store of a ledger, to be read: nothing is written, not even beside the file. `backup`: or of a backup."""
    if is_address(where) or where == MEMORY:
        return find(where)
    store = SQLite.open(Path(where), readonly=True)
    if store.backup and not backup:
        store.close()
        raise LedgerError(f"{store.name} is a backup.", fix="name the ledger itself.")
    return store


def memory() -> Ledger:
    """Forgotten with the process: for trying things out."""
    key = Key.new()
    return Ledger(SQLite.memory({"ledger": _identity(key)}), key)


def find(where: Where) -> Store:
    """The store alone, which is all that verification needs."""
    if where == MEMORY:
        raise LedgerError("A ledger in memory ends with its process.", fix="name a file.")
    return _postgres().open(str(where)) if is_address(where) else SQLite.open(Path(where))


def is_address(where: Where) -> bool:
    return isinstance(where, str) and where.startswith(("postgresql://", "postgres://"))


def key_path(where: Where, key: Where | None) -> Path:
    """Beside the ledger unless it is named; a ledger on a server has no folder, so its key must be named."""
    if key is not None:
        return Path(key)
    if is_address(where):
        raise LedgerError("A ledger on a server needs the curator's key file named.", fix='write key="survey.key".')
    return Path(f"{Path(where)}.key")


def _identity(key: Key) -> str:
    return Identity(secrets.token_hex(16), key.public).text()


def _postgres() -> type[Postgres]:
    """Loaded only when an address asks for it, so that nobody else needs the driver."""
    try:
        from dither.ledger.postgres import Postgres
    except ImportError:
        raise LedgerError("A ledger on PostgreSQL needs the driver, which is not installed.", fix=extra("postgres")) from None
    return Postgres
