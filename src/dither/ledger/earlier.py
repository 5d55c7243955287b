"""Finds the stored answers under one catalog and snapshot, so that another answer can be made of them.

It reads entries as they are stored, each once, and remembers of an answer only where it is. What is shown of a stored answer
is checked and counted like every stored answer, in `Ledger.share`. A question that was charged and has no answer is not among
them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dither.errors import LedgerError
from dither.ledger.records import Committed, Reserved, canonical, parse
from dither.ledger.state import Head
from dither.ledger.stores.base import Row, Store

LOOK_BACK = 10_000  # entries: older answers are not looked for
# A committed entry is not parsed here: its numbers may be many. Inside its payload, quotes have a backslash before them.
_RESERVED = re.compile(r'(?<!\\)"reserved":([1-9][0-9]{0,17})[,}]', re.ASCII)


@dataclass(frozen=True)
class Answered:
    """A stored answer: the number of its entry, and the question."""

    entry: int
    question: Reserved


class EarlierAnswers:
    """The stored answers under one catalog and snapshot, in the order of their entries. For one thread at a time."""

    def __init__(self, store: Store, catalog: str, snapshot: str) -> None:
        self._store = store
        self._place = (catalog, snapshot)
        self._open: dict[int, Reserved] = {}  # questions without an answer yet
        self._reserved: dict[int, int] = {}  # the entry of an answer, and that of its question
        self.last = 0  # the entry up to which all were read

    def read_on(self) -> list[Answered]:
        """Returns the answers that were not returned before."""
        last = Head.parse(self._store.get("head")).number
        start = max(self.last + 1, last - LOOK_BACK + 1)
        found, waiting = [], dict(self._open)
        for row in self._store.rows(start, last) if start <= last else ():
            if row.kind == Reserved.KIND and (asked := self._question(row)) is not None:
                waiting[row.number] = asked
            elif row.kind == Committed.KIND and (match := _RESERVED.search(row.body)) and int(match[1]) in waiting:
                found.append(Answered(row.number, waiting.pop(int(match[1]))))
                self._reserved[row.number] = int(match[1])
        self._open, self.last = waiting, max(self.last, last)  # if reading fails before, all of it is read again
        return found

    def answer(self, entry: int) -> Answered | None:
        """Returns an answer that was found before, read again; None if its question cannot be read any more."""
        row = self._store.entry(self._reserved[entry])
        asked = None if row is None else self._question(row)
        return None if asked is None else Answered(entry, asked)

    def _question(self, row: Row) -> Reserved | None:
        """Returns the question of an entry, if it was asked under this catalog and snapshot."""
        if canonical(self._place[0]) not in row.body:
            return None
        try:
            record = parse(row).record
        except LedgerError:
            return None  # verification tells; it serves nothing
        right = isinstance(record, Reserved) and (record.catalog, record.snapshot) == self._place
        return record if isinstance(record, Reserved) and right else None
