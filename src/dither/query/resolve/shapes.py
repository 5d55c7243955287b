"""Shapes: the facts about a relation while a query is resolved: its columns, its unit, how many rows one unit may have.

`per_unit` marks columns that have one value per unit: those of a table with one row per unit (the unit is its key, or it
has max_rows = 1 and max_groups = 1), of an aggregation per unit, and what is computed from them or looked up by them. A unit
is in one group of such keys, so max_groups is 1 there, and the engine enforces that like any bound.

For every column the shape tracks how it depends on the unit:

    NONE      not at all, as far as the catalog says
    CHOSEN    the unit chooses among values: person_id > 5, CASE WHEN person_id % 2 = 0 THEN 'a' ELSE 'b' END
    COMPUTED  the value is the unit or made from it: person_id * 1, CAST(person_id AS TEXT), MAX(person_id)

A condition has only two values, so it is CHOSEN. An expression that equals another depends on the unit as that one does.
In a table, the unit column is COMPUTED, and so is a column that the unit of another table refers to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from fractions import Fraction
from functools import cached_property

from dither.catalog.values import Catalog, ColumnFacts, Table
from dither.errors import Fix, Python, QueryError
from dither.query.functions.base import Facts
from dither.query.functions.domains import declared
from dither.query.functions.registry import columns, known
from dither.query.nodes import Call, Column, Compute, Expression, Join, Literal, Named, Relation, Scan, Span, fresh
from dither.query.sql.names import columns_of
from dither.query.work import UNIT

Levels = Mapping[str, "Dependence"]  # of the columns of a relation


class Dependence(IntEnum):
    """How a value depends on the unit; the larger of two dependences counts."""

    NONE = 0
    CHOSEN = 1
    COMPUTED = 2


def dependence(expression: Expression, levels: Levels, scope: Mapping[str, Facts]) -> Dependence:
    """Returns how an expression over these columns depends on the unit."""
    if isinstance(expression, Column):
        return levels.get(expression.name, Dependence.NONE)
    if not isinstance(expression, Call):
        return Dependence.NONE
    level = max((dependence(argument, levels, scope) for argument in expression.arguments), default=Dependence.NONE)
    computed = level == Dependence.COMPUTED
    return Dependence.CHOSEN if computed and known(expression, scope).kind == "bool" else level


def equalities(condition: Expression) -> Iterator[tuple[Expression, Expression]]:
    """Returns the pairs that are equal in every row for which the condition is true."""
    if isinstance(condition, Call) and condition.name == "and":
        for part in condition.arguments:
            yield from equalities(part)
    elif isinstance(condition, Call) and condition.name == "eq":
        yield condition.arguments[0], condition.arguments[1]


PUBLIC, BY_ROW, BY_UNIT = "public", "by row", "by unit"
MOST_SIZE = 20_000  # engines expand computed columns where they are used, so a short text could become very long


@dataclass(frozen=True)
class Known:
    """A column: its facts, whether it always equals the row's unit, its origin, whether its values are unique."""

    facts: Facts
    unit: bool = False
    origin: tuple[str, str] | None = None  # (table, column)
    unique: bool = False
    sure: bool = True  # False: its kind is not declared, and not checked
    size: int = 1  # of its expression, expanded to columns of tables
    depends: Dependence = Dependence.NONE  # on the unit
    per_unit: bool = False  # all rows of one unit have the same value, as far as the catalog says
    of_one_unit: bool = False  # rows with the same value belong to one unit: the id of an order, in orders and in their lines
    made_of: Expression | None = None  # its value over leaves (narrowing.py); None: nothing is known of it

    def missing(self) -> Known:
        """Returns the column as it is on the side of an outer join that may be missing."""
        facts = replace(self.facts, nullable=True)
        return replace(self, facts=facts, unit=False, of_one_unit=False, unique=False, made_of=None)


@dataclass(frozen=True)
class Shape:
    """A resolved relation. If `protects` is BY_UNIT it has the column UNIT, which `columns` does not list."""

    relation: Relation
    columns: Mapping[str, Known] = field(hash=False)
    protects: str
    root: tuple[str, str] | None = None  # the (table, column) that names the unit
    tables: tuple[str, ...] = ()
    max_rows: int | None = 1  # None: not declared
    max_groups: int | None = 1
    one_row: bool = False  # each unit has at most one row
    whole: str | None = None  # the table, if this has each of its rows once
    joins: int = 0  # the number of joins below that may multiply one unit's rows
    together: tuple[str, ...] = ()  # columns that are unique together (empty: none known)
    halves: tuple[str, ...] = ()  # the unit columns of both sides of a FULL JOIN: COALESCE of them is the unit
    leaves: Mapping[str, Facts] = field(default_factory=dict, hash=False)  # what columns are made of, see narrowing.py
    origins: Mapping[str, tuple[str, str]] = field(default_factory=dict, hash=False)  # of leaves: (table, column)
    equal: tuple[tuple[str, str], ...] = ()  # leaves that are equal in every row
    conditions: tuple[Expression, ...] = ()  # over leaves, true in every row

    @property
    def private(self) -> bool:
        return self.protects != PUBLIC

    @cached_property
    def scope(self) -> dict[str, Facts]:
        return {name: known.facts for name, known in self.columns.items()}

    def depends(self, expression: Expression) -> Dependence:
        """Returns how an expression over the columns depends on the unit."""
        return dependence(expression, {name: known.depends for name, known in self.columns.items()}, self.scope)

    def per_unit(self, expression: Expression) -> bool:
        """Returns whether an expression has the same value in all rows of one unit, so that each unit is in one group."""
        return all(name == UNIT or self.columns[name].per_unit for name in columns(expression))

    def is_unit(self, expression: Expression) -> bool:
        """Returns whether an expression always equals the row's unit: its column, or COALESCE of both sides of a FULL JOIN."""
        if isinstance(expression, Column):
            return expression.name in self.columns and self.columns[expression.name].unit
        if not isinstance(expression, Call) or expression.name != "coalesce":
            return False
        names = {part.name for part in expression.arguments if isinstance(part, Column)}
        return bool(self.halves) and len(expression.arguments) == len(names) and names == set(self.halves)

    def within_unit(self, expression: Expression) -> bool:
        """Returns whether all rows with the same value of an expression belong to one unit."""
        known = self.columns.get(expression.name) if isinstance(expression, Column) else None
        return self.is_unit(expression) or (known is not None and known.of_one_unit)

    def equated(self, pairs: Iterable[tuple[Expression, Dependence]]) -> Shape:
        """Returns the shape where each expression equals a value that depends on the unit as stated."""
        columns = dict(self.columns)
        for expression, level in pairs:
            if isinstance(expression, Column) and expression.name in columns and level > columns[expression.name].depends:
                columns[expression.name] = replace(columns[expression.name], depends=level)
        return replace(self, columns=columns)


def size(expressions: Iterable[Expression], shape: Shape, span: Span = None) -> int:
    """Returns the number of parts of expressions with computed columns expanded; refuses more than MOST_SIZE."""
    parts = 0
    for expression in expressions:
        parts += _parts(expression, shape)
        if parts > MOST_SIZE:
            raise QueryError(
                f"Expanded, this has more than {MOST_SIZE} parts: its computed columns repeat each other.",
                span=expression.span or span,
                fix="ask more simply.",
            )
    return parts


def _parts(expression: Expression, shape: Shape) -> int:
    if isinstance(expression, Column):
        return shape.columns[expression.name].size if expression.name in shape.columns else 1
    return 1 + sum(_parts(argument, shape) for argument in expression.arguments) if isinstance(expression, Call) else 1


def constant(value: Fraction) -> Literal:
    """Returns a bound as a literal, an int if it is whole."""
    return Literal(int(value) if value.denominator == 1 else value)


def check_names(names: Iterable[str], span: Span = None) -> None:
    """Refuses repeated names and names reserved for the unit; a query built by hand from nodes may have them.

    A column named like the unit would replace it, and rows would be bounded per value of that column.
    """
    every = list(names)
    reserved = [name for name in every if name.startswith("#")]
    if reserved:
        raise QueryError(f"# cannot begin a name, and {reserved[0]} does.", span=span, fix="choose another name.")
    check_once(every, span)


def check_once(names: Iterable[str], span: Span = None) -> None:
    """Refuses repeated names."""
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise QueryError(f"Two columns here are named {twice[0]}.", span=span, fix="give one of them another name.")


def scan(node: Scan, catalog: Catalog) -> Shape:
    """Returns the shape of a catalog table; if it has a unit, with the column UNIT."""
    table = catalog.tables.get(node.table)
    if table is None:
        raise QueryError(f"There is no table {node.table}.", span=node.span, fix="name a table of the catalog.")
    columns = {
        f"{node.alias}.{name}": Known(
            _facts(table, name, catalog),
            False,
            (node.table, name),
            _is_unique(node.table, name, catalog),
            _has_kind(table, name),
        )
        for name in columns_of(table)
    }
    if table.edges is not None:
        raise QueryError(
            f"{node.table} lists the edges of a graph, and SQL cannot tell what one edge or one node changes.",
            span=node.span,
            fix=Fix(
                "ask {call}.",
                call=Python(
                    f'survey.graph("{node.table}").edge_count(epsilon=1)', f"dither graph {node.table} edge_count --epsilon 1"
                ),
            ),
        )
    if table.public:
        return Shape(node, columns, PUBLIC, tables=(node.table,), whole=node.table)
    if table.by_row:
        return Shape(node, columns, BY_ROW, tables=(node.table,), whole=node.table)
    if table.unit is None:
        raise QueryError(f"{node.table} does not say who is protected.", span=node.span, fix="declare its unit in the catalog.")
    hop = next_hop(node.table, catalog)
    own = f"{node.alias}.{table.unit.column}"
    for name in (table.unit.column, *_referred(node.table, catalog)):
        column = f"{node.alias}.{name}"
        columns[column] = replace(columns[column], depends=Dependence.COMPUTED, of_one_unit=True)
    if table.key is not None:
        columns[f"{node.alias}.{table.key}"] = replace(columns[f"{node.alias}.{table.key}"], of_one_unit=True)
    if hop is None:
        columns[own] = replace(columns[own], unit=True, per_unit=True)
        relation: Relation = _with_unit(node, tuple(columns), Column(own))
    else:
        relation = _join_parent(node, own, hop, tuple(columns), catalog)
    if (columns[own].unique and hop is None) or (table.max_rows == 1 and table.max_groups == 1):
        columns = {name: replace(known, per_unit=True) for name, known in columns.items()}
    return Shape(
        relation,
        columns,
        BY_UNIT,
        root(node.table, catalog),
        (node.table,),
        table.max_rows,
        table.max_groups,
        one_row=hop is None and _is_unique(node.table, table.unit.column, catalog),
        whole=node.table,
    )


def _is_unique(name: str, column: str, catalog: Catalog) -> bool:
    """Returns whether a column is a key or is referred to; engines/duckdb/sources.py checks that these are unique."""
    return column == catalog.tables[name].key or column in _referred(name, catalog)


def _referred(name: str, catalog: Catalog) -> list[str]:
    """Returns the usable columns of a table that the units of other tables refer to."""
    edges = [table.unit.references for table in catalog.tables.values() if table.unit is not None and table.unit.references]
    usable = columns_of(catalog.tables[name])
    return [column for parent, column in edges if parent == name and column in usable]


def _has_kind(table: Table, name: str) -> bool:
    return name in table.columns and table.columns[name].kind is not None


def _facts(table: Table, name: str, catalog: Catalog) -> Facts:
    column = table.columns.get(name, ColumnFacts())
    unit = table.unit
    if column.kind is None and unit is not None and unit.column == name and unit.references is not None:
        parent, above = unit.references
        return declared(column, _facts(catalog.tables[parent], above, catalog).kind)
    if column.kind is not None or name not in table.columns:
        return declared(column, None, column.found if table.public else None)
    # No engine has opened the catalog, so the schema is not known; the declaration still gives the kind.
    numeric = any(part is not None for part in (column.low, column.high, column.step))
    known = [value for value in column.values or () if value is not None]
    kind = "real" if numeric else {bool: "bool", int: "int", str: "text"}.get(type(known[0]), "date") if known else "text"
    return declared(column, kind)


def _with_unit(source: Relation, names: tuple[str, ...], unit: Column) -> Relation:
    return Compute(source, (*(Named(name, Column(name)) for name in names), Named(UNIT, unit)))


def root(table: str, catalog: Catalog) -> tuple[str, str]:
    """Returns the (table, column) that names the units of this table, after all references."""
    unit = catalog.tables[table].unit
    if unit is None:
        return table, ""
    return (table, unit.column) if unit.references is None else root(unit.references[0], catalog)


def next_hop(table: str, catalog: Catalog) -> tuple[str, str] | None:
    """Returns the next (table, column) on the way to the unit; None if the row itself has the unit."""
    unit = catalog.tables[table].unit
    while unit is not None and unit.references is not None:
        parent, column = unit.references
        above = catalog.tables[parent].unit
        if above is None or above.column != column:
            return parent, column
        unit = above
    return None


def _join_parent(node: Scan, own: str, hop: tuple[str, str], names: tuple[str, ...], catalog: Catalog) -> Relation:
    """Joins rows to their parent row, which has the unit. Rows without a parent belong to nobody and are dropped.

    engines/duckdb/sources.py checks on opening that referenced columns are unique.
    """
    parent, column = hop
    if column not in columns_of(catalog.tables[parent]):
        raise QueryError(
            f"{node.table} belongs to a row of {parent} by {column}, which the catalog does not declare.",
            span=node.span,
            fix=f"declare {column} as the `key` of {parent} in the catalog.",
        )
    alias = fresh("up", (node.alias,))
    above = scan(Scan(parent, alias), catalog)
    key, owner = fresh("key"), fresh("owner")
    named = Compute(above.relation, (Named(key, Column(f"{alias}.{column}")), Named(owner, Column(UNIT))))
    joined = Join(node, named, ((Column(own), Column(key)),), "inner")
    return _with_unit(joined, names, Column(owner))
