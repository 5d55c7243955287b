"""Marks of the data that answers were given about, so that the curator is told when a file was replaced under its snapshot.

A mark is an HMAC of a table's contents under a key derived from the curator's. The marks are in a private file beside that key:
never in an entry, a hash, a receipt or the ledger's state. Without the key a mark says nothing about the data, not even whether
two snapshots, tables or ledgers hold the same: their names are part of what is hashed.

Nobody else is told, and nothing else changes: if a question were refused because contents differ, anyone who asks would learn
whether any row has changed since, exactly and for free.

A backup has its marks in a private file beside it, and restoring puts them beside the key: otherwise the next answer would mark
data that was replaced meanwhile as if the stored answers were about it.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from dither.ledger.files import draft_of, remove_stale_drafts
from dither.ledger.receipts import Key
from dither.process import NOFOLLOW, PLAIN

_LARGEST = 1 << 22  # bytes of the file
_FORMAT = 1


class Contents(Protocol):
    """What one table holds."""

    def version(self) -> str:
        """Returns what changes whenever it is written; "" if that cannot be told."""
        ...

    def feed(self, update: Callable[[bytes], None]) -> None:
        """Feeds everything that counts as its contents. Raises OSError if it cannot be read."""
        ...


def marks_beside(file: Path) -> Path:
    """Returns the path of the marks for a key file or a backup."""
    return file.with_name(f"{file.name}.data")


def copy_marks(source: Path, target: Path, ledger: str) -> bool:
    """Adds the marks of one ledger to those in another file, which come first. Returns whether that file has some now."""
    known = _read(target)
    new = {name: {**each, **known.get(name, {})} for name, each in _read(source).items() if _is_of(ledger, name)}
    if new:
        _write(target, {**known, **new})
    return any(_is_of(ledger, name) for name in _read(target))


def _is_of(ledger: str, name: str) -> bool:
    try:
        place = json.loads(name)
    except ValueError:
        return False
    return isinstance(place, list) and place[:1] == [ledger]


class Marks:
    """The marks of one catalog (its snapshot is part of it) in one ledger: under another, no stored answer is given again."""

    def __init__(self, path: Path, key: Key, ledger: str, catalog: str, tables: Mapping[str, Contents]) -> None:
        self.path = path
        self._key = key
        self._place = (ledger, catalog)
        self._tables = tables
        self._recorded = False

    def changed(self) -> list[str]:
        """Returns the tables whose contents differ from those that answers were given about under this snapshot."""
        known = _read(self.path).get(self._name(), {})
        found, same = [], {}
        for table, contents in self._tables.items():
            mark = known.get(table)
            if not isinstance(mark, dict):
                continue
            with suppress(OSError, MemoryError):
                version = self._version(table, contents)
                if version and hmac.compare_digest(version, str(mark.get("version"))):
                    continue
                if hmac.compare_digest(self._data(table, contents), str(mark.get("data"))):
                    same[table] = {**mark, "version": version}  # written anew, with the same contents
                else:
                    found.append(table)
        if same:
            self._add({**known, **same})
        return found

    def record(self) -> None:
        """Marks the tables that have no mark yet. Call it before the first new answer of a session."""
        if self._recorded:
            return
        known = _read(self.path).get(self._name(), {})
        new = {}
        for table, contents in self._tables.items():
            if table not in known:
                with suppress(OSError, MemoryError):
                    new[table] = {"version": self._version(table, contents), "data": self._data(table, contents)}
        if new:
            self._add({**new, **known})
        self._recorded = True

    def _name(self) -> str:
        return json.dumps(self._place)

    def _version(self, table: str, contents: Contents) -> str:
        version = contents.version()
        return self._hmac("version", table, lambda update: update(version.encode())) if version else ""

    def _data(self, table: str, contents: Contents) -> str:
        return self._hmac("data", table, contents.feed)

    def _hmac(self, purpose: str, table: str, feed: Callable[[Callable[[bytes], None]], None]) -> str:
        """Returns the HMAC of what `feed` feeds, bound to its purpose, the ledger, the catalog and the table."""
        made = self._key.marker()
        made.update(json.dumps([_FORMAT, purpose, *self._place, table]).encode() + b"\n")
        feed(made.update)
        return made.hexdigest()

    def _add(self, marks: Mapping[str, Any]) -> None:
        """Replaces the marks of this catalog."""
        _write(self.path, {**_read(self.path), self._name(): marks})


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """Returns all marks by ledger and catalog; none if the file is missing or damaged: then nothing is noticed."""
    try:
        with open(os.open(path, os.O_RDONLY | NOFOLLOW | PLAIN), "rb") as file:
            read = json.loads(file.read(_LARGEST))
    except (OSError, ValueError):
        return {}
    marks = read.get("marks") if isinstance(read, dict) and read.get("format") == _FORMAT else None
    return {name: each for name, each in marks.items() if isinstance(each, dict)} if isinstance(marks, dict) else {}


def _write(path: Path, marks: Mapping[str, Any]) -> None:
    """Replaces all marks. A folder that cannot be written keeps none, which fails no question."""
    text = json.dumps({"format": _FORMAT, "marks": marks}, indent=1, sort_keys=True)
    draft = draft_of(path)
    with suppress(OSError):
        remove_stale_drafts(path)
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | PLAIN, 0o600), "wb") as out:
            out.write(text.encode())
            out.flush()
            os.fsync(out.fileno())
        os.replace(draft, path)
    with suppress(OSError):
        draft.unlink(missing_ok=True)
