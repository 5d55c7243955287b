"""Defines what an engine is: it opens the sources of a catalog and runs Works where the data lives, in exact whole numbers.

A Backend is in the registry and reads one kind of source. It opens a catalog as an Opened: the catalog with the kind of every
column, and the Engine that runs Works on it.

`check` refuses, before anything is charged, a Work that would fail on any rows: text that no engine can hold, and grids whose
steps are equal as doubles.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from dither.catalog.draft import Found, Keys
from dither.catalog.reading import DEFAULT, Read
from dither.catalog.report import TableReport
from dither.catalog.values import Catalog
from dither.errors import ArgumentError, CatalogError, QueryError
from dither.query.nodes import Literal
from dither.query.work import Group, Quantised, Work


def check(work: Work) -> None:
    """Refuses a Work that would fail on any data. Reads the Work only."""
    for part in parts(work):
        if isinstance(part, Literal) and isinstance(part.value, str) and not storable(part.value):
            raise QueryError(_HALF, span=part.span, fix=_WHOLE)
        if isinstance(part, str) and not storable(part):
            raise ArgumentError(_HALF, fix=_WHOLE)
        if isinstance(part, Quantised):
            _check_grid(part)


_HALF = "A text in the question contains half a character (a lone surrogate), which no table can hold."
_WHOLE = "write whole characters."
_HALVES = re.compile("[\ud800-\udfff]")


def storable(text: str) -> bool:
    """Whether the text has whole characters only.

    >>> storable("é"), storable("\\ud800")
    (True, False)
    """
    return text.isascii() or _HALVES.search(text) is None


def _check_grid(grid: Quantised) -> None:
    """Refuses a grid that doubles cannot represent: its step must be above 0 and its number of steps finite."""
    try:
        low, high, step = float(grid.low), float(grid.low + grid.steps * grid.step), float(grid.step)
        if step > 0 and math.isfinite((high - low) / step):
            return
    except OverflowError:
        pass
    raise ArgumentError(
        "the steps of a number in this question are too small, or its bounds too large, for doubles.",
        fix="declare a larger step, or narrower bounds, for the column that is added up.",
    )


def parts(work: Work) -> Iterator[Any]:
    """Yields every node, constant and name of a Work once: a question built in Python may use one part many times."""
    seen: set[int] = set()
    waiting: list[Any] = [work]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, (tuple, list)):
            waiting += part
        elif not isinstance(part, Literal):
            waiting += [getattr(part, name) for name in _fields(type(part))]


_FIELDS: dict[type, tuple[str, ...]] = {}


def _fields(kind: type) -> tuple[str, ...]:
    """Returns the names of a node's fields; none for other types. Looks them up once for each type."""
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()
    return _FIELDS[kind]


Progress = Callable[[float], None]  # called with a share from 0 to 1; for the curator only


class Engine(Protocol):
    """Runs exact integer queries. Its results for a Work and a secret are the same on every run and in any row order."""

    name: str

    def schema(self, table: str) -> Mapping[str, str]:
        """Returns the columns of a table of the catalog and their kinds (one of catalog.KINDS), from the schema only."""
        ...

    def prepare(self, work: Work) -> None:
        """Refuses a Work that this engine cannot run or that would fail on any rows, before anything is charged.

        Reads no row. Raises QueryError or ArgumentError.
        """
        ...

    def run(self, work: Work, secret: bytes) -> list[Group]:
        """Returns the groups, in any order. `secret` is fresh for every release; it keys the choice of groups and values.

        Raises EngineError with a constant text: the engine's own message may quote a value of the data.
        """
        ...


@runtime_checkable
class Snapshots(Protocol):
    """An engine whose data may change while it is open, and which can show that of one moment."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Shows the data of one moment to all Works that are run inside the block."""
        ...


def prepare(engine: Engine, works: Sequence[Work]) -> None:
    """Refuses Works that would fail on any rows, before anything is charged."""
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
        """The engine that runs Works on its tables."""
        ...

    def unchanged(self) -> bool:
        """Whether the data is still as it was when opened. The curator changes `snapshot` when the data changes."""
        ...

    def close(self) -> None:
        """Frees files, memory and connections."""
        ...


class Contents(Protocol):
    """What one table holds, for a mark of the data: see ledger/marks.py."""

    def version(self) -> str:
        """Returns what changes whenever it is written; "" if that cannot be told."""
        ...

    def feed(self, update: Callable[[bytes], None]) -> None:
        """Feeds everything that counts as its contents. Raises OSError if it cannot be read."""
        ...


@runtime_checkable
class Marked(Protocol):
    """Open sources whose contents can be marked. Others are never compared."""

    @property
    def contents(self) -> Mapping[str, Contents]:
        """The contents of each table."""
        ...


@dataclass(frozen=True)
class Constants:
    """The source of a small public table that another engine has read: its rows enter statements as constants."""

    kinds: Mapping[str, str]
    rows: tuple[tuple[Any, ...], ...]


Places = Mapping[str, tuple[Any, Read, Mapping[str, str]]]  # of tables: the source, how it is read, the kinds of some columns


class Backend(Protocol):
    """Opens one kind of source. A backend derives from this class; the methods with a body may stay as they are."""

    most_constants: int = 0  # rows of a public table from elsewhere that it takes as Constants
    leaves_out: bool = False  # whether it leaves out rows of a person beyond `most_rows`

    @property
    def name(self) -> str:
        """The engine's name, for messages."""
        ...

    def takes(self, source: Any) -> bool:
        """Whether a source (a path, an address, a frame) is of this kind, by its form alone."""
        ...

    def schema(self, source: Any, read: Read = DEFAULT) -> Mapping[str, str]:
        """Returns the column names and kinds of a source, check.UNSUPPORTED for types that questions cannot use. Reads no row.

        Raises CatalogError.
        """
        ...

    def open(self, catalog: Catalog, progress: Progress | None = None) -> Opened:
        """Opens all sources, or raises a CatalogError that names every fault; its text does not depend on rows.

        An opened catalog promises: a question reaches declared columns only; every value is read in its declared kind or as
        NULL; columns that identify are read exactly; declared keys are unique; no stored value makes a Work fail.
        """
        ...

    # --- for the curator who drafts and checks a catalog: nothing of it reaches a question ----------------------

    def settings(self, source: Any) -> Found:
        """Returns how a source is written, as far as its first rows show."""
        return Found()

    def keys(self, places: Places) -> AbstractContextManager[Keys | None]:
        """Opens what the data says of key columns; None if it is not asked. Raises CatalogError."""
        return nullcontext()

    def report(self, catalog: Catalog, progress: Progress | None = None) -> tuple[tuple[TableReport, ...], CatalogError | None]:
        """Returns how the rows fit the catalog, table by table, and the error if it does not open."""
        try:
            self.open(catalog, progress).close()
        except CatalogError as error:
            return (), error
        return (), None
