"""Creates and opens ledgers: by file path, by postgresql:// address, or in memory (":memory:")."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from dither.errors import ArgumentError, DitherError, Fix, LedgerError, NoLedgerError, extra
from dither.ledger.ledger import Ledger
from dither.ledger.receipts import Key, Keys
from dither.ledger.state import Identity, first_texts
from dither.ledger.stores.base import Row, Store
from dither.ledger.stores.sqlite import SQLite
from dither.ledger.witness import Witness
from dither.process import sync_folder

if TYPE_CHECKING:
    from dither.ledger.stores.postgres import Postgres

MEMORY = ":memory:"
Where = str | PathLike[str]


def create(where: Where, key: Where | None = None) -> Ledger:
    """Creates a ledger; never replaces one. Creates its key file too, or uses the one that exists."""
    if where == MEMORY:
        return memory()
    if not is_address(where):
        check_new(Path(where))
    file = key_path(where, key)
    with suppress(OSError):  # if this fails, so does creating the key
        _marker_of(file).touch(mode=0o600)
    made = Key.create(file)
    try:
        store = make(where, _new_texts(made))
    except LedgerError:
        if not is_address(where) and Path(where).exists():  # another process was faster
            _remove_marker(file)
        raise
    _remove_marker(file)
    return Ledger(store, made)


def make(where: Where, first: Mapping[str, str], rows: Iterable[Row] = ()) -> Store:
    """Creates a store with these texts and rows, atomically; never replaces one."""
    return _postgres().create(str(where), first, rows) if is_address(where) else SQLite.create(Path(where), first, rows)


def why_no_new_ledger(where: Where, key: Where | None = None) -> LedgerError | None:
    """Returns why no new ledger may be created beside this key, or None. Call it where there is no ledger."""
    file = key_path(where, key)
    if not os.path.lexists(file) or _marker_of(file).exists():
        return None
    return LedgerError(
        f"The ledger of the key {file.name} is missing, and with it what was spent. A new one would be a second budget.",
        fix=f"put the ledger back beside {file.absolute()}, or restore a backup: dither restore. If there is none, read "
        'docs/ledger.md, "A lost key, or a lost ledger", and then remove the key file yourself. If the key belongs to another '
        "ledger, name a new key file.",
    )


def _marker_of(key: Path) -> Path:
    """Returns the path of a file that exists while a ledger is being created, from before its key until after the ledger.

    A key beside such a file belongs to a ledger that was never used: nothing is charged before `open` removes the file."""
    return key.parent / f".{key.name}.making"


def _remove_marker(key: Path) -> None:
    with suppress(OSError):
        _marker_of(key).unlink(missing_ok=True)


def check_new(path: Path) -> None:
    """Refuses a place where no ledger can be created, before a key is left there."""
    _check_name(path)
    if os.path.lexists(path):
        raise _not_a_ledger(path) or LedgerError(
            f"There is a ledger {path.name} already.", fix="open it, or name another file."
        )
    if not path.absolute().parent.is_dir():
        raise LedgerError(
            f"The ledger {path.name} cannot be made: there is no folder {path.parent}.", fix="make the folder, or name another."
        )


def _check_name(where: Where) -> None:
    if str(where) != MEMORY and str(where).strip().lower() == MEMORY:
        raise ArgumentError(
            f"{where} would be a file of that name.", fix=Fix("write {ledger}, or name another file.", ledger=":memory:")
        )
    if str(where) == MEMORY:
        raise LedgerError("A ledger in memory ends with its process.", fix="name a file.")


def _not_a_ledger(path: Path) -> LedgerError | None:
    """Returns an error if the path is a folder or a broken link."""
    if path.is_dir():
        return LedgerError(f"{path} is a folder, and a ledger is a file.", fix="name the file in it.")
    if path.is_symlink() and not path.exists():
        return LedgerError(
            f"{path} is a link to {os.path.realpath(path)}, and there is no file.",
            fix="put the ledger back there, or name the right one.",
        )
    return None


def open(where: Where, key: Where | None = None, witness: Where | None = None) -> Ledger:
    """Opens an existing ledger with its key. `witness` is a file of heads to compare it with (witness.py)."""
    store = find(where)
    try:
        file = key_path(where, key)
        opened = Ledger(store, read_key(store, file), witness=None if witness is None else Witness(Path(witness)))
        _remove_marker(file)
        return opened
    except DitherError:
        store.close()
        raise


def read_key(store: Store, file: Path) -> Key:
    """Reads the key of a ledger. If a rotation was interrupted after the new key came into force, puts it in the old one's
    place (rotation.py)."""
    key = Key.read(file)
    if not next_key(file).exists():
        return key
    keys = Keys.parse(store.get("keys"), *Identity.parse(store.get("ledger"), store.name))
    if key.public == keys.in_force or (new := Key.read(next_key(file))).public != keys.in_force:
        return key
    with suppress(OSError):  # where this user may not write, the new key is used from where it is
        replace_key(file, keys.terms[-1][0])
    return new


def next_key(file: Path) -> Path:
    """Returns the path of a key that is to come into force."""
    return file.with_name(f"{file.name}.next")


def retired_key(file: Path, number: int) -> Path:
    """Returns the path of the key that was in force until this entry."""
    return file.with_name(f"{file.name}.until-{number}")


def replace_key(file: Path, number: int) -> Path:
    """Puts the next key in the place of the one that was in force until this entry. Returns the path of the latter."""
    retired = retired_key(file, number)
    with suppress(FileExistsError):
        os.link(file, retired)
    os.replace(next_key(file), file)
    sync_folder(file.parent)
    return retired


def view(where: Where) -> Ledger:
    """Opens a ledger read-only: without its key, and without write access to its file."""
    return Ledger(open_readonly(where), None)


def open_readonly(where: Where, *, backup: bool = True) -> Store:
    """Opens a store read-only; writes nothing, not even beside the file. `backup`: accept a backup, too."""
    if is_address(where) or where == MEMORY:
        return find(where)
    store = SQLite.open(Path(where), readonly=True)
    if store.backup and not backup:
        store.close()
        raise LedgerError(f"{store.name} is a backup.", fix="name the ledger itself.")
    return store


def memory() -> Ledger:
    """Creates a ledger in memory, for trying things out. It ends with the process."""
    key = Key.new()
    return Ledger(SQLite.memory(_new_texts(key)), key)


def find(where: Where) -> Store:
    """Opens the store of an existing ledger, without its key."""
    if is_address(where):
        return _postgres().open(str(where))
    path = Path(where)
    _check_name(path)
    if odd := _not_a_ledger(path):
        raise odd
    if not path.exists():
        raise NoLedgerError(path.name, looked=str(path.absolute()))
    return SQLite.open(path)


def is_address(where: Where) -> bool:
    return isinstance(where, str) and where.startswith(("postgresql://", "postgres://"))


def key_path(where: Where, key: Where | None) -> Path:
    """Returns the key file: as named, or beside the ledger. A ledger on a server has no folder, so its key must be named."""
    if key is not None:
        return Path(key)
    if is_address(where):
        raise LedgerError("A ledger on a server needs the curator's key file named.", fix=Fix("write {key}.", key="survey.key"))
    return Path(f"{Path(where)}.key")


def _new_texts(key: Key) -> dict[str, str]:
    return first_texts(Identity(secrets.token_hex(16), key.public), key)


def _postgres() -> type[Postgres]:
    """Imports the PostgreSQL store on first use, so that only its users need the driver."""
    try:
        from dither.ledger.stores.postgres import Postgres
    except ImportError:
        raise LedgerError("A ledger on PostgreSQL needs the driver, which is not installed.", fix=extra("postgres")) from None
    return Postgres
