"""Where entries are kept: the interface every store has, and what it promises.

A store holds rows that are only ever added, numbered 1, 2, 3, …, and a few texts under keys: where the chain ends, what the
sums are. A transaction is alone with both; what it did is there after a crash in full, or not at all. A store knows nothing
of budgets: what the texts mean is the ledger's business.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol


class Row(NamedTuple):
    """One entry as it is kept. The hash is over `body` alone; verification compares the other fields with it."""

    number: int
    kind: str  # as in the body: "committed/1"
    question: str  # what the row is looked up by (see entries.Record.found_by), empty for most kinds
    body: str  # canonical JSON, ASCII
    hash: str
    signature: str


class Transaction(Protocol):
    """Inside: nobody else writes. Everything becomes durable together when the block ends, or nothing if it raises."""

    def get(self, key: str) -> str | None: ...

    def put(self, key: str, value: str) -> None: ...

    def append(self, row: Row) -> None: ...

    def entry(self, number: int) -> Row | None: ...

    def latest(self, question: str) -> Row | None:
        """The row with the highest number among those with this `question` (never asked for the empty text). Indexed."""


class Store(Protocol):
    """Raises LedgerError, and nothing else, when it cannot do what it should."""

    @property
    def name(self) -> str:
        """For messages: a file's path, or a database without its password."""

    def transaction(self, *keys: str, question: str = "") -> AbstractContextManager[Transaction]:
        """One after the other, across threads and processes: the first statement takes the one write lock.

        `keys` are what the caller is going to get, and `question` is what it wants the latest row of: a store behind a network
        reads them together with the lock.
        Transactions do not nest.
        """

    def get(self, key: str) -> str | None:
        """As last committed."""

    def several(self, *keys: str) -> dict[str, str]:
        """The values of those of these keys that have one: of one moment."""

    def entry(self, number: int) -> Row | None:
        """As last committed."""

    def latest(self, question: str) -> Row | None:
        """As last committed; like Transaction.latest."""

    def state(self) -> tuple[dict[str, str], int]:
        """All keys with their values, and the highest number among the rows (0 without rows): of one moment."""

    def rows(self, start: int = 1, stop: int | None = None) -> Iterator[Row]:
        """From number `start` up to and including `stop` (the highest there is when the walk begins), in order.

        Streams: memory does not grow with the ledger, and nobody waits for a reader that stands still.
        """

    def faults(self) -> list[str]:
        """What somebody changed about the tables themselves, such as a trigger that was dropped: for verification."""

    def close(self) -> None: ...
