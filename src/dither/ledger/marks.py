"""Marks of the data that answers were given about, so that the curator is told when a file was replaced under its snapshot.

A mark is an HMAC of a table's contents under a key derived from the curator's. The marks are in a private file beside that key:
never in an entry, a hash, a receipt or the ledger's state. Without the key a mark says nothing about the data, not even whether
two snapshots, tables or ledgers hold the same: their names are part of what is hashed.

Nobody else is told, and nothing else changes: if a question were refused because contents differ, anyone who asks would learn
whether any row has changed since, exactly and for free.
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


def marks_beside(key: Path) -> Path:
    """Returns the path of the marks for a key file."""
    return key.with_name(f"{key.name}.data")


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
        known = self._read().get(self._name(), {})
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
            self._write({**known, **same})
        return found

    def record(self) -> None:
        """Marks the tables that have no mark yet. Call it before the first new answer of a session."""
        if self._recorded:
            return
        known = self._read().get(self._name(), {})
        new = {}
        for table, contents in self._tables.items():
            if table not in known:
                with suppress(OSError, MemoryError):
                    new[table] = {"version": self._version(table, contents), "data": self._data(table, contents)}
        if new:
            self._write({**new, **known})
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

    def _read(self) -> dict[str, dict[str, Any]]:
        """Returns all marks by ledger and catalog; none if the file is missing or damaged: then nothing is noticed."""
        try:
            with open(os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
                read = json.loads(file.read(_LARGEST))
        except (OSError, ValueError):
            return {}
        marks = read.get("marks") if isinstance(read, dict) and read.get("format") == _FORMAT else None
        return {name: each for name, each in marks.items() if isinstance(each, dict)} if isinstance(marks, dict) else {}

    def _write(self, marks: Mapping[str, Any]) -> None:
        """Replaces the marks of this catalog. A folder that cannot be written keeps none, which fails no question."""
        text = json.dumps({"format": _FORMAT, "marks": {**self._read(), self._name(): marks}}, indent=1, sort_keys=True)
        draft = draft_of(self.path)
        with suppress(OSError):
            remove_stale_drafts(self.path)
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as out:
                out.write(text.encode())
                out.flush()
                os.fsync(out.fileno())
            os.replace(draft, self.path)
        with suppress(OSError):
            draft.unlink(missing_ok=True)
