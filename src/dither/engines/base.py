"""What an engine is: it opens the sources of a catalog and runs Works where the data lives, in exact whole numbers.

A Backend stands in the registry and reads one kind of source. Opening a catalog with it gives an Opened: the catalog with
the kind of every column, and the Engine that answers for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from dither.query.catalog import Catalog
from dither.query.work import Group, Work

Progress = Callable[[float], None]  # called with a share from 0 to 1; for the curator's eyes only


class Engine(Protocol):
    """Runs exact integer queries. Its answers for one Work and one secret are the same on every run and in any row order."""

    name: str

    def schema(self, table: str) -> Mapping[str, str]:
        """The columns of a table of the catalog and their kinds (one of catalog.KINDS), from the schema only."""
        ...

    def prepare(self, work: Work) -> None:
        """Everything that can fail whatever the rows are, so that it fails before anything is charged. Reads no row.

        Raises QueryError or ArgumentError, also for a Work that this engine cannot run.
        """
        ...

    def run(self, work: Work, secret: bytes) -> list[Group]:
        """The groups, in no particular order. `secret` is fresh for every release; it keys the choice of groups and values.

        Raises EngineError, its text constant: what the engine itself says may quote a value of the data.
        """
        ...


def prepare(engine: Engine, works: Sequence[Work]) -> None:
    """Everything that would fail on any rows fails here, before anything is charged."""
    for work in works:
        engine.prepare(work)


class Opened(Protocol):
    """The open sources of one catalog."""

    @property
    def catalog(self) -> Catalog:
        """The catalog with the kind of every usable column filled in."""
        ...

    @property
    def engine(self) -> Engine:
        """What runs Works on its tables."""
        ...

    def unchanged(self) -> bool:
        """Whether the data is what was opened. The curator changes `snapshot` when the data changes."""
        ...

    def close(self) -> None:
        """Lets go of files, memory and connections."""
        ...


class Backend(Protocol):
    """Opens one kind of source."""

    @property
    def name(self) -> str:
        """The engine's name, for messages."""
        ...

    def takes(self, source: Any) -> bool:
        """Whether a source (a path, an address, a frame) is of this kind, by its form alone."""
        ...

    def schema(self, source: Any) -> Mapping[str, str]:
        """Column names and kinds of a source, check.UNSUPPORTED where questions cannot use the type. Reads no row.

        Raises CatalogError.
        """
        ...

    def open(self, catalog: Catalog, progress: Progress | None = None) -> Opened:
        """Opens all sources, or says all that is wrong with them, in a CatalogError whose text depends on no row.

        What an opened catalog promises: a question reaches declared columns only, every value is read in its declared kind or
        as NULL, columns that identify are read exactly and declared keys are unique, and no stored value makes a Work fail.
        """
        ...
