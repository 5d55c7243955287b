"""Finds the stored answers under one catalog and snapshot, so that another answer can be made of them.

It reads entries as they are stored, and remembers which it has read. What is shown of a stored answer is checked and counted
like every stored answer, in `Ledger.share`. A question that was charged and has no answer is not among them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

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


@dataclass(frozen=True)
class _Read:
    """What was read so far: up to which entry, the questions without an answer yet, and the answers."""

    last: int = 0
    open: Mapping[int, Reserved] = field(default_factory=dict)
    found: tuple[Answered, ...] = ()


class EarlierAnswers:
    """The stored answers under one catalog and snapshot, in the order of their entries."""

    def __init__(self, store: Store, catalog: str, snapshot: str) -> None:
        self._store = store
        self._place = (catalog, snapshot)
        self._read = _Read()  # replaced as a whole: threads may look at once

    def all(self) -> tuple[Answered, ...]:
        """Returns all that are there now."""
        last = Head.parse(self._store.get("head")).number
        if last != self._read.last:
            self._read = self._go_on(self._read, last)
        return self._read.found

    def _go_on(self, read: _Read, last: int) -> _Read:
        start = max(read.last + 1, last - LOOK_BACK + 1) if last > read.last else last + 1
        waiting, found = dict(read.open), list(read.found)
        for row in self._store.rows(start, last) if start <= last else ():
            if row.kind == Reserved.KIND and (asked := self._question(row)) is not None:
                waiting[row.number] = asked
            elif row.kind == Committed.KIND and (match := _RESERVED.search(row.body)) and int(match[1]) in waiting:
                found.append(Answered(row.number, waiting.pop(int(match[1]))))
        return _Read(last, waiting, tuple(found))

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
