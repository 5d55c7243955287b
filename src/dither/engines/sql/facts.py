"""Prints what a curator is told of the data: which rows fit their declaration, whose they are, which columns are keys.

Nothing of it reaches a question, a ledger or another person.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from dither.catalog.declare import date_of
from dither.catalog.values import Catalog, ColumnFacts
from dither.engines.sql.dialect import Dialect
from dither.query.resolve.shapes import next_hop

_NEARLY = 0.95  # the share of values that must be in the referenced column: some rows point to nothing
End = tuple[str, str]  # a table and its column


def listed(read: str, facts: ColumnFacts, dialect: Dialect) -> str:
    """Prints the test that a value is one of the declared ones."""
    if facts.values is None:
        return "TRUE"
    return f"{read} IN ({', '.join(dialect.literal(value).text for value in facts.values if value is not None)})"


def outside(read: str, facts: ColumnFacts, dialect: Dialect) -> str:
    """Prints the test that a value is outside its declared bounds."""
    if facts.low is None or facts.high is None or facts.values is not None:
        return "FALSE"
    if facts.kind in ("date", "timestamp"):
        day = datetime.timedelta(days=1)
        low, high = date_of(facts.low), date_of(facts.high)
        last = dialect.literal(high + day).text if high < datetime.date.max else "NULL"
        return f"coalesce({read} < {dialect.literal(low).text} OR {read} >= {last}, FALSE)"
    ends = [dialect.double(float(end)) for end in (facts.low, facts.high)]
    return f"({read} < {ends[0]} OR {read} > {ends[1]})"


def unique_columns(catalog: Catalog, name: str) -> list[str]:
    """Returns the columns of a table that must be unique: its key, and those that other tables refer to."""
    own = catalog.tables[name].key
    edges = (table.unit.references for table in catalog.tables.values() if table.unit and table.unit.references)
    return list(dict.fromkeys([*([own] if own else []), *(column for parent, column in edges if parent == name)]))


def owned(catalog: Catalog, name: str, table: Callable[[str], str], identifier: Callable[[str], str]) -> tuple[str, str]:
    """Prints the rows of a table, t, with their owners, and the owner's column: NULL for rows that lead to nobody."""
    unit, rows, alias, hop = catalog.tables[name].unit, f"{table(name)} AS t", "t", next_hop(name, catalog)
    column: Any = unit.column if unit else ""
    while hop is not None:
        parent, target = hop
        above, owner = f"{alias}a", catalog.tables[parent].unit
        rows += f" LEFT JOIN {table(parent)} AS {above} ON {alias}.{identifier(column)} = {above}.{identifier(target)}"
        alias, column, hop = above, owner.column if owner else target, next_hop(parent, catalog)
    return rows, f"{alias}.{identifier(column)}"


def unmatched(catalog: Catalog, name: str, table: Callable[[str], str], identifier: Callable[[str], str]) -> str:
    """Prints how many rows of `e` (units u with n rows each) name a person who has no row in the table that they point to.

    They count all the same where the reference is to the unit itself; where a row looks its owner up, it has none instead.
    """
    unit = catalog.tables[name].unit
    if unit is None or unit.references is None or next_hop(name, catalog) is not None:
        return "0"
    parent, target = table(unit.references[0]), identifier(unit.references[1])
    known = f"(SELECT 1 FROM {parent} AS p WHERE p.{target} = e.u)"
    return f"(SELECT coalesce(sum(n), 0) FROM e WHERE u IS NOT NULL AND NOT EXISTS {known})"


class StoredKeys:
    """The key columns of open tables. Each comparison is computed once. `rows`: runs a statement."""

    def __init__(
        self, rows: Callable[[str], list[tuple[Any, ...]]], table: Callable[[str], str], identifier: Callable[[str], str]
    ) -> None:
        self._rows, self._table, self._identifier = rows, table, identifier
        self._unique: dict[End, bool] = {}

    def unique(self, end: End) -> bool:
        """Whether the column has values, and none of them twice."""
        if end not in self._unique:
            table, column = self._table(end[0]), self._identifier(end[1])
            counts = f"SELECT count(*), count({column}), count(DISTINCT {column}) FROM {table}"
            ((rows, filled, different),) = self._rows(counts)
            self._unique[end] = filled == different and (filled > 0 or not rows)
        return self._unique[end]

    def held(self, child: End, parent: End) -> bool:
        """Whether nearly all values of the child's column are in the parent's."""
        (table, column), (other, target) = ((self._table(name), self._identifier(own)) for name, own in (child, parent))
        found = f"count(*) FILTER (WHERE {column} IN (SELECT {target} FROM {other}))"
        ((filled, held),) = self._rows(f"SELECT count({column}), {found} FROM {table}")
        return bool(held >= _NEARLY * filled)
