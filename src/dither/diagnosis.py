"""Notes why the engine failed, for the curator only, in a private file beside the ledger.

An engine's own message may quote a value of the data. So it goes into this file only: not into the ledger, and not to the
analyst. `dither reopen` shows the file and removes it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from dither.errors import EngineError
from dither.process import NOFOLLOW, PLAIN

LARGEST = 1 << 16  # bytes; later failures are not noted


def notes_beside(file: Path) -> Path:
    """Returns the path of the notes for a ledger file, or for the key of a ledger on a server."""
    return file.with_name(f"{file.name}.failure")


class Diagnosis:
    """The notes of one ledger; in memory if there is no path."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._notes: list[str] = []

    @classmethod
    def beside(cls, file: Path) -> Diagnosis:
        """Returns the notes beside a ledger file, or beside the key of a ledger on a server."""
        return cls(notes_beside(file))

    def add(self, question: str, error: Exception) -> None:
        """Notes a failure. If the file cannot be written, the failure is not noted."""
        message = error.diagnosis if isinstance(error, EngineError) and error.diagnosis else f"{type(error).__name__}: {error}"
        note = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC  {question}\n{message}\n\n"
        if self._path is None:
            self._notes.append(note)
            return
        with suppress(OSError):
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | NOFOLLOW | PLAIN, 0o600)
            with open(file, "ab") as out:
                if os.name == "posix":
                    os.fchmod(file, 0o600)  # also if the file existed
                if os.fstat(file).st_size < LARGEST:
                    out.write(note.encode("utf-8", "backslashreplace"))

    def read(self) -> str:
        """Returns all notes, "" if there are none."""
        if self._path is None:
            return "".join(self._notes)
        try:
            return self._path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ""

    def clear(self) -> None:
        self._notes.clear()
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()
