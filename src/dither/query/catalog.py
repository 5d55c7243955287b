"""The curator's declaration: tables, who is protected, what is public, how much may be learnt in all.

Frozen values, the same whether read from a file (catalog_file.py) or built in Python. What is not declared here is
private and unusable.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

Key = None | bool | int | str | datetime.date
KINDS = ("int", "real", "text", "bool", "date", "timestamp")


@dataclass(frozen=True)
class ColumnFacts:
    """What is declared of one column. Bounds are enforced by clipping where the column is added up, never believed."""

    kind: str | None = None  # one of KINDS; None: taken from the source's schema when the table is opened
    low: Fraction | None = None
    high: Fraction | None = None
    step: Fraction | None = None
    values: tuple[Key, ...] | None = None
    nullable: bool = True


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


@dataclass(frozen=True)
class Table:
    """One table. `unit` None with public=False and by_row=False never occurs: the reader refuses it.

    `source` is a path or glob (Parquet, CSV), "file.duckdb#table", or a frame (pandas, Polars, Arrow).
    `by_row`: every row is its own unit (unit = "row"). `key`: a column whose values are unique (checked on opening).
    """

    source: Any = field(compare=False)
    unit: Unit | None = None
    by_row: bool = False
    public: bool = False
    max_rows: int | None = None
    max_groups: int | None = None
    rows: Rows = Rows()
    key: str | None = None
    columns: Mapping[str, ColumnFacts] = field(default_factory=dict)


@dataclass(frozen=True)
class Budget:
    """For everyone together, for ever. delta 0 is pure differential privacy."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    per_analyst: Fraction | None = None


@dataclass(frozen=True)
class Catalog:
    """The whole declaration. neighbours: "add-remove" or "replace"."""

    tables: Mapping[str, Table]
    budget: Budget
    neighbours: str = "add-remove"
    snapshot: str = ""
