"""Finds the engine that opens a source: the first backend that takes it. The last backend takes every source.

All private tables of a catalog are read by one engine. Public tables that another engine reads are sent to it as constants, if
they are small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from dither.catalog.draft import Found, Keys
from dither.catalog.reading import DEFAULT, Read
from dither.catalog.report import TableReport
from dither.catalog.values import Catalog, Table
from dither.engines.base import Backend, Constants, Contents, Engine, Marked, Opened, Places, Progress
from dither.engines.duckdb.backend import DuckDBBackend
from dither.engines.opening import kinds_of
from dither.engines.postgres.backend import PostgresBackend
from dither.engines.spark.backend import SparkBackend
from dither.errors import CatalogError
from dither.query.nodes import Column, Named, Scan
from dither.query.work import Cell, Sums, Work

_backends: tuple[Backend, ...] = (PostgresBackend(), SparkBackend(), DuckDBBackend())


def register(backend: Backend) -> None:
    """Puts this backend before all others, in this process."""
    global _backends
    _backends = (backend, *_backends)


@contextmanager
def registered(backend: Backend) -> Iterator[None]:
    """Puts this backend before all others, inside the block. Catalogs opened there stay open."""
    global _backends
    register(backend)
    try:
        yield
    finally:
        _backends = tuple(other for other in _backends if other is not backend)


def backend_for(source: Any) -> Backend:
    """Returns the backend that reads a source."""
    return next(backend for backend in _backends if backend.takes(source))


def read_schema(source: Any, read: Read = DEFAULT) -> Mapping[str, str]:
    """Returns the column names and kinds of a source. Reads no row."""
    return backend_for(source).schema(source, read)


def find_settings(source: str) -> Found:
    """Returns how a CSV file is written, as far as its first rows show, for the curator only; nothing for another source."""
    return backend_for(source).settings(source)


@contextmanager
def read_keys(places: Places) -> Iterator[Keys | None]:
    """Yields what the data says of key columns, by table its source, how it is read and their kinds; None where it cannot be
    read. For the curator only."""
    backends = list({id(backend): backend for backend in (backend_for(source) for source, *_ in places.values())}.values())
    with ExitStack() as stack:
        try:
            found = stack.enter_context(backends[0].keys(places) if len(backends) == 1 else nullcontext())
        except CatalogError:  # such as a line of a CSV that is no row: opening the catalog says so
            found = None
        yield found


def read_report(catalog: Catalog, progress: Progress | None = None) -> tuple[tuple[TableReport, ...], CatalogError | None]:
    """Returns how the rows fit the catalog, for the curator only, and the error if it does not open."""
    with ExitStack() as stack:
        try:
            chosen, merged, others = _merged(catalog)
        except CatalogError as error:
            return (), error
        for other in others:
            stack.callback(other.close)
        return chosen.report(merged, progress)


def open_sources(catalog: Catalog, progress: Progress | None = None) -> Opened:
    """Opens a catalog with the one engine that reads its private tables."""
    chosen, merged, others = _merged(catalog)
    try:
        opened = chosen.open(merged, progress)
    except BaseException:
        for other in others:
            other.close()
        raise
    return Mixed(opened, others) if others else opened


# --- public tables from elsewhere -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mixed:
    """An open catalog of which some public tables were read by other engines."""

    opened: Opened
    others: tuple[Opened, ...]
    contents: Mapping[str, Contents] = field(init=False)

    def __post_init__(self) -> None:
        marked = (each.contents for each in (self.opened, *self.others) if isinstance(each, Marked))
        object.__setattr__(self, "contents", {name: held for each in marked for name, held in each.items()})

    @property
    def catalog(self) -> Catalog:
        return self.opened.catalog

    @property
    def engine(self) -> Engine:
        return self.opened.engine

    def unchanged(self) -> bool:
        return all(each.unchanged() for each in (self.opened, *self.others))

    def close(self) -> None:
        for each in (self.opened, *self.others):
            each.close()


def _merged(catalog: Catalog) -> tuple[Backend, Catalog, tuple[Opened, ...]]:
    """Returns the engine of a catalog, the catalog for it, and what else is open for that."""
    homes = {name: backend_for(table.source) for name, table in catalog.tables.items()}
    first = next((name for name, table in catalog.tables.items() if not table.public), next(iter(homes), ""))
    chosen = homes[first] if homes else _backends[-1]
    guests = {name: home for name, home in homes.items() if home is not chosen}
    for name, home in guests.items():
        if not catalog.tables[name].public or not chosen.most_constants:
            what = f"{first} is read by {chosen.name} and {name} by {home.name}, and one question cannot ask both."
            raise CatalogError([(None, what, "keep all tables of a catalog in one place.")])
    for name, table in catalog.tables.items():
        if table.most_rows is not None and not chosen.leaves_out:
            what = f"{name}.most_rows is for tables in files and frames, and {chosen.name} reads this one."
            raise CatalogError([(None, what, "leave most_rows out, and delete rows where they are.")])
    tables, others = dict(catalog.tables), []
    try:
        for home in {id(home): home for home in guests.values()}.values():
            own = {name: catalog.tables[name] for name, backend in guests.items() if backend is home}
            opened = home.open(replace(catalog, tables=own))
            others.append(opened)
            tables |= {name: _uploaded(opened, name, chosen) for name in own}
    except BaseException:
        for other in others:
            other.close()
        raise
    return chosen, replace(catalog, tables=tables) if others else catalog, tuple(others)


def _uploaded(opened: Opened, name: str, chosen: Backend) -> Table:
    """Returns a public table with its rows as constants."""
    table, kinds = opened.catalog.tables[name], kinds_of(opened.catalog)[name]
    keys = tuple(Named(column, Column(f"t.{column}")) for column in kinds)
    work = Work(Scan(name, "t"), keys, None, False, None, (Sums((Cell(constant=1),), 1),), plain=True)
    opened.engine.prepare(work)
    rows = [group.key for group in opened.engine.run(work, b"") for _ in range(group.measures[0][0])]  # type: ignore[index]
    if len(rows) > chosen.most_constants:
        what = f"{name} has more than {chosen.most_constants:,} rows, too many to send to {chosen.name} with each question."
        raise CatalogError([(None, what, "copy the table to where the private tables are.")])
    return replace(table, source=Constants(kinds, tuple(rows)), read=DEFAULT)
