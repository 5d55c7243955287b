"""The interface of a store, and what it guarantees.

A store holds rows, numbered 1, 2, 3, … and never changed, and a few texts under keys, such as the head and the sums.
Transactions are serial, atomic and durable. A store knows nothing about budgets: only the ledger interprets the texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol


class Row(NamedTuple):
    """One entry as it is stored. The hash covers `body` alone; verification compares the other fields with it."""

    number: int
    kind: str  # as in the body, such as "committed/1"
    question: str  # the key to look the row up by (records.lookup_key), empty for most kinds
    body: str  # canonical JSON, ASCII
    hash: str
    signature: str


class Transaction(Protocol):
    """Reads and writes while nobody else writes. All becomes durable when the block ends; nothing does if it raises."""

    def get(self, key: str) -> str | None: ...

    def put(self, key: str, value: str) -> None: ...

    def append(self, row: Row) -> None: ...

    def entry(self, number: int) -> Row | None: ...

    def latest(self, question: str) -> Row | None:
        """Returns the row with the highest number among those with this `question`, which is not empty. Indexed."""


class Store(Protocol):
    """Stores rows and texts. Raises LedgerError, and nothing else, when it fails."""

    @property
    def name(self) -> str:
        """The name to show: a file's name, or a database without its password."""

    def transaction(self, *keys: str, question: str = "") -> AbstractContextManager[Transaction]:
        """Opens a transaction. Its first statement takes the one write lock, across threads and processes.

        `keys` are the keys the caller will get, and `question` the one whose latest row it will read: a store behind a
        network reads them together with the lock. Transactions do not nest.
        """

    def get(self, key: str) -> str | None:
        """Returns the text of a key, as last committed."""

    def several(self, *keys: str) -> dict[str, str]:
        """Returns the texts of those keys that have one, from one snapshot."""

    def entry(self, number: int) -> Row | None:
        """Returns a row, as last committed."""

    def latest(self, question: str) -> Row | None:
        """Returns what Transaction.latest does, as last committed."""

    def state(self) -> tuple[dict[str, str], int]:
        """Returns all keys with their texts, and the highest row number (0 without rows), from one snapshot."""

    def rows(self, start: int = 1, stop: int | None = None) -> Iterator[Row]:
        """Yields the rows from `start` to `stop`, inclusive (default: the highest number at the start), in order.

        Memory does not grow with the ledger, and a slow reader blocks nobody.
        """

    def faults(self) -> list[str]:
        """Returns changes of the tables themselves, such as a dropped trigger, as problems for verification."""

    def close(self) -> None: ...
