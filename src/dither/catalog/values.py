"""The catalog: tables, the protected unit, public facts and the budget, as frozen values.

The values are the same whether read from a file (file.py) or built in Python. Data that is not declared is private and
cannot be used. The constructors turn what a person writes (unit="person_id", epsilon=0.1) into exact values; `Catalog`
then checks the whole declaration with rules.py and reports every problem at once.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dither.catalog import rules
from dither.catalog.reading import AS_IS, DEFAULT, Cells, Read, read_source
from dither.catalog.rules import LONGEST
from dither.catalog.spelling import in_python
from dither.errors import Argument, CatalogError, Fix, Python
from dither.exact.numbers import Number, parse_number

Key = None | bool | int | str | datetime.date
KINDS = rules.KINDS
_LARGEST = 10**300


@dataclass(frozen=True)
class ColumnFacts:
    """Declared facts about one column. Bounds are enforced: sums clip to them.

    Bounds of dates and timestamps are days since 1970-01-01, with the time of day as a fraction. None in `values` makes a group
    of the rows with NULL.
    """

    kind: str | None = None  # one of KINDS; None: from the source's schema, when the table is opened
    low: Fraction | None = None
    high: Fraction | None = None
    step: Fraction | None = None
    values: tuple[Key, ...] | None = None
    nullable: bool = True
    longest: int = LONGEST  # a longer text is NULL; in a unit or key column its row is left out
    cells: Cells = AS_IS  # how its text is read; Table.read.cells where this says nothing
    implied: bool = field(default=False, compare=False, repr=False)  # `kind` was inferred from values or bounds
    # All values in a public table, read when it was opened. They are data, not declared: they enter no digest.
    found: tuple[Key, ...] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Unit:
    """The column that names the protected unit; `references` is the (table, column) of the parent row it points to."""

    column: str
    references: tuple[str, str] | None = None


@dataclass(frozen=True)
class Rows:
    """Public number of rows: exactly `public` (with replace neighbours), or `at_least`."""

    public: int | None = None
    at_least: int | None = None


@dataclass(frozen=True)
class TableCaps:
    """The largest `max_rows` and `max_groups` that a question may ask for; None: no limit."""

    max_rows: int | None = None
    max_groups: int | None = None


@dataclass(frozen=True)
class AtMost:
    """The most nodes and edges of a graph, as the curator declares it. Questions whose time grows fast need both."""

    nodes: int | None = None
    edges: int | None = None


@dataclass(frozen=True)
class Edges:
    """A table of edges: the columns of both ends, what is protected ("edge" or "node"), and what the nodes are: a column, as
    (table, column), or labels."""

    ends: tuple[str, str]
    unit: str
    nodes: tuple[str, str] | ColumnFacts | None
    at_most: AtMost = AtMost()

    @property
    def listing(self) -> tuple[str, str] | None:
        """The (table, column) that lists the nodes; None if they are labels."""
        return self.nodes if isinstance(self.nodes, tuple) else None


@dataclass(frozen=True, init=False)
class Table:
    """One table. A Catalog refuses a table that has no unit, is not `by_row` and is not public.

    `source`: a path or glob (Parquet, CSV), "file.duckdb#table", "file.sqlite#table", "book.xlsx#sheet", or a frame (pandas,
    Polars, Arrow). `read`: how its text is read, as in {"encoding": "cp1252", "decimal": ","}.
    `by_row`: every row is its own unit (unit = "row"). `key`: a column with unique values, checked on opening.
    `max_rows`, `max_groups`: the default bounds of a question, which the engine enforces. A question may set others, up to
    `caps`; without a default they are chosen for each question ("auto"). `max_groups` is 1 by default if `max_rows` is 1.
    `most_rows`: the most rows of one person that are there at all: more are left out, by a keyed hash, when it is opened.
    `edge`: the columns of both ends, for a table of edges; its unit is "edge" or "node". `nodes`: what the nodes are, as in
    "people.id", dt.between(0, 999) or dt.values("ann", "bob"). `at_most`: how large the graph is, as in {"nodes": 2000}.

    >>> Table("visits.parquet", unit={"column": "person", "references": "people.id"}, max_rows=20).unit
    Unit(column='person', references=('people', 'id'))
    """

    source: Any = field(compare=False)
    unit: Unit | None
    by_row: bool
    public: bool
    max_rows: int | None
    max_groups: int | None
    rows: Rows
    key: str | None
    columns: Mapping[str, ColumnFacts]
    caps: TableCaps
    read: Read
    edges: Edges | None
    most_rows: int | None

    def __init__(
        self,
        source: Any,
        unit: Unit | str | Mapping[str, str] | None = None,
        by_row: bool = False,
        public: bool = False,
        max_rows: int | None = None,
        max_groups: int | None = None,
        rows: Rows | Mapping[str, int] | None = None,
        key: str | None = None,
        columns: Mapping[str, ColumnFacts] | None = None,
        caps: TableCaps | Mapping[str, int] | None = None,
        read: Read | Mapping[str, Any] | None = None,
        edge: Sequence[str] | None = None,
        nodes: str | ColumnFacts | None = None,
        at_most: AtMost | Mapping[str, int] | None = None,
        *,
        edges: Edges | None = None,
        most_rows: int | None = None,
    ) -> None:
        edges = _edges(edge, unit, nodes, at_most) if edges is None else edges
        if edges is not None:
            unit = None
        if isinstance(unit, str) and unit == "row":
            unit, by_row = None, True
        _check_types(by_row=by_row, public=public, max_rows=max_rows, max_groups=max_groups, most_rows=most_rows)
        if max_rows is None and by_row:
            max_rows = 1
        if max_groups is None and max_rows == 1:
            max_groups = 1
        _fill(self, source=source, unit=_unit(unit), by_row=by_row, public=public, max_rows=max_rows, max_groups=max_groups)
        facts = {} if columns is None else columns
        _check_mapping(ColumnFacts, facts, "columns")
        _fill(self, rows=_rows(rows), key=key, columns=dict(facts), caps=_caps(caps), read=_read(read), edges=edges)
        _fill(self, most_rows=most_rows)


@dataclass(frozen=True, init=False)
class Budget:
    """The budget of all analysts together, which never renews. delta 0 is pure differential privacy.

    `per_analyst`, `per_query`: caps on the epsilon of one analyst and one question, for fairness: analysts may collude.
    `least_epsilon`: the lowest price of a question, which limits the number of questions. Default: epsilon / 10,000, at
    most 0.001. `analysts`: who may ask; None lets anyone ask. `left_out`: whether answers estimate what their bounds left out,
    for at most 5 % of their price, unless a question says otherwise.

    >>> budget = Budget(epsilon=0.1, analysts=["ben", "ana"])
    >>> budget.analysts, budget.least_epsilon
    (('ana', 'ben'), Fraction(1, 100000))
    """

    epsilon: Fraction
    delta: Fraction
    per_analyst: Fraction | None
    per_query: Fraction | None
    analysts: tuple[str, ...] | None
    least_epsilon: Fraction
    left_out: bool

    def __init__(
        self,
        epsilon: Number,
        delta: Number = 0,
        per_analyst: Number | None = None,
        per_query: Number | None = None,
        analysts: Sequence[str] | None = None,
        least_epsilon: Number | None = None,
        left_out: bool = True,
    ) -> None:
        caps = {"per_analyst": per_analyst, "per_query": per_query}
        _fill(self, epsilon=_exact(epsilon, "epsilon"), delta=_exact(delta, "delta"), analysts=_analysts(analysts))
        _fill(self, **{name: None if cap is None else _exact(cap, name) for name, cap in caps.items()})
        least = least_price(self.epsilon) if least_epsilon is None else _exact(least_epsilon, "least_epsilon")
        _fill(self, least_epsilon=least, left_out=left_out)


@dataclass(frozen=True, init=False)
class Catalog:
    """The whole declaration. neighbours: "add-remove" or "replace"."""

    tables: Mapping[str, Table]
    budget: Budget
    neighbours: str
    snapshot: str

    def __init__(self, tables: Mapping[str, Table], budget: Budget, neighbours: str = "add-remove", snapshot: str = "") -> None:
        _check_mapping(Table, tables, "tables")
        if not isinstance(budget, Budget):
            raise CatalogError(
                [(None, f"budget is a {type(budget).__name__}.", Fix("write {it}.", it=Python("budget=dt.Budget(epsilon=1)")))]
            )
        _fill(self, tables=dict(tables), budget=budget, neighbours=neighbours, snapshot=snapshot)
        faults = rules.faults(self.tables, budget, neighbours, snapshot)
        if faults:
            raise CatalogError([(None, fault.what, in_python(fault.fix)) for fault in faults])

    @property
    def relation(self) -> str:
        """The name of the one neighbour relation of this catalog: "edge" or "node" if it has a graph, else `neighbours`."""
        units = (table.edges.unit for table in self.tables.values() if table.edges is not None)
        return next(units, self.neighbours)


def least_price(epsilon: Fraction) -> Fraction:
    """Returns the lowest price of a question if the catalog declares none."""
    return min(epsilon / 10_000, Fraction(1, 1000))


def _fill(frozen: Any, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(frozen, name, value)


def _check_mapping(kind: type, given: Mapping[str, Any], what: str) -> None:
    """Refuses what is not a mapping of names to values of one class: a wrong type would be a traceback later."""
    example = '{"age": dt.between(0, 120)}' if kind is ColumnFacts else '{"people": dt.Table(source, unit="id")}'
    fix = Fix("write {it}.", it=Python(example))
    if not isinstance(given, Mapping):
        raise CatalogError([(None, f"{what} is a {type(given).__name__}, not a mapping of names.", fix)])
    wrong = [name for name, value in given.items() if not isinstance(name, str) or not isinstance(value, kind)]
    if wrong:
        raise CatalogError([(None, f"{what}: {name!r} has the wrong type.", fix) for name in wrong])


def _check_types(**given: Any) -> None:
    """Refuses flags that are not bool and counts that are not int; rules.py checks the values."""
    problems = []
    for name, value in given.items():
        if name in ("by_row", "public") and not isinstance(value, bool):
            problems.append(
                (None, f"{name} is a {type(value).__name__}.", Fix("write {it} or leave it out.", it=Argument(name, True)))
            )
        if name.startswith(("max_", "most_")) and value is not None and not isinstance(value, int):
            problems.append(
                (
                    None,
                    f"{name} is a {type(value).__name__}.",
                    Fix("write {it}, or another whole number.", it=Argument(name, 1)),
                )
            )
    if problems:
        raise CatalogError(problems)


def _unit(unit: Unit | str | Mapping[str, str] | None) -> Unit | None:
    if unit is None or isinstance(unit, Unit):
        return unit
    if isinstance(unit, str):
        return Unit(unit)
    fix = 'write unit as "person_id", "row" or {"column": "person_id", "references": "people.person_id"}.'
    if not isinstance(unit, Mapping) or "column" not in unit or set(unit) - {"column", "references"}:
        raise CatalogError([(None, f"unit is a {type(unit).__name__} that names no column.", fix)])
    column, target = unit["column"], unit.get("references")
    if target is None:
        return Unit(column)
    table, dot, referenced = str(target).partition(".")
    if not (table and dot and referenced):
        raise CatalogError([(None, "references must name a table and a column.", fix)])
    return Unit(column, (table, referenced))


def _edges(edge: Any, unit: Any, nodes: Any, at_most: Any) -> Edges | None:
    """Returns what a table of edges declares. rules.py checks the values."""
    if edge is None:
        if nodes is not None or at_most is not None:
            fix = Fix("write {it} as well, or leave nodes and at_most out.", it=Python('edge=("from", "to")'))
            raise CatalogError([(None, "nodes and at_most are for tables of edges.", fix)])
        return None
    if isinstance(edge, str) or not isinstance(edge, Sequence):
        raise CatalogError([(None, f"edge is a {type(edge).__name__}.", Fix("write {it}.", it=Python('edge=("from", "to")')))])
    if isinstance(nodes, str):
        table, _, column = nodes.partition(".")
        nodes = (table, column)
    if nodes is not None and not isinstance(nodes, ColumnFacts) and not (isinstance(nodes, tuple) and all(nodes)):
        fix = Fix("write {it}.", it=Python('nodes="people.id"'))
        raise CatalogError([(None, "nodes names no table and column, and lists no labels.", fix)])
    if at_most is not None and not isinstance(at_most, AtMost):
        if not isinstance(at_most, Mapping) or set(at_most) - {"nodes", "edges"}:
            fix = Fix("write {it}.", it=Python('at_most={"nodes": 2000, "edges": 10000}'))
            raise CatalogError([(None, "at_most says something other than nodes or edges.", fix)])
        at_most = AtMost(**at_most)
    return Edges(tuple(edge), unit if isinstance(unit, str) else "", nodes, at_most or AtMost())


def _rows(rows: Rows | Mapping[str, int] | None) -> Rows:
    if rows is None or isinstance(rows, Rows):
        return rows or Rows()
    if not isinstance(rows, Mapping) or set(rows) - {"public", "at_least"}:
        raise CatalogError(
            [
                (
                    None,
                    "rows says something other than public or at_least.",
                    Fix("write {it}.", it=Python('rows={"at_least": 100}')),
                )
            ]
        )
    return Rows(**rows)


def _caps(caps: TableCaps | Mapping[str, int] | None) -> TableCaps:
    if caps is None or isinstance(caps, TableCaps):
        return caps or TableCaps()
    if not isinstance(caps, Mapping) or set(caps) - {"max_rows", "max_groups"}:
        fix = Fix("write {it}.", it=Python('caps={"max_rows": 100, "max_groups": 50}'))
        raise CatalogError([(None, "caps says something other than max_rows or max_groups.", fix)])
    return TableCaps(**caps)


def _read(read: Read | Mapping[str, Any] | None) -> Read:
    if read is None or isinstance(read, Read):
        return read or DEFAULT
    settings, faults = read_source(("read",), read)
    if faults:
        raise CatalogError([(None, fault.what, in_python(fault.fix)) for fault in faults])
    return settings


def _analysts(names: object) -> tuple[str, ...] | None:
    """Returns the names sorted: their order has no meaning."""
    if names is None:
        return None
    if not isinstance(names, (list, tuple, set, frozenset)) or not all(isinstance(name, str) for name in names):
        raise CatalogError(
            [
                (
                    None,
                    "analysts is not a list of names.",
                    Fix("write {it}, or leave it out.", it=Python('analysts=["ana", "ben"]')),
                )
            ]
        )
    return tuple(sorted(names))


def amount(value: Number) -> Fraction | None:
    """Returns a part of the budget; None if it is not a number that fits a double: budgets are shown as decimals."""
    exact = parse_number(value)
    return exact if exact is not None and abs(exact) <= _LARGEST else None


def _exact(value: Number, name: str) -> Fraction:
    exact = amount(value)
    if exact is None:
        raise CatalogError([(None, f"{name} is not a finite number.", f"write {name} as in 0.5, '1/2' or '1e-6'.")])
    return exact
