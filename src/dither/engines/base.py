"""What can be wrong with a Work itself, whatever the rows are: found before anything is charged.

Text that no engine can hold, and grids that doubles cannot tell apart, would otherwise fail while the data is read.

What an engine is: it opens the sources of a catalog and runs Works where the data lives, in exact whole numbers.

A Backend stands in the registry and reads one kind of source. Opening a catalog with it gives an Opened: the catalog with
the kind of every column, and the Engine that answers for it.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from dither.catalog.values import Catalog
from dither.errors import ArgumentError, QueryError
from dither.query.nodes import Literal
from dither.query.work import Group, Quantised, Work


def check(work: Work) -> None:
    """Refuses what would fail on any data. Reads the Work only."""
    for part in _parts(work):
        if isinstance(part, Literal) and isinstance(part.value, str) and not storable(part.value):
            raise QueryError(_HALF, span=part.span, fix=_WHOLE)
        if isinstance(part, str) and not storable(part):
            raise ArgumentError(_HALF, fix=_WHOLE)
        if isinstance(part, Quantised):
            _check_grid(part)


_HALF = "A text of the question has half a character (a lone surrogate) in it, which no table can hold."
_WHOLE = "write whole characters."
_HALVES = re.compile("[\ud800-\udfff]")


def storable(text: str) -> bool:
    """Whether the text has whole characters only.

    >>> storable("é"), storable("\\ud800")
    (True, False)
    """
    return text.isascii() or _HALVES.search(text) is None


def _check_grid(grid: Quantised) -> None:
    """The grid in doubles, as engines compute with it: its step is above 0 and the number of its steps is a number."""
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


def _parts(work: Work) -> Iterator[Any]:
    """Every node, constant and name of a Work once: a question built in Python may use one part many times."""
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
        elif dataclasses.is_dataclass(part) and not isinstance(part, Literal):
            waiting += [getattr(part, field.name) for field in dataclasses.fields(part)]


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
