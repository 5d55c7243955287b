"""Whether a value tells whose row it is, carried along from the tables' columns through everything computed from them.

    NONE      the value has nothing to do with the unit, as far as the catalog says
    CHOSEN    the unit decides which of several values it is: person_id > 5, CASE WHEN person_id % 2 = 0 THEN 'a' ELSE 'b' END
    COMPUTED  the value is the unit or made from it: person_id * 1, CAST(person_id AS TEXT), MAX(person_id)

A condition is true or false whatever it compares, so it chooses. What is known to equal a value depends on the unit as that
value does. In a table the unit column tells whose row it is, and so does a column that another table's unit refers to.

What is known of a relation while a question is resolved: its columns, whose rows they are, how many one unit may bring.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from fractions import Fraction

from dither.catalog.values import Catalog, ColumnFacts, Table
from dither.errors import QueryError
from dither.exact.numbers import show
from dither.query.functions.base import Facts
from dither.query.functions.registry import declared, known
from dither.query.nodes import Call, Column, Compute, Expression, Join, Literal, Named, Relation, Scan, Span, fresh
from dither.query.sql.names import columns_of
from dither.query.work import UNIT

Levels = Mapping[str, "Dependence"]  # of the columns of a relation


class Dependence(IntEnum):
    """How a value depends on the unit; of two the larger one counts."""

    NONE = 0
    CHOSEN = 1
    COMPUTED = 2


def dependence(expression: Expression, levels: Levels, scope: Mapping[str, Facts]) -> Dependence:
    """How an expression over these columns depends on the unit."""
    if isinstance(expression, Column):
        return levels.get(expression.name, Dependence.NONE)
    if not isinstance(expression, Call):
        return Dependence.NONE
    found = max((dependence(argument, levels, scope) for argument in expression.arguments), default=Dependence.NONE)
    computed = found == Dependence.COMPUTED
    return Dependence.CHOSEN if computed and known(expression, scope).kind == "bool" else found


def equalities(condition: Expression) -> Iterator[tuple[Expression, Expression]]:
    """What is equal in every row for which the condition holds."""
    if isinstance(condition, Call) and condition.name == "and":
        for part in condition.arguments:
            yield from equalities(part)
    elif isinstance(condition, Call) and condition.name == "eq":
        yield condition.arguments[0], condition.arguments[1]


PUBLIC, BY_ROW, BY_UNIT = "public", "by row", "by unit"
MOST_SIZE = 20_000  # engines write computed columns out where they are used, so a short text could become very long


@dataclass(frozen=True)
class Known:
    """A column: its facts, whether it surely equals the row's unit, where it comes from, whether its values are unique."""

    facts: Facts
    unit: bool = False
    origin: tuple[str, str] | None = None  # (table, column)
    unique: bool = False
    sure: bool = True  # False: its kind is not declared, and not checked
    size: int = 1  # of its expression, written out over the columns of the tables below
    loose: bool = False  # a count or sum per unit: beyond its bounds in units with more than max_rows rows
    depends: Dependence = Dependence.NONE  # on the unit: whether it tells whose row it is

    def missing(self) -> Known:
        """The column on the side of an outer join that may have no partner."""
        return replace(self, facts=replace(self.facts, nullable=True), unit=False, unique=False)


@dataclass(frozen=True)
class Shape:
    """A resolved relation. Private ones by unit carry the column UNIT, which `columns` does not list."""

    relation: Relation
    columns: Mapping[str, Known] = field(hash=False)
    protects: str
    root: tuple[str, str] | None = None  # the table and column in which the unit is named
    tables: tuple[str, ...] = ()
    max_rows: int = 1
    max_groups: int | None = 1
    whole: str | None = None  # the table, if this is still each of its rows once
    said: tuple[str, ...] = ()  # what the answer must say of keys made of loose columns
    joins: int = 0  # how many joins below may multiply one unit's rows
    together: tuple[str, ...] = ()  # columns in which, taken together, no two rows are equal (none: nothing is known)

    @property
    def private(self) -> bool:
        return self.protects != PUBLIC

    @property
    def scope(self) -> dict[str, Facts]:
        return {name: known.facts for name, known in self.columns.items()}

    def depends(self, expression: Expression) -> Dependence:
        """How an expression over the columns depends on the unit."""
        return dependence(expression, {name: known.depends for name, known in self.columns.items()}, self.scope)

    def equated(self, pairs: Iterable[tuple[Expression, Dependence]]) -> Shape:
        """The same rows, knowing that each of these equals something that depends on the unit as stated."""
        columns = dict(self.columns)
        for expression, level in pairs:
            if isinstance(expression, Column) and expression.name in columns and level > columns[expression.name].depends:
                columns[expression.name] = replace(columns[expression.name], depends=level)
        return replace(self, columns=columns)


def size(expressions: Iterable[Expression], shape: Shape, span: Span = None) -> int:
    """How many parts the expressions have when computed columns are written out; refused where these are very many."""
    found = 0
    for expression in expressions:
        found += _parts(expression, shape)
        if found > MOST_SIZE:
            raise QueryError(
                f"Written out, this has more than {MOST_SIZE} parts: its columns repeat others that repeat others.",
                span=expression.span or span,
                fix="ask more simply.",
            )
    return found


def _parts(expression: Expression, shape: Shape) -> int:
    if isinstance(expression, Column):
        return shape.columns[expression.name].size if expression.name in shape.columns else 1
    return 1 + sum(_parts(argument, shape) for argument in expression.arguments) if isinstance(expression, Call) else 1


def held(expression: Expression, shape: Shape) -> Expression:
    """The expression with loose columns held to their bounds: as keys they would drop the units that are beyond them."""
    if isinstance(expression, Column) and expression.name in shape.columns and shape.columns[expression.name].loose:
        known = shape.columns[expression.name].facts
        if known.low is not None and known.high is not None:
            return Call("clamp", (expression, constant(known.low), constant(known.high)), span=expression.span)
    if isinstance(expression, Call):
        return replace(expression, arguments=tuple(held(argument, shape) for argument in expression.arguments))
    return expression


def constant(value: Fraction) -> Literal:
    """A bound as a constant of a question: an integer where it is one."""
    return Literal(int(value) if value.denominator == 1 else value)


def said(expressions: Iterable[Expression], shape: Shape) -> tuple[str, ...]:
    """What `held` did to them, in words, after what was said before."""
    columns = {column.name: column for expression in expressions for column in _columns(expression)}
    found = []
    for name in sorted(columns):
        low, high = shape.columns[name].facts.low, shape.columns[name].facts.high
        if shape.columns[name].loose and low is not None and high is not None:
            word = columns[name].words or name.rsplit(".", 1)[-1]
            found.append(f"{word} is held to [{show(low)}, {show(high)}], so {show(high)} means {show(high)} or more")
    return tuple(dict.fromkeys((*shape.said, *found)))


def _columns(expression: Expression) -> Iterator[Column]:
    if isinstance(expression, Column):
        yield expression
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from _columns(argument)


def check_names(names: Iterable[str], span: Span = None) -> None:
    """Every name once, and none that is kept for the unit, also where a question is built by hand from nodes.

    A column named like the unit would take its place, and rows would be bounded per whatever it holds.
    """
    every = list(names)
    kept = [name for name in every if name.startswith("#")]
    if kept:
        raise QueryError(f"# cannot begin a name, and {kept[0]} does.", span=span, fix="choose another name.")
    check_once(every, span)


def check_once(names: Iterable[str], span: Span = None) -> None:
    """Every name once."""
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise QueryError(f"Two columns here are named {twice[0]}.", span=span, fix="give one of them another name.")


def scanned(node: Scan, catalog: Catalog) -> Shape:
    """A table of the catalog; if it protects a unit, with the unit as a column of its own."""
    table = catalog.tables.get(node.table)
    if table is None:
        raise QueryError(f"There is no table {node.table}.", span=node.span, fix="name a table of the catalog.")
    columns = {
        f"{node.alias}.{name}": Known(
            _facts(table, name, catalog), False, (node.table, name), _is_unique(node.table, name, catalog), _sure(table, name)
        )
        for name in columns_of(table)
    }
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
        columns[column] = replace(columns[column], depends=Dependence.COMPUTED)
    if hop is None:
        columns[own] = replace(columns[own], unit=True)
        relation: Relation = _with_unit(node, tuple(columns), Column(own))
    else:
        relation = _owned(node, own, hop, tuple(columns), catalog)
    return Shape(
        relation, columns, BY_UNIT, root(node.table, catalog), (node.table,), _rows(table, node), table.max_groups, node.table
    )


def _is_unique(name: str, column: str, catalog: Catalog) -> bool:
    """Keys, and what other tables refer to: engines/duckdb/sources.py looks whether they are."""
    return column == catalog.tables[name].key or column in _referred(name, catalog)


def _referred(name: str, catalog: Catalog) -> list[str]:
    """The columns of a table that say whose rows another table's are, among those that a question may name."""
    edges = [table.unit.references for table in catalog.tables.values() if table.unit is not None and table.unit.references]
    usable = columns_of(catalog.tables[name])
    return [column for parent, column in edges if parent == name and column in usable]


def _sure(table: Table, name: str) -> bool:
    return name in table.columns and table.columns[name].kind is not None


def _facts(table: Table, name: str, catalog: Catalog) -> Facts:
    column = table.columns.get(name, ColumnFacts())
    unit = table.unit
    if column.kind is None and unit is not None and unit.column == name and unit.references is not None:
        parent, above = unit.references
        return declared(column, _facts(catalog.tables[parent], above, catalog).kind)
    if column.kind is not None or name not in table.columns:
        return declared(column)
    # The schema was not looked at yet (a catalog that no engine opened); what is declared still tells the kind.
    numeric = any(part is not None for part in (column.low, column.high, column.step))
    known = [value for value in column.values or () if value is not None]
    kind = "real" if numeric else {bool: "bool", int: "int", str: "text"}.get(type(known[0]), "date") if known else "text"
    return declared(column, kind)


def _rows(table: Table, node: Scan) -> int:
    if table.max_rows is None:
        raise QueryError(
            f"{node.table} does not say how many rows one person may have in a group.",
            span=node.span,
            fix=f"declare max_rows for {node.table} in the catalog.",
        )
    return table.max_rows


def _with_unit(source: Relation, names: tuple[str, ...], unit: Column) -> Relation:
    return Compute(source, (*(Named(name, Column(name)) for name in names), Named(UNIT, unit)))


def root(table: str, catalog: Catalog) -> tuple[str, str]:
    """The table and column that name the units of this table, after all its references."""
    unit = catalog.tables[table].unit
    if unit is None:
        return table, ""
    return (table, unit.column) if unit.references is None else root(unit.references[0], catalog)


def next_hop(table: str, catalog: Catalog) -> tuple[str, str] | None:
    """The next table that must be looked into to learn whose row it is; None if the row itself says so."""
    unit = catalog.tables[table].unit
    while unit is not None and unit.references is not None:
        parent, column = unit.references
        above = catalog.tables[parent].unit
        if above is None or above.column != column:
            return parent, column
        unit = above
    return None


def _owned(node: Scan, own: str, hop: tuple[str, str], names: tuple[str, ...], catalog: Catalog) -> Relation:
    """The rows joined to the parent row they point to, which says whose they are. No parent: nobody's, dropped.

    That referenced columns are unique is checked when the sources are opened (engines/duckdb/sources.py).
    """
    parent, column = hop
    if column not in columns_of(catalog.tables[parent]):
        raise QueryError(
            f"{node.table} belongs to a row of {parent} by {column}, which the catalog does not declare.",
            span=node.span,
            fix=f'declare key = "{column}" for {parent} in the catalog.',
        )
    alias = fresh("up", (node.alias,))
    above = scanned(Scan(parent, alias), catalog)
    key, owner = fresh("key"), fresh("owner")
    named = Compute(above.relation, (Named(key, Column(f"{alias}.{column}")), Named(owner, Column(UNIT))))
    joined = Join(node, named, ((Column(own), Column(key)),), "inner")
    return _with_unit(joined, names, Column(owner))
