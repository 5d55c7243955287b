"""Between a catalog and its ledger: which ledger it is, what it is told of the catalog, and how the budget stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import closing
from os import PathLike
from pathlib import Path

from dither.catalog import check as checking
from dither.catalog import draft as drafting
from dither.catalog import file
from dither.catalog.text import catalog_hash, catalog_json
from dither.catalog.values import Catalog, Table
from dither.diagnosis import Diagnosis
from dither.engines.registry import open_sources, read_schema
from dither.errors import Argument, ArgumentError, CatalogError, Fix, LedgerError, NoLedgerError, Python
from dither.ledger import opening, rules, state
from dither.ledger.ledger import Ledger
from dither.ledger.records import Declaration

Where = str | PathLike[str]


# --- which ledger -----------------------------------------------------------------------------------------------


def beside(catalog: Where) -> Path:
    """Where a catalog file's ledger is unless another one is named.

    >>> beside("data/survey.toml").name
    'survey.ledger'
    """
    return Path(catalog).with_suffix(".ledger")


def named(where: Where) -> str:
    """A ledger's name for messages: never a password.

    >>> named("postgresql://ada:secret@host/db?password=secret#survey")
    'postgresql://host/db#survey'
    """
    if not opening.is_address(where):
        return str(where)
    _, _, rest = str(where).partition("://")
    server, end = re.match(r"([^/?#]*)(.*)", rest, re.DOTALL).groups()  # type: ignore[union-attr]
    if "@" in end and "@" not in server:
        return "postgresql://…"  # a password with a / ? or # in it: nobody can tell where it ends
    database, schema = re.match(r"([^?#]*)", end)[0], re.search(r"#\w+$", end)  # type: ignore[index]
    return "postgresql://" + server.rsplit("@", 1)[-1] + database + (schema[0] if schema else "")


def make_ledger(where: Where, key: Where | None = None) -> bool:
    """A new ledger, and True; or False where one is there already: what was spent there stays spent.

    A key without its ledger is the trace of a budget that was lost, and no place for a new one.
    """
    if _is_there(where):
        return False
    if lost := opening.lost(where, key):
        if _is_there(where):  # somebody else has just made it
            return False
        raise lost
    try:
        opening.create(where, key).close()
        return True
    except LedgerError as refusal:
        try:
            opening.find(where).close()  # somebody else was faster
            return False
        except LedgerError:
            raise refusal from None


def _is_there(where: Where) -> bool:
    """Whether there is a ledger. One with which something is wrong is refused."""
    try:
        opening.find(where).close()
        return True
    except NoLedgerError:
        return False


def ledger_for(catalog: object, where: Where | None, key: Where | None, make: bool, witness: Where | None = None) -> Ledger:
    """The ledger that was named, or the one beside the catalog file. It must be there, unless `make` asks for a new one."""
    for name, given in (("ledger", where), ("key", key), ("witness", witness)):
        if given is not None and (not isinstance(given, (str, PathLike)) or not str(given)):
            raise ArgumentError(
                f"{name} is named by a path or an address, and this is a {type(given).__name__}.",
                fix=Fix("write {it}.", it=Argument(name, f"survey.{name}")),
            )
    if where == opening.MEMORY:
        return opening.memory()
    if where is None and isinstance(catalog, Catalog):
        raise LedgerError(
            "A catalog that is not a file needs its ledger named.",
            fix=Fix(
                "write {call}; {ledger} forgets what was spent with the process.",
                call=Python('dt.open(catalog, ledger="survey.ledger")'),
                ledger=":memory:",
            ),
        )
    place = beside(str(catalog)) if where is None else where
    if make:
        make_ledger(place, key)
    return opening.open(place, key, witness)


def diagnosis_of(catalog: object, where: Where | None, key: Where | None) -> Diagnosis:
    """Where failures of the engine are noted for the curator: beside the ledger, or beside the key of one on a server."""
    if where == opening.MEMORY:
        return Diagnosis()
    place = beside(str(catalog)) if where is None else where
    return Diagnosis.beside(opening.key_path(place, key) if opening.is_address(place) else Path(place))


# --- what it is told of the catalog -----------------------------------------------------------------------------


def declaration(catalog: Catalog) -> Declaration:
    """What a budget depends on. Sources are left out: where the data lies is nobody's business."""
    budget = catalog.budget
    return Declaration(
        catalog_hash=catalog_hash(catalog),
        text=catalog_json(catalog),
        epsilon=budget.epsilon,
        delta=budget.delta,
        per_analyst=budget.per_analyst,
        per_query=budget.per_query,
        least_epsilon=budget.least_epsilon,
        analysts=budget.analysts,
        neighbours=catalog.neighbours,
        snapshot=catalog.snapshot,
        units={name: _unit(catalog, table) for name, table in catalog.tables.items()},
    )


def acceptable(ledger: Ledger, declared: Declaration) -> str | None:
    """What is in force now. Refuses what could not follow it, and writes nothing: a draft may be opened, quoted and edited."""
    found = ledger.store.several("caps", "history", "catalog")
    if "caps" in found:
        rules.unchanged(state.caps(found["caps"]), state.History.parse(found.get("history")), declared)
    return found.get("catalog")


def held_to(catalog: Where, where: Where) -> str:
    """What the ledger would refuse of a catalog file: a promise that was made. Empty if nothing, or if there is no ledger."""
    try:
        with closing(opening.view(where)) as ledger:
            acceptable(ledger, declaration(read_declared(catalog)[0]))
    except NoLedgerError:
        return ""
    except LedgerError as error:
        return str(error)
    return ""


def _unit(catalog: Catalog, table: Table) -> str:
    """Who is protected in a table, through all it refers to: a change anywhere on the way is a change of the unit."""
    if table.public:
        return "public"
    if table.unit is None:
        return "one row"
    told = f"one value of {table.unit.column}"
    if table.unit.references is None:
        return told
    parent, column = table.unit.references
    return f"{told}, which is {parent}.{column} of {_unit(catalog, catalog.tables[parent])}"


def read_declared(catalog: Catalog | Where) -> tuple[Catalog, Callable[[], bool] | None]:
    """The catalog, and a way to see whether its file, if it has one, still declares the same; its comments may change."""
    if isinstance(catalog, Catalog) or not isinstance(catalog, (str, PathLike)):
        return file.declared(catalog), None
    path = Path(catalog).absolute()
    text = file.file_text(Path(catalog))
    read = file.parse(text, base=Path(catalog).parent, name=path.name)
    known = catalog_hash(read)

    def same() -> bool:
        try:
            now = file.file_text(path)
            return now == text or catalog_hash(file.parse(now)) == known
        except CatalogError:
            return False

    return read, same


def draft(data: Sequence[str], unit: str) -> str:
    """The text of a first catalog for these sources, from column names and types only; `unit` names a column, or is "row"."""
    return drafting.draft(data, unit, read_schema)


def check(catalog: Where) -> str:
    """Every problem of a catalog file, with its line; empty if there is none. Reads schemas, never rows."""
    found = checking.check(Path(catalog), read_schema)
    return checking.report(found, str(catalog)) if found else ""


def check_data(catalog: Where) -> str:
    """What is wrong with the rows, and where, for the curator only; empty if nothing is."""
    try:
        open_sources(read_declared(catalog)[0]).close()
    except CatalogError as error:
        return "\n".join((str(error), *(f"For the curator only: {line}" for line in error.diagnosis)))
    return ""
