"""What a client knows of servers: the ledger's name, the curator's public key, and the newest head it was shown.

One file in the user's configuration folder. A server is believed at first sight, unless the key is named; from then on it must
show the same ledger, the same key, and every head that it has shown before. Another key is accepted only if the known one has
signed the rotation to it. A key that was rotated away is remembered, and never becomes the known one again: whoever has stolen
it would be believed. A ledger that was restored from an old copy lacks an entry that some analyst has seen, so every analyst
is a witness.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dither.errors import DitherError, Fix, LedgerError, Python
from dither.ledger.receipts import Keys

_FORMAT = 1


@dataclass(frozen=True)
class Seen:
    """What one server has shown: its ledger, its public key, its newest entry as number and hash, and its earlier keys."""

    ledger: str
    public_key: str
    number: int
    hash: str
    retired: tuple[str, ...] = ()

    @property
    def head(self) -> str:
        return f"{self.number}:{self.hash}"

    def newer(self, number: int, hash: str) -> Seen:
        """Returns what is known after another entry was shown."""
        return replace(self, number=number, hash=hash) if number > self.number else self

    def after(self, before: Seen) -> Seen:
        """Returns what is known if `before` is known already: the newer head, and no key that was rotated away."""
        newest = self.newer(before.number, before.hash)
        if self.public_key in before.retired:  # a client that was opened before the rotation
            return replace(newest, public_key=before.public_key, retired=before.retired)
        left = (each for each in (*before.retired, before.public_key) if each != self.public_key)
        return replace(newest, retired=tuple(dict.fromkeys((*self.retired, *left))))


def default_file() -> Path:
    """Returns the file in the user's configuration folder."""
    base = os.environ.get("APPDATA") if os.name == "nt" else os.environ.get("XDG_CONFIG_HOME")
    return Path(base or Path.home() / ".config") / "dither" / "known.json"


class Known:
    """The file of what is known."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def find(self, origin: str) -> Seen | None:
        """Returns what is known of a server; None if it was never seen."""
        found = self._read().get(origin)
        if found is None:
            return None
        try:
            retired = tuple(map(str, found.get("retired", ())))
            return Seen(str(found["ledger"]), str(found["public_key"]), int(found["number"]), str(found["hash"]), retired)
        except (TypeError, KeyError, ValueError, AttributeError):
            raise self._damaged() from None

    def keep(self, origin: str, seen: Seen) -> None:
        """Writes what is known of a server, never an older head over a newer one."""
        servers = self._read()
        try:
            before = self.find(origin)
            newest = seen if before is None or before.ledger != seen.ledger else seen.after(before)
            servers[origin] = asdict(newest)
            replace_json(self.path, {"format": _FORMAT, "servers": servers})
        except OSError:
            raise DitherError(
                f"{self.path} cannot be written, so the server's key and newest entry cannot be remembered.",
                fix=Fix("name another file: {it}.", it=Python('dt.connect(…, known="known.json")')),
            ) from None

    def _read(self) -> dict[str, Any]:
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            raise self._damaged() from None
        if not isinstance(data, dict) or data.get("format") != _FORMAT or not isinstance(data.get("servers"), dict):
            raise self._damaged()
        return dict(data["servers"])

    def _damaged(self) -> LedgerError:
        return LedgerError(
            f"{self.path} cannot be read: it has the keys and newest entries of servers.",
            fix="restore it from a backup. Without it a server is believed at first sight again.",
        )


def shown_keys(origin: str, seen: Seen, rotations: Any) -> Keys:
    """Returns the keys of a server's ledger, from the rotations that it shows. Refuses one that both keys did not sign."""
    try:
        found = [(str(each["body"]), str(each["signature"])) for each in rotations or ()]
        first = str(json.loads(found[0][0])["old"]) if found else seen.public_key
        keys = Keys.follow(seen.ledger, first, found)
        if keys.in_force == seen.public_key:
            return keys
    except (ValueError, TypeError, KeyError, LedgerError):
        pass
    raise LedgerError(
        f"{origin} shows a rotation of its key that is not signed by the old key and the new one.",
        fix="tell the curator and the auditor, and ask nothing there.",
    )


_NAMED = Python("dt.connect(…, public_key=…)", "dither verify --server … --public-key …")


def check_seen(origin: str, before: Seen, shown: Seen, at: str | None, keys: Keys) -> None:
    """Refuses a server that is not what it was. `at`: the entry of the known head, as the server shows it now."""
    if shown.ledger != before.ledger:
        raise LedgerError(
            f"{origin} has another ledger than before.",
            fix=Fix(
                "ask the curator why: a new ledger is a second budget for the same people. A new demo has one, too: give it "
                "another {known}.",
                known=Python('known="demo.json"', "file of known servers, DITHER_KNOWN=demo.json"),
            ),
        )
    if at != before.head:
        raise LedgerError(
            f"The ledger of {origin} lacks entry {before.number}, which it had shown to you: it was replaced by an older copy.",
            fix="tell the curator and the auditor: what was spent since then is forgotten there.",
        )
    if before.public_key not in (key for _, key in keys.terms):
        raise LedgerError(
            f"{origin} signs with another key than before, and the one before did not sign its rotation.",
            fix=Fix("ask the curator for the new public key, and name it: {it}.", it=_NAMED),
        )


def replace_json(path: Path, data: Mapping[str, Any]) -> None:
    """Writes a file for its owner only, whole or not at all. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump(data, out, indent=2)
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
