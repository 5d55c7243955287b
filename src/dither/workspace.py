"""Connects a catalog with its ledger: finds or makes the ledger, and declares the catalog to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import closing
from os import PathLike
from pathlib import Path

from dither.catalog import check as checking
from dither.catalog import draft as drafting
from dither.catalog import file
from dither.catalog.report import TableReport
from dither.catalog.rules import listed
from dither.catalog.text import catalog_hash, catalog_json
from dither.catalog.values import Catalog, Table
from dither.diagnosis import Diagnosis
from dither.engines.base import Marked, Opened, Progress
from dither.engines.registry import find_settings, read_keys, read_report, read_schema
from dither.errors import Argument, ArgumentError, CatalogError, Fix, LedgerError, NoLedgerError, Python
from dither.ledger import opening, rules, state
from dither.ledger.ledger import Ledger
from dither.ledger.marks import Marks, marks_beside
from dither.ledger.records import Declaration

Where = str | PathLike[str]
_RUN_CHECK = "run `dither check --data`, which names the line. "  # the fix for everybody else


# --- which ledger -----------------------------------------------------------------------------------------------


def beside(catalog: Where) -> Path:
    """Returns the default ledger of a catalog file.

    >>> beside("data/survey.toml").name
    'survey.ledger'
    """
    return Path(catalog).with_suffix(".ledger")


def ledger_name(where: Where) -> str:
    """Returns a ledger's name for messages, without a password.

    >>> ledger_name("postgresql://ada:secret@host/db?password=secret#survey")
    'postgresql://host/db#survey'
    """
    if not opening.is_address(where):
        return str(where)
    _, _, rest = str(where).partition("://")
    server, end = re.match(r"([^/?#]*)(.*)", rest, re.DOTALL).groups()  # type: ignore[union-attr]
    if "@" in end and "@" not in server:
        return "postgresql://…"  # a password that contains / ? or #: its end is unknown
    database, schema = re.match(r"([^?#]*)", end)[0], re.search(r"#\w+$", end)  # type: ignore[index]
    return "postgresql://" + server.rsplit("@", 1)[-1] + database + (schema[0] if schema else "")


def make_ledger(where: Where, key: Where | None = None) -> bool:
    """Makes a new ledger. Returns False if there is one already: what was spent there stays spent.

    Refuses if there is a key without its ledger: it is the trace of a lost budget.
    """
    if _is_there(where):
        return False
    if lost := opening.why_no_new_ledger(where, key):
        if _is_there(where):  # another process has just made it
            return False
        raise lost
    try:
        opening.create(where, key).close()
        return True
    except LedgerError as refusal:
        try:
            opening.find(where).close()  # another process was faster
            return False
        except LedgerError:
            raise refusal from None


def _is_there(where: Where) -> bool:
    """Whether there is a ledger. Refuses a broken one."""
    try:
        opening.find(where).close()
        return True
    except NoLedgerError:
        return False


def ledger_for(catalog: object, where: Where | None, key: Where | None, make: bool, witness: Where | None = None) -> Ledger:
    """Opens the named ledger, or the one beside the catalog file. It must exist, unless `make` is true."""
    for name, given in (("ledger", where), ("key", key), ("witness", witness)):
        if given is not None and (not isinstance(given, (str, PathLike)) or not str(given)):
            raise ArgumentError(
                f"{name} must be a path or an address, and this is a {type(given).__name__}.",
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
    """Returns the notes on engine failures: beside the ledger, or beside the key of a ledger on a server."""
    if where == opening.MEMORY:
        return Diagnosis()
    place = beside(str(catalog)) if where is None else where
    return Diagnosis.beside(opening.key_path(place, key) if opening.is_address(place) else Path(place))


def marks_of(
    catalog: object, where: Where | None, key: Where | None, ledger: Ledger, declared: Catalog, sources: Opened
) -> Marks | None:
    """Returns the marks of the data, beside the key; None for a ledger in memory, or an engine whose data has none."""
    if where == opening.MEMORY or not isinstance(sources, Marked):
        return None
    file = opening.key_path(beside(str(catalog)) if where is None else where, key)
    private = {name: each for name, each in sources.contents.items() if not declared.tables[name].public}
    return ledger.marks(marks_beside(file), catalog_hash(declared), private)


def changed_data(tables: Sequence[str], snapshot: str, file: Path) -> str:
    """Says which data is no longer what answers were given about, and what to do."""
    label = f'snapshot = "{snapshot}"' if snapshot else "this catalog, which names no snapshot"
    return (
        f"The data of {listed(tables)} changed since answers were given under {label}. Those answers are still given again, "
        f'and are about the old data. Declare a new label, as in snapshot = "{_next(snapshot)}". If the data is the same, only '
        f"written in another way, remove {file.name} beside the key."
    )


def _next(snapshot: str) -> str:
    """Proposes a label that differs from this one.

    >>> _next("2026-11"), _next("2026-12"), _next(""), _next("old")
    ('2026-12', '2027-01', '2', 'old, 2')
    """
    month = re.fullmatch(r"(\d{4})-(\d\d)", snapshot)
    if month is None or not 1 <= int(month[2]) <= 12:
        return f"{snapshot}, 2" if snapshot else "2"
    year, number = divmod(12 * int(month[1]) + int(month[2]), 12)
    return f"{year:04}-{number + 1:02}"


# --- what the ledger stores of the catalog ----------------------------------------------------------------------


def declaration(catalog: Catalog) -> Declaration:
    """Returns what a budget depends on. Leaves out the sources: the ledger must not reveal where the data is."""
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
        neighbours=catalog.relation,
        snapshot=catalog.snapshot,
        units={name: _unit(catalog, table) for name, table in catalog.tables.items()},
    )


def catalog_in_force(ledger: Ledger, declared: Declaration) -> str | None:
    """Returns the catalog in force. Refuses a declaration that cannot follow it. Writes nothing, so a draft may be quoted."""
    values = ledger.store.several("caps", "history", "catalog")
    if "caps" in values:
        rules.check_unchanged(state.decode_caps(values["caps"]), state.History.parse(values.get("history")), declared)
    return values.get("catalog")


def ledger_refusal(catalog: Where, where: Where) -> str:
    """Returns why the ledger would refuse a catalog file; "" if it would not, or if there is no ledger."""
    try:
        with closing(opening.view(where)) as ledger:
            catalog_in_force(ledger, declaration(read_declared(catalog)[0]))
    except NoLedgerError:
        return ""
    except LedgerError as error:
        return str(error)
    return ""


def _unit(catalog: Catalog, table: Table) -> str:
    """Shows who is protected in a table, with all references: a change anywhere in them changes the unit."""
    if table.public:
        return "public"
    if table.edges is not None:
        if table.edges.unit == "edge":
            return "one edge"
        parent, column = table.edges.listing or ("", "")
        return f"one node with its edges, which is {parent}.{column} of {_unit(catalog, catalog.tables[parent])}"
    if table.unit is None:
        return "one row"
    words = f"one value of {table.unit.column}"
    if table.unit.references is None:
        return words
    parent, column = table.unit.references
    return f"{words}, which is {parent}.{column} of {_unit(catalog, catalog.tables[parent])}"


def read_declared(catalog: Catalog | Where) -> tuple[Catalog, Callable[[], bool] | None]:
    """Returns the catalog, and a function that tells whether its file still declares the same (None without a file)."""
    if isinstance(catalog, Catalog) or not isinstance(catalog, (str, PathLike)):
        return file.to_catalog(catalog), None
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
    """Drafts a catalog for these sources, from names and types of columns, how CSV files are written, and which keys have no
    value twice.

    `unit` names a column, or is "row".
    """
    return drafting.draft(data, unit, read_schema, read_keys, find_settings)


def check(catalog: Where) -> str:
    """Returns every problem of a catalog file, with its line; "" if there is none. Reads schemas, never rows."""
    problems = checking.check(Path(catalog), read_schema)
    return checking.show_problems(problems, str(catalog)) if problems else ""


def check_data(catalog: Where, progress: Progress | None = None) -> tuple[tuple[TableReport, ...], str]:
    """Returns how the rows fit a catalog file, and why it does not open, for the curator only; "" if it opens."""
    reports, error = read_report(read_declared(catalog)[0], progress)
    if error is None:
        return reports, ""
    told = [f"For the curator only: {line}" for line in error.diagnosis]
    return reports, "\n".join((str(error).replace(_RUN_CHECK, "correct the line named below. "), *told))
