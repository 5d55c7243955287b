"""What an engine is: something that runs a Work where the data lives and hands back exact whole numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from dither.query.work import Group, Work


class Engine(Protocol):
    """Runs exact integer queries. Its answers for one Work and one secret are the same on every run and in any row order."""

    name: str

    def schema(self, table: str) -> Mapping[str, str]:
        """The columns of a table of the catalog and their kinds (one of catalog.KINDS), from the schema only."""
        ...

    def prepare(self, work: Work) -> None:
        """Everything that can fail whatever the rows are, so that it fails before anything is charged. Reads no row.

        Raises QueryError or ArgumentError.
        """
        ...

    def run(self, work: Work, secret: bytes) -> list[Group]:
        """The groups, in no particular order. `secret` is fresh for every release; it keys the choice of groups and values."""
        ...
