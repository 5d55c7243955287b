"""A witness: a file of heads, kept elsewhere, that detects a ledger replaced by an older copy.

Every charge adds a line `ledger number:hash` before any row is read. Every transaction compares the newest line with the
ledger, and refuses a ledger that lacks this entry or has another one with its number.
The file is only appended to, so append permission is enough.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dither.errors import ArgumentError, LedgerError
from dither.ledger.state import Head, Identity
from dither.ledger.stores.base import Row, Store
from dither.process import PLAIN

LONGEST = 200  # bytes of a line; one has about 120
LOGS = ("-journal", "-wal", "-shm")  # files that SQLite uses beside a database
_LINE = re.compile(r"([0-9a-f]{32}) ([1-9][0-9]{0,17}):([0-9a-f]{64})")


class Witness:
    """The file of heads. It is opened for each use, because its disk may come and go."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path).absolute()
        self._read: tuple[tuple[int, int], int] = (-1, -1), 0  # which file was read, and how far
        self._newest: dict[str, Head] = {}
        if self.path.name.endswith(LOGS):
            raise ArgumentError(f"{self.path.name} would be taken for a database's log.", fix="give the witness another name.")

    def create(self) -> bool:
        """Creates the file if it is missing. Returns whether it was."""
        with self._trouble():
            try:
                os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | PLAIN, 0o600))
            except FileExistsError:
                return False
        return True

    def newest(self, ledger: str) -> Head | None:
        """Returns the newest head of this ledger, or None. Of two heads with one number, the first counts."""
        with self._trouble(), self.path.open("rb") as file:
            known = os.fstat(file.fileno())
            if not stat.S_ISREG(known.st_mode):
                raise self._no_witness()
            place = known.st_dev, known.st_ino
            if self._read[0] != place or known.st_size < self._read[1]:
                self._read, self._newest = (place, 0), {}  # another file, or a truncated one: read all of it
            file.seek(self._read[1])
            for line in iter(lambda: file.readline(LONGEST), b""):
                if not line.endswith(b"\n") and len(line) < LONGEST:
                    if not self._read[1]:
                        raise self._no_witness()
                    break  # torn, or still being written
                self._take(line)
        return self._newest.get(ledger)

    def _take(self, line: bytes) -> None:
        """Reads one line. All lines count: otherwise anyone who may append could push the newest head out of sight."""
        match = _LINE.fullmatch(line.decode("ascii", "replace").rstrip("\n"))
        if match is None and not self._newest:
            raise self._no_witness()
        if match is not None and (match[1] not in self._newest or self._newest[match[1]].number < int(match[2])):
            self._newest[match[1]] = Head(int(match[2]), match[3])
        self._read = self._read[0], self._read[1] + len(line)

    def _no_witness(self) -> LedgerError:
        return LedgerError(f"{self.path.name} is no witness.", fix="name another file: dither witness FILE makes one.")

    def add(self, ledger: str, head: Head) -> None:
        line = f"{ledger} {head}\n".encode("ascii")
        with self._trouble():
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | PLAIN)
            try:
                if self._torn():
                    line = b"\n" + line
                if os.write(file, line) != len(line):
                    raise OSError
                os.fsync(file)
            finally:
                os.close(file)

    def compare(self, ledger: str, entry: Callable[[int], Row | None], name: str) -> Head | None:
        """Returns the newest head. Refuses a ledger that lacks it; `entry` reads the ledger's entries."""
        seen = self.newest(ledger)
        row = entry(seen.number) if seen else None
        if seen and (row is None or row.hash != seen.hash):
            raise LedgerError(
                f"The ledger {name} does not have the entry {seen.number} that the witness {self.path.name} names: "
                "an older or another copy is in its place.",
                fix="put the newest one back, or restore the newest backup: docs/ledger.md.",
            )
        return seen

    def _torn(self) -> bool:
        """Returns whether the last line is incomplete, as a full disk leaves it."""
        with self.path.open("rb") as file:
            if not file.seek(0, os.SEEK_END):
                return False
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"

    @contextmanager
    def _trouble(self) -> Iterator[None]:
        """Turns OSError into LedgerError."""
        try:
            yield
        except FileNotFoundError:
            fix = "put it back, or make a new one: dither witness FILE."
            raise LedgerError(f"The witness {self.path.name} is missing.", fix=fix) from None
        except OSError:
            fix = "see that this user may append to the file, and that its disk has room."
            raise LedgerError(f"The witness {self.path.name} cannot be used.", fix=fix) from None


def bring_up_to_date(witness: Witness, store: Store) -> tuple[Head | None, Head]:
    """Compares a ledger with its witness and adds its head. Returns the newest head before, and the present one."""
    ledger = Identity.parse(store.get("ledger"), store.name).ledger
    seen = witness.compare(ledger, store.entry, store.name)
    head = Head.parse(store.get("head"))
    if head.number and (seen is None or seen.number < head.number):
        witness.add(ledger, head)
    return seen, head
