"""The curator's declaration: tables, who is protected, what is public, how much may be learnt in all.

Frozen values, the same whether read from a file (catalog_file.py) or built in Python. What is not declared here is
private and unusable. The constructors read what a person writes (unit="person_id", epsilon=0.1) into exact values;
`Catalog` then holds the whole declaration against rules.py and reports every problem at once.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dither.catalog import rules
from dither.catalog.rules import LONGEST
from dither.errors import Argument, CatalogError, Fix, Python
from dither.exact.numbers import Number, number

Key = None | bool | int | str | datetime.date
KINDS = rules.KINDS
_LARGEST = 10**300


@dataclass(frozen=True)
class ColumnFacts:
    """What is declared of one column. Bounds are enforced by clipping where the column is added up, never believed.

    Bounds of a date column are days since 1970-01-01. None among `values`: rows where it is NULL are a group of their own.
    """

    kind: str | None = None  # one of KINDS; None: taken from the source's schema when the table is opened
    low: Fraction | None = None
    high: Fraction | None = None
    step: Fraction | None = None
    values: tuple[Key, ...] | None = None
    nullable: bool = True
    longest: int = LONGEST  # a text of more characters is NULL; in a unit or key column its row is left out
    implied: bool = field(default=False, compare=False, repr=False)  # the kind was not said: it is that of values or bounds


@dataclass(frozen=True)
class Unit:
    """Who is protected: the value of a column; `references` is (table, column) of the parent row it points to."""

    column: str
    references: tuple[str, str] | None = None


@dataclass(frozen=True)
class Rows:
    """Public facts about the number of rows: exactly `public` (with replace neighbours), or `at_least`."""

    public: int | None = None
    at_least: int | None = None


@dataclass(frozen=True, init=False)
class Table:
    """One table. `unit` None with public=False and by_row=False never occurs in a Catalog: it is refused.

    `source` is a path or glob (Parquet, CSV), "file.duckdb#table", or a frame (pandas, Polars, Arrow).
    `by_row`: every row is its own unit (unit = "row"). `key`: a column whose values are unique (checked on opening).
    In Python `max_rows` is 1 unless said otherwise, and `max_groups` is 1 where `max_rows` is 1: both are enforced.

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
    ) -> None:
        if isinstance(unit, str) and unit == "row":
            unit, by_row = None, True
        _numbers_and_flags(by_row=by_row, public=public, max_rows=max_rows, max_groups=max_groups)
        if max_rows is None and (by_row or unit is not None):
            max_rows = 1
        if max_groups is None and max_rows == 1:
            max_groups = 1
        _fill(self, source=source, unit=_unit(unit), by_row=by_row, public=public, max_rows=max_rows, max_groups=max_groups)
        named = {} if columns is None else columns
        _only(ColumnFacts, named, "columns")
        _fill(self, rows=_rows(rows), key=key, columns=dict(named))


@dataclass(frozen=True, init=False)
class Budget:
    """For everyone together, for ever. delta 0 is pure differential privacy.

    `per_analyst` and `per_query` cap the epsilon of one analyst and of one question: for fairness, since analysts may collude.
    `least_epsilon` is the least that a question may cost, so that nobody asks without end; left out, a ten-thousandth of
    epsilon, or 0.001 if that is less. `analysts` are the only ones who may ask; None: whoever asks.

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

    def __init__(
        self,
        epsilon: Number,
        delta: Number = 0,
        per_analyst: Number | None = None,
        per_query: Number | None = None,
        analysts: Sequence[str] | None = None,
        least_epsilon: Number | None = None,
    ) -> None:
        caps = {"per_analyst": per_analyst, "per_query": per_query}
        _fill(self, epsilon=_exact(epsilon, "epsilon"), delta=_exact(delta, "delta"), analysts=_analysts(analysts))
        _fill(self, **{name: None if cap is None else _exact(cap, name) for name, cap in caps.items()})
        least = least_price(self.epsilon) if least_epsilon is None else _exact(least_epsilon, "least_epsilon")
        _fill(self, least_epsilon=least)


@dataclass(frozen=True, init=False)
class Catalog:
    """The whole declaration. neighbours: "add-remove" or "replace"."""

    tables: Mapping[str, Table]
    budget: Budget
    neighbours: str
    snapshot: str

    def __init__(self, tables: Mapping[str, Table], budget: Budget, neighbours: str = "add-remove", snapshot: str = "") -> None:
        _only(Table, tables, "tables")
        if not isinstance(budget, Budget):
            raise CatalogError(
                [(None, f"budget is a {type(budget).__name__}.", Fix("write {it}.", it=Python("budget=dt.Budget(epsilon=1)")))]
            )
        _fill(self, tables=dict(tables), budget=budget, neighbours=neighbours, snapshot=snapshot)
        found = rules.faults(self.tables, budget, neighbours, snapshot)
        if found:
            raise CatalogError([(None, fault.what, fault.fix) for fault in found])


def least_price(epsilon: Fraction) -> Fraction:
    """What a question costs at least where the catalog does not say so."""
    return min(epsilon / 10_000, Fraction(1, 1000))


def _fill(frozen: Any, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(frozen, name, value)


def _only(wanted: type, given: Mapping[str, Any], what: str) -> None:
    """A mapping of names to values of one class, refused otherwise: here a wrong type would surface as a traceback later."""
    example = '{"age": dt.between(0, 120)}' if wanted is ColumnFacts else '{"people": dt.Table(source, unit="id")}'
    fix = Fix("write {it}.", it=Python(example))
    if not isinstance(given, Mapping):
        raise CatalogError([(None, f"{what} is a {type(given).__name__}, not names with what they stand for.", fix)])
    wrong = [name for name, value in given.items() if not isinstance(name, str) or not isinstance(value, wanted)]
    if wrong:
        raise CatalogError([(None, f"{what}: {name!r} is declared as something else.", fix) for name in wrong])


def _numbers_and_flags(**given: Any) -> None:
    """Whether what is computed with is a number or a yes or no at all; which ones make sense is for rules.py."""
    found = []
    for name, value in given.items():
        if name in ("by_row", "public") and not isinstance(value, bool):
            found.append(
                (None, f"{name} is a {type(value).__name__}.", Fix("write {it} or leave it out.", it=Argument(name, True)))
            )
        if name.startswith("max_") and value is not None and not isinstance(value, int):
            found.append(
                (
                    None,
                    f"{name} is a {type(value).__name__}.",
                    Fix("write {it}, or another whole number.", it=Argument(name, 1)),
                )
            )
    if found:
        raise CatalogError(found)


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


def _analysts(names: object) -> tuple[str, ...] | None:
    """In one order, whatever order they were written in: it says nothing."""
    if names is None:
        return None
    if not isinstance(names, (list, tuple, set, frozenset)) or not all(isinstance(name, str) for name in names):
        raise CatalogError(
            [(None, "analysts is no list of names.", Fix("write {it}, or leave it out.", it=Python('analysts=["ana", "ben"]')))]
        )
    return tuple(sorted(names))


def amount(value: Number) -> Fraction | None:
    """A part of the budget; None if it is no number, or one that no double holds: budgets are shown as decimals."""
    found = number(value)
    return found if found is not None and abs(found) <= _LARGEST else None


def _exact(value: Number, name: str) -> Fraction:
    found = amount(value)
    if found is None:
        raise CatalogError([(None, f"{name} is not a finite number.", f"write {name} as in 0.5, '1/2' or '1e-6'.")])
    return found
