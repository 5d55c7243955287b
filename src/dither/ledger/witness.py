"""A witness: a file of heads in another place, which tells when an older copy of the ledger was put in its place.

Every charge adds a line `ledger number:hash` before any row is read, and every transaction compares the newest line with the
ledger. A ledger that lacks the entry, or has another one under its number, is not the one that was witnessed.
The file is only appended to, so it may lie where nobody can do more than append.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dither.errors import ArgumentError, LedgerError
from dither.ledger.state import Head, Identity
from dither.ledger.store import Row, Store

TAIL = 1 << 16  # bytes at the end of the file in which the newest line is looked for; a line has about 120
LOGS = ("-journal", "-wal", "-shm")  # what SQLite takes for its own beside a database
_LINE = re.compile(r"([0-9a-f]{32}) ([1-9][0-9]{0,17}):([0-9a-f]{64})")


class Witness:
    """The file, opened anew each time: it may be on a disk that comes and goes."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path).absolute()
        if self.path.name.endswith(LOGS):
            raise ArgumentError(f"{self.path.name} would be taken for a database's log.", fix="give the witness another name.")

    def create(self) -> bool:
        """Makes the file, and returns whether it was missing."""
        with self._trouble():
            try:
                os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            except FileExistsError:
                return False
        return True

    def newest(self, ledger: str) -> Head | None:
        """The last head of this ledger that was witnessed; None if there is none. Of two for one number the first counts."""
        with self._trouble(), self.path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL))
            lines = file.read(TAIL).decode("ascii", "replace").splitlines()
        matches = [match for line in lines if (match := _LINE.fullmatch(line))]
        if size and not matches:
            raise LedgerError(f"{self.path.name} is no witness.", fix="name another file: dither witness FILE makes one.")
        found = [Head(int(match[2]), match[3]) for match in matches if match[1] == ledger]
        if found:
            return max(found, key=lambda head: head.number)
        if size > TAIL:
            raise LedgerError(
                f"The end of the witness {self.path.name} does not mention this ledger.",
                fix="keep one witness for each ledger: dither witness FILE makes one.",
            )
        return None

    def add(self, ledger: str, head: Head) -> None:
        line = f"{ledger} {head}\n".encode("ascii")
        with self._trouble():
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            try:
                if self._torn():
                    line = b"\n" + line
                if os.write(file, line) != len(line):
                    raise OSError
                os.fsync(file)
            finally:
                os.close(file)

    def compare(self, ledger: str, entry: Callable[[int], Row | None], name: str) -> Head | None:
        """Refuses a ledger that lacks what was witnessed; returns the newest head. `entry` finds the ledger's entries."""
        seen = self.newest(ledger)
        found = entry(seen.number) if seen else None
        if seen and (found is None or found.hash != seen.hash):
            raise LedgerError(
                f"The ledger {name} does not have the entry {seen.number} that the witness {self.path.name} names: "
                "an older or another copy is in its place.",
                fix="put the newest one back, or restore the newest backup: docs/ledger.md.",
            )
        return seen

    def _torn(self) -> bool:
        """Whether the last line is a part of one, as a full disk leaves it."""
        with self.path.open("rb") as file:
            if not file.seek(0, os.SEEK_END):
                return False
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"

    @contextmanager
    def _trouble(self) -> Iterator[None]:
        """Turns what the file system says into a LedgerError."""
        try:
            yield
        except FileNotFoundError:
            fix = "put it back, or make a new one: dither witness FILE."
            raise LedgerError(f"The witness {self.path.name} is missing.", fix=fix) from None
        except OSError:
            fix = "see that this user may append to the file, and that its disk has room."
            raise LedgerError(f"The witness {self.path.name} cannot be used.", fix=fix) from None


def bring_up_to_date(witness: Witness, store: Store) -> tuple[Head | None, Head]:
    """Compares a ledger with its witness and adds its head, if it is new. The newest head before, and the present one."""
    ledger = Identity.parse(store.get("ledger"), store.name).ledger
    seen = witness.compare(ledger, store.entry, store.name)
    head = Head.parse(store.get("head"))
    if head.number and (seen is None or seen.number < head.number):
        witness.add(ledger, head)
    return seen, head
